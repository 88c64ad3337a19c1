"""Time of one call on a device: what it takes in a full queue, in a CUDA graph, or of the thread that launches it."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = 150e-6
"""Calls of so many seconds or more are timed back to back over `SUSTAINED`: power lowers the clock meanwhile. Shorter
ones are over before it does."""
SUSTAINED = 0.2
WARM = 0.08
BURST = 1e-3
BURSTS = 7
MOST = 100
"""Calls in a burst: they and their kernels must fit the device's queue while it is held up."""
CYCLES = 2e9
LASTING = 2.5
"""Seconds of a load whose power is read: nvidia-smi averages over one, and the clock must have settled."""
SETTLED = 1.1
"""The last seconds of it, whose readings count."""
PARTS = 50
"""Groups into which such a load is cut; the device is waited for after each."""
MOST_AHEAD = 5000
"""Calls in a group at most."""


@dataclass(frozen=True)
class Timing:
    """Seconds of a call, the calls it is taken over, and (longest - shortest) / median of their groups."""

    seconds: float
    repeats: int
    spread: float


class Clock:
    """Times calls with the device's own events. A call gets its number, so that it can take buffers in turns."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def stream(self, call: Callable[[int], Any]) -> Timing:
        """Time in a queue that never runs empty: short calls wait behind an idle loop while they are launched."""
        for at in range(3):
            call(at)
        self._torch.cuda.synchronize()
        estimate, host = self._burst(call, 5, 0.0)
        if estimate >= LONG and estimate > 1.5 * host:
            return self._sustained(call, estimate)
        count = max(10 if estimate < LONG else 3, min(MOST, math.ceil(BURST / max(estimate, 1e-6))))
        held = 1.5 * count * host
        times = [self._burst(call, count, held)[0] for _ in range(BURSTS)]
        return _of(times, count * BURSTS)

    def eager(self, call: Callable[[int], Any]) -> Timing:
        """Time of calls one after another, launched as the host can: what a user of eager PyTorch sees."""
        for at in range(2):
            call(at)
        self._torch.cuda.synchronize()
        return self._sustained(call, self._burst(call, 2, 0.0)[0])

    def graph(self, call: Callable[[int], Any], count: int = 50) -> Timing:
        """Time in a CUDA graph of `count` calls."""
        cuda = self._torch.cuda
        aside = cuda.Stream()
        with cuda.stream(aside):
            for at in range(3):
                call(at)
        cuda.synchronize()
        recorded = cuda.CUDAGraph()
        with cuda.graph(recorded):
            for at in range(count):
                call(at)
        recorded.replay()
        cuda.synchronize()
        times = [self._burst(lambda _: recorded.replay(), 4, 2e-3)[0] / count for _ in range(BURSTS)]
        return _of(times, 4 * count * BURSTS)

    def host(self, call: Callable[[int], Any], count: int = MOST) -> Timing:
        """Time of the launching thread, while the device has something else to do."""
        for at in range(3):
            call(at)
        times = [self._burst(call, count, 5e-3)[1] for _ in range(BURSTS)]
        return _of(times, count * BURSTS)

    def fixed(self, call: Callable[[int], Any], count: int) -> Timing:
        """Time of bursts of a given length: several processes must call the same number of times."""
        for at in range(3):
            call(at)
        self._torch.cuda.synchronize()
        return _of([self._burst(call, count, 0.0)[0] for _ in range(BURSTS)], count * BURSTS)

    def sustained(self, call: Callable[[int], Any]) -> Timing:
        """Time of calls back to back for `LASTING` seconds, the latter half of them."""
        for at in range(3):
            call(at)
        self._torch.cuda.synchronize()
        estimate = max(self._burst(call, 3, 0.0))
        count = min(MOST_AHEAD, max(1, math.ceil(LASTING / PARTS / max(estimate, 1e-6))))
        times: list[float] = []
        began = time.monotonic()
        last = self._event()
        last.record()
        while len(times) < 2 or time.monotonic() - began < LASTING:
            for at in range(count):
                call(at)
            event = self._event()
            event.record()
            event.synchronize()
            times.append(last.elapsed_time(event) * 1e-3 / count)
            last = event
        settled = times[len(times) // 2 :]
        return Timing(sum(settled) / len(settled), count * len(times), _of(settled, 1).spread)

    def _sustained(self, call: Callable[[int], Any], estimate: float) -> Timing:
        for at in range(math.ceil(WARM / max(estimate, 1e-6))):
            call(at)
        parts = 4
        count = max(1, math.ceil(SUSTAINED / max(estimate, 1e-6) / parts))
        events = [self._event() for _ in range(parts + 1)]
        events[0].record()
        for part, event in enumerate(events[1:]):
            for at in range(count):
                call(part * count + at)
            event.record()
        events[-1].synchronize()
        times = [a.elapsed_time(b) * 1e-3 / count for a, b in pairwise(events)]
        mean = _of(times, parts * count)
        return Timing(sum(times) / parts, mean.repeats, mean.spread)

    def _burst(self, call: Callable[[int], Any], count: int, held: float) -> tuple[float, float]:
        """Seconds of a call on the device, and of its launch on the host."""
        cuda = self._torch.cuda
        start, end = self._event(), self._event()
        if held:
            cuda._sleep(int(held * CYCLES))
        start.record()
        began = time.perf_counter()
        for at in range(count):
            call(at)
        launched = time.perf_counter() - began
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / count, launched / count

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)


def _of(times: list[float], repeats: int) -> Timing:
    middle = statistics.median(times)
    return Timing(middle, repeats, (max(times) - min(times)) / middle if middle else 0.0)

"""Clock and power of the device while it works, as nvidia-smi prints them; it reads and changes nothing."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PERIOD_MS = 100
COMMAND = ("nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-lms", str(PERIOD_MS))
STALE = 1.0


class Sampler:
    """The latest readings, taken by a thread; none where nvidia-smi is not there."""

    def __init__(self) -> None:
        self._readings: list[tuple[float, float, float]] = []
        self._lock = threading.Lock()

    def take(self, line: str) -> None:
        """Keep a line of nvidia-smi's, if it is one of two numbers."""
        with contextlib.suppress(ValueError):
            clock, power = (float(part) for part in line.split(","))
            with self._lock:
                self._readings = [*self._readings[-600:], (time.monotonic(), clock, power)]

    def since(self, began: float) -> dict[str, Any]:
        """Median clock and power since a moment of `time.monotonic`, or the last ones if they are fresh."""
        with self._lock:
            found = [reading for reading in self._readings if reading[0] >= began]
            last = self._readings[-1:]
        if not found:
            found = [reading for reading in last if time.monotonic() - reading[0] < STALE]
        if not found:
            return {}
        clock, power = (statistics.median(reading[at] for reading in found) for at in (1, 2))
        return {"clock_mhz": round(clock), "power_w": round(power)}


@contextlib.contextmanager
def sampling(device: str) -> Iterator[Sampler]:
    """A sampler of one device (its UUID or number), that reads until the block ends."""
    sampler = Sampler()
    command = [*COMMAND, "-i", device]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        yield sampler
        return

    def read() -> None:
        for line in process.stdout or ():
            sampler.take(line)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield sampler
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        reader.join(timeout=2)


def identity(torch: Any) -> str:
    """How nvidia-smi calls PyTorch's first device: by UUID where it is told."""
    uuid = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
    if not uuid or len(uuid) != 36:
        return "0"
    return f"GPU-{uuid}"

"""An event-by-event simulator of pipeline schedules, which knows orders and dependencies and no closed form.

Timelines are drawn from it, and tests hold every closed form of a schedule against it.

A schedule is, for every device, the ordered list of what it runs. A device starts its next item when it is free and
what the item needs is done: a forward pass needs the one of the stage before, a backward pass the one of the stage
after and its own forward pass, weight gradients the backward pass of their stage. Transfers between devices take no
time of a device; what they send comes `delay` later.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Task:
    """One pass of one micro-batch through one stage.

    `kind` is F (forward), D (the whole backward pass), B (its gradients of inputs alone) or W (those of weights).
    `stage` counts from the start of the model; `way` tells apart the two pipelines of a bidirectional schedule.
    """

    kind: str
    micro_batch: int
    stage: int
    way: int = 0


Item = tuple[Task, ...]
"""What a device runs at once: one task, or a forward and a backward pass that overlap."""

Schedule = list[list[Item]]


@dataclass(frozen=True)
class Trace:
    """When each device started and ended, and the most stages' activations that it held at once.

    Attributes:
        starts: of each device.
        ends: of each device.
        busy: seconds for which each device is not idle.
        in_flight: activations of each device.
        begins: when each item of each device started, in the order of the schedule.
    """

    starts: list[float]
    ends: list[float]
    busy: list[float]
    in_flight: list[float]
    begins: list[list[float]]

    @property
    def makespan(self) -> float:
        """From the first start to the last end."""
        return max(self.ends) - min(self.starts)

    @property
    def period(self) -> float:
        """The longest time for which one device is at it: a step, where no barrier separates it from the next."""
        return max(end - start for start, end in zip(self.starts, self.ends, strict=True))


def _one(stage: int) -> float:
    del stage
    return 1


def simulate(
    schedule: Schedule, duration: Callable[[Item], float], delay: float = 0.0, weight: Callable[[int], float] = _one
) -> Trace:
    """Run a schedule.

    Args:
        schedule: what each device runs, in order.
        duration: of an item.
        delay: from the end of a pass on one device until another has what it sends.
        weight: of the activations that a stage keeps of a micro-batch; by default 1 of each.

    Raises:
        ValueError: the devices wait for each other for ever, or a task is listed twice.
    """
    everything = {task for items in schedule for item in items for task in item}
    if len(everything) != sum(len(item) for items in schedule for item in items):
        raise ValueError("a task is listed twice")
    home = {task: device for device, items in enumerate(schedule) for item in items for task in item}
    done: dict[Task, float] = {}
    waiting: dict[Task, set[int]] = {}
    position = [0] * len(schedule)
    begins: list[list[float]] = [[] for _ in schedule]
    ends = [0.0] * len(schedule)
    busy = [0.0] * len(schedule)
    events: list[tuple[float, int]] = []

    def start(device: int, now: float) -> None:
        """Start the device's next item, or note what it waits for."""
        if position[device] == len(schedule[device]):
            return
        item = schedule[device][position[device]]
        missing = next((need for task in item for need in _needs(task, everything) if need not in done), None)
        if missing is not None:
            waiting.setdefault(missing, set()).add(device)
            return
        needs = [need for task in item for need in _needs(task, everything) if home[need] != device]
        now = max([now, *(done[need] + delay for need in needs)])
        time = duration(item)
        busy[device] += time
        begins[device].append(now)
        heapq.heappush(events, (now + time, device))

    for device in range(len(schedule)):
        start(device, 0.0)
    while events:
        now, device = heapq.heappop(events)
        ends[device] = now
        item = schedule[device][position[device]]
        position[device] += 1
        done.update(dict.fromkeys(item, now))
        start(device, now)
        for waiter in sorted({each for task in item for each in waiting.pop(task, ())}):
            start(waiter, now)
    if len(done) != len(everything):
        raise ValueError("the schedule is stuck")
    starts = [each[0] if each else 0.0 for each in begins]
    return Trace(starts, ends, busy, [_peak(items, weight) for items in schedule], begins)


def _needs(task: Task, everything: set[Task]) -> Iterator[Task]:
    kind, batch, stage, way = task.kind, task.micro_batch, task.stage, task.way
    if kind == "F":
        if stage:
            yield Task("F", batch, stage - 1, way)
    elif kind == "W":
        yield Task("B", batch, stage, way)
    else:
        yield Task("F", batch, stage, way)
        after = (Task(each, batch, stage + 1, way) for each in "BD")
        yield from (each for each in after if each in everything)


def _peak(items: list[Item], weight: Callable[[int], float]) -> float:
    """Activations are held from the start of a forward pass until the end of the last task that needs them."""
    held: float = 0  # a count of whole stages stays one
    peak: float = 0
    for item in items:
        held += sum(weight(task.stage) for task in item if task.kind == "F")
        peak = max(peak, held)
        held -= sum(weight(task.stage) for task in item if task.kind in "WD")
    return peak


def by_kind(times: dict[str, float]) -> Callable[[Item], float]:
    """Equal stages: the time of an item by its kinds, of an overlapping pair by both, as in `times["FD"]`."""
    return lambda item: times["".join(task.kind for task in item)]


def gpipe(micro_batches: int, stages: int) -> Schedule:
    """All forward passes, then all backward passes (Huang et al. 2019 section 2)."""
    return [[(Task(kind, k, stage),) for kind in "FD" for k in range(micro_batches)] for stage in range(stages)]


def one_f_one_b(micro_batches: int, stages: int) -> Schedule:
    """Warm-up, one forward and one backward in turn, cool-down (Narayanan et al. 2021 section 2.2.1)."""
    schedule = []
    for stage in range(stages):

        def task(kind: str, k: int, stage: int = stage) -> Task:
            return Task(kind, k, stage)

        schedule.append(_alternate(micro_batches, min(micro_batches, stages - stage - 1), task))
    return schedule


def _alternate(count: int, ahead: int, task: Callable[[str, int], Task]) -> list[Item]:
    items: list[Item] = [(task("F", k),) for k in range(ahead)]
    for k in range(count):
        if k + ahead < count:
            items.append((task("F", k + ahead),))
        items.append((task("D", k),))
    return items


def interleaved(micro_batches: int, stages: int, chunks: int) -> Schedule:
    """Megatron-LM's interleaved 1F1B: p micro-batches through a chunk, then through the next (section 2.2.2)."""
    count = micro_batches * chunks

    def place(step: int, backward: bool) -> tuple[int, int]:
        """Micro-batch and chunk of the step-th pass of a device, either way."""
        group, inside = divmod(step, stages * chunks)
        chunk = inside // stages
        return group * stages + inside % stages, chunks - 1 - chunk if backward else chunk

    schedule = []
    for device in range(stages):
        ahead = min(count, 2 * (stages - device - 1) + (chunks - 1) * stages)

        def task(kind: str, step: int, device: int = device) -> Task:
            batch, chunk = place(step, kind == "D")
            return Task(kind, batch, chunk * stages + device)

        schedule.append(_alternate(count, count if micro_batches == stages else ahead, task))
    return schedule


def zero_bubble_h1(micro_batches: int, stages: int) -> Schedule:
    """1F1B whose weight gradients wait, on stage i for i micro-batches (Qi et al. 2024 section 2.1)."""
    order = range(stages)
    return split(micro_batches, [stages - stage for stage in order], list(order))


def zero_bubble_h2(micro_batches: int, stages: int) -> Schedule:
    """Twice as many forward passes ahead, and weight gradients that wait twice as long (section 2.2)."""
    order = range(stages)
    return split(micro_batches, [2 * (stages - stage) - 1 for stage in order], [2 * stage for stage in order])


def split(count: int, ahead: list[int], late: list[int]) -> Schedule:
    """On each stage `ahead` forward passes, then in turn B, the W of `late` micro-batches before, and F."""
    schedule = []
    for stage, (first, delay) in enumerate(zip(ahead, late, strict=True)):
        items: list[Item] = [(Task("F", k, stage),) for k in range(min(count, first))]
        for k in range(count + delay):
            if k < count:
                items.append((Task("B", k, stage),))
            if k >= delay:
                items.append((Task("W", k - delay, stage),))
            if k + first < count:
                items.append((Task("F", k + first, stage),))
        schedule.append(items)
    return schedule


def dual_pipe(micro_batches: int, stages: int) -> Schedule:
    """DualPipe's eight steps (DeepSeek-V3 report section 3.2.1, figure 5), half of the micro-batches from either end.

    `micro_batches` counts both ways. Device i runs stage i of the one way and stage p - 1 - i of the other.
    """
    half, count = stages // 2, micro_batches // 2
    schedule = []
    for device in range(stages):
        near = min(device, stages - 1 - device)
        line = _Both(device, stages)
        for _ in range(2 * (half - near - 1)):
            line.add(("F", 0))
        for _ in range(near + 1):
            line.add(("F", 0))
            line.add(("F", 1))
        for _ in range(half - near - 1):
            line.add(("B", 1))
            line.weights()
            line.add(("F", 1))
        for turn in range(count - stages + near + 1):
            if turn == 0 and near == half - 1:
                line.add(("F", 0))
                line.add(("D", 1))
            else:
                line.add(("F", 0), ("D", 1))
            line.add(("F", 1), ("D", 0))
        for _ in range(half - near - 1):
            line.add(("D", 1))
            line.add(("F", 1), ("D", 0))
        late = near + 1
        for turn in range(2 * (near + 1)):
            line.add(("B" if turn >= late else "D", 1 - turn % 2))
        for _ in range(half - near - 1):
            line.weights()
            line.add(("B", 0))
        for _ in range(near + 1):
            line.weights()
        schedule.append(line.items)
    return schedule


class _Both:
    """A device's list under DualPipe, written as seen from its own end: phase 0 is the way that starts nearer."""

    def __init__(self, device: int, stages: int) -> None:
        self.device, self.stages = device, stages
        self.items: list[Item] = []
        self.next: dict[tuple[str, int], int] = {}
        self.waiting: list[Task] = []

    def add(self, *passes: tuple[str, int]) -> None:
        """One pass, or a forward and a backward pass at once."""
        self.items.append(tuple(self._task(kind, phase) for kind, phase in passes))

    def weights(self) -> None:
        """The weight gradients that have waited longest."""
        self.items.append((self.waiting.pop(0),))

    def _task(self, kind: str, phase: int) -> Task:
        way = phase ^ (self.device >= self.stages // 2)
        direction = "F" if kind == "F" else "back"
        batch = self.next.get((direction, way), 0)
        self.next[direction, way] = batch + 1
        stage = self.stages - 1 - self.device if way else self.device
        if kind == "B":
            self.waiting.append(Task("W", batch, stage, way))
        return Task(kind, batch, stage, way)

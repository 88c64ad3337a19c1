"""A training step as a timeline: its schedule is run event by event, with the times that each stage's passes have.

The step ends when the closed form says: where the run of the schedule ends earlier, since the closed form is a bound
of it, all stages wait for the rest; where it ends later, passes are drawn shorter by the factor `drawn_scale`. Both are
told beside the slices (`otherData`).
"""

from __future__ import annotations

import functools
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from ..common.errors import InputError
from ..formulas.language.named_calls import name_calls
from ..formulas.language.symbols import vpp
from ..operations.schedule import Ends, Idle, Overlap, Sequence, part
from ..train.build import step_tree
from ..train.memory.device_share import dealing_of
from ..train.step.host_offload import gradients_leave_at_once
from ..train.step.low_precision import Lowered
from ..train.step.passes import of_weights, pair_passes
from ..train.step.step import BUBBLE, PLAIN, TrainingStep
from . import simulator as sim
from .chrome import Event, Timeline
from .slices import COMPUTE, NANO, Drawn, Template, leaves, template
from .values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..operations.schedule import Node
    from ..plans.structure import Structure
    from ..runs.training_run import Run

MOST_PASSES = 2_000_000
"""Passes of a timeline."""
MOST_LAYERED = 250_000
"""Slices up to which layers are drawn one by one."""
MOST_SLICES = 2_000_000
"""Slices up to which operations are drawn, else passes alone."""
KINDS = {"F": "forward", "D": "backward", "B": "backward of inputs", "W": "backward of weights"}
NO_BARRIER = ("zb-h2", "zero-bubble-2p")
"""Schedules whose stages begin the next step each for itself: a step is as long as one stage is at it."""


def training_timeline(run: Run) -> Timeline:
    """The timeline of a training step.

    Raises:
        InputError: symbols are free, or there are more passes than a file should have.
    """
    return _Step(run).timeline()


OVERHEADS = ("host/overhead", "waits/stragglers")
"""Paths of what follows a step."""


def reduced_once(structure: Structure) -> tuple[str, ...]:
    """Beginnings of the paths of what gradients pass beside the last backward pass alone, and not beside every."""
    once = {"gradients/": structure.zero < 2, "offload/gradients": not gradients_leave_at_once(structure)}
    return tuple(path for path, alone in once.items() if alone)


class Framed(NamedTuple):
    """What the tree of a step has around the passes of its pipeline.

    Attributes:
        first: the first forward pass with what runs beside it once a step, if anything may.
        last: likewise the last backward pass, or all passes where they are taken apart.
        closing: what follows the pipeline.
    """

    first: Node | None
    last: Node | None
    closing: tuple[Node, ...]

    @classmethod
    def of(cls, step: TrainingStep, structure: Structure) -> Framed:
        """The parts of a step's tree."""
        tree = step.tree()
        while isinstance(tree, Sequence) and getattr(tree.children[-1], "path", "") in OVERHEADS:
            tree = tree.children[0]
        assert isinstance(tree, Sequence)
        children = tree.children
        if structure.splits:
            return cls(None, children[0], tuple(each for each in children[1:] if not isinstance(each, Ends)))
        paths = [each.path if isinstance(each, Idle) else "" for each in children]
        bubble = paths.index(BUBBLE)
        # Sharded gradients are reduced, and sharded parameters gathered, beside every pass.
        first = children[0] if structure.zero in (1, 2) else None
        last = children[bubble - 1] if structure.zero < 2 or "optimizer" in structure.offload else None
        return cls(first, last, children[bubble + 1 :])


class _Step:
    def __init__(self, run: Run) -> None:
        self.total = run.value("time")
        self.run, self.structure, self.plan = run, run.structure, run.plan
        with name_calls():
            named = step_tree(run.structure)
        self.values = Values(run.compiled, {name: value for name, (value, _) in run.bound.items()}, [named])
        self.step = TrainingStep(run.structure)
        lowered = Lowered(run.structure)
        self.lowered: Callable[[Any], Any] = (lambda node: node) if run.structure.products == "half" else lowered
        self.p, self.v = self.plan.pp, self.plan.vpp if self.structure.schedule == "interleaved" else 1
        self.m = round(self.values.number(self.step.micro_batches))
        self.templates: dict[Any, Template] = {}
        self.scale, self.detail = 1.0, "layers"

    # --- passes

    def passes_of(self, stage: int) -> tuple[Node, Node]:
        """Both passes through the layers of a device, or of a stage of one way of a pipeline that has two."""
        if not self.structure.told_apart:
            return self.step.forward, self.step.backward
        if stage not in self._passes:
            dealing = dealing_of(self.structure).one_way if self.structure.splits else dealing_of(self.structure)
            number = sympy.Integer(stage + 1)
            held = functools.partial(dealing.on_stage, number=number)
            if self.chunked:
                held = functools.partial(dealing.on_chunk, place=stage, shape=(self.p, self.v))
            self._passes[stage] = self.step.passes_of(held, self.step.sends / vpp)
        return self._passes[stage]

    @property
    def chunked(self) -> bool:
        """Whether the virtual stages of a device differ."""
        return self.v > 1 and self.structure.told_apart

    def _place(self, stage: int) -> int:
        """What tells the layers of a stage: its place in the model, or its device."""
        return stage if self.chunked else stage % self.p

    @cached_property
    def _passes(self) -> dict[int, tuple[Node, Node]]:
        return {}

    @cached_property
    def ends(self) -> dict[str, tuple[Node, Node]]:
        return self.step.end_passes()

    def nodes_of(self, item: sim.Item) -> list[tuple[Node, float]]:
        """What a device runs, in order, and which part of it."""
        last = self.p * self.v - 1
        layers = [(self._layers_of(item), 1.0 if self.chunked else 1 / self.v)]
        modules = last - self.p + self.structure.module_stage if "modules" in self.ends else -1
        before: list[tuple[Node, float]] = []
        after: list[tuple[Node, float]] = []
        for task in item:
            backward = task.kind != "F"
            if task.stage == 0:
                (after if backward else before).append((self._end("first", task.kind), 1.0))
            if task.stage == modules:
                (before if backward else after).append((self._end("modules", task.kind), 1.0))
            if task.stage == last:
                (before if backward else after).append((self._end("last", task.kind), 1.0))
        return [(self.lowered(node), share) for node, share in [*before, *layers, *after]]

    def _end(self, end: str, kind: str) -> Node:
        forward, backward = self.ends[end]
        return self._kept(forward, backward, kind)

    def _layers_of(self, item: sim.Item) -> Node:
        stages = [self._place(task.stage) for task in item]
        if len(item) == 1:
            return self._kept(*self.passes_of(stages[0]), item[0].kind)
        forward, backward = stages if item[0].kind == "F" else stages[::-1]
        key = "pair", forward, backward
        if key not in self._kept_nodes:
            self._kept_nodes[key] = pair_passes(self.passes_of(forward)[0], self.passes_of(backward)[1])
        return self._kept_nodes[key]

    @cached_property
    def _kept_nodes(self) -> dict[Any, Node]:
        return {}

    def _kept(self, forward: Node, backward: Node, kind: str) -> Node:
        if kind in "FD":
            return forward if kind == "F" else backward
        key = id(backward), kind
        if key not in self._kept_nodes:
            self._kept_nodes[key] = part(backward, of_weights if kind == "W" else lambda op: not of_weights(op))
        return self._kept_nodes[key]

    def template_of(self, item: sim.Item) -> Template:
        """What is drawn for an item."""
        key = self._key(item)
        if key not in self.templates:
            drawn = Drawn(self.values, layers=self.detail == "layers")
            for node, share in self.nodes_of(item):
                drawn.add(node, share)
            name = " and ".join(KINDS[task.kind] for task in item)
            self.templates[key] = template(name, drawn, self.scale)
        return self.templates[key]

    def _key(self, item: sim.Item) -> Any:
        """Items of one key are drawn alike."""
        equal = not self.structure.told_apart
        last = self.p * self.v - 1
        return tuple(
            (task.kind, task.stage == 0, task.stage == last, 0 if equal else self._place(task.stage)) for task in item
        )

    # --- the schedule

    @cached_property
    def schedule(self) -> sim.Schedule:
        """The order of every device."""
        m, p, kind = self.m, self.p, self.structure.schedule
        if (2 + self.structure.splits) * m * p * self.v > MOST_PASSES:
            raise InputError(
                f"timeline: found {m:,} micro-batches on {p} stages, expected {MOST_PASSES:,} passes at most"
            )
        if kind == "interleaved":
            return sim.interleaved(m, p, self.v)
        if kind == "zero-bubble-2p":
            return self._of_two_p()
        orders = {
            "gpipe": sim.gpipe,
            "1f1b": sim.one_f_one_b,
            "zero-bubble": sim.zero_bubble_h1,
            "zb-h2": sim.zero_bubble_h2,
            "dualpipe": sim.dual_pipe,
        }
        return orders[kind](m, p)

    def _of_two_p(self) -> sim.Schedule:
        """Of two orders with 2 p micro-batches in flight the one that takes less time."""
        m, p = self.m, self.p
        limit = 2 * p
        steps = [1 + (limit - 1) * (p - 1 - stage) // max(1, p - 1) for stage in range(p)]
        steep = [max(limit - 2 * stage, p - stage) for stage in range(p)]
        found = [sim.split(m, ahead, [limit - each for each in ahead]) for ahead in (steps, steep)]
        return min(found, key=lambda each: sim.simulate(each, self.duration).period)

    def duration(self, item: sim.Item) -> float:
        """Whole nanoseconds."""
        return float(self.template_of(item).duration)

    def simulate(self) -> sim.Trace:
        """The run of the schedule, of which the number of slices decides what is drawn."""
        slices = sum(len(self.template_of(item).pieces) for items in self.schedule for item in items)
        if slices > MOST_LAYERED:
            self.detail = "operations"
            self.templates.clear()
            slices = sum(len(self.template_of(item).pieces) for items in self.schedule for item in items)
            self.detail = "passes" if slices > MOST_SLICES else self.detail
        return self._traced()

    def _traced(self) -> sim.Trace:
        """The run of the schedule, with transfers beside passes."""
        if self.structure.schedule not in PLAIN or not self.plan.overlap_pp:
            return sim.simulate(self.schedule, self.duration)
        sent = self.values.time(self.lowered(self.step.transfer("forward"))) * self.scale * NANO
        return sim.simulate(self.schedule, self.duration, math.floor(sent * self.plan.overlap_pp))

    # --- the step

    def timeline(self) -> Timeline:
        """All of it."""
        closing = Drawn(self.values, layers=False)
        for node in self.framed.closing:
            closing.add(node)
        total, rest = self.total, self._overheads()
        pipeline = total - closing.end - sum(rest.values())
        gathers, delay = self._beside(self.framed.first, ("parameters/",))
        reductions, tail = self._beside(self.framed.last, reduced_once(self.structure))
        traced = self.simulate()
        taken = self._span(traced) + (delay + tail) * NANO
        if taken > pipeline * NANO * (1 + 1e-9):
            self.scale = pipeline * NANO / taken
            self.templates.clear()
            traced = self._traced()
        about = {
            "what": f"a training step as symperf predicts it: {self.run!r}",
            "step_s": total,
            "schedule": self.structure.schedule,
            "detail": self.detail,
            "drawn_scale": self.scale,
            "waited_for_closed_form_s": max(0.0, pipeline - taken / NANO),
        }
        names = tuple(f"stage {stage + 1} of {self.p}" for stage in range(self.p))
        before = [node for node, _ in gathers], delay
        events = self._events(traced, before, (reductions, tail), closing, rest, total)
        return Timeline(self.values, names, about, events)

    def _span(self, traced: sim.Trace) -> float:
        return traced.period if self.structure.schedule in NO_BARRIER else traced.makespan

    def _overheads(self) -> dict[str, float]:
        """The fixed time of a step and the wait for the slowest device, where a run states them."""
        known = {term.path for term in self.run.compiled.terms}
        return {path: self.run.value(path) for path in OVERHEADS if path in known}

    def _beside(self, node: Node | None, paths: tuple[str, ...]) -> tuple[list[tuple[Node, float]], float]:
        """What runs beside a pass once a step, the innermost first, each with where it ends behind the pass.

        Args:
            node: the pass with what is beside it; nothing where no pass has any.
            paths: what the operations that run beside it once begin with.
        """
        found: list[tuple[Node, float]] = []
        whole = node
        while isinstance(whole, Overlap) and next(iter(leaves(whole.transfer))).path.startswith(paths):
            found.append((whole.transfer, self.values.time(whole)))
            whole = whole.work
        if whole is None or not found:
            return [], 0.0
        alone = self.values.time(whole)
        ends = [(transfer, time - alone) for transfer, time in found[::-1]]
        return ends, max(longer for _, longer in ends)

    @cached_property
    def framed(self) -> Framed:
        """The parts of the step around its pipeline."""
        return Framed.of(self.step, self.structure)

    # --- the events

    def _events(
        self,
        traced: sim.Trace,
        before: tuple[list[Node], float],
        behind: tuple[list[tuple[Node, float]], float],
        closing: Drawn,
        rest: dict[str, float],
        total: float,
    ) -> Iterator[Event]:
        """Every slice, stage by stage."""
        last = template("update of the weights", closing)
        waits = {path: nano for path, seconds in rest.items() if (nano := int(seconds * NANO))}
        whole = round(total * NANO)
        pipeline = whole - last.duration - sum(waits.values())
        delay = math.floor(before[1] * self.scale * NANO)
        gathers = [self._alone(node) for node in before[0]]
        reductions = [(self._alone(node), math.floor(longer * self.scale * NANO)) for node, longer in behind[0]]
        for stage, items in enumerate(self.schedule):
            start = int(traced.starts[stage]) if self.structure.schedule in NO_BARRIER else 0
            at = start
            yield Event(stage, start, whole, "step", "step", {"seconds": total})
            for each in gathers:
                yield Event(stage, start, each.duration, "", "", {}, each)
            for item, begin in zip(items, traced.begins[stage], strict=True):
                drawn, now = self.template_of(item), int(begin) + delay
                yield from _bubble(stage, at, now, "before the first pass" if at == start else "between passes")
                yield Event(stage, now, drawn.duration, COMPUTE, *self._told(item, drawn), self._inside(drawn))
                at = now + drawn.duration
            for each, longer in reductions:
                yield Event(stage, max(start, at + longer - each.duration), each.duration, "", "", {}, each)
            yield from _bubble(stage, at, start + pipeline, "until all stages are done")
            yield Event(stage, start + pipeline, last.duration, COMPUTE, last.name, {}, last)
            at = start + pipeline + last.duration
            for path, duration in waits.items():
                yield Event(stage, at, duration, COMPUTE, path, {})
                at += duration

    def _alone(self, transfer: Node) -> Template:
        """What runs beside passes."""
        return template("", Drawn(self.values, layers=False).add(transfer), self.scale)

    def _inside(self, drawn: Template) -> Template | None:
        return None if self.detail == "passes" else drawn

    def _told(self, item: sim.Item, drawn: Template) -> tuple[str, dict[str, Any]]:
        """The name of an item, and what is told of it."""
        numbers = " and ".join(str(task.micro_batch + 1) for task in item)
        args: dict[str, Any] = {"micro_batch": [task.micro_batch + 1 for task in item]}
        if self.v > 1:
            args["chunk"] = item[0].stage // self.p + 1
        if self.structure.schedule == "dualpipe":
            args["way"] = [task.way + 1 for task in item]
        return f"{drawn.name} {numbers}", args


def _bubble(stage: int, start: int, end: int, why: str) -> Iterator[Event]:
    if end > start:
        yield Event(stage, start, end - start, COMPUTE, "bubble", {"idle": why})

"""An inference as a timeline: its prefill, and every decode step of the generation.

Operations of a decode step whose time grows with the context have that of the mean step in each. Every stage is drawn
with the mean number of layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.language.named_calls import name_calls
from ..infer.build import trees
from ..infer.passes import micro_batches
from ..operations.schedule import StepSeries
from .chrome import Event, Timeline
from .slices import COMPUTE, NANO
from .stages import Drawing, Phase
from .values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..runs.inference_run import InferenceRun

MOST_LAYERED = 250_000
"""Slices up to which layers are drawn one by one."""
MOST_SLICES = 2_000_000
"""Slices up to which operations are drawn in each step, else in the first alone."""


def inference_timeline(run: InferenceRun) -> Timeline:
    """The timeline of an inference.

    Raises:
        InputError: symbols are free.
    """
    total, p = run.value("time"), run.plan.pp
    with name_calls():
        named = list(trees(run.structure).values())
    inputs = {name: value for name, (value, _) in run.bound.items()}
    steps = run.work.generate - 1 if run.generates else 0
    values = Values(run.compiled, inputs, named, max(1, steps))
    nodes, m = trees(run.structure), round(values.number(micro_batches()))
    encoder = 0.0 if run.encoding is None else run.encoding.time_s
    prefill, each = run.value("prefill"), run.value("decode") / max(1, steps)

    def drawings(*, layers: bool) -> list[Drawing]:
        first = Phase.of(nodes["prefill"])
        found = [Drawing(values, first, "prefill", (m, p), prefill, recurs=False, layers=layers)]
        if steps:
            assert isinstance(nodes["decode"], StepSeries)
            step = Phase.of(nodes["decode"].child)
            found.append(Drawing(values, step, "decode", (m, p), each, recurs=True, layers=layers))
        return found

    drawn, detail = drawings(layers=True), "layers"
    if _slices(drawn, steps) > MOST_LAYERED:
        drawn, detail = drawings(layers=False), "operations"
    inside = _slices(drawn, steps) <= MOST_SLICES
    about = {
        "what": f"an inference as symperf predicts it: {run!r}",
        "time_s": total,
        "prefill_s": prefill,
        "decode_s": run.value("decode"),
        "detail": detail if inside else "operations of the first step",
    }
    names = tuple(f"stage {stage + 1} of {p}" for stage in range(p))
    return Timeline(values, names, about, _events(drawn, (encoder, prefill, each, total), steps, inside=inside))


def _slices(drawn: list[Drawing], steps: int) -> int:
    return drawn[0].slices + steps * sum(each.slices for each in drawn[1:])


def _events(
    drawn: list[Drawing], times: tuple[float, float, float, float], steps: int, *, inside: bool
) -> Iterator[Event]:
    encoder, prefill, each, total = times
    for stage in range(drawn[0].p):
        yield Event(stage, 0, round(total * NANO), "step", "inference", {"seconds": total})
    args: dict[str, Any] = {}
    if encoder:
        yield Event(0, 0, int(encoder * NANO), COMPUTE, "encoder", args)
    yield from drawn[0].events(int(encoder * NANO), args)
    for step in range(steps):
        begin = int((encoder + prefill + step * each) * NANO)
        yield from drawn[1].events(begin, {"step": step + 1}, inside=inside or not step)

"""Seconds of the passes of a pipeline's stages, with which a page runs a schedule event by event, as timelines do."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..common.artefacts import load_or_make_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..codegen.program import Program
    from ..operations.schedule import Node
    from ..plans.structure import Structure

DRAWN = ("gpipe", "1f1b", "interleaved", "zero-bubble", "zb-h2")
"""Schedules that a page draws."""


def draws(structure: Structure) -> bool:
    """Whether a page draws the schedule of a structure: all virtual stages are alike, and no modules have one alone."""
    apart = structure.schedule == "interleaved" and structure.told_apart
    return structure.schedule in DRAWN and not apart and not structure.module_stage


def pass_program(structure: Structure) -> Program:
    """The program of the passes of stage `stage_number`, whose inputs are the seconds of operations, by their paths.

    Outputs are `layers/F` (forward), `layers/D` (the whole backward pass) or, where a schedule takes it apart,
    `layers/B` and `layers/W` (gradients of inputs, and of weights); likewise of `first` and `last`, what a stage has
    beside its layers. `closing` follows the pipeline, `before` and `behind` are how much longer the first forward and
    the last backward pass take by what runs beside them once a step, and `sent` is a transfer that passes wait for.
    """

    def make() -> Program:
        from ..codegen.lower import lower

        return lower([], _forms(structure), share=True)

    return load_or_make_program("explored passes", structure.key(), make)


def _forms(structure: Structure) -> dict[str, Any]:
    from ..formulas.language.symbols import overlap_pp, stage_number, strip_units, vpp
    from ..train.memory.device_share import dealing_of
    from ..train.step.low_precision import Lowered
    from ..train.step.step import PLAIN, TrainingStep

    step = TrainingStep(structure)
    lowered: Callable[[Any], Any] = (lambda node: node) if structure.products == "half" else Lowered(structure)
    passes = step.forward, step.backward
    if structure.told_apart:
        held = functools.partial(dealing_of(structure).on_stage, number=stage_number)
        passes = step.passes_of(held, step.sends / vpp)
    kinds = "FBW" if structure.splits else "FD"
    found = {
        f"{name}/{kind}": _seconds(lowered(node))
        for name, both in {"layers": passes, **step.end_passes()}.items()
        for kind, node in zip(kinds, _taken_apart(both, kinds), strict=True)
        if node is not None
    }
    found |= dict(_around(structure, step))
    if structure.schedule in PLAIN:
        found["sent"] = _seconds(lowered(step.transfer("forward"))) * overlap_pp
    return {name: strip_units(form) for name, form in found.items()}


def _taken_apart(both: tuple[Node, Node], kinds: str) -> tuple[Node | None, ...]:
    from ..operations.schedule import part
    from ..train.step.passes import of_weights

    if kinds == "FD":
        return both
    forward, backward = both
    return forward, part(backward, lambda op: not of_weights(op)), part(backward, of_weights)


def _around(structure: Structure, step: Any) -> Iterator[tuple[str, Any]]:
    """What is around the passes of a pipeline."""
    from ..timeline.training import Framed, reduced_once

    framed = Framed.of(step, structure)
    yield "closing", sum((_seconds(node) for node in framed.closing), start=0)
    yield "before", _longer(framed.first, ("parameters/",))
    yield "behind", _longer(framed.last, reduced_once(structure))


def _longer(node: Node | None, beside: tuple[str, ...]) -> Any:
    """Seconds for which a pass with what runs beside it once a step takes longer than alone."""
    from ..operations.schedule import Overlap
    from ..timeline.slices import leaves

    inner = node
    while isinstance(inner, Overlap) and next(iter(leaves(inner.transfer))).path.startswith(beside):
        inner = inner.work
    return 0 if node is None or inner is None or inner is node else _seconds(node) - _seconds(inner)


def _seconds(node: Node) -> Any:
    import sympy

    from ..operations.schedule import time_of

    return time_of(node, lambda leaf: sympy.Symbol(leaf.path, nonnegative=True))

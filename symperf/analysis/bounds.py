"""Bounds of the time from both sides: everything at once, and one thing after another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import arrays, floats, run
from ..pictures.style import EDGE, REST, colour_of
from .answers import Answer, AnswerTable
from .attribution import least
from .measures import spell
from .solution import is_higher_better
from .subject import Subject, subject_of
from .wording import noun, sentence_case

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun

OVERLAP = "overlap_"
"""How the name of a fraction that lets transfers run beside work begins."""

FAST = 2.0**60
"""A factor on rates that stands for no limit."""
RATES = ("_bandwidth", "_rate", "_latency")
"""How the names of what a time depends on end; of an energy, its resources are no rates."""

RIDGE, IN_TURN = "ridge_efficiency", 0.5
"""What work and traffic of a product attain where they are equally long, and its value where they run in turn."""


@dataclass(frozen=True)
class Bounds(Answer):
    """`overlapped <= time <= serial`.

    Attributes:
        overlapped: the longest that any one resource alone would take, the others infinitely fast.
        by_resource: how long each would take alone.
        time: the time itself.
        serial: the time if nothing ran beside anything else: no overlap of transfers, and the memory levels and network
            tiers of one operation in turn.
        thing: how a sentence names what takes the time.
    """

    overlapped: float
    by_resource: dict[str, float]
    time: float
    serial: float
    thing: str = "the run"

    @property
    def sentence(self) -> str:
        """The time between its bounds."""
        longest = max(self.by_resource, key=lambda name: self.by_resource[name], default="nothing")
        low, now, high = (spell("time", value) for value in (self.overlapped, self.time, self.serial))
        return (
            f"{sentence_case(self.thing)} takes {now}: at least {low} ({longest} alone) with everything at once, "
            f"at most {high} with one thing after another."
        )

    def tables(self) -> list[AnswerTable]:
        """How long each resource would take alone."""
        ordered = sorted(self.by_resource.items(), key=lambda item: -item[1])
        rows = tuple((name, spell("time", value), f"{100 * value / self.time:.1f} %") for name, value in ordered)
        return [AnswerTable("each resource alone, all others without limit", ("resource", "time", "of now"), rows)]

    def draw(self, axes: Any) -> None:
        """Bars of each resource alone, of the time and of one thing after another."""
        bars = {**self.by_resource, "now": self.time, "one after another": self.serial}
        colours = [REST if name in ("now", "one after another") else colour_of(name, k) for k, name in enumerate(bars)]
        axes.barh(range(len(bars)), list(bars.values()), 0.7, color=colours, **EDGE)
        axes.set_yticks(range(len(bars)), [name.replace("_", " ") for name in bars])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("time (s)")
        axes.set_title(self.sentence)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "overlapped": self.overlapped,
            "by_resource": self.by_resource,
            "time": self.time,
            "serial": self.serial,
        }


def bounds(of_run: BaseRun) -> Bounds:
    """The time between perfect overlap and none.

    The time falls with every rate and rises with every latency, so freeing all resources but one bounds it from below.
    It rises with each operation's levels, and falls with each overlap fraction, so sums in place of maxima over
    different resources, and fractions of zero, bound it from above.

    Raises:
        InputError: the run has free symbols.
    """
    subject = subject_of(of_run, "time", "bounds")
    time = float(run(subject.program, subject.values, floats())[subject.position])
    alone = {name: min(each, time) for name, each in _alone(subject).items()}  # greater is equal but for rounding
    return Bounds(max(alone.values(), default=time), alone, time, max(serial(subject), time), noun(of_run, "time"))


def bounds_of(subject: Subject) -> tuple[float, float] | None:
    """A quantity with everything at once and with one thing after another, the lower first.

    Nothing where the quantity knows of no resource: bytes, counts, and joules, which no overlap changes.
    """
    if not subject.names or not any(name.endswith(RATES) for name in subject.resources):
        return None
    now = float(run(subject.program, subject.values, floats())[subject.position])
    in_turn, alone = serial(subject), [each for each in _nearly_alone(subject) if math.isfinite(each)]
    if is_higher_better(subject.output):
        # A rate in the definition of a utilisation takes it to nothing: such a limit bounds no overlap.
        return min(in_turn, now), min((each for each in alone if each >= now), default=now)
    return min(max(alone, default=now), now), max(in_turn, now)


def _nearly_alone(subject: Subject) -> list[float]:
    """`_alone` at once and to rounding: rates so high that what they do takes no time beside the rest."""
    factors = [
        {name: 1.0 if owner == each else FAST for name, owner in subject.resources.items()} for each in subject.names
    ]
    inputs: dict[str, Any] = dict(subject.values)
    for name in subject.resources:
        inputs[name] = subject.values[name] * np.array([each[name] for each in factors]) ** -subject.degree(name)
    with np.errstate(all="ignore"):
        found = run(subject.program, inputs, arrays())[subject.position]
    return [float(each) for each in np.broadcast_to(found, (len(factors),))]


def _alone(subject: Subject) -> dict[str, float]:
    """The output with all resources but one infinitely fast."""
    return {
        resource: least(subject, {n: -subject.degree(n) for n, owner in subject.resources.items() if owner != resource})
        for resource in subject.names
    }


def serial(subject: Subject) -> float:
    """The output with sums in place of maxima over different resources, and no overlap."""
    inputs = subject.values | {name: 0.0 for name in subject.values if name.startswith(OVERLAP)}
    if RIDGE in inputs:
        inputs[RIDGE] = IN_TURN
    arithmetic = floats()
    values: list[Any] = []
    uses: list[frozenset[str]] = []
    for operation, *operands in subject.program.instructions:
        if operation in ("input", "constant"):
            name = operands[0]
            values.append(arithmetic.number(inputs[name] if operation == "input" else name))
            uses.append(frozenset([subject.resources[name]]) if name in subject.resources else frozenset())
            continue
        args = [values[operand] for operand in operands]
        used = [uses[operand] for operand in operands]
        apart = operation == "max" and not used[0] <= used[1] and not used[1] <= used[0]
        values.append(args[0] + args[1] if apart else arithmetic.forward[operation](*args))
        uses.append(frozenset().union(*used))
    return float(values[subject.position])

"""Bounds of the time from both sides: everything at once, and one thing after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import floats, run
from .attribution import least
from .subject import Subject, subject_of

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun

OVERLAP = "overlap_"
"""How the name of a fraction that lets transfers run beside work begins."""

RIDGE, IN_TURN = "ridge_efficiency", 0.5
"""What work and traffic of a product attain where they are equally long, and its value where they run in turn."""


@dataclass(frozen=True)
class Bounds:
    """`overlapped <= time <= serial`.

    Attributes:
        overlapped: the longest that any one resource alone would take, the others infinitely fast.
        by_resource: how long each would take alone.
        time: the time itself.
        serial: the time if nothing ran beside anything else: no overlap of transfers, and the memory levels and network
            tiers of one operation in turn.
    """

    overlapped: float
    by_resource: dict[str, float]
    time: float
    serial: float

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
    values = run(subject.program, subject.values, floats())
    time = float(values[subject.position])
    alone = {}
    for resource in subject.names:
        others = {name: -subject.degree(name) for name, owner in subject.resources.items() if owner != resource}
        alone[resource] = min(least(subject, others), time)  # equal but for rounding where it is greater
    return Bounds(max(alone.values(), default=time), alone, time, max(serial(subject), time))


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

"""Which resources a time is due to, by Euler's theorem over latencies and reciprocal rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..codegen.interpret import adjoints, floats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program


class Priced(Protocol):
    """A program of times, and the resources of its inputs."""

    @property
    def program(self) -> Program:
        """The program."""
        ...

    @property
    def resources(self) -> Mapping[str, str]:
        """The resource of each input that is a rate or a latency."""
        ...


def resource_shares(priced: Priced, values: list[Any], position: int) -> dict[str, float]:
    """The share of each resource in the time at a position of a program; nothing of a time that is 0.

    Args:
        priced: the program.
        values: of its instructions.
        position: of the time.
    """
    program, total = priced.program, values[position]
    found: dict[str, float] = {}
    if total == 0:
        return found
    slopes = adjoints(program, values, position, floats())
    for name, resource in priced.resources.items():
        at = program.inputs[name]
        if at in slopes:
            sign = 1 if "_latency" in name else -1
            found[resource] = found.get(resource, 0.0) + sign * slopes[at] * values[at] / total
    return found


def bound_of(shares: Mapping[str, float]) -> str | None:
    """The resource with the largest share; None where there is none."""
    largest = max(shares, key=lambda name: shares[name], default=None)
    return largest if largest is not None and shares[largest] > 0 else None

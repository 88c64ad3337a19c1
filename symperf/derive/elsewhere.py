"""A derivation at other values of its symbols: whether its conditions hold there, and what its lines give."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import arrays, run
from ..codegen.lower import lower
from ..common.errors import InputError, nearest, quote
from ..formulas.language.atoms import ceil_div
from .forms import time_in
from .source import definitions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from .derivation import Derivation
    from .regime import Choice

TIE = 1e-13
"""What differs by less than this, relatively, is equal: branches that tie, and numbers to rounding."""
EDGE = 1e-12
"""A quotient that is as near as this to a whole number, and none, may be rounded up to either of two."""


class Elsewhere:
    """Evaluates a derivation's conditions and lines at any values, from closed forms in which nothing is replaced.

    Args:
        derivation: a closed form in its regime.
    """

    def __init__(self, derivation: Derivation) -> None:
        self.derivation = derivation
        self.defaults = derivation.values

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """Every choice of the conditions, once."""
        return tuple(dict.fromkeys(c for condition in self.derivation.conditions for c in condition.choices))

    @cached_property
    def _program(self) -> Program:
        outputs: dict[str, Any] = {"lines": lines_of(self.derivation)}
        for k, choice in enumerate(self.choices):
            outputs |= {f"whole {k}": choice.node, f"active {k}": choice.active}
            if isinstance(choice.node, ceil_div):
                amount, size = choice.node.args
                outputs[f"quotient {k}"] = amount / size
        return lower(definitions_of(self.derivation), outputs)

    def at(self, values: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """The lines' sum, and whether each of `choices` holds.

        Args:
            values: numbers or arrays by the names of symbols; what is missing has the run's value.
        """
        import numpy as np

        program = self._program
        inputs = {name: values.get(name, self.defaults[name]) for name in program.inputs}
        with np.errstate(all="ignore"):  # a quotient by zero that a minimum drops
            found = run(program, inputs, arrays())
            at = {name: found[position] for name, position in program.outputs.items()}
            holds = []
            for k, choice in enumerate(self.choices):
                one, other = at[f"whole {k}"], at[f"active {k}"]
                size = np.maximum(np.abs(one), np.abs(other))
                same = (one == other) | (np.abs(one - other) <= TIE * size)
                if isinstance(choice.node, ceil_div):
                    quotient = at[f"quotient {k}"]
                    step = np.rint(quotient)
                    same &= (quotient == step) | (np.abs(quotient - step) > EDGE * np.abs(quotient))
                holds.append(same)
        return at["lines"], holds

    def values(self, bindings: Mapping[Any, float]) -> dict[str, float]:
        """Values by name, from symbols or names.

        Raises:
            InputError: a name that the run does not have, with the nearest, or what is no number.
        """
        found: dict[str, float] = {}
        for key, value in bindings.items():
            name = str(key)
            if name not in self.defaults:
                raise InputError(f"bindings: the run has no symbol {quote(name)}{nearest(name, self.defaults)}")
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"bindings: {name}: found {quote(value)}, expected a number")
            found[name] = float(value)
        return found


def lines_of(derivation: Derivation) -> Any:
    """The lines summed, over the vocabulary alone: those of the time are put in where a metric is over it."""
    if derivation.time is None:
        return derivation.expr
    return derivation.expr.xreplace({time_in(derivation.formula): derivation.time.expr})

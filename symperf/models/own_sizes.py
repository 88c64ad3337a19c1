"""Sizes that layers of one kind have for themselves: they stand in the formulas where those of the model do.

A kind whose `own` names `(("head_dim", "global_head_dim"),)` is counted by the same formulas as every other, with d_g
where they say d_h. Everything that is made of formulas for a kind passes here: counts, operations and memory.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from ..common.symbolic import replace_symbols
from ..formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .architecture import LayerKind

Result = TypeVar("Result")


def stand_ins(kind: LayerKind) -> dict[Any, Any]:
    """The symbols of the formulas that a kind has its own for."""
    return {SYMBOLS[size].symbol: SYMBOLS[own].symbol for size, own in kind.own}


def of_kind(value: Result, kind: LayerKind) -> Result:
    """What formulas gave, in the sizes of a kind: an expression, or what holds expressions."""
    return replace_symbols(value, stand_ins(kind)) if kind.own else value


def in_own_sizes(form: Callable[..., Result]) -> Callable[..., Result]:
    """A formula of a kind of layers, told in its sizes; the kind is among its arguments, or those of the model."""

    @functools.wraps(form)
    def told(*given: Any, **named: Any) -> Result:
        kind = next((each for each in (*given, *named.values()) if hasattr(each, "own")), None)
        found = form(*given, **named)
        return found if kind is None else of_kind(found, kind)

    return told

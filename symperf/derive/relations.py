"""Relations between the sizes of a model that hold exactly, with which known forms appear, such as 72 B L s h^2."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..formulas.language.symbols import (
    head_dim,
    hidden_size,
    intermediate_size,
    num_attention_heads,
    num_key_value_heads,
)
from . import monomials as mono

if TYPE_CHECKING:
    from collections.abc import Collection

    from .numeric import Values

LARGEST = 64
"""A ratio with a larger numerator or denominator is no relation that anyone has in mind."""


def relations(values: Values, kept: Collection[Any]) -> dict[Any, mono.Sum]:
    """What sizes are in terms of others, where it holds exactly at the values.

    Heads fill the hidden size (d_h = r h / a), the MLP is a multiple of it (f = r h), and key-value heads are a part of
    the heads (a_kv = r a), each with a simple ratio r.

    Args:
        values: of the sizes.
        kept: symbols that vary or are numbers: no relation with one of them is used.
    """
    found: dict[Any, mono.Sum] = {}
    for symbol, over, under in (
        (head_dim, hidden_size, num_attention_heads),
        (intermediate_size, hidden_size, None),
        (num_key_value_heads, num_attention_heads, None),
    ):
        used = {symbol, over} | ({under} if under is not None else set())
        if used & set(kept):
            continue
        base = mono.generator(over)
        if under is not None:
            base = mono.multiply(base, mono.generator(under, -1))
        try:
            whole = values(symbol), values(over), 1.0 if under is None else values(under)
        except KeyError:
            continue
        if not all(each.is_integer() and each > 0 for each in whole):
            continue
        ratio = Fraction(int(whole[0]) * int(whole[2]), int(whole[1]))
        if max(ratio.numerator, ratio.denominator) <= LARGEST:
            found[symbol] = mono.multiply(mono.constant(ratio), base)
    return found

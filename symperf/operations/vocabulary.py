"""The rows of tables and of the head that a device has of a vocabulary: as few as split it, or padded to a multiple."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..common.symbolic import replace_symbols
from ..formulas.language.atoms import ceil_div
from ..formulas.language.symbols import tp, vocab_multiple, vocab_size
from ..formulas.memory.parameters import padded_vocabulary_share

if TYPE_CHECKING:
    from ..plans.structure import Structure

Value = TypeVar("Value")


def pad_vocabulary(structure: Structure, value: Value) -> Value:
    """Closed forms of a step, or a tree of them, with the rows of a padded vocabulary if the structure pads it."""
    if not structure.padded_vocabulary:
        return value
    return replace_symbols(value, {ceil_div(vocab_size, tp): padded_vocabulary_share(vocab_size, vocab_multiple, tp)})

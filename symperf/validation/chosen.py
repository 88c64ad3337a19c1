"""Constants that a human chose when errors of steps were known: one table, `catalogue/validation/chosen.toml`.

A prediction goes with such a constant by a power: 0.3 where 1 % more of it lengthens the time by 0.3 %. Rows with less
than `LEAST` in all rest on measured kernels alone. Beside it lies `judged.toml`, with the aims that rows are judged by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common.files import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evaluation.base_run import BaseRun

FOLDER: Final = Path(__file__).parent.parent / "catalogue" / "validation"
LEAST: Final = 0.05
"""Sum of powers from which on a prediction counts as one that chosen constants set."""


@dataclass(frozen=True)
class Chosen:
    """Symbols that are chosen where their source holds a text.

    Attributes:
        symbols: their names.
        source: what the source of a value holds; "" for every source.
        kinds: of answers that go with them although their program does not read them.
        why: what made the choice.
    """

    symbols: tuple[str, ...]
    source: str
    kinds: tuple[str, ...]
    why: str


@cache
def chosen_table() -> tuple[Chosen, ...]:
    """The entries of the table."""
    entries = read_toml(FOLDER / "chosen.toml", "chosen.toml")["chosen"]
    return tuple(Chosen(tuple(e["symbols"]), e["source"], tuple(e.get("kinds", ())), e["why"]) for e in entries)


def chosen_symbols(run: BaseRun) -> tuple[str, ...]:
    """The symbols of a run's time whose values were chosen when errors were known."""
    used, known = run.compiled.program.inputs, run.quantities()
    names = dict.fromkeys(
        name
        for entry in chosen_table()
        for name in entry.symbols
        if name in used and name in known and name not in run.given and entry.source in known[name].source
    )
    return tuple(name for name in names if known[name].value)


def goes_with_chosen(kind: str) -> bool:
    """Whether answers of a kind go with chosen constants that their program does not read."""
    return any(kind in entry.kinds for entry in chosen_table())


@cache
def judged() -> Mapping[str, Any]:
    """Aims by subject, and years by family."""
    return read_toml(FOLDER / "judged.toml", "judged.toml")

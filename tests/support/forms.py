"""Values of closed forms in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symperf.formulas.language.symbols import SYMBOLS, strip_units

if TYPE_CHECKING:
    import symperf as sf


def number(run: sf.Run, form: Any) -> float:
    """The value of a closed form in a run."""
    values = {SYMBOLS[name].symbol: value for name, (value, _) in run.bound.items() if name in SYMBOLS}
    return float(strip_units(form + SYMBOLS["batch"].symbol * 0).xreplace(values))

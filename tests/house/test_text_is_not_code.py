"""Text that reaches the cost language or the compiler is refused, never parsed as an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sympy

from symperf.codegen.lower import lower
from symperf.formulas.kernels.roofline import work_time
from symperf.formulas.language.atoms import Max, Min
from symperf.formulas.language.dimension import dimension_of
from symperf.formulas.language.discipline import judge, prove
from symperf.formulas.language.symbols import strip_units

if TYPE_CHECKING:
    from collections.abc import Callable

x = sympy.Symbol("x")
ENTRIES: dict[str, Callable[[str], Any]] = {
    "lower, an output": lambda text: lower([], {"y": text}),
    "lower, shared": lambda text: lower([], {"y": text}, share=True),
    "lower, a definition": lambda text: lower([(x, text)], {"y": x}),
    "dimension_of": lambda text: dimension_of(text, {}),
    "judge": judge,
    "prove": lambda text: prove(text, x),
    "a formula": lambda text: work_time(text, x),
    "Max": lambda text: Max(x, text),
    "Min": lambda text: Min(x, text),
    "strip_units": strip_units,
}


@pytest.mark.parametrize("text", ["1 + 1", "x", "__import__('os').getcwd()"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_text_is_refused(entry: str, text: str) -> None:
    """A string is no expression, harmless or hostile."""
    with pytest.raises(sympy.SympifyError):
        ENTRIES[entry](text)

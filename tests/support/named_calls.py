"""Opens the calls of formulas that an expression holds."""

from __future__ import annotations

from typing import Any

from symperf.formulas.language.named_calls import NamedCall


def expand_calls(expr: Any, known: dict[Any, Any] | None = None) -> Any:
    """The expression with every named call replaced by the closed form of its arguments.

    Args:
        expr: any expression.
        known: what was expanded before, to which this adds.
    """
    known = {} if known is None else known
    if not expr.has(NamedCall):
        return expr
    if expr not in known:
        opened = expr.func(*(expand_calls(arg, known) for arg in expr.args))
        known[expr] = opened.definition() if isinstance(opened, NamedCall) else opened
    return known[expr]

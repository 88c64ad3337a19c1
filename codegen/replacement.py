"""Replacement of parts of expressions that share most of what they hold, each part once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

if TYPE_CHECKING:
    from collections.abc import Mapping


class Replacement:
    """What SymPy's `xreplace` gives, which walks a part as often as it occurs; here what is met again is known.

    Args:
        rule: what stands for what; whole parts of an expression alone are replaced.

    >>> x, y, z = sympy.symbols("x y z")
    >>> replace = Replacement({x: z, y + 1: 2})
    >>> replace(x * (y + 1) + y), replace(3)
    (y + 2*z, 3)
    """

    def __init__(self, rule: Mapping[Any, Any]) -> None:
        self.known: dict[Any, Any] = dict(rule)

    def __call__(self, expr: Any) -> Any:
        """The expression with all parts replaced."""
        return self._of(sympy.sympify(expr, strict=True))

    def _of(self, node: Any) -> Any:
        found = self.known.get(node)
        if found is None:
            args = node.args
            parts = [self._of(arg) for arg in args]
            moved = any(part is not arg for part, arg in zip(parts, args, strict=True))
            found = self.known[node] = node.func(*parts) if moved else node
        return found

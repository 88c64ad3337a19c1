"""A run's time as a maximum of posynomials in the rates of its chip, up to atoms that declare their relaxation.

With everything but the chip's rates a number, a time is made of sums, products, powers, maxima, minima and a few atoms.
An atom that holds a rate is replaced by the log-log convex lower bound that it declares (`relaxed`). A minimum is the
best of several ways to do the same thing: the way that is best at a reference point is taken, which is an upper bound,
and taken again at the optimum until it is the best there too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy

from ...common.errors import InputError
from ...derive.numeric import Values
from ...formulas.language.atoms import Max, Min, above_one, ceil_div, less_one

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Relaxed:
    """A time that a geometric program can hold.

    Attributes:
        form: over the free symbols alone, in sums, products, powers and maxima.
        bounds: how often each atom was replaced by its lower bound, by name.
        chosen: for each minimum, the place of the way that was taken.
    """

    form: Any
    bounds: dict[str, int] = field(default_factory=dict)
    chosen: list[int] = field(default_factory=list)


def relax(expr: Any, values: Mapping[str, float], free: frozenset[str], at: Mapping[str, float]) -> Relaxed:
    """The relaxation of a time.

    Args:
        expr: the time, over the vocabulary's symbols.
        values: of all symbols that are not free, by name.
        free: names of the rates that stay symbols.
        at: values of the free symbols at the reference point.

    Raises:
        InputError: an atom that holds a rate and declares no relaxation, or a difference of rates.
    """
    return _Relaxing(values, free, at).relax(expr)


class _Relaxing:
    def __init__(self, values: Mapping[str, float], free: frozenset[str], at: Mapping[str, float]) -> None:
        self.values, self.free, self.at = values, free, at
        self.memo: dict[Any, Any] = {}
        self.numbers = Values({sympy.Symbol(name, positive=True): value for name, value in at.items()})
        self.counted: set[Any] = set()
        self.found = Relaxed(None)

    def relax(self, expr: Any) -> Relaxed:
        stack = [expr]
        while stack:
            node = stack[-1]
            if node in self.memo:
                stack.pop()
                continue
            opened = self.opened(node)
            needs = [arg for arg in (node.args if opened is None else (opened,)) if arg not in self.memo]
            if needs:
                stack.extend(needs)
                continue
            stack.pop()
            self.memo[node] = self.memo[opened] if opened is not None else self.build(node)
        self.found.form = self.memo[expr]
        return self.found

    def opened(self, node: Any) -> Any:
        """What an atom is replaced by; None where it is kept as it is."""
        if (share := _share_of_a_split(node)) is not None and self.varies(node):
            return share
        if not isinstance(node, sympy.Function) or isinstance(node, Max | Min) or not self.varies(node):
            return None
        bound = node.relaxed() if hasattr(node, "relaxed") else None
        if bound is not None:
            name = node.func.__name__
            if node not in self.counted:
                self.counted.add(node)
                self.found.bounds[name] = self.found.bounds.get(name, 0) + 1
            return bound
        if hasattr(node, "definition") and not isinstance(node, above_one | ceil_div):
            return node.definition()
        raise InputError(f"allocate: no relaxation of {node.func.__name__}")

    def varies(self, node: Any) -> bool:
        return any(str(symbol) in self.free for symbol in node.free_symbols)

    def build(self, node: Any) -> Any:
        if node.is_Number:
            return sympy.Float(node)
        if node.is_Symbol:
            return node if str(node) in self.free else sympy.Float(self.values[str(node)])
        parts = [self.memo[arg] for arg in node.args]
        if isinstance(node, Min):
            return self.best(parts)
        if isinstance(node, Max):
            return Max(*parts)
        if all(part.is_Number for part in parts):
            return self.number(node, parts)
        made = node.func(*parts)
        if node.is_Add and any(part.could_extract_minus_sign() for part in made.args):
            raise InputError(f"allocate: a difference of times that rates move: {str(made)[:80]}")
        return made

    def number(self, node: Any, parts: list[Any]) -> Any:
        made = node.func(*parts)
        return sympy.Float(made) if made.is_Number else sympy.Float(Values({})(made))

    def best(self, parts: list[Any]) -> Any:
        """The way that is best at the reference point."""
        times = [self.numbers(part) for part in parts]
        place = times.index(min(times))
        self.found.chosen.append(place)
        return parts[place]


def _share_of_a_split(node: Any) -> Any:
    """1 / max(1, ceil((u + 1) / T) - 1), what each part of a split along k has, as its lower bound min(1, T / u)."""
    if not (node.is_Pow and node.exp == -1 and isinstance(node.base, Max) and len(node.base.args) == 2):
        return None
    for part in node.base.args:
        if isinstance(part, less_one) and isinstance(part.args[0], ceil_div):
            amount, size = part.args[0].args
            return Min(1, size / (amount - 1))
    return None


def value_at(expr: Any, at: Mapping[str, float]) -> float:
    """The value of a relaxed form at values of its symbols."""
    return Values({symbol: at[str(symbol)] for symbol in expr.free_symbols})(expr)

"""How often each term counts in its quantity, in the current regime: the quantity is the sum of count times term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from . import monomials as mono
from .forms import stand_in
from .numeric import definition
from .regime import EXTREMA

if TYPE_CHECKING:
    from collections.abc import Collection

    from .forms import Forms
    from .regime import Choice, RegimeRewriter


@dataclass(frozen=True)
class Counts:
    """How often each term of a quantity counts at a point, and the rewriters that say so.

    Attributes:
        of: a sum of monomials by path; a path without one counts not at all.
        plain: paths whose counts keep m - 1 as it is.
        whole: multiplies m - 1 out.
        regime: does not.
        forms: the quantity.
    """

    of: dict[str, mono.Sum]
    plain: frozenset[str]
    whole: RegimeRewriter
    regime: RegimeRewriter
    forms: Forms

    def choices(self, paths: Collection[str]) -> list[Choice]:
        """What the counts of some terms rest on, each once."""
        found: list[Choice] = []
        for rewriter, own in ((self.whole, set(paths) - self.plain), (self.regime, set(paths) & self.plain)):
            if own:
                found += rewriter.choices(self.forms.formula, [stand_in(path) for path in own])
        return list(dict.fromkeys(found))


def counts(forms: Forms, regime: RegimeRewriter) -> Counts:
    """The count of every term of the quantity that counts, as a sum of monomials, by path.

    The quantity is homogeneous of degree one in its terms, so inside a regime it is linear in them: the count is its
    derivative. m - 1 later micro-batches and the first one are m where they run alike; where that would leave a
    difference of counts, m - 1 stays.

    Args:
        forms: the quantity.
        regime: at the values of every symbol; the values of the terms are added to it.
    """
    for path, form in forms.terms.items():
        regime.define(stand_in(path), form, regime.values(form))
    whole = regime.expanding()
    found = _split_terms(whole.sum_of(forms.formula), forms)
    minus = frozenset(path for path, each in found.items() if any(exact < 0 for exact, _ in each.values()))
    if minus:
        plain = _split_terms(regime.sum_of(forms.formula), forms)
        found = {path: plain.get(path, {}) if path in minus else each for path, each in found.items()}
    return Counts({path: each for path, each in found.items() if each}, minus, whole, regime, forms)


@dataclass(frozen=True)
class Sums:
    """Every term of a quantity as a sum of monomials of the vocabulary.

    Attributes:
        of: by path; empty where the term is 0 at the point.
        waits: for an idle term, the terms that it waits for.
        regime: that says so.
        forms: the quantity.
    """

    of: dict[str, mono.Sum]
    waits: dict[str, tuple[str, ...]]
    regime: RegimeRewriter
    forms: Forms

    def choices(self, path: str) -> list[tuple[str, Choice]]:
        """What the sum of a term rests on, with the term in which it was chosen."""
        return [
            (each, choice)
            for each in (path, *self.waits.get(path, ()))
            for choice in self.regime.choices(self.forms.terms[each])
        ]


def term_sums(forms: Forms, regime: RegimeRewriter) -> Sums:
    """Every term as a sum of monomials of the vocabulary; an idle term is that of the operations that it waits for."""
    found: dict[str, mono.Sum] = {}
    waits: dict[str, tuple[str, ...]] = {}
    names = {stand_in(path) for path in forms.terms}
    idle = {path: form for path, form in forms.terms.items() if form.free_symbols & names}
    for path, form in forms.terms.items():
        if path not in idle:
            found[path] = regime.sum_of(form)
    for path, form in idle.items():
        parts = _split_terms(regime.sum_of(form), forms)
        waits[path] = tuple(parts)
        found[path] = mono.add(*(mono.multiply(count, found[inner]) for inner, count in parts.items() if found[inner]))
    return Sums(found, waits, regime, forms)


def part_of(forms: Forms, regime: RegimeRewriter, paths: Collection[str]) -> Any:
    """The part of a quantity that is of some of its terms, over their symbols; all but the branches is as it is.

    What the terms share with no other is whole. Of a maximum or minimum over them and others the branch is taken that
    wins at the point, in which the others count for nothing.
    """
    names = {stand_in(path) for path in forms.terms}
    own = {stand_in(path) for path in paths}

    def part(node: Any) -> Any:
        found = node.free_symbols & names
        if found <= own:
            return node if found else sympy.S.Zero
        if not found & own:
            return sympy.S.Zero
        if node.is_Add:
            return sympy.Add(*map(part, node.args))
        if node.is_Mul:
            return sympy.Mul(*(part(arg) if arg.free_symbols & names else arg for arg in node.args))
        return part(regime.winner(node) if isinstance(node, EXTREMA) else definition(node))

    return part(forms.formula)


def _split_terms(total: mono.Sum, forms: Forms) -> dict[str, mono.Sum]:
    """A sum that is linear in the terms, by term."""
    names: dict[Any, str] = {stand_in(path): path for path in forms.terms}
    found: dict[str, mono.Sum] = {}
    for monomial, pair in total.items():
        ((path, symbol),) = [(names[each], each) for each, _ in monomial if each in names]
        rest = frozenset((each, of) for each, of in monomial if each != symbol)
        found.setdefault(path, {})[rest] = pair
    return found

"""How often each term counts in its quantity, in the current regime: the quantity is the sum of count times term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import monomials as mono
from .forms import stand_in
from .regime import RegimeRewriter

if TYPE_CHECKING:
    from .forms import Forms


def counts(forms: Forms, regime: RegimeRewriter) -> dict[str, mono.Sum]:
    """The count of every term of the quantity that counts, as a sum of monomials, by path.

    The quantity is homogeneous of degree one in its terms, so inside a regime it is linear in them: the count is its
    derivative. m - 1 later micro-batches and the first one are m where they run alike; where that would leave a
    difference of counts, m - 1 stays.

    Args:
        forms: the quantity.
        regime: at the values of every symbol; the values of the terms are added to it.
    """
    for path, form in forms.terms.items():
        regime.values.define(stand_in(path), regime.values(form))
    whole = RegimeRewriter(regime.values, regime.free, regime.numbers, regime.relations, expand=True)
    found = _split_terms(whole.sum_of(forms.formula), forms)
    if any(exact < 0 for each in found.values() for exact, _ in each.values()):
        plain = _split_terms(regime.sum_of(forms.formula), forms)
        for path, each in found.items():
            if any(exact < 0 for exact, _ in each.values()):
                found[path] = plain[path]
    return found


def term_sums(forms: Forms, regime: RegimeRewriter) -> dict[str, mono.Sum]:
    """Every term as a sum of monomials of the vocabulary; an idle term is that of the operations that it waits for."""
    found: dict[str, mono.Sum] = {}
    names = {stand_in(path) for path in forms.terms}
    idle = {path: form for path, form in forms.terms.items() if form.free_symbols & names}
    for path, form in forms.terms.items():
        if path not in idle:
            found[path] = regime.sum_of(form)
    for path, form in idle.items():
        parts = _split_terms(regime.sum_of(form), forms)
        found[path] = mono.add(*(mono.multiply(count, found[inner]) for inner, count in parts.items() if found[inner]))
    return found


def _split_terms(total: mono.Sum, forms: Forms) -> dict[str, mono.Sum]:
    """A sum that is linear in the terms, by term."""
    names: dict[Any, str] = {stand_in(path): path for path in forms.terms}
    found: dict[str, mono.Sum] = {}
    for monomial, pair in total.items():
        ((path, symbol),) = [(names[each], each) for each, _ in monomial if each in names]
        rest = frozenset((each, of) for each, of in monomial if each != symbol)
        found.setdefault(path, {})[rest] = pair
    return found

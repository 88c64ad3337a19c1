"""The atoms mean what they declare: values, directions, curvature, LaTeX; and building them costs nothing."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part
from support.oracle import MEANING, evaluate, sample, worst_bend, worst_fall
from support.strategies import seeds

from symperf.formulas.language.atoms import (
    ATOMS,
    Atom,
    Max,
    Min,
    above_one,
    bubble,
    ceil_div,
    complement,
    less_one,
    log2,
    ring_share,
    stop_gradient,
)
from symperf.formulas.language.symbols import SYMBOLS

a, b, c = sympy.symbols("a b c")


def _of(*names: str) -> tuple[Any, ...]:
    return tuple(SYMBOLS[name].symbol for name in names)


ARGUMENTS = {
    Max: _of("rate", "bandwidth", "element_bytes"),
    Min: _of("rate", "bandwidth", "element_bytes"),
    ceil_div: _of("elements", "tokens"),
    log2: _of("ranks"),
    ring_share: _of("ranks"),
    bubble: _of("stages", "vpp"),
    less_one: _of("ranks"),
    complement: _of("overlap"),
    above_one: _of("ranks"),
    stop_gradient: _of("ranks"),
}
each_atom = pytest.mark.parametrize("atom", ATOMS, ids=lambda atom: atom.__name__)


def test_every_atom_is_tested() -> None:
    """The tables of this file know every atom of the language."""
    assert set(ARGUMENTS) == set(ATOMS)
    assert {atom.__name__ for atom in ATOMS} <= set(MEANING)
    assert len({atom.operation for atom in ATOMS}) == len(ATOMS)


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (Max(2, 3), 3),
        (Min(2, sympy.Rational(1, 2)), sympy.Rational(1, 2)),
        (Max(a), a),
        (ceil_div(0, 5), 0),
        (ceil_div(1, 5), 1),
        (ceil_div(sympy.Rational(7, 2), sympy.Rational(7, 4)), 2),
        (log2(1), 0),
        (log2(1024), 10),
        (ring_share(1), 0),
        (ring_share(4), sympy.Rational(3, 4)),
        (bubble(1, 3), 0),
        (bubble(8, 2), sympy.Rational(7, 2)),
        (less_one(1), 0),
        (complement(1), 0),
        (complement(sympy.Rational(1, 3)), sympy.Rational(2, 3)),
        (above_one(1), 0),
        (above_one(2), 1),
    ],
)
def test_numbers_fold_exactly(applied: Any, expected: Any) -> None:
    """At numbers an atom is a number, in exact arithmetic."""
    assert applied == expected


def test_log2_of_no_power_of_two_stays_in_the_language() -> None:
    """An irrational logarithm is kept as an atom, which the checkers know, and still has its value."""
    assert isinstance(log2(3), log2)
    assert float(2 * log2(3)) == pytest.approx(2 * np.log2(3), rel=1e-15)


@given(st.integers(1, 5000), st.integers(1, 400))
def test_ceil_div_counts_bins_exactly(bins: int, size: int) -> None:
    """An exact multiple fills its bins; one more opens another. As ceil(n * (1/size)) it fails at 525 / 75."""
    assert ceil_div(bins * size, size) == bins
    assert ceil_div(bins * size + 1, size) == bins + 1
    assert evaluate(ceil_div(a, b), {a: np.float64(bins * size), b: np.float64(size)}) == bins


@given(st.fractions(0, 1000, max_denominator=50), st.fractions(Fraction(1, 50), 100, max_denominator=50))
def test_ceil_div_of_fractions(amount: Fraction, size: Fraction) -> None:
    """It is the ceiling of the exact ratio."""
    applied = ceil_div(sympy.Rational(amount), sympy.Rational(size))
    assert applied == ceil(amount / size)


def test_common_subexpressions_do_not_split_ceil_div() -> None:
    """SymPy's cse may name 1/b, but the ceiling keeps amount and size: ceil(525 / 75) is 7, not 8."""
    replaced, (result, _) = sympy.cse([ceil_div(a, b) + 1 / b, c / b + a / b])
    whole = [node for node in sympy.preorder_traversal(result) if isinstance(node, ceil_div)]
    assert [node.args for node in whole] == [(a, b)]
    points = {a: 525.0, b: 75.0}
    for name, value in replaced:
        points[name] = evaluate(value, points)
    assert evaluate(result, points) == 7 + 1 / 75


@each_atom
@given(seed=seeds)
@part(0.2)
def test_declared_directions_hold(atom: Any, seed: int) -> None:
    """Each argument moves the atom the way it declares, at 4,096 points."""
    arguments = ARGUMENTS[atom]
    applied = atom(*arguments)
    for argument, direction in zip(applied.args, applied.monotone(), strict=True):
        assert direction in (1, -1)
        assert worst_fall(applied, argument, direction, seed) < 1e-12
        assert worst_fall(applied, argument, -direction, seed) > 1e-12, "and it does move"


@pytest.mark.parametrize("atom", [atom for atom in ATOMS if atom.curvature], ids=lambda atom: atom.__name__)
@given(seed=seeds)
@part(0.2)
def test_declared_curvature_holds(atom: Any, seed: int) -> None:
    """Between any two points an atom bends the way it declares, in logarithms."""
    applied = atom(*ARGUMENTS[atom])
    assert worst_bend(applied, atom.curvature, seed) < 1e-9
    other = {"convex": "concave", "concave": "convex"}[atom.curvature]
    assert worst_bend(applied, other, seed) > 1e-6, "and it does bend"


@each_atom
def test_atoms_are_not_negative_in_their_domain(atom: Any) -> None:
    """The fold takes every atom as non-negative; so it is, wherever its arguments are in their domain."""
    applied = atom(*ARGUMENTS[atom])
    assert np.all(evaluate(applied, sample(applied.free_symbols, seed=1)) >= 0)


@pytest.mark.parametrize("atom", [atom for atom in ATOMS if issubclass(atom, Atom)], ids=lambda atom: atom.__name__)
def test_plain_definition_agrees(atom: Any) -> None:
    """The definition in plain SymPy, exact folding and the oracle give one value."""
    applied = atom(*ARGUMENTS[atom])
    points = sample(applied.free_symbols, seed=2, size=40)
    found = evaluate(applied, points)
    for index in range(40):
        exact = {symbol: sympy.Rational(float(values[index])) for symbol, values in points.items()}
        assert float(applied.definition().xreplace(exact)) == pytest.approx(found[index], rel=1e-12, abs=1e-12)
        assert float(applied.xreplace(exact)) == pytest.approx(found[index], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (Max(a, b), r"\max\left(a, b\right)"),
        (Min(a, b), r"\min\left(a, b\right)"),
        (ceil_div(a, b), r"\left\lceil \frac{a}{b} \right\rceil"),
        (log2(a), r"\log_{2} a"),
        (ring_share(a), r"\frac{a - 1}{a}"),
        (bubble(a, b), r"\frac{a - 1}{b}"),
        (less_one(a), r"\left(a - 1\right)"),
        (complement(a), r"\left(1 - a\right)"),
        (above_one(a), r"\left[a > 1\right]"),
    ],
)
def test_latex(applied: Any, expected: str) -> None:
    """An atom prints as a mathematician writes it."""
    assert sympy.latex(applied) == expected


@pytest.mark.parametrize("head", [Max, Min])
def test_building_an_extremum_compares_nothing(head: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flat extremum of 200 products never enters SymPy's pairwise comparison, nor does rebuilding it."""

    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("compared pairwise")

    for step in ("_new_args_filter", "_find_localzeros", "_is_connected", "_collapse_arguments", "_is_asymptotic"):
        for base in (sympy.Max, sympy.Min):
            monkeypatch.setattr(base, step, forbidden, raising=False)
    names = sympy.symbols("x0:40", positive=True)
    products = [names[i % 40] * names[i * 7 % 40] ** (i // 40 + 2) / names[i * 3 % 40] for i in range(200)]
    extremum = head(*products)
    assert len(extremum.args) == len(set(products)) > 150
    rebuilt = extremum.xreplace({names[0]: names[1] * 2})
    assert type(rebuilt) is head
    assert names[0] not in rebuilt.free_symbols
    with pytest.raises(AssertionError, match="compared"):
        sympy.Max(*products[:3])


@pytest.mark.parametrize(("head", "base", "best"), [(Max, sympy.Max, 7), (Min, sympy.Min, 3)])
def test_an_extremum_flattens_folds_and_keeps_its_class(head: Any, base: Any, best: int) -> None:
    """Nested extrema merge, numbers become one, duplicates vanish, order does not matter."""
    extremum = head(a, head(b, 7), 3, a)
    assert set(extremum.args) == {a, b, sympy.Integer(best)}
    assert extremum == head(3, 7, b, a)
    assert hash(extremum) == hash(head(3, 7, b, a))
    assert isinstance(extremum, base)
    assert type(extremum.subs(a, c)) is head
    assert extremum.xreplace({a: sympy.Integer(4), b: sympy.Integer(5)}) == best


def test_max_and_min_nest_in_each_other() -> None:
    """Only like merges with like."""
    assert Max(a, Min(b, c)).args == (a, Min(b, c)) or Max(a, Min(b, c)).args == (Min(b, c), a)


@each_atom
def test_xreplace_keeps_the_atom(atom: Any) -> None:
    """Replacing a symbol by an expression gives the same atom of the new argument."""
    old = ARGUMENTS[atom]
    new = [symbol * SYMBOLS["heads"].symbol for symbol in old]
    assert atom(*old).xreplace(dict(zip(old, new, strict=True))) == atom(*new)
    assert isinstance(atom(*new), atom)

"""What the fold claims of any expression holds in numbers, and it claims what anyone can see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from support.oracle import evaluate, sample, worst_bend, worst_fall
from support.strategies import expressions, seeds

from symperf.formulas.language.atoms import (
    Max,
    Min,
    above_one,
    bubble,
    ceil_div,
    complement,
    less_one,
    log2,
    ring_share,
)
from symperf.formulas.language.discipline import direction_of, judge, prove

x, y, z = sympy.symbols("x y z")
SMALL = {"size": 256, "decades": 1.5}


@given(expressions, seeds)
def test_every_claimed_direction_holds(expr: Any, seed: int) -> None:
    """If the fold says that an expression rises or falls with a symbol, it does, at every pair of points."""
    for symbol, direction in judge(expr).directions.items():
        if direction:
            assert worst_fall(expr, symbol, direction, seed, **SMALL) < 1e-9, (symbol, direction)


@given(expressions, seeds)
def test_every_claimed_curvature_holds(expr: Any, seed: int) -> None:
    """If the fold says convex, concave or affine in logarithms, midpoints agree."""
    curvature = judge(expr).curvature
    if curvature and expr != 0:
        assert worst_bend(expr, curvature, seed, **SMALL) < 1e-9, curvature


@given(expressions, seeds)
def test_what_is_claimed_not_negative_is_not(expr: Any, seed: int) -> None:
    """The sign that the fold finds is the sign."""
    assert judge(expr).nonnegative, "the strategy draws only such expressions"
    assert np.all(evaluate(expr, sample(expr.free_symbols, seed, **SMALL)) >= 0)


@given(expressions)
def test_every_symbol_is_judged(expr: Any) -> None:
    """A symbol is absent from the directions exactly if it is absent from the expression."""
    assert set(judge(expr).directions) == expr.free_symbols


@pytest.mark.parametrize(
    ("expr", "directions", "curvature"),
    [
        (x * y / z, {x: 1, y: 1, z: -1}, "affine"),
        (3 * x**2 + y / z, {x: 1, y: 1, z: -1}, "convex"),
        (1 / (x + y), {x: -1, y: -1}, "concave"),
        (sympy.sqrt(x + y), {x: 1, y: 1}, "convex"),
        (Max(x, y / z), {x: 1, y: 1, z: -1}, "convex"),
        (Min(x, y / z), {x: 1, y: 1, z: -1}, "concave"),
        (Min(x, x + y), {x: 1, y: 1}, None),
        (Max(x, 1 / (x + 1)), {x: 0}, None),
        (x * Max(x, y) * Min(x, y), {x: 1, y: 1}, None),
        (ceil_div(x, y), {x: 1, y: -1}, None),
        (ceil_div(x, y) * y, {x: 1, y: 0}, None),
        (ring_share(x) * y, {x: 1, y: 1}, "concave"),
        (ring_share(1 / x), {x: -1}, "concave"),
        (log2(x) * less_one(x), {x: 1}, "concave"),
        (bubble(x, y), {x: 1, y: -1}, "concave"),
        (bubble(x, Min(y, z)), {x: 1, y: -1, z: -1}, None),
        (bubble(x, Max(y, z)), {x: 1, y: -1, z: -1}, "concave"),
        (complement(x), {x: -1}, "concave"),
        (complement(complement(x)), {x: 1}, None),
        (above_one(x) * y, {x: 1, y: 1}, None),
        (x - y, {x: 1, y: -1}, None),
        (-x, {x: -1}, None),
        (x - x / y, {x: 0, y: 1}, None),
        ((x - y) * z, {x: 0, y: 0, z: 0}, None),
        (1 / (x - y), {x: 0, y: 0}, None),
        (Max(0, x - y), {x: 1, y: -1}, None),
        (Min(0, x - y), {x: 0, y: 0}, None),
        (sympy.exp(x), {x: 0}, None),
        (sympy.Max(x, y), {x: 0, y: 0}, None),
        (x**y, {x: 0, y: 0}, None),
        (sympy.Integer(3), {}, "affine"),
    ],
)
def test_claims(expr: Any, directions: dict[Any, int], curvature: str | None) -> None:
    """The fold finds what its rules promise, and stays silent on what they do not cover."""
    found = judge(expr)
    assert (found.directions, found.curvature) == (directions, curvature)
    for symbol in (x, y, z):
        assert direction_of(expr, symbol) == directions.get(symbol)


def test_a_deep_sum_is_judged_once_per_node() -> None:
    """Shared nodes are judged once: 60 doublings of depth are instant."""
    expr = x
    for _ in range(60):
        expr = Max(expr * y, expr + z)
    assert judge(expr).directions == {x: 1, y: 1, z: 1}


def test_a_proof_prints_every_step() -> None:
    """The proof names each rule down to the symbol and leaves out what does not hold it."""
    assert prove(x * ring_share(y) + z / y**2, z) == "\n".join(
        (
            "rises with z: x*ring_share(y) + z/y**2, a sum",
            "  rises with z: z/y**2, a product of non-negative factors",
            "    rises with z: z, the symbol itself",
        )
    )


def test_a_failed_proof_shows_the_place() -> None:
    """Where directions clash, both sides are printed below the node that is undecided."""
    text = prove(Max(x * y, z / x), x)
    assert text.splitlines() == [
        "undecided in x: Max(z/x, x*y), a maximum of",
        "  falls with x: z/x, a product of non-negative factors",
        "    falls with x: 1/x, a reciprocal power, which turns the direction",
        "  rises with x: x*y, a product of non-negative factors",
        "    rises with x: x, the symbol itself",
    ]


def test_a_proof_names_what_it_cannot_see_through() -> None:
    """A function from outside the language, a factor of unknown sign and an absent symbol are said to be so."""
    assert "a function that declares nothing" in prove(x * sympy.exp(x), x)
    assert "a product with a factor of unknown sign" in prove((x - y) * z, z)
    assert prove(x, y) == "independent of y: x, the symbol itself"
    assert prove(ceil_div(x, y), y).startswith("falls with y: ceil_div(x, y), ceil_div moves up, down in its arguments")


def test_a_proof_stops_at_its_depth() -> None:
    """Below the asked depth a node is said to follow likewise."""
    assert prove(Max(x * y, z), x, depth=1).splitlines()[-1].endswith("likewise")


@given(expressions)
def test_a_proof_opens_with_the_claim(expr: Any) -> None:
    """The first line of the printed proof is the fold's claim."""
    words = {1: "rises with", -1: "falls with", 0: "undecided in"}
    for symbol, direction in judge(expr).directions.items():
        assert prove(expr, symbol).startswith(f"{words[direction]} {symbol}: ")

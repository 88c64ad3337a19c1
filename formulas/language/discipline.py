"""The fold that proves how a cost moves with each of its symbols.

Every node of an expression is judged from its arguments: its sign, its direction in every symbol (+1 never falls,
-1 never rises, 0 undecided, absent means independent) and its log-log curvature. The rules are those of disciplined
(geometric) programming (Grant, Boyd, Ye 2006; Agrawal, Diamond, Boyd 2019, arXiv 1812.04074): sums and products of
non-negative quantities keep a shared direction, a negative power flips it, an atom declares its own. All symbols are
taken as non-negative; ranges beyond that (a count is at least one, a fraction at most one) are the atoms' business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

Directions = dict[Any, int]
"""Symbol to +1, -1 or 0 (undecided)."""


@dataclass(frozen=True)
class Judgement:
    """What the fold knows of one expression."""

    nonnegative: bool
    directions: Directions
    curvature: str | None
    """Log-log curvature: "affine" (a monomial), "convex" (a posynomial or a maximum of them), "concave" or None."""


def judge(expr: Any) -> Judgement:
    """Sign, directions and log-log curvature of `expr`, in one pass over its distinct nodes.

    >>> from .atoms import Max
    >>> m, n, rate, bandwidth = sympy.symbols("m n rate bandwidth")
    >>> found = judge(Max(m * n / rate, (m + n) / bandwidth))
    >>> {str(s): d for s, d in sorted(found.directions.items(), key=str)}, found.curvature
    ({'bandwidth': -1, 'm': 1, 'n': 1, 'rate': -1}, 'convex')
    """
    return _judgements(expr)[sympy.sympify(expr, strict=True)]


def _judgements(expr: Any) -> dict[Any, Judgement]:
    """The judgement of every distinct node; a shared node is entered once, however often it occurs."""
    memo: dict[Any, Judgement] = {}
    waiting = [sympy.sympify(expr, strict=True)]
    while waiting:
        missing = [arg for arg in waiting[-1].args if arg not in memo]
        if missing:
            waiting += missing
        else:
            node = waiting.pop()
            memo[node] = _judge(node, memo)
    return memo


def _judge(node: Any, memo: dict[Any, Judgement]) -> Judgement:
    if node.is_Number:
        return Judgement(bool(node >= 0), {}, "affine")
    if node.is_Symbol:
        return Judgement(True, {node: 1}, "affine")
    parts = [memo[arg] for arg in node.args]
    if node.is_Add:
        return Judgement(
            all(p.nonnegative for p in parts),
            _join([p.directions for p in parts]),
            _curve_sum(parts),
        )
    if node.is_Mul:
        return _judge_product(node, parts)
    if node.is_Pow and node.exp.is_Rational and parts[0].nonnegative:
        sign = 1 if node.exp > 0 else -1
        return Judgement(True, _scale(parts[0].directions, sign), _flip(parts[0].curvature, sign))
    if hasattr(node, "monotone") and all(p.nonnegative for p in parts):
        ways = node.monotone()
        return Judgement(
            True,
            _join([_scale(p.directions, way) for p, way in zip(parts, ways, strict=True)]),
            _compose(node.curvature, parts, ways),
        )
    if getattr(node, "operation", "") == "max" and any(p.nonnegative for p in parts):
        return Judgement(True, _join([p.directions for p in parts]), None)
    return Judgement(False, dict.fromkeys(_join([p.directions for p in parts]), 0), None)


def _judge_product(node: Any, parts: list[Judgement]) -> Judgement:
    coefficient = node.args[0] if node.args[0].is_Number else sympy.S.One
    if all(p.nonnegative for p in parts):
        return Judgement(True, _join([p.directions for p in parts]), _curve_product([p.curvature for p in parts]))
    factors = parts[1:] if coefficient.is_negative else parts
    if coefficient.is_negative and all(p.nonnegative for p in factors):
        return Judgement(False, _scale(_join([p.directions for p in factors]), -1), None)
    unsigned = [p for p in factors if not p.nonnegative]
    if len(factors) == 1 and unsigned:
        sign = -1 if coefficient.is_negative else 1
        return Judgement(False, _scale(factors[0].directions, sign), None)
    return Judgement(False, dict.fromkeys(_join([p.directions for p in parts]), 0), None)


def _join(each: list[Directions]) -> Directions:
    result: Directions = {}
    for directions in each:
        for symbol, way in directions.items():
            result[symbol] = way if result.get(symbol, way) == way else 0
    return result


def _scale(directions: Directions, sign: int) -> Directions:
    return directions if sign == 1 else {symbol: way * sign for symbol, way in directions.items()}


def _flip(curvature: str | None, sign: int) -> str | None:
    if sign == 1 or curvature in (None, "affine"):
        return curvature
    return "concave" if curvature == "convex" else "convex"


def _curve_sum(parts: list[Judgement]) -> str | None:
    convex = all(p.nonnegative and p.curvature in ("affine", "convex") for p in parts)
    return "convex" if convex else None


def _curve_product(curvatures: list[str | None]) -> str | None:
    distinct = set(curvatures) - {"affine"}
    return "affine" if not distinct else (distinct.pop() if len(distinct) == 1 else None)


def _compose(own: str | None, parts: list[Judgement], ways: tuple[int, ...]) -> str | None:
    """An atom keeps its curvature if every argument is affine or bends its way (the other way where it falls)."""
    if own is None:
        return None
    for part, way in zip(parts, ways, strict=True):
        if part.curvature not in ("affine", _flip(own, way)):
            return None
    return own


def direction_of(expr: Any, symbol: Any) -> int | None:
    """+1 never falls, -1 never rises, 0 undecided, None independent of `symbol`."""
    return judge(expr).directions.get(symbol)


def prove(expr: Any, symbol: Any, depth: int = 8) -> str:
    """The proof that `expr` moves one way with `symbol`, or the place where it cannot be decided, as indented text.

    Args:
        expr: an expression of the cost language.
        symbol: one of its symbols.
        depth: levels of the proof to print; below them a node is said to follow likewise.

    >>> from .atoms import Max
    >>> m, rate, bandwidth = sympy.symbols("m rate bandwidth")
    >>> print(prove(Max(m / rate, m**2 / bandwidth), m))
    rises with m: Max(m**2/bandwidth, m/rate), a maximum of
      rises with m: m**2/bandwidth, a product of non-negative factors
        rises with m: m**2, a positive power
      rises with m: m/rate, a product of non-negative factors
        rises with m: m, the symbol itself

    """
    return "\n".join(_proof(sympy.sympify(expr, strict=True), symbol, _judgements(expr), depth, 0))


def _proof(node: Any, symbol: Any, memo: dict[Any, Judgement], depth: int, level: int) -> list[str]:
    way = memo[node].directions.get(symbol)
    word = {1: "rises with", -1: "falls with", 0: "undecided in", None: "independent of"}[way]
    text = str(node) if len(str(node)) <= 60 else str(node)[:57] + "..."
    line = f"{'  ' * level}{word} {symbol}: {text}, {_rule(node, memo)}"
    if way is None or node.is_Symbol or (node.is_Pow and node.base.is_Symbol):
        return [line]
    if depth == 0:
        return [line + ", likewise"]
    lines = [line]
    for arg in node.args:
        if symbol in memo[arg].directions:
            lines += _proof(arg, symbol, memo, depth - 1, level + 1)
    return lines


def _rule(node: Any, memo: dict[Any, Judgement]) -> str:
    signed = all(memo[arg].nonnegative for arg in node.args)
    if node.is_Symbol:
        return "the symbol itself"
    if node.is_Number:
        return "a number"
    if node.is_Add:
        return "a sum"
    if node.is_Mul:
        return "a product of non-negative factors" if signed else "a product with a factor of unknown sign"
    if node.is_Pow:
        return "a positive power" if node.exp.is_positive else "a reciprocal power, which turns the direction"
    if hasattr(node, "operation"):
        name = {"max": "a maximum of", "min": "a minimum of"}.get(node.operation)
        return name or f"{node.operation} moves {_ways(node.monotone())} in its arguments"
    return "a function that declares nothing"


def _ways(ways: tuple[int, ...]) -> str:
    return ", ".join("up" if way > 0 else "down" for way in ways)

"""An independent evaluator of the cost language in NumPy, and points of the vocabulary's domains to evaluate at.

It knows the atoms by what they mean, not by what `symperf.formulas.language.atoms` or a back end makes of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from symperf.formulas.language.symbols import COUNT, FRACTION, POSITIVE, SYMBOLS, ZERO_UP

Points = dict[Any, Any]


def term_by_term(count: Any, start: Any, term: Any) -> Any:
    """The sum of term(start), term(start + 1), ..., `count` terms of each point, many terms at a time."""
    count, start = np.broadcast_arrays(count, start)
    total = np.zeros(count.shape)
    together = max(1, 2**13 // max(1, count.size))
    for first in range(0, int(np.ceil(np.max(count))), together):
        i = np.arange(first, first + together).reshape(-1, *[1] * count.ndim)
        total += np.where(i < count - 1e-6, term(start + i), 0.0).sum(axis=0)
    return total


def sum_of_larger_lines(count: Any, start: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The sum, term by term, of the larger of two lines at start, start + 1, ..., `count` terms."""
    count, start, a, b, c, d = np.broadcast_arrays(count, start, a, b, c, d)
    return term_by_term(count, start, lambda x: np.maximum(a + b * x, c + d * x))


def geometric(ratio: Any, last: Any) -> Any:
    """1 + r + ... + r^n, where the ratio is 1 too."""
    ratio, last = np.broadcast_arrays(ratio, last)
    inside = np.where(ratio == 1, 0.5, ratio)
    return np.where(ratio == 1, last + 1, (1 - inside ** (last + 1)) / (1 - inside))


def power_law_voltage(level: Any) -> Any:
    """The largest root v of v (v - 1)^2 = max(level, 4/27), by hyperbolic functions."""
    return 2 / 3 * (1 + np.cosh(np.arccosh(np.maximum(13.5 * np.maximum(level, 4 / 27) - 1, 1.0)) / 3))


def triangular(expected: Any) -> Any:
    """((1 - exp(-x)) / x)^2, 1 at 0."""
    inside = np.where(expected == 0, 1.0, expected)
    return np.where(expected == 0, 1.0, (-np.expm1(-inside) / inside) ** 2)


def load_of_chosen(share: Any, draws: Any) -> Any:
    """n x / (1 - (1 - x)^n), where the power of a small share loses nothing; a share of 1 leaves none."""
    with np.errstate(divide="ignore"):
        return draws * share / -np.expm1(draws * np.log1p(-share))


def least(count: Any, start: Any, *lines: Any) -> Any:
    """The sum, term by term, of the smaller of two maxima of two lines each."""
    count, start, *lines = np.broadcast_arrays(count, start, *lines)

    def term(x: Any) -> Any:
        a, b, c, d = (low + slope * x for low, slope in zip(lines[::2], lines[1::2], strict=True))
        return np.minimum(np.maximum(a, b), np.maximum(c, d))

    return term_by_term(count, start, term)


MEANING = {
    "least_sum": least,
    "exceeding": lambda count, limit: np.maximum(count - limit, 0.0),
    "place_in_chunk": lambda token, chunk: token - chunk * (np.ceil(token / chunk) - 1),
    "chosen_load": load_of_chosen,
    "law_voltage": power_law_voltage,
    "law_speed": lambda level, floor: level / np.maximum(floor, power_law_voltage(level)) ** 2,
    "floor_div": lambda amount, size: np.floor(amount / size),
    "clustered_part": lambda expected, clustering: (1 + expected / clustering) ** -clustering,
    "triangular_part": triangular,
    "max_sum": sum_of_larger_lines,
    "fraction_power": np.power,
    "geometric_sum": geometric,
    "Max": lambda *args: np.maximum.reduce(np.broadcast_arrays(*args)),
    "Min": lambda *args: np.minimum.reduce(np.broadcast_arrays(*args)),
    "ceil_div": lambda amount, size: np.ceil(amount / size),
    "log2": np.log2,
    "ring_share": lambda ranks: 1 - 1 / ranks,
    "bubble": lambda stages, virtual: (stages - 1) / virtual,
    "less_one": lambda count: count - 1,
    "complement": lambda fraction: 1 - fraction,
    "above_one": lambda count: np.where(count > 1, 1.0, 0.0),
    "stop_gradient": lambda count: count,
    "Add": lambda *args: sum(args),
    "Mul": lambda *args: np.prod(np.broadcast_arrays(*args), axis=0),
    "Pow": np.power,
}


def evaluate(expr: Any, points: Points) -> Any:
    """The value of `expr` where its symbols are arrays (or numbers) of `points`."""
    memo: dict[Any, Any] = {}
    expr = sympy.sympify(expr)
    waiting = [expr]
    while waiting:
        missing = [arg for arg in waiting[-1].args if arg not in memo]
        if missing:
            waiting += missing
            continue
        node = waiting.pop()
        if node.is_Number:
            memo[node] = np.float64(node)
        elif node.is_Symbol:
            memo[node] = np.asarray(points[node], dtype=np.float64)
        else:
            memo[node] = MEANING[node.func.__name__](*(memo[arg] for arg in node.args))
    return memo[expr]


def sample(symbols: Any, seed: int, size: int = 4096, decades: float = 3.0, zeros: bool = True) -> Points:
    """`size` random points of the domains of `symbols`: counts are whole, the edges of every domain are hit.

    With `zeros` off every value is positive and counts need not be whole, as log-log curvature wants it.
    """
    random = np.random.default_rng(seed)
    points: Points = {}
    for symbol in sorted(symbols, key=str):
        domain = SYMBOLS[str(symbol)].domain
        wide = 10.0 ** random.uniform(-decades, decades, size)
        if domain == COUNT:
            values = 10.0 ** random.uniform(0, decades, size)
            values = np.where(random.random(size) < 0.1, 1.0, np.floor(values) if zeros else values)
        elif domain == FRACTION:
            values = random.random(size)
            if zeros:
                values = np.where(random.random(size) < 0.2, np.round(values), values)
        elif domain == ZERO_UP:
            values = np.where(random.random(size) < 0.1, 0.0, wide) if zeros else wide
        else:
            assert domain == POSITIVE
            values = wide
        points[symbol] = values
    return points


def raised(points: Points, symbol: Any, seed: int) -> Points:
    """The same points with one symbol larger, still in its domain."""
    random = np.random.default_rng(seed + 1)
    old = points[symbol]
    domain = SYMBOLS[str(symbol)].domain
    if domain == FRACTION:
        new = old + (1 - old) * random.random(old.shape)
    elif domain == COUNT:
        new = old + random.integers(1, 9, old.shape) * np.where(random.random(old.shape) < 0.5, 1, np.ceil(old))
    else:
        new = old * (1 + 10.0 ** random.uniform(-3, 1, old.shape)) + (old == 0) * random.random(old.shape)
    return {**points, symbol: new}


def worst_fall(expr: Any, symbol: Any, direction: int, seed: int, **how: Any) -> float:
    """By how much, of its size, `expr` moves against `direction` as `symbol` rises; rounding is about 1e-15."""
    points = sample(expr.free_symbols, seed, **how)
    before, after = evaluate(expr, points), evaluate(expr, raised(points, symbol, seed))
    against = (before - after) * direction
    size = np.maximum(np.maximum(np.abs(before), np.abs(after)), np.finfo(float).tiny)
    return float(np.max(against / size, initial=0.0))


def worst_bend(expr: Any, curvature: str, seed: int, **how: Any) -> float:
    """By how much, of its size, `expr` at geometric midpoints contradicts its log-log curvature."""
    free = expr.free_symbols
    one, two = sample(free, seed, zeros=False, **how), sample(free, seed + 1, zeros=False, **how)
    middle = {symbol: np.sqrt(one[symbol] * two[symbol]) for symbol in free}
    chord = np.sqrt(evaluate(expr, one)) * np.sqrt(evaluate(expr, two))
    found = evaluate(expr, middle)
    excess = found - chord
    wrong = {"convex": excess, "concave": -excess, "affine": np.abs(excess)}[curvature]
    return float(np.max(wrong / np.maximum(np.maximum(chord, found), np.finfo(float).tiny), initial=0.0))

"""What Hypothesis draws: seeds for batches of points, random expressions of the cost language, structures."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy
from hypothesis import strategies as st

from symperf.codegen.lower import lower
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
from symperf.formulas.language.symbols import COUNT, FRACTION, POSITIVE, SYMBOLS, ZERO_UP
from symperf.models.configs import Architecture
from symperf.plans.structure import Structure

if TYPE_CHECKING:
    from symperf.codegen.program import Program

seeds = st.integers(0, 2**32 - 2)
"""Seeds of NumPy generators: a law draws one and checks thousands of points."""

COUNTS = [SYMBOLS[name].symbol for name in ("ranks", "stages", "vpp", "rows", "columns")]
FRACTIONS = [SYMBOLS[name].symbol for name in ("overlap", "overlap_tp")]
POSITIVES = [SYMBOLS[name].symbol for name in ("rate", "bandwidth", "element_bytes")]
ZERO_UPS = [SYMBOLS[name].symbol for name in ("message_bytes", "link_latency")]
for _domain, _group in ((COUNT, COUNTS), (FRACTION, FRACTIONS), (POSITIVE, POSITIVES), (ZERO_UP, ZERO_UPS)):
    assert all(SYMBOLS[str(symbol)].domain == _domain for symbol in _group)

numbers = st.fractions(min_value=0, max_value=9, max_denominator=8).map(
    lambda f: sympy.Rational(f.numerator, f.denominator)
)
positive_numbers = numbers.filter(lambda number: number > 0)
exponents = st.sampled_from([sympy.Rational(*pair) for pair in ((2, 1), (3, 1), (1, 2), (-1, 1), (-2, 1), (-1, 2))])


def _atom(head: Any, *parts: Any) -> Any:
    return st.tuples(*parts).map(lambda args: head(*args))


def counts(depth: int) -> Any:
    """Expressions of at least one."""
    leaf = st.sampled_from(COUNTS) | st.integers(1, 9).map(sympy.Integer)
    if depth == 0:
        return leaf
    below = counts(depth - 1)
    anything = costs(depth - 1)
    return st.one_of(
        leaf,
        _atom(Max, below, anything),
        _atom(Min, below, below),
        _atom(ceil_div, positives(depth - 1), positives(depth - 1)),
        _atom(sympy.Mul, below, below),
        _atom(sympy.Add, below, anything),
    )


def fractions(depth: int) -> Any:
    """Expressions between zero and one."""
    leaf = st.sampled_from(FRACTIONS)
    if depth == 0:
        return leaf
    below = fractions(depth - 1)
    return st.one_of(
        leaf,
        _atom(complement, below),
        _atom(sympy.Mul, below, below),
        _atom(ring_share, counts(depth - 1)),
        _atom(above_one, counts(depth - 1)),
    )


def positives(depth: int) -> Any:
    """Expressions above zero."""
    leaf = st.sampled_from(POSITIVES) | st.sampled_from(COUNTS) | positive_numbers
    if depth == 0:
        return leaf
    below = positives(depth - 1)
    anything = costs(depth - 1)
    return st.one_of(
        leaf,
        counts(depth - 1),
        _atom(Max, below, anything),
        _atom(Min, below, below),
        _atom(sympy.Add, below, anything),
        _atom(sympy.Mul, below, below),
        _atom(sympy.Pow, below, exponents),
    )


def costs(depth: int) -> Any:
    """Expressions of at least zero: any that the language can say."""
    leaf = st.sampled_from(ZERO_UPS) | numbers
    if depth == 0:
        return leaf | st.sampled_from(COUNTS) | st.sampled_from(POSITIVES)
    below = costs(depth - 1)
    return st.one_of(
        leaf,
        positives(depth - 1),
        fractions(depth - 1),
        _atom(log2, counts(depth - 1)),
        _atom(less_one, counts(depth - 1)),
        _atom(bubble, counts(depth - 1), counts(depth - 1)),
        _atom(Max, below, below),
        _atom(Min, below, below),
        _atom(sympy.Add, below, below),
        _atom(sympy.Mul, below, below),
    )


expressions = costs(3)
"""Non-negative expressions of the cost language, of any curvature."""


def _has(expr: Any, *heads: Any) -> bool:
    return bool(sympy.sympify(expr).has(*heads))


smooth_expressions = expressions.filter(lambda expr: not _has(expr, ceil_div, above_one, Max, Min))
"""Expressions that can be differentiated everywhere."""

continuous_expressions = expressions.filter(lambda expr: not _has(expr, ceil_div, above_one))
"""Expressions without jumps: they may have kinks."""

LEAVES = [*COUNTS, *FRACTIONS, *POSITIVES, *ZERO_UPS]

ratios = st.fractions(Fraction(1, 9), 99, max_denominator=9)

exact_points = st.fixed_dictionaries(
    {
        **dict.fromkeys(COUNTS, st.integers(1, 60).map(Fraction)),
        **dict.fromkeys(FRACTIONS, st.fractions(0, 1, max_denominator=9)),
        **dict.fromkeys(POSITIVES, ratios),
        **dict.fromkeys(ZERO_UPS, ratios | st.just(Fraction(0))),
    }
)
"""A rational number for every symbol of the drawn expressions, in its domain."""

architectures = st.builds(
    Architecture,
    gated_mlp=st.booleans(),
    norm=st.sampled_from(("layer_norm", "rms_norm")),
    positions=st.sampled_from(("learned", "rotary", "alibi", "none")),
    tied_embeddings=st.booleans(),
    parallel_block=st.booleans(),
    block_norms=st.sampled_from((1, 2, 4)),
    norm_bias=st.booleans(),
    qkv_bias=st.booleans(),
    attention_output_bias=st.booleans(),
    mlp_bias=st.booleans(),
    head_bias=st.booleans(),
    query_key_norm=st.sampled_from(("none", "per_head", "full_width")),
    embedding_norm=st.booleans(),
    final_norm=st.booleans(),
    dropout=st.booleans(),
)

structures = st.builds(
    Structure,
    architecture=architectures,
    attention=st.sampled_from(("eager", "flash")),
    recompute=st.sampled_from(("none", "selective", "full")),
    sequence_parallel=st.booleans(),
    schedule=st.sampled_from(("gpipe", "1f1b", "interleaved")),
    zero=st.sampled_from((0, 1)),
    dropout=st.booleans(),
    loss_scaling=st.booleans(),
    quantised=st.booleans(),
    l2=st.booleans(),
    tiers=st.sampled_from((0, 1, 2)),
)
"""Any structure of a training step."""


def _program(expressions_drawn: list[Any], share: bool) -> Program:
    parts = [sympy.Symbol(f"part{k}") for k in range(len(expressions_drawn))]
    outputs = {f"plain{k}": 1 + expr for k, expr in enumerate(expressions_drawn)}
    outputs |= {"sum": sympy.Add(*parts), "quotient": parts[0] / (1 + parts[-1])}
    return lower(zip(parts, expressions_drawn, strict=True), outputs, share=share)


programs = st.builds(_program, st.lists(expressions, min_size=1, max_size=3), st.booleans())
"""Programs of the cost language with lets and several outputs, lowered with and without a search for common parts."""

float_points = exact_points.map(lambda point: {str(symbol): float(value) for symbol, value in point.items()})
"""A float for the name of every symbol of the drawn expressions, in its domain."""

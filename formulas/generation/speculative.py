"""Speculative decoding: a draft model proposes k tokens, and one step of the target verifies them all."""

from __future__ import annotations

from typing import Any

from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..mathematics.fractions import geometric_sum
from ..sources import LEVIATHAN


@formula(
    glyph="n_{acc}",
    dimension=ONE,
    source=LEVIATHAN,
    increasing="acceptance draft_length",
)
def expected_tokens(acceptance: Any, draft_length: Any) -> Any:
    """Mean tokens that a step yields: 1 + alpha + ... + alpha^k = (1 - alpha^(k + 1)) / (1 - alpha).

    Assumes: drafted tokens are accepted independently, each with probability alpha; the step itself yields one more.

    Source: Leviathan et al. 2023, equation 1.

    >>> from sympy import Rational
    >>> expected_tokens(Rational(1, 2), 1), expected_tokens(0, 5)
    (3/2, 1)
    """
    return geometric_sum(acceptance, draft_length)


@formula(
    glyph="n_{acc,i}",
    dimension=ONE,
    source=LEVIATHAN,
    increasing="acceptance later_tokens",
    curvature="convex",
)
def tokens_from_position(acceptance: Any, later_tokens: Any) -> Any:
    """Mean tokens that a step yields from a drafted position on, and the model's own: 1 + alpha_i n_{i+1}.

    From the last position back to the first, with n = 1 behind the last, it gives
    1 + alpha_1 + alpha_1 alpha_2 + ... for a probability of each position.

    Assumes: a position is accepted with its own probability once all before it are, whatever these were.

    Source: Leviathan et al. 2023, equation 1, is that of one probability; positions of heads have their own (Li et al.
    2024, EAGLE).

    >>> from sympy import Rational
    >>> tokens_from_position(Rational(4, 5), tokens_from_position(Rational(1, 2), 1))
    11/5
    """
    return 1 + acceptance * later_tokens


@formula(
    glyph=r"\tau_{spec}",
    dimension=SECOND,
    source=LEVIATHAN,
    increasing="draft_time verify_time",
    decreasing="acceptance",
)
def speculative_token_time(acceptance: Any, draft_length: Any, draft_time: Any, verify_time: Any) -> Any:
    """Mean time of an output token: (k tau_q + tau_v) / E.

    Assumes: drafting and verifying take turns; the step that verifies has its own time for k + 1 tokens.

    Source: Leviathan et al. 2023, theorem 3.8, with the true time of the step in place of that of one token.

    >>> from sympy import Rational
    >>> speculative_token_time(Rational(1, 2), 1, 1, 2)
    2
    """
    return (draft_length * draft_time + verify_time) / geometric_sum(acceptance, draft_length)


@formula(
    glyph="S_d",
    dimension=ONE,
    source=LEVIATHAN,
    increasing="acceptance decode_time",
    decreasing="draft_time verify_time",
)
def speculative_speedup(acceptance: Any, draft_length: Any, draft_time: Any, verify_time: Any, decode_time: Any) -> Any:
    """How much faster tokens come than by decoding one at a time: E tau_d / (k tau_q + tau_v).

    Assumes: as `speculative_token_time`, at the same number of sequences.

    Source: Leviathan et al. 2023, theorem 3.8: with tau_v = tau_d and tau_q = c tau_d it is E / (k c + 1).

    >>> from sympy import Rational
    >>> speculative_speedup(Rational(1, 2), 1, Rational(1, 4), 1, 1)
    6/5
    """
    return decode_time / speculative_token_time(acceptance, draft_length, draft_time, verify_time)

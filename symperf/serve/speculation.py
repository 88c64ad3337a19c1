"""Speculative decoding in numbers: what a step yields, what it costs, and what that brings to sequences alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, quote
from ..common.numbers import is_finite
from ..plans.plan_fields import FIELDS
from .program import form

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..models.model import Model
    from ..plans.plan import Plan

EXPERT_FIELDS: Final = ("ep", "expert_tp", "node_limit", "expert_exchange", "redundant_experts")
"""Fields of a plan that only experts have."""
Acceptance = float | tuple[float, ...]
"""A probability for every drafted position, or one for each; the last holds for all later ones."""


def checked_acceptance(value: Any) -> Acceptance:
    """The probability, or those of the positions.

    Raises:
        InputError: none is given, or one is none.
    """
    if value is None:
        raise InputError("acceptance: missing, expected a probability between 0 and 1 for the drafted tokens")
    several = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not several:
        raise InputError("acceptance: found none, expected a probability for each position")
    for place, each in enumerate(several, 1):
        if not (is_finite(each) and 0 <= each <= 1):
            where = f"acceptance of position {place}" if len(several) > 1 else "acceptance"
            raise InputError(f"{where}: found {quote(each)}, expected a probability between 0 and 1")
    return several if len(several) > 1 else float(several[0])


def draft_plan(plan: Plan, draft: Model) -> Plan:
    """The plan that what drafts runs under: on the device whole, and without what only experts have if it has none."""
    left: dict[str, Any] = {"offload": None}
    if not draft.architecture.routed:
        left |= {name: FIELDS[name].default for name in EXPERT_FIELDS}
    return replace(plan, **left)


def expected_tokens(acceptance: Acceptance, length: int) -> float:
    """Mean tokens of a step that verifies `length` drafted ones.

    >>> expected_tokens((0.8, 0.5), 2), round(expected_tokens((0.8, 0.5), 3), 9)
    (2.2, 2.4)
    """
    if not isinstance(acceptance, tuple) and 0 < acceptance < 1:
        return form("expected_tokens", acceptance=acceptance, draft_length=length)
    several = acceptance if isinstance(acceptance, tuple) else (acceptance,)
    found = 1.0
    for place in reversed(range(length)):
        found = form("tokens_from_position", acceptance=several[min(place, len(several) - 1)], later_tokens=found)
    return found


def speedup(acceptance: Acceptance, length: int, draft: float, verify: float, plain: float) -> float:
    """How much faster tokens come than a step at a time.

    Args:
        acceptance: of drafted tokens.
        length: drafted tokens.
        draft: seconds of one draft, the mean.
        verify: seconds of the step that verifies.
        plain: seconds of a step of one token.
    """
    if not isinstance(acceptance, tuple) and 0 < acceptance < 1:
        times = {"draft_time": draft, "verify_time": verify, "decode_time": plain}
        return form("speculative_speedup", acceptance=acceptance, draft_length=length, **times)
    return plain * expected_tokens(acceptance, length) / (length * draft + verify)


def best_length(lengths: range, seconds: Callable[[int], float]) -> int:
    """The draft length of the least time of a token; the shortest of equals."""
    found = min(lengths, key=seconds)
    assert math.isfinite(seconds(found))
    return found

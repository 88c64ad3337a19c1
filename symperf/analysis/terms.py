"""The terms that a resource's share of a quantity is due to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..codegen.builder import operands_of
from ..codegen.interpret import adjoints, arrays

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .numbers import Numbers
    from .subject import Subject

MOST = 3
"""Terms that are named."""
LEAST = 0.01
"""Share of the quantity below which a term is not."""


def largest_terms(at: Numbers, bounds: Sequence[str | None]) -> list[tuple[tuple[str, float], ...]]:
    """The terms through which a resource has most of its share, at points.

    Args:
        at: the points.
        bounds: the resource at each point.

    Returns:
        At each point names and shares of the quantity, the largest first; they are what the term's own parts come to,
        counted as often as the term counts in the quantity.
    """
    subject = at.subject
    terms = {name: p for name, p in subject.program.lets.items() if "/" in name and p != subject.position}
    with np.errstate(all="ignore"):
        slopes = adjoints(subject.program, at.values, subject.bearing, arrays(), stop=set(_waiting(subject, terms)))
        total = at.values[subject.bearing]
        shares = {
            name: np.broadcast_to(slopes[position] * at.parts[position] / total, (len(subject.names), at.count))
            for name, position in terms.items()
            if position in slopes and at.parts[position] is not None
        }
    found = []
    for k, bound in enumerate(bounds):
        row = subject.names.index(bound) if bound in subject.names else None
        due = [] if row is None else sorted(((float(e[row, k]), name) for name, e in shares.items()), reverse=True)
        found.append(tuple((name, share) for share, name in due[:MOST] if share >= LEAST))
    return found


def _waiting(subject: Subject, terms: Mapping[str, int]) -> list[int]:
    """The terms that are made of other terms, as idle time is of those that it waits for."""
    own = set(terms.values())
    reads = [False] * len(subject.program)
    for at in range(len(subject.program)):
        reads[at] = any(operand in own or reads[operand] for operand in operands_of(subject.program, at))
    return [position for position in own if reads[position]]

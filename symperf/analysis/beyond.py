"""What else binds at a value of a symbol, or soon after it: memory, a model's positions and window, and its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from .measures import spell

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..evaluation.base_run import BaseRun

NEARLY = 0.9
"""Part of the capacity from which the memory is told of."""
NEXT = 64
"""Whole numbers that are tried beyond an answer."""


def also_binds(base: BaseRun, run: BaseRun, asked: Collection[str]) -> tuple[str, ...]:
    """Sentences about what else binds.

    Args:
        base: the run as it was.
        run: with the symbol at the answer.
        asked: quantities that have a target.
    """
    found = []
    memory, capacity = run.needed_bytes, run.value("capacity_bytes")
    if "memory" not in asked and memory > NEARLY * capacity:
        told = f"memory is {spell('memory', memory)} of {spell('memory', capacity)}"
        before = "It does not fit" if memory == base.needed_bytes else "The capacity ends before"
        found.append(f"{before if memory > capacity else 'The capacity is near'}: {told}.")
    tokens, now = _tokens(run), _tokens(base)
    context, window = run.model.context, run.model.sliding_window
    if tokens != now and context and tokens > context:
        found.append(f"The position table of {context} tokens ends before: {run.model.name} is made for no more.")
    if tokens != now and window and tokens > window > 0:
        found.append(f"The attention window of {window} tokens ends before: windowed layers see no more.")
    told = f"the {context} tokens that"
    new = [warning for warning in run.warnings if warning not in base.warnings and told not in warning]
    return tuple(found + [f"{warning[0].upper()}{warning[1:]}." for warning in new])


def _tokens(run: BaseRun) -> int:
    """The longest sequence of a run."""
    bound = run.bound
    parts = ("sequence",) if "sequence" in bound else ("prompt", "generate")
    return int(sum(bound[name][0] for name in parts if name in bound))


def next_legal(run: BaseRun, symbol: str, n: int, step: int, ends: tuple[int, int]) -> tuple[BaseRun | None, str]:
    """The next whole number that a run accepts, and why it refuses those beyond where it accepts none.

    Args:
        run: the run.
        symbol: a whole number.
        n: where to begin, exclusive.
        step: +1 for more, -1 for less.
        ends: the first and the last number to consider.
    """
    near = [n + step * k for k in range(1, NEXT + 1)]
    far = [n * k for k in (2, 3, 4, 8, 16)] if step > 0 else [n // k for k in (2, 3, 4, 8, 16) if n % k == 0]
    reasons = {}
    for other in dict.fromkeys((*near, *far)):
        if not ends[0] <= other <= ends[1]:
            continue
        try:
            return run.bind(**{symbol: other}), ""
        except InputError as error:
            reasons[other] = str(error)
    return None, next((reasons[n] for n in far if n in reasons), next(iter(reasons.values()), ""))

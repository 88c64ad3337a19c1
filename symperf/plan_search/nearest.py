"""The number of devices nearest to one that no plan can use: first by each degree alone, then by the rules of all."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plans.plan import LARGEST
from ..plans.validity import RULES
from .evaluate import lay_out_space
from .legal import holding
from .space import DEGREES, LAYOUT, combinations, divisors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .space import SearchQuestion

    Array = np.ndarray[Any, Any]

FARTHEST = 1 << 10
"""How far from the number of devices another is looked for."""
WIDE = 720_720
"""A number with many divisors: with so many devices every form of plans has rows."""
PRODUCTS = 1_000_000
"""Products of degrees that are listed at most; where there might be more, every number is tried."""


def nearest_devices(question: SearchQuestion) -> int | None:
    """The number of devices nearest to the one asked for that a legal plan can use; the smaller of two."""
    for count in _possible(question):
        if lay_out_space(_slim(question, count)).legal:
            return count
    return None


def _slim(question: SearchQuestion, devices: int) -> SearchQuestion:
    """The question for other devices, without choices that no rule reads."""
    kept = {name: question.candidates[name][:1] for name in ("recompute", "zero")}
    return dataclasses.replace(question, devices=devices, required={**question.required, **kept})


def _possible(question: SearchQuestion) -> Iterator[int]:
    """Numbers of devices, nearest first, without those that are no product of degrees that could each be one's.

    A degree that breaks a rule whatever all others are cannot be in a plan.
    """
    near = [
        count
        for distance in range(1, FARTHEST)
        for count in (question.devices - distance, question.devices + distance)
        if 1 <= count <= LARGEST
    ]
    values = np.array(sorted({part for count in near for part in divisors(count)}), dtype=np.int64)
    some = {name: values[_could_be(question, name, values)] for name in LAYOUT}
    *narrow, last = sorted(some, key=lambda name: len(some[name]))
    if math.prod(len(some[name]) for name in narrow) > PRODUCTS:
        yield from near
        return
    product = np.ones(1, dtype=np.int64)
    for name in narrow:
        product = np.unique(np.multiply.outer(product, some[name]))
        product = product[product <= max(near)]
    for count in near:
        if np.isin(count // product[count % product == 0], some[last]).any():
            yield count


def _could_be(question: SearchQuestion, name: str, values: Array) -> Array:
    """Which values of a degree break no rule that reads no other degree of the layout, with some choices."""
    wide = _slim(question, WIDE)
    if name in question.required:
        good = np.isin(values, question.required[name])
    else:
        good = values <= question.limits.get(name, LARGEST)
    others = {other: np.array(wide.candidates[other]) for other in DEGREES if other not in LAYOUT}
    names = question.constants
    chosen = {c.constants for c in combinations(wide) if not c.refusal}
    known: dict[tuple[Any, ...], Array] = {}
    found = np.zeros(len(values), dtype=bool)
    for constants in chosen:
        fixed = dict(zip(names, constants, strict=True))
        fits = good.copy()
        for rule in RULES:
            read = rule.tree.names() - set(names)
            beside = sorted(read - {name})
            if name not in read or len(beside) > 1 or any(other not in others for other in beside):
                continue
            key = rule.name, *(fixed[each] for each in sorted(rule.tree.names() & set(names)))
            if key not in known:
                columns = {name: values[:, None], **{other: others[other][None, :] for other in beside}}
                with np.errstate(all="ignore"):  # both sides of an `or` are computed
                    holds = np.atleast_2d(holding(rule.tree, {**fixed, **columns}))
                known[key] = np.asarray(np.broadcast_to(holds, (len(values), holds.shape[1])).any(axis=1))
            fits &= known[key]
        found |= fits
    return found

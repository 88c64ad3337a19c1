"""Searches without an answer: what is nearest to one, and which change would give one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NoReturn

from ..analysis import Unreachable
from ..common.errors import InputError
from ..plans.plan import LARGEST, Plan
from ..plans.structure import OFFLOADS
from .evaluate import evaluate, lay_out_space
from .nearest import nearest_devices
from .tally import Tally

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .search import Found
    from .space import SearchQuestion

DOUBLINGS = 8
"""How often the devices are doubled in search of a cluster that is large enough."""
FINER = 12
"""Clusters tried between the last that is too small and the first that is large enough."""


def fail(found: Sequence[Found]) -> NoReturn:
    """Tell why no plan is left.

    Raises:
        InputError: no plan can use so many devices; names the nearest number that one can.
        Unreachable: no plan fits; names the smallest cluster found where one does, and what else would make it fit.
    """
    legal = [each for each in found if each.space.legal]
    if not legal:
        raise InputError(_unusable(found))
    last = legal[-1]
    assert last.tally.least is not None
    need, place = last.tally.least
    have = last.question.capacity if last.question.max_memory is None else last.question.max_memory
    have = min(have, last.question.capacity)
    plan = Plan(**last.space.fields(place))
    text = (
        f"{last.question.base.model.name} fits in no plan on {last.question.devices} x "
        f"{last.question.base.system.name}: the least memory is {need / 2**30:.2f} GiB of {have / 2**30:.2f} GiB "
        f"({plan})"
    )
    ways = [*_relax_constraints(last.question), *_larger(last.question)]
    raise Unreachable(f"{text}; {'; '.join(ways) or 'no larger cluster that was tried has one that fits'}", need, 0.0)


def _unusable(found: Sequence[Found]) -> str:
    question = found[-1].question
    if found[-1].space.refusal:
        return found[-1].space.refusal
    reasons = [name.replace("_", " ") for name in list(found[-1].rejected)[:3]]
    near = nearest_devices(question)
    told = f"; the nearest number that one can use is {near}" if near else ""
    return f"devices: no legal plan uses {question.devices} devices ({', '.join(reasons)}){told}"


def _fits(question: SearchQuestion) -> dict[str, Any] | None:
    """A plan that fits: that of least memory."""
    space = lay_out_space(question)
    tally = Tally(1, [made.length for made in space.tables], len(space.combinations), front=False)
    if not evaluate(space, tally, memory_only=True):
        raise KeyboardInterrupt  # half a look says nothing
    return space.fields(tally.least[1]) if tally.feasible and tally.least is not None else None


def _relax_constraints(question: SearchQuestion) -> list[str]:
    """What fits on the same devices without one of the constraints, or with what the host can keep."""
    found = []
    for name, values in question.required.items():
        rest = {other: value for other, value in question.required.items() if other != name}
        plan = _fits(dataclasses.replace(question, required=rest))
        if plan is not None:
            asked = " or ".join(map(str, values))
            found.append(f"it fits with {name} = {plan[name]} in place of {asked}")
    for name, most in question.limits.items():
        others = {other: value for other, value in question.limits.items() if other != name}
        plan = _fits(dataclasses.replace(question, limits=others))
        if plan is not None:
            found.append(f"it fits with {name} = {plan[name]}, above the limit of {most}")
    if question.max_memory is not None and _fits(dataclasses.replace(question, max_memory=None)) is not None:
        found.append("it fits without max_memory")
    if not found and "offload" not in question.required and "host_bandwidth" in question.base.system.quantities:
        for what in (*OFFLOADS, ",".join(OFFLOADS)):
            if _fits(dataclasses.replace(question, required={**question.required, "offload": (what,)})) is not None:
                return [f"it fits with offload = {what}"]
    return found


def _larger(question: SearchQuestion) -> list[str]:
    """The smallest larger cluster that was tried and has a plan that fits."""
    small = question.devices
    for _ in range(DOUBLINGS):
        large = 2 * small
        if large > LARGEST:
            return []
        if _fits(dataclasses.replace(question, devices=large)) is not None:
            step = max((large - small) // FINER, 1)
            for count in range(small + step, large, step):
                if _fits(dataclasses.replace(question, devices=count)) is not None:
                    return [f"the smallest cluster found that it fits has {count} devices"]
            return [f"the smallest cluster found that it fits has {large} devices"]
        small = large
    return []

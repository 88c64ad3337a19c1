"""Searches for inference without an answer: what is nearest to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ...analysis import Unreachable
from ...common.errors import InputError
from .reasons import REMEDIES, reasons

if TYPE_CHECKING:
    from .load import Survey
    from .search import InferenceAnswer


def fail(answer: InferenceAnswer) -> NoReturn:
    """Tell why no plan is left.

    Raises:
        InputError: no plan can use so many devices.
        Unreachable: nothing fits, or the limits are out of reach; names the least memory, or the least times.
    """
    surveys = [answer.survey, *(answer.pools or ())]
    question = answer.questions[-1]
    where = f"{question.model.name} on {', '.join(str(q.devices) for q in answer.questions)} x {question.system.name}"
    firsts = [each.first for each in surveys if each.first is not None]
    if firsts:
        raise Unreachable(f"no plan of {where} is within the limits: {_nearest(answer, surveys)}", min(firsts), 0.0)
    short = [each.least for each in surveys if each.least is not None]
    if short:
        need, have = min(short)
        raise Unreachable(
            f"{where}: fits in no plan; the least memory is {need / 2**30:.2f} GiB of {have / 2**30:.2f} GiB; "
            f"what helps: {REMEDIES['does_not_fit'][1]}",
            need,
            0.0,
        )
    if answer.survey.refusal:
        raise InputError(answer.survey.refusal)
    told = "; ".join(str(each) for each in reasons(answer.survey)[:3])
    raise InputError(f"devices: no legal plan uses {question.devices} devices ({told or 'none was left'})")


def _nearest(answer: InferenceAnswer, surveys: list[Survey]) -> str:
    """The limits, each with the least time that a plan which fits reaches."""
    question = answer.questions[-1]
    what = "of the batch" if question.batch else "of a request alone"
    found = []
    for name, limit, times in (
        ("TTFT", question.ttft, [each.first for each in surveys if each.first is not None]),
        ("TPOT", question.tpot, [each.later for each in surveys if each.later is not None]),
    ):
        if limit is not None and times:
            found.append(f"the least {name} {what} is {min(times):.4g} s, the limit {limit:.4g} s")
    text = "; ".join(found)
    reached = all(
        limit is None or (least is not None and least <= limit)
        for limit, least in ((question.ttft, answer.survey.first), (question.tpot, answer.survey.later))
    )
    return f"{text}; each is in reach alone, but not both with one plan" if reached else text

"""What a plan of a search spends on a request: dollars of its devices, and joules.

Devices are paid and draw static power for as long as the load, or the batch, keeps them. The joules of FLOPs and bytes
of a load are those of a static batch of as many sequences as a replica decodes; of two pools, those of its prompts in
one and of its later tokens in the other.
"""

from __future__ import annotations

from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError
from ...spending.prices import rent_of
from .batch import BatchPlan
from .pools import Pair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...runs.inference_run import InferenceRun
    from .load import LoadPlan
    from .space import InferenceQuestion


def check_priced(question: InferenceQuestion) -> None:
    """Refuse to count dollars on a system without a price.

    Raises:
        InputError: naming what to set.
    """
    question.base.check_price()


def energy_basis(question: InferenceQuestion) -> str:
    """What joules are counted from: "resources", or "board" where the system tells a board's power alone.

    Raises:
        InputError: the system tells neither energies nor a power.
    """
    return "board" if question.base.told_energies() is None else "resources"


def rented(question: InferenceQuestion) -> bool:
    """Whether dollars are those of device hours alone, so that they need no joules."""
    return rent_of(question.base.system) is not None


def dollars(plan: LoadPlan | BatchPlan | Pair, rate: float, sequences: float) -> float | None:
    """Dollars of a request; None on a system without a price, and of drafted tokens on devices that are owned.

    The latter pay for electricity, and joules are not told of drafted tokens.

    Args:
        plan: what serves it.
        rate: requests in a second, all devices together.
        sequences: that a replica decodes.
    """
    question = plan.question
    rent = rent_of(question.base.system)
    if rent is not None:
        return rent.value * question.devices / rate
    if question.draft is not None:
        return None
    try:
        check_priced(question)
    except InputError:
        return None
    run = _like(plan, sequences)
    cost = run.cost()
    return cost.dollars / cost.devices / cost.time * question.devices / rate


def joules(plan: LoadPlan | BatchPlan | Pair, rate: float, sequences: float) -> float:
    """Joules of a request; the arguments are those of `dollars`.

    Raises:
        InputError: the system tells neither energies nor a power.
    """
    if isinstance(plan, BatchPlan):
        return float(plan.run.energy().total / plan.fields["batch"])
    if not isinstance(plan, Pair):
        moved, watts = _split(_run(plan.question, plan.fields, sequences))
        return float(moved + watts * plan.question.devices / rate)
    decode, prefill = plan.decode, plan.prefill
    whole, watts = _split(_run(decode.question, decode.fields, sequences))
    here, there = (
        _split(_run(changed(pool.question, generate=1), pool.fields, held))[0]
        for pool, held in ((prefill, 1.0), (decode, sequences))
    )
    moved = here + whole - there
    return moved + watts * (decode.question.devices + prefill.question.devices) / rate


def _like(plan: LoadPlan | BatchPlan | Pair, sequences: float) -> InferenceRun:
    """The static batch that a plan is like."""
    if isinstance(plan, BatchPlan):
        return plan.run
    part = plan.decode if isinstance(plan, Pair) else plan
    return _run(part.question, part.fields, sequences)


def _run(question: InferenceQuestion, fields: Mapping[str, Any], sequences: float) -> InferenceRun:
    """A static batch of as many sequences in each replica, in a micro-batch for each stage."""
    held = max(1, round(sequences))
    groups = min(fields["pp"], held)
    share = held // groups
    batch = {"micro_batch": share, "batch": fields["dp"] * groups * share}
    return question.inference({**fields, **batch})


def _split(run: InferenceRun) -> tuple[float, float]:
    """Joules of a request's FLOPs and bytes, and watts that a device draws whatever it does."""
    energy = run.energy()
    kept = sum(value for name, value in energy.joules.items() if name in ("static", "board"))
    return (energy.total - kept) / run.work.batch, kept / energy.devices / energy.time

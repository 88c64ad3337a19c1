"""Choices of a plan that do not go together, whatever the numbers are: each has its own sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .architecture import RECURRENT
from .errors import InputError
from .structure import SPLIT

if TYPE_CHECKING:
    from .model import Model
    from .plan import Plan


def check_combination(plan: Plan, model: Model, attention: str) -> None:
    """Refuse choices that do not go together.

    Raises:
        InputError: one line that says which, and what would do.
    """
    schedule = plan.effective_schedule
    if plan.cp > 1:
        _check_context(model, attention)
    if schedule in SPLIT and plan.zero > 1:
        raise InputError(
            f"zero: stages 2 and 3 do not go with schedule {schedule}, which needs gradients and weights whole until "
            f"the last weight gradient; found zero = {plan.zero}"
        )
    if plan.zero_shards is not None and not plan.zero:
        raise InputError("zero_shards: hybrid sharding needs state to shard, found zero = 0; add --zero 1, 2 or 3")
    if plan.node_limit is not None and not model.architecture.routed:
        raise InputError(f"node_limit: found {plan.node_limit}, but {model.name} has no experts")
    given = [name for name in ("first_stage_layers", "last_stage_layers") if getattr(plan, name) is not None]
    if len(given) == 1:
        other = "last_stage_layers" if given[0] == "first_stage_layers" else "first_stage_layers"
        raise InputError(f"{given[0]}: needs {other} too, expected both or neither")
    if (given or plan.uneven_stages) and schedule == "interleaved":
        name = given[0] if given else "uneven_stages"
        raise InputError(f"{name}: interleaved stages must be equal; expected vpp = 1")
    if given and (schedule not in ("1f1b", "gpipe") or plan.zero > 1):
        raise InputError(
            f"{given[0]}: needs schedule 1f1b or gpipe and zero 0 or 1, found {schedule} and zero = {plan.zero}"
        )


def _check_context(model: Model, attention: str) -> None:
    recurrent = sorted({kind.mixer for kind in model.architecture.kinds} & set(RECURRENT))
    if recurrent:
        raise InputError(
            f"cp: {model.name} has layers with a recurrent state ({recurrent[0]}), whose tokens cannot be dealt to "
            "devices; expected cp = 1"
        )
    if attention != "flash":
        raise InputError("cp: parts of a sequence need flash attention, found eager; add --attention flash")

"""Choices of a plan that do not go together, whatever the numbers are: each has its own sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..models.architecture import RECURRENT
from .structure import MATRIX_MIXERS, SPLIT

if TYPE_CHECKING:
    from ..models.model import Model
    from ..systems.system import System
    from .plan import Plan


def check_combination(plan: Plan, model: Model, attention: str) -> None:
    """Refuse choices that do not go together.

    Raises:
        InputError: one line that says which, and what would do.
    """
    schedule = plan.effective_schedule
    if attention == "flash" and model.architecture.positions == "relative":
        raise InputError(
            f"attention: {model.name} learns biases of relative positions, for which flash kernels have no gradient; "
            "expected eager"
        )
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
    _check_state(plan, model)
    _check_offload(plan)
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


def _check_state(plan: Plan, model: Model) -> None:
    if plan.recompute_layers is not None and plan.recompute != "full":
        raise InputError(
            f"recompute_layers: counts layers of full recomputation, found recompute = {plan.recompute}; "
            "add --recompute full"
        )
    if plan.optimizer == "adafactor" and plan.zero:
        raise InputError(
            "optimizer: adafactor keeps sums over rows and columns of whole matrices, which shards of flattened "
            f"parameters do not have; expected zero = 0, found {plan.zero}"
        )
    low = plan.precision in ("fp8", "fp4")
    if plan.optimizer in ("adafactor", "muon") or low:
        other = sorted({kind.mixer for kind in model.architecture.kinds} - set(MATRIX_MIXERS))
        crossed = any(kind.cross for kind in model.architecture.kinds)
        if other or crossed or model.architecture.attention_gate or model.architecture.shared_key_value:
            name, value = ("precision", plan.precision) if low else ("optimizer", plan.optimizer)
            mixer = other[0] if other else "cross" if crossed else "attention with a gate or shared keys and values"
            raise InputError(f"{name}: {value} needs the matrices of every layer, and those of {mixer} are not listed")


def _check_offload(plan: Plan) -> None:
    given = plan.first_stage_layers is not None
    for what in plan.offloads:
        if what == "optimizer" and plan.optimizer != "adam":
            raise InputError(
                f"offload: the host updates with Adam only (DeepSpeed's CPU-Adam), found optimizer = {plan.optimizer}"
            )
        if what != "optimizer" and given:
            raise InputError(f"offload: {what} and given stages do not go together; expected equal or uneven stages")
        if what == "weights" and plan.effective_schedule in SPLIT:
            raise InputError(
                f"offload: weights do not go with schedule {plan.effective_schedule}, which needs them whole until the "
                "last weight gradient"
            )


def check_host(plan: Plan, system: System) -> None:
    """Refuse an offload to a host whose link or memory the system does not describe.

    Raises:
        InputError: what is missing.
    """
    needed = ["host_bandwidth"] if plan.offloads else []
    needed += ["host_memory_bandwidth"] if "optimizer" in plan.offloads else []
    for name in needed:
        if name not in system.quantities:
            what = "link to its host" if name == "host_bandwidth" else "bandwidth of its host's memory"
            raise InputError(f"offload: system {system.name} describes no {what} ({name}); add --set {name}=...")


def _check_context(model: Model, attention: str) -> None:
    if model.architecture.stacks == 2:
        raise InputError(
            f"cp: {model.name} has an encoder and a decoder, and attention from parts of one sequence to parts of "
            "another is not modelled; expected cp = 1"
        )
    recurrent = sorted({kind.mixer for kind in model.architecture.kinds} & set(RECURRENT))
    if recurrent:
        raise InputError(
            f"cp: {model.name} has layers with a recurrent state ({recurrent[0]}), whose tokens cannot be dealt to "
            "devices; expected cp = 1"
        )
    if attention != "flash":
        raise InputError("cp: parts of a sequence need flash attention, found eager; add --attention flash")

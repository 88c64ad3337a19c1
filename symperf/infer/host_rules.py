"""What an inference may leave to its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..plans.host_rules import check_host
from ..plans.structure import HOSTED

if TYPE_CHECKING:
    from ..models.model import Model
    from ..plans.plan import Plan
    from ..systems.system import System


def check_offload(plan: Plan, model: Model, system: System) -> None:
    """Refuse what a host cannot keep or compute for a model in inference.

    Raises:
        InputError: what is missing, or does not go together.
    """
    kept = plan.offloads
    for name in kept:
        if name not in HOSTED:
            raise InputError(f"offload: found {name}, expected {' or '.join(HOSTED)} in inference")
    check_host(plan, system)
    architecture = model.architecture
    if kept and (architecture.stacks == 2 or any(kind.shared for kind in architecture.kinds)):
        raise InputError(f"offload: found {','.join(kept)}, expected none: not modelled for {model.name}")
    if "cache" in kept and not architecture.has("attention", "local_attention", "latent_attention"):
        raise InputError(f"offload: found cache, but {model.name} keeps no keys and values that grow")
    for name in ("cp", "dcp"):
        if "cache" in kept and getattr(plan, name) > 1:
            raise InputError(f"offload: cache does not go with {name} = {getattr(plan, name)}, expected 1")
    if "experts" in kept and not architecture.routed:
        raise InputError(f"offload: found experts, but {model.name} has none")
    if "experts" in kept and plan.ep > 1:
        raise InputError(f"offload: experts do not go with ep = {plan.ep}, expected 1: one host computes them")

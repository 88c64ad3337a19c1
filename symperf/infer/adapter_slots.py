"""Which adapters of requests are asked for: their rank, their number, and the linear layers that have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..common.errors import InputError, nearest, quote
from ..plans.adapted_layers import TARGETS as TARGETS_OF_TRAINING
from ..plans.fields import positive_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.architecture import Architecture, LayerKind
    from ..models.model import Model
    from ..operations.compiled import Bound

PACKED: Final[Mapping[str, tuple[str, ...]]] = {
    "attention/qkv": ("q_proj", "k_proj", "v_proj"),
    "attention/output": ("o_proj",),
    "attention/query": ("q_proj",),
    "attention/query_down": ("q_a_proj",),
    "attention/query_up": ("q_b_proj",),
    "attention/latent_down": ("kv_a_proj_with_mqa",),
    **{f"{block}/gate_up": ("gate_proj", "up_proj") for block in ("mlp", "shared")},
    **{f"{block}/gate": ("gate_proj",) for block in ("mlp",)},
    **{f"{block}/up": ("up_proj",) for block in ("mlp", "shared")},
    **{f"{block}/down": ("down_proj",) for block in ("mlp", "shared")},
}
"""Products of a layer, and the linear layers of checkpoints that they are."""
ROUTED: Final = "experts"
"""What asks for adapters of all linear layers of routed experts."""
TARGETS: Final = tuple(dict.fromkeys(name for names in PACKED.values() for name in names))


@dataclass(frozen=True)
class Adapters:
    """The adapters that a device holds.

    Attributes:
        rank: of their slots.
        number: of slots, each with an adapter that requests have with equal probability.
        targets: linear layers that have them, by their names in checkpoints.
    """

    rank: int
    number: int
    targets: tuple[str, ...]

    def bound(self) -> Bound:
        """The values of their symbols."""
        return {"lora_rank": (float(self.rank), "asked for"), "lora_adapters": (float(self.number), "asked for")}


def adapters_of(
    model: Model, rank: int | None, number: int | None = None, targets: str | None = None
) -> Adapters | None:
    """The adapters that are asked for; None without a rank, or with 0.

    Args:
        model: that has them.
        rank: of their slots.
        number: of slots; by default 1.
        targets: names of linear layers with commas between, "experts" of those of routed experts; by default all others
            that the model has.

    Raises:
        InputError: half of a question, a rank above the width, or a layer that the model has not.
    """
    if rank == 0:
        return None
    if rank is None:
        for name, value in (("lora_adapters", number), ("lora_targets", targets)):
            if value is not None:
                raise InputError(f"{name}: means something with adapters only, found no rank of them (lora_rank)")
        return None
    rank, width = positive_integer("lora_rank", rank), model.sizes["hidden_size"]
    if rank > width:
        raise InputError(f"lora_rank: found {rank}, expected 1 to the {width} features of {model.name}")
    known = targets_of(model.architecture)
    if not known:
        raise InputError(f"lora_rank: found {rank}, but {model.name} has no linear layer whose adapters are modelled")
    allowed = (*known, ROUTED) if model.architecture.routed else known
    given = () if targets is None else tuple(each.strip() for each in targets.split(","))
    asked = known if targets is None else tuple(name for each in given for name in _layers_named(each, known))
    for name in asked:
        if name not in allowed:
            raise InputError(
                f"lora_targets: found {quote(name)}, expected {', '.join(allowed)} of {model.name}"
                f"{nearest(name, allowed)}"
            )
    slots = positive_integer("lora_adapters", 1 if number is None else number)
    return Adapters(rank, slots, tuple(name for name in allowed if name in asked))


def _layers_named(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Layers by a name of theirs with or without "_proj", or that of a group, as training has them; else the name.

    >>> _layers_named("mlp", ("q_proj", "up_proj", "down_proj")), _layers_named("q", ("q_proj",))
    (('up_proj', 'down_proj'), ('q_proj',))
    """
    meant = TARGETS_OF_TRAINING.get(name, ())
    found = tuple(each for each in known if each.split("_proj")[0] in meant)
    return found or (name,)


def targets_of(architecture: Architecture) -> tuple[str, ...]:
    """The linear layers of a model whose adapters are modelled: attention, MLP and shared experts."""
    found: list[str] = []
    for kind in architecture.kinds:
        found += _of_attention(architecture, kind)
        if kind.ffn in ("dense", "dense_experts") or (kind.ffn == "experts" and architecture.shared_experts):
            found += ["gate_proj"] * architecture.gated_mlp + ["up_proj", "down_proj"]
    return tuple(name for name in TARGETS if name in found)


def _of_attention(architecture: Architecture, kind: LayerKind) -> list[str]:
    if kind.mixer == "latent_attention":
        queries = ["q_a_proj", "q_b_proj"] if architecture.query_compression else ["q_proj"]
        return [*queries, "kv_a_proj_with_mqa", "o_proj"]
    if kind.mixer in ("attention", "local_attention") and not kind.shared:
        reused = "reused_keys" in kind.traits
        return ["q_proj", "o_proj"] if reused else ["q_proj", "k_proj", "v_proj", "o_proj"]
    return []

"""The format that an inference runs a checkpoint in: as it is stored, unless the plan says another.

A checkpoint stores classes of modules (attention, MLP, routed and shared experts) in one format or in 16 bits;
embedding, head, norms and routers are in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..common.errors import InputError

if TYPE_CHECKING:
    from ..models.architecture import Architecture
    from ..models.model import Model
    from ..plans.plan import Plan


@dataclass(frozen=True)
class StoredFormat:
    """What a run takes from a checkpoint.

    Attributes:
        plan: with the precision of the checkpoint, where it says none.
        kept: classes of modules whose weights stay in 16 bits.
        weight: bytes of a weight in the other ones, scales included; None: those of the format.
        cache: format of the cache, where the run states none.
        note: what is said about it.
    """

    plan: Plan
    kept: tuple[str, ...] = ()
    weight: float | None = None
    cache: str | None = None
    note: tuple[str, ...] = ()


def classes_of(architecture: Architecture) -> tuple[str, ...]:
    """The classes of modules that a model has."""
    dense = any(kind.ffn in ("dense", "dense_experts") for kind in architecture.kinds)
    found = {
        "attention": any(kind.mixer != "none" for kind in architecture.kinds),
        "mlp": dense,
        "experts": architecture.routed,
        "shared": architecture.shared_experts,
    }
    return tuple(name for name, there in found.items() if there)


def stored_format(plan: Plan, model: Model) -> StoredFormat:
    """What a run of a plan takes from the checkpoint of a model.

    Raises:
        InputError: the checkpoint has several formats below 16 bits, which one run does not model.
    """
    quantization = model.quantization
    if quantization is None:
        return StoredFormat(plan)
    classes = classes_of(model.architecture)
    formats = quantization.stored(classes)
    if plan.precision is not None or not formats:
        said = plan.precision or "16 bits"
        note = f"the checkpoint is stored in {' and '.join(f.name for f in formats) or 'other modules'}: {said} instead"
        return StoredFormat(plan, note=(note,) if plan.precision is not None else ())
    if len(formats) > 1:
        each = ", ".join(f"{name} in {stored.name}" for name, stored in quantization.formats if name in classes)
        raise InputError(
            f"precision: the checkpoint of {model.name} stores {each}, expected one format below 16 bits: "
            f"--precision {formats[-1].name} runs all in one"
        )
    (stored,) = formats
    kept = tuple(name for name in quantization.kept() if name in classes)
    text = f"weights as the checkpoint stores them: {stored.name}"
    text += f", {' and '.join(kept)} in 16 bits" if kept else ""
    return StoredFormat(replace(plan, precision=stored.name), kept, stored.weight, quantization.cache, (text,))

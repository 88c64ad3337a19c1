"""The formats that an inference runs a checkpoint in: as it is stored, unless the plan says another.

A checkpoint stores classes of modules (attention, MLP, routed and shared experts, head) in one format, in several, or
in 16 bits; embedding, norms and routers are in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..models.gguf import FILES, mean_bytes
from ..systems.widening import widening
from .formats import FORMATS, format_of, rate_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..models.architecture import Architecture
    from ..models.model import Model
    from ..plans.plan import Plan
    from ..systems.system import System


@dataclass(frozen=True)
class OtherStored:
    """A format of a checkpoint beside that of most of its weights.

    Attributes:
        plan: with this format for its precision.
        weight: bytes of a weight, scales included.
        classes: of modules that are stored in it.
        system: with what the software reaches in it.
    """

    plan: Plan
    weight: float
    classes: tuple[str, ...]
    system: System

    @property
    def rate(self) -> str:
        """The precision whose rate its products run at."""
        return format_of(self.plan, self.system)[2]


@dataclass(frozen=True)
class StoredFormat:
    """What a run takes from a checkpoint.

    Attributes:
        plan: with the precision of the checkpoint, where it says none.
        kept: classes of modules whose weights stay in 16 bits.
        weight: bytes of a weight in the format of most of them, scales included; None: those of the format.
        cache: format of the cache, where the run states none.
        note: what is said about it.
        narrow_head: the matrix of the head is stored below 16 bits.
        others: further formats below 16 bits.
        narrow_table: the table of tokens is stored below 16 bits, as the class "embedding".
    """

    plan: Plan
    kept: tuple[str, ...] = ()
    weight: float | None = None
    cache: str | None = None
    note: tuple[str, ...] = ()
    narrow_head: bool = False
    others: tuple[OtherStored, ...] = ()
    narrow_table: bool = False

    def with_figures(self, figures: Mapping[str, object]) -> StoredFormat:
        """The same on systems with the figures that a user set; `matrix_rate` is that of most weights."""
        others = []
        for other in self.others:
            own = {name: value for name, value in figures.items() if name != "matrix_rate"}
            others.append(replace(other, system=other.system.with_values(own, other.rate)) if own else other)
        return replace(self, others=tuple(others))

    def precision_of(self, name: str) -> str | None:
        """The precision that a class of modules has; None where the plan leaves it to the system."""
        return next((other.plan.precision for other in self.others if name in other.classes), self.plan.precision)

    def rate_of(self, name: str, rate: str) -> str:
        """The precision whose rate products of a class run at, where that of most weights is `rate`."""
        return next((other.rate for other in self.others if name in other.classes), rate)

    def symbol(self, symbol: str, name: str) -> str:
        """The name of a symbol of `BY_FORMAT` in products of a class."""
        numbers = (k for k, other in enumerate(self.others, start=2) if name in other.classes)
        return next((f"{symbol}_{number}" for number in numbers), symbol)


def classes_of(architecture: Architecture) -> tuple[str, ...]:
    """The classes of modules that a model has."""
    dense = any(kind.ffn in ("dense", "dense_experts") for kind in architecture.kinds)
    found = {
        "attention": any(kind.mixer != "none" for kind in architecture.kinds),
        "mlp": dense,
        "experts": architecture.routed,
        "shared": architecture.shared_experts,
        "head": architecture.head in ("vocabulary", "transformed"),
    }
    return tuple(name for name, there in found.items() if there)


def stored_format(plan: Plan, model: Model, equip: Callable[[Plan], System]) -> StoredFormat:
    """What a run of a plan takes from the checkpoint of a model.

    Args:
        plan: of the run.
        model: whose checkpoint it is.
        equip: the system with what the software reaches under a plan.

    Raises:
        InputError: a format that neither the system nor a wider rate of it runs.
    """
    if plan.precision is not None and plan.precision in FILES:
        return _of_file(plan.precision, plan, model, equip)
    quantization = model.quantization
    if quantization is None:
        return StoredFormat(plan)
    classes = classes_of(model.architecture)
    formats = quantization.stored(classes)
    if plan.precision is not None or not formats:
        said = plan.precision or "16 bits"
        note = f"the checkpoint is stored in {' and '.join(f.name for f in formats) or 'other modules'}: {said} instead"
        return StoredFormat(plan, note=(note,) if plan.precision is not None else ())
    main, *further = formats
    held = {stored: tuple(n for n in classes if quantization.format_of(n) == stored) for stored in formats}
    others = []
    for stored in further:
        own = replace(plan, precision=stored.name)
        others.append(OtherStored(own, stored.weight, held[stored], equip(own)))
    kept = tuple(name for name in quantization.kept() if name in classes and name != "head")
    told = [main.name, *(f"{' and '.join(held[stored])} in {stored.name}" for stored in further)]
    told += [f"{' and '.join(kept)} in 16 bits"] if kept else []
    return StoredFormat(
        replace(plan, precision=main.name),
        kept,
        main.weight,
        quantization.cache,
        (f"weights as the checkpoint stores them: {', '.join(told)}", *_widened(others)),
        "head" in classes and quantization.stored(("head",)) != [],
        tuple(others),
    )


def _widened(others: list[OtherStored]) -> list[str]:
    """What is said of further formats that the device does not multiply."""
    return [text for other in others for text in widening(other.system, rate_asked(other.plan, other.system))]


def _of_file(name: str, plan: Plan, model: Model, equip: Callable[[Plan], System]) -> StoredFormat:
    """The formats of a file that llama-quantize writes: each class of modules has the mean bytes of its matrices.

    Products run in 16 bits whatever the types are, so that their bytes alone matter, whose mean over layers is exact.
    """
    kind = FILES[name]
    own = replace(plan, precision=kind)
    means = mean_bytes(name, model)
    plain = FORMATS[kind].weight, 0
    found: dict[float, list[str]] = {}
    for each in (*classes_of(model.architecture), "embedding"):
        found.setdefault(means.get(each, plain)[0], []).append(each)
    weights = {size: sum(means.get(each, plain)[1] for each in held) for size, held in found.items()}
    main, *further = sorted(found, key=lambda size: -weights[size])
    told = ", ".join(f"{' and '.join(found[size])} {8 * size:.4g}" for size in (main, *further))
    note = f"weights as in a file of {name.upper()}, bits of each: {told}"
    return StoredFormat(
        own,
        weight=main,
        note=(note,),
        narrow_head="head" in classes_of(model.architecture),
        others=tuple(OtherStored(own, size, tuple(found[size]), equip(own)) for size in further),
        narrow_table=True,
    )

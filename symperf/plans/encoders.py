"""The encoders of images and sound that a training step passes: what of them changes the form of its cost.

Sizes of an encoder and of what it reads are numbers here, not symbols: the language model's sizes have these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..common.errors import InputError
from ..models.sounds import Sound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..models.architecture import Architecture
    from ..models.model import Model
    from ..models.towers import Encoded, Image, Product, Tower
    from .plan import Plan


@dataclass(frozen=True)
class EncoderInput:
    """Images of one size, or recordings of one length, of each sequence of the language model.

    Attributes:
        sequences: of the encoder, of all of them.
        positions: of each of these.
        patches: of all.
        tokens: that the language model reads of all.
        windows: of sound, of all.
    """

    sequences: int
    positions: int
    patches: int
    tokens: int
    windows: int

    def rows(self, of: Literal["patches", "tokens", "images", "windows", "texts"]) -> int:
        """Rows of a product that reads one of each."""
        found = {"patches": self.patches, "tokens": self.tokens, "images": self.sequences, "windows": self.windows}
        return found[of]


@dataclass(frozen=True)
class EncoderPart:
    """An encoder before the language model's first stage, with its stem and projector.

    Attributes:
        part: "vision" or "audio".
        architecture: of its layers.
        sizes: of its layers, by name.
        split: its layers are split over the tensor-parallel group; else every device of that has all of them.
        inputs: what it reads of each sequence.
        stem: products before its layers.
        stem_values: other parameters before them.
        projector: products behind its layers.
        projector_values: other parameters behind them.
    """

    part: str
    architecture: Architecture
    sizes: tuple[tuple[str, int], ...]
    split: bool
    inputs: tuple[EncoderInput, ...]
    stem: tuple[Product, ...]
    stem_values: int
    projector: tuple[Product, ...]
    projector_values: int

    @property
    def chains(self) -> tuple[tuple[Product, ...], ...]:
        """The products of the projector, those that follow one another together; each chain reads the encoder."""
        names = dict.fromkeys(product.name.rpartition("/")[0] for product in self.projector)
        return tuple(tuple(p for p in self.projector if p.name.rpartition("/")[0] == name) for name in names)

    @property
    def tokens(self) -> int:
        """Tokens that the language model reads of one sequence's images or recordings."""
        return sum(each.tokens for each in self.inputs)


def tower_of(model: Model, item: Image | Sound) -> Tower:
    """The encoder of a model that reads images, or sound.

    Raises:
        InputError: it has none.
    """
    part, what = ("audio", "sound") if isinstance(item, Sound) else ("vision", "images")
    for tower in model.towers:
        if tower.part == part:
            return tower
    field = "sounds" if part == "audio" else "images"
    raise InputError(f"{field}: {model.name} has no encoder of {what} that is modelled, expected a model with one")


def encode(model: Model, item: Image | Sound) -> Encoded:
    """What an encoder makes of one image, video or recording.

    Raises:
        InputError: the model has no encoder of it, or it is not one that it reads.
    """
    grid = tower_of(model, item).grid
    return grid.encode(item)  # type: ignore[arg-type]


def encoders_of(model: Model, items: Iterable[Image | Sound], tp: int) -> tuple[EncoderPart, ...]:
    """The encoders that the images and recordings of a sequence pass.

    Args:
        model: has them.
        items: images and recordings of each sequence.
        tp: devices that layers may be split over.

    Raises:
        InputError: the model has no encoder of them, one is not what it reads, or none of their tokens is read.
    """
    found: dict[str, tuple[Tower, list[EncoderInput]]] = {}
    for item in items:
        tower, one = tower_of(model, item), encode(model, item)
        n = item.count
        counts = n * one.sequences, one.positions, n * one.patches, n * one.tokens, n * one.windows
        if not one.tokens:
            raise InputError(f"images: {model.name} compares them with texts, and a step over both is not modelled")
        found.setdefault(tower.part, (tower, []))[1].append(EncoderInput(*counts))
    return tuple(_part(tower, tuple(inputs), tp) for tower, inputs in found.values())


def _part(tower: Tower, inputs: tuple[EncoderInput, ...], tp: int) -> EncoderPart:
    sizes, encoder = tower.encoder.sizes, tower.encoder
    split = all(sizes.get(name, 0) % tp == 0 for name in ("num_attention_heads", "intermediate_size"))
    return EncoderPart(
        tower.part,
        encoder.architecture,
        tuple(sorted(sizes.items())),
        split,
        inputs,
        tower.stem,
        tower.stem_values,
        tower.projector,
        tower.projector_values,
    )


def check_encoders(
    plan: Plan, model: Model, encoders: tuple[EncoderPart, ...], frozen: Collection[str], sequence: int
) -> None:
    """Refuse images and recordings that do not fit in a sequence, and plans under which encoders are not modelled.

    Raises:
        InputError: one line that says which.
    """
    if not encoders:
        return
    field = "sounds" if encoders[0].part == "audio" else "images"
    tokens = sum(part.tokens for part in encoders)
    if tokens > sequence:
        raise InputError(f"{field}: found {tokens} tokens of them, expected at most the {sequence} of a sequence")
    if plan.cp > 1:
        raise InputError(
            f"{field}: encoders over parts of sequences are not modelled, found cp = {plan.cp}, expected 1"
        )
    trained = [name for name in (*(part.part for part in encoders), "projector") if name not in frozen]
    if trained and plan.optimizer in ("adafactor", "muon"):
        raise InputError(
            f"optimizer: found {plan.optimizer}, whose state of the matrices of an encoder is not modelled, expected "
            f"adam, adam-8bit or sgd-momentum, or {model.name} with --freeze {','.join(trained)}"
        )

"""Encoders of images or sound beside a language model: what each is made of, and how many tokens an image becomes.

A tower is an encoder of its own: an architecture with its own sizes, to which every closed form of a model applies as
it stands, bound to these sizes and not to the language model's. Before its layers stands a stem (patches, positions),
after them a projector to the language model's width; both are products, and vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NoReturn

from ..common.errors import InputError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .configs import Parsed
    from .resizing import Nearest, Within
    from .sounds import SoundGrid
    from .tiles import Tiling

MOST_IMAGES = 100_000
"""Images of a sequence, and frames of a video; no context comes near it."""


@dataclass(frozen=True)
class Product:
    """A linear layer of a stem or a projector.

    Attributes:
        name: of it in tables.
        inputs: features that it reads.
        outputs: features that it gives.
        bias: it has one.
        rows: of what it reads one row each: patches, tokens that the language model sees, sequences of the encoder,
            windows of sound, or texts beside images.
        times: rows of each of these.
        copies: as many that differ in their weights alone, one after the other: parts of every layer of an encoder.

    """

    name: str
    inputs: int
    outputs: int
    bias: bool
    rows: Literal["patches", "tokens", "images", "windows", "texts"]
    times: int = 1
    copies: int = 1

    @property
    def parameters(self) -> int:
        """Weights and biases of all copies."""
        return self.copies * (self.inputs * self.outputs + (self.outputs if self.bias else 0))


@dataclass(frozen=True)
class Image:
    """Images of one size, or a video's frames.

    Attributes:
        count: how many a sequence has.
        height: pixels.
        width: pixels.
        frames: of each; 1 for an image.

    """

    count: int
    height: int
    width: int
    frames: int = 1


@dataclass(frozen=True)
class Encoded:
    """What an encoder makes of one image or video.

    Attributes:
        sequences: that it reads, none of which sees the others: frames, or tiles.
        positions: in each sequence: patches, and a token of the class where there is one.
        patches: of all sequences.
        tokens: of all sequences that the language model reads.
        windows: of sound, which convolutions read.

    """

    sequences: int
    positions: int
    patches: int
    tokens: int
    windows: int = 0


@dataclass(frozen=True)
class Grid:
    """How an image of H x W pixels becomes patches, and these become tokens.

    Attributes:
        patch: pixels of a side of a patch.
        merge: patches of a side that become one token.
        side: pixels of a side to which every image is scaled; None where images keep their size.
        extra: positions of a sequence that are no patches (a token of the class).
        frames: of a video that one patch holds; 0 where there are no videos.
        row_end: tokens that end each row of tokens (Pixtral).
        tiles: how an image is cut into tiles of `side`; None where it is scaled to one.
        fit: how an image that keeps its shape is fitted to whole tokens; None where it has to have them.
        largest: tokens of an image at most; 0 for no limit of the encoder's.
        kept: tokens that a file's choice of features adds to an image: the class's, or the first patch's less (-1).
        apart: images are compared with texts and join none: no token of theirs is in a prompt (CLIP).

    """

    patch: int
    merge: int = 1
    side: int | None = None
    extra: int = 0
    frames: int = 0
    row_end: int = 0
    tiles: Tiling | None = None
    fit: Nearest | Within | None = None
    largest: int = 0
    kept: int = 0
    apart: bool = False

    def encode(self, image: Image) -> Encoded:
        """What an encoder makes of an image.

        Raises:
            InputError: its sides are no multiples of a token's, it is too large, or it is a video for images only.
        """
        if image.frames > 1 and not self.frames:
            raise InputError(f"frames: found {image.frames}, expected 1: the encoder reads single images")
        if self.side is not None:
            rows = columns = self.side // self.patch
            cells = -(-rows // self.merge)
            sequences, tokens = 1, cells**2
            if self.tiles:
                sequences, tokens = self.tiles.cut((image.height, image.width), self.side, cells)
            patches = sequences * rows * columns
            return Encoded(sequences, rows * columns + self.extra, patches, 0 if self.apart else tokens + self.kept)
        unit = self.patch * self.merge
        if self.fit and image.frames == 1:
            height, width = self.fit.fit((image.height, image.width), unit)
            image = replace(image, height=height, width=width)
        for name, pixels in (("height", image.height), ("width", image.width)):
            if pixels % unit:
                near = max(unit, round(pixels / unit) * unit)
                raise InputError(
                    f"images: the {name} is {pixels} pixels, expected a multiple of the {unit} of a token ({near})"
                )
        rows, columns = image.height // unit, image.width // unit
        tokens = rows * (columns + self.row_end)
        if self.largest and tokens > self.largest:
            raise InputError(
                f"images: {image.height} x {image.width} pixels are {tokens} tokens, expected at most {self.largest}"
            )
        sequences = -(-image.frames // self.frames) if self.frames else 1
        patches = rows * columns * self.merge**2
        return Encoded(sequences, patches + self.extra, sequences * patches, sequences * tokens)


@dataclass(frozen=True)
class Tower:
    """An encoder beside a language model.

    Attributes:
        part: "vision" or "audio".
        encoder: its layers: architecture, sizes, order, and its warnings.
        stem: products before them.
        stem_values: other parameters before them: tables of positions, vectors.
        projector: products after them.
        projector_values: other parameters after them: norms.
        grid: how images become patches and tokens, or sound does.

    """

    part: str
    encoder: Parsed
    stem: tuple[Product, ...]
    stem_values: int
    projector: tuple[Product, ...]
    projector_values: int
    grid: Grid | SoundGrid

    @property
    def stem_parameters(self) -> int:
        """Parameters before the layers."""
        return sum(product.parameters for product in self.stem) + self.stem_values

    @property
    def projector_parameters(self) -> int:
        """Parameters after the layers."""
        return sum(product.parameters for product in self.projector) + self.projector_values


def parse_images(texts: Iterable[str], frames: int = 1) -> tuple[Image, ...]:
    """Images of a sequence, from texts such as `2x1024x768`: count, height and width in pixels.

    Args:
        texts: one for each size.
        frames: of each, as of a video.

    Raises:
        InputError: a text is of another form, or a number is out of range.

    >>> parse_images(["2x1024x768"])
    (Image(count=2, height=1024, width=768, frames=1),)
    """
    if type(frames) is not int or not 0 < frames <= MOST_IMAGES:
        raise InputError(f"frames: found {quote(frames)}, expected a positive whole number up to {MOST_IMAGES}")
    return tuple(_image(text, frames) for text in texts)


def _image(text: str, frames: int) -> Image:
    def fail() -> NoReturn:
        raise InputError(f"images: found {quote(text)}, expected COUNTxHEIGHTxWIDTH in pixels, such as 2x1024x1024")

    parts = text.split("x") if isinstance(text, str) else fail()
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        fail()
    count, height, width = (int(part) for part in parts)
    if not (count and height and width):
        fail()
    return Image(count, height, width, frames)

"""Sound as encoders read it: spectra of 10 ms, in windows, and the tokens that a language model reads of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from ..common.errors import InputError, quote
from .towers import MOST_IMAGES, Encoded, Image, parse_images

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Sound:
    """Recordings of one length.

    Attributes:
        count: how many a sequence has.
        frames: spectra of each, of which a second has 100.

    """

    count: int
    frames: int


@dataclass(frozen=True)
class SoundGrid:
    """How spectra become positions of an encoder, and these become tokens.

    Attributes:
        window: spectra that convolutions read as one.
        cells: positions of a whole window.
        halvings: convolutions that step over every other spectrum.
        pool: positions that become one token.
        joined: windows whose positions see each other in the layers.
        filled: recordings are filled up to whole windows, silence too has tokens.
        longest: spectra of a recording at most; 0 for no limit.

    """

    window: int
    cells: int
    halvings: int = 1
    pool: int = 1
    joined: int = 1
    filled: bool = False
    longest: int = 0
    apart: bool = False

    def encode(self, sound: Sound) -> Encoded:
        """What an encoder makes of a recording.

        Raises:
            InputError: it is too long, or too short for a token.
        """
        if self.longest and sound.frames > self.longest:
            raise InputError(
                f"frames: found {sound.frames}, expected at most {self.longest}: longer recordings are cut off"
            )
        windows = -(-sound.frames // self.window)
        valid, rest = divmod(sound.frames, self.window)
        for _ in range(self.halvings):
            rest = -(-rest // 2)
        tokens = (windows * self.cells if self.filled else valid * self.cells + rest) // self.pool
        if not tokens:
            raise InputError(f"frames: found {sound.frames}, expected enough for a token of the encoder")
        sequences, positions = -(-windows // self.joined), min(windows, self.joined) * self.cells
        return Encoded(sequences, positions, windows * self.cells, tokens, windows)


def parse_sounds(texts: Iterable[str]) -> tuple[Sound, ...]:
    """Recordings of a sequence, from texts such as `2x3000`: count and spectra of 10 ms.

    Raises:
        InputError: a text is of another form, or a number is out of range.

    >>> parse_sounds(["2x3000"])
    (Sound(count=2, frames=3000),)
    """
    return tuple(_sound(text) for text in texts)


def _sound(text: str) -> Sound:
    def fail() -> NoReturn:
        raise InputError(f"sounds: found {quote(text)}, expected COUNTxFRAMES of 10 ms each, such as 1x3000")

    parts = text.split("x") if isinstance(text, str) else fail()
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        fail()
    count, frames = (int(part) for part in parts)
    if not (0 < count <= MOST_IMAGES and frames):
        fail()
    return Sound(count, frames)


def parse_media(images: Iterable[str], frames: int = 1, sounds: Iterable[str] = ()) -> tuple[Image | Sound, ...]:
    """Images, videos and recordings of a sequence.

    Args:
        images: see `parse_images`.
        frames: of each image, as of a video; without images spectra of one recording.
        sounds: see `parse_sounds`.

    Raises:
        InputError: a text is of another form, or a number is out of range.

    >>> parse_media([], 3000)
    (Sound(count=1, frames=3000),)
    """
    seen, heard = parse_images(images, frames), parse_sounds(sounds)
    alone = (Sound(1, frames),) if frames > 1 and not (seen or heard) else ()
    return (*seen, *heard, *alone)

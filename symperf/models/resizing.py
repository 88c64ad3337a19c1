"""How processors fit images that keep their shape to whole tokens, as those of transformers 5.24 do."""

from __future__ import annotations

import math
from dataclasses import dataclass

Size = tuple[int, int]
"""Height and width in pixels."""


@dataclass(frozen=True)
class Nearest:
    """Sides go to the nearest whole tokens; images of too few or too many pixels are scaled (`smart_resize`, Qwen).

    Attributes:
        least: pixels.
        most: pixels.
        frames: that an image counts as, where pixels are counted over frames (GLM).

    """

    least: int
    most: int
    frames: int = 1

    def fit(self, image: Size, unit: int) -> Size:
        """The size that an image is scaled to.

        Args:
            image: its size.
            unit: pixels of a side of a token.

        >>> Nearest(56 * 56, 28 * 28 * 1280).fit((1080, 1920), 28)
        (728, 1316)
        """
        height, width = image
        if min(image) < unit and self.frames > 1:
            scale = unit / min(image)
            height, width = int(height * scale), int(width * scale)
        found = round(height / unit) * unit, round(width / unit) * unit
        pixels = self.frames * height * width
        if self.frames * found[0] * found[1] > self.most:
            over = math.sqrt(pixels / self.most)
            return tuple(max(unit, math.floor(side / over / unit) * unit) for side in (height, width))  # type: ignore[return-value]
        if self.frames * found[0] * found[1] < self.least:
            under = math.sqrt(self.least / pixels)
            return tuple(math.ceil(side * under / unit) * unit for side in (height, width))  # type: ignore[return-value]
        return found


@dataclass(frozen=True)
class Within:
    """Sides above a longest one are scaled down, and go up to whole tokens (`get_resize_output_image_size`, Pixtral).

    Attributes:
        longest: pixels of a side.

    """

    longest: int

    def fit(self, image: Size, unit: int) -> Size:
        """See `Nearest.fit`.

        >>> Within(1540).fit((1080, 1920), 28)
        (868, 1540)
        """
        over = max(1.0, max(image) / self.longest)
        height, width = (math.floor(side / over) for side in image)
        return -(-height // unit) * unit, -(-width // unit) * unit

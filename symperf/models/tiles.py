"""How processors cut an image into tiles of one size, and how many tokens these become.

Each way is that of the image processor of transformers 5.24 that its docstring names. An overview, the whole image
scaled to one tile, is one tile more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

Size = tuple[int, int]
"""Height and width."""


@dataclass(frozen=True)
class Tiling:
    """A grid of tiles, and an overview where these are several."""

    def cut(self, image: Size, side: int, cells: int) -> Size:
        """Tiles with the overview, and tokens of all.

        Args:
            image: height and width in pixels.
            side: pixels of a side of a tile.
            cells: tokens of a side of a tile.
        """
        rows, columns = self.grid(image, side)
        tiles = rows * columns
        tiles += tiles > 1
        return tiles, tiles * cells**2

    def grid(self, image: Size, side: int) -> Size:
        """Rows and columns of tiles."""
        raise NotImplementedError


@dataclass(frozen=True)
class LongestEdge(Tiling):
    """The longer side is scaled to a number of tiles, whatever it was (`idefics3`).

    Attributes:
        tiles: of the longer side.

    """

    tiles: int = 4

    def grid(self, image: Size, side: int) -> Size:
        """See `Tiling.grid`.

        >>> LongestEdge().grid((500, 900), 364)
        (3, 4)
        """
        height, width = image
        longest = self.tiles * side
        other = int(longest / (max(image) / min(image)))
        other = max(1, -(-(other + other % 2) // side))
        return (other, self.tiles) if width >= height else (self.tiles, other)


@dataclass(frozen=True)
class Canvas(Tiling):
    """The smallest grid that holds the image as it is, or else that which shrinks it least (`llama4`).

    Attributes:
        most: tiles at most.

    """

    most: int = 16

    def grid(self, image: Size, side: int) -> Size:
        """See `Tiling.grid`.

        >>> Canvas().grid((500, 900), 336)
        (2, 3)
        """
        sides = range(1, self.most + 1)
        every = [(rows, columns) for rows, columns in product(sides, sides) if rows * columns <= self.most]
        scales = {each: min(each[0] * side / image[0], each[1] * side / image[1]) for each in every}
        held = [scale for scale in scales.values() if scale >= 1]
        best = min(held) if held else max(scales.values())
        return min((each for each in every if scales[each] == best), key=lambda each: each[0] * each[1])


def closest(image: Size, side: int, most: int) -> Size:
    """Rows and columns of tiles, `most` at most, whose shape is nearest to the image's.

    Of equally near ones the larger is taken while it is less than twice the image.

    >>> closest((448, 448), 448, 12), closest((1080, 1920), 448, 12)
    ((1, 1), (2, 4))
    """
    height, width = image
    grids = [grid for grid in product(range(1, most + 1), repeat=2) if grid[0] * grid[1] <= most]
    best, least = (1, 1), math.inf
    for columns, rows in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        far = abs(width / height - columns / rows)
        if far < least:
            best, least = (rows, columns), far
        elif far == least and height * width > 0.5 * side**2 * rows * columns:
            best = (rows, columns)
    return best


@dataclass(frozen=True)
class ClosestGrid(Tiling):
    """The grid of tiles of the nearest shape, and an overview where these are several (InternVL, `got_ocr2`).

    Attributes:
        most: tiles at most.

    """

    most: int = 12

    def grid(self, image: Size, side: int) -> Size:
        """See `Tiling.grid`."""
        return closest(image, side, self.most)


@dataclass(frozen=True)
class Resolutions(Tiling):
    """The best of given resolutions, without its padding, a token after every row, and an overview (LLaVA-NeXT).

    Attributes:
        sizes: of which one is chosen, as height and width.
        most: tiles whose tokens are kept; more are scaled down (LLaVA-OneVision); 0 for no limit.

    """

    sizes: tuple[Size, ...]
    most: int = 0

    def best(self, image: Size) -> Size:
        """The resolution that keeps most of the image, and of such the smallest."""
        kept, wasted, found = 0, math.inf, self.sizes[0]
        for height, width in self.sizes:
            scale = min(width / image[1], height / image[0])
            effective = min(int(image[1] * scale) * int(image[0] * scale), image[0] * image[1])
            if effective > kept or (effective == kept and height * width - effective < wasted):
                kept, wasted, found = effective, height * width - effective, (height, width)
        return found

    def cut(self, image: Size, side: int, cells: int) -> Size:
        """See `Tiling.cut`."""
        rows, columns = (pixels // side for pixels in self.best(image))
        tiles, (height, width) = rows * columns, image
        high, wide = rows * cells, columns * cells
        if width / height > wide / high:
            high -= (high - int(round(height * (wide / width), 7))) // 2 * 2
        else:
            wide -= (wide - int(round(width * (high / height), 7))) // 2 * 2
        if self.most and (ratio := math.sqrt(high * wide / (self.most * cells**2))) > 1.1:
            high, wide = int(high // ratio), int(wide // ratio)
        return tiles + 1, high * (wide + 1) + cells**2


@dataclass(frozen=True)
class Crops(Tiling):
    """As many tiles as the image has, without its padding, a token after every row, and an overview (Phi-4).

    Attributes:
        most: tiles at most; an image of more is scaled to the grid of the nearest shape.

    """

    most: int = 36

    def cut(self, image: Size, side: int, cells: int) -> Size:
        """See `Tiling.cut`."""
        rows, columns = (-(-pixels // side) for pixels in image)
        if rows * columns > self.most:
            rows, columns = closest(image, side, self.most)
        scale = min(rows * side / image[0], columns * side / image[1])
        # Each token stands for two patches of a side, of which the first is looked at.
        patch = side // (2 * cells)
        high, wide = (
            -(-(2 * cells * count - math.floor((count * side - int(pixels * scale)) / patch)) // 2)
            for count, pixels in ((rows, image[0]), (columns, image[1]))
        )
        return rows * columns + 1, high * (wide + 1) + 1 + cells * (cells + 1)

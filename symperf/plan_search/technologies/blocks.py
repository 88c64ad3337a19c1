"""Branch and bound over blocks of technologies: which plans can be the best anywhere in a block.

Each coordinate of a technology is turned so that more is slower. Times are homogeneous in latencies and reciprocal
rates, so each technology is first scaled until the best plan known for it takes one second; plans keep their order. A
block is a set of technologies with the corner that is best in every scaled coordinate. No plan takes less anywhere in
the block than at that corner (`direction`), so a plan that takes more than a second there is nowhere the
best, and is left out. The rest goes with the two halves of the block. Blocks of few technologies or few plans are
computed plan by plan.

Where the best known plans come from makes no difference to what is found, only to how soon: the best at one technology
of a block is tried at all the others (`probe`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .unit import EXACT, FAST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .points import Points
    from .unit import Unit

    Array = np.ndarray[Any, Any]

SLACK = 1 + 1e-9
"""Of bounds, so that rounding leaves out no plan that ties with the best."""
PROMISING = 1.15
"""Times at the best corner, against the least of them, of rows of plans that a probe looks at."""
PROBED = 0.4
"""Share of a block's technologies, against when it was probed last, from which on it is probed again."""


@dataclass
class Level:
    """Blocks that are treated together, with the plans that are left in each.

    Attributes:
        start: of each block, in the order of the technologies.
        end: likewise.
        probed: technologies that a block had when it was probed last.
        block: of each unit, the block of each pair.
        row: of each unit, the row of its table.
        mask: of each unit, the members that are left.
        lower: of each unit, the least time of the pair at the best corner of the block that it comes from.
    """

    start: Array
    end: Array
    probed: Array
    block: list[Array]
    row: list[Array]
    mask: list[Array]
    lower: list[Array]

    @property
    def size(self) -> int:
        """Number of pairs of a block and a plan."""
        return sum(len(block) for block in self.block)

    def counts(self) -> Array:
        """Pairs of each block."""
        counts = [np.bincount(block, minlength=len(self.start)) for block in self.block]
        return np.asarray(np.sum(counts, axis=0))

    def some(self, chosen: Array) -> Level:
        """Some of the blocks (a mask), with their pairs."""
        number = np.cumsum(chosen) - 1
        kept = [chosen[block] for block in self.block]
        return Level(
            self.start[chosen],
            self.end[chosen],
            self.probed[chosen],
            [number[b[k]] for b, k in zip(self.block, kept, strict=True)],
            [r[k] for r, k in zip(self.row, kept, strict=True)],
            [m[k] for m, k in zip(self.mask, kept, strict=True)],
            [w[k] for w, k in zip(self.lower, kept, strict=True)],
        )

    def least(self) -> Array:
        """The least time at the best corner, of each block."""
        found = np.full(len(self.start), np.inf)
        for block, lower in zip(self.block, self.lower, strict=True):
            np.minimum.at(found, block, lower)
        return found


class Hulls:
    """The corners of some blocks, and what bounds a plan there.

    Attributes:
        sizes: technologies of each block.
        index: technologies, block after block.
        block: of each of them.
        scaled: their coordinates.
        low: the best of each coordinate, of each block.
        high: the worst.
        least_capacity: number of the smallest capacity.
        most_capacity: number of the largest.
        limit: scaled seconds that some plan keeps to at every technology of a block.
    """

    def __init__(self, points: Points, level: Level) -> None:
        self.sizes = level.end - level.start
        place, self.block = ranges(level.start, self.sizes)
        self.index = points.order[place]
        offsets = np.cumsum(self.sizes) - self.sizes
        self.scaled, limits = points.scaled(self.index)
        self.low = np.minimum.reduceat(self.scaled, offsets, axis=0)
        self.high = np.maximum.reduceat(self.scaled, offsets, axis=0)
        self.limit = np.maximum.reduceat(limits, offsets)
        code = points.capacity_code[self.index]
        self.least_capacity = np.minimum.reduceat(code, offsets)
        self.most_capacity = np.maximum.reduceat(code, offsets)

    @property
    def single(self) -> Array:
        """Blocks whose technologies are all the same."""
        return np.asarray((self.low == self.high).all(axis=1) & (self.least_capacity == self.most_capacity))


def ranges(start: Array, sizes: Array) -> tuple[Array, Array]:
    """The whole numbers of several ranges after each other, and the range of each."""
    block = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(block)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(start, sizes) + within, block


def root(points: Points) -> Level:
    """One block of all technologies with all plans that fit in the largest capacity."""
    masks = [tables[-1] for tables in points.fits]
    row = [np.flatnonzero(mask) for mask in masks]
    return Level(
        np.array([0]),
        np.array([len(points.order)]),
        np.array([len(points.order)]),
        [np.zeros(len(rows), np.int64) for rows in row],
        row,
        [mask[rows] for mask, rows in zip(masks, row, strict=True)],
        [np.zeros(len(rows)) for rows in row],
    )


def probe(points: Points, units: Sequence[Unit], level: Level, at: Array) -> Array:
    """Find the best promising plan at one technology of each block, and try it at all of the block.

    Args:
        points: the technologies; what is known of them is improved.
        units: the plans.
        level: the blocks.
        at: of each block a technology.

    Returns:
        Of each block the unit, row and member of the plan; -1 where none fits there.
    """
    found, best = np.full(len(level.start), np.inf), np.full((len(level.start), 3), -1)
    least = level.least()
    for k, unit in enumerate(units):
        block, row = level.block[k], level.row[k]
        mask = level.mask[k] & points.fits[k][points.capacity_code[at[block]], row]
        chosen = (mask != 0) & (level.lower[k] <= least[block] * PROMISING)
        block, row, mask = block[chosen], row[chosen], mask[chosen]
        if not len(block):
            continue
        pairs = unit.pairs(EXACT, mask)
        for part, times in pairs.run(row, points.columns, at[block]):
            _keep_least(np.where(pairs.among(mask[part]), times, np.inf), block[part], k, row[part], pairs, found, best)
    index, of = ranges(level.start, level.end - level.start)
    try_plans(points, units, points.order[index], best[of])
    return best


def try_plans(points: Points, units: Sequence[Unit], technology: Array, plans: Array) -> None:
    """Improve what is known of some technologies by one plan each (its unit, row and member; -1 for none)."""
    for k, unit in enumerate(units):
        mine = np.flatnonzero(plans[:, 0] == k)
        if not len(mine):
            continue
        where, row = technology[mine], plans[mine, 1]
        mask = (np.uint64(1) << plans[mine, 2].astype(np.uint64)) & points.fits[k][points.capacity_code[where], row]
        where, row, mask = where[mask != 0], row[mask != 0], mask[mask != 0]
        if not len(where):
            continue
        pairs = unit.pairs(EXACT, mask)
        for part, times in pairs.run(row, points.columns, where):
            least = np.where(pairs.among(mask[part]), times, np.inf).min(axis=0)
            points.upper[where[part]] = np.minimum(points.upper[where[part]], least)


def _keep_least(times: Array, block: Array, number: int, row: Array, pairs: Any, found: Array, best: Array) -> None:
    """Bring the least of some times to `found` and where they are to `best`, by block."""
    place = times.argmin(axis=0)
    least = times[place, np.arange(times.shape[1])]
    order = np.lexsort((least, block))
    first = order[np.concatenate([[True], np.diff(block[order]) != 0])]
    better = first[least[first] < found[block[first]]]
    at = block[better]
    found[at] = least[better]
    best[at, 0], best[at, 1], best[at, 2] = number, row[better], pairs.members[place[better]]


def bound_plans(points: Points, units: Sequence[Unit], level: Level, hulls: Hulls) -> tuple[Array, Array]:
    """Leave out the plans of each block that are nowhere the best; a level is changed in place.

    Returns:
        Of each block the unit, the row and the member with the least time at the best corner (-1 where no plan is
        left), and how much less that is than the time of plans that fit everywhere in the block.
    """
    count = len(level.start)
    first = np.full((count, 3), -1)
    corner = points.inputs(hulls.low, hulls.low, hulls.high)
    limit = hulls.limit * SLACK
    everywhere, anywhere = np.full(count, np.inf), np.full(count, np.inf)
    for k, unit in enumerate(units):
        mask = level.mask[k] & points.fits[k][hulls.most_capacity[level.block[k]], level.row[k]]
        some = mask != 0
        block, row, mask = level.block[k][some], level.row[k][some], mask[some]
        if not len(block):
            level.block[k], level.row[k], level.mask[k], level.lower[k] = block, row, mask, np.empty(0)
            continue
        # A plan stays where its bound is within the time that some plan is known to keep to all over the block.
        sure = points.fits[k][hulls.least_capacity[block], row]
        kept, lower = np.zeros(len(block), np.uint64), np.full(len(block), np.inf)
        pairs = unit.pairs(FAST, mask)
        for part, times in pairs.run(row, corner, block):
            held = pairs.among(mask[part]) & (times <= limit[block[part]])
            kept[part] = pairs.join(held)
            np.copyto(times, np.inf, where=~held)
            lower[part] = times.min(axis=0)
            fits = np.where(pairs.among(sure[part]), times, np.inf).min(axis=0)
            np.minimum.at(everywhere, block[part], fits)
            _keep_least(times, block[part], k, row[part], pairs, anywhere, first)
        some = kept != 0
        level.block[k], level.row[k], level.mask[k], level.lower[k] = block[some], row[some], kept[some], lower[some]
    with np.errstate(invalid="ignore"):
        capacity = np.where(np.isfinite(everywhere), np.log(everywhere / anywhere), np.inf)
    return first, capacity


def cut_blocks(
    points: Points, units: Sequence[Unit], level: Level, hulls: Hulls, first: Array, capacity: Array
) -> Level:
    """Each block in two, along the coordinate that most lowers the bound; all plans go with both.

    A bound is the time at the best corner of a block. It is far from the times in the block where a coordinate to which
    the plan is sensitive spans a wide range: cutting that range lifts the corner of the slower half most.

    Args:
        points: the technologies, which are put in the order of the halves.
        units: the plans.
        level: the blocks.
        hulls: theirs.
        first: what `bound_plans` returned for them.
        capacity: likewise.
    """
    # 1. The coordinate of each block to cut along; the one after the last stands for the capacity.
    gain = _gains(points, units, hulls, first, capacity)
    axis = gain.argmax(axis=1)
    # 2. Where to cut: in the geometric middle, as coordinates span decades; capacities are numbers of their order, of
    #    which the middle is the mean. Rounding must not put the middle at the upper end: the upper half would be empty.
    blocks = np.arange(len(level.start))
    low = np.column_stack([hulls.low, hulls.least_capacity])[blocks, axis]
    high = np.column_stack([hulls.high, hulls.most_capacity])[blocks, axis]
    middle = np.where((low > 0) & (axis < len(points.names)), np.sqrt(low * high), (low + high) / 2)
    middle = np.where((middle >= low) & (middle < high), middle, low)
    # 3. The half of each technology: 2 b or 2 b + 1 for block b. A stable sort keeps the blocks where they are in the
    #    order of technologies, and only moves the lower half of each before the upper.
    along = axis[hulls.block]
    value = hulls.scaled[np.arange(len(along)), np.minimum(along, len(points.names) - 1)]
    value = np.where(along < len(points.names), value, points.capacity_code[hulls.index])
    upper = value > middle[hulls.block]
    child = 2 * hulls.block + upper
    order = np.argsort(child, kind="stable")
    where, _ = ranges(level.start, hulls.sizes)
    points.order[where] = hulls.index[order]
    # 4. The halves as ranges of that order; the pairs of a block go to both, with the bound that they had in it.
    sizes = np.bincount(child, minlength=2 * len(blocks))
    start = np.empty(2 * len(blocks), np.int64)
    start[0::2] = level.start
    start[1::2] = level.start + sizes[0::2]
    return Level(
        start,
        start + sizes,
        np.repeat(level.probed, 2),
        [np.concatenate([2 * block, 2 * block + 1]) for block in level.block],
        [np.tile(row, 2) for row in level.row],
        [np.tile(mask, 2) for mask in level.mask],
        [np.tile(lower, 2) for lower in level.lower],
    )


def _gains(points: Points, units: Sequence[Unit], hulls: Hulls, first: Array, capacity: Array) -> Array:
    """By block and coordinate, the slowdown of the plan of least bound with one coordinate at its worst end.

    The last column is that of the capacity.
    """
    # A plan may be insensitive to every coordinate at the corner: then the widest one is cut, so that blocks shrink.
    count = hulls.low.shape[1]
    spread = 1 - hulls.low / np.maximum(hulls.high, 1e-300)
    gain = np.column_stack([1e-3 * spread, np.where(hulls.least_capacity < hulls.most_capacity, capacity + 1e-9, -1.0)])
    for k, unit in enumerate(units):
        mine = np.flatnonzero(first[:, 0] == k)
        if not len(mine):
            continue
        # Of each block a point for each coordinate, the best corner with this one at its worst end, then the corner
        # itself. Counted units come last; with them at the worst end the block has no other number of units.
        corners = np.repeat(hulls.low[mine][:, None], count + 1, axis=1)
        least, most = corners.copy(), np.repeat(hulls.high[mine][:, None], count + 1, axis=1)
        for axis in range(count):
            corners[:, axis, axis] = hulls.high[mine, axis]
        if points.counted:
            least[:, count - 1, count - 1] = hulls.high[mine, count - 1]
        corner = points.inputs(*(each.reshape(-1, count) for each in (corners, least, most)))
        pairs = unit.pairs(FAST, np.uint64(1) << first[mine, 2].astype(np.uint64))
        size = len(mine) * (count + 1)
        place = np.repeat(pairs.place_of(first[mine, 2]), count + 1)
        found = np.empty(size)
        for part, times in pairs.run(np.repeat(first[mine, 1], count + 1), corner, np.arange(size)):
            found[part] = times[place[part], np.arange(times.shape[1])]
        times = found.reshape(len(mine), count + 1)
        gain[mine, :count] += np.log(times[:, :count] / times[:, count:])
    gain[:, :count] = np.where(hulls.low < hulls.high, gain[:, :count], -1.0)  # what does not vary is never cut
    return gain

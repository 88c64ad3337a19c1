"""Runs branch and bound over technologies in threads, and keeps what it finds."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.compiling import stop_compiling
from ..tally import round_values
from .blocks import PROBED, Hulls, bound_plans, cut_blocks, probe, ranges, root, try_plans
from .unit import EXACT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..evaluate import SearchSpace
    from .blocks import Level
    from .points import Points
    from .unit import Unit

    Array = np.ndarray[Any, Any]
    Progress = Callable[[int, int], None]

FEW_POINTS = 8
"""Technologies of a block that is not cut."""
FEW_PAIRS = 3
"""Rows of plans of a block that is not cut."""
MOST_PAIRS = 400_000
"""Pairs of a block and a row of plans that are treated together."""
SAMPLES = 5
"""Technologies whose best plans are tried at all the others first."""
NEAR = 1 + 1e-10
"""Times this much apart may be equal to the digits that a search compares."""
WAIT = 1e-3
"""Seconds until a thread without work looks for some again."""


class Result:
    """What is found, by technology.

    Args:
        count: technologies.
    """

    def __init__(self, count: int) -> None:
        self.time = np.full(count, np.inf)
        self.memory = np.full(count, np.nan)
        self.feasible = np.zeros(count, np.int64)
        self.legal = np.zeros(count, np.int64)
        self.place = np.full((count, 4), -1, np.int64)
        """Of the best plan the numbers of its space, combination and table, and its row."""
        self.spaces: list[SearchSpace] = []
        self.evaluated = 0
        self.done = 0
        self.lock = threading.Lock()

    def number_plans(self) -> tuple[Array, list[dict[str, Any]]]:
        """The number of each technology's plan, and the plans."""
        places, number = np.unique(self.place, axis=0, return_inverse=True)
        known: dict[tuple[Any, ...], int] = {}
        plans: list[dict[str, Any]] = []
        of = np.full(len(places), -1)
        for k, (space, *place) in enumerate(places):
            if space < 0:
                continue
            fields = self.spaces[space].fields(place)
            key = tuple(fields.items())
            if key not in known:
                known[key] = len(plans)
                plans.append(fields)
            of[k] = known[key]
        return of[number.ravel()], plans


@dataclass
class _Near:
    """Plans that may be the best of a technology: its place, and their time, unit, row and member."""

    place: Array
    time: Array
    unit: Array
    row: Array
    member: Array

    def at(self, chosen: Array) -> _Near:
        return _Near(*(part[chosen] for part in (self.place, self.time, self.unit, self.row, self.member)))


class Drive:
    """One search over technologies that differ in quantities with a direction.

    Args:
        points: the technologies.
        units: the plans, one or more.
        index: of each technology, its place in the result.
        number: of the plans' space in the result.
        result: where to put what is found.
        progress: told how many technologies of the result are done.
    """

    def __init__(
        self,
        points: Points,
        units: Sequence[Unit],
        index: Array,
        number: int,
        result: Result,
        progress: Progress | None,
    ) -> None:
        self.points, self.units, self.index, self.number = points, units, index, number
        self.result, self.progress = result, progress
        self.ranks = _ranks(units)
        self._todo: list[Level] = []
        self._busy = 0
        self._threads = 1
        self._failures: list[BaseException] = []

    def run(self, threads: int) -> None:
        """Find the best plan of every technology.

        Raises:
            BaseException: what went wrong in any thread; a KeyboardInterrupt.
        """
        self._threads = threads
        self._start()
        self._todo = [root(self.points)]
        others = [threading.Thread(target=self._work) for _ in range(1, threads)]
        try:
            for other in others:
                other.start()
            self._work()
            for other in others:
                other.join()
        except BaseException as failure:  # an interrupt that found no step to end: the others end after theirs
            self._failures.append(failure)
        for other in others:
            if other.ident is not None:
                other.join()
        if self._failures:
            raise self._failures[0]

    def _start(self) -> None:
        """Try the plan of least memory, and the best ones at some technologies, at all technologies."""
        count = len(self.index)
        least = []
        for k, unit in enumerate(self.units):
            memory = np.where(unit.legal, unit.memory, np.inf)
            member, row = np.unravel_index(memory.argmin(), memory.shape)
            least.append((float(memory[member, row]), (k, int(row), int(member))))
        plans = [min(least)[1]]
        for at in np.unique(np.linspace(0, count - 1, SAMPLES).astype(np.int64)):
            level = root(self.points)
            level.end = level.start  # of no technology: the plan is tried below
            unit_number, row, member = probe(self.points, self.units, level, np.array([at]))[0]
            plans.append((int(unit_number), int(row), int(member)))
        parts = np.array_split(np.arange(count), self._threads)

        def try_part(part: Array) -> None:
            for plan in dict.fromkeys(plans):
                if self._failures:
                    return
                try_plans(self.points, self.units, part, np.tile(plan, (len(part), 1)))

        with ThreadPoolExecutor(self._threads) as pool:
            try:
                list(pool.map(try_part, parts))
            except BaseException as failure:
                self._failures.append(failure)
                stop_compiling(pool)
                raise

    def _work(self) -> None:
        lock = self.result.lock
        while not self._failures:
            with lock:
                level = self._todo.pop() if self._todo else None
                if level is None and not self._busy:
                    return
                self._busy += level is not None
            if level is None:
                time.sleep(WAIT)
                continue
            try:
                more = self._step(level)
                with lock:
                    self._todo.extend(more)
                    if self.progress is not None:
                        self.progress(self.result.done, len(self.result.time))
            except BaseException as failure:
                self._failures.append(failure)
            finally:
                with lock:
                    self._busy -= 1

    def _step(self, level: Level) -> list[Level]:
        """Bound some blocks, compute those that are small, and cut the others."""
        points, units = self.points, self.units
        sizes = level.end - level.start
        evaluated = level.size
        # 1. A good plan for the middle of each block that has shrunk much since it was probed: the bound of what has to
        #    be beaten is that of the best plans known.
        again = sizes <= PROBED * level.probed
        if again.any():
            chosen = level.some(again)
            probe(points, units, chosen, points.order[(chosen.start + chosen.end) // 2])
            level.probed[again] = sizes[again]
            evaluated += int(sizes[again].sum())
        # 2. What is nowhere the best in a block leaves it.
        hulls = Hulls(points, level)
        first, capacity = bound_plans(points, units, level, hulls)
        # 3. Blocks of few technologies, of few plans or of one place are computed plan by plan.
        counts = level.counts()
        last = (sizes <= FEW_POINTS) | (counts <= FEW_PAIRS) | hulls.single
        evaluated += int((counts[last] * sizes[last]).sum())
        self._compute(level.some(last))
        with self.result.lock:
            self.result.evaluated += evaluated
            self.result.done += int(sizes[last].sum())
        if last.all():
            return []
        # 4. The others are cut, and dealt out in pieces of bounded size, at least one for each thread that waits.
        rest = level.some(~last)
        if last.any():
            hulls = Hulls(points, rest)
        children = cut_blocks(points, units, rest, hulls, first[~last], capacity[~last])
        total = np.cumsum(children.counts())
        pieces = max(-(-int(total[-1]) // MOST_PAIRS), self._threads if not self._todo else 1)
        piece = (total - 1) * pieces // total[-1]
        return [children.some(piece == k) for k in np.unique(piece)]

    def _compute(self, level: Level) -> None:
        """Compute the plans that are left of some blocks at each of their technologies."""
        near = self._near(level)
        if near is None:
            return
        rank = np.empty(len(near.place), np.int64)
        for k in np.unique(near.unit):
            mine = near.unit == k
            rank[mine] = self.ranks[k][near.member[mine], near.row[mine]]
        order = np.lexsort((rank, round_values(near.time), near.place))
        best = near.at(order[np.concatenate([[True], np.diff(near.place[order]) != 0])])
        result = self.result
        where = self.index[self.points.order[best.place]]
        result.time[where] = best.time
        for k in np.unique(best.unit):
            mine = best.unit == k
            unit, there = self.units[k], where[mine]
            result.memory[there] = unit.memory[best.member[mine], best.row[mine]]
            places = (np.full(len(there), self.number), unit.numbers[best.member[mine]])
            result.place[there] = np.stack([*places, np.full(len(there), unit.table), best.row[mine]], axis=1)

    def _near(self, level: Level) -> _Near | None:
        """The fastest plans of each technology of some blocks, and what is as fast to a few digits less."""
        if not len(level.start):
            return None
        points = self.points
        sizes = level.end - level.start
        base = int(level.start.min())
        least = np.full(int(level.end.max()) - base, np.inf)
        held: list[tuple[Array, ...]] = []
        for k, unit in enumerate(self.units):
            block = level.block[k]
            place, pair = ranges(level.start[block], sizes[block])
            rows, masks = level.row[k][pair], level.mask[k][pair]
            masks = masks & points.fits[k][points.capacity_code[points.order[place]], rows]
            place, rows, masks = place[masks != 0], rows[masks != 0], masks[masks != 0]
            if not len(rows):
                continue
            pairs = unit.pairs(EXACT, masks)
            for part, times in pairs.run(rows, points.columns, points.order[place]):
                at = place[part] - base
                there = pairs.among(masks[part]) & (times <= least[at] * NEAR)
                member, pair = np.nonzero(there)
                if len(pair):
                    found = times[member, pair]
                    np.minimum.at(least, at[pair], found)
                    held.append((at[pair], found, np.full(len(pair), k), rows[part][pair], pairs.members[member]))
        if not held:
            return None
        near = _Near(*(np.concatenate(parts) for parts in zip(*held, strict=True)))
        near = near.at(near.time <= least[near.place] * NEAR)
        near.place = near.place + base
        return near


def _ranks(units: Sequence[Unit]) -> list[Array]:
    """Of each unit, the place of each member at each row among plans of equal time, as a search ranks them."""
    keys = []
    for unit in units:
        member, row = np.indices(unit.legal.shape)
        of = (unit.numbers[member].ravel(), np.full(member.size, unit.table), row.ravel())
        keys.append(np.stack([round_values(unit.memory).ravel(), *of]))
    joined = np.concatenate(keys, axis=1)
    rank = np.empty(joined.shape[1], np.int64)
    rank[np.lexsort(joined[::-1])] = np.arange(joined.shape[1])
    cuts = np.cumsum([unit.legal.size for unit in units])[:-1]
    return [part.reshape(unit.legal.shape) for part, unit in zip(np.split(rank, cuts), units, strict=True)]

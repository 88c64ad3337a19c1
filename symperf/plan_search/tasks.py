"""The work of a search, cut into tasks that any thread, or any process, computes by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.rows import PointTable
from .bounds import ideal_time, lower_bounds, waits
from .family import energy_program_of, families, program_of, structures_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..codegen.rows import RowProgram
    from .evaluate import Member, SearchSpace
    from .tally import Tally

    Array = np.ndarray[Any, Any]

MEMORY = "does_not_fit"
LIMIT = "above_max_memory"
AT_ONCE = 4_000_000
"""Plans of a family whose memory is held at once."""
SHARE = 1_000_000
"""Plans of a task, about, where a family is cut."""


@dataclass(frozen=True)
class Task:
    """One of the equal shares of the rows over which a family is evaluated.

    Attributes:
        family: its number.
        share: which, from 0.
        shares: how many there are.
    """

    family: int
    share: int = 0
    shares: int = 1


@dataclass(frozen=True, eq=False)
class TablePart:
    """The combinations of a family that share a table."""

    table: int
    members: list[Member]
    legal: Array
    """Of each member (a row) at each row of the table (a column)."""


class SearchWork:
    """The families of a space, and the tables over which they are evaluated.

    Args:
        space: from `laid`.
        memory_only: compute no times.
    """

    def __init__(self, space: SearchSpace, *, memory_only: bool = False) -> None:
        self.space, self.memory_only = space, memory_only
        self.families = families(space.members)
        self.stopped = Event()
        """Set where an interrupt ends the search: threads leave what they are at."""

    @cached_property
    def rows(self) -> list[PointTable | None]:
        """The tables that have rows."""
        return [PointTable(made.columns) if made.length else None for made in self.space.tables]

    def tasks(self, family: int, *, cut: bool) -> list[Task]:
        """The tasks of a family: one, or where it may be cut as many as there are shares in it."""
        plans = sum(int(np.count_nonzero(member.legal)) for member in self.families[family])
        shares = max(1, -(-plans // SHARE)) if cut else 1
        return [Task(family, share, shares) for share in range(shares)]

    def program(self, task: Task) -> RowProgram:
        """The program of a task's family."""
        structures = structures_of(self.families[task.family])
        return program_of(structures, self.space.question.columns, memory_only=self.memory_only)

    def run(self, task: Task, tally: Tally, limit: float) -> int:
        """Evaluate the plans of a task, but for those whose bound is above the limit.

        Args:
            task: of this work.
            tally: takes what is found.
            limit: seconds; infinite to compute every time.

        Returns:
            Plans seen.
        """
        group = self.families[task.family]
        structures = structures_of(group)
        program = self.program(task)
        done = 0
        for part in _parts(group):
            held = self.rows[part.table]
            assert held is not None
            some = np.flatnonzero(part.legal.any(axis=0))
            start, stop = (len(some) * k // task.shares for k in (task.share, task.share + 1))
            evaluation = _Evaluation(self.space, tally, program, structures, part, held, self.stopped)
            evaluation.run(some[start:stop], -np.inf if self.memory_only else limit)
            done += int(np.count_nonzero(part.legal[:, some[start:stop]]))
        return done


def _parts(group: Sequence[Member]) -> list[TablePart]:
    by_table: dict[int, list[Member]] = {}
    for member in group:
        by_table.setdefault(member.table, []).append(member)
    return [TablePart(k, members, np.stack([m.legal for m in members])) for k, members in by_table.items()]


class _Evaluation:
    """One family over one table."""

    def __init__(
        self,
        space: SearchSpace,
        tally: Tally,
        program: RowProgram,
        structures: Sequence[Any],
        part: TablePart,
        rows: PointTable,
        stopped: Event,
    ) -> None:
        self.stopped = stopped
        self.space, self.tally, self.program, self.part, self.rows = space, tally, program, part, rows
        place = {structure: k for k, structure in enumerate(structures)}
        at = [place[member.structure] for member in part.members]
        self.memory = [f"memory/{k}" for k in at]
        self.time = [f"time/{k}" for k in at]
        self.numbers = np.array([member.number for member in part.members])
        self.scalars = part.members[0].scalars
        self.energy = [f"energy/{k}" for k in at]
        self.energies = energy_program_of(tuple(structures), space.question.columns) if self._joules(program) else None

    def run(self, rows: Array, limit: float) -> None:
        """Evaluate the plans of some rows, but for those whose bound is above the limit."""
        step = max(AT_ONCE // len(self.numbers), 1)
        for start in range(0, len(rows), step):
            self._slab(rows[start : start + step], limit)

    def _slab(self, rows: Array, limit: float) -> None:
        question = self.space.question
        legal = self.part.legal[:, rows]
        memory = np.empty(legal.shape)
        start = 0
        for block, found in self._blocks(self.memory, rows):
            memory[:, start : start + len(block)] = found
            start += len(block)
        member, row = np.unravel_index(np.where(legal, memory, np.inf).argmin(), memory.shape)
        self.tally.see(float(memory[member, row]), (int(self.numbers[member]), self.part.table, int(rows[row])))
        fits = legal & (memory <= question.capacity)
        too_large = int(np.count_nonzero(legal)) - int(np.count_nonzero(fits))
        if question.max_memory is not None:
            fits &= memory <= question.max_memory
        kept = fits.any(axis=0)
        if limit < np.inf:
            kept &= self._bound(rows, fits) <= limit
        chosen = np.flatnonzero(kept)
        feasible = int(np.count_nonzero(fits))
        over = int(np.count_nonzero(legal)) - feasible - too_large
        pruned = feasible - int(np.count_nonzero(fits[:, chosen]))
        self.tally.count(feasible, pruned, {MEMORY: too_large, LIMIT: over})
        if not chosen.size:
            return
        start = 0
        times = self._blocks(self.time, rows[chosen])
        for (block, found), dynamic in zip(times, self._dynamic(rows[chosen]), strict=False):
            part = chosen[start : start + len(block)]
            start += len(block)
            time = np.where(fits[:, part], found, np.inf)
            score = None if dynamic is None else self._joules_of(dynamic, time)
            self.tally.add(time, memory[:, part], self.numbers, self.part.table, block, score)

    def _blocks(self, outputs: Sequence[str], rows: Array) -> Iterator[tuple[Array, Array]]:
        """Values of outputs at some rows, block by block, until the search is stopped."""
        for each in self.program.run(self.rows, self.scalars, outputs, rows):
            if self.stopped.is_set():
                raise KeyboardInterrupt
            yield each

    def _joules(self, program: RowProgram) -> bool:
        return self.space.question.by_energy and self.time[0] in program.packed.outputs

    def _dynamic(self, rows: Array) -> Iterator[Array | None]:
        """Joules of FLOPs and bytes of a step on all devices, block by block; None where plans are ranked by time."""
        if self.energies is None:
            yield from repeat(None)
            return
        scalars = {name: self.scalars.get(name, 0.0) for name in self.energies.packed.inputs}
        for _, found in self.energies.run(self.rows, scalars, self.energy, rows):
            yield found

    def _joules_of(self, dynamic: Array, time: Array) -> Array:
        """Joules of a step, infinite where there is no plan: no static power for an endless time is not a number."""
        watts = self.scalars.get("static_power", 0.0) * self.space.question.devices
        return np.where(np.isfinite(time), dynamic, np.inf) + watts * np.where(np.isfinite(time), time, 0.0)

    def _bound(self, rows: Array, fits: Array) -> Array:
        """At each row the least bound of those combinations that fit."""
        question = self.space.question
        ideal = ideal_time(question, self.part.members[0].structure, self.scalars)
        columns = {name: column[rows] for name, column in self.space.tables[self.part.table].columns.items()}
        waiting, other = lower_bounds(question, columns, ideal)
        whole = np.array([waits(member.structure) for member in self.part.members])
        found = np.full(len(rows), np.inf)
        found[fits[whole].any(axis=0)] = waiting[fits[whole].any(axis=0)]
        split = fits[~whole].any(axis=0)
        found[split] = other[split]
        return found

"""Evaluates families over tables of legal degrees: memory first, then the time of what fits and no bound excludes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.rows import Rows
from ..codegen.workers import default_threads
from ..errors import InputError
from ..plan import Plan
from .bounds import ideal_time, lower_bounds, waits
from .family import families, program_of, structures_of
from .legal import Table, table
from .space import combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..codegen.rows import RowProgram
    from ..structure import Structure
    from .space import Combination, Form, Question
    from .tally import Tally

    Array = np.ndarray[Any, Any]

Progress = Callable[[int, int], None]
IMPOSSIBLE = "choices_do_not_go_together"
MEMORY = "does_not_fit"
LIMIT = "above_max_memory"
AT_ONCE = 4_000_000
"""Plans of a family whose memory is held at once."""


@dataclass(frozen=True, eq=False)
class Member:
    """A combination that has legal plans.

    Attributes:
        combination: the choices.
        structure: of its plans.
        scalars: numbers by symbol, without the columns of the table; one object for all members with the same.
        table: number of its table.
        legal: at each row of the table.
    """

    combination: Combination
    structure: Structure
    scalars: dict[str, float]
    table: int
    legal: Array

    @property
    def number(self) -> int:
        """Of the combination."""
        return self.combination.number


@dataclass(frozen=True, eq=False)
class Laid:
    """A question with its combinations and tables: everything but the costs.

    Attributes:
        question: what is asked.
        combinations: by number.
        tables: of each form.
        members: combinations with legal plans.
        considered: plans of the space.
        rejected: plans that cannot run, by reason.
        refusal: why a single run refuses the first plan that the rules allow; empty where it refuses none.
    """

    question: Question
    combinations: list[Combination]
    tables: list[Table]
    members: list[Member]
    considered: int
    rejected: dict[str, int]
    refusal: str

    @property
    def legal(self) -> int:
        """Plans that can run, if they fit."""
        return self.considered - sum(self.rejected.values())

    def fields(self, place: Sequence[int]) -> dict[str, Any]:
        """The fields of a plan, given the numbers of its combination and table, and its row."""
        number, table_number, row = (int(part) for part in place)
        fields = {**self.combinations[number].fields, **self.tables[table_number].degrees(row)}
        return {name: fields[name] for name in Plan.names()}


def laid(question: Question) -> Laid:
    """Lay out the space of a question."""
    every = combinations(question)
    forms: dict[Form, list[Combination]] = {}
    for combination in every:
        forms.setdefault(combination.form, []).append(combination)
    tables: list[Table] = []
    members: list[Member] = []
    considered, refusal, rejected = 0, "", dict[str, int]()
    numbers: dict[tuple[Any, ...], dict[str, float]] = {}

    def refused(name: str, n: int) -> None:
        if n:
            rejected[name] = rejected.get(name, 0) + n

    for form, group in forms.items():
        possible = [c for c in group if not c.refusal]
        made = table(question, form, possible)
        considered += made.considered * len(group)
        refused(IMPOSSIBLE, made.considered * (len(group) - len(possible)))
        for name, n in made.rejected.items():
            refused(name, n * len(possible))
        for name, n in made.rejections.items():
            refused(name, n)
        for combination, legal in zip(made.combinations, made.legal, strict=True):
            if not legal.any():
                continue
            try:
                if combination.numbers not in numbers:
                    numbers[combination.numbers] = _numbers(question, combination, made, legal)
            except InputError as error:
                refused(IMPOSSIBLE, int(np.count_nonzero(legal)))
                refusal = refusal or str(error)
                continue
            assert combination.structure is not None
            scalars = numbers[combination.numbers]
            members.append(Member(combination, combination.structure, scalars, len(tables), legal))
        tables.append(made)
    return Laid(question, every, tables, members, considered, rejected, refusal)


def _numbers(question: Question, combination: Combination, made: Table, legal: Array) -> dict[str, float]:
    """The numbers that a run of the first legal plan of a combination binds, without the columns of the table.

    Raises:
        InputError: a single run refuses that plan.
    """
    run = question.run(**{**combination.fields, **made.degrees(int(legal.argmax()))})
    return {name: value for name, (value, _) in run.bound.items() if name not in question.columns}


@dataclass(frozen=True, eq=False)
class _Part:
    """The combinations of a family that share a table."""

    table: int
    members: list[Member]
    legal: Array
    """Of each member (a row) at each row of the table (a column)."""


def evaluate(
    space: Laid,
    tally: Tally,
    *,
    prune: bool = True,
    memory_only: bool = False,
    progress: Progress | None = None,
    threads: int | None = None,
) -> bool:
    """Evaluate every legal plan, or prove that it is not among the best.

    Args:
        space: from `laid`.
        tally: takes what is found.
        memory_only: compute no times.
        prune: leave out plans that a bound proves to be slower than those of the first family.
        progress: told how many of the legal plans are done.
        threads: how many; by default one for each processor.

    Returns:
        Whether all was seen; False after a KeyboardInterrupt.
    """
    rows = [Rows(made.columns) if made.length else None for made in space.tables]
    work = families(space.members)
    total = space.legal
    done = 0

    def one(group: Sequence[Member], limit: float) -> None:
        nonlocal done
        structures = structures_of(group)
        program = program_of(structures, space.question.columns, memory_only=memory_only)
        for part in _parts(group):
            held = rows[part.table]
            assert held is not None
            evaluation = _Evaluation(space, tally, program, structures, part, held)
            evaluation.run(-np.inf if memory_only else limit if prune else np.inf)
            with tally.lock:
                done += int(np.count_nonzero(part.legal))
                if progress is not None:
                    progress(done, total)

    try:
        if work:
            one(work[0], np.inf)
        limit = (
            tally.threshold if tally.front is None else np.inf
        )  # one for all the others: counts do not depend on luck
        workers = min(threads or default_threads(), max(len(work) - 1, 1))
        if workers == 1:
            for group in work[1:]:
                one(group, limit)
            return True
        pool = ThreadPoolExecutor(workers)
        try:
            for future in [pool.submit(one, group, limit) for group in work[1:]]:
                future.result()
        finally:
            pool.shutdown(cancel_futures=True)
    except KeyboardInterrupt:
        return False
    return True


def _parts(group: Sequence[Member]) -> list[_Part]:
    by_table: dict[int, list[Member]] = {}
    for member in group:
        by_table.setdefault(member.table, []).append(member)
    return [_Part(k, members, np.stack([m.legal for m in members])) for k, members in by_table.items()]


class _Evaluation:
    """One family over one table."""

    def __init__(
        self,
        space: Laid,
        tally: Tally,
        program: RowProgram,
        structures: Sequence[Any],
        part: _Part,
        rows: Rows,
    ) -> None:
        self.space, self.tally, self.program, self.part, self.rows = space, tally, program, part, rows
        place = {structure: k for k, structure in enumerate(structures)}
        at = [place[member.structure] for member in part.members]
        self.memory = [f"memory/{k}" for k in at]
        self.time = [f"time/{k}" for k in at]
        self.numbers = np.array([member.number for member in part.members])
        self.scalars = part.members[0].scalars

    def run(self, limit: float) -> None:
        """Evaluate the plans, but for those whose bound is above the limit."""
        some = np.flatnonzero(self.part.legal.any(axis=0))
        step = max(AT_ONCE // len(self.numbers), 1)
        for start in range(0, len(some), step):
            self._slab(some[start : start + step], limit)

    def _slab(self, rows: Array, limit: float) -> None:
        question = self.space.question
        legal = self.part.legal[:, rows]
        memory = np.empty(legal.shape)
        start = 0
        for block, found in self.program.run(self.rows, self.scalars, self.memory, rows):
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
        for block, found in self.program.run(self.rows, self.scalars, self.time, rows[chosen]):
            part = chosen[start : start + len(block)]
            start += len(block)
            time = np.where(fits[:, part], found, np.inf)
            self.tally.add(time, memory[:, part], self.numbers, self.part.table, block)

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

"""Evaluates families over tables of legal degrees: memory first, then the time of what fits and no bound excludes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.workers import default_threads
from ..common.errors import InputError
from ..plans.plan import Plan
from ..plans.structure import EITHER_ORDER
from .legal import DegreeTable, table
from .reasons import name_of
from .space import combinations
from .tasks import SearchWork

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..plans.structure import Structure
    from .space import Combination, SearchQuestion, TableForm
    from .tally import Tally
    from .tasks import Task

    Remote = Callable[[SearchQuestion, Tally, Sequence[Task], float], Iterator[tuple[Tally, int]]]
    """Computes tasks of a question within a limit, and tells of each a tally like the one given, and plans seen."""
    Array = np.ndarray[Any, Any]

Progress = Callable[[int, int], None]


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
class SearchSpace:
    """A question with its combinations and tables: everything but the costs.

    Attributes:
        question: what is asked.
        combinations: by number.
        tables: of each form.
        members: combinations with legal plans.
        considered: plans of the space.
        rejected: plans that cannot run, by reason.
        refusal: why a single run refuses the first plan that the rules allow; empty where it refuses none.
        examples: the message of the first plan that each reason refuses, where it has one.
    """

    question: SearchQuestion
    combinations: list[Combination]
    tables: list[DegreeTable]
    members: list[Member]
    considered: int
    rejected: dict[str, int]
    refusal: str
    examples: dict[str, str]

    @property
    def legal(self) -> int:
        """Plans that can run, if they fit."""
        return self.considered - sum(self.rejected.values())

    def fields(self, place: Sequence[int]) -> dict[str, Any]:
        """The fields of a plan, given the numbers of its combination and table, and its row."""
        number, table_number, row = (int(part) for part in place)
        fields = {**self.combinations[number].fields, **self.tables[table_number].degrees(row)}
        return {name: fields[name] for name in Plan.names()}


def lay_out_space(question: SearchQuestion) -> SearchSpace:
    """Lay out the space of a question."""
    every = combinations(question)
    forms: dict[TableForm, list[Combination]] = {}
    for combination in every:
        forms.setdefault(combination.form, []).append(combination)
    tables: list[DegreeTable] = []
    members: list[Member] = []
    considered, refusal, rejected = 0, "", dict[str, int]()
    numbers: dict[tuple[Any, ...], dict[str, float]] = {}
    ordered: dict[tuple[Any, ...], dict[str, float]] = {}
    examples: dict[str, str] = {}

    def refused(name: str, n: int) -> None:
        if n:
            rejected[name] = rejected.get(name, 0) + n

    for form, group in forms.items():
        possible = [c for c in group if not c.refusal]
        made = table(question, form, possible)
        considered += made.considered * len(group)
        for combination in group:
            if combination.refusal:
                refused(combination.rule, made.considered)
                examples.setdefault(combination.rule, combination.refusal)
        examples = made.examples | examples
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
                reason = name_of(error, question.base.model.name)
                refused(reason, int(np.count_nonzero(legal)))
                examples.setdefault(reason, str(error))
                refusal = refusal or str(error)
                continue
            assert combination.structure is not None
            inside = combination.fields["rank_order"] == "tp-cp-pp-dp"
            order = dict(zip(EITHER_ORDER, (float(inside), float(not inside)), strict=True))
            scalars = ordered.setdefault((combination.numbers, inside), numbers[combination.numbers] | order)
            members.append(Member(combination, combination.structure, scalars, len(tables), legal))
        tables.append(made)
    return SearchSpace(question, every, tables, members, considered, rejected, refusal, examples)


def _numbers(question: SearchQuestion, combination: Combination, made: DegreeTable, legal: Array) -> dict[str, float]:
    """The numbers that a run of the first legal plan of a combination binds, without the columns of the table.

    Raises:
        InputError: a single run refuses that plan.
    """
    run = question.run(**{**combination.fields, **made.degrees(int(legal.argmax()))})
    found = {name: value for name, (value, _) in run.bound.items()}
    if question.by_energy:
        matrix = found.get("matrix_energy", 0.0)  # of 16 bits
        found |= {"matrix_energy": matrix * run._narrowing, "attention_energy": matrix, "busy_time": 0.0}
    return {name: value for name, value in found.items() if name not in question.columns}


def evaluate(
    space: SearchSpace,
    tally: Tally,
    *,
    prune: bool = True,
    memory_only: bool = False,
    progress: Progress | None = None,
    threads: int | None = None,
    remote: Remote | None = None,
) -> bool:
    """Evaluate every legal plan, or prove that it is not among the best.

    Args:
        space: from `laid`.
        tally: takes what is found.
        memory_only: compute no times.
        prune: leave out plans that a bound proves to be slower than those of the first family.
        progress: told how many of the legal plans are done.
        threads: how many; by default one for each processor.
        remote: computes tasks elsewhere.

    Returns:
        Whether all was seen; False after a KeyboardInterrupt.
    """
    work = SearchWork(space, memory_only=memory_only)
    total = space.legal
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        with tally.lock:
            done += more
            if progress is not None:
                progress(done, total)

    def spread(families: Sequence[int], limit: float) -> None:
        tasks = [task for k in families for task in work.tasks(k, cut=remote is not None)]
        if remote is not None:
            for part, more in remote(space.question, tally, tasks, limit):
                tally.merge(part)
                tell(more)
            return
        workers = min(threads or default_threads(), max(len(tasks), 1))
        if workers == 1:
            for task in tasks:
                tell(work.run(task, tally, limit))
            return
        pool = ThreadPoolExecutor(workers)
        waiting = []
        try:
            for task in tasks:
                work.program(task)  # compiled in this thread, which hears a signal, beside what others evaluate
                waiting.append(pool.submit(lambda one: tell(work.run(one, tally, limit)), task))
            for future in waiting:
                future.result()
        except BaseException:
            work.stopped.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    try:
        spread(range(len(work.families))[:1], np.inf)
        # One limit for all the others: counts do not depend on luck.
        bounded = prune and tally.front is None and not space.question.by_energy
        limit = tally.threshold if bounded else np.inf
        spread(range(len(work.families))[1:], limit)
    except KeyboardInterrupt:
        return False
    return True

"""The tasks of a search computed by a Dask cluster, exactly as here: the answer is the same, count for count."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from .evaluate import lay_out_space
from .tally import Tally
from .tasks import SearchWork, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..common.cluster import Scheduler
    from .evaluate import Remote
    from .space import SearchQuestion


@contextmanager
def on_cluster(address: str | Scheduler | None) -> Iterator[Remote | None]:
    """Computes tasks on the cluster of a scheduler; without an address, None.

    Raises:
        InputError: Dask is not installed, or no scheduler answers; later, that a worker has another symperf.
    """
    if address is None:
        yield None
        return
    from ..common.cluster import Cluster

    with Cluster(address) as cluster:

        def remote(
            question: SearchQuestion, tally: Tally, tasks: Sequence[Task], limit: float
        ) -> Iterator[tuple[Tally, int]]:
            bare = dataclasses.replace(question)  # without what it has computed
            shared = _Shared(bare, tally.top, tally.front is not None)
            return cluster.each(_compute, shared, [(task, limit) for task in tasks])

        yield remote


@dataclass(frozen=True, eq=False)
class _Shared:
    """What a worker needs to know of a search, and keeps from task to task."""

    question: SearchQuestion
    top: int
    front: bool

    @cached_property
    def work(self) -> SearchWork:
        return SearchWork(lay_out_space(self.question))

    def tally(self) -> Tally:
        space = self.work.space
        return Tally(self.top, [made.length for made in space.tables], len(space.combinations), front=self.front)


def _compute(shared: _Shared, item: tuple[Task, float]) -> tuple[Tally, int]:
    """Runs on a worker: a tally of one task, and how many plans it saw."""
    task, limit = item
    tally = shared.tally()
    return tally, shared.work.run(task, tally, limit)

"""A search on a Dask cluster is the search of one process, count for count and bit for bit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import distributed
import numpy as np
import pytest
from support import search_cases as cases
from support.effort import some

import symperf as sf
from symperf.common import cluster as connection
from symperf.plan_search import tasks
from symperf.plan_search.evaluate import evaluate, lay_out_space
from symperf.plan_search.explain import alternatives
from symperf.plan_search.search import answer_search
from symperf.plan_search.space import SearchQuestion
from symperf.plan_search.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two workers in threads of this process."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None, silence_logs=50
    ) as found:
        yield found.scheduler_address


def same(one: Any, other: Any) -> None:
    """Two answers, in everything that they tell."""
    assert one.records == other.records
    for name in ("considered", "legal", "feasible", "pruned", "rejected", "whole", "front"):
        assert getattr(one, name) == getattr(other, name)
    for mine, theirs in zip(one.found, other.found, strict=True):
        for name in ("row_score", "row_combination"):
            for a, b in zip(getattr(mine.tally, name), getattr(theirs.tally, name), strict=True):
                assert np.array_equal(a, b)
        for name in ("combination_score", "combination_place"):
            assert np.array_equal(getattr(mine.tally, name), getattr(theirs.tally, name))
        assert mine.tally.least == theirs.tally.least
    if one.feasible:
        assert alternatives(one) == alternatives(other)


@pytest.mark.parametrize("seed", some([0, 1, 7, 8]))
def test_the_answer_is_the_same(address: str, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Random small problems, cut into many tasks."""
    monkeypatch.setattr(tasks, "SHARE", 40)
    of = cases.problem(seed)
    for how in ({"top": 3}, {"top": 10, "prune": False}, {"pareto": True}):
        same(of.search(**how), of.search(**how, dask=address))


def test_several_numbers_of_devices_use_one_cluster(address: str) -> None:
    asked: dict[str, Any] = {"devices": [4, 8], "batch": 8, "sequence": 256, "require": {"cp": [1], "zero": [0, 1]}}
    model, system = sf.Model.load("gpt2"), sf.System.load("a100-80gb-sxm")
    same(answer_search(model, system, **asked), answer_search(model, system, **asked, dask=address))


def test_shares_are_the_whole() -> None:
    """However a family is cut, and in whatever order the parts are added, nothing is lost or counted twice."""
    of = cases.problem(2)
    question = SearchQuestion(
        sf.Model.load(of.model), sf.System.load(of.system), of.devices, of.batch, of.sequence,
        values=of.values, required={name: tuple(values) for name, values in of.menu.items()},
    )  # fmt: skip
    space = lay_out_space(question)
    lengths = [made.length for made in space.tables]

    def tally() -> Tally:
        return Tally(14, lengths, len(space.combinations), front=True)

    whole = tally()
    assert evaluate(space, whole, threads=1)
    for shares in (1, 3, 1000):
        work = tasks.SearchWork(space)
        every = [tasks.Task(k, share, shares) for k in range(len(work.families)) for share in range(shares)]
        merged, seen = tally(), 0
        for task in reversed(every):
            part = tally()
            seen += work.run(task, part, np.inf)
            merged.merge(part)
        assert seen == space.legal
        assert (merged.feasible, merged.rejected, merged.least) == (whole.feasible, whole.rejected, whole.least)
        for kept, other in ((merged.best, whole.best), (merged.front, whole.front)):
            assert kept is not None
            assert other is not None
            for name in ("time", "memory", "place"):
                assert np.array_equal(getattr(kept, name), getattr(other, name))


ASKED = ["search", "gpt2", "-s", "a100-80gb-sxm", "--devices", "4", "--batch", "8", "--sequence", "256"]
FEW = ["--require", "cp=1", "--require", "zero=0,1", "--require", "schedule=1f1b"]


def test_on_the_command_line(address: str, call: Callable[[Any], Any]) -> None:
    alone, spread = call([*ASKED, *FEW, "--json"]), call([*ASKED, *FEW, "--json", "--dask", address])
    assert (spread.code, spread.err) == (0, "")
    assert json.loads(spread.out) == json.loads(alone.out)


def test_a_cluster_that_cannot_be_used_is_one_line(
    address: str, call: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No scheduler; a search for inference, which has few plans."""
    code, out, err = call([*ASKED[:-4], "--prompt", "8", "--generate", "8", "--dask", address])
    assert (code, out) == (2, "")
    assert "found --dask with --prompt, expected it in a search for training only" in err
    monkeypatch.setattr(connection, "TIMEOUT_S", 0.5)
    code, out, err = call([*ASKED, *FEW, "--dask", "tcp://127.0.0.1:1"])
    assert (code, out) == (2, "")
    assert "--dask: no scheduler at 'tcp://127.0.0.1:1', expected an address" in err
    assert len(err.splitlines()) == 1

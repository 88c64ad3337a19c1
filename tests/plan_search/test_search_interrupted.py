"""Ctrl-C in a search, by a signal as a terminal sends it: the best of what was seen, exit status 130."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from symperf.cli import search as verb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRAINING = ["search", "gpt2", "-s", "a100-80gb-sxm", "--devices", "8", "--batch", "16", "--sequence", "256"]
TRAINING += ["--require", "cp=1", "--require", "zero=0,1", "--require", "schedule=1f1b"]
SERVING = ["search", "llama-2-7b", "-s", "h100-sxm", "--devices", "4", "--prompt", "512", "--generate", "64"]
SERVING += ["--require", "chunk=512,2048", "--require", "precision=fp8"]
CASES = {
    "training": (TRAINING, 1),
    "load": ([*SERVING, "--tpot", "0.05"], 5),
    "load, at once": ([*SERVING, "--tpot", "0.05"], 1),
    "batch": ([*SERVING[:-4], "--batch", "8"], 5),
    "pools": ([*SERVING, "--tpot", "0.05", "--disaggregate"], 26),
}
"""Command lines, and after how many looks at the progress the signal comes."""


@pytest.fixture
def interrupting(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Sends this process the signal when a search has told of its progress so many times."""

    def set_up(after: int) -> list[int]:
        seen: list[int] = []

        def tell(done: int, _: int) -> None:
            seen.append(done)
            if len(seen) == after:
                signal.raise_signal(signal.SIGINT)

        @contextmanager
        def bar(_: bool) -> Iterator[Any]:
            yield tell

        monkeypatch.setattr(verb, "_bar", bar)
        return seen

    return set_up


@pytest.mark.parametrize("case", list(CASES))
def test_the_best_of_what_was_seen_is_printed(
    case: str, interrupting: Callable[[int], list[int]], call: Callable[[Any], Any]
) -> None:
    command, after = CASES[case]
    seen = interrupting(after)
    code, out, err = call([*command, "--json"])
    assert code == 130
    assert err == "symperf: interrupted: this is the best of what was seen\n"
    assert len(seen) >= after
    found = json.loads(out)
    assert found["whole"] is False
    assert found["plans"]
    assert (found.get("pools") is not None) is (case == "pools")
    seen = interrupting(after)
    code, out, err = call(command)
    assert code == 130
    assert "nterrupted" in out
    assert err.count("\n") == 1


def test_an_interruption_before_any_plan_is_one_line(
    interrupting: Callable[[int], list[int]], call: Callable[[Any], Any]
) -> None:
    """The first plan of the space does not fit: nothing was seen that could be printed."""
    interrupting(1)
    code, out, err = call([*SERVING[:-4], "--batch", "8", "--set", "memory_capacity=5 GB"])
    assert (code, out) == (130, "")
    assert err == "symperf: interrupted\n"

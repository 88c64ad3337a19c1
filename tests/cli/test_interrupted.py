"""After Ctrl-C a command does what is left to do: it compiles nothing, explains nothing and frees nothing."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from symperf.cli import search as verb
from symperf.common import artefacts, collecting
from symperf.plan_search import explain, tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRAINING = ["search", "gpt2", "-s", "a100-80gb-sxm", "--devices", "8", "--batch", "16", "--sequence", "256"]
TRAINING += ["--require", "cp=1", "--require", "zero=0,1", "--require", "schedule=1f1b"]
SAME = 1e-12
"""Relative, of FLOPs by programs that group their sums differently."""
ENDING = """
import atexit, sys
from symperf import cli

class Heap:
    def __del__(self):
        print("freed")

def command():
    {what}

cli._run = lambda _: command()
sys.modules["heap"] = kept = Heap()
kept.itself = kept  # garbage only when the process ends
atexit.register(print, "told at exit")
print("printed")
cli.run_command()
"""


def end(what: str) -> tuple[int, str, str]:
    """How a process ends whose command does this."""
    command = [sys.executable, "-c", ENDING.format(what=what)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return found.returncode, found.stdout, found.stderr


def test_a_command_that_is_interrupted_ends_without_freeing_what_it_made() -> None:
    assert end("raise KeyboardInterrupt") == (130, "printed\ntold at exit\n", "symperf: interrupted\n")
    assert end("return 130") == (130, "printed\ntold at exit\n", "")


def test_any_other_command_ends_as_python_ends() -> None:
    assert end("return 1") == (1, "printed\ntold at exit\nfreed\n", "")


@pytest.mark.parametrize("front", [[], ["--pareto"]])
def test_the_best_of_what_was_seen_is_printed_without_compiling(
    front: list[str], monkeypatch: pytest.MonkeyPatch, call: Callable[[Any], Any]
) -> None:
    """Not even a structure whose program is not there: who interrupts does not wait for a compiler."""
    code, out, _ = call([*TRAINING, *front, "--json"])
    assert code == 0
    whole = json.loads(out)

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("made after an interruption")

    see = tasks.SearchWork.run

    def interrupt(self: Any, *given: Any) -> int:
        see(self, *given)
        for module, name in ((artefacts, "load_or_make"), (explain, "alternatives")):
            monkeypatch.setattr(module, name, fail)
        for module in list(sys.modules.values()):
            if getattr(module, "load_or_make", None) is not None and module.__name__.startswith("symperf"):
                monkeypatch.setattr(module, "load_or_make", fail)
        raise KeyboardInterrupt

    @contextmanager
    def no_bar(_: bool) -> Iterator[None]:
        yield None

    monkeypatch.setattr(tasks.SearchWork, "run", interrupt)
    monkeypatch.setattr(verb, "_bar", no_bar)
    code, out, err = call([*TRAINING, *front, "--json"])
    assert code == 130, err
    found = json.loads(out)
    assert found["whole"] is False
    assert found["shares"] == {}
    assert found["alternatives"] == []
    known = {
        json.dumps([plan[name] for name in plan if name not in {"mfu", "command"}]): plan for plan in whole["plans"]
    }
    alike = [
        (plan, known.get(json.dumps([plan[n] for n in plan if n not in {"mfu", "command"}]))) for plan in found["plans"]
    ]
    assert any(other for _, other in alike)
    for plan, other in alike:
        assert other is None or plan["mfu"] == pytest.approx(other["mfu"], rel=SAME)
    code, out, _ = call([*TRAINING, *front])
    assert code == 130
    assert "interrupted: the best of what was seen" in out
    assert "is due to" not in out


def test_what_a_pause_leaves_is_never_looked_at_by_a_process_of_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_freeze_count()
    with collecting.collection_paused():
        made = [[k] for k in range(1000)]
    assert gc.get_freeze_count() == before
    monkeypatch.setattr(collecting, "_KEPT", [])
    collecting.keep_until_exit()
    try:
        with collecting.collection_paused():
            made += [[k] for k in range(1000)]
        assert gc.get_freeze_count() >= before + 2000
        assert gc.isenabled()
    finally:
        gc.unfreeze()

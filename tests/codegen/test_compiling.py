"""Machine code is made in another process, which a signal ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import symperf as sf
from symperf.codegen import compiling
from symperf.codegen.store import Store
from symperf.plan_search import family
from symperf.plan_search.search import answer_search

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")
TEXT = '''"""A kernel."""

from numba import njit


@njit(cache=True, nogil=True)
def kernel(x, count):
    for k in range(count):
        x[k] += 1.0
'''
ENDLESS = """
import pathlib, sys, time
pathlib.Path(sys.argv[2]).with_name("kernel.nbc.tmp.0123").write_bytes(b"half")
time.sleep(60)
"""
ARGUMENTS = (np.zeros(3), 3)


def interrupt_after(seconds: float) -> float:
    """Send this process a signal soon; when."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    return time.monotonic() + seconds


def wait_for(done: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
    assert done()


def test_another_process_leaves_its_machine_code_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "LONG", 0)
    module = Store(tmp_path / "store").module(TEXT)
    kernel = compiling.load_function(module, "kernel", ARGUMENTS)
    assert len(list(tmp_path.rglob("*.nbc"))) == 1
    x = np.zeros(3)
    kernel(x, 3)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert kernel.stats.cache_hits  # it was loaded, not compiled again
    assert compiling.load_function(module, "kernel", ARGUMENTS) is kernel


def test_what_is_short_or_cannot_be_compiled_elsewhere_is_compiled_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Store(tmp_path / "store").module(TEXT + "# short\n")
    assert compiling.load_function(module, "kernel", ARGUMENTS) is module.kernel
    monkeypatch.setattr(compiling, "LONG", 0)
    for command in ("raise SystemExit(1)", None):
        if command is None:
            monkeypatch.setattr(compiling.sys, "executable", str(tmp_path / "none"))
        monkeypatch.setattr(compiling, "_CHILD", command or "")
        module = Store(tmp_path / "store").module(TEXT + f"# {command}\n")
        assert compiling.load_function(module, "kernel", ARGUMENTS) is module.kernel


def test_a_source_that_was_removed_meanwhile_is_compiled_here(tmp_path: Path) -> None:
    """As where the cache is cleared between import and use."""
    module = Store(tmp_path / "store").module(TEXT + "# removed\n")
    shutil.rmtree(tmp_path / "store")
    kernel, x = compiling.load_function(module, "kernel", ARGUMENTS), np.zeros(3)
    kernel(x, 3)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_a_signal_ends_the_other_process_and_nothing_half_written_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "LONG", 0)
    monkeypatch.setattr(compiling, "_CHILD", ENDLESS)
    module = Store(tmp_path / "store").module(TEXT)
    before = set(tmp_path.rglob("*"))
    sent: list[float] = []

    def send() -> None:
        wait_for(lambda: set(tmp_path.rglob("*")) - before)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send).start()
    with pytest.raises(KeyboardInterrupt):
        compiling.load_function(module, "kernel", ARGUMENTS)
    assert time.monotonic() - sent[0] < 5  # at once, on a machine that does other things too
    assert not compiling._running
    assert set(tmp_path.rglob("*")) == before


def test_a_process_that_the_system_kills_is_no_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where memory is short: the function is compiled here, and what was half written is gone."""
    monkeypatch.setattr(compiling, "LONG", 0)
    killed = ENDLESS.replace("time.sleep(60)", "import os; os.kill(os.getpid(), 9)")
    monkeypatch.setattr(compiling, "_CHILD", killed.replace("{", "{{").replace("}", "}}"))
    module = Store(tmp_path / "store").module(TEXT)
    x = np.zeros(3)
    compiling.load_function(module, "kernel", ARGUMENTS)(x, 3)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert not list(tmp_path.rglob("*.tmp.*"))


def begin(pool: ThreadPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Future[Any]:
    """Have a thread of a pool compile something that does not end."""
    monkeypatch.setattr(compiling, "LONG", 0)
    monkeypatch.setattr(compiling, "_CHILD", ENDLESS)
    module = Store(tmp_path / "store").module(TEXT)
    return pool.submit(compiling.load_function, module, "kernel", ARGUMENTS)


def test_threads_that_wait_for_another_process_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ThreadPoolExecutor(1)
    found = begin(pool, tmp_path, monkeypatch)
    waiting = pool.submit(int)
    wait_for(lambda: compiling._running)
    compiling.stop_compiling(pool)
    assert isinstance(found.exception(0), KeyboardInterrupt)
    assert waiting.cancelled()
    assert not compiling._running
    assert not compiling._stops


def test_what_begins_in_the_moment_of_a_stop_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop has looked for what runs before the other process is known."""
    began, children, there = threading.Event(), [], subprocess.Popen

    def slow(*given: Any, **more: Any) -> Any:
        began.set()
        wait_for(lambda: compiling._stops)
        children.append(there(*given, **more))
        return children[0]

    monkeypatch.setattr(compiling.subprocess, "Popen", slow)
    pool = ThreadPoolExecutor(1)
    found = begin(pool, tmp_path, monkeypatch)
    assert began.wait(60)
    start = time.monotonic()
    compiling.stop_compiling(pool)
    assert time.monotonic() - start < 30
    assert isinstance(found.exception(0), KeyboardInterrupt)
    assert children[0].returncode == -signal.SIGKILL
    assert not compiling._running


def test_a_search_that_compiles_ends_at_a_signal_and_keeps_nothing_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYMPERF_CACHE", str(tmp_path))
    family.program_of.cache_clear()
    when: list[float] = []

    def compile_for_ever(*_: Any, **__: Any) -> None:
        when.append(interrupt_after(0.1))
        while True:
            time.sleep(0.001)

    monkeypatch.setattr(family, "compile_structures", compile_for_ever)
    model, system = sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm")
    found = answer_search(model, system, devices=8, batch=8, sequence=128, require={"recompute": "none"})
    assert time.monotonic() - when[0] < 5
    assert not found.whole
    assert not list(tmp_path.rglob("*.part"))

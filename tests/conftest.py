"""How hard Hypothesis tries: HYPOTHESIS_PROFILE is `dev` (the default), `ci` (repeatable) or `nightly`.

Compiled structures go to a folder of the session, never to the user's cache.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

settings.register_profile("dev", max_examples=30, deadline=None)
settings.register_profile("ci", max_examples=30, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
os.environ.pop("COLUMNS", None)  # readline sets it for the children of a process such as this one


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder for the whole session: one for all workers, and for child processes as well."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYMPERF_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def compiled_here() -> Iterator[None]:
    """Tests run hundreds of small kernels, and no one interrupts them: each is compiled without another interpreter."""
    from symperf.codegen import compiling

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "LONG", 1 << 30)
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> None:
    """Ctrl-C reaches tests and their children however the run was started: `nohup` and some runners ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def known_formulas() -> Iterator[None]:
    """Hundreds of structures are built in one process: a formula of the same arguments is built once."""
    from symperf.formulas.language.formula import memoize_formulas

    with memoize_formulas():
        yield


class Called(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def call() -> Callable[[Sequence[str]], Called]:
    """Run the command line in this process: its exit status and what it printed."""
    from symperf.cli import main

    def run(arguments: Sequence[str]) -> Called:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
        return Called(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def refused(call) -> Callable[[list[str]], str]:
    """The one line that a refused command line is answered with."""

    def ask(arguments: list[str]) -> str:
        done = call(arguments)
        assert (done.code, done.out) == (2, ""), done
        assert done.err.startswith("symperf: ")
        assert done.err.count("\n") == 1
        return done.err

    return ask

"""Machine code is made in another process: LLVM hears no signal, and a process can be killed.

What that process makes lies in the store when it ends, whole or not at all, and is loaded from there. Short texts are
compiled where they are called: that takes less than starting an interpreter.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor
    from types import ModuleType

LONG = 2_000
"""Characters of a text above which it takes longer to compile than to start an interpreter with Numba."""
_known: dict[tuple[Path, str], Any] = {}
_CHILD = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from {} import compile_here; compile_here(sys.argv[2:])"
)
_running: set[subprocess.Popen[bytes]] = set()
_stopped: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()
_stops = 0
"""Pools that are being ended."""


def load_function(module: ModuleType, name: str, arguments: Sequence[Any]) -> Any:
    """A function of a generated module, compiled for arguments like these.

    Args:
        module: from a `Store`.
        name: of the function.
        arguments: arrays and whole numbers.

    Raises:
        KeyboardInterrupt: a signal, or `stop_compiling`; the other process is gone.
    """
    path = Path(str(module.__file__))
    if (path, name) not in _known:
        if _is_long(path) and not any(path.parent.rglob("*.nbc")):
            _compile_apart(path, name, arguments)
        _known[path, name] = getattr(module, name)
    return _known[path, name]


def stop_compiling(pool: Executor) -> None:
    """End a pool whose threads may compile: what compiles is killed, and whoever waits for it is interrupted.

    Until the threads have ended nothing begins to compile, also what one of them was about to begin.

    Args:
        pool: of the threads; what waits in it is cancelled.
    """
    global _stops
    with _lock:
        _stops += 1
    try:
        for child in list(_running):
            _kill(child)
        pool.shutdown(cancel_futures=True)
    finally:
        with _lock:
            _stops -= 1


def _kill(child: subprocess.Popen[bytes]) -> None:
    _stopped.add(child)
    with contextlib.suppress(OSError):
        child.kill()


def compile_here(given: Sequence[str]) -> None:
    """Compile a function and leave it in the store: what the other process does.

    Args:
        given: the path of the source, the name of the function, and the types of its arguments.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a signal to the whole group of processes ends this one in LLVM too
    import numba

    from .modules import load_module
    from .store import Store

    path = Path(given[0])
    module = load_module(Store(path.parent.parent), path.read_text(encoding="utf-8"))
    type_of: Any = numba.typeof
    types = []
    for kind, dimensions in json.loads(given[2]):
        example = 0 if kind == "whole" else np.empty((0,) * dimensions, dtype=kind)
        types.append(type_of(example))
    getattr(module, given[1]).compile(tuple(types))


def _is_long(path: Path) -> bool:
    """Whether a source takes long to compile; one that was removed since it was imported is compiled here."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size > LONG
    return False


def _compile_apart(path: Path, name: str, arguments: Sequence[Any]) -> None:
    """Have another process compile; if it cannot, the function is compiled when it is called."""
    types = [(str(a.dtype), a.ndim) if isinstance(a, np.ndarray) else ("whole", 0) for a in arguments]
    found = json.dumps([part for part in sys.path if isinstance(part, str)])
    text = _CHILD.format(__name__, compile_here.__name__)
    command = [sys.executable or "", "-I", "-c", text, found, str(path), name, json.dumps(types)]
    litter = _unfinished(path)
    if _stops:
        raise KeyboardInterrupt
    quiet = subprocess.DEVNULL
    try:
        child = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
    except OSError:
        return
    _running.add(child)
    try:
        if _stops:  # it began in the moment of the stop, which did not see it
            _kill(child)
        status = child.wait()
        if status == -signal.SIGINT or child in _stopped:
            raise KeyboardInterrupt
        if status < 0:  # killed by the system: the function is compiled when it is called
            _remove(_unfinished(path) - litter)
    except BaseException:
        child.kill()
        child.wait()
        _remove(_unfinished(path) - litter)
        raise
    finally:
        _running.discard(child)
        _stopped.discard(child)


def _remove(files: set[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _unfinished(path: Path) -> set[Path]:
    """Files that compilers have begun to write beside a source."""
    with contextlib.suppress(OSError):
        return {part for part in path.parent.rglob("*") if ".tmp." in part.name or part.name.endswith(".part")}
    return set()

"""Generated modules in a `Store`: a folder each, with the source and the object code that compilers put beside it.

The source is compared with the text asked for and imported from the bytes compared. Object code, which Numba writes,
gets a checksum when the process ends; code that does not match one when it is met again is removed, so that it is
compiled anew.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .store import Store, digest, is_private, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

SOURCE = "kernel.py"
SEALS = "seals.json"
_STAMP = 1_000_000_000.0
"""Every source is of this time: Numba compares it, and two processes that write the same text must not disagree."""
_TRIES = 3
_loaded: dict[tuple[Path, str], ModuleType] = {}
_lock = threading.RLock()


class _Loader(SourceFileLoader):
    """Imports the bytes given, with no bytecode file that could be stale or damaged."""

    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self.data = data

    def get_data(self, path: Any) -> bytes:
        """The source; bytecode is never there."""
        if str(path) != self.path:
            raise OSError("no bytecode is kept")
        return self.data

    def set_data(self, path: Any, data: Any, *, _mode: int = 0) -> None:
        """Keep no bytecode."""


def load_module(store: Store, text: str) -> ModuleType:
    """The imported module of a generated text, as `Store.module` says."""
    key = digest("module", text)
    with _lock:
        at = (store.folder, key)
        if at not in _loaded:
            path = write_source(store, text, key)
            _loaded[at] = _import_bytes(f"generated_{key}", path, text.encode())
            _at_exit()
        return _loaded[at]


def write_source(store: Store, text: str, key: str) -> Path:
    """The file of a generated text in a folder of its own, where a compiler may put what it makes of it.

    The folder's other files are those that match their checksums.

    Args:
        store: where it is kept, if its folder can be used.
        text: the content.
        key: of the folder.
    """
    data = text.encode()
    for folder in [store.folder] * _TRIES + [_temporary()]:
        entry = folder / key
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not is_private(folder):
                continue
            entry.mkdir(exist_ok=True, mode=0o700)
            if not is_private(entry):
                continue
            path = entry / SOURCE
            if _read(path) != data:
                _forget_objects(entry)
                write_whole(path, data, _STAMP)
                store.evict(keep=key)
            else:
                os.utime(path, (_STAMP, _STAMP))
                os.utime(entry)
            seal(entry, check=True)
            return path
        except OSError:  # removed by another process meanwhile, or not writable
            continue
    raise OSError(f"no folder for generated modules: tried {store.folder} and a temporary one")


def seal(entry: Path, *, check: bool) -> None:
    """Write down the checksum of every object file of an entry; the source needs none.

    Args:
        entry: the folder.
        check: remove the files that do not match what was written down, those cut short, and those of which nothing is
            written down, as of a process that was killed: reading a pickle runs what it says.
    """
    try:
        seals = json.loads((_read(entry / SEALS) or b"{}").decode())
    except ValueError:
        seals = {}
    known: dict[str, str] = seals if isinstance(seals, dict) else {}
    found = {}
    for path in sorted(entry.rglob("*")):
        label = path.relative_to(entry).as_posix()
        if label in (SOURCE, SEALS) or path.name.endswith(".part") or ".tmp." in path.name or path.is_dir():
            continue
        data = _read(path)
        if data is None:
            continue
        mark = hashlib.sha256(data).hexdigest()
        cut = path.suffix in (".nbi", ".nbc") and not data.endswith(b".")  # a whole pickle ends so
        if check and (cut or known.get(label) != mark):
            path.unlink(missing_ok=True)
        else:
            found[label] = mark
    if found != known:
        write_whole(entry / SEALS, json.dumps(found).encode())


def seal_all() -> None:
    """Seal what this process has compiled so far."""
    for loaded in list(_loaded.values()):
        path = Path(str(loaded.__file__))
        with contextlib.suppress(OSError):
            if path.exists():
                seal(path.parent, check=False)


def _import_bytes(name: str, path: Path, data: bytes) -> ModuleType:
    spec = spec_from_file_location(name, path, loader=_Loader(name, str(path), data))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    found = module_from_spec(spec)
    sys.modules[name] = found
    try:
        with _kept_beside(data):
            spec.loader.exec_module(found)
    except BaseException:
        del sys.modules[name]
        raise
    return found


@contextlib.contextmanager
def _kept_beside(source: bytes) -> Iterator[None]:
    """Let Numba keep the object code of functions that are made here beside their source, and nowhere else.

    Object code is a pickle, which runs code when it is read: the folders that `NUMBA_CACHE_DIR` and
    `NUMBA_CACHE_LOCATOR_CLASSES` name have no checks of their owner, and no seals.
    """
    if b"numba" not in source:
        yield
        return
    from numba.core import config

    wanted = {"CACHE_DIR": "", "CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
    before = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
    for name in before:
        setattr(config, name, wanted[name])
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


def _forget_objects(entry: Path) -> None:
    for path in entry.iterdir():
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


@cache
def _at_exit() -> None:
    atexit.register(seal_all)


@cache
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="generated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

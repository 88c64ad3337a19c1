"""Generated modules in the store: whole, private, bounded, shared by many processes, and rebuilt when damaged."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.paths import ROOT

from symperf.cli import main
from symperf.codegen import modules
from symperf.codegen.store import Store, StoreEntry, digest

TEXT = "VALUE = 41 + 1\n\n\ndef double(x):\n    return 2 * x\n"
NUMBA = """import numba


@numba.njit(cache=True)
def double(x):
    return 2.0 * x
"""
posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner here")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store whose folder is not there yet."""
    return Store(tmp_path / "cache")


def _file(store: Store, text: str = TEXT) -> Path:
    return store.folder / digest("module", text) / "kernel.py"


def _forget() -> None:
    """As a new process would: no module is loaded yet."""
    modules._loaded.clear()


def test_a_module_is_imported_from_its_file(store: Store) -> None:
    """It has the content of the text, lies under its hash, and is loaded once."""
    found = store.module(TEXT)
    assert (found.VALUE, found.double(4)) == (42, 8)
    assert found.__file__ == str(_file(store))
    assert _file(store).read_text() == TEXT
    assert store.module(TEXT) is found
    assert store.module(TEXT + "# another\n") is not found


@posix
def test_files_are_private(store: Store) -> None:
    """No one else may read or write them."""
    store.module(TEXT)
    for path in (store.folder, _file(store).parent, _file(store)):
        assert path.stat().st_mode & 0o022 == 0
    assert _file(store).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", [b"", b"VALUE = 0\n", TEXT.encode()[:-1], TEXT.encode() + b" ", b"\xff"])
def test_a_changed_file_is_rebuilt(store: Store, damage: bytes) -> None:
    """What is imported is the text asked for, whatever lies there, and the object code beside it is not trusted."""
    store.module(TEXT)
    _file(store).write_bytes(damage)
    beside = _file(store).with_name("object.nbc")
    beside.write_bytes(b"of another text.")
    _forget()
    assert store.module(TEXT).VALUE == 42
    assert _file(store).read_text() == TEXT
    assert not beside.exists()


def test_no_bytecode_is_written_or_read(store: Store) -> None:
    """Bytecode could be stale or damaged; sources are small."""
    store.module(TEXT)
    assert not list(store.folder.rglob("*.pyc"))


def test_damaged_object_code_is_removed(store: Store) -> None:
    """A file that no longer matches its checksum, or is cut short, is not there when the module is imported again."""
    store.module(TEXT)
    entry = _file(store).parent
    good, changed, cut = (entry / name for name in ("good.nbc", "changed.nbc", "cut.nbc"))
    good.write_bytes(b"whole.")
    changed.write_bytes(b"whole too.")
    modules.seal_all()
    changed.write_bytes(b"whole, no.")
    cut.write_bytes(b"not who")
    _forget()
    store.module(TEXT)
    assert sorted(p.name for p in entry.iterdir()) == ["good.nbc", "kernel.py", modules.SEALS]


@pytest.mark.parametrize("seals", [b"", b"[1]", b"{", b"\xff"])
def test_damaged_seals_are_no_error(store: Store, seals: bytes) -> None:
    """They are written again."""
    store.module(TEXT)
    (_file(store).parent / modules.SEALS).write_bytes(seals)
    _forget()
    assert store.module(TEXT).VALUE == 42


@posix
@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_folder_that_others_may_write_is_refused(store: Store, mode: int) -> None:
    """Then the module lies in a private folder of this process, and the other is left alone."""
    store.folder.mkdir()
    store.folder.chmod(mode)
    found = store.module(TEXT)
    assert found.VALUE == 42
    assert not list(store.folder.iterdir())
    folder = Path(str(found.__file__)).parent.parent
    assert folder.stat().st_mode & 0o077 == 0
    assert store.entries() == []
    assert store.clear() == []
    store.folder.chmod(0o700)


@posix
def test_an_entry_that_others_may_write_is_refused(store: Store) -> None:
    """Object code in it could be anyone's."""
    store.module(TEXT)
    _file(store).parent.chmod(0o777)
    _forget()
    assert Path(str(store.module(TEXT).__file__)) != _file(store)


def test_an_unwritable_folder_is_no_error(tmp_path: Path) -> None:
    """A private folder of this process serves."""
    (tmp_path / "file").write_text("in the way")
    assert Store(tmp_path / "file" / "below").module(TEXT).VALUE == 42


def test_the_least_recently_used_go(tmp_path: Path) -> None:
    """What is above the limit is removed, the oldest use first; what was just written stays."""
    store = Store(tmp_path, limit_bytes=4000)
    keys = [digest(str(number)) for number in range(4)]
    for age, key in enumerate(keys):
        store.save(key, {"fill": "x" * 800})
        os.utime(tmp_path / f"{key}.json", (1e9 + age, 1e9 + age))
    assert store.load(keys[0]) is not None  # used now
    store.module("FILL = '" + "x" * 1500 + "'\n")
    kept = {entry.key for entry in store.entries()}
    assert keys[0] in kept
    assert keys[3] in kept
    assert keys[1] not in kept
    assert sum(entry.bytes for entry in store.entries()) <= 4000
    small = Store(tmp_path, limit_bytes=10)
    small.save(keys[1], {"fill": 1})
    assert [entry.key for entry in small.entries()] == [keys[1]]


def test_entries_and_clear(store: Store) -> None:
    """Artefacts and modules are listed, the last used first, and removed; other files are left alone."""
    assert store.entries() == []
    assert store.clear() == []
    store.save(digest("a"), {"a": 1})
    store.module(TEXT)
    stranger = store.folder / "notes.txt"
    stranger.write_text("mine")
    crashed = store.folder / ".half.part"
    crashed.write_text("written by a process that died")
    os.utime(store.folder / f"{digest('a')}.json", (1e9, 1e9))
    found = store.entries()
    assert [entry.kind for entry in found] == ["module", "artefact"]
    assert isinstance(found[0], StoreEntry)
    assert found[0].bytes >= len(TEXT)
    assert {entry.key for entry in store.clear()} == {entry.key for entry in found}
    assert store.entries() == []
    assert list(store.folder.iterdir()) == [stranger]


def _fill(folder: Path, rounds: int) -> list[Any]:
    store = Store(folder, limit_bytes=3000)
    found = []
    for number in range(rounds):
        text = f"VALUE = {number % 7}\nFILL = '{'x' * 400}'\n"
        _forget()
        found.append((store.module(text).VALUE, number % 7))
        store.save(digest(str(number % 5)), {"number": number % 5})
        loaded = store.load(digest(str(number % 5)))
        found.append((loaded is None or loaded["number"] == number % 5, True))
    return found


def test_two_processes_fill_one_cache_at_once(store: Store) -> None:
    """While both write, read and evict the same entries, each gets what it asked for."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        jobs = [pool.submit(_fill, store.folder, 60) for _ in range(2)]
        for job in jobs:
            assert all(got == wanted for got, wanted in job.result())
    assert sum(entry.bytes for entry in store.entries()) <= 3000 + 1000


def _compile(folder: Path) -> subprocess.Popen[str]:
    code = (
        "import sys; from pathlib import Path; from symperf.codegen.store import Store\n"
        f"kernel = Store(Path(sys.argv[1])).module({NUMBA!r}).double\n"
        "print(kernel(4.0), sum(kernel.stats.cache_hits.values()))\n"
    )
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def test_object_code_is_shared_and_checked(store: Store) -> None:
    """Two processes compile at once; a third loads their code; damaged code is compiled again, not run."""
    for process in [_compile(store.folder) for _ in range(2)]:
        out, errors = process.communicate()
        assert (out.split()[0], errors) == ("8.0", "")
    assert _compile(store.folder).communicate()[0].split() == ["8.0", "1"]
    (code,) = store.folder.rglob("*.nbc")
    data = bytearray(code.read_bytes())
    data[len(data) // 2] ^= 0xFF
    code.write_bytes(data)
    assert _compile(store.folder).communicate()[0].split() == ["8.0", "0"]
    assert _compile(store.folder).communicate()[0].split() == ["8.0", "1"]


def _command(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["cache", *arguments]) == 0
    return out.getvalue()


def test_the_command_shows_and_clears(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`symperf cache` says where, what and how much; `--clear` removes it."""
    monkeypatch.setenv("SYMPERF_CACHE", str(store.folder))
    assert "0 artefacts and 0 modules, 0 B" in _command()
    store.save(digest("a"), {"a": 1})
    store.module(TEXT)
    assert "1 artefact and 1 module" in _command()
    shown = json.loads(_command("--json"))
    assert shown["folder"] == str(store.folder)
    assert shown["bytes"] == sum(entry["bytes"] for entry in shown["entries"]) > 0
    assert {entry["kind"] for entry in shown["entries"]} == {"artefact", "module"}
    assert all(entry["used_unix_s"] <= time.time() + 5 for entry in shown["entries"])
    cleared = json.loads(_command("--clear", "--json"))
    assert cleared["cleared"] is True
    assert len(cleared["entries"]) == 2
    assert json.loads(_command("--json"))["entries"] == []


class Attack:
    """What runs where its pickle is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.mark,)


def test_object_code_of_others_is_never_read(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the folders that Numba's variables name, nor beside the source where it has no seal."""
    others, mark = tmp_path / "others", tmp_path / "ran"
    others.mkdir(mode=0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(others))
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "UserWideCacheLocator")
    monkeypatch.setenv("XDG_CACHE_HOME", str(others))
    assert _compile(store.folder).communicate()[0].split() == ["8.0", "0"]
    assert list(others.rglob("*")) == []
    planted = [*store.folder.rglob("*.nb?")]
    assert len(planted) == 2
    for path in planted:
        path.write_bytes(pickle.dumps(Attack(mark)))
    next(store.folder.rglob(modules.SEALS)).unlink()
    assert _compile(store.folder).communicate() == ("8.0 0\n", "")
    assert not mark.exists()

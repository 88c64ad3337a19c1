"""The cache folder: whole or absent, private, and never a reason to fail."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symperf.codegen.store import Store, digest

DATA: dict[str, Any] = {"list": [1, 2.5, "three"], "nested": {"none": None}}
KEY = digest("a key")

posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner here")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store whose folder is not there yet."""
    return Store(tmp_path / "deep" / "cache")


def _only_file(store: Store) -> Path:
    (path,) = store.folder.iterdir()
    return path


def test_round_trip(store: Store) -> None:
    """What was saved is loaded, by a second store of the same folder too; nothing else lies in the folder."""
    assert store.load(KEY) is None
    assert store.save(KEY, DATA)
    assert store.load(KEY) == DATA
    assert Store(store.folder).load(KEY) == DATA
    assert store.load(digest("another key")) is None
    assert _only_file(store).name == f"{KEY}.json"


def test_saving_again_replaces(store: Store) -> None:
    """The last one counts, and leaves no other file."""
    store.save(KEY, DATA)
    assert store.save(KEY, {"new": 1})
    assert store.load(KEY) == {"new": 1}
    assert _only_file(store).name == f"{KEY}.json"


@posix
def test_files_and_folder_are_private(store: Store) -> None:
    """No one else may read the files or write to the folder."""
    store.save(KEY, DATA)
    assert store.folder.stat().st_mode & 0o077 == 0
    assert _only_file(store).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("where", ["open", "replace"])
def test_a_failed_write_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """A full disk while writing or renaming leaves no partial file, and what was there before."""
    store.save(KEY, DATA)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if where == "open":
            patch.setattr("symperf.codegen.store.os.fdopen", full)
        else:
            patch.setattr(Path, "replace", full)
        assert not store.save(KEY, {"new": 1})
    assert _only_file(store).name == f"{KEY}.json"
    assert store.load(KEY) == DATA


def _damaged(content: bytes) -> list[bytes]:
    checksum, _, body = content.partition(b"\n")
    flipped = bytes([content[-2] ^ 1])
    return [
        b"",
        b"\n",
        b"garbage",
        content[:-1],
        content[: len(content) // 2],
        content[:-2] + flipped + content[-1:],
        content + b" ",
        b"0" * len(checksum) + b"\n" + body,
        checksum + b"\n",
        body,
        b"\xff\xfe" + content,
    ]


def test_a_damaged_file_counts_as_absent(store: Store) -> None:
    """Truncated, changed, garbled, with a wrong checksum or none: it is absent, and is written again."""
    store.save(KEY, DATA)
    path = _only_file(store)
    for content in _damaged(path.read_bytes()):
        path.write_bytes(content)
        assert store.load(KEY) is None, content
        assert store.save(KEY, DATA)
        assert store.load(KEY) == DATA


@given(st.binary(max_size=80))
def test_garbage_is_never_an_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any bytes at all in the place of a file are no artefact."""
    folder = tmp_path_factory.mktemp("garbage")
    folder.chmod(0o700)
    (folder / f"{KEY}.json").write_bytes(content)
    assert Store(folder).load(KEY) is None


@pytest.mark.parametrize("body", [b"[1, 2]", b"3", b"null", b"{'a': 1}"])
def test_only_objects_count(store: Store, body: bytes) -> None:
    """A file with a right checksum whose body is no JSON object is absent."""
    import hashlib

    store.save(KEY, DATA)
    _only_file(store).write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    assert store.load(KEY) is None


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_refused(store: Store, mode: int) -> None:
    """Someone else could have put the file there: it is neither read nor written, and the folder is left alone."""
    store.save(KEY, DATA)
    store.folder.chmod(mode)
    assert store.load(KEY) is None
    assert not store.save(digest("new"), DATA)
    assert _only_file(store).name == f"{KEY}.json"
    assert store.folder.stat().st_mode & 0o777 == mode
    store.folder.chmod(0o700)
    assert store.load(KEY) == DATA


@posix
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_may_write_is_not_read(store: Store, mode: int) -> None:
    """It may have been put there before the folder was closed; what is saved again is the user's own."""
    store.save(KEY, DATA)
    _only_file(store).chmod(mode)
    assert store.load(KEY) is None
    assert store.save(KEY, DATA)
    assert store.load(KEY) == DATA


@posix
def test_a_folder_of_another_user_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the user's own folder is trusted."""
    store.save(KEY, DATA)
    monkeypatch.setattr("symperf.codegen.store.os.getuid", lambda: store.folder.stat().st_uid + 1)
    assert store.load(KEY) is None
    assert not store.save(KEY, {"new": 1})


def test_an_unwritable_folder_is_no_error(tmp_path: Path) -> None:
    """Where no folder can be made, or none may be written, nothing is kept and nothing is raised."""
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert not Store(folder).save(KEY, DATA)
        assert Store(folder).load(KEY) is None
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if not os.access(closed, os.W_OK):  # the superuser may write everywhere
        assert not Store(closed).save(KEY, DATA)
    assert Store(closed).load(digest("nothing")) is None


def test_two_processes_at_once(store: Store) -> None:
    """Processes that save and load one key at the same time see a whole artefact, never a part of one."""
    versions = [{"version": number, "fill": [number] * 20_000} for number in (1, 2)]
    store.save(KEY, versions[0])
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        saves = [pool.submit(store.save, KEY, version) for version in versions * 15]
        loads = [pool.submit(store.load, KEY) for _ in range(30)]
        seen = [store.load(KEY) for _ in range(30)]
        assert all(save.result() for save in saves)
        seen += [load.result() for load in loads]
    assert all(found in versions for found in seen)
    assert _only_file(store).name == f"{KEY}.json"


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_digests_tell_parts_apart(one: list[str], two: list[str]) -> None:
    """Different parts have different names, however they are cut; a name is a plain file name."""
    assert (digest(*one) == digest(*two)) is (one == two)
    assert digest(*one).isalnum()

"""What verbs write and what the cache keeps while the file system fails; folders of others, and many processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import NIGHTLY
from support.faults import FULL, KILL, KILLED, SHORT, TEAR, Series, build, run_faulted
from support.paths import ROOT
from support.schema_cases import FILES

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = ("train", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--sequence", "128")
BAND = ("--over", "memory_bandwidth", "--from", "1e12", "--to", "2e12")
WRITERS: dict[str, tuple[str, ...]] = {
    "technology": ("technology", "-o", "@/x.toml"),
    "timeline": (*TRAIN, "--timeline", "@/x.json"),
    "derive": ("derive", *TRAIN, "--latex", "--output", "@/x.tex"),
    "picture": ("regimes", *TRAIN, *BAND, "--plot", "@/x.svg"),
    "book": ("formulas", "ring_all_reduce_time", "--md", "@/x.md"),
    "calibrate": ("calibrate", "@/m.csv", "-s", "h100-sxm", "-o", "@/x.toml", "--fit", "matrix_efficiency"),
    "explore": ("explore", "llama-2-7b", "-s", "h100-sxm", "--only", "infer", "-o", "@/x.html"),
    "validate": ("validate", "--source", "KORTH", "--csv", "@/x.csv", "--markdown", "@/x.md"),
}
EVERY = (Series(KILL), Series(TEAR), Series(FULL), Series(SHORT, stop=1))
SERIES = EVERY if NIGHTLY else (Series(KILL, start=1, step=4), Series(FULL, step=5))
OLD = "what was there"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("faults"))


def _is_one_line(text: str) -> bool:
    return text.startswith("symperf: ") and text.count("\n") == 1 and "No space left on device" in text


@pytest.mark.parametrize("writer", WRITERS if NIGHTLY else ("technology",))
def test_a_file_is_the_old_or_the_new_one_at_any_fault(writer: str, tmp_path: Path, library: Path) -> None:
    """And a command that fails says so, prints nothing else, and leaves nothing."""
    work = tmp_path / "work"
    arguments = [part.replace("@", str(work)) for part in WRITERS[writer]]
    outputs = [part.rpartition("/")[2] for part in WRITERS[writer] if part.startswith("@/x")]
    files = dict.fromkeys(outputs, OLD) | {"m.csv": FILES["m.csv"]}
    ((calm,), *found) = run_faulted(library, work, arguments, [Series(0, stop=1), *SERIES], files=files)
    (nothing,) = run_faulted(library, work, ["list", "systems"], [Series(0, stop=1)], files=files)[0]
    for series, each in zip(SERIES, found, strict=True):
        assert {one.code for one in each} & {{FULL: 2, SHORT: 0}.get(series.kind, KILLED)}
        for one in each:
            assert one.mended == calm.digest, one
            assert one.after is not None
            assert one.after[0] == 0
            if len(outputs) == 1:
                assert one.digest == (calm if one.code == 0 else nothing).digest or one.code == KILLED
                assert one.digest in (calm.digest, nothing.digest)
            if one.code == 2:
                assert _is_one_line(one.text), one
                assert sorted(one.names) == sorted(files)
            elif one.code == 0:
                assert one.text == calm.text


@pytest.mark.skipif(not NIGHTLY, reason="builds a structure for each fault")
@pytest.mark.parametrize("series", EVERY)
def test_a_cache_that_fails_changes_no_answer(
    series: Series, tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It only takes longer; what a killed process left there is never read."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("SYMPERF_CACHE", str(cache))
    arguments = ["train", "gpt2", "-s", "h100-sxm", "--batch", "8", "--sequence", "128", "--json"]
    modules = ["sympy", "symperf.train.build", "symperf.formulas.registry"]
    (calm,), found = run_faulted(library, cache, arguments, [Series(0, stop=1, jump=10**9), series], modules=modules)
    for one in found:
        assert one.code in (0, KILLED)
        assert one.text in (calm.text, "") or one.code == KILLED
        assert one.after is None or (one.after[0], one.after[1]) == (0, calm.text)


DROPPED = """
import json, os, sys
from pathlib import Path
from symperf.cli import main
cases, warm = json.loads(sys.argv[1])
sys.stdout = open(os.devnull, "w")
for arguments in warm:  # what is imported later may lie where only root may read
    main(arguments)
for arguments, environment in cases:
    told = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(told[1], 2)
        os.environ.update(environment)
        os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
        os._exit(main(arguments))
    os.close(told[1])
    text = open(told[0]).read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text]), file=sys.__stdout__)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_folders_of_others_are_told_in_a_line_and_left_alone(tmp_path: Path) -> None:
    """Outputs in a folder of another user, and a cache that cannot be read, cannot be written, or is another's."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (tmp_path / "s.toml").write_text(FILES["s.toml"])
    caches = {"others": (0o755, 0), "open": (0o777, 65534), "shut": (0o000, 65534), "read": (0o500, 65534)}
    for name, (mode, owner) in caches.items():
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, owner, owner)
        (tmp_path / name).chmod(mode)
    shut = tmp_path / "others"
    sweep = ("sweep", str(tmp_path / "s.toml"), "-o")
    writing = [
        (*TRAIN, "--timeline", str(shut / "x.json")),
        (*sweep, str(shut / "x.csv")),
        ("technology", "-o", str(shut / "x.toml")),
    ]
    warm = [list(TRAIN), [*TRAIN, "--timeline", str(tmp_path / "w.json")], [*sweep, str(tmp_path / "w.csv")]]
    cases: list[Any] = [(each, {}) for each in writing]
    cases += [(TRAIN, {"SYMPERF_CACHE": str(tmp_path / name)}) for name in caches]
    command = [sys.executable, "-c", DROPPED, json.dumps([cases, warm])]
    done = subprocess.run(command, text=True, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for code, text in found[: len(writing)]:
        assert code == 2
        assert text.startswith("symperf: ")
        assert text.count("\n") == 1
        assert "Permission denied, change its permissions" in text
    for code, text in found[len(writing) :]:
        assert code == 0
        assert text.startswith("symperf: note: the cache ")
        assert text.count("\n") == 1
    assert [list((tmp_path / name).iterdir()) for name in caches] == [[], [], [], []]


@pytest.mark.skipif(not NIGHTLY, reason="each builds a structure")
@pytest.mark.parametrize("count", [2, 8])
def test_processes_at_once_on_one_cache_give_one_answer(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finds it empty, all write."""
    monkeypatch.setenv("SYMPERF_CACHE", str(tmp_path / "cache"))
    code = """
import os, sys
from symperf.cli import main
import sympy, symperf.train.build, symperf.formulas.registry
for number in range(int(sys.argv[1])):
    if not os.fork():
        sys.stdout = open(f"{sys.argv[2]}/{number}", "w")
        code = main(sys.argv[3:])
        sys.stdout.close()
        os._exit(code)
print({os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(int(sys.argv[1]))})
"""
    arguments = ["train", "gpt2", "-s", "h100-sxm", "--batch", "8", "--sequence", "128", "--json"]
    command = [sys.executable, "-c", code, str(count), str(tmp_path), *arguments]
    done = subprocess.run(command, text=True, cwd=ROOT, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == ("{0}\n", "")
    assert len({(tmp_path / str(number)).read_text() for number in range(count)}) == 1
    left = [each.name for each in (tmp_path / "cache").iterdir() if each.name.startswith(".")]
    assert left == []

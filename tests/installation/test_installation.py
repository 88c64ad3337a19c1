"""What symperf doctor finds, where something is missing, slow or broken, and that each has a remedy."""

from __future__ import annotations

import importlib
import json
import re
import stat
import tomllib
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest
from support.paths import ROOT

from symperf.installation import packages, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_it_says_what_is_there(call: Callable[[list[str]], Any]) -> None:
    code, out, err = call(["doctor", "--json"])
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["works"] is True
    assert data["counts"]["fault"] == 0
    assert sum(data["counts"].values()) == len(data["checks"])
    for check in data["checks"]:
        assert (check["state"] == "fine") == (check["remedy"] is None), check
    assert data["versions"]["sympy"] == metadata.version("sympy")
    text = call(["doctor"]).out
    for check in data["checks"]:
        assert re.search(rf"^{check['state']} +{re.escape(check['name'])} ", text, re.MULTILINE)
    assert all(len(line) <= 60 for line in call(["doctor", "--width", "60"]).out.splitlines() if " " in line.strip())


def test_every_extra_of_the_project_has_a_use() -> None:
    """But that of tests; and versions are compared by signs that are known."""
    extras = PROJECT["optional-dependencies"]
    assert set(packages.EXTRAS) == set(extras) - {"test"}
    for text in (*PROJECT["dependencies"], *(each for listed in extras.values() for each in listed)):
        found = packages.REQUIREMENT.match(text)
        assert found
        assert {sign for sign, _ in packages.BOUND.findall(found[2])} == set(re.findall("[<>=!~]+", found[2]))


@pytest.mark.parametrize(
    ("versions", "state", "words"),
    [
        ({}, "fine", "numpy 2.0, sympy 1.14.0"),
        ({"numpy": None}, "fault", "numpy is not there (needs >=1.26)"),
        ({"sympy": "1.15"}, "fault", "sympy 1.15 (needs <1.15,>=1.13)"),
    ],
)
def test_a_package_that_all_verbs_need(
    versions: dict[str, str | None], state: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: dict[str, str | None] = {"numpy": "2.0", "sympy": "1.14.0", **versions}

    def version(name: str) -> str:
        found = there.get(name)
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(
        metadata,
        "requires",
        lambda _: [
            "numpy>=1.26",
            "sympy<1.15,>=1.13",
            'scipy>=1.11; extra == "calibrate"',
            'symperf[plot]; extra == "x"',
        ],
    )
    found = {check.name: check for check in packages.checks()}
    assert (found["packages"].state, found["packages"].found) == (state, words)
    assert bool(found["packages"].remedy) == (state != "fine")
    missing = found["symperf[calibrate]"]
    assert (missing.state, missing.remedy) == ("missing", "pip install 'symperf[calibrate]'")
    assert missing.found.startswith("scipy>=1.11, for calibrate")


def test_a_program_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, call: Callable[[list[str]], Any]) -> None:
    """Exit status 1, all the rest is told as well."""

    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    code, out, err = call(["doctor", "--json"])
    assert (code, err) == (1, "")
    assert json.loads(out)["works"] is False
    assert json.loads(out)["versions"] == {}
    assert "pip install symperf" in call(["doctor"]).out


def test_numba_that_cannot_be_loaded_or_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise OSError(f"{name}: libLLVM.so:\ncannot open")

    monkeypatch.setattr(importlib, "import_module", broken)
    assert packages.numba().state == "fault"
    assert "cannot be loaded: numba: libLLVM.so: cannot open" in packages.numba().found
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert (packages.numba().state, packages.numba().remedy) == ("slow", "unset NUMBA_DISABLE_JIT")


def test_the_cache_by_its_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "not" / "there"
    monkeypatch.setenv("SYMPERF_CACHE", str(folder))
    assert surroundings.cache().state == "slow"
    assert "0 entries" in surroundings.cache().found
    with monkeypatch.context() as patch:
        patch.setattr(surroundings.os, "access", lambda *_: False)
        assert f"cannot be made, as '{tmp_path}' is not yours to write" in surroundings.cache().found
        assert surroundings.cache().remedy.startswith("SYMPERF_CACHE=FOLDER")
    folder.mkdir(parents=True, mode=0o700)
    (folder / f"{'0' * 40}.json").write_text("x")
    assert surroundings.cache().state == "fine"
    assert "1 entries" in surroundings.cache().found
    monkeypatch.setattr(surroundings.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 5_000_000}))
    assert "the disk has only 5.0 MB left" in surroundings.cache().found
    folder.chmod(0o777)
    assert surroundings.cache().state == "slow"
    assert "chmod 700" in surroundings.cache().remedy
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777, "doctor only looks"
    monkeypatch.setenv("SYMPERF_CACHE", str(folder / f"{'0' * 40}.json"))
    assert "Not a directory" in surroundings.cache().found


def test_compilers_and_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {check.name: check for check in surroundings.checks(surroundings.gpus())}
    assert all(found[tool.name].state == "missing" for tool in surroundings.TOOLS)
    assert found["GPU"].state == "missing"
    for name, text in (("clang", ""), ("nvidia-smi", "echo 'NVIDIA H100, 81559 MiB, 550.54'; echo")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    found = {check.name: check for check in surroundings.checks(surroundings.gpus())}
    assert found["C compiler"].state == "fine"
    assert found["GPU"].found == "NVIDIA H100, 81559 MiB, 550.54, for measure"
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho asked >> '{tmp_path}/asked'\n")
    call(["doctor", "--json"])
    assert (tmp_path / "asked").read_text() == "asked\n", "once"
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    assert surroundings.gpus() == []
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(surroundings, "SECONDS", 0.1)
    assert surroundings.gpus() == []

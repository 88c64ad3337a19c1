"""Every package is installed: an editable install hides one that the list of packages lacks."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch

import yaml
from support.paths import ROOT

from symperf.common.version import VERSION

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = (("symperf", "symperf"), ("formulas", "symperf.formulas"), ("codegen", "symperf.codegen"))


def test_every_folder_with_modules_is_listed() -> None:
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    found = set()
    for top, name in FOLDERS:
        for init in (ROOT / top).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT / top).parts
            if top == "symperf" and parts[:1] in (("formulas",), ("codegen",)):
                continue
            found.add(".".join((name, *parts)))
    assert found == listed


def test_every_file_of_data_is_listed() -> None:
    """A pattern of its package, or of one above it, has it; `.ci/package` looks into the wheel itself."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]
    left = []
    for top, name in FOLDERS:
        for path in (ROOT / top).rglob("*"):
            parts = path.relative_to(ROOT / top).parts
            if path.is_dir() or path.suffix in (".py", ".pyc") or parts[0] in ("formulas", "codegen"):
                continue
            above = [(".".join((name, *parts[:k])), "/".join(parts[k:])) for k in range(len(parts))]
            fits = [fnmatch(rest, form.replace("**/", "*")) for each, rest in above for form in patterns.get(each, ())]
            left += [] if any(fits) else [path.relative_to(ROOT).as_posix()]
    assert left == []


def test_the_version_is_the_same_everywhere() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PROJECT["project"]["version"] == cited["version"] == VERSION
    assert PROJECT["project"]["license"] == cited["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(cited)


def test_the_container_is_made_of_what_is_there() -> None:
    """What it copies exists and is not ignored, its extras are the project's, its Python is one that is supported."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line.startswith("!")}
    copied = [name for names in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE) for name in names.split()]
    assert set(copied) == kept
    assert all((ROOT / name).exists() for name in copied)
    (extras,) = re.findall(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    (python,) = re.findall(r"^ARG PYTHON=(.*)$", text, re.MULTILINE)
    assert f"Programming Language :: Python :: {python}" in PROJECT["project"]["classifiers"]


def test_the_version_has_its_part_of_the_changelog_and_its_day() -> None:
    """The first part is that of the version, or of what comes after it; the day is that of the citation."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    heads = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heads.count("Unreleased") == int(heads[0] == "Unreleased")
    assert heads[int(heads[0] == "Unreleased")] == f"{VERSION} ({cited['date-released']})"

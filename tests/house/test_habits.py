"""What is done by habit can be done: recipes name files that are there, daily commands and templates can be read."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest
from support.paths import ROOT

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## How to add an? (\w+)\n(.*?)(?=^## |\Z)", CONTRIBUTING, re.MULTILINE | re.DOTALL))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)


def test_there_is_a_recipe_for_each_thing_that_is_added() -> None:
    assert set(RECIPES) == {"formula", "architecture", "system", "stack", "verb"}


@pytest.mark.parametrize("thing", RECIPES)
def test_a_recipe_is_at_most_five_places_and_a_commit_that_did_it(thing: str) -> None:
    steps = re.findall(r"^(\d)\. `([^`]+)`", RECIPES[thing], re.MULTILINE)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert 2 < len(steps) <= 5
    assert all((ROOT / path).exists() for _, path in steps)
    assert re.search(r"`git show [0-9a-f]{7}` \(\w", RECIPES[thing])


def test_every_path_that_contributing_names_is_there() -> None:
    named = [text for text in re.findall(r"`([^`\n]+)`", CONTRIBUTING) if "/" in text and " " not in text]
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_contributing_names_only_targets_that_the_makefile_has() -> None:
    named = re.findall(r"`make ([a-z-]+)", CONTRIBUTING)
    assert "quick" in named
    assert set(named) <= set(TARGETS)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", TARGETS)
def test_every_target_can_be_made(target: str) -> None:
    """Without doing it; the files that its commands name are there."""
    command = ["make", "-n", target, "BEFORE=elsewhere", "PYTHON=python"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    paths = re.findall(r"(?<![\w./-])(?:tests|symperf|docs|benchmarks|\.ci)/[\w./]+", done.stdout)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_target_is_told_and_phony() -> None:
    told = re.findall(r"^([a-z-]+):.*## \w", MAKEFILE, re.MULTILINE)
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert told == TARGETS == phony.split()


def read_yaml(name: str) -> Any:
    """A file in YAML; the reader comes with the extra for clusters."""
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_hooks_are_the_tools_of_the_environment() -> None:
    """The same as `make lint` and `make types`; none is fetched from elsewhere."""
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = {hook["id"]: hook for hook in repository["hooks"]}
    assert set(hooks) == {"ruff-check", "ruff-format", "mypy"}
    for hook in hooks.values():
        assert hook["language"] == "system"
        assert f"-m {' '.join(hook['entry'].split()[:2]).removesuffix(' --force-exclude')}" in MAKEFILE
    whole = re.compile(hooks["mypy"]["files"])
    assert all(whole.search(f"{top}/a/b.py") for top in ("symperf", "formulas", "codegen"))
    assert not whole.search("tests/models/test_model.py")


def test_a_wrong_prediction_is_told_with_all_that_repeats_it() -> None:
    form = read_yaml(".github/ISSUE_TEMPLATE/wrong-prediction.yml")
    assert form["name"]
    assert form["description"]
    fields = {field["id"]: field for field in form["body"]}
    assert len(fields) == len(form["body"])
    needed = {name for name, field in fields.items() if field["validations"]["required"]}
    assert needed == {"version", "model", "system", "plan", "command", "predicted", "measured"}
    assert all(field["type"] in ("input", "textarea") and field["attributes"]["label"] for field in fields.values())

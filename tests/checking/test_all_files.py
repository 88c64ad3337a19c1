"""Every configuration of the tests, the catalogue and the benchmarks against its modules, where PyTorch is installed.

All of them under the `nightly` profile, else a few.
"""

from __future__ import annotations

import csv
import importlib.util
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import some
from support.mutations import change, without
from support.paths import GOLDEN, GOLDEN_2026

from symperf.checking.build import NOT_READ, build, settings_of
from symperf.checking.compare import Comparison, compare
from symperf.common.errors import InputError
from symperf.models.catalogue import BENCHMARKS, CATALOGUE
from symperf.models.families import FAMILIES, OWN_CODE, PAIRED, TWO_TOWERS, WRAPPED
from symperf.models.model import make_model

if TYPE_CHECKING:
    from pathlib import Path

MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}: pip install 'symperf[hf]'")

CATALOGUES = [source.path(name) for source in (CATALOGUE, BENCHMARKS) for name in source.names()]
GOLDEN_FILES = [
    path
    for folder in (GOLDEN / "configs", GOLDEN_2026 / "configs", GOLDEN_2026 / "towers")
    for path in sorted(folder.glob("*.json"))
]
FILES = {f"{path.parent.parent.name}-{path.stem}": path for path in (*CATALOGUES, *GOLDEN_FILES)}

LLM_FOUNDRY = "transformers' MPT ignores learned positions, and has no biases"
ALWAYS_TIED = "transformers 5 ties every T5; the checkpoint of version 1.1 has a head of its own (783 M parameters)"
KNOWN = {
    **{f"validation-mpt-{size}": LLM_FOUNDRY for size in ["125m", "350m", "760m", "1b", "3b", "7b-benchmark", "13b"]},
    **{f"validation-mpt-{size}": LLM_FOUNDRY for size in ("30b-benchmark", "70b")},
    "catalogue-flan-t5-large": ALWAYS_TIED,
    "golden2-default-glm5_next": "its encoder of images is not counted yet, as a warning says",
}
"""Files whose checkpoints differ from the modules of transformers, and why."""


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def checked(name: str, data: dict[str, Any]) -> Comparison | str:
    """The comparison of a configuration, or the line that refuses it."""
    try:
        model = make_model(name, "test", data, name)
        return compare(model, build(data, name, model))
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("name", some(sorted(FILES), 0.03))
def test_every_count_of_a_file_is_that_of_its_modules(name: str) -> None:
    data = read(FILES[name])
    found = checked(name, data)
    if isinstance(found, str):
        refused = "--check" not in found
        assert refused or (data["model_type"] in OWN_CODE and "has no class for model_type" in found), found
        return
    assert bool(found.differing) == (name in KNOWN), found.differing
    assert {row.what for row in found.rows} > {"parameters, others"}


def test_kinds_without_a_class_are_known() -> None:
    """The class defaults of all others are those of transformers."""
    import transformers

    every = (*FAMILIES, *WRAPPED, *PAIRED, *TWO_TOWERS)
    assert {kind for kind in every if kind not in transformers.CONFIG_MAPPING} == OWN_CODE


@cache
def class_defaults() -> dict[str, dict[tuple[str, ...], Any]]:
    """Model -> key that its file omits or may omit -> what its class has for it."""
    found: dict[str, dict[tuple[str, ...], Any]] = {}
    with (GOLDEN_2026 / "class_defaults.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["model"], {})[tuple(row["key"].split("."))] = json.loads(row["value"])
    return found


OF_OTHER_CODE = {("falcon-40b", ("num_hidden_layers",))}
"""Keys that have a second name in files for the checkpoint's own code, which the class does not read."""


def has_class(kind: str) -> bool:
    """Whether transformers has a class for a kind of models."""
    import transformers

    return kind in transformers.CONFIG_MAPPING


def class_settings(data: dict[str, Any]) -> dict[str, Any]:
    """The values that the class of transformers gives every key of a configuration."""
    import transformers

    kept = {key: value for key, value in data.items() if key not in NOT_READ}
    return settings_of(transformers.CONFIG_MAPPING[data["model_type"]].from_dict(kept))


STEMS = {path.stem: path for path in reversed(FILES.values())}


@pytest.mark.parametrize("name", some(sorted(set(class_defaults()) & set(STEMS)), 0.03))
def test_a_file_without_a_key_is_the_model_of_its_class_default(name: str) -> None:
    """The table has what the class of transformers takes, and our counts without the key are those of its modules."""
    data = read(STEMS[name])
    if data["model_type"] in OWN_CODE or not has_class(data["model_type"]):
        return
    for path, value in some(class_defaults()[name].items(), 0.2):
        if (name, path) in OF_OTHER_CODE:
            continue
        shorter = change(data, path, without)
        assert class_settings(shorter).get(".".join(path), value) == value, path
        found = checked(name, shorter)
        if isinstance(found, Comparison):
            known = any(name == each.partition("-")[2] for each in KNOWN)
            assert known or not found.differing, (path, found.differing)

"""Files with towers of few layers of text, whole: every parameter of the modules of transformers 5.24."""

from __future__ import annotations

import csv

import pytest
from support.paths import GOLDEN_2026

import symperf as sf

FOLDER = GOLDEN_2026 / "towers"
with (FOLDER / "parameters.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["model"])
def test_parameters_of_all_parts(row: dict[str, str]) -> None:
    """Class defaults stand in these files, which transformers wrote; counted on the meta device."""
    model = sf.Model.load(FOLDER / f"{row['model']}.json")
    assert sf.inspect(model)["parts"]["full_model"] == int(row["params_full_model"])


with (GOLDEN_2026 / "parts.csv").open(encoding="utf-8", newline="") as file:
    PARTS = [row for row in csv.DictReader(file) if row["model"] not in ("default-glm5_next",)]
"""Those of files that load."""


@pytest.mark.parametrize("row", PARTS, ids=lambda row: row["model"])
def test_parts_of_published_files(row: dict[str, str]) -> None:
    """The whole and its language model; CLIP's golden row has the projections of both towers with the texts."""
    found = sf.inspect(sf.Model.load(GOLDEN_2026 / "configs" / f"{row['model']}.json"))["parts"]
    assert found["full_model"] == int(row["params_full_model"])
    towers = sum(sum(found.get(part, {}).values()) for part in ("vision", "audio"))
    assert found["language_model"] + towers == found["full_model"]
    if "clip" not in row["model"]:
        assert found["language_model"] == int(row["params_language_model"])


def test_every_file_is_counted() -> None:
    assert sorted(row["model"] for row in ROWS) == sorted(path.stem for path in FOLDER.glob("*.json"))

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


def test_every_file_is_counted() -> None:
    assert sorted(row["model"] for row in ROWS) == sorted(path.stem for path in FOLDER.glob("*.json"))

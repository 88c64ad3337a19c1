"""Constants of kernels: how many there are, and that the catalogue's scores are those of the sample of kernels."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.effort import NIGHTLY
from support.paths import ROOT

from symperf.book.measured import CATALOGUE
from symperf.calibration.kernels.choose import OWN
from symperf.calibration.kernels.compressed_stages import COMPRESSED
from symperf.calibration.kernels.selected_stages import SELECTED
from symperf.calibration.kernels.stages import STAGES
from symperf.infer.reached import ANY
from symperf.infer.stack import Stack
from symperf.validation.kernels.formats import STACKS, system_of
from symperf.validation.kernels.score import score

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = ROOT / "benchmarks" / "calibration" / "kernels"
NAMES = {"nccl": "NCCL", "wideep_deepep_ll": "DeepEP, low latency", "mamba2": "Mamba-2", "gemm": "products"}
"""Tables -> the names of their rows in the catalogue's scores."""
DEVICES = {name for stage in STAGES if stage.of_device for name in stage.constants}
APART = {name for stage in (*SELECTED, *COMPRESSED) for name in stage.constants}
"""Constants of attention to selected keys and to compressed entries, which are fitted apart."""


@pytest.mark.parametrize("profile", STACKS.values())
def test_a_software_has_at_most_twenty_constants_of_its_own_on_a_device(profile: str) -> None:
    reached = {name: each for name, each in Stack.load(profile).reached.items() if name != ANY}
    assert len(reached) > 1
    for each in reached.values():
        formats = [name for form in each.formats.values() for name in form]
        apart = len(APART & set(each.constants)) + sum(name in APART for name in formats)
        assert 0 < each.count - apart - len((DEVICES - APART) & set(each.constants)) <= OWN
        for stages, most in ((SELECTED, OWN), (COMPRESSED, 8)):
            own = {name for stage in stages for name in stage.constants}
            assert len(own & set(each.constants)) + sum(name in own for name in formats) <= most


@pytest.mark.parametrize("profile", STACKS.values())
def test_every_constant_has_a_source_and_a_spread_that_holds_it(profile: str) -> None:
    for each in Stack.load(profile).reached.values():
        for quantity in (*each.constants.values(), *(q for form in each.formats.values() for q in form.values())):
            assert len(quantity.source) > 20
            low, high = (quantity.value if end is None else end for end in (quantity.low, quantity.high))
            assert low <= quantity.value <= high


@pytest.mark.parametrize("table", [name for name in NAMES if NIGHTLY or name in ("nccl", "wideep_deepep_ll")])
def test_scores_of_the_catalogue_are_those_of_the_sample(tmp_path: Path, table: str) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / f"{table}.parquet").symlink_to(KERNELS / f"{table}.parquet")
    errors: dict[str, list[float]] = {}
    for group, rows in score(tmp_path).items():
        if len(rows.measured):
            errors.setdefault(system_of(group.device).name, []).extend(rows.errors[rows.test])
    with (CATALOGUE / "scores.csv").open(encoding="utf-8", newline="") as file:
        told = {row["device"]: row for row in csv.DictReader(file) if row["kernels"] == NAMES[table]}
    assert told.keys() == {name for name, found in errors.items() if found}
    for name, row in told.items():
        away = np.abs(errors[name])
        assert row["rows"].replace(",", "") == str(len(away))
        assert float(row["median"].rstrip("%")) == pytest.approx(100 * np.median(away), abs=0.06)
        assert float(row["bias"].rstrip("%")) == pytest.approx(100 * np.mean(errors[name]), abs=0.06)


DATA_CENTRE = {"a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "b300-sxm", "gb200-nvl72", "gb300-nvl72"}


@pytest.mark.parametrize(("kernels", "most"), [("NCCL", 12.0), ("products", 10.0)])
def test_medians_of_data_centre_parts_are_within_their_targets(kernels: str, most: float) -> None:
    """Shapes kept back, all formats and software; products of A100 are mostly of weights alone, without a target."""
    with (CATALOGUE / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kernels"] == kernels]
    found = {row["device"]: float(row["median"].rstrip("%")) for row in rows if row["device"] in DATA_CENTRE}
    assert found.keys() == DATA_CENTRE
    scored = found.keys() - ({"a100-80gb-sxm"} if kernels == "products" else set())
    assert max(found[name] for name in scored) <= most

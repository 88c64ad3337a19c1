"""The page of technology: its table of energies is what both systems of the H100 have."""

from __future__ import annotations

import re

import pytest
from support.paths import ROOT

from symperf import System, Technology

PAGE = (ROOT / "docs" / "technology.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\w+), (pJ/FLOP|pJ/B|W) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
SCALE = {"pJ/FLOP": 1e-12, "pJ/B": 1e-12, "W": 1.0}


@pytest.mark.parametrize(("name", "unit", "generated", "measured", "ratio"), ROWS)
def test_energies_of_the_generated_and_the_measured_part_are_those_of_the_page(
    name: str, unit: str, generated: str, measured: str, ratio: str
) -> None:
    made, real = Technology.load("h100").chip().system().value(name), System.load("h100-sxm").value(name)
    assert float(generated) == pytest.approx(made / SCALE[unit], rel=2e-3)
    assert float(measured) == pytest.approx(real / SCALE[unit], rel=2e-3)
    assert float(ratio) == pytest.approx(made / real, abs=5e-3)


def test_the_watts_of_all_units_follow_from_the_table() -> None:
    assert len(ROWS) == 3
    made, real = Technology.load("h100").chip().system(), System.load("h100-sxm")
    rate = made.matrix_rate("bf16").value
    drawn = [rate * system.value("matrix_energy") for system in (made, real)]
    told = [float(watts) for watts in re.findall(r"draw (\d+) W", " ".join(PAGE.split()))]
    assert told == pytest.approx(drawn, abs=1)
    assert drawn[0] < made.value("power") < drawn[1]
    assert made.value("sustained_efficiency") == real.value("sustained_efficiency")

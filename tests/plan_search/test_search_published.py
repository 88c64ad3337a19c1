"""The predicted best plan of published measurements, against their measured best."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from support.paths import ROOT

SCRIPT = ROOT / "benchmarks" / "published_plans.py"


@pytest.fixture(scope="module")
def script() -> Any:
    """The script that groups them."""
    spec = importlib.util.spec_from_file_location("published_plans", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["published_plans"] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["published_plans"]


def test_most_predicted_bests_are_within_5_percent_of_the_measured_best(script: Any) -> None:
    found = script.groups(software=True)
    assert len(found) >= 10
    assert script.good(found) >= 0.8 * len(found)


def test_a_group_knows_its_loss_and_order(script: Any) -> None:
    group = script.Group(("x",), ((10.0, 1.0), (9.0, 2.0), (8.0, 0.5)))
    assert group.loss == pytest.approx(0.1)
    assert group.concordance == pytest.approx(1 / 3)

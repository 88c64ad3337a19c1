"""What studies say of one another's subject follows from their tables."""

from __future__ import annotations

import pytest
from support.study_pages import STUDIES, module, rows

points, inference_page, speedup = module("technology_points"), module("inference_page"), module("speedup")


@pytest.mark.parametrize("study", ["walk", "factorial"])
def test_what_binds_the_first_node_is_what_the_shares_of_the_study_say(study: str) -> None:
    """The walk takes the A100's attained fractions and is bound by L2; the factorial takes the H100's and is not."""
    walk, factorial, real = rows(f"{study}_cache")
    assert rows("walk_cache") == rows("factorial_cache")
    first = next(row for row in rows("walk_nodes") if row["question"] == "training")
    assert (first["bound"], walk["bound"]) == ("l2", "l2")
    assert {row["share_l2"] for row in rows("factorial") if row["node"] == first["node"]} == {0.0}
    assert (factorial["bound"], real["bound"]) == ("compute", "compute")
    assert walk["l2_bandwidth"] == factorial["l2_bandwidth"] < real["l2_bandwidth"]
    text = (STUDIES / f"{study}.md").read_text(encoding="utf-8")
    assert points.l2_text([walk, factorial, real]) in text


def test_a_ridge_of_l2_is_attained_work_over_attained_bytes() -> None:
    for row in points.l2_rows():
        attained = row["matrix_rate"] * row["matrix_efficiency"], row["l2_bandwidth"] * row["l2_efficiency"]
        assert row["ridge"] == pytest.approx(attained[0] / attained[1])
        assert (row["bound"] == "l2") == (row["ridge"] > row["tile"])


def test_no_product_of_the_study_is_faster_than_short_ones_and_the_fastest_last() -> None:
    bounds = rows("inference_bounds")
    for row in rows("inference_ridges"):
        fastest = inference_page._fastest(bounds, row["system"])
        assert fastest <= row["lasting_TFLOP_s"] * (1 + 1e-6) <= row["attained_TFLOP_s"] * (1 + 1e-5)
        assert fastest == pytest.approx(row["lasting_TFLOP_s"], rel=0.01)


def test_how_far_blackwell_is_off_is_counted_from_the_kept_scores() -> None:
    kept = {row["device"]: row for row in rows("speedup_blackwell")}
    assert kept == {row["device"]: pytest.approx(row) for row in speedup.blackwell_rows()}
    page = " ".join((STUDIES / "speedup.md").read_text(encoding="utf-8").split())
    for device, row in kept.items():
        assert 0 <= row["too_fast"] <= row["rows"]
        side = "slower" if row["time"] < 1 else "faster"
        assert f"On {device} the published steps are {side} than predicted" in page
        assert f"speed-ups on {device} are to be multiplied by {row['time']:.2f}" in page

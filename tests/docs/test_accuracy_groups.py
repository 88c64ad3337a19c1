"""The beginning of the accuracy page, from rows alone: its sentences are what its tables say."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.paths import ROOT

from symperf.validation.case import Scored
from symperf.validation.score import Report

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(name="page")
def _page() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import accuracy_groups

        yield accuracy_groups
    finally:
        sys.path.remove(str(ROOT / "docs"))
        sys.modules.pop("accuracy_groups", None)


def _rows(source: str, error: float, count: int, judged: str, reach: float, chosen: float, **more: str) -> list[Scored]:
    labels = {"judged": judged, "device": more.get("device", "h100-sxm"), "class": "dense", **more}
    return [
        Scored(
            *(source, f"{source}-{n}", "time_s", 1.0 + n, (1 + n) * (1 + error), labels),
            low=(1 + n) * (1 + error) / reach,
            high=(1 + n) * (1 + error) * reach,
            chosen=chosen,
        )
        for n in range(count)
    ]


REPORT = Report(
    [
        *_rows("LLAMACPP", -0.4, 20, "inference", 1.3, 0.3, device="rtx-4090"),
        *_rows("LLAMA3", 0.14, 10, "training", 1.5, 0.0),
        *_rows("DGXC", 0.02, 30, "training", 1.5, 0.0),
        *_rows("DGXC", -0.13, 12, "blackwell", 1.5, 0.0, device="gb200-nvl72"),
    ],
    [],
)


def test_the_worst_group_comes_first_with_the_cause_of_the_family_that_makes_its_error(page: Any) -> None:
    lines = [line for line in page.worst_lines(REPORT.scored) if line.startswith("|")]
    assert lines[2].startswith("| family: LLAMACPP | 20 | 40.0% | 12% |")
    assert "LLAMACPP (100%): prompts: weights are unpacked to 16 bits" in lines[2]
    numbers = [[float(cell) for cell in re.findall(r"\| (\d+\.?\d*)%", line)[:2]] for line in lines[2:]]
    excess = [mean / aim for mean, aim in numbers]
    assert excess == sorted(excess, reverse=True)


def test_every_family_stands_beside_its_own_aim_and_those_that_miss_it_are_listed(page: Any) -> None:
    text = "\n".join(page.aim_lines(REPORT.scored))
    assert "Of 4 families, those on Blackwell and with mixtures apart, 1 are within their aim." in text
    missed = text.split("Those that are not:")[1]
    assert [re.findall(r"^\| ([A-Z0-9]+, \w+) \|", line) for line in missed.splitlines() if line.startswith("| ")][
        1:
    ] == [
        ["LLAMACPP, inference"],
        ["LLAMA3, training"],
        ["DGXC, blackwell"],
    ]


def test_a_bias_to_one_side_is_told(page: Any) -> None:
    text = "\n".join(page.one_sided_lines(REPORT.scored))
    assert "| LLAMA3 | 10 | 14.0% | +14.0% |" in text
    assert "| DGXC |" not in text.split("With a rank")[0] or "| DGXC | 42 |" in text


def test_coverage_and_width_are_those_of_the_rows(page: Any) -> None:
    text = " ".join(" ".join(page.interval_lines(REPORT.scored)).split())
    assert "hold 72%" in text  # all but the twenty whose interval ends at 0.78 of the measurement
    assert "| family: LLAMACPP | 20 | 0% | 1.69 | -40.0% |" in text
    failing, groups = map(int, re.findall(r"These are (\d+) of (\d+) groups", text)[0])
    assert failing == len(re.findall(r"\| (?:family|device|class): [^|]+ \| \d+ \| \d+% \|", text)) == 3
    assert failing <= groups


def test_headlines_are_split_by_where_constants_are_from(page: Any) -> None:
    lines = page.constant_lines(REPORT.scored)
    assert any(line.startswith("| all with a time: kernels alone | 52 |") for line in lines)
    assert any(line.startswith("| all with a time: chosen constants | 20 |") for line in lines)
    assert any("`step_latency`" in line for line in lines)

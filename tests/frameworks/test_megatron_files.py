"""Files of Megatron-LM: flags that say what hides or costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import symperf as sf

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("flags", "hidden"),
    [
        ("--num-virtual-stages-per-pipeline-rank 2", 1.0),
        ("--num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication", 0.0),
        ("", 0.0),
    ],
)
def test_megatron_hides_transfers_of_interleaved_stages_unless_told_not_to(
    tmp_path: Path, flags: str, hidden: float
) -> None:
    (tmp_path / "run.txt").write_text(f"--pipeline-model-parallel-size 4 {flags}\n", encoding="utf-8")
    assert sf.read_framework(tmp_path / "run.txt", model=True).plan(32, devices=4)[0].overlap_pp == hidden


def test_flags_of_experts_are_values(tmp_path: Path) -> None:
    for told in ("--moe-permute-fusion scatter_latency 0", "--overlap-moe-expert-parallel-comm exchange_overlap 0.37"):
        flag, name, value = told.split()
        (tmp_path / "run.txt").write_text(f"{flag}\n", encoding="utf-8")
        assert sf.read_framework(tmp_path / "run.txt", model=True).values == {name: float(value)}

"""A search over plans of a model whose layers share their weights finds those of one stage."""

from __future__ import annotations

from support.paths import GOLDEN_2026

import symperf as sf
from symperf.plan_search.api import search


def test_shared_blocks_are_searched_on_one_stage() -> None:
    """Every plan has one stage and ZeRO up to 2; the devices are replicas, as B and C have one group."""
    model = sf.Model.load(GOLDEN_2026 / "configs" / "default-zamba2.json")
    found = search(model, "h100-sxm", devices=4, batch=8, sequence=1024, top=3)
    assert len(found) == 3
    assert set(found.pp) == {1}
    assert set(found.dp) == {4}
    assert found.zero.max() <= 2

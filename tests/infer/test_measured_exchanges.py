"""Exchanges of tokens that DeepEP's authors measured on H800, as operations of an inference under its profile.

docs/legacy.md of DeepEP: low-latency kernels with 128 tokens on a device, normal kernels with 4096 of at most four
groups; 7168 features, 8 experts, FP8 there and BF16 back. Of the constants only what a domain's links carry is from
these rows, on one node; those between nodes are predicted with what adapters of an H100 carry.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.effort import NIGHTLY

import symperf as sf
from symperf.formulas.parallel.expert_exchange import places_per_token

DIRECT = {8: (77, 114), 16: (118, 195), 32: (155, 273), 64: (173, 314), 128: (192, 369), 256: (194, 360)}
"""Microseconds there and back, by devices."""
BULK = {8: (153, 158), 16: (43, 43), 32: (58, 57), 64: (51, 50)}
"""GB/s there and back, by devices: of links inside one node, else of adapters, the copy for the own node counted."""
FP8, BF16 = 1 + 4 / 128, 2.0


def exchanges(ep: int, **how: Any) -> dict[str, float]:
    """Seconds of a dispatch and a combination in each phase; one sequence of 4096 tokens on a device unless told."""
    asked = {"batch": ep, "prompt": 4096, "generate": 2} | how
    run = sf.inference("deepseek-v3", "h800-sxm", sf.Plan(dp=ep, ep=ep, precision="fp8"), stack="vllm-deepep", **asked)
    kinds = ("dispatch", "combine")
    rows = [row for row in run.table() if row.name.rpartition("/")[2] in kinds]
    return {f"{row.name.partition('/')[0]} {row.name.rpartition('/')[2]}": row.each_s for row in rows}


@pytest.mark.parametrize("ep", [ep for ep in DIRECT if NIGHTLY or ep in (8, 32, 256)])
def test_low_latency_kernels_within_15_percent(ep: int) -> None:
    found = exchanges(ep, batch=128 * ep, prompt=16)
    there, back = (found[f"decode {name}"] * 1e6 for name in ("dispatch", "combine"))
    assert (there, back) == (pytest.approx(DIRECT[ep][0], rel=0.15), pytest.approx(DIRECT[ep][1], rel=0.15))


@pytest.mark.parametrize("ep", [ep for ep in BULK if NIGHTLY or ep in (8, 64)])
def test_normal_kernels_within_15_percent(ep: int) -> None:
    found, nodes = exchanges(ep), ep // 8
    counted = float(places_per_token(8, 8 if nodes == 1 else min(nodes, 4)))
    for name, width, measured in zip(("dispatch", "combine"), (FP8, BF16), BULK[ep], strict=True):
        sent = 4096 * 7168 * width * counted
        assert sent / found[f"prefill {name}"] / 1e9 == pytest.approx(measured, rel=0.15)

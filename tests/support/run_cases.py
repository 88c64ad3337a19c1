"""The training runs on which `Run` is tested."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf


def make(model: str = "gpt3-175b", system: str = "a100-80gb-sxm", batch: int = 64, **plan: Any) -> sf.Run:
    """A run of 2048 tokens a sequence."""
    return sf.training(sf.Model.load(model), sf.System.load(system), sf.Plan(**plan), batch=batch, sequence=2048)


PIPELINED = {"tp": 8, "pp": 8, "vpp": 3, "recompute": "selective", "sequence_parallel": True}
RUNS = {
    "gpt": lambda: make(**PIPELINED),
    "llama": lambda: make("llama-2-70b", "h100-sxm", 512, tp=8, pp=4, dp=16, zero=1, overlap_dp=0.7, overlap_tp=0.4),
    "one device": lambda: make("gpt-j-6b", "h100-sxm", 2, micro_batch=2, recompute="full"),
    "no tiles": lambda: make("llama-2-7b", "tpu-v5p", 16, dp=8),
}
each_run = pytest.mark.parametrize("name", RUNS)

"""The runs on which derivations are tested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import symperf as sf

if TYPE_CHECKING:
    from symperf.evaluation.base_run import BaseRun


def make(model: str = "gpt3-175b", system: str = "a100-80gb-sxm", batch: int = 64, **plan: Any) -> sf.Run:
    """A training run of 2048 tokens a sequence."""
    return sf.training(sf.Model.load(model), sf.System.load(system), sf.Plan(**plan), batch=batch, sequence=2048)


def generation(model: str, system: str, generate: int = 100, **plan: Any) -> BaseRun:
    """An inference of 8 prompts of 200 tokens."""
    loaded = sf.Model.load(model), sf.System.load(system), sf.Plan(**plan)
    return sf.inference(*loaded, batch=8, prompt=200, generate=generate)


PIPELINED = {"tp": 8, "pp": 8, "dp": 2, "vpp": 3, "recompute": "selective", "sequence_parallel": True}
TRAINING = {
    "eager": lambda: make("gpt-22b", tp=8, micro_batch=4),
    "flash": lambda: make("llama-2-7b", "h100-sxm", dp=8, attention="flash"),
    "sequence parallel": lambda: make(
        "llama-2-70b", "h100-sxm", 512, tp=8, pp=4, dp=16, sequence_parallel=True, overlap_dp=0.7, overlap_tp=0.4
    ),
    "interleaved": lambda: make(**PIPELINED, overlap_tp=0.5),
    "zero": lambda: make("gpt-j-6b", "tpu-v5p", 64, dp=16, zero=1, recompute="full"),
}
"""Five structures: dense eager, flash, sequence parallel, pipeline interleaved, sharded optimizer."""
INFERENCE = {
    "small": lambda: generation("llama-2-7b", "a100-80gb-sxm"),
    "parallel": lambda: generation("llama-2-70b", "h100-sxm", tp=8),
}
ALL = {**TRAINING, **INFERENCE}

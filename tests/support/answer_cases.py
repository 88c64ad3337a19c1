"""Runs of twenty structures, training and inference, whose answers are read as a person would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import symperf as sf

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.evaluation.base_run import BaseRun


def _train(model: str, system: str = "h100-sxm", batch: int = 64, sequence: int = 2048, **plan: Any) -> BaseRun:
    parts = sf.Model.load(model), sf.System.load(system), sf.Plan(**plan)
    return sf.training(*parts, batch=batch, sequence=sequence)


def _infer(model: str, system: str = "h100-sxm", **plan: Any) -> BaseRun:
    parts = sf.Model.load(model), sf.System.load(system), sf.Plan(**plan)
    return sf.inference(*parts, batch=8, prompt=200, generate=100)


STRUCTURES: dict[str, Callable[[], BaseRun]] = {
    "dense": lambda: _train("gpt-22b", "a100-80gb-sxm", tp=8, micro_batch=4),
    "hybrid sharding": lambda: _train("llama-2-70b", dp=64, zero=3, zero_shards=8),
    "sharded optimizer": lambda: _train("llama-2-7b", dp=16, zero=1, overlap_dp=0.5),
    "sharded gradients": lambda: _train("llama-2-7b", dp=16, zero=2, overlap_parameters=0.5),
    "sharded weights": lambda: _train("llama-2-13b", dp=32, zero=3, overlap_gather=0.5),
    "gpipe": lambda: _train("gpt3-175b", "a100-80gb-sxm", tp=8, pp=8, schedule="gpipe", recompute="full"),
    "interleaved": lambda: _train("gpt3-175b", "a100-80gb-sxm", tp=8, pp=8, vpp=3, sequence_parallel=True),
    "zero bubble": lambda: _train("llama-2-70b", tp=8, pp=4, schedule="zero-bubble-2p"),
    "dual pipe": lambda: _train("llama-2-70b", tp=8, pp=4, schedule="dualpipe"),
    "context": lambda: _train("llama-3.1-8b", cp=4, tp=2, sequence=8192),
    "experts": lambda: _train("mixtral-8x7b", tp=2, ep=4, dp=4, sequence_parallel=True),
    "latent": lambda: _train("deepseek-v3", dp=64, ep=64, precision="fp8"),
    "recurrent": lambda: _train("mamba2-1.3b", dp=8),
    "offloaded": lambda: _train("llama-2-7b", dp=8, offload="optimizer"),
    "uneven stages": lambda: _train(
        "gpt3-175b", "a100-80gb-sxm", tp=8, pp=8, first_stage_layers=11, last_stage_layers=13
    ),
    "answers": lambda: _infer("llama-2-7b", "a100-80gb-sxm"),
    "answers in parallel": lambda: _infer("llama-2-70b", tp=8),
    "answers of experts": lambda: _infer("mixtral-8x7b", tp=8),
    "answers of latent attention": lambda: _infer("deepseek-v3", tp=8),
    "answers of recurrence": lambda: _infer("mamba2-1.3b"),
}
"""Dense, expert, latent and recurrent models; ZeRO 0 to 3; every kind of schedule."""

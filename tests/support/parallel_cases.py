"""What the tests of parallelism share: structures of every way to be parallel, and points for them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import symperf as sf
from support.points import Batch, Draw, points
from symperf.plans.structure import Structure

_MODELS = {
    name: sf.Model.load(name).architecture
    for name in ("gpt3-175b", "llama-2-7b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b", "gemma-2-9b")
}


def parallel(model: str = "llama-2-7b", **choices: Any) -> Structure:
    """A structure with flash attention on a whole system."""
    base = Structure(_MODELS[model], "flash", "none", False, "1f1b", 0, False, False, True, True, 2)
    return dataclasses.replace(base, **choices)


PARALLEL = {
    "ring": parallel(context="ring"),
    "ring, one tier": parallel("gpt3-175b", context="ring", tiers=1, l2=False, recompute="full"),
    "ring, latent": parallel("deepseek-v3", context="ring", sequence_parallel=True, zero=1),
    "all-to-all": parallel(context="all-to-all", sequence_parallel=True, zero=3),
    "all-to-all, latent": parallel("deepseek-v3", context="all-to-all"),
    "all-gather": parallel("mixtral-8x7b", context="all-gather", zero=2, sequence_parallel=True),
    "all-gather, latent": parallel("deepseek-v3", context="all-gather", sequence_parallel=True),
    "uneven": parallel(stages="uneven", zero=3),
    "uneven, experts": parallel("gpt-oss-20b", stages="uneven"),
    "given": parallel(stages="given", zero=1),
    "given, experts": parallel("deepseek-v3", stages="given"),
    "zero-bubble": parallel(schedule="zero-bubble", sequence_parallel=True),
    "zero-bubble, recomputed": parallel("gpt3-175b", schedule="zero-bubble", recompute="full", zero=1),
    "zb-h2": parallel(schedule="zb-h2"),
    "zero-bubble-2p, ring": parallel("mixtral-8x7b", schedule="zero-bubble-2p", context="ring"),
    "dualpipe": parallel("deepseek-v3", schedule="dualpipe", zero=1),
    "node-limited": parallel("deepseek-v3", node_limited=True, sequence_parallel=True),
    "dualpipe, dense, uneven": parallel("gemma-2-9b", schedule="dualpipe", stages="uneven"),
    "hybrid": parallel(zero=3, hybrid=True),
    "hybrid, experts": parallel("mixtral-8x7b", zero=1, hybrid=True, sequence_parallel=True),
}


def parallel_points(seed: int, regime: str = "even", size: int = 1024) -> Batch:
    """Points with every symbol that parallelism reads; pipelines are even, and filled twice."""
    found = points(seed, regime, size)
    draw = Draw(seed + 1, size)
    pp, cp = 2 * found["pp"], draw.powers(3)
    experts = cp * draw.powers(5)
    ep = np.minimum(np.minimum(8, found["dp"]), experts)
    layers = pp * draw.whole(1, 6)
    some = np.minimum(layers, draw.whole(0, 4))
    found |= {
        "pp": pp,
        "cp": cp,
        "ep": ep,
        "expert_tp": np.ones(size),
        "num_layers": layers,
        "batch": found["micro_batch"] * found["dp"] * pp * 2 * draw.whole(1, 5),
        "sequence": 2 * cp * found["sequence"],
        "num_attention_heads": cp * found["num_attention_heads"],
        "zero_shards": np.maximum(1, found["dp"] / ep),
        "first_stage_layers": np.maximum(1, layers / pp - 1),
        "last_stage_layers": np.maximum(1, layers / pp - 2),
        "overlap_ep": draw.random.uniform(0, 1, size),
        "overlap_gather": draw.random.uniform(0, 1, size),
        "overlap_parameters": draw.random.uniform(0, 1, size),
        "overlap_pp": np.zeros(size),
        "num_experts": experts,
        "node_limit": draw.whole(1, 8),
        "num_expert_groups": np.full(size, 8.0),
        "expert_groups_per_token": draw.whole(1, 8),
        "num_experts_per_token": np.minimum(experts, draw.powers(3)),
        "expert_intermediate_size": 64 * draw.whole(1, 64),
        "shared_expert_intermediate_size": found["tp"] * 64 * draw.whole(1, 8),
        "token_imbalance": draw.random.uniform(1, 2, size),
        "q_lora_rank": 64 * draw.whole(1, 24),
        "kv_lora_rank": 64 * draw.whole(1, 8),
        "qk_nope_head_dim": 32 * draw.whole(1, 4),
        "qk_rope_head_dim": 32 * draw.whole(1, 2),
        "v_head_dim": 32 * draw.whole(1, 4),
    }
    mixtures = {
        "num_latent_attention_dense_layers": "num_latent_attention_experts_layers",
        "num_local_attention_experts_layers": "num_attention_experts_layers",
        "num_local_attention_dense_layers": "num_attention_dense_layers",
    }
    found["sliding_window"] = draw.whole(1, 4096)
    found["num_multi_token_layers"] = draw.whole(0, 2)
    return found | dict.fromkeys(mixtures, some) | dict.fromkeys(mixtures.values(), layers - some)

"""What a host takes for the products of single experts, from one published campaign.

Megatron-Bridge: Qwen3.5-35B-A3B on 16 H100, EP 16 (16 experts a device), HybridEP, 4096 tokens a micro-batch, no
pipeline.

- 64 micro-batches (references/qwen35-h100-campaign.md of skills/nemo-mbridge-perf-moe-optimization-workflow at
  14fe1a72): a static exchange with one product for all experts, in place of Transformer Engine's GroupedLinear, which
  calls the library for each: 25.007 s become 23.516, in which the device is busy for 22.448 and 21.844: it works
  0.604 s less and idles 0.887 s less. `expert_operations` is what takes as much longer than one launch each does:
  the host, and the device, on which each operation is a kernel that takes `launch_latency` at least.
- 8 micro-batches (SKILL.md of the same skill in earlier versions): 189.1 TFLOP/s in 16 bits, 174.4 in FP8 with a
  scale for each block, and 145.3 with one for each tensor. `expert_cast_operations` takes as much, as if casts of
  experts were all that FP8 costs there. That may be too much: with experts in 16 bits and the rest in FP8 the file
  above has a step 7.9 % slower too, at either scale.

Run as `python benchmarks/calibration/grouped.py`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import symperf as sf

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.runs.training_run import Run

LAYERS = 40
ALL = (25.007 - 22.448) / (64 * LAYERS)
"""Seconds of a layer and micro-batch for which the device idles at all."""
APART = (25.007 - 23.516) / (64 * LAYERS)
"""Those that calls of single experts take longer than one product for all, busy and idle."""
HALF, BLOCKS, TENSORS = 189.1, 174.38, 145.3
"""TFLOP/s in 16 bits, and in FP8 with a scale for each block and for each tensor."""


@lru_cache
def step(precision: str) -> Run:
    """A step of the campaign with 8 micro-batches."""
    plan = sf.Plan.under(
        "megatron-bridge-2026", dp=16, ep=16, expert_tp=1, node_limit=2, micro_batch=1, precision=precision, zero=1
    )
    return sf.training(
        "qwen3.5-35b-a3b",
        "h100-sxm",
        plan,
        batch=128,
        sequence=4096,
        stack="megatron-bridge-2026",
        num_multi_token_layers=0,
    )


def seconds(precision: str, experts: float, casts: float = 0.0) -> float:
    """The time of a step."""
    return step(precision).bind(expert_operations=experts, expert_cast_operations=casts).value("time")


def solved(error: Callable[[float], float], low: float, high: float) -> float:
    """Where an error that grows is 0."""
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if error(middle) > 0 else (middle, high)
    return (low + high) / 2


def experts(longer: float = APART) -> float:
    """Operations of the host for one expert's product, where they take so much longer."""
    each = 8 * LAYERS
    return solved(lambda value: (seconds("bf16", value) - seconds("bf16", 0.0)) / each - longer, 0.0, 2.0)


def casts(reached: float) -> float:
    """Operations of the host for one expert's cast, where FP8 reaches so many TFLOP/s."""
    each = experts()
    half = seconds("bf16", each)
    return solved(lambda value: seconds("fp8", each, value) / half - HALF / reached, 0.0, 3.0)


def main() -> None:
    """Print the constants and what they are from."""
    print(f"a layer takes {APART * 1e3:.2f} ms less with one product: expert_operations {experts():.2f}")
    print(f"the device idles {ALL * 1e3:.2f} ms a layer in all: expert_operations {experts(ALL):.2f}")
    print(f"a scale a block:  {HALF / BLOCKS - 1:+.1%} of time, expert_cast_operations {casts(BLOCKS):.2f}")
    print(f"a scale a tensor: {HALF / TENSORS - 1:+.1%} of time, expert_cast_operations {casts(TENSORS):.2f}")


if __name__ == "__main__":
    main()

"""What tests of inference share: runs of several structures, and their answers over arrays of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import symperf as sf
from symperf.codegen.interpret import arrays
from symperf.codegen.interpret import run as interpret

CASES: dict[str, tuple[str, str, str]] = {
    "llama on h100": ("llama-2-7b", "h100-sxm", "tensorrt-llm"),
    "gqa on a100": ("llama-2-70b", "a100-80gb-sxm", "vllm"),
    "gpt, scores stored": ("gpt3-175b", "a100-80gb-sxm", "fastertransformer"),
    "parallel block": ("falcon-40b", "h200-sxm", "none"),
    "four norms": ("gemma-2-9b", "b200-sxm", "vllm"),
    "experts": ("mixtral-8x7b", "h200-sxm", "vllm"),
    "latent attention": ("deepseek-v2-lite", "h200-sxm", "tensorrt-llm"),
    "windows": ("mistral-7b-v0.1", "h100-sxm", "none"),
    "state in heads": ("mamba2-codestral-7b", "h100-sxm", "vllm"),
    "state in channels": ("jamba-1.5-mini", "h200-sxm", "tensorrt-llm"),
    "delta rule": ("qwen3-next-80b-a3b", "h200-sxm", "vllm"),
    "channelwise decays": ("kimi-linear-48b-a3b", "h200-sxm", "vllm"),
    "matrix memory": ("xlstm-7b", "h100-sxm", "vllm"),
    "time mixing": ("rwkv7-world-2.9b", "h100-sxm", "none"),
    "smooth products": ("llama-3.1-8b", "tpu-v5e", "tensorrt-llm"),
}
"""Model, system and serving software of each structure that the laws are tried on."""
names = st.sampled_from(sorted(CASES))


def make(name: str = "llama on h100", **how: Any) -> Any:
    """The run of a case; one sequence of 200 tokens in and out on one device unless asked otherwise."""
    model, system, stack = CASES[name]
    plan = sf.Plan(**{key: how.pop(key) for key in list(how) if key in sf.Plan.names()})
    work: dict[str, Any] = {"batch": 1, "prompt": 200, "generate": 200, "stack": stack} | how
    return sf.inference(sf.Model.load(model), sf.System.load(system), plan, **work)


def answers(run: Any, **values: Any) -> dict[str, Any]:
    """Every output of a run's program over arrays of input values; the micro-batch follows the batch."""
    inputs: dict[str, Any] = {name: value for name, (value, _) in run.bound.items()} | values
    if "batch" in values and "micro_batch" not in values:
        inputs["micro_batch"] = np.asarray(values["batch"]) / run.plan.dp
    found = interpret(run.compiled.program, inputs, arrays())
    return {name: found[position] for name, position in run.compiled.program.outputs.items()}

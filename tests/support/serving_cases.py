"""What tests of serving share: engines of affine iterations, and serving systems of several structures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import symperf as sf
from symperf.serve.engine import Engine


@dataclass(frozen=True)
class Affine:
    """Iterations of base + each n + token c seconds."""

    base: float
    each: float
    token: float
    shared: float = 0.0

    def decode(self, sequences: float) -> float:
        return self.base + self.each * max(sequences, 1)

    def mixed(self, sequences: float, tokens: float, ranks: float = 1.0) -> float:
        return self.decode(sequences) + self.token * tokens * (1 - self.shared * (1 - ranks))

    def prefill(self, tokens: float, ranks: float = 1.0) -> float:
        return self.base + self.token * tokens * (1 - self.shared * (1 - ranks))


def affine(
    prompt: int,
    generate: int,
    chunks: int,
    chunk_prompts: int,
    each: float = 5e-5,
    limit: int = 10**6,
    base: float = 0.01,
) -> Engine:
    """An engine of affine iterations, without a pipeline."""
    times = Affine(base, each, 2e-5)
    return Engine(times, prompt, generate, generate - 1.0, chunks, chunk_prompts, 1, limit)


CASES: dict[str, dict[str, Any]] = {
    "packed": {"model": "llama-2-70b", "system": "h100-sxm", "stack": "tensorrt-llm", "tp": 8, "prompt": 1024},
    "cut": {"model": "llama-2-7b", "system": "a100-80gb-sxm", "stack": "vllm", "prompt": 2048, "chunk": 512},
    "short": {"model": "llama-2-7b", "system": "a100-80gb-sxm", "stack": "vllm", "prompt": 200},
    "pipeline": {"model": "llama-2-70b", "system": "h100-sxm", "stack": "vllm", "tp": 4, "pp": 2, "prompt": 512},
    "scores stored": {
        "model": "gpt3-175b",
        "system": "a100-80gb-sxm",
        "stack": "fastertransformer",
        "tp": 8,
        "prompt": 300,
    },
    "experts": {"model": "mixtral-8x7b", "system": "h100-sxm", "stack": "vllm", "tp": 2, "prompt": 600},
    "windows": {"model": "gemma-2-9b", "system": "h100-sxm", "stack": "vllm", "prompt": 6000, "chunk": 8192},
    "latents": {"model": "deepseek-v2-lite", "system": "h100-sxm", "stack": "vllm", "prompt": 700},
    "smooth": {"model": "llama-3.1-8b", "system": "tpu-v5e", "stack": "tensorrt-llm", "tp": 4, "prompt": 300},
}


def make(name: str = "packed", **how: Any) -> Any:
    """The serving system of a case; 128 tokens are generated unless asked otherwise."""
    given = {"generate": 128} | CASES[name] | how
    model, system = sf.Model.load(given.pop("model")), sf.System.load(given.pop("system"))
    plan = sf.Plan(**{key: given.pop(key) for key in list(given) if key in sf.Plan.names()})
    return sf.serving(model, system, plan, **given)

"""Representative predictions of every kind, by whose building the formulas of the registry are reached."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy

import symperf as sf
import symperf.serve
from support.known_kernels import known
from support.paths import GOLDEN_2026
from symperf.calibration import forms as calibration
from symperf.formulas.language.formula import REGISTRY, record_calls
from symperf.formulas.language.symbols import context
from symperf.formulas.registry import load
from symperf.infer import build as inference
from symperf.infer.adapter_slots import adapters_of
from symperf.infer.footprint import footprint as inference_footprint
from symperf.infer.footprint import needed
from symperf.infer.memory_rule import RULES
from symperf.models import counts
from symperf.operations.schedule import time_of
from symperf.serve.build import memory as serving_memory
from symperf.serve.iteration import trees as serving_trees
from symperf.serve.iteration_forms import metrics as iteration_metrics
from symperf.spending.forms import bill_forms, spending_forms
from symperf.systems.kernel_constants import FAMILIES
from symperf.technology.cost import YIELDS, cost_forms
from symperf.technology.forms import chip_forms
from symperf.technology.structure import ChipStructure
from symperf.train import build as training
from symperf.train.memory.footprint import host_footprint, stage_footprint
from symperf.train.memory.reserved import reserved

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.infer.structure import InferenceStructure
    from symperf.plans.structure import Structure

HOST = {"host_bandwidth": 64e9, "host_memory_bandwidth": 75e9}
OVERHEADS = {"host_latency": 5e-6, "host_collective_latency": 2e-5, "jitter": 0.02, "overhead_latency": 1e-3}
SENT = {"dispatch_element_bytes": 1.0, "combine_element_bytes": 2.0}
STEPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("qwen3-next-80b-a3b", "h100-sxm", {"dp": 8, "ep": 8, "zero": 1}),
    ("kimi-linear-48b-a3b", "h100-sxm", {"dp": 8, "ep": 8}),
    ("xlstm-7b", "h100-sxm", {}),
    ("rwkv7-world-0.4b", "h100-sxm", {}),
    ("kimi-k3", "b200-sxm", {"tp": 2, "dp": 4, "ep": 8, "sequence_parallel": True}),
    ("phi-2", "a100-80gb-sxm", {}),
    ("phi-2", "a100-80gb-sxm", {"lora_rank": 8, "dora": True, "base_precision": "nf4"}),
    ("phi-2", "a100-80gb-sxm", {"lora_rank": 8}),
    ("phi-2", "a100-80gb-sxm", {"loss": "fused-linear"}),
    ("llama-2-7b", "h100-sxm", {"compiled": True}),
    ("llama-2-7b", "h100-sxm", {"compiled": True, "fp32_residual": True}),
    ("llama-2-7b", "h100-sxm", {"eager": True}),
    ("llama-2-7b", "h100-sxm", {"eager_parts": "copies", "loss_metric_bytes": 16.0}),
    ("phi-2", "h100-sxm", {"loss": "cut"}),
    ("phi-2", "a100-80gb-sxm", {"dropout": False, "attention": "eager", "recompute": "selective"}),
    ("mamba-1.4b", "h100-sxm", {}),
    ("bamba-9b", "h100-sxm", {}),
    (f"{GOLDEN_2026}/configs/default-recurrent_gemma.json", "h100-sxm", {}),
    (f"{GOLDEN_2026}/configs/default-minimax.json", "h100-sxm", {}),
    ("gemma-2-9b", "h100-sxm", {"recompute": "full", "recompute_layers": 2}),
    ("t5-base", "a100-80gb-sxm", {}),
    ("vit-base-p16-224", "a100-80gb-sxm", {}),
    ("modernbert-large", "a100-80gb-sxm", {}),
    ("deepseek-v3", "b200-sxm", {"dp": 8, "ep": 8, "zero": 1, "precision": "fp8", "optimizer": "adam-8bit"}),
    ("deepseek-v3", "b200-sxm", {"dp": 8, "ep": 8, "precision": "fp8", **SENT}),
    ("deepseek-v4-flash", "h200-sxm", {"dp": 8, "ep": 8, "zero": 1}),
    ("deepseek-v3", "h100-sxm", {"dp": 32, "ep": 32, "node_limit": 4, **SENT}),
    ("gpt3-175b", "b200-sxm", {"tp": 8, "precision": "fp8"}),
    ("mixtral-8x7b", "h100-sxm", {"dp": 8, "ep": 4, "tp": 2, "expert_tp": 2, "sequence_parallel": True}),
    ("mixtral-8x7b", "h800-sxm", {"dp": 8, "ep": 4, "tp": 2, "sequence_parallel": True, "zero": 1}),
    ("llama-2-7b", "l40s-shared-root", {"tp": 8}),
    ("llama-2-7b", "h100-sxm", {"dp": 8, "zero": 3, "zero_shards": 4}),
    ("llama-2-7b", "h100-sxm", {"dp": 8, "offload": "activations,optimizer,weights", **HOST}),
    (
        "llama-2-7b",
        "h100-sxm",
        {"dp": 8, "offload": "gradients,optimizer,weights", "nvme": "optimizer,weights", **HOST, "nvme_bandwidth": 3e9},
    ),
    ("llama-2-7b", "h100-sxm", {"dp": 8, "optimizer": "muon"}),
    ("llama-2-7b", "h100-sxm", {"dp": 8, "optimizer": "adafactor"}),
    ("llama-2-7b", "h100-sxm", {"dp": 8, "optimizer": "sgd-momentum"}),
    ("llama-2-7b", "h100-sxm", {"dp": 2, "pp": 2, **OVERHEADS}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "vpp": 2}),
    ("deepseek-v2", "h100-sxm", {"pp": 4, "vpp": 5}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "schedule": "gpipe", "first_stage_layers": 6, "last_stage_layers": 6}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "schedule": "zero-bubble"}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "schedule": "zb-h2"}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "schedule": "zero-bubble-2p"}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "schedule": "dualpipe", "uneven_stages": True}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "schedule": "dualpipe"}),
    ("llama-2-7b", "h100-sxm", {"pp": 5, "schedule": "zero-bubble", "uneven_stages": True}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "vpp": 3, "uneven_stages": True}),
    ("llama-2-7b", "h100-sxm", {"pp": 5, "schedule": "zb-h2", "uneven_stages": True}),
    ("llama-2-7b", "h100-sxm", {"pp": 2, "vpp": 17, "account_for": "both", "overlap_pp": 0.5}),
    ("llama-2-7b", "h100-sxm", {"pp": 4, "overlap_pp": 0.5}),
    ("llama-2-7b", "h100-sxm", {"cp": 4}),
    ("llama-2-7b", "h100-sxm", {"document_length": 500.0, "vocab_multiple": 64}),
    ("llama-2-7b", "h100-sxm", {"cp": 4, "cp_kind": "all-to-all"}),
    ("llama-2-7b", "tpu-v5p", {"dp": 8, "tp": 2}),
    ("mixtral-8x7b", "rtx-4090", {"dp": 4, "zero": 2, "ep": 4, "scatter_latency": 8.6e-12}),
    ("gpt-oss-20b", "h100-sxm", {"dp": 4, "ep": 4, "host_latency": 1e-5, "separate_expert_kernels": 1.0}),
    ("llama-2-7b", "gb200-nvl72", {"dp": 4, "tp": 2}),
    ("llama-2-7b", "a100-80gb-sxm", {"dp": 16, "zero": 3, "gathered_tensors": 4.0}),
    ("mixtral-8x7b", "a100-80gb-sxm", {"dp": 16, "zero": 3, "host_latency": 1e-5, "sharded_operations": 10.0}),
    ("llama-2-7b", "a100-80gb-sxm", {"dp": 16, "zero": 1, "gradient_sum_bytes": 6.0, "owned_tensors": 9.0}),
)
"""Training: model, system, and what the plan and the run state."""
INFERENCES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("nemotron-3-nano-30b-a3b", "h100-sxm", "tensorrt-llm", {}),
    ("deepseek-v2-lite", "b200-sxm", "vllm", {"tp": 2}),
    ("gemma-2-9b", "tpu-v5e", "lmdeploy", {"tp": 2}),
    ("gemma-2-9b", "h200-sxm", "none", {"tp": 2}),
    ("llama-4-scout", "h200-sxm", "none", {"tp": 2}),
    ("llama-4-scout", "h100-sxm", "fastertransformer", {"tp": 8}),
    ("qwen3-next-80b-a3b", "h100-sxm", "vllm", {}),
    ("mamba-1.4b", "h100-sxm", "vllm", {}),
    ("xlstm-7b", "h100-sxm", "vllm", {}),
    ("rwkv7-world-0.4b", "h100-sxm", "none", {}),
    (f"{GOLDEN_2026}/configs/default-recurrent_gemma.json", "h100-sxm", "vllm", {}),
    (f"{GOLDEN_2026}/configs/default-minimax.json", "h100-sxm", "vllm", {}),
    ("deepseek-v4-flash", "h100-sxm", "sglang-0.5", {"tp": 8, "precision": "fp8-block"}),
    ("deepseek-v3", "h100-sxm", "sglang-0.5", {"tp": 1, "dp": 32, "ep": 32, "routing_skew": 0.2}),
    ("deepseek-v3", "h100-sxm", "sglang-0.5", {"tp": 1, "dp": 32, "ep": 32, "redundant_experts": 32}),
    ("llama-3.1-8b", "h100-sxm", "vllm", {"tp": 16, "dcp": 2, "cp": 2, "cp_kind": "all-gather"}),
    ("llama-2-7b", "a100-80gb-sxm", "vllm", {"tp": 2}),
    ("llama-2-7b", "b200-sxm", "vllm-0.24", {"precision": "fp8"}),
    ("llama-2-7b", "a40", "vllm", {}),
    ("deepseek-v2-lite", "h100-sxm", "vllm-0.24", {"tp": 2, "ep": 2, "start_removal": 0.1, "host_latency": 5e-6}),
    ("llama-2-70b", "a100-80gb-sxm", "fastertransformer", {"tp": 8, "pp": 2}),
)
"""Inference and serving: model, system, serving software, and what the plan and the run state."""
HOSTED = {"offload": "weights,cache,experts", **HOST}
"""What an inference leaves to its host."""
SELECTING = tuple(str(GOLDEN_2026 / "configs" / f"{name}.json") for name in ("deepseek-v3.2", "minimax-m3-vl"))
KNOWN_KERNELS = ("gemma-2-9b", "llama-4-scout", "deepseek-v2-lite", "t5-base", *SELECTING)
"""Models of an inference on a system that knows the constants of every family of kernels."""


def reached() -> set[str]:
    """Names of the formulas that the representative predictions call; those that others call are among them."""
    load()  # first, as importing a page calls the formulas that others are composed of
    with record_calls() as names:
        for model, system, stated in STEPS:
            _built(_structure(model, system, stated))
        for model, system, stack, plan in INFERENCES:
            _inference(model, system, stack, plan)
        for model in KNOWN_KERNELS:
            _inference(model, known("h100-sxm"), "vllm", {})
        _inference("mixtral-8x7b", "h100-sxm", "vllm", HOSTED)
        _adapted("llama-2-7b")
        _inference("llama-2-7b", known("b200-sxm", "loops", "casts"), "vllm", {"precision": "fp8"})
        counts.absorbed_flops(sf.Model.load("deepseek-v2-lite").architecture, 1, context)
        _encoded("deberta-v3-large")
        for name in ("deepseek-v3.2", "deepseek-v4-flash", "minimax-m3-vl", "default-gemma3n_text"):
            sparse = sf.Model.load(GOLDEN_2026 / "configs" / f"{name}.json").architecture
            counts.total_parameters(sparse)
            counts.visible_score_flops(sparse)
            counts.state_bytes(sparse)
            counts.cache_bytes(sparse, context)
            counts.absorbed_flops(sparse, 1, context)
        spending_forms.cache_clear()
        spending_forms(_structure("llama-2-7b", "tpu-v5p", {"dp": 8, "tp": 2}))
        for tiers in (1, 2):
            plain = _structure("llama-2-7b", "tpu-v5p", {"dp": 8, "tp": 2})
            _built(dataclasses.replace(plain, tiers=tiers, in_switch=True))
        bill_forms()
        for model in YIELDS:
            cost_forms(model)
        for given in (True, False):
            chip_forms(ChipStructure(given, given, given, "law" if given else "lanes", "adapter"))
        for system in ("h100-sxm", "tpu-v5e"):
            for name in ("product", "thin", "sustained", "cached", "forward", "backward", "decode", "send"):
                calibration._time(calibration.RowFormula("row", name), sf.System.load(system))
        calibration._time(calibration.RowFormula("row", "send"), sf.System.load("mi300x"))
        for name in _served():
            function(name)(*(sympy.Symbol(each, positive=True) for each in REGISTRY[name].parameters))
    return set(names)


def function(name: str) -> Callable[..., Any]:
    """The formula of a name."""
    found: Callable[..., Any] = getattr(importlib.import_module(REGISTRY[name].module), name)
    return found


def _served() -> set[str]:
    """Formulas that the steady state of serving evaluates by name."""
    (folder,) = symperf.serve.__path__
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.py")))
    return set(re.findall(r"\bform\(\s*\"(\w+)\"", text))


def _structure(model: str, system: str, stated: dict[str, Any]) -> Structure:
    plan = sf.Plan(**{name: value for name, value in stated.items() if name in sf.Plan.names()})
    values = {name: value for name, value in stated.items() if name not in sf.Plan.names()}
    loaded = sf.Model.load(model)
    sequence = loaded.sizes["position_rows"] if loaded.architecture.patches else 2048
    batch = 16 * plan.dp * plan.pp
    return sf.training(loaded, sf.System.load(system), plan, batch=batch, sequence=sequence, **values).structure


def _built(structure: Structure) -> None:
    training.step_tree.cache_clear()
    tree = training.step_tree(structure)
    time_of(tree, lambda leaf: sympy.Symbol(leaf.path, positive=True))
    training.metrics(structure, sympy.Symbol("time", positive=True))
    counts.visible_score_flops(structure.architecture)
    reserved(structure)
    host_footprint(structure)
    stage_footprint(structure)


def _inference(model: str, system: str | sf.System, stack: str, stated: dict[str, Any]) -> None:
    plan = sf.Plan(**{name: value for name, value in stated.items() if name in sf.Plan.names()})
    values = {name: value for name, value in stated.items() if name not in sf.Plan.names()}
    structure = sf.inference(model, system, plan, batch=32, prompt=256, generate=64, stack=stack, **values).structure
    for families in (structure.families, tuple(FAMILIES)):
        _inferred(dataclasses.replace(structure, families=families))


def _adapted(name: str) -> None:
    model = sf.Model.load(name)
    asked = sf.serving(model, "h100-sxm", prompt=256, generate=64, adapters=adapters_of(model, 16, 4))
    _inferred(asked.run.structure)


def _encoded(name: str) -> None:
    encoder = sf.Model.load(GOLDEN_2026 / "configs" / f"{name}.json")
    counts.forward_flops(encoder.architecture)
    _inferred(sf.inference(encoder, "h100-sxm", sf.Plan(), batch=8, prompt=256, generate=1).structure)


def _inferred(structure: InferenceStructure) -> None:
    inference.trees.cache_clear()
    tree = inference.tree(structure)
    time_of(tree, lambda leaf: sympy.Symbol(leaf.path, positive=True))
    inference.metrics(structure, *sympy.symbols("prefill step time", positive=True))
    inference_footprint(structure)
    for rule in RULES:
        needed(dataclasses.replace(structure, memory_rule=rule))
    serving_trees(structure)
    serving_memory(structure)
    iteration_metrics(structure, sympy.Symbol("time", positive=True))

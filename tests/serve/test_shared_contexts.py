"""Iterations over devices that share the caches of sequences: which tokens their experts see, and how often."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import symperf as sf
from symperf.infer.experts import Experts
from symperf.serve.iteration import layers

DEALT, GATHERED = sf.Plan(cp=2, dp=2, ep=4), sf.Plan(cp=2, ep=2)
"""Two replicas that send tokens to experts, and one that gathers them."""


def _serving(plan: sf.Plan = DEALT) -> Any:
    return sf.serving("qwen3-30b-a3b", "h200-sxm", plan, prompt=4096, generate=64, stack="vllm-0.24")


@pytest.mark.parametrize(
    ("kind", "tokens"), [("decode", "n k"), ("prefill", "c"), ("mixed", "n k + c")], ids=["decode", "prefill", "mixed"]
)
@pytest.mark.parametrize(("plan", "replicas"), [(DEALT, 2), (GATHERED, 1)], ids=["dealt", "gathered"])
def test_experts_see_each_token_once(kind: str, tokens: str, plan: sf.Plan, replicas: int) -> None:
    """Both devices of a replica decode the same n sequences, of k tokens each, and have half of a chunk of c."""
    structure = _serving(plan).run.structure
    layer = next(each for each, _ in layers(structure, kind))
    found = Experts(layer)
    values = {"decoding": 6, "step_tokens": 3, "chunk_tokens": 100, "prefilling_ranks": 1, "cp": 2, "tp": 1}
    values |= {"ep": plan.ep, "expert_tp": 1}
    wanted = replicas * {"n k": 18, "c": 100, "n k + c": 118}[tokens]

    def value(form: Any) -> Any:
        return sympy.sympify(form).xreplace({s: values[s.name] for s in form.free_symbols if s.name in values})

    assert value(found.all_tokens) == wanted
    assert not found.dealt_out or plan.ep * value(found.tokens) == wanted


def test_an_iteration_gathers_what_each_device_has_sent() -> None:
    """Results of decoded tokens come from both devices, those of a chunk stay where it is."""
    from symperf.operations.schedule import terms
    from symperf.serve.iteration import tree

    structure = _serving().run.structure
    named = {kind: set(terms(tree(structure, kind))) for kind in ("decode", "mixed", "prefill")}
    parts = {kind: any(path.endswith("experts/reduce_parts") for path in paths) for kind, paths in named.items()}
    assert parts == {"decode": False, "mixed": True, "prefill": False}


def test_decoding_beside_a_chunk_costs_no_more_than_both_apart() -> None:
    times = _serving().times(0)
    for sequences in (1, 32, 256):
        mixed = times.mixed(sequences, 2048)
        assert max(times.decode(sequences), times.prefill(2048)) < mixed
        assert mixed < times.decode(sequences) + times.prefill(2048)

"""What tells profiles of 2026 from those beside them: memory of vLLM around v0.21, llama.cpp of today."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf
from symperf.infer.stack import Stack


def _room(stack: str) -> Any:
    work = {"batch": 1, "prompt": 1000, "generate": 24}
    return sf.inference("llama-3.1-8b", "a100-80gb-sxm", sf.Plan(), stack=stack, **work).room()


def test_graphs_lie_in_what_vllm_leaves_until_it_counts_them() -> None:
    """Pull request 38284: from v0.21 on 0.92 of the memory, of which graphs are a part; before, 0.9 without them."""
    old, new = _room("vllm-0.19"), _room("vllm-0.24")
    graphs = Stack.load("vllm-0.24").memory.quantities["graph_bytes"].value
    assert new.runtime - old.runtime == pytest.approx(graphs)
    assert new.available - old.available == pytest.approx(0.02 * old.capacity - graphs)
    assert old.weights == new.weights


def test_vllm_of_both_releases_takes_the_same_time() -> None:
    runs = [
        sf.inference("llama-3.1-8b", "h100-sxm", sf.Plan(), batch=8, prompt=256, generate=32, stack=stack)
        for stack in ("vllm-0.19", "vllm-0.24")
    ]
    assert runs[0].value("time") == runs[1].value("time")


def test_llama_cpp_of_today_joins_what_that_of_2024_did_not() -> None:
    work = {"batch": 1, "prompt": 4096, "generate": 64}
    old, new = (
        sf.inference("llama-3-8b", "rtx-4090", sf.Plan(precision="q4_k_m"), stack=stack, **work)
        for stack in ("llama-cpp", "llama-cpp-2026")
    )
    names = {op.name for op in new.operations()}
    assert "layer/mlp/gate_up" in names
    assert not {"layer/mlp/gate", "layer/mlp/up"} & names
    assert new.value("time_per_token") < old.value("time_per_token")
    assert new.value("prefill") < old.value("prefill")


def test_llama_server_has_four_slots_and_chunks_of_512() -> None:
    serving = sf.serving("llama-3-8b", "rtx-4090", sf.Plan(), prompt=1024, generate=64, stack="llama-cpp-2026")
    assert (serving.chunk, serving.chunks, serving.limit(0)) == (512, 2, 4)
    assert serving.room(0).runtime == pytest.approx(1.44 * 2**30)

"""Graphs are recorded up to a size: which one a profile says, and what a pass above it pays."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.infer.graphs import Graphs, read_graphs
from symperf.infer.stack import Stack, names

H100 = sf.System.load("h100-sxm")


def _run(stack: str, batch: int, **how: Any) -> Any:
    work = {"batch": batch, "prompt": 64, "generate": 3, "stack": stack} | how
    return sf.inference("llama-3.2-1b", H100, sf.Plan(), **work)


@pytest.mark.parametrize(
    ("stack", "system", "tp", "largest"),
    [
        ("vllm-0.24", "h100-sxm", 1, 512),
        ("vllm-0.9", "a100-80gb-sxm", 8, 512),
        ("sglang-0.5", "l40s", 1, 32),
        ("sglang-0.5", "l40s", 4, 160),
        ("sglang-0.5", "h200-sxm", 2, 256),
        ("sglang-0.5", "h100-sxm", 8, 512),
        ("sglang-0.5", "b200-sxm", 1, 512),
        ("tensorrt-llm-1.3", "h100-sxm", 1, 128),
        ("llama-cpp", "h100-sxm", 1, 1),
    ],
)
def test_the_largest_graph_is_the_one_that_the_software_records(stack: str, system: str, tp: int, largest: int) -> None:
    found = Stack.load(stack).graphs.on(sf.System.load(system), sf.Plan(tp=tp))
    assert found["recorded_tokens"].value == largest
    assert found["recorded_tokens"].source


@pytest.mark.parametrize(("stack", "largest"), [("vllm-0.24", 512), ("sglang-0.5", 256), ("tensorrt-llm-1.3", 128)])
def test_a_step_above_the_largest_graph_pays_each_gap(stack: str, largest: int) -> None:
    """Up to it a step is that of graphs of any size; above it that of software which records none."""
    for batch, removed in ((largest, None), (largest + 1, 0.0)):
        alike = _run(stack, batch, **({} if removed is None else {"graph_removal": removed}))
        other = _run(stack, batch, recorded_tokens=1e9)
        assert _run(stack, batch).value("decode") == pytest.approx(alike.value("decode"), rel=1e-12)
        assert (alike.value("decode") > other.value("decode")) == (removed is not None)


def test_prompts_run_in_graphs_only_where_passes_with_prompts_are_recorded() -> None:
    """vLLM records pieces of any pass of 512 tokens; SGLang and TensorRT-LLM decode steps alone."""
    short, long = _run("vllm-0.24", 8), _run("vllm-0.24", 9)
    none = {"graph_removal": 0.0}
    assert short.value("prefill") < _run("vllm-0.24", 8, **none).value("prefill")
    assert long.value("prefill") == pytest.approx(_run("vllm-0.24", 9, **none).value("prefill"), rel=1e-12)
    for stack in ("sglang-0.5", "tensorrt-llm-1.3"):
        assert _run(stack, 1).value("prefill") == pytest.approx(_run(stack, 1, **none).value("prefill"), rel=1e-12)


def test_above_the_largest_graph_the_host_launches_each_kernel() -> None:
    slow = {"host_latency": 1e-3, "recorded_tokens": 4.0}
    step = _run("vllm-0.24", 4, **slow).value("decode")
    assert step == pytest.approx(_run("vllm-0.24", 4).value("decode"), rel=1e-12)
    assert _run("vllm-0.24", 5, **slow).value("decode") > 10 * step


def test_iterations_of_serving_are_recorded_as_those_of_a_batch() -> None:
    serving = sf.serving("llama-3.2-1b", H100, sf.Plan(), prompt=64, generate=3, stack="vllm-0.24")
    bare = sf.serving("llama-3.2-1b", H100, sf.Plan(), prompt=64, generate=3, stack="vllm-0.24", graph_removal=0.0)
    usual, none = serving.times(0), bare.times(0)
    assert usual.decode(512) < none.decode(512)
    assert usual.decode(513) == pytest.approx(none.decode(513), rel=1e-12)
    assert usual.mixed(448, 64) < none.mixed(448, 64)
    assert usual.mixed(449, 64) == pytest.approx(none.mixed(449, 64), rel=1e-12)


def test_software_without_a_limit_has_none() -> None:
    """Of two that record any size nothing is bound, and those that record none have nothing to remove."""
    for name in names():
        stack = Stack.load(name)
        limited = bool(stack.graphs.on(H100, sf.Plan()))
        assert limited or not stack.quantities["graph_removal"].value or name in ("vllm", "vllm-deepep")


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (3, "p.toml: graphs: found 3, expected a table of of, largest"),
        ({"of": "step"}, "graphs.of: found 'step', expected passes or decoding"),
        ({"of": "passes", "larges": [1]}, "graphs: unknown key 'larges'; did you mean largest"),
        ({"of": "passes", "largest": 512}, "graphs.largest: found 512, expected a list of whole numbers"),
        ({"of": "passes", "largest": [1, 2]}, "graphs.from_gb: found [0], expected 2 numbers of GB"),
        ({"of": "passes", "largest": [1], "wide": [2]}, "graphs.wide: expected wide and wide_tp together"),
        ({"of": "passes", "largest": [1], "wide": [2], "wide_tp": 1}, "graphs.wide_tp: found 1, expected a whole"),
    ],
)
def test_a_table_of_graphs_is_checked(table: object, text: str) -> None:
    with pytest.raises(InputError) as error:
        read_graphs(table, "p.toml")
    assert text in str(error.value)
    assert read_graphs({}, "p.toml") == Graphs()

"""Attention by kernels whose constants are known: sums over growing contexts, laws, and what is in a kernel's time."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part
from support.known_kernels import known

import symperf as sf
from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.formulas.generation import block_decode as block
from symperf.formulas.kernels import attention_blocks as blocked
from symperf.formulas.language.symbols import chunk_tokens, chunks, micro_batch, prompt, strip_units
from symperf.infer.attention import SoftmaxAttention
from symperf.infer.layer import Layer
from symperf.serve.attention import IterationLayer, chunk_attention
from symperf.systems.kernel_constants import FAMILIES

if TYPE_CHECKING:
    from symperf.infer.structure import InferenceStructure

LINES = sympy.symbols("w o k t", positive=True)
SUMS = {
    "growing": block.growing_attention_time(*sympy.symbols("n l", positive=True), *LINES),
    "windowed": block.windowed_growing_time(*sympy.symbols("n l a", positive=True), *LINES),
    "chunked": block.chunked_growing_time(*sympy.symbols("n l a", positive=True), *LINES),
    "one": block.cached_attention_time(sympy.Symbol("l", positive=True), *LINES),
}
PROGRAM = lower([], SUMS)
KEYS = {
    "growing": lambda context, _: context,
    "windowed": min,
    "chunked": lambda context, window: (context - 1) % window + 1,
}
microseconds = st.integers(0, 50).map(lambda n: n * 1e-6)


def at(name: str, **values: float) -> float:
    inputs = dict.fromkeys(PROGRAM.inputs, 1.0) | values
    return float(run(PROGRAM, inputs, floats())[PROGRAM.outputs[name]])


@part(0.5)
@given(
    st.sampled_from(sorted(KEYS)),
    st.integers(1, 40),
    st.integers(1, 150),
    st.integers(1, 130),
    *[microseconds] * 4,
)
def test_a_generation_is_the_sum_of_its_steps(
    name: str, steps: int, first: int, window: int, work: float, own: float, key: float, start: float
) -> None:
    values = {"w": work, "o": own, "k": key, "t": start}
    contexts = [KEYS[name](context, window) for context in range(first, first + steps)]
    expected = sum(at("one", l=context, **values) for context in contexts)
    assert at(name, n=steps, l=first, a=window, **values) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def value(expr: Any, values: dict[str, float]) -> float:
    program = lower([], {"value": strip_units(expr)})
    return float(run(program, {name: values[name] for name in program.inputs}, floats())[program.outputs["value"]])


BLOCKED = blocked.blocked_attention_time(*sympy.symbols("groups tokens edge mean longest pair traffic", positive=True))
BLOCKED_PROGRAM = lower([], {"value": strip_units(BLOCKED)})
RATES = {"score_rate": 1.0, "prompt_efficiency": 1.0, "exponent_rate": 1.0}
NO_STARTS = {"block_latency": 0.0, "prompt_latency": 0.0, "gap_latency": 0.0, "graph_removal": 0.0}


def blocked_time(**values: float) -> float:
    """Of products that take no time, with one exponential a second, unless it is said."""
    rest = {"memory_bandwidth": 1.0, "memory_efficiency": 1.0, "traffic": 0.0, "edge": blocked.BLOCK, "pair": 0.0}
    inputs = {**RATES, **NO_STARTS, **rest, **values}
    found = run(BLOCKED_PROGRAM, {name: inputs[name] for name in BLOCKED_PROGRAM.inputs}, floats())
    return float(found[BLOCKED_PROGRAM.outputs["value"]])


def greedy(blocks: list[float], units: int) -> float:
    """When the last block ends if each goes to the unit that is free first."""
    free = [0.0] * units
    for work in blocks:
        heapq.heapreplace(free, free[0] + work)
    return max(free)


@part(0.5)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_no_order_of_the_blocks_takes_longer_than_its_formula(groups: int, whole: int, units: int, seed: int) -> None:
    """Blocks of causal attention with their whole keys, dealt in any order, end before what is charged for them."""
    edge = blocked.BLOCK
    tokens = edge * whole
    works = [edge * min(tokens, edge * (row + 1)) for row in range(-(-tokens // edge)) for _ in range(groups)]
    np.random.default_rng(seed).shuffle(works)
    sizes = {"groups": groups, "tokens": tokens, "mean": (tokens + 1) / 2, "longest": tokens}
    charged = blocked_time(**sizes, compute_units=units) / units
    assert greedy(works, units) <= charged * (1 + 1e-12)


def inference(system: Any, model: str = "llama-2-7b", **stated: Any) -> Any:
    work = {"batch": 4, "prompt": 300, "generate": 20, "stack": "vllm"} | stated
    return sf.inference(model, system, work.pop("plan", sf.Plan()), **work)


def paths(answer: Any) -> set[str]:
    return {row.name for row in answer.table()}


@pytest.mark.parametrize("model", ["llama-2-7b", "gemma-2-9b", "llama-4-scout", "deepseek-v2-lite"])
def test_shares_add_up_and_the_cache_is_written_once(model: str) -> None:
    plan = sf.Plan(tp=8) if model == "llama-4-scout" else sf.Plan()
    answer = inference(known("h100-sxm"), model, plan=plan)
    assert sum(answer.shares().values()) == pytest.approx(1, rel=1e-9)
    assert any(path.endswith("/append") for path in paths(inference("h100-sxm", model, plan=plan)))
    assert not any(path.endswith("/append") for path in paths(answer))


def test_a_family_is_in_the_time_only_where_all_of_it_is_known() -> None:
    system = known("h100-sxm", "decoding")
    assert {*system.families} - {*sf.System.load("h100-sxm").families} == {"decoding"}
    plain, decoding = inference("h100-sxm"), inference(system)
    assert decoding.value("prefill") == plain.value("prefill")
    assert decoding.value("decode") != plain.value("decode")
    names = set(decoding.bindings) & {sympy.Symbol(name) for name in FAMILIES["prompts"]}
    assert not {str(name) for name in names} - {"exponent_rate", "query_block"}


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_queries_are_cast_where_the_cache_is_narrower(phase: str) -> None:
    system = known("h100-sxm", cache_cast_latency=5e-6)
    none = known("h100-sxm", cache_cast_latency=1e-10)
    count = 32 if phase == "prefill" else 32 * 19
    for kv, factor in ((None, 0), ("fp8", 1)):
        added = [inference(each, kv_precision=kv).value(phase) for each in (none, system)]
        assert added[1] - added[0] == pytest.approx(factor * count * 5e-6, rel=1e-3, abs=1e-12)


def test_attention_multiplies_in_8_bits_where_products_and_cache_have_them() -> None:
    system = known("h100-sxm")
    rates = {
        (precision, kv): inference(system, plan=sf.Plan(precision=precision), kv_precision=kv).bound["score_rate"][0]
        for precision in (None, "fp8")
        for kv in (None, "fp8")
    }
    assert rates["fp8", "fp8"] == 2 * rates[None, None] or rates["fp8", "fp8"] == pytest.approx(1979e12)
    assert rates[None, None] == rates[None, "fp8"] == rates["fp8", None] == pytest.approx(989e12)


@pytest.mark.parametrize("stack", ["vllm-0.24", "sglang-0.5", "tensorrt-llm-1.3"])
def test_every_rate_and_latency_can_be_set(stack: str) -> None:
    """All together to what they are, which changes nothing; attention follows the rate that it is given."""
    run = sf.inference("mixtral-8x7b", "h100-sxm", sf.Plan(tp=8), batch=4, prompt=512, generate=4, stack=stack)
    ends = ("_rate", "_bandwidth", "_latency", "_half_bytes", "_efficiency")
    figures = {name: run.bound[name][0] for name in run.compiled.program.inputs if name.endswith(ends)}
    assert len(figures) > 20
    assert run.bind(**figures).value("time") == pytest.approx(run.value("time"), rel=1e-12)
    slow = {name: run.bind(**{name: 1e14}) for name in ("attention_rate", "score_rate")}
    assert slow["attention_rate"].value("prefill") == slow["score_rate"].value("prefill") > run.value("prefill")
    both = slow["attention_rate"].bind(score_rate=run.bound["score_rate"][0])
    assert both.value("prefill") == run.value("prefill")


def structure() -> InferenceStructure:
    answer: InferenceStructure = inference(known("h100-sxm")).structure
    return answer


def test_one_chunk_is_a_whole_prompt() -> None:
    layer = IterationLayer(structure(), "prefill", chunk_tokens)
    assert isinstance(layer.mixer, SoftmaxAttention)
    chunk = chunk_attention(layer.mixer).time.xreplace({chunks: sympy.S.One, chunk_tokens: prompt * micro_batch})
    whole = Layer(structure(), "prefill", micro_batch * prompt).mixer.prefill(prompt)[0].time  # type: ignore[union-attr]
    values = {name: number for name, (number, _) in inference(known("h100-sxm")).bound.items()}
    assert value(chunk, values) == pytest.approx(value(whole, values), rel=1e-12)


def test_later_chunks_read_what_came_before() -> None:
    """The same new tokens take longer over a longer prefix, by the pairs that they have more of."""
    tokens = 256

    def time(prefix: int) -> float:
        sizes = {"groups": 800, "tokens": tokens, "mean": prefix + (tokens + 1) / 2, "longest": prefix + tokens}
        return blocked_time(**sizes, pair=512.0, compute_units=100.0)

    more = 4096 * (800 * tokens + 64 * 100)
    assert time(4096) - time(0) == pytest.approx(more * 513, rel=1e-9)


def test_groups_that_go_in_parts_read_their_keys_for_each() -> None:
    mixer = Layer(structure(), "decode", micro_batch).mixer
    assert isinstance(mixer, SoftmaxAttention)
    bound = {name: value for name, (value, _) in inference(known("h100-sxm"), batch=64).bound.items()}
    times = [value(mixer.over(4096, passes).time, bound) for passes in (None, 1, 4)]
    assert times[0] == times[1] < times[2] < 4 * times[1]


def test_constants_of_attention_are_where_a_profile_says(tmp_path: Any) -> None:
    """A profile that knows a kernel's constants predicts a table's rows as a run has them."""
    from support.kernel_tables import GENERATION, PROMPT, write_table

    from symperf.validation.kernels.forms import Setting, predict
    from symperf.validation.kernels.operations import OPERATIONS
    from symperf.validation.kernels.rows import Table

    constants = {name: value for name, value in known("h100-sxm").quantities.items() if any(
        name in family for family in FAMILIES.values())}  # fmt: skip
    text = 'base = "vllm"\n[on.h100-sxm]\nsource = "a test"\n'
    profile = tmp_path / "mine.toml"
    profile.write_text(text + "".join(f"{n} = {q.value!r}\n" for n, q in constants.items()), encoding="utf-8")
    answer = inference("h100-sxm", stack=str(profile), generate=2, gap_latency=0.0, graph_removal=1.0)
    terms = {row.name: row.each_s for row in answer.table()}
    for name, row, path in (
        ("context_attention", PROMPT, "prefill/layer/attention/flash"),
        ("generation_attention", GENERATION, "decode/layer/attention/flash"),
    ):
        folder = write_table(tmp_path / name, name, [row])
        (part_of,) = Table(folder / f"{name}.csv", name, OPERATIONS[name]).parts()
        setting = Setting(sf.System.load("h100-sxm"), "vLLM", profile=str(profile))
        found = predict(part_of.sort.form, setting, part_of.sizes, 1)["time"]
        assert float(np.ravel(found)[0]) == pytest.approx(terms[path], rel=1e-9)

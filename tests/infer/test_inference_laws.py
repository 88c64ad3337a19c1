"""Laws of inference: monotone in the work, bounded below by bytes and FLOPs, right in the limits; its bookkeeping."""

from __future__ import annotations

import csv
import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.inference_cases import CASES, answers, make, names
from support.oracle import evaluate
from support.paths import GOLDEN

import symperf as sf
from symperf.formulas.language.symbols import SYMBOLS
from symperf.infer.build import tree
from symperf.operations.schedule import closed_form

counts = st.integers(1, 512)
several = settings(max_examples=max(15, settings.default.max_examples // 4))
RESOURCES = {name for name, entry in SYMBOLS.items() if entry.resource is not None}


SCANS = {"/ssm/scan": 5, "/linear_attention/scan": 6, "/matrix_memory/scan": 4, "/wkv/scan": 6}
"""Kernels of a chunked scan: mamba_ssm's ssd_combined.py, flash-linear-attention's chunk_gated_delta_rule and
chunk_rwkv7, mlstm_kernels' chunkwise mLSTM."""


def never_falls(values: Any) -> bool:
    """Whether a series never falls by more than rounding."""
    values = np.asarray(values, dtype=float)
    return bool(np.all(np.diff(values) >= -1e-12 * np.abs(values[1:])))


@several
@given(names, st.sampled_from(["batch", "prompt", "generate"]), st.sampled_from([1, 2, 8]), counts, counts, counts)
def test_latency_never_falls_with_batch_prompt_or_generated_tokens(
    name: str, what: str, tp: int, batch: int, prompt: int, generate: int
) -> None:
    run = make(name, tp=tp)
    work = {"batch": batch, "prompt": prompt, "generate": generate}
    grown = np.arange(work[what], work[what] + 300, dtype=float)
    for output in ("prefill", "decode", "time", "memory"):
        assert never_falls(np.broadcast_to(answers(run, **work | {what: grown})[output], grown.shape))


@pytest.mark.parametrize("name", CASES)
def test_latency_is_proved_to_fall_with_every_rate_and_to_rise_with_every_latency(name: str) -> None:
    from symperf.formulas.language.discipline import judge

    found = judge(closed_form(tree(make(name).structure))).directions
    moved = {str(symbol): way for symbol, way in found.items() if str(symbol) in RESOURCES}
    assert len(moved) >= 8
    assert moved == {symbol: 1 if symbol.endswith("_latency") else -1 for symbol in moved}
    ways = {str(symbol): way for symbol, way in found.items()}
    assert ways["generate"] == 1
    windowed = any(kind.mixer == "local_attention" for kind in make(name).structure.architecture.kinds)
    assert ways["prompt"] == (0 if windowed else 1)  # behind a window only numbers show it, in the test above


@several
@given(names, st.sampled_from([1, 2, 4]), counts, counts, counts)
def test_more_tensor_parallelism_never_raises_the_bytes_of_a_device(
    name: str, tp: int, batch: int, prompt: int, generate: int
) -> None:
    work = {"batch": batch, "prompt": prompt, "generate": generate}
    run = make(name, tp=tp, **work)
    assert run.bind(tp=2 * tp).value("memory") <= run.value("memory")


@several
@given(names, st.sampled_from([1, 2, 8]), st.integers(1, 64), counts, st.integers(2, 400))
def test_a_step_reads_the_weights_and_prefill_computes_its_flops(
    name: str, tp: int, batch: int, prompt: int, generate: int
) -> None:
    run = make(name, tp=tp, batch=batch, prompt=prompt, generate=generate)
    found = sf.inspect(run.model)["parameters"]
    weights = min(
        (found["active_per_token"] - found["embedding"]) * run.bound["weight_bytes"][0] / tp,
        run.value("memory/weights/layers"),
    )
    bandwidth, rate = run.bound["memory_bandwidth"][0], run.bound["matrix_rate"][0]
    assert run.value("time_per_token") >= weights / bandwidth
    assert run.value("decode") >= (generate - 1) * weights / bandwidth
    products = sum(row.flops for row in run.table() if row.name.startswith("prefill") and row.bound != "scale_up")
    matrix = sum(
        2 * op.m * op.n * op.k * op.count
        for op in run.operations()
        if op.phase == "prefill" and op.m and "core" not in op.name
    )
    assert products >= matrix * (1 - 1e-9)
    assert run.value("prefill") >= matrix / rate


@pytest.mark.parametrize("name", CASES)
def test_a_large_batch_costs_each_sequence_its_flops_and_its_cache(name: str) -> None:
    run = make(name)
    found = answers(run, batch=np.array([1e7, 2e7]))
    for phase in ("prefill", "decode"):
        assert found[phase][1] / found[phase][0] == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_without_limits_of_memory_what_is_left_is_compute_launches_and_network(name: str) -> None:
    fast = {"memory_bandwidth": 1e30, "l2_bandwidth": 1e30, "split_inner": 1e9}
    if "loops" in make(name).structure.families:
        fast["inner_latency"] = 0.0
    found = answers(make(name), **fast)
    slower = answers(make(name), **fast, matrix_rate=1e30, attention_rate=1e30, vector_rate=1e30)
    run = make(name)
    starts = run.bound["launch_latency"][0] + run.bound["gap_latency"][0] * (1 - run.bound["graph_removal"][0])
    others = ("reduce", "gather", "send", "software")
    kernels = sum(row.count for row in run.table() if row.name.split("/")[-1] not in others)
    kernels += sum(
        row.count * (several - 1) for row in run.table() for end, several in SCANS.items() if end in row.name
    )
    sampling = 200 * (run.bound["sampling_kernels"][0] - 1)
    total = (kernels + sampling) * starts + 200 * run.bound["step_latency"][0]
    assert slower["time"] == pytest.approx(total, rel=1e-9)
    assert found["time"] >= slower["time"]


@given(names, st.sampled_from([1, 2, 4, 8]))
def test_shares_and_breakdown_sum_to_the_whole(name: str, tp: int) -> None:
    run = make(name, tp=tp)
    assert sum(run.shares().values()) == pytest.approx(1, rel=1e-12)
    assert sum(row.time_s for row in run.table()) == pytest.approx(run.value("time"), rel=1e-12)
    assert sum(op.time_s for op in run.operations()) == pytest.approx(run.value("time"), rel=1e-12)


with (GOLDEN / "kv.csv").open(encoding="utf-8", newline="") as file:
    CACHES = [
        row
        for row in csv.DictReader(file)
        if row["window_layers"] == "0" and row.get("constant_state_bytes", "0") in ("", "0")
    ]


def test_the_cache_of_every_uniform_decoder_equals_the_golden_bytes() -> None:
    checked = 0
    for row in CACHES:
        try:
            model = sf.Model.load(row["model"])
            run = sf.inference(model, sf.System.load("b200-sxm"), batch=3, prompt=4, generate=5, stack="none")
        except sf.InputError:  # a kind of layer that inference does not model yet says so
            continue
        each = row["bytes_per_token_theory_shapes"] or row["bytes_per_token_growing"]  # PyTorch copies shared heads
        slots = 1 + 5 if model.architecture.stacks == 2 else 4 + 5
        assert run.value("memory/kv_cache") == 3 * slots * float(each), row["model"]
        checked += 1
    assert checked >= 20


@pytest.mark.parametrize(("block", "tokens", "slots"), [(1, 33, 33), (16, 33, 48), (16, 48, 48), (64, 1, 64)])
def test_paged_blocks_are_held_whole(block: int, tokens: int, slots: int) -> None:
    run = make(prompt=1, generate=1, kv_block=block)
    each = run.value("memory/kv_cache") / (block * -(-2 // block))
    grown = make(prompt=tokens, generate=1, kv_block=block).value("memory/kv_cache") / each
    assert grown == block * -(-(tokens + 1) // block)
    assert slots == block * -(-tokens // block)


@pytest.mark.parametrize("stack", ["fastertransformer", "tensorrt-llm"])
def test_recorded_graphs_remove_their_part_of_the_gaps(stack: str) -> None:
    plain = make(graph_removal=0, stack=stack)
    whole = make(graph_removal=1, stack=stack)
    assert whole.value("time") == pytest.approx(make(gap_latency=0, stack=stack).value("time"), rel=1e-12)
    half = make(graph_removal=0.5, stack=stack).value("time")
    mean = (plain.value("time") + whole.value("time")) / 2
    if stack == "fastertransformer":
        assert half == pytest.approx(mean, rel=1e-12)
    else:  # contexts are split where the second kernel pays: the best of two ways is never worse than a mix of them
        assert mean * (1 - 1e-12) <= half <= plain.value("time")


def test_formats_shrink_what_they_say() -> None:
    base = make()
    eight = make(precision="fp8")
    four = make(precision="int4-weight")
    assert eight.value("memory/weights/layers") == base.value("memory/weights/layers") / 2
    assert four.value("memory/weights/layers") == pytest.approx(base.value("memory/weights/layers") * 0.515625 / 2)
    assert make(kv_precision="fp8").value("memory/kv_cache") == base.value("memory/kv_cache") / 2
    assert eight.value("decode") < base.value("decode")
    assert four.value("decode") < eight.value("decode")
    assert four.bound["matrix_rate"] == base.bound["matrix_rate"]


def test_a_pipeline_needs_all_its_stages_for_every_token() -> None:
    one = make("gqa on a100", batch=1, tp=2)
    two = one.bind(pp=2)
    sends = [op for op in two.operations() if op.name == "pipeline/send"]
    assert {op.phase for op in sends} == {"prefill", "decode"}
    decode = two.value("decode") - sum(op.time_s for op in sends if op.phase == "decode")
    assert decode == pytest.approx(one.value("decode"), rel=1e-9)


def test_two_micro_batches_fill_two_stages() -> None:
    alone = make("gqa on a100", batch=8, tp=2, pp=2)
    filled = alone.bind(micro_batch=4)
    steps = {op.name: op.count for op in filled.operations() if op.phase == "decode"}
    assert steps["layer/attention/qkv"] == 199 * 80
    layers = [
        sum(op.time_s for op in run.operations() if op.name.startswith("layer/") and op.phase == "decode")
        for run in (alone, filled)
    ]
    assert layers[1] < layers[0]
    assert filled.bind(prompt=4000).value("prefill") < alone.bind(prompt=4000).value("prefill")


def test_a_run_can_be_bound_anew() -> None:
    run = make()
    other = run.bind(prompt=50, generate=7, tp=2, memory_bandwidth=4e12, stack="vllm", kv_precision="int8")
    assert dataclasses.astuple(other.work) == (1, 50, 7)
    assert other.stack.name == "vllm"
    assert other.bound["kv_bytes"][0] == 1
    assert other.bind(prompt=200, generate=200, tp=1, stack="tensorrt-llm", kv_precision=None).value(
        "memory"
    ) == run.value("memory")
    assert run.free("prompt").free_names == {"prompt"}
    with pytest.raises(sf.InputError, match="prompt"):
        run.bind(promt=5)


@pytest.mark.parametrize("name", CASES)
def test_closed_forms_are_those_of_the_numbers(name: str) -> None:
    run = make(name, tp=2)
    assert float(evaluate(run.time.expr, run.bindings)) == pytest.approx(run.value("time"), rel=1e-12)
    assert float(evaluate(run.memory.expr, run.bindings)) == pytest.approx(run.value("memory"), rel=1e-12)


def test_the_generation_is_a_sum_in_latex() -> None:
    assert "\\sum" in make(tp=2).latex()


def test_fp8_products_have_an_efficiency_of_their_own_unless_one_is_set() -> None:
    eight = make(precision="fp8")
    assert eight.bound["matrix_efficiency"] == eight.bound["fp8_efficiency"]
    assert make().bound["matrix_efficiency"][0] == make().system.value("matrix_efficiency")
    assert make(precision="fp8", matrix_efficiency=0.5).bound["matrix_efficiency"][0] == 0.5
    assert make(precision="fp8", fp8_efficiency=0.4).bound["matrix_efficiency"][0] == 0.4
    assert eight.bound["attention_rate"][0] == make().bound["matrix_rate"][0]


@several
@given(names, st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]), st.integers(1, 256))
def test_utilisations_are_at_most_one(name: str, tp: int, pp: int, batch: int) -> None:
    layers = make(name).model.sizes["num_layers"]
    run = make(name, tp=tp, pp=pp if layers % pp == 0 else 1, batch=batch)
    assert 0 < run.value("decode_mbu") <= 1
    assert 0 < run.value("prefill_mfu") <= 1


@pytest.mark.parametrize("tp", [2, 8])
def test_experts_compute_as_much_whether_split_or_dealt(tp: int) -> None:
    def executed(**plan: Any) -> float:
        run = make("experts", tp=tp, batch=8, prompt=512, **plan)
        return sum(tp * row.flops for row in run.table() if row.name in ("prefill/layer/experts/up",))

    assert executed(ep=tp) == pytest.approx(executed(), rel=1e-12)
    with pytest.raises(sf.InputError, match="expert_tp: found 2, expected 1 with ep = "):
        make("experts", tp=2 * tp, ep=tp, expert_tp=2)


def test_shared_experts_are_summed_with_the_routed_ones() -> None:
    split = {row.name for row in make("latent attention", tp=2).table()}
    dealt = {row.name for row in make("latent attention", tp=2, ep=2).table()}
    shared = "decode/layer/latent_attention_experts/shared/reduce"
    assert shared not in split
    assert shared in dealt


def test_stored_scores_take_memory_and_a_fused_residual_takes_time() -> None:
    stored = make("gpt, scores stored", prompt=1000, generate=10)
    scores = stored.plan.micro_batch * 96 * 1000**2 * 2
    assert stored.value("memory/activations") - stored.bind(stack="tensorrt-llm").value("memory/activations") == scores
    fused, apart = (make(batch=64, prompt=4000, stack=name) for name in ("vllm", "tensorrt-llm"))
    bytes_of = [{row.name: row.bytes / row.count for row in run.table()} for run in (fused, apart)]
    norm = "prefill/layer/mlp/norm"
    assert bytes_of[0][norm] == 2 * bytes_of[1][norm]

"""Inference of layers of every kind: recurrent ones, encoders, gates, chunks; by hand, by golden numbers, by laws."""

from __future__ import annotations

import csv
import math
from typing import Any

import numpy as np
import pytest
from support.effort import some
from support.oracle import evaluate
from support.paths import GOLDEN

import symperf as sf
from symperf.formulas.language.symbols import SYMBOLS, strip_units
from symperf.models import counts

with (GOLDEN / "kv.csv").open(encoding="utf-8", newline="") as file:
    CACHES = {row["model"]: row for row in csv.DictReader(file)}
OWN = {path.stem for path in (GOLDEN / "configs").glob("*.json")}
CONFIGS = sorted({*CACHES, "bert-base", "bert-large", "vit-base-p16-224"})
RECURRENT = ("bamba-9b", "jamba-1.5-mini", "mamba2-codestral-7b", "nemotron-h-56b", "qwen3-next-80b-a3b")
ENCODERS = ("bert-base", "bert-large", "vit-base-p16-224")


def load(name: str) -> sf.Model:
    return sf.Model.load(GOLDEN / "configs" / f"{name}.json" if name in OWN else name)


def make(name: str, system: str = "h100-sxm", **how: Any) -> Any:
    plan = sf.Plan(**{key: how.pop(key) for key in list(how) if key in sf.Plan.names()})
    work: dict[str, Any] = {"batch": 2, "prompt": 64, "generate": 8, "stack": "none"} | how
    if name in ENCODERS:
        work |= {"prompt": 197 if name.startswith("vit") else work["prompt"], "generate": 1}
    return sf.inference(load(name), sf.System.load(system), plan, **work)


# One decode step by hand, on a device whose time is the larger of bytes and FLOPs, and a start ----------------------


class ByHand:
    """Seconds of kernels on a device without units, from the data sheet and its attainable parts."""

    def __init__(self, run: Any) -> None:
        given = {name: value for name, (value, _) in run.bound.items()}
        self.bandwidth = given["memory_bandwidth"] * given["memory_efficiency"]
        self.matrix = given["matrix_rate"] * given["matrix_efficiency"]
        self.attention = given["attention_rate"] * given["attention_efficiency"]
        self.vector = given["vector_rate"] * given["vector_efficiency"]
        self.start = given["launch_latency"]

    def product(self, rows: float, inner: float, columns: float, out: int = 2) -> float:
        moved = 2 * rows * inner + 2 * inner * columns + out * rows * columns
        return max(2 * rows * inner * columns / self.matrix, moved / self.bandwidth) + self.start

    def stream(self, moved: float, work: float = 0.0) -> float:
        return max(moved / self.bandwidth, work / self.vector) + self.start

    def core(self, flops: float, moved: float) -> float:
        return max(flops / self.attention, moved / self.bandwidth) + self.start


def test_a_decode_step_of_mamba_2_by_hand() -> None:
    b, h, inner, state, channels, columns = 2, 4096, 8192, 128, 8192 + 2 * 8 * 128, 8192 + 10240 + 128
    run = make("mamba2-codestral-7b", "tpu-v5e", batch=b, generate=2)
    hand = ByHand(run)
    moved_state = 2 * inner * state * 4 + 2 * (2 * inner + 2 * 8 * state + 128)
    layer = (
        hand.stream(4 * b * h * 2, b * h * 9)  # residual and norm
        + hand.product(b, h, columns)
        + hand.stream(2 * b * channels * 2 + 2 * b * channels * 4 * 2 + channels * 4 * 2, b * channels * 16)
        + hand.stream(b * moved_state, 6 * b * inner * state)
        + hand.stream(3 * b * inner * 2, b * inner * 16)
        + hand.product(b, inner, h)
    )
    ends = hand.stream(b * (2 * h * 2 + run.bound["index_bytes"][0]))
    ends += hand.stream(4 * b * h * 2, b * h * 9) + hand.product(b, h, 32768, out=4)
    ends += hand.stream(b * 32768 * 4, b * 32768 * 6)
    assert run.value("decode") == pytest.approx(64 * layer + ends, rel=1e-12)
    assert run.value("time_per_token") == run.value("decode")


def test_a_decode_step_of_t5_by_hand() -> None:
    b, h, f, vocabulary, prompt = 3, 768, 3072, 32128, 100
    run = make("t5-base", "tpu-v5e", batch=b, prompt=prompt, generate=2)
    hand = ByHand(run)
    norm = hand.stream(4 * b * h * 2, b * h * 9)
    own, key = 2 * b * h * 2, 2 * b * h * 2
    layer = (
        3 * norm
        + hand.product(b, h, 3 * h)
        + hand.core(2 * 4 * b * h, own + 2 * (key + b * 12 * 2))  # the start and the first token, with their biases
        + hand.product(b, h, h)
        + hand.product(b, h, h)
        + hand.core(prompt * 4 * b * h, own + prompt * key)
        + hand.product(b, h, h)
        + hand.product(b, h, f)
        + hand.stream(2 * b * f * 2, b * f * 8)
        + hand.product(b, f, h)
    )
    ends = hand.stream(b * (2 * h * 2 + run.bound["index_bytes"][0])) + norm
    ends += hand.product(b, h, vocabulary, out=4) + hand.stream(b * vocabulary * 4, b * vocabulary * 6)
    assert run.value("decode") == pytest.approx(12 * layer + ends, rel=1e-12)


# Golden numbers ---------------------------------------------------------------------------------------------------


def _known(run: Any) -> dict[Any, float]:
    lengths = {"sequence": run.work.prompt, "encoder_sequence": run.work.prompt, "flop": 1.0}
    values = {name: value for name, (value, _) in run.bound.items()} | lengths
    return {SYMBOLS[name].symbol: value for name, value in values.items() if name in SYMBOLS}


def _executed(run: Any, *, products: bool) -> float:
    outputs = run.compiled.program.outputs
    total = 0.0
    for row in run.table():
        core = row.name.split("/")[-1] == "flash"
        if row.name.startswith("prefill/") and (f"term/{row.name}/m" in outputs if products else core):
            total += row.flops
    return total


@pytest.mark.parametrize("name", some(CONFIGS))
def test_the_products_of_prefill_are_those_of_the_counts(name: str) -> None:
    run = make(name, "b200-sxm")
    architecture, two = run.model.architecture, run.model.architecture.stacks == 2
    own = 1 if two else run.work.prompt
    forward = {
        key: float(evaluate(strip_units(form), _known(run)))
        for key, form in counts.forward_flops(architecture, own, own).items()
        if form != 0
    }
    if architecture.head == "vocabulary":
        forward["lm_head"] /= own
    scores = {"attention_scores", "cross_attention_scores"}
    apart = {*scores, "ssm_scan", "ssm_convolution"}
    assert _executed(run, products=True) == pytest.approx(
        sum(v for k, v in forward.items() if k not in apart), rel=1e-9
    )
    known = _known(run) | {SYMBOLS["sequence"].symbol: float(own)}
    visible = float(evaluate(strip_units(counts.visible_score_flops(architecture)), known))
    visible += forward.get("cross_attention_scores", 0.0)
    assert _executed(run, products=False) == pytest.approx(visible, rel=1e-9)
    whole = sum(forward.values()) - forward.get("ssm_scan", 0.0)
    scans = sum(row.flops for row in run.table() if row.name.startswith("prefill/") and row.name.endswith("/scan"))
    assert run.value("prefill_flops") == pytest.approx(whole + scans, rel=1e-9)


@pytest.mark.parametrize("name", [*RECURRENT, "t5-base", "bart-large-cnn"])
def test_what_a_sequence_keeps_is_golden(name: str) -> None:
    run, row = make(name, batch=3), CACHES[name]
    terms = run.memory_terms()
    each = float(row["bytes_per_token_theory_shapes"] or row["bytes_per_token_growing"])
    slots = 1 + 8 if run.model.architecture.stacks == 2 else 64 + 8
    assert terms.get("kv_cache", 0.0) == 3 * slots * each
    assert terms.get("kv_cache/state", 0.0) == 3 * float(row["constant_state_bytes"] or 0)
    assert terms.get("kv_cache/cross", 0.0) == 3 * 64 * float(row["cross_attention_bytes_per_encoder_token"] or 0)


# Laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some([*RECURRENT, "t5-base", "bart-large-cnn"]))
def test_time_and_memory_never_fall_with_the_work(name: str) -> None:
    run = make(name, stack="vllm")
    for what in ("batch", "prompt", "generate"):
        grown = [run.bind(**{what: size}) for size in (3, 9, 30, 90, 300)]
        for output in ("time", "memory"):
            values = [each.value(output) for each in grown]
            assert values == sorted(values), (what, output)


@pytest.mark.parametrize("name", RECURRENT)
def test_states_do_not_grow_with_the_context(name: str) -> None:
    short, long = make(name, prompt=16, generate=2), make(name, prompt=4096, generate=512)
    assert short.memory_terms()["kv_cache/state"] == long.memory_terms()["kv_cache/state"]

    def updates(run: Any) -> set[float]:
        return {row.each_s for row in run.table() if row.name.startswith("decode/") and row.name.endswith("update")}

    assert updates(short) == updates(long)


def test_a_step_of_mamba_alone_takes_as_long_at_every_context() -> None:
    times = {make("mamba2-codestral-7b", prompt=prompt).value("time_per_token") for prompt in (1, 100, 100_000)}
    assert len(times) == 1


@pytest.mark.parametrize("name", ["jamba-1.5-mini", "mamba2-codestral-7b", "nemotron-h-56b", "qwen3-next-80b-a3b"])
@pytest.mark.parametrize("tp", [2, 4])
def test_tensor_parallelism_shares_states_and_products(name: str, tp: int) -> None:
    one, shared = make(name), make(name, tp=tp)
    assert tp * shared.memory_terms()["kv_cache/state"] == one.memory_terms()["kv_cache/state"]
    kept = ("choice", "router", "gate")  # whole on every device

    def work(run: Any) -> dict[str, float]:
        outputs = run.compiled.program.outputs
        rows = [row for row in run.table() if "/layer/" in row.name and f"term/{row.name}/m" in outputs]
        return {row.name: row.flops for row in rows if row.name.split("/")[-1] not in kept}

    whole, part = work(one), work(shared)
    heads = one.model.sizes["num_key_value_heads"]
    for path, flops in whole.items():
        if tp <= heads or "attention/qkv" not in path:
            assert tp * part[path] == pytest.approx(flops, rel=1e-9), path


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_has_one_pass(name: str) -> None:
    run = make(name, stack="tensorrt-llm")
    assert run.value("time") == run.value("prefill")
    assert run.value("decode") == 0
    assert sum(run.shares().values()) == pytest.approx(1, rel=1e-12)
    assert run.fitting_sequences() > 100
    with pytest.raises(sf.InputError, match="time_per_token"):
        run.value("time_per_token")
    with pytest.raises(sf.InputError, match=r"generate: found 2, expected 1: .* is an encoder"):
        run.bind(generate=2)


def test_an_encoder_computes_twice_the_scores_of_a_causal_decoder() -> None:
    run = make("bert-base", batch=1, prompt=100)
    [core] = [row for row in run.table() if row.name == "prefill/layer/attention/flash"]
    assert core.flops == 12 * 4 * 100 * 100 * 768


# Caches that are read in parts ------------------------------------------------------------------------------------


def test_a_step_of_chunked_attention_reads_its_chunk() -> None:
    sizes = {"prompt": 8192 - 2, "generate": 5, "batch": 1}
    run = make("llama-4-scout", "tpu-v5e", **sizes)
    hand, heads, kv_heads, width = ByHand(run), 40, 8, 128
    [core] = [row for row in run.table() if row.name == "decode/layer/local_attention_experts/attention/flash"]
    moved = [2 * heads * width * 2 + keys * 2 * kv_heads * width * 2 for keys in (8191, 8192, 1, 2)]
    flops = [keys * 4 * heads * width for keys in (8191, 8192, 1, 2)]
    expected = sum(map(hand.core, flops, moved))
    assert core.each_s == pytest.approx(expected, rel=1e-12)


def test_contexts_are_split_only_where_that_pays() -> None:
    def core(stack: str, batch: int) -> float:
        run = make("llama-2-7b", batch=batch, prompt=2000, generate=2, stack=stack, gap_latency=0)
        return next(row.each_s for row in run.table() if row.name == "decode/layer/attention/flash")

    assert core("tensorrt-llm-0.13", 1) < core("fastertransformer", 1) / 2
    assert core("tensorrt-llm-0.13", 8) == core("fastertransformer", 8)  # 8 x 32 heads fill 132 units


def test_latents_are_appended_by_a_kernel_of_their_own_where_keys_are() -> None:
    paths = {stack: {row.name for row in make("deepseek-v2-lite", stack=stack).table()} for stack in ("vllm", "none")}
    assert "decode/layer/latent_attention_experts/attention/append" in paths["vllm"] - paths["none"]


# Experts, formats -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [1, 2, 3, 8, 40])
def test_the_experts_of_a_step_are_those_that_chance_chooses(tokens: int) -> None:
    run = make("mixtral-8x7b", batch=tokens)
    value = run.compiled.program.outputs["term/decode/layer/experts/up/g"]
    groups = float(run._values[value])
    assert groups == pytest.approx(8 * (1 - 0.75**tokens), rel=1e-12)
    drawn = np.random.default_rng(1).random((4000, tokens, 8)).argsort(axis=2)[:, :, :2]
    distinct = np.mean([len(np.unique(each)) for each in drawn.reshape(4000, -1)])
    assert groups == pytest.approx(distinct, rel=0.02)
    rows = float(run._values[run.compiled.program.outputs["term/decode/layer/experts/up/m"]])
    assert rows * groups == pytest.approx(2 * tokens, rel=1e-12)


def test_the_slope_in_the_number_of_tokens_passes_through_the_power() -> None:
    from symperf.codegen.adjoint import gradient
    from symperf.codegen.interpret import adjoints, floats
    from symperf.codegen.interpret import run as interpret
    from symperf.codegen.lower import lower
    from symperf.formulas.kernels.moe import expected_experts

    tokens, chosen, experts = (SYMBOLS[n].symbol for n in ("tokens", "num_experts_per_token", "num_experts"))
    program = lower([], {"y": expected_experts(tokens, chosen, experts)})
    at = {"tokens": 5.0, "num_experts_per_token": 2.0, "num_experts": 8.0}
    values = interpret(program, at, floats())
    slope = adjoints(program, values, program.outputs["y"], floats())[program.inputs["tokens"]]
    assert slope == pytest.approx(-8 * 0.75**5 * math.log(0.75), rel=1e-12)
    compiled = gradient(program, "y", ["tokens"])
    found = interpret(compiled, at, floats())[compiled.outputs["d/tokens"]]
    assert found == pytest.approx(slope, rel=1e-12)


def test_products_in_16_bits_run_at_their_own_rate_beside_fp8() -> None:
    half, eight = make("llama-2-7b", batch=512, prompt=1), make("llama-2-7b", batch=512, prompt=1, precision="fp8")

    def each(run: Any, name: str) -> float:
        return next(row.each_s for row in run.table() if row.name == name)

    assert each(eight, "decode/head/logits") == pytest.approx(each(half, "decode/head/logits"), rel=1e-12)
    assert each(eight, "decode/layer/mlp/down") < each(half, "decode/layer/mlp/down")
    assert eight.bound["half_efficiency"] == half.bound["matrix_efficiency"]
    slower = eight.bind(half_efficiency=0.1)
    assert each(slower, "decode/head/logits") > each(eight, "decode/head/logits")


# Serving, refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some(["jamba-1.5-mini", "kimi-linear-48b-a3b", "qwen3-next-80b-a3b"]))
def test_recurrent_models_are_served(name: str) -> None:
    plan, system = sf.Plan(tp=2), sf.System.load("h200-sxm")
    serving = sf.serving(load(name), system, plan, prompt=512, generate=64, ttft=2.0, tpot=0.2)
    assert serving.largest is not None
    assert serving.largest.load is not None
    one = sf.inference(load(name), system, plan, batch=1, prompt=512, generate=64)
    kept = sum(value for path, value in one.memory_terms().items() if path.startswith("kv_cache"))
    assert serving.cache_bytes("sequence") == pytest.approx(kept, rel=1e-12)
    assert serving.times(0).decode(1.0) == pytest.approx(one.value("time_per_token"), rel=1e-9)
    long = sf.serving(load(name), system, plan, prompt=512, generate=64, load=0.1, chunk=128)
    assert long.evaluators[0]("prefill", chunk_tokens=128.0) > 0


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("vit-base-p16-224", {"prompt": 196}, "prompt: found 196, expected 197"),
        ("bert-base", {"prompt": 513}, "bert-base has 512 learned positions"),
        ("bart-large-cnn", {"generate": 1026}, "1 \\+ generate: 1 \\+ 1026 = 1027 tokens"),
        ("t5-base", {"pp": 2}, "pp: found 2, expected 1: a pipeline of an encoder and a decoder"),
        ("mamba2-codestral-7b", {"tp": 3}, "tp: 3 does not divide the 128 heads of the Mamba-2 layers"),
        ("jamba-1.5-mini", {"cp": 2}, "cp: found 2, expected 1: parts of a sequence .* has layers of Mamba-1"),
    ],
)
def test_what_cannot_run_says_why(name: str, how: dict[str, Any], message: str) -> None:
    plan = sf.Plan(**{key: how[key] for key in how if key in sf.Plan.names()})
    work = {"batch": 2, "prompt": 64, "generate": 1} | {k: v for k, v in how.items() if k not in sf.Plan.names()}
    with pytest.raises(sf.InputError, match=message):
        sf.inference(load(name), sf.System.load("h100-sxm"), plan, **work)


@pytest.mark.parametrize("name", ["t5-base", "bert-base"])
def test_encoders_are_not_served(name: str) -> None:
    with pytest.raises(sf.InputError, match=f"{name}: has an encoder, expected a decoder"):
        sf.serving(load(name), sf.System.load("h100-sxm"), prompt=64, generate=8)


def test_groups_of_b_and_c_are_whole_where_there_are_fewer_than_devices() -> None:
    """Eight devices hold eight copies of the one group's columns, taps and their biases, and of the layers' norms."""
    one, eight = (make("mamba2-2.7b", tp=tp) for tp in (1, 8))
    sizes = one.model.sizes
    h, copied = sizes["hidden_size"], 2 * sizes["ssm_groups"] * sizes["ssm_state_size"]
    assert sizes["ssm_groups"] == 1
    more = 8 * eight.memory_terms()["weights/layers"] - one.memory_terms()["weights/layers"]
    assert more == 7 * 2 * sizes["num_layers"] * (copied * (h + sizes["conv_kernel"] + 1) + h)

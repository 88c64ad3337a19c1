"""Adapters of requests: their bytes, their two products beside each linear layer, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.effort import some

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.infer.adapter_slots import Adapters, adapters_of, targets_of
from symperf.runs.inference_run import InferenceRun

WORK: dict[str, Any] = {"batch": 8, "prompt": 512, "generate": 64}


def run(adapters: Adapters | None, model: str = "llama-3.1-8b", tp: int = 1, **work: int) -> InferenceRun:
    system = sf.System.load("h100-sxm")
    return InferenceRun(
        sf.Model.load(model), system, sf.Plan(tp=tp), **WORK | work, adapters=adapters, stack="vllm-0.24"
    )


def asked(rank: int, number: int = 1, targets: str | None = None, model: str = "llama-3.1-8b") -> Adapters | None:
    return adapters_of(sf.Model.load(model), rank, number, targets)


def slots(found: InferenceRun, plain: InferenceRun) -> float:
    return found.memory_terms()["weights/layers"] - plain.memory_terms()["weights/layers"]


def test_an_adapter_of_all_layers_has_the_parameters_that_fine_tuning_prints() -> None:
    """Rank 16 on the seven linear layers of Llama-3.1-8B: 41,943,040 parameters; on q and v alone 6,815,744."""
    plain = run(None)
    for targets, parameters in ((None, 41_943_040), ("q_proj,v_proj", 6_815_744)):
        for number in (1, 8):
            found = run(asked(16, number, targets))
            assert slots(found, plain) / 2 == pytest.approx(number * parameters)


def test_a_group_splits_one_matrix_of_each_pair() -> None:
    """vLLM: the matrix into the rank of q, k, v, gate and up is whole, and so is the one out of it of o and down."""
    found, plain = run(asked(16), tp=2), run(None, tp=2)
    q, kv, inner, h = 4096, 1024, 14336, 4096
    whole = 3 * h + 2 * h + h + h
    split = (q + 2 * kv + 2 * inner + q + inner) / 2
    assert slots(found, plain) == pytest.approx(32 * 16 * 2 * (whole + split))


def test_two_kernels_for_each_product_move_their_bytes() -> None:
    found = run(asked(16, 4))
    shapes = {row.name: row for row in found.table() if "lora" in row.name}
    assert len(shapes) == 2 * 2 * 4  # gate and up are one product here
    distinct = 4 * (1 - (1 - 1 / 4) ** 8)
    shrink, expand = (shapes[f"decode/layer/attention/qkv_lora_{name}"] for name in ("shrink", "expand"))
    assert shrink.bytes / shrink.count == pytest.approx(2 * 4096 * (8 + distinct * 48) + 4 * 8 * 48)
    assert expand.bytes / expand.count == pytest.approx(2 * 6144 * (distinct * 16 + 2 * 8) + 4 * 8 * 48)


@pytest.mark.parametrize("model", some(["llama-3.1-8b", "deepseek-v2-lite"]))
def test_more_rank_or_adapters_are_never_faster_or_smaller(model: str) -> None:
    plain = run(None, model)
    last = plain
    for rank, number in ((1, 1), (8, 1), (8, 8), (64, 8), (64, 64)):
        found = run(asked(rank, number, model=model), model)
        for what in ("prefill", "time_per_token", "memory"):
            assert found.value(what) > last.value(what)
        last = found


def test_rank_0_is_no_adapter() -> None:
    assert asked(0) is None
    assert run(None).structure.adapted == ()
    assert "lora" not in " ".join(run(None).compiled.program.inputs)


def test_serving_with_adapters_holds_fewer_sequences() -> None:
    given: dict[str, Any] = {"prompt": 512, "generate": 64}
    plain = sf.serving("llama-3.1-8b", "h100-sxm", **given)
    found = sf.serving("llama-3.1-8b", "h100-sxm", adapters=asked(64, 64), **given)
    assert found.limit(0) < plain.limit(0)
    assert found.point(1.0).tpot_s > plain.point(1.0).tpot_s
    assert found.steady.capacity.load < plain.steady.capacity.load


def test_targets_are_those_of_the_model() -> None:
    for model, names in (
        ("llama-3.1-8b", "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj"),
        ("deepseek-v3", "o_proj q_a_proj q_b_proj kv_a_proj_with_mqa gate_proj up_proj down_proj"),
        ("qwen3-30b-a3b", "q_proj k_proj v_proj o_proj"),
        ("nemotron-4-15b", "q_proj k_proj v_proj o_proj up_proj down_proj"),
        ("mamba-1.4b", ""),
    ):
        assert targets_of(sf.Model.load(model).architecture) == tuple(names.split())


def test_the_verbs_tell_what_adapters_cost(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "infer",
        "llama-3.1-8b",
        "-s",
        "h100-sxm",
        "--batch",
        "8",
        "--prompt",
        "512",
        "--generate",
        "64",
        "--lora-rank",
        "16",
        "--lora-adapters",
        "8",
    ]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["adapters"]
    assert found["bytes"] / 16 == pytest.approx(41_943_040)
    assert 1 < found["prefill_slowdown"] < 1.3
    assert 1 < found["decode_slowdown"] < 1.5
    assert main(words) == 0
    assert "8 of rank 16 on q_proj, k_proj" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["infer", "serve"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("llama-3.1-8b --lora-rank 5000", "lora_rank: found 5000, expected 1 to the 4096 features of llama-3.1-8b"),
        ("llama-3.1-8b --lora-rank -1", "lora_rank: found -1, expected a whole number from 1"),
        ("llama-3.1-8b --lora-rank 8 --lora-adapters 0", "lora_adapters: found 0, expected a whole number from 1"),
        ("llama-3.1-8b --lora-rank 8 --lora-targets q_prj", "did you mean q_proj"),
        ("llama-3.1-8b --lora-rank 8 --lora-targets q_a_proj", "lora_targets: found 'q_a_proj', expected q_proj"),
        ("llama-3.1-8b --lora-targets q_proj", "lora_targets: means something with adapters only"),
        ("mamba-1.4b --lora-rank 8", "mamba-1.4b has no linear layer whose adapters are modelled"),
    ],
)
def test_what_is_no_adapter_is_refused(capsys: pytest.CaptureFixture[str], verb: str, words: str, told: str) -> None:
    batch = ["--batch", "1"] if verb == "infer" else []
    assert main([verb, *words.split(), "-s", "h100-sxm", "--prompt", "64", "--generate", "8", *batch]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("stack", ["vllm", "vllm-0.24"])
def test_adapters_of_shared_experts_lie_in_memory_whatever_runs_beside_them(stack: str) -> None:
    """DeepSeek-V2-Lite: a shared expert of 2 x 1408 in 26 layers, an MLP of 10944 in one, attention in all."""
    model = sf.Model.load("deepseek-v2-lite")
    slots_ = adapters_of(model, 16, 4)
    work: dict[str, Any] = {"batch": 4, "prompt": 64, "generate": 8, "stack": stack}
    system = sf.System.load("h100-sxm")
    with_, none = (InferenceRun(model, system, sf.Plan(), adapters=each, **work) for each in (slots_, None))
    gated = 26 * 3 * (2048 + 2816) + 3 * (2048 + 10944)
    attention = 27 * ((2048 + 16 * 192) + (2048 + 512 + 64) + (16 * 128 + 2048))
    assert slots(with_, none) == pytest.approx(2 * 16 * 4 * (gated + attention))


@pytest.mark.parametrize("plan", [sf.Plan(), sf.Plan(tp=2), sf.Plan(dp=2, ep=2)], ids=["one", "split", "dealt"])
def test_adapters_of_routed_experts_are_pairs_of_both(plan: sf.Plan) -> None:
    """Qwen3-30B-A3B: 128 experts of 768 in 48 layers; split by columns and rows, or dealt."""
    model = sf.Model.load("qwen3-30b-a3b")
    asked_ = adapters_of(model, 8, 4, "experts")
    work: dict[str, Any] = {"batch": 8, "prompt": 64, "generate": 8, "stack": "vllm-0.24"}
    system = sf.System.load("h200-sxm")
    with_, none = (InferenceRun(model, system, plan, adapters=each, **work) for each in (asked_, None))
    inner = 768 / plan.tp
    each = (2 * 2048 + 2 * inner) + (inner + 2048)
    assert slots(with_, none) == pytest.approx(2 * 8 * 4 * each * 48 * 128 / plan.ep)
    names = {op.name for op in with_.operations()} - {op.name for op in none.operations()}
    assert names == {f"layer/experts/{side}_lora_{way}" for side in ("up", "down") for way in ("shrink", "expand")}
    assert with_.value("prefill") > none.value("prefill")
    assert with_.value("time_per_token") > none.value("time_per_token")


def test_more_pairs_of_experts_and_adapters_are_read_by_more_sequences() -> None:
    """One sequence meets its 8 experts with one adapter; many meet most pairs, and no more than all."""
    model = sf.Model.load("qwen3-30b-a3b")

    def read(batch: int, number: int, devices: int = 1) -> float:
        work: dict[str, Any] = {"batch": batch, "prompt": 64, "generate": 2, "stack": "vllm-0.24"}
        system, asked_ = sf.System.load("h200-sxm"), adapters_of(model, 8, number, "experts")
        found = InferenceRun(model, system, sf.Plan(dp=devices, ep=devices), adapters=asked_, **work)
        (row,) = [row for row in found.table() if row.name == "decode/layer/experts/up_lora_shrink"]
        return row.bytes / row.count

    pair = 2048 * 2 * 8 * 2
    assert read(1, 4) == pytest.approx(8 * pair, rel=0.05)
    assert read(1, 4) < read(64, 1) < read(64, 4)
    assert read(4096, 4) < 128 * 4 * pair + 4096 * 8 * (2048 * 2 + 16 * 4) * 1.01
    # Replicas that share the experts bring their adapters: together they read what one device reads.
    assert 8 * read(32, 4, devices=8) == pytest.approx(read(32, 4), rel=1e-9)


def test_experts_of_a_dense_model_are_no_target() -> None:
    with pytest.raises(InputError, match="lora_targets: found 'experts', expected q_proj"):
        adapters_of(sf.Model.load("llama-3.1-8b"), 8, 1, "experts")

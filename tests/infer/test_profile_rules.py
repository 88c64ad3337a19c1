"""What profiles of today's software say beside their kernels: date, chunks, exchanges, fusions, stages, the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.infer.scheduling import local_batch
from symperf.infer.stack import DEFAULT, Stack, names
from symperf.serve.request import CHUNK, ServingRequest
from symperf.serve.serving import Serving

if TYPE_CHECKING:
    from pathlib import Path

DATED = [name for name in names() if name not in ("none", "lmdeploy")]
TODAY = ("vllm-0.24", "sglang-0.5", "tensorrt-llm-1.3")


def operations(run: Any, phase: str = "decode") -> dict[str, float]:
    """Seconds of the operations of a phase, by name."""
    return {op.name: op.time_s for op in run.operations() if op.phase == phase}


def infer(model: str, system: str, stack: str, plan: dict[str, Any], **how: Any) -> Any:
    work = {"batch": 4, "prompt": 256, "generate": 9} | how
    return sf.inference(sf.Model.load(model), sf.System.load(system), sf.Plan(**plan), stack=stack, **work)


# --- what a profile says


@pytest.mark.parametrize("name", DATED)
def test_profiles_say_of_when_they_are(name: str) -> None:
    year, _, month = Stack.load(name).date.partition("-")
    assert 2023 <= int(year) <= 2026
    assert 1 <= int(month) <= 12
    assert f"({year}-{month})" in Stack.load(name).told


def test_the_default_is_of_today() -> None:
    assert Stack.load(DEFAULT).date == max(Stack.load(name).date for name in DATED)


@pytest.mark.parametrize(
    ("stack", "system", "tokens"),
    [
        ("vllm-0.24", "h100-sxm", 8192),
        ("vllm-0.24", "a100-80gb-sxm", 2048),
        ("vllm-0.24", "rtx-4090", 2048),
        ("sglang-0.5", "h100-sxm", 8192),
        ("sglang-0.5", "b200-sxm", 16384),
        ("sglang-0.5", "rtx-4090", 2048),
        ("tensorrt-llm-1.3", "h100-sxm", 8192),
        ("vllm", "h100-sxm", CHUNK),
    ],
)
def test_chunks_are_those_of_the_software_on_the_device(stack: str, system: str, tokens: int) -> None:
    model, found = sf.Model.load("llama-3.2-1b"), sf.System.load(system)
    assert Serving(model, found, sf.Plan(), ServingRequest(512, 64), stack=stack).asked.chunk == tokens
    assert Serving(model, found, sf.Plan(), ServingRequest(512, 64, chunk=333), stack=stack).asked.chunk == 333


BAD = {
    'date = "July"': "date: found",
    "[chunk]\ntokens = []": "chunk.tokens: found",
    "[chunk]\ntokens = [1, 2]\nfrom_gb = [0]\nsource = 'x'": "chunk.from_gb: found",
    "[chunk]\ntokens = [1]\nsource = 'x'\napart = 1": "chunk.apart: found",
    "[chunk]\ntoken = [1]": "did you mean tokens",
    "[chunk]\ntokens = [1]\nof = {a = 0}": "chunk.of: found",
    "[exchange]\namong = 'rank'": "exchange.among: found",
    "[exchange]\namongst = 'ranks'": "did you mean among",
    "[pipeline]\nstage_tokens = 0": "pipeline.stage_tokens: found",
    "[fusion]\nresidual_norm = true\nrotary_cache = true\ngate_up = true\nsplit_context = true\nfused_prefill = true"
    "\ncasts = ['norms']\ncast_formats = ['fp8']": "did you mean norm",
    "[fusion]\nresidual_norm = true\nrotary_cache = true\ngate_up = true\nsplit_context = true\nfused_prefill = true"
    "\ncasts = ['norm']": "expected both or none",
}


@pytest.mark.parametrize("text", BAD)
def test_a_fault_of_a_profile_is_one_line(text: str, tmp_path: Path) -> None:
    (path := tmp_path / "mine.toml").write_text(f'base = "vllm"\n{text}\n', encoding="utf-8")
    with pytest.raises(InputError, match=BAD[text]) as told:
        Stack.load(str(path))
    assert "\n" not in str(told.value)


# --- experts of a group that holds all tokens


@pytest.mark.parametrize("stack", TODAY)
def test_nothing_is_sent_within_a_group_that_has_all_tokens(stack: str) -> None:
    """With one replica the results of all ranks are summed, as without experts dealt out."""
    found = operations(infer("minimax-m2.5", "h100-sxm", stack, {"tp": 4, "ep": 4}))
    assert sum(time for name, time in found.items() if name.endswith(("dispatch", "combine"))) == 0
    whole = operations(infer("minimax-m2.5", "h100-sxm", stack, {"tp": 4}))
    assert found["layer/experts/reduce"] == whole["layer/experts/reduce"]


def test_replicas_send_tokens_to_one_another() -> None:
    found = operations(infer("minimax-m2.5", "h100-sxm", "vllm-0.24", {"dp": 4, "ep": 4}))
    assert {"layer/experts/dispatch", "layer/experts/combine"} <= set(found)


# --- kernels that are joined


def test_kernels_that_write_narrow_operands_save_their_casts(tmp_path: Path) -> None:
    (path := tmp_path / "apart.toml").write_text(
        'base = "tensorrt-llm-1.3"\n[fusion]\nresidual_norm = true\nrotary_cache = true\ngate_up = true\n'
        "split_context = true\nfused_prefill = true\n",
        encoding="utf-8",
    )
    joined, apart = (
        operations(infer("llama-3.1-8b", "h100-sxm", stack, {"precision": "fp8"}))
        for stack in ("tensorrt-llm-1.3", str(path))
    )
    for name in ("attention/qkv", "attention/output", "mlp/gate_up", "mlp/down"):
        assert joined[f"layer/{name}"] < apart[f"layer/{name}"]
    assert joined["layer/attention/flash"] == apart["layer/attention/flash"]


def test_a_sum_with_the_norm_behind_it_has_one_start() -> None:
    alone = operations(infer("llama-3.1-8b", "h100-sxm", "vllm-0.24", {}))
    summed = operations(infer("llama-3.1-8b", "h100-sxm", "vllm-0.24", {"tp": 2}))
    assert summed["layer/mlp/norm"] < alone["layer/mlp/norm"] / 4
    assert operations(infer("llama-3.1-8b", "h100-sxm", "vllm-0.24", {"tp": 2}), "prefill")["layer/mlp/norm"] > 0


def test_latents_and_queries_come_out_of_one_product() -> None:
    found = operations(infer("deepseek-v3", "h200-sxm", "sglang-0.5", {"tp": 8}))
    assert not any(name.endswith("attention/latent_down") for name in found)
    assert any(name.endswith("attention/query_down") for name in found)


# --- starts and launches


@pytest.mark.parametrize("part", [0.2, 0.9])
def test_hidden_starts_make_decoding_faster_and_nothing_else(part: float) -> None:
    plain, hidden = (
        infer("llama-3.1-8b", "h100-sxm", "vllm-0.24", {}, **values) for values in ({}, {"start_removal": part})
    )
    assert hidden.value("time_per_token") < plain.value("time_per_token")
    assert hidden.value("prefill") == plain.value("prefill")


def test_a_pass_of_prompts_takes_at_least_its_launches() -> None:
    """A host so slow that its launches are all that counts: time in proportion to its latency."""
    slow, slower, fast = (
        infer("llama-3.2-1b", "h100-sxm", "vllm-0.24", {}, host_latency=seconds).value("prefill")
        for seconds in (1e-3, 2e-3, 1e-9)
    )
    assert slower == pytest.approx(2 * slow)
    assert fast == infer("llama-3.2-1b", "h100-sxm", "vllm-0.24", {}).value("prefill")


# --- stages, requests, and prompts that go first


@pytest.mark.parametrize(("batch", "length", "stages", "wanted"), [(8, 64, 4, 2), (6, 64, 4, 6), (64, 512, 2, 2)])
def test_local_batches_are_those_of_fastertransformer(batch: int, length: int, stages: int, wanted: int) -> None:
    """`getLocalBatchSize` of src/fastertransformer/utils/nccl_utils.cc, by hand."""
    assert local_batch(batch, length, stages, 1024) == wanted


def test_fastertransformer_fills_its_pipeline() -> None:
    run = infer("llama-2-7b", "a100-80gb-sxm", "fastertransformer", {"pp": 2}, batch=8, prompt=64)
    assert run.plan.micro_batch == 4
    assert infer("llama-2-7b", "a100-80gb-sxm", "vllm", {"pp": 2}, batch=8, prompt=64).plan.micro_batch == 8


def serving(stack: str, **values: float) -> Serving:
    model, system = sf.Model.load("llama-3.2-1b"), sf.System.load("h100-sxm")
    return Serving(model, system, sf.Plan(), ServingRequest(512, 65), stack=stack, values=dict(values))


def test_the_way_of_a_request_is_before_its_first_token_only() -> None:
    off = dict.fromkeys(("request_latency", "tokenizer_latency", "crowd_latency"), 0.0)
    far, near = serving("vllm-0.24", **off | {"request_latency": 0.5}), serving("vllm-0.24", **off)
    one, other = (each.steady.at_load(2.0) for each in (far, near))  # type: ignore[union-attr]
    assert one.first_token == pytest.approx(other.first_token + 0.5)  # type: ignore[union-attr]
    assert one.iteration == other.iteration  # type: ignore[union-attr]


def test_prompts_that_go_first_keep_requests_in_waves() -> None:
    """Requests that are all alike begin together again: the mean of their first tokens is half a wave."""
    from symperf.serve.closed import ClosedLoop

    off = dict.fromkeys(("request_latency", "tokenizer_latency", "crowd_latency"), 0.0)
    served = serving("sglang-0.5", **off)
    assert served.steady is not None
    engine = served.steady.engine
    assert engine.apart
    state = ClosedLoop(served.steady, 160).state()
    packs, whole = 160 / engine.chunk_prompts, engine.times.prefill(engine.whole_chunk)
    assert state.first_token == pytest.approx(whole * (packs + 1) / 2)
    assert state.load * (state.first_token + engine.steps * state.iteration) == pytest.approx(160)

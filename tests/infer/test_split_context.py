"""Parts of prompts and of caches on several devices: bytes and work by hand, laws, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from support.effort import some

import symperf as sf
from symperf.common.errors import InputError
from symperf.runs.inference_run import InferenceRun

DENSE, LATENT = ("qwen3-32b", "h100-sxm"), ("deepseek-v2-lite", "h200-sxm")
WORK: dict[str, Any] = {"batch": 4, "prompt": 4096, "generate": 33, "stack": "vllm-0.24"}


def run_of(case: tuple[str, str], **how: Any) -> Any:
    plan = sf.Plan(**{name: how.pop(name) for name in list(how) if name in sf.Plan.names()})
    return sf.inference(*case, plan, **(WORK | how))


def term(run: Any, phase: str, name: str, what: str) -> float:
    """One figure of the operations of a phase whose paths end in a name, over all kinds of layers' first one."""
    paths = [row.name for row in run.table() if row.name.startswith(phase) and row.name.endswith(f"/{name}")]
    assert paths, name
    return float(run.value(f"term/{paths[0]}/{what}"))


def names(run: Any) -> set[str]:
    return {row.name.rpartition("/")[2] for row in run.table()}


def test_a_cache_is_dealt_to_the_devices_that_would_have_copies() -> None:
    """Qwen3-32B has 8 key-value heads: 16 devices keep two copies of each, or share one by turns of 16 tokens."""
    run, shared = run_of(DENSE, tp=16), run_of(DENSE, tp=16, dcp=2)
    layers, token = 64, 2 * 128 * 2
    assert run.memory_terms()["kv_cache"] == 4 * layers * token * 4144
    assert shared.memory_terms()["kv_cache"] == 4 * layers * token * 2080
    parts = run_of(DENSE, tp=8, cp=4)
    assert parts.memory_terms()["kv_cache"] == 4 * layers * token * 1040
    assert run_of(DENSE, tp=16, dcp=2, cp=2).memory_terms()["kv_cache"] == 4 * layers * token * 1040


def test_latents_of_all_heads_are_shared_by_as_many_devices_as_there_are() -> None:
    """Memory of a replica holds nearly as many times the sequences."""
    asked = {"prompt": 8192, "generate": 64, "stack": "vllm-0.24", "load": 0.1}
    one, eight = (sf.serving(*LATENT, sf.Plan(tp=8, dcp=dcp), **asked) for dcp in (1, 8))
    assert eight.cache_bytes("sequence") == pytest.approx(one.cache_bytes("sequence") / 8, rel=0.01)
    assert eight.held(0) > 5 * one.held(0)


def test_decoding_shares_queries_and_results() -> None:
    """By hand: queries of 4 sequences and 16 heads of two devices there, statistics, and as many results back."""
    run, plain = run_of(DENSE, tp=16, dcp=2), run_of(DENSE, tp=16)
    heads, sequences = 64 / 16 * 2, 4
    assert term(run, "decode", "gather_queries", "message") == sequences * heads * 128 * 2
    assert term(run, "decode", "scatter_results", "message") == sequences * heads * 128 * 2
    assert term(run, "decode", "gather_statistics", "message") == 2 * sequences * heads * 4
    # Twice the heads see half of the keys, which are read by one device instead of two.
    assert term(run, "decode", "flash", "flops") == pytest.approx(term(plain, "decode", "flash", "flops"))
    own = 2 * sequences * heads * 128 * 2
    assert term(run, "decode", "flash", "bytes") - own == pytest.approx(
        (term(plain, "decode", "flash", "bytes") - own / 2) / 2
    )
    latents = run_of(LATENT, tp=8, dcp=4)
    assert term(latents, "decode", "gather_queries", "message") == 4 * (16 / 8 * 4) * (512 + 64) * 2
    assert term(latents, "decode", "scatter_results", "message") == 4 * (16 / 8 * 4) * 512 * 2


@pytest.mark.parametrize(("case", "kind"), some([(DENSE, "ring"), (LATENT, "all-gather"), (LATENT, "ring")], 2 / 3))
def test_parts_of_a_prompt_do_the_work_of_the_whole(case: tuple[str, str], kind: str) -> None:
    """Over all devices as many FLOPs of attention and of every product but those that expand latents."""
    whole, parts = run_of(case, tp=2), run_of(case, tp=2, cp=4, cp_kind=kind)
    repeated = 4 if kind == "ring" else 1  # a step of the ring is a quarter
    assert term(parts, "prefill", "flash", "flops") * 4 * repeated == pytest.approx(
        term(whole, "prefill", "flash", "flops")
    )
    assert term(parts, "prefill", "output", "flops") * 4 == pytest.approx(term(whole, "prefill", "output", "flops"))
    assert parts.value("devices") == 8
    assert whole.value("prefill") / 5 < parts.value("prefill") < whole.value("prefill")


def test_keys_of_all_parts_are_gathered_or_go_round() -> None:
    """Keys and values of 4 heads of 128 features, of all tokens; a quarter is passed on in each step of a ring."""
    keys = 4 * 4096 * 2 * 4 * 128 * 2
    assert term(run_of(DENSE, tp=2, cp=4, cp_kind="all-gather"), "prefill", "gather", "message") == keys
    assert term(run_of(DENSE, tp=2, cp=4), "prefill", "ring", "message") == keys / 4
    latents = 4 * 4096 * (512 + 64) * 2
    assert term(run_of(LATENT, tp=2, cp=4, cp_kind="all-gather"), "prefill", "gather", "message") == latents


def test_a_ring_hides_what_a_gathering_does_not() -> None:
    """Long prompts attend longer than keys travel over slow links; on the slowest a ring is what the links take."""
    for bandwidth, most in ((20e9, 0.97), (0.2e9, 1.0)):
        asked = {"prompt": 65536, "batch": 1, "scale_up_bandwidth": bandwidth, "scale_out_bandwidth": bandwidth}
        ring, gathered = (run_of(DENSE, cp=4, cp_kind=kind, **asked) for kind in ("ring", "all-gather"))
        assert 0.5 * most < ring.value("prefill") / gathered.value("prefill") < most


def test_devices_with_parts_of_a_cache_decode_the_same_tokens() -> None:
    """Every product of a step is as it was; attention reads a part; and results are summed over all."""
    whole, parts = run_of(DENSE, tp=2), run_of(DENSE, tp=2, cp=4)
    assert term(parts, "decode", "output", "flops") == term(whole, "decode", "output", "flops")
    assert term(parts, "decode", "flash", "bytes") < 0.3 * term(whole, "decode", "flash", "bytes")
    assert {"sum_of_parts", "gather_statistics_of_parts"} <= names(parts)
    assert not {"sum_of_parts", "gather_queries", "correct"} & names(whole)


def test_serving_in_parts_has_shorter_chunks() -> None:
    asked = {"prompt": 32768, "generate": 64, "stack": "vllm-0.24", "chunk": 8192}
    one, four = (sf.serving(*DENSE, sf.Plan(tp=4, cp=cp), **asked).point(0.0) for cp in (1, 4))
    assert one.ttft_s / 4.5 < four.ttft_s < one.ttft_s / 2
    assert sf.serving(*DENSE, sf.Plan(tp=4, cp=4), load=0.1, **asked).answer.output_tokens_per_s_per_device == (
        pytest.approx(0.1 * 64 / 16)
    )


def test_experts_see_each_token_once_whatever_the_parts() -> None:
    """A step's rows over all devices are those of its tokens, though four devices decode each."""
    found = [run_of(("qwen3-30b-a3b", "h100-sxm"), tp=2, cp=cp, ep=2 * cp, stack="vllm") for cp in (1, 4)]
    rows = [term(run, "decode", "activation", "bytes") * run.plan.ep for run in found]
    assert rows[0] == pytest.approx(rows[1])
    rows = [term(run, "prefill", "activation", "bytes") * run.plan.ep for run in found]
    assert rows[0] == pytest.approx(rows[1])


def test_a_prefix_in_a_shared_cache_is_gathered() -> None:
    """Latents of 4 prompts' first 2048 tokens, from the devices that have a quarter of them each."""
    model, system = sf.Model.load(LATENT[0]), sf.System.load(LATENT[1])
    one, four = (InferenceRun(model, system, sf.Plan(tp=8, dcp=dcp), prefix=2048, **WORK) for dcp in (1, 4))
    assert term(four, "prefill", "gather_cache", "message") == 4 * 2048 * (512 + 64) * 2
    assert "gather_cache" not in names(one)


@pytest.mark.parametrize(
    ("model", "how", "message"),
    [
        ("llama-3.1-70b", {"tp": 8, "dcp": 2}, "dcp: found 2, expected at most 1: tp = 8 makes as many copies of each"),
        ("llama-3.1-70b", {"tp": 8, "dcp": 3}, "dcp: found 3, expected a divisor of tp = 8"),
        ("deepseek-v2-lite", {"tp": 4, "dcp": 8}, "dcp: found 8, expected a divisor of tp = 4"),
        ("gemma-3-12b", {"tp": 8, "cp": 2}, "cp: found 2, expected 1: .* gemma-3-12b has layers of sliding-window"),
        ("jamba-v0.1", {"tp": 2, "dcp": 2}, "dcp: found 2, expected 1: .* layers of Mamba"),
        ("deepseek-v3.2", {"tp": 8, "dcp": 8}, "dcp: found 8, expected 1: .* an indexer selects keys"),
        ("bart-large", {"cp": 2, "generate": 2}, "cp: found 2, expected 1"),
        ("llama-3.1-70b", {"tp": 8, "cp": 3}, "cp: found 3, expected a divisor of the prompt of 4096 tokens"),
        ("llama-3.1-70b", {"cp": 2, "cp_kind": "all-to-all"}, "cp_kind: all-to-all is modelled in training only"),
        ("deepseek-v2-lite", {"tp": 8, "dcp": 2, "offload": "cache"}, "offload: cache does not go with dcp = 2"),
        ("llama-2-7b", {"cp": 2, "stack": "fastertransformer"}, "cp: found 2, expected 1 under fastertransformer"),
    ],
)
def test_parts_that_are_not_modelled_are_refused(model: str, how: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        run_of((model, "h200-sxm"), **({"prompt": 4096 if "bart" not in model else 512} | how))
    assert "\n" not in str(raised.value)


def test_training_says_that_it_ignores_what_only_inference_has() -> None:
    plan = sf.Plan(tp=2, dcp=2, redundant_experts=2, expert_exchange="gather", sequence_parallel=True)
    run = sf.training("mixtral-8x7b", "h100-sxm", plan, batch=8, sequence=512)
    assert "dcp, redundant_experts, expert_exchange: means nothing in training and is ignored" in run.warnings

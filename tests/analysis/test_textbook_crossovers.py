"""The crossovers of the textbooks come out through the public door: as numbers, and as closed forms by hand."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
import sympy

import symperf as sf
from symperf.formulas.kernels.attention import attention_mlp_crossover

CORE = "flops/layer/attention/core"
SCORES = f"{CORE}/scores + {CORE}/context"
MLP = "flops/layer/mlp/up + flops/layer/mlp/down"
PROJECTIONS = "flops/layer/attention/qkv + flops/layer/attention/output"


@cache
def product(**values: Any) -> Any:
    """An inference on a device that is described by rates alone: no tiles and no L2."""
    work = {"batch": 1, "prompt": 8, "generate": 2} | values
    return sf.inference("llama-2-7b", "tpu-v5e", **work)


def bound(run: Any, *names: str) -> list[float]:
    return [run.bound[name][0] for name in names]


def at(form: str, run: Any) -> float:
    """A closed form of an answer's plain values, at the values of its run."""
    expr = sympy.sympify(form)
    return float(expr.evalf(subs={each: run.bound[each.name][0] for each in expr.free_symbols}))


def compute_bound_rows(run: Any, *, all_traffic: bool = True) -> float:
    """Rows m at which 2 m h f / F' = (w h f + m w_x (f + h)) / beta', or with the weights as all the traffic."""
    rate, part, bandwidth, share = bound(
        run, "matrix_rate", "matrix_efficiency", "memory_bandwidth", "memory_efficiency"
    )
    width, h, f = bound(run, "weight_bytes", "hidden_size", "intermediate_size")
    per_row = 2 * h * f / (rate * part) - all_traffic * width * (h + f) / (bandwidth * share)
    return width * h * f / (bandwidth * share) / per_row


def the_one(found: Any) -> dict[str, Any]:
    (only,) = found.to_dict()["crossovers"]
    return dict(only)


def test_tokens_at_which_a_product_becomes_compute_bound() -> None:
    run = product()
    only = the_one(run.regimes("prompt", 1, 4096, of="prefill/layer/mlp/down"))
    expected = compute_bound_rows(run)
    assert (only["from"], only["to"]) == ("memory", "compute")
    assert only["at"] == math.ceil(expected)
    assert at(only["closed_form"], run) == pytest.approx(expected, rel=1e-12)
    assert expected > compute_bound_rows(run, all_traffic=False)


def test_batch_at_which_decoding_becomes_compute_bound() -> None:
    """One answer: the same rows, a token of each sequence."""
    run = product()
    only = the_one(run.regimes("batch", 1, 1024, of="decode/layer/mlp/down"))
    assert only["at"] == math.ceil(compute_bound_rows(run))
    assert at(only["closed_form"], run) == pytest.approx(compute_bound_rows(run), rel=1e-12)


def test_decoding_on_tiles_is_one_answer_too() -> None:
    """On a GPU the waves flicker; below the crossover memory binds, above it something on the chip."""
    run = sf.inference("llama-2-7b", "h100-sxm", batch=1, prompt=128, generate=2)
    told = run.regimes("batch", 1, 1024, of="decode/layer/mlp").to_dict()
    changes = [each for each in told["crossovers"] if "memory" in (each["from"], each["to"])]
    assert len(changes) == 1
    assert 100 < changes[0]["at"] < 400


def test_bandwidth_at_which_memory_stops_to_bind_is_the_ridge() -> None:
    run = product(prompt=64)
    only = the_one(run.regimes("memory_bandwidth", 1e10, 1e15, of="prefill/layer/mlp/down"))
    rate, part, share, width, h, f = bound(
        run,
        "matrix_rate",
        "matrix_efficiency",
        "memory_efficiency",
        "weight_bytes",
        "hidden_size",
        "intermediate_size",
    )
    expected = width * (h * f + 64 * (h + f)) * rate * part / (2 * 64 * h * f * share)
    assert only["at"] == pytest.approx(expected, rel=1e-12)
    assert at(only["closed_form"], run) == pytest.approx(expected, rel=1e-12)


def test_layers_do_not_move_a_crossover() -> None:
    """A factor before everything cancels."""
    one, other = product(), product(num_layers=7)
    of = "prefill/layer/mlp"
    found = [run.regimes("memory_bandwidth", 1e10, 1e15, of=of).to_dict()["crossovers"] for run in (one, other)]
    assert [each["at"] for each in found[0]] == pytest.approx([each["at"] for each in found[1]], rel=1e-12)


def test_tensor_parallel_degree_at_which_a_layer_becomes_network_bound() -> None:
    """t = 1 + (4 + 1 / (4 ridge)) b s h f BW' / (F' (w b s h + half)): work over four all-reduces."""
    run = sf.training("llama-2-7b", "tpu-v5p", sf.Plan(tp=2), batch=8, sequence=4096)
    only = the_one(run.regimes("tp", 1, 32, of="layer/mlp", view="smooth"))
    rate, part, link, attained, half, ridge, h, f, width = bound(
        run,
        "matrix_rate",
        "matrix_efficiency",
        "scale_up_bandwidth",
        "scale_up_efficiency",
        "scale_up_half_bytes",
        "ridge_efficiency",
        "hidden_size",
        "intermediate_size",
        "activation_bytes",
    )
    message = width * 4096 * h
    expected = 1 + (4 + 1 / (4 * ridge)) * 4096 * h * f * link * attained / (rate * part * (message + half))
    assert (only["from"], only["to"]) == ("compute", "scale_up")
    assert only["at"] == pytest.approx(expected, rel=1e-9)
    whole = the_one(run.regimes("tp", 1, 32, of="layer/mlp"))
    assert whole["at"] == 32  # the first degree that divides the heads and is above it
    assert "t = (" in run.regimes("tp", 1, 32, of="layer/mlp").text()


@pytest.mark.parametrize(
    ("one", "other", "multiple"),
    [
        (SCORES, MLP, 4),
        (SCORES, f"{PROJECTIONS} + {MLP}", 6),
        (f"{SCORES} + {PROJECTIONS}", MLP, 2),
    ],
    ids=["scores pass the MLP", "scores pass all weights", "attention passes the MLP"],
)
def test_context_at_which_attention_flops_pass(one: str, other: str, multiple: int) -> None:
    """Per token and layer: scores 4 s h, MLP 16 h^2, projections 8 h^2; the biases of the products add a token."""
    run = sf.training("gpt-neox-20b", "a100-80gb-sxm", sf.Plan(attention="eager"), batch=8, sequence=2048)
    found = run.cross(one, other, "sequence", 1, 100_000)
    (crossing,) = found.crossings
    assert crossing.then == one
    sizes = run.model.sizes
    assert 0 <= crossing.at - multiple * sizes["hidden_size"] <= 2
    if other == MLP and one == SCORES:
        assert 0 <= crossing.at - attention_mlp_crossover(sizes["hidden_size"], sizes["intermediate_size"]) <= 2


def test_sequence_at_which_selective_recomputation_pays() -> None:
    """The scores' line passes the others at s = 34 h / (5 a): 870 tokens (Korthikanti et al. 2022)."""
    run = sf.training("gpt3-175b", "a100-80gb-sxm", batch=1, sequence=2048)
    lines = run.derive("memory", term="activations").lines
    squares = [each for each in lines if "sequence**2" in str(each.monomial)]
    rest = [each for each in lines if "sequence" in str(each.monomial) and "num_layers" in str(each.monomial)]
    per_token = sum(each.value for each in rest if each not in squares) / 2048
    per_pair = sum(each.value for each in squares) / 2048**2
    assert per_token / per_pair == pytest.approx(34 * 12288 / (5 * 96), rel=1e-12)


@pytest.mark.parametrize("part", [0.2, 0.05, 0.02])
def test_micro_batches_for_a_small_bubble(part: float) -> None:
    """x = (p - 1) / (v m + p - 1) of the passes, so m = (p - 1) (1 / x - 1) / v, in multiples of p.

    Of the step it is a little less, since the head and the optimizer take time too.
    """
    plan = sf.Plan(tp=8, pp=8, vpp=3, sequence_parallel=True, recompute="selective")
    run = sf.training("gpt3-175b", "a100-80gb-sxm", plan, batch=64, sequence=2048)
    found = run.solve("batch", **{"share of pipeline/bubble": part})
    assert found.value % 8 == 0
    expected = 8 * math.ceil(7 * (1 / part - 1) / 3 / 8)
    assert 0.9 * expected <= found.value <= expected
    rows = run.bind(batch=int(found.value) - 8).table()
    assert next(row for row in rows if row.name == "pipeline/bubble").share > part


def test_experts_are_dealt_from_some_tokens_on() -> None:
    """Few tokens: fewer kernels and hops; many: each device permutes a part of the rows only."""
    plan, stack = sf.Plan(tp=8), "tensorrt-llm"  # it exchanges within the replica; vLLM only among replicas
    run = sf.inference("mixtral-8x7b", "h100-sxm", plan, batch=1, prompt=1024, generate=2, stack=stack)
    found = run.cross("plan: ep=1", "plan: ep=8", "prompt", 1, 8192, of="prefill")
    assert found.crossings
    assert (found.leads[0], found.leads[-1]) == ("ep=1", "ep=8")
    first = found.crossings[0]
    for prompt, better in ((first.before, "ep=1"), (first.at, "ep=8")):
        times = {f"ep={ep}": run.bind(ep=ep, prompt=int(prompt)).value("prefill") for ep in (1, 8)}
        assert min(times, key=lambda name: times[name]) == better


def test_a_ring_passes_an_all_to_all_where_its_transfers_hide() -> None:
    """A causal block of the ring hides 2 w (s / c) h bytes behind 2 (s / c)^2 h FLOPs from s = c w F' / BW' on."""
    run = sf.training("llama-2-7b", "h100-sxm", sf.Plan(cp=16), batch=8, sequence=65536)
    found = run.cross("plan: cp_kind=ring", "plan: cp_kind=all-to-all", "sequence", 1024, 1 << 20)
    (crossing,) = found.crossings
    rate, part, link, attained, width = bound(
        run, "matrix_rate", "attention_efficiency", "scale_out_bandwidth", "scale_out_efficiency", "activation_bytes"
    )
    assert crossing.then == "cp_kind=ring"
    assert crossing.at == pytest.approx(16 * width * rate * part / (link * attained), rel=0.05)


def test_short_forms_are_written_out_however_many_instructions_they_come_from() -> None:
    """The degree at which a layer is bound by its network, and the bandwidth of the same, are a line each."""
    run = sf.training("llama-2-7b", "tpu-v5p", sf.Plan(tp=2), batch=8, sequence=4096)
    for answer in (
        run.regimes("tp", 1, 32, of="layer/mlp"),
        run.regimes("scale_up_bandwidth", 1e9, 1e12, of="layer/mlp"),
    ):
        assert len(answer.equations()) == 1
        assert "no short closed form" not in answer.text()

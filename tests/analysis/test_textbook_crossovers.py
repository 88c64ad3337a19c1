"""The crossovers of the textbooks come out by themselves, as closed forms and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from support.analysis_cases import made, subject_of_formula

from symperf.analysis.regimes import Crossover, regimes_of
from symperf.analysis.solve import solve_real
from symperf.analysis.symbols import Domain
from symperf.formulas import collectives
from symperf.formulas.kernels import attention, matmul
from symperf.formulas.language.atoms import Max, Min, log2, ring_share
from symperf.formulas.language.symbols import (
    activation_bytes,
    columns,
    hidden_size,
    inner,
    link_bandwidth,
    link_latency,
    mask_bytes,
    matrix_efficiency,
    matrix_rate,
    memory_bandwidth,
    memory_efficiency,
    message_bytes,
    micro_batch,
    micro_batches,
    num_attention_heads,
    num_layers,
    ranks,
    rows,
    scale_up_bandwidth,
    sequence,
    stages,
    strip_units,
    tp,
    vpp,
    weight_bytes,
)
from symperf.formulas.memory import saved_activations as saved
from symperf.formulas.parallel import pipeline
from symperf.models.counts import forward_flops
from symperf.models.model import Model

DEVICE = {
    "matrix_rate": 312e12,
    "matrix_efficiency": 0.7,
    "memory_bandwidth": 2.0e12,
    "memory_efficiency": 0.8,
    "ridge_efficiency": 0.75,
    "launch_latency": 4e-6,
    "scale_up_bandwidth": 300e9,
}
RESOURCES = {"matrix_rate": "compute", "memory_bandwidth": "memory", "launch_latency": "launch"}


def only(expr: Any, symbol: str, low: float, high: float, values: dict[str, float], **resources: str) -> Crossover:
    """The one crossover of a formula along a symbol; where its bound changes, the one at which it does."""
    crossovers = regimes_of(subject_of_formula(expr, values, resources), symbol, low, high).crossovers
    (only_one,) = [crossover for crossover in crossovers if crossover.bound] or crossovers
    return only_one


def equal(one: Any, other: Any) -> bool:
    return sympy.cancel(sympy.expand_log(one - other, force=True)) == 0


def test_tokens_at_which_a_product_becomes_compute_bound() -> None:
    """With its weights as all the traffic: m = w F' / (2 beta') tokens, the ridge point times half an element."""
    traffic = inner * columns * weight_bytes
    time = matmul.smooth_matmul_time(rows, columns, inner, 1, traffic)
    values = DEVICE | {"columns": 12288, "inner": 12288, "weight_bytes": 2}
    found = only(time, "rows", 1, 1e6, values | {"rows": 1}, **RESOURCES)
    assert found.bound == ("memory", "compute")
    expected = strip_units(matmul.compute_bound_rows(inner, columns, weight_bytes))
    assert equal(found.closed_form(), expected)
    assert found.x == pytest.approx(2 * 312e12 * 0.7 / (2 * 2.0e12 * 0.8), rel=1e-14)


def test_tokens_at_which_a_whole_product_becomes_compute_bound() -> None:
    """With all three matrices: 2 m n k / F' = w (m k + n k + m n) / beta', so later than from the weights alone."""
    traffic = matmul.matmul_bytes(rows, columns, inner, 1, activation_bytes, weight_bytes, activation_bytes)
    time = matmul.smooth_matmul_time(rows, columns, inner, 1, traffic)
    values = DEVICE | {"columns": 12288, "inner": 4096, "weight_bytes": 2, "activation_bytes": 2, "rows": 1}
    found = only(time, "rows", 1, 1e6, values, **RESOURCES)
    rate, bandwidth = 312e12 * 0.7, 2.0e12 * 0.8
    n, k = 12288, 4096
    assert found.x == pytest.approx(2 * n * k / (2 * n * k * bandwidth / rate - 2 * (n + k)), rel=1e-12)
    assert found.x > 2 * rate / (2 * bandwidth)
    assert {s.name for s in found.closed_form().free_symbols} == set(values) - {"rows", "launch_latency"} - {
        "scale_up_bandwidth",
        "ridge_efficiency",
    }


def test_where_a_product_meets_the_rounded_corner_and_where_its_bound_changes() -> None:
    """The corner holds between the ratios 2 eta - 1 and its inverse; the bound changes where both are equal, inside."""
    traffic = inner * columns * weight_bytes
    time = matmul.smooth_matmul_time(rows, columns, inner, 1, traffic)
    values = DEVICE | {"columns": 12288, "inner": 12288, "weight_bytes": 2, "rows": 1, "ridge_efficiency": 0.75}
    found = regimes_of(subject_of_formula(time, values, RESOURCES), "rows", 1, 1e6)
    ridge = 2 * 312e12 * 0.7 / (2 * 2.0e12 * 0.8)
    assert [crossover.x for crossover in found.crossovers] == pytest.approx(
        [ridge * 0.5, ridge, ridge / 0.5], rel=1e-12
    )
    assert [crossover.bound for crossover in found.crossovers] == [
        None,
        ("memory", "compute"),
        None,
    ]


def test_tensor_parallel_degree_at_which_a_layer_becomes_network_bound() -> None:
    """Work W / (t F) against two all-reduces of 2 (t - 1)/t n / BW each: t = 1 + W BW / (4 n F)."""
    work = 24 * micro_batch * sequence * hidden_size**2
    message = micro_batch * sequence * hidden_size * activation_bytes
    time = Max(work / (tp * matrix_rate), 4 * ring_share(tp) * message / scale_up_bandwidth)
    values = DEVICE | {"micro_batch": 1, "sequence": 2048, "hidden_size": 12288, "activation_bytes": 2, "tp": 1}
    found = only(time, "tp", 1, 4096, values, matrix_rate="compute", scale_up_bandwidth="scale_up")
    assert found.bound == ("compute", "scale_up")
    expected = 1 + work * scale_up_bandwidth / (4 * message * matrix_rate)
    assert equal(found.closed_form(), expected)
    assert found.x == pytest.approx(1 + 3 * 12288 * 300e9 / 312e12, rel=1e-14)


def test_a_run_turns_network_bound_at_a_degree() -> None:
    """Of a whole step: the first degree whose network share is the largest, as trying every degree shows."""
    run = made("no tiles")
    found = run.regimes("tp", 1, 64)
    (crossover,) = (c for c in found.crossovers if c.bound)
    assert crossover.bound == ("compute", "scale_up")
    for degree in (1, 2, 4, 8, 16, 32):
        bound = max(run.bind(tp=degree).shares().items(), key=lambda item: item[1])[0]
        assert bound == ("scale_up" if degree >= crossover.x else "compute")


def test_message_at_which_a_ring_beats_a_tree() -> None:
    """Ring 2 (q - 1)/q n / BW + 2 (q - 1) a, tree 2 n / BW + 2 log2(q) a: n = q BW a (q - 1 - log2 q)."""
    arguments = (message_bytes, ranks, link_bandwidth, link_latency, 0)
    time = Min(collectives.ring_all_reduce_time(*arguments), collectives.tree_all_reduce_time(*arguments))
    values = {"message_bytes": 1, "ranks": 8, "link_bandwidth": 100e9, "link_latency": 5e-6}
    found = only(time, "message_bytes", 1, 1e12, values)
    assert found.x == pytest.approx(8 * 100e9 * 5e-6 * (7 - 3), rel=1e-14)
    expected = ranks * link_bandwidth * link_latency * (ranks - 1 - log2(ranks))
    at = {symbol: sympy.Rational(values[symbol.name]) for symbol in expected.free_symbols}
    assert float(found.closed_form().xreplace(at)) == pytest.approx(float(expected.xreplace(at)), rel=1e-12)
    assert found.changes[0].before.text != found.changes[0].after.text


@pytest.mark.parametrize(
    ("against", "multiple"),
    [(("mlp",), 4), (("projections", "mlp"), 6)],
    ids=["scores pass the MLP", "scores pass all products with weights"],
)
def test_context_at_which_attention_flops_pass(against: tuple[str, ...], multiple: int) -> None:
    """GPT, per token and layer: scores 4 s h, MLP 16 h^2, all weights 24 h^2. So s = 4 h, and s = 6 h."""
    model = Model.load("gpt3-175b")
    flops = forward_flops(model.architecture)
    values = {name: float(size) for name, size in model.sizes.items()} | {"batch": 1.0, "sequence": 1.0}
    work = Max(sympy.Add(*(flops[name] for name in against)), flops["attention_scores"])
    found = only(work, "sequence", 1, 1e7, values)
    assert found.x == multiple * model.sizes["hidden_size"]
    if against == ("mlp",):
        sizes = (model.sizes["hidden_size"], model.sizes["intermediate_size"])
        assert found.x == float(attention.attention_mlp_crossover(*sizes))
    form = found.closed_form()
    assert "sequence" not in {s.name for s in form.free_symbols}


def test_attention_passes_the_mlp_with_its_projections_at_2h() -> None:
    """Attention with its own projections, 8 h^2 + 4 s h, passes the MLP's 16 h^2 at s = 2 h."""
    model = Model.load("gpt3-175b")
    flops = forward_flops(model.architecture)
    values = {name: float(size) for name, size in model.sizes.items()} | {"batch": 1.0, "sequence": 1.0}
    found = only(Max(flops["mlp"], flops["attention_scores"] + flops["projections"]), "sequence", 1, 1e7, values)
    assert found.x == 2 * model.sizes["hidden_size"]


def test_sequence_at_which_selective_recomputation_pays() -> None:
    """Korthikanti et al. 2022: the core keeps 5 a s^2 b of the s b h (34 + 5 a s / h) bytes of a layer.

    It is more than the rest from s = 34 h / (5 a) on: 870 tokens for GPT-3, so that at 2048 selective recomputation
    drops 70 % of the activations, as the paper says.
    """
    core = saved.scores_kept_bytes(attention.score_elements(micro_batch, sequence, num_attention_heads))
    whole = saved.gpt_layer_bytes(micro_batch, sequence, hidden_size, num_attention_heads, 1)
    formats = {activation_bytes: 2, mask_bytes: 1}
    values = {"micro_batch": 1, "sequence": 1, "hidden_size": 12288, "num_attention_heads": 96}
    core = core.xreplace(formats)
    rest = sympy.expand(whole.xreplace(formats) - core)
    found = only(Max(rest, core), "sequence", 1, 1e6, values)
    assert equal(found.closed_form(), sympy.Rational(34, 5) * hidden_size / num_attention_heads)
    assert found.x == pytest.approx(34 * 12288 / (5 * 96), rel=1e-14)
    part = 5 * 96 * 2048 / 12288
    assert part / (34 + part) == pytest.approx(0.70, abs=0.005)


@pytest.mark.parametrize("part", [0.2, 0.05, 0.01])
def test_micro_batches_for_a_small_bubble(part: float) -> None:
    """(p - 1)/(v m) is x at m = (p - 1)/(v x)."""
    share = pipeline.bubble_fraction(micro_batches, stages, vpp)
    subject = subject_of_formula(share, {"micro_batches": 8, "stages": 8, "vpp": 3})
    found = solve_real(subject, "micro_batches", Domain(False, 1, 1e9), part)
    assert found.value == pytest.approx(7 / (3 * part), rel=1e-15)
    assert equal(found.closed_form(), (stages - 1) / (vpp * sympy.Symbol("time", positive=True)))


def test_bandwidth_at_which_memory_stops_to_bind_is_the_ridge() -> None:
    """Of one product: beta' = F' Q / W, its ridge."""
    traffic = inner * columns * weight_bytes
    time = matmul.smooth_matmul_time(rows, columns, inner, 1, traffic)
    values = DEVICE | {"columns": 4096, "inner": 4096, "weight_bytes": 2, "rows": 64}
    found = only(time, "memory_bandwidth", 1e10, 1e15, values, **RESOURCES)
    expected = matrix_rate * matrix_efficiency * weight_bytes / (2 * rows * memory_efficiency)
    assert equal(found.closed_form(), expected)


def test_layers_do_not_move_a_crossover() -> None:
    """A factor before everything cancels from the closed form."""
    time = num_layers * Max(sequence**2 / matrix_rate, sequence / memory_bandwidth)
    values = DEVICE | {"num_layers": 96, "sequence": 1}
    found = only(time, "sequence", 1, 1e6, values, **RESOURCES)
    assert equal(found.closed_form(), matrix_rate / memory_bandwidth)
    assert np.isclose(found.x, 156.0)

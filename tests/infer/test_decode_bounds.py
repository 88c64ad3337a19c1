"""When decoding stops being bound by memory: closed forms against the whole model, at points near each crossover."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.formulas.generation import decode_bounds as bounds
from symperf.formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    from pathlib import Path

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = tuple(SYMBOLS[name].symbol for name in ("num_layers", "num_key_value_heads", "head_dim"))
MODELS = ("llama-2-7b", "llama-2-70b")
DEVICE = """
name = "smooth"
matrix_rate = { bf16 = "300 TFLOP/s" }
memory_bandwidth = "2 TB/s"
memory_capacity = "100 TB"
vector_rate = "100 PFLOP/s"
matrix_efficiency = 0.8
memory_efficiency = 0.9
attention_efficiency = 0.7
launch_latency = 0.0
scale_up_size = 1024
scale_up_bandwidth = "1 PB/s"
scale_up_latency = "5 us"
scale_up_half_bytes = 0
"""
"""A device whose products are smooth (no units are given), which starts kernels in no time; links of latency only."""


@pytest.fixture(scope="module", name="system")
def _system(tmp_path_factory: pytest.TempPathFactory) -> sf.System:
    path: Path = tmp_path_factory.mktemp("systems") / "smooth.toml"
    path.write_text(DEVICE, encoding="utf-8")
    return sf.System.load(path)


def _step(system: sf.System, model: str, batch: int, context: int, tp: int = 1, **values: Any) -> Any:
    """A run with one decode step, which reads `context` keys, on an ideal software."""
    plan = sf.Plan(tp=tp, precision="bf16")
    return sf.inference(
        sf.Model.load(model), system, plan, batch=batch, prompt=context - 1, generate=2, stack="none", **values
    )


def _value(formula: Any, run: Any) -> float:
    known = {SYMBOLS[name].symbol: value for name, (value, _) in run.bound.items() if name in SYMBOLS}
    return float(formula.subs(known).subs(SYMBOLS["flop"].symbol, 1))


def _decode(run: Any) -> dict[str, Any]:
    return {op.name: op for op in run.operations() if op.phase == "decode"}


def _weights(run: Any) -> float:
    """Elements of the right factors of all products of a step: n k of each, times how often it runs."""
    return sum(op.n * op.k * op.count for op in _decode(run).values() if op.n)


def _demand(run: Any) -> tuple[float, float]:
    """FLOPs of the products of a step, and bytes of all its operations."""
    rows = {row.name: row for row in run.table() if row.name.startswith("decode/")}
    products = {f"decode/{name}" for name, op in _decode(run).items() if op.n}
    return sum(rows[name].flops for name in products), sum(row.bytes for row in rows.values())


@pytest.mark.parametrize("model", MODELS)
def test_a_product_turns_at_its_ridge_batch(system: sf.System, model: str) -> None:
    """At the whole batch below it each product is bound by memory, at the one above by compute."""
    run = _step(system, model, 1, 128)
    size = {name: value for name, (value, _) in run.bound.items()}
    for path in ("layer/attention/qkv", "layer/attention/output", "layer/mlp/gate_up", "layer/mlp/down"):
        op = _decode(run)[path]
        batch = _value(bounds.product_ridge_batch(op.n, op.k), run)
        assert batch > _value(bounds.ridge_batch(), run)
        below, above = (_decode(_step(system, model, b, 128))[path].bound for b in (int(batch), math.ceil(batch)))
        assert (below, above) == ("memory", "compute")
    assert size["weight_bytes"] == 2


def test_a_product_that_is_too_narrow_never_turns(system: sf.System) -> None:
    """Its rows alone need more time of memory than of computing."""
    run = _step(system, "llama-2-7b", 1, 128)
    assert _value(bounds.product_ridge_batch(64, 64), run) > 1e200


@pytest.mark.parametrize("context", [2, 64, 1024])
@pytest.mark.parametrize("model", MODELS)
def test_work_equals_traffic_at_the_balance_batch(system: sf.System, model: str, context: int) -> None:
    """With the bytes that the whole model moves for a sequence, it is where the model's demands balance, to 1e-9."""
    one, two = _step(system, model, 1, context), _step(system, model, 2, context)
    (flops, once), (_, twice) = _demand(one), _demand(two)
    parameters = _weights(one)
    each, fixed = twice - once, 2 * once - twice
    assert fixed == pytest.approx(2 * parameters, rel=1e-12)
    assert flops == pytest.approx(2 * parameters, rel=1e-12)
    size = {name: value for name, (value, _) in one.bound.items()}
    cache = 4 * size["num_layers"] * size["num_key_value_heads"] * size["head_dim"]
    assert each >= context * cache
    batch = _value(bounds.balance_batch(parameters, each / cache, *SHAPE), one)
    rate = size["matrix_rate"] * size["matrix_efficiency"]
    bandwidth = size["memory_bandwidth"] * size["memory_efficiency"]
    if batch > 1e200:
        assert each / bandwidth >= flops / rate
        return
    assert batch * flops / rate == pytest.approx((fixed + batch * each) / bandwidth, rel=1e-9)
    for whole, more in ((int(batch), "traffic"), (math.ceil(batch), "work")):
        work, traffic = _demand(_step(system, model, whole, context))
        assert (work / rate >= traffic / bandwidth) == (more == "work")


@pytest.mark.parametrize("model", MODELS)
def test_the_balance_batch_of_no_activations_is_a_lower_bound(system: sf.System, model: str) -> None:
    """It lies between the ridge batch and what the whole model's traffic gives, and meets the former at no context."""
    run = _step(system, model, 1, 64)
    parameters = _weights(run)
    ridge = _value(bounds.ridge_batch(), run)
    plain = _value(bounds.balance_batch(parameters, 64, *SHAPE), run)
    size = {name: value for name, (value, _) in run.bound.items()}
    bandwidth = size["memory_bandwidth"] * size["memory_efficiency"]
    rate = size["matrix_rate"] * size["matrix_efficiency"]
    cache = 64 * 4 * size["num_layers"] * size["num_key_value_heads"] * size["head_dim"]
    assert ridge < plain == pytest.approx(2 * parameters / (2 * parameters * bandwidth / rate - cache), rel=1e-12)
    assert _value(bounds.balance_batch(parameters, 1e-9, *SHAPE), run) == pytest.approx(ridge)
    work, traffic = _demand(_step(system, model, int(plain), 64))
    assert work / rate < traffic / bandwidth


@pytest.mark.parametrize("model", MODELS)
def test_no_batch_makes_a_step_compute_bound_beyond_the_context_limit(system: sf.System, model: str) -> None:
    """Shares of the whole model at many batches, beyond the limit and well inside it."""
    run = _step(system, model, 1, 128)
    limit = _value(bounds.context_limit(_weights(run), *SHAPE), run)

    def bound(context: float, batch: int) -> str:
        step = _step(system, model, batch, round(context)).regimes("memory_bandwidth", 1e12, 3e12, of="decode")
        shares = next(r.shares for r in step.intervals if r.low <= 2e12 <= r.high)
        return max(shares, key=shares.__getitem__)

    batches = [4**power for power in range(10)]
    assert {bound(1.01 * limit, batch) for batch in batches} == {"memory"}
    assert bound(0.6 * limit, batches[-1]) == "compute"


def test_products_and_caches_take_equally_long_at_the_context_limit(system: sf.System) -> None:
    """At large batches, work of the products over traffic of the cache crosses 1 at the limit, to one key."""
    run = _step(system, "llama-2-70b", 1, 128)
    limit = _value(bounds.context_limit(_weights(run), *SHAPE), run)

    def ratio(context: int) -> float:
        step = _decode(_step(system, "llama-2-70b", 2**14, context))
        products = sum(op.time_s for op in step.values() if op.n)
        longer = _decode(_step(system, "llama-2-70b", 2**14, 2 * context))["layer/attention/flash"].time_s
        return products / (longer - step["layer/attention/flash"].time_s)

    assert ratio(int(limit)) >= 1 >= ratio(math.ceil(limit))


@pytest.mark.parametrize("model", MODELS)
def test_attention_turns_at_its_group(system: sf.System, model: str) -> None:
    """With a rate of attention for which the model's own group is just above the limit, and just below."""
    run = _step(system, model, 4, 200_000)
    group = run.bound["num_attention_heads"][0] / run.bound["num_key_value_heads"][0]
    limit = _value(bounds.attention_ridge_group(), run)
    for factor, bound in ((0.999, "compute"), (1.001, "memory")):
        rate = run.bound["attention_rate"][0] * factor * group / limit
        near = _step(system, model, 4, 200_000, attention_rate=rate)
        assert _value(bounds.attention_ridge_group(), near) == pytest.approx(factor * group)
        assert _decode(near)["layer/attention/flash"].bound == bound


@pytest.mark.parametrize("tp", [2, 8])
def test_all_reduces_outlast_the_weights_of_a_layer_from_the_degree_on(system: sf.System, tp: int) -> None:
    """With a latency of links for which t log2(t) is just above the threshold, and just below."""
    run = _step(system, "llama-2-70b", 1, 16)
    layer = sum(op.n * op.k for name, op in _decode(run).items() if op.n and name.startswith("layer/"))
    threshold = _value(bounds.reduce_bound_degree(layer, 4 * SYMBOLS["scale_up_latency"].symbol), run)
    latency = run.bound["scale_up_latency"][0] * threshold / (tp * math.log2(tp))
    for factor, longer in ((0.99, False), (1.02, True)):
        step = _decode(_step(system, "llama-2-70b", 1, 16, tp, scale_up_latency=latency * factor))
        reduces = step["layer/attention/reduce"].time_s + step["layer/mlp/reduce"].time_s
        products = sum(op.time_s for name, op in step.items() if op.n and name.startswith("layer/"))
        assert (reduces > products) is longer
        each = reduces / step["layer/mlp/reduce"].count
        assert (_value(bounds.reduce_bound_degree(layer, each), run) < tp) is longer


def test_each_limit_moves_as_claimed_on_real_devices() -> None:
    """More bandwidth moves the ridge down and lets longer contexts in; a smaller cache element lets in longer ones."""
    found = {}
    for name in ("h100-sxm", "h200-sxm"):
        run = _step(sf.System.load(name), "llama-2-70b", 1, 128)
        found[name] = [
            _value(form, run)
            for form in (bounds.ridge_batch(), bounds.attention_ridge_group(), bounds.context_limit(1e9, *SHAPE))
        ]
    ridge, group, limit = zip(*(found[name] for name in ("h100-sxm", "h200-sxm")), strict=True)
    assert ridge[1] < ridge[0]
    assert group[1] < group[0]
    assert limit[1] > limit[0]
    half = _step(sf.System.load("h100-sxm"), "llama-2-70b", 1, 128, kv_precision="fp8")
    assert _value(bounds.context_limit(1e9, *SHAPE), half) == pytest.approx(2 * limit[0])

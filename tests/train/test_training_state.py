"""What training keeps: optimizers, products in low precision, recomputed layers by count, offload, memory by stage."""

from __future__ import annotations

from typing import Any

import pytest
from support.state_cases import HOST, LLAMA_7B, make, number, state

from symperf.common.errors import InputError
from symperf.formulas.language.discipline import judge
from symperf.formulas.language.symbols import SYMBOLS
from symperf.operations.schedule import Op, terms
from symperf.train.memory.device_share import fullest_share
from symperf.train.memory.matrices import held_matrices
from symperf.train.step.low_precision import is_low

GIB = 2**30


# Optimizers ---------------------------------------------------------------------------------------------------------

TABLES, NORMS = 2 * 32000 * 4096, 65 * 4096
FACTORS = 32 * (4 * 8192 + 3 * (4096 + 11008)) + NORMS + 2 * (32000 + 4096)


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ("adam", 12 * LLAMA_7B),
        ("adam-8bit", (4 + 2 * (1 + 4 / 2048)) * LLAMA_7B),
        ("sgd-momentum", 8 * LLAMA_7B),
        ("muon", 8 * (LLAMA_7B - TABLES - NORMS) + 12 * (TABLES + NORMS)),
    ],
)
def test_state_of_an_optimizer(optimizer: str, expected: float) -> None:
    """Bytes of state on one device, from the count of parameters alone."""
    assert state(make(optimizer=optimizer)) == pytest.approx(expected, rel=1e-12)


def test_state_of_adafactor() -> None:
    """A master copy, and one statistic a row and a column, of tables too; vectors whole."""
    assert state(make(optimizer="adafactor")) == pytest.approx(4 * (LLAMA_7B + FACTORS), rel=1e-12)


@pytest.mark.parametrize(
    ("model", "extra"),
    [("llama-2-7b", {}), ("gemma-2b", {}), ("mixtral-8x7b", {"tp": 8, "sequence_parallel": True})],
)
def test_an_update_of_adafactor_moves_all_its_statistics(model: str, extra: dict[str, Any]) -> None:
    """Gradients and masters three times, weights once, and every statistic of the state in and out."""
    run = make(model, optimizer="adafactor", **extra)
    parameters = sum(bytes for name, bytes in run.memory_terms().items() if name.startswith("weights/")) / 2
    statistics = state(run) - 4 * parameters
    (row,) = (row for row in run.table() if row.name == "optimizer/adafactor")
    assert row.bytes == pytest.approx((3 * 4 + 3 * 4 + 2) * parameters + 2 * statistics, rel=1e-12)


@pytest.mark.parametrize(("precision", "expected"), [(8.0, 8), (12.0, 12)])
def test_moments_in_16_bits(precision: float, expected: float) -> None:
    """DeepSeek-V3 keeps BF16 moments beside FP32 masters: 8 bytes a parameter."""
    assert state(make(optimizer_bytes=precision)) == expected * LLAMA_7B


@pytest.mark.parametrize("optimizer", ["adam-8bit", "sgd-momentum", "muon"])
def test_shards_of_a_state(optimizer: str) -> None:
    """ZeRO-1 divides the state by the replicas."""
    alone, sharded = (make(optimizer=optimizer, dp=8, zero=zero) for zero in (0, 1))
    assert state(sharded) == pytest.approx(state(alone) / 8, rel=1e-12)


@pytest.mark.parametrize("model", ["llama-2-7b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3", "qwen3-8b"])
def test_matrices_and_vectors_are_all_parameters(model: str) -> None:
    """The list of matrices misses none: what is left are norms and biases, far below one per cent."""
    run = make(model, tp=8, sequence_parallel=True)
    share = fullest_share(run.structure)
    found = held_matrices(run.structure, share.layers_of)
    dense, experts = share.layer_parameters
    for routed, whole, rest in ((False, dense, found.vectors), (True, experts, 0)):
        elements = number(run, found.elements(routed=routed))
        assert elements + number(run, rest) == pytest.approx(number(run, whole), rel=1e-12)
    assert 0 < number(run, found.vectors) < 0.003 * number(run, found.elements(routed=False))
    assert judge(found.vectors).directions.get(SYMBOLS["hidden_size"].symbol, 1) == 1


def test_newton_schulz_runs_the_published_work() -> None:
    """The products of Muon are 2 (2 n m^2 + m^3) FLOPs an iteration (Jordan et al. 2024), five times, on every rank."""
    run = make(tp=4, optimizer="muon")
    found = sum(
        row.flops
        for row in run.table()
        if row.name.startswith("optimizer/muon/") and row.name.endswith(("gram", "square", "product"))
    )
    square, wide = 6 * 4096**3, 4 * 4096**2 * 11008 + 2 * 4096**3
    assert found == pytest.approx(5 * 32 * (4 * square + 3 * wide), rel=1e-12)


def test_muon_deals_matrices_to_shards() -> None:
    """Ranks that share the state each iterate on their part, and gather what they need in 16 bits."""
    alone, sharded = (make(tp=4, dp=8, optimizer="muon", zero=zero) for zero in (0, 1))
    time = [sum(row.time_s for row in run.table() if "muon" in row.name) for run in (alone, sharded)]
    assert time[1] < time[0] / 2
    gathered = [row for row in sharded.table() if row.name.endswith("/gather") and "muon" in row.name]
    matrices = number(
        sharded, held_matrices(sharded.structure, fullest_share(sharded.structure).layers_of).elements(routed=False)
    )
    assert sum(row.bytes for row in gathered) == pytest.approx(2 * matrices, rel=1e-12)
    assert not any(row.name.endswith("/gather") and "muon" in row.name for row in alone.table())


# Low precision ------------------------------------------------------------------------------------------------------


def test_only_linear_layers_run_in_low_precision() -> None:
    """Linear layers at the FP8 rate, after casts; attention, routers and head at the 16-bit rate."""
    run = make("mixtral-8x7b", precision="fp8")
    named = terms(run.schedule_tree())
    low = {path for path, leaf in named.items() if isinstance(leaf, Op) and is_low(leaf)}
    layers = {path.rsplit("/", 1)[0] for path in low}
    assert layers == {f"layer/{name}" for name in ("attention/qkv", "attention/output", "experts/up", "experts/down")}
    for path, leaf in named.items():
        if isinstance(leaf, Op) and leaf.time.has(SYMBOLS["attention_rate"].symbol):
            assert path not in low
            assert not leaf.time.has(SYMBOLS["matrix_rate"].symbol)
    casts = {path for path in named if "/cast/" in path}
    assert len(casts) == 2 * len(layers)


def test_low_precision_keeps_copies_of_weights_and_casts_of_inputs() -> None:
    """FP8: two copies of one byte of every linear weight; inputs of products in one byte, and attention's result."""
    half, low = make(), make(precision="fp8")
    linear = LLAMA_7B - TABLES - NORMS
    assert low.memory_terms()["weights/copies"] == 2 * linear
    tokens, h, f = 4096, 4096, 11008
    saved = half.memory_terms()["activations"] - low.memory_terms()["activations"]
    assert saved == 32 * tokens * (2 * h + f - h)
    primary = make(precision="fp8", weight_copies=0)
    assert primary.memory_terms()["weights/copies"] == 0


def test_nvfp4_is_half_a_byte_and_its_scales() -> None:
    """4 bits and an 8-bit scale for 16 values; the rate is the device's, which must have one."""
    run = make(system="b200-sxm", precision="fp4")
    assert run.bound["product_input_bytes"][0] == 0.5 + 1 / 16
    assert run.bound["matrix_rate"][0] == 9e15
    with pytest.raises(InputError, match="system h100-sxm: no matrix_rate for precision 'fp4'"):
        make(precision="fp4")


def test_lower_precision_is_faster_and_casts_cost_memory_time() -> None:
    """FP8 beats BF16 on a large model, by less than the ratio of the rates; current scales cost one more reading."""
    plan = {"tp": 8, "pp": 4, "dp": 1, "batch": 64}
    half, low = (make("llama-2-70b", precision=name, **plan) for name in ("bf16", "fp8"))
    assert 1 < half.value("time") / low.value("time") < 2
    current = make("llama-2-70b", precision="fp8", amax_passes=1, **plan)
    assert current.value("time") > low.value("time")
    assert sum(low.shares().values()) == pytest.approx(1, rel=1e-12)
    assert sum(row.time_s for row in low.table()) == pytest.approx(low.value("time"), rel=1e-12)


# Recomputation by count ---------------------------------------------------------------------------------------------


def test_recomputed_layers_lie_between_none_and_full() -> None:
    """Time, FLOPs and activations are linear in the number; all layers of a stage are full recomputation."""
    plan = {"tp": 2, "pp": 4, "dp": 2}
    runs = [make(**plan)] + [make(recompute="full", recompute_layers=n, **plan) for n in (2, 4, 8)]
    for quantity in ("hardware_flops", "time"):
        none, two, four, eight = (run.value(quantity) for run in runs)
        assert two - none == pytest.approx((four - none) / 2, rel=1e-9)
        assert four - none == pytest.approx((eight - none) / 2, rel=1e-9)
    full = make(recompute="full", **plan)
    assert runs[-1].value("time") == pytest.approx(full.value("time"), rel=1e-12)
    assert runs[-1].value("hardware_flops") == pytest.approx(full.value("hardware_flops"), rel=1e-12)
    assert runs[-1].value("memory") == pytest.approx(full.value("memory"), rel=1e-12)
    kept = [run.memory_terms()["activations"] for run in runs]
    assert kept == sorted(kept, reverse=True)


@pytest.mark.parametrize(
    "plan",
    [
        {"uneven_stages": True, "pp": 3},
        {"first_stage_layers": 7, "last_stage_layers": 7, "pp": 4},
        {"schedule": "zero-bubble", "pp": 4},
        {"vpp": 2, "pp": 4},
    ],
    ids=str,
)
def test_recomputed_layers_in_every_pipeline(plan: dict[str, Any]) -> None:
    """More recomputed layers take longer and hold less, whatever the stages and the schedule."""
    none, some, more = (
        make(batch=48, recompute=mode, recompute_layers=n, **plan)
        for mode, n in (("none", None), ("full", 2), ("full", 6))
    )
    assert none.value("time") < some.value("time") < more.value("time")
    assert none.memory_terms()["activations"] > some.memory_terms()["activations"] > more.memory_terms()["activations"]


# Offload ------------------------------------------------------------------------------------------------------------


def test_offload_moves_bytes_from_the_device_to_the_host() -> None:
    """What leaves the device is on the host; gradients are on both, and two layers are buffered."""
    plain, run = make(), make(offload="weights,activations,optimizer", **HOST)
    assert run.plan.offload == "activations,optimizer,weights"
    there, here = run.host_memory(), run.memory_terms()
    before = plain.memory_terms()
    assert there["optimizer"] == pytest.approx((12 + 4) * LLAMA_7B, rel=1e-12)
    assert there["weights"] == pytest.approx(before["weights/layers"], rel=1e-12)
    assert state(run) == 0
    assert here["weights/layers"] == 0
    assert before["activations"] - here["activations"] == pytest.approx(there["activations"], rel=1e-12)
    layer = (before["weights/layers"] + there["activations"]) / 32
    assert here["workspace/offload"] == pytest.approx(2 * layer, rel=1e-12)
    assert there["total"] == pytest.approx(sum(there.values()) / 2, rel=1e-12)
    assert run.value("memory") < plain.value("memory")


def test_no_part_offloaded_is_no_offload() -> None:
    """With every part 0 neither time nor memory is another's, but for the launch of nothing."""
    parts = {"offloaded_activations": 0, "offloaded_optimizer": 0, "offloaded_weights": 0}
    plain, run = make(), make(offload="activations,optimizer,weights", **HOST, **parts)
    assert run.value("memory") == pytest.approx(plain.value("memory"), rel=1e-12)
    assert run.value("time") == pytest.approx(plain.value("time"), rel=1e-12)
    assert run.host_memory()["total"] == 0


def test_transfers_hide_behind_work_and_never_slow_it_with_faster_links() -> None:
    """A link without limit costs nothing; a slow one bounds the step; without overlap transfers add up."""
    plain = make()
    fast, slow = (make(offload="activations", host_bandwidth=beta) for beta in (1e13, 1e9))
    assert fast.value("time") == pytest.approx(plain.value("time"), rel=1e-12)
    moved = 64 * 2 * fast.host_memory()["activations"]
    assert slow.value("time") >= moved / 1e9
    bare = make(offload="activations", host_bandwidth=1e13, overlap_offload=0)
    assert bare.value("time") == pytest.approx(plain.value("time") + moved / 1e13, rel=1e-9)
    assert slow.shares()["host"] > 0.9
    assert sum(slow.shares().values()) == pytest.approx(1, rel=1e-12)


def test_an_update_on_the_host_moves_its_bytes() -> None:
    """CPU-Adam: 4 bytes of gradient, 24 of state, 2 of weight a parameter, at the bandwidth of the host's memory."""
    run = make(offload="optimizer", **HOST)
    assert run.value("optimizer/host") == pytest.approx(30 * LLAMA_7B / 75e9, rel=1e-12)
    half = make(offload="optimizer", offloaded_optimizer=0.5, **HOST)
    assert half.value("optimizer/host") == pytest.approx(run.value("optimizer/host") / 2, rel=1e-12)
    assert state(half) == pytest.approx(6 * LLAMA_7B, rel=1e-12)

"""What software does with gradients beside their products: kernels that add them, and tensors that have owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common.errors import InputError

if TYPE_CHECKING:
    from symperf.runs.training_run import Run

A100 = "a100-80gb-sxm"


def step(stated: dict[str, Any] | None = None, model: str = "llama-2-7b", system: str = A100, **plan: Any) -> Run:
    fields: dict[str, Any] = {"attention": "flash", "dropout": False} | plan
    return sf.training(model, system, sf.Plan(**fields), batch=512, sequence=2048, **(stated or {}))


def times(run: Run) -> dict[str, float]:
    return {row.name: row.time_s for row in run.table()}


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_kernels_that_add_gradients_move_so_many_bytes_a_weight(precision: str) -> None:
    """6 bytes of PyTorch's accumulation in 16 bits, once for each of 16 micro-batches, at the rate of device memory.

    As much more for 12; where none are stated the product adds, and moves more itself.
    """
    plan: dict[str, Any] = {"dp": 32, "precision": precision}
    system = A100 if precision == "bf16" else "h100-sxm"
    plain, apart = step(**plan, system=system), step({"gradient_sum_bytes": 6.0}, **plan, system=system)
    before, after = times(apart), times(step({"gradient_sum_bytes": 12.0}, **plan, system=system))
    added = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert all(name.endswith("backward_weight") for name in added)
    bound = {name: pair[0] for name, pair in apart.bound.items()}
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11008) + 32000 * 4096
    rate = bound["memory_bandwidth"] * bound["memory_efficiency"]
    assert sum(added.values()) == pytest.approx(16 * matrices * 6 / rate, rel=1e-6)
    assert step({"gradient_sum_bytes": 0.0}, **plan, system=system).value("time") == pytest.approx(plain.value("time"))


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_a_product_whose_gradient_others_add_writes_its_own_alone(precision: str) -> None:
    """2 bytes a weight in place of the accumulated gradient's 4, read and written."""
    runs = [
        step(stated, dp=32, precision=precision, system="h100-sxm") for stated in (None, {"gradient_sum_bytes": 6.0})
    ]
    plain, apart = ({row.name: row.bytes for row in run.table()} for run in runs)
    name, weights = "layer/mlp/down/backward_weight", 4096 * 11008
    assert apart[name] - plain[name] == pytest.approx(16 * 32 * weights * (2 + 6 - 2 * 4))


@pytest.mark.parametrize("model", ["mixtral-8x7b", "deepseek-v4-flash", "deepseek-v3.2"])
def test_every_gradient_of_weights_is_added_so(model: str) -> None:
    """Of products of experts, of heads and of groups too: each takes longer, by FP32's 18 bytes a weight."""
    plain, apart = (times(step(stated, model=model, ep=1, dp=32)) for stated in (None, {"gradient_sum_bytes": 18.0}))
    names = [name for name in plain if name.endswith("backward_weight")]
    assert any("expert" in name for name in names)
    assert all(apart[name] > plain[name] for name in names)


def test_the_optimizer_for_bf16_costs_bloom_what_was_measured() -> None:
    """bigscience, chronicles-prequel.md: 106 layers of 12,288 took 112.69 s in FP16, 118.79 s with it, 5.4 % more."""
    sizes: dict[str, Any] = {"hidden_size": 12288, "num_layers": 106, "intermediate_size": 49152, "vocab_size": 250880}
    plan = sf.Plan.of(
        tp=4,
        pp=12,
        dp=8,
        micro_batch=2,
        zero=1,
        recompute="full",
        attention="eager",
        dropout=True,
        overlap_tp=0.0,
        account_for="both",
    )
    work: dict[str, Any] = {"batch": 2048, "sequence": 2048} | sizes
    half, bf16 = (
        sf.training("gpt3-175b", A100, plan, **work, gradient_bytes=kept, gradient_sum_bytes=moved).value("time")
        for kept, moved in ((2.0, 6.0), (4.0, 18.0))
    )
    assert bf16 / half == pytest.approx(118.79 / 112.69, abs=0.015)


def test_tensors_with_owners_are_summed_on_all_and_broadcast_one_after_the_other() -> None:
    """InternEvo's ZeRO-1: an all-reduce takes twice a reduce-scatter; every broadcast passes all ranks."""
    plan: dict[str, Any] = {"dp": 256, "zero": 1, "overlap_dp": 0.0}
    shards, owned = times(step(**plan)), times(step({"owned_tensors": 9.0}, **plan))
    assert owned["gradients/reduce"] == pytest.approx(2 * shards["gradients/reduce"], rel=0.05)
    many, few, one = (
        found["parameters/gather"] for found in (owned, times(step({"owned_tensors": 1.0}, **plan)), shards)
    )
    start = (many - few) / (256 - 32)  # 288 tensors have all 256 ranks as owners, 32 have 32
    assert (few - 32 * start) / (one - start) == pytest.approx(256 / 255)  # of a gather, a rank has its own part
    bound = {name: pair[0] for name, pair in step({"owned_tensors": 9.0}, **plan).bound.items()}
    up, out = (bound[f"scale_{tier}_bandwidth"] * bound[f"scale_{tier}_efficiency"] for tier in ("up", "out"))
    assert owned["parameters/gather/fill"] == pytest.approx(256 * 2**22 * (32 * 7 / up + 31 / (8 * out)))
    pair = times(step({"owned_tensors": 1.0}, dp=2, zero=1, overlap_dp=0.0))["parameters/gather"]
    assert pair > 2 * 6.7e9 / up  # each rank takes in whole tensors, not the half that it has no part of
    inside = times(step({"owned_tensors": 9.0}, zero_shards=8, **plan))
    assert inside["parameters/gather"] < shards["parameters/gather"]
    assert inside["gradients/reduce"] == pytest.approx(owned["gradients/reduce"])


def test_tensors_that_are_gathered_one_by_one_are_copied_piece_by_piece() -> None:
    """DeepSpeed of 2021: a collective for each of 4 x 32 matrices, and a kernel for the piece of each of 256 ranks."""
    plan: dict[str, Any] = {"dp": 256, "zero": 3, "overlap_gather": 0.0, "overlap_dp": 0.0}
    whole, apart = step(**plan), step({"gathered_tensors": 4.0}, **plan)
    before, after = times(whole), times(apart)
    bound = {name: pair[0] for name, pair in apart.bound.items()}
    weights = 2 * (32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096) + 2 * 32000 * 4096 + 4096)
    moved = 2 * weights / (bound["memory_bandwidth"] * bound["memory_efficiency"])
    copies = 4 * 32 * 256 * bound["launch_latency"] + moved
    for name in ("parameters/gather/forward", "parameters/gather/backward"):
        assert after[f"{name}/pieces"] == pytest.approx(2 * copies, rel=1e-6)  # two micro-batches
        assert after[name] > before[name]  # latencies of 128 collectives for those of one
    assert step({"gathered_tensors": 4.0}, dp=1, zero=3).value("time") == step(dp=1, zero=3).value("time")
    assert step({"gathered_tensors": 4.0}, dp=16, zero=1).value("time") == step(dp=16, zero=1).value("time")


@pytest.mark.parametrize("zero", [0, 2, 3])
def test_owners_are_of_zero_1_alone(zero: int) -> None:
    plan: dict[str, Any] = {"dp": 16, "zero": zero}
    assert step({"owned_tensors": 9.0}, **plan).value("time") == step(**plan).value("time")


@pytest.mark.parametrize("name", ["gradient_sum_bytes", "loss_metric_bytes", "owned_tensors", "gathered_tensors"])
def test_bad_values_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        step({name: -1.0})

"""Experts and exchanges where software was measured: what stands for what, and that nothing changes without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.systems.kernel_constants import FAMILIES
from symperf.systems.software import Software

if TYPE_CHECKING:
    from pathlib import Path

H100 = "h100-sxm"
EXPERTS = {
    "expert_latency": 30e-6,
    "grouped_efficiency": 0.5,
    "expert_memory_efficiency": 0.8,
    "expert_passes": 4.0,
    "choice_latency": 1e-9,
}
DIRECT = {
    "exchange_latency": 11e-6,
    "exchange_hop_latency": 14e-6,
    "exchange_efficiency": 0.57,
    "exchange_out_efficiency": 0.94,
}
BULK = {
    "bulk_exchange_latency": 31e-6,
    "bulk_hop_latency": 33e-6,
    "exchange_units": 20.0,
    "exchange_unit_efficiency": 0.0244,
    "exchange_out_efficiency": 0.94,
}
ALL = EXPERTS | DIRECT | BULK
ROOT = "layer/latent_attention_experts/experts"


def stack(folder: Path, constants: dict[str, float], base: str = "vllm") -> str:
    path = folder / f"mine{len(constants)}.toml"
    lines = [f"{name} = {value!r}" for name, value in constants.items()]
    path.write_text(f'base = "{base}"\n[on.{H100}]\n' + "\n".join(lines), encoding="utf-8")
    return str(path)


def served(profile: str, ep: int = 16, **values: Any) -> Any:
    plan = sf.Plan(dp=ep, ep=ep, precision="fp8")
    work = {"batch": 32 * ep, "prompt": 64, "generate": 8}
    return sf.inference("deepseek-v3", H100, plan, stack=profile, **work, **values)


def parts(run: Any, phase: str) -> dict[str, Any]:
    head = f"{phase}/{ROOT}/"
    return {row.name.removeprefix(head): row for row in run.table() if row.name.startswith(head)}


def test_these_are_the_constants_of_the_families() -> None:
    assert {*ALL} == {n for f in ("experts", "direct_exchanges", "bulk_exchanges") for n in FAMILIES[f]}


def test_one_operation_stands_for_the_kernels_of_experts(tmp_path: Path) -> None:
    """Sort, products, activation and sum go; the router, transfers and shared experts stay as they are."""
    plain, found = served("vllm"), served(stack(tmp_path, EXPERTS))
    for phase in ("prefill", "decode"):
        before, after = parts(plain, phase), parts(found, phase)
        assert before.keys() - after.keys() == {"permute", "up", "activation", "down", "unpermute"}
        assert after.keys() - before.keys() == {"routed"}
        assert all(after[name].each_s == before[name].each_s for name in after.keys() & before.keys())
        assert after["routed"].flops == pytest.approx(before["up"].flops + before["down"].flops)


def test_the_operation_is_its_formula(tmp_path: Path) -> None:
    """A decode step of 32 sequences on each of 16 devices, of 256 experts with 8 for a token; by hand."""
    run = served(stack(tmp_path, EXPERTS))
    system, ep, tokens = run.system, 16, 32.0
    rows, h, f = tokens * 8, 7168.0, 2048.0
    groups = 256 * (1 - (1 - 8 / 256) ** (tokens * ep)) / ep
    work = 2 * h * 3 * f * (rows + 16 * groups) / (system.matrix_rate("fp8").value * 0.5)
    traffic = groups * h * 3 * f + rows * ((h + f) + 2 * (2 * f + h))
    moved = traffic / (system.value("memory_bandwidth") * 0.8)
    ridge = system.value("ridge_efficiency")
    beside = 4 * rows * (h + f) * 2 / system.value("memory_bandwidth")
    choices = tokens * 8 * ep * (1 - (1 - 1 / ep) ** 8)
    gap = 5 * 2.1e-6 * (1 - 0.38)
    expected = 30e-6 + max(work, moved, (work + moved) / (2 * ridge)) + beside + 1e-9 * choices + gap
    assert parts(run, "decode")["routed"].each_s == pytest.approx(expected, rel=1e-9)


def test_transfers_are_direct_in_decoding_and_in_bulk_in_prefill(tmp_path: Path) -> None:
    """Each with its own constants: those of the other move it not at all."""
    run = served(stack(tmp_path, ALL))
    slow = {name: value * (4 if "latency" in name else 0.25) for name, value in (DIRECT | BULK).items()}
    for names, phase in ((DIRECT, "decode"), (BULK, "prefill")):
        moved = served(
            stack(tmp_path, ALL), **{name: slow[name] for name in names if name != "exchange_out_efficiency"}
        )
        for each in ("prefill", "decode"):
            one, other = (parts(which, each)["dispatch"].each_s for which in (run, moved))
            assert (other > one) == (each == phase)


def test_a_software_with_one_kind_of_exchange_has_it_in_both_phases(tmp_path: Path) -> None:
    bulk, direct = served(stack(tmp_path, BULK)), served(stack(tmp_path, DIRECT))
    for run, name in ((bulk, "bulk_exchange_latency"), (direct, "exchange_latency")):
        slow = run.bind(**{name: 1e-3})
        for phase in ("prefill", "decode"):
            assert parts(slow, phase)["combine"].each_s > parts(run, phase)["combine"].each_s


def test_a_family_that_is_not_whole_changes_nothing(tmp_path: Path) -> None:
    plain = served("vllm")
    for family in (EXPERTS, DIRECT, BULK):
        for missing in family:
            if missing == "exchange_out_efficiency":
                continue
            some = {name: value for name, value in family.items() if name != missing}
            run = served(stack(tmp_path, some))
            assert run.structure == plain.structure
            assert run.value("time") == plain.value("time")


def test_uneven_loads_are_a_statement_of_the_run(tmp_path: Path) -> None:
    """They slow the fullest device, more the more uneven; without dealt experts, or unstated, loads are even."""
    for profile in ("vllm", stack(tmp_path, ALL)):
        even, *skewed = (served(profile, **values) for values in ({}, {"routing_skew": 0.01}, {"routing_skew": 0.3}))
        assert even.value("time") < skewed[0].value("time") < skewed[1].value("time")
        for phase in ("prefill", "decode"):
            assert parts(skewed[1], phase)["dispatch"].bytes >= parts(even, phase)["dispatch"].bytes
    alone = {"precision": "fp8", "dp": 1}
    one, other = (
        sf.inference("mixtral-8x7b", H100, sf.Plan(**alone), batch=8, prompt=64, generate=8, **values)
        for values in ({}, {"routing_skew": 0.3})
    )
    assert one.value("time") == other.value("time")
    with pytest.raises(InputError, match="routing_skew"):
        served("vllm", routing_skew=1.5)


def test_the_shares_still_sum_to_one(tmp_path: Path) -> None:
    shares = served(stack(tmp_path, ALL), routing_skew=0.2).shares()
    assert sum(shares.values()) == pytest.approx(1, abs=1e-12)


def test_training_exchanges_in_bulk_under_its_software() -> None:
    """Each of the four transfers is shorter than the library's between nodes; the rest of the step is as it was."""
    plan = sf.Plan(dp=64, ep=64, precision="fp8", node_limit=4)
    asked: dict[str, Any] = {"batch": 128, "sequence": 1024}
    plain, found = (
        sf.training("qwen3-30b-a3b", "h800-sxm", plan, **asked, **values) for values in ({}, {"stack": "deepep"})
    )
    before, after = ({row.name: row.each_s for row in run.table()} for run in (plain, found))
    changed = {name for name in before if before[name] != after[name]}
    sent = {name for name in before if "/dispatch/" in name or "/combine/" in name}
    assert changed == sent
    assert all(after[name] < before[name] for name in sent)


def test_tables_of_training_software_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    for text, told in (
        ("[on.h800-sxm]\nbulk_latency = 1e-6", "bulk_exchange_latency"),
        ("[on]\nh800-sxm = 3", "expected a table"),
        ("[on.h800-sxm]\nexchange_units = 0.01", "exchange_units"),
    ):
        path.write_text(f'name = "odd"\n{text}\n', encoding="utf-8")
        with pytest.raises(InputError, match=told):
            Software.load(path)


def test_devices_that_have_whole_experts_look_for_theirs(tmp_path: Path) -> None:
    """Once a layer, in both passes; a device alone has all experts."""
    for ep, times in ((8, 1), (1, 0)):
        without = served(stack(tmp_path, EXPERTS), ep)
        having = served(stack(tmp_path, EXPERTS | {"expert_map_latency": 25e-6}), ep)
        for phase in ("prefill", "decode"):
            before, after = (parts(run, phase)["routed"] for run in (without, having))
            assert after.each_s - before.each_s == pytest.approx(times * 25e-6, rel=1e-6, abs=1e-12)

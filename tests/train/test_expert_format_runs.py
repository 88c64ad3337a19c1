"""Formats in which tokens go to experts and come back, in whole runs of training and inference, and what is refused."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import pytest
from support.expert_format_cases import BACK, FP8, THERE, returned, sent

import symperf as sf
from symperf.cli import main
from symperf.formulas.language.symbols import SYMBOLS
from symperf.infer.stack import CATALOGUE, Stack
from symperf.plans.structure import SENT

if TYPE_CHECKING:
    from pathlib import Path

LIMITED: dict[str, Any] = {"pp": 16, "dp": 128, "ep": 64, "node_limit": 4, "uneven_stages": True, "zero": 1}
SPLIT: dict[str, Any] = {"tp": 4, "dp": 8, "ep": 4, "expert_tp": 2, "sequence_parallel": True, "micro_batch": 1}


def deepseek(precision: str = "fp8", schedule: str = "1f1b", **values: Any) -> Any:
    """DeepSeek-V3 as it was trained, with full recomputation."""
    plan = sf.Plan(**LIMITED, schedule=schedule, precision=precision, recompute="full")
    model, system = sf.Model.load("deepseek-v3"), sf.System.load("h800-sxm")
    return sf.training(model, system, plan, batch=15360, sequence=4096, num_multi_token_layers=0, **values)


def mixtral(precision: str = "bf16", **values: Any) -> Any:
    """Mixtral with experts that are dealt and split."""
    plan = sf.Plan(**SPLIT, precision=precision)
    return sf.training(
        sf.Model.load("mixtral-8x7b"), sf.System.load("h100-sxm"), plan, batch=64, sequence=4096, **values
    )


def served(
    precision: str = "fp8",
    stack: str = "vllm",
    ep: int = 32,
    system: str = "h800-sxm",
    grouped: bool = True,
    **values: Any,
) -> Any:
    """DeepSeek-V3 in inference on 32 devices, whose experts form groups that limit the nodes of a token, or not."""
    plan = sf.Plan(dp=32, ep=ep, precision=precision)
    work = {"batch": 128, "prompt": 4096, "generate": 32}
    model = sf.Model.load("deepseek-v3")
    model = dataclasses.replace(model, architecture=dataclasses.replace(model.architecture, grouped_routing=grouped))
    return sf.inference(model, sf.System.load(system), plan, **work, stack=stack, **values)


def executed(run: Any) -> dict[str, Any]:
    """Rows of the table by name, of operations that take time."""
    return {row.name: row for row in run.table() if row.each_s > 0}


# --- training


def test_three_quarters_of_the_bytes() -> None:
    """FP8 there and BF16 back: (1 + 2) / 4 of what 16 bits both ways are, and scales."""
    one, two = deepseek(**{THERE: 1.0}), deepseek()

    def moved(run: Any) -> float:
        return math.fsum(row.bytes for row in run.table() if sent(row.name) or returned(row.name))

    assert moved(deepseek(**{THERE: FP8})) / moved(two) == pytest.approx((FP8 + 2) / 4, rel=1e-12)
    assert moved(one) / moved(two) == pytest.approx(3 / 4, rel=1e-12)


def test_fp8_there_on_a_whole_run() -> None:
    plain, found = executed(deepseek()), executed(deepseek(**{THERE: FP8}))
    changed = {name for name in plain if plain[name].each_s != pytest.approx(found[name].each_s, rel=1e-12)}
    changed.discard("pipeline/bubble")
    kinds = {"/".join(name.split("/")[-2:]) for name in changed if "/cast/" not in name}
    phases = ("forward", "recompute")
    assert kinds == {
        *(f"{name}/{phase}" for name in ("permute", "dispatch") for phase in phases),
        "combine/backward",
        "unpermute/backward",
    }
    assert {name.split("experts/")[-1] for name in changed if "/cast/" in name} == {
        "up/cast/forward",
        "up/cast/recompute",
        "down/cast/backward_input",
    }
    assert {name.rsplit("/", 2)[-2] for name in set(found) - set(plain)} == {"quantise"}
    for name in changed:
        assert found[name].each_s < plain[name].each_s


def test_split_experts_gather_what_arrived() -> None:
    """With t_e above 1 the rows of a split expert are gathered as they arrived; sums stay in 16 bits."""
    plain, found = executed(mixtral("fp8")), executed(mixtral("fp8", **{THERE: FP8}))
    for name in ("gather/forward", "scatter/backward"):
        assert found[f"layer/experts/{name}"].bytes == pytest.approx(plain[f"layer/experts/{name}"].bytes * FP8 / 2)
    for name in ("scatter/forward", "gather/backward"):
        assert found[f"layer/experts/{name}"].bytes == plain[f"layer/experts/{name}"].bytes


def test_sixteen_bit_products_restore_what_arrived() -> None:
    plain, found = executed(mixtral()), executed(mixtral(**{THERE: FP8, BACK: FP8}))
    assert {name.split("experts/")[-1] for name in set(found) - set(plain)} == {
        "quantise/forward",
        "restore/forward",
        "restore/backward",
        "quantise_results/forward",
        "quantise_results/backward",
    }
    assert found["layer/experts/up/forward"].bytes == plain["layer/experts/up/forward"].bytes


def test_unstated_formats_follow_activations() -> None:
    run = mixtral(activation_bytes=4)
    assert [run.bound[name][0] for name in SENT] == [4.0, 4.0]
    assert run.structure.sent == ()
    assert not {*SENT} & {str(symbol) for symbol in run.time.expr.free_symbols}
    assert mixtral(**{THERE: 1.0}).bound[BACK][0] == 2.0


def test_a_model_without_experts_sends_nothing() -> None:
    work: dict[str, Any] = {"batch": 8, "sequence": 1024}
    asked = (sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(dp=8))
    plain, found = sf.training(*asked, **work), sf.training(*asked, **work, **{THERE: 1.0})
    assert found.structure == plain.structure
    assert found.value("time") == plain.value("time")


def test_a_sweep_is_the_single_runs() -> None:
    run = mixtral("fp8")
    swept = run.sweep(**{THERE: [FP8, 1.5, 2.0]})["time"].values
    assert swept == pytest.approx([run.bind(**{THERE: each}).value("time") for each in (FP8, 1.5, 2.0)], rel=1e-12)
    assert swept[2] == pytest.approx(run.value("time"), rel=1e-12)
    of_fixed = run.bind(**{THERE: FP8}).sweep(micro_batch=[1, 2])["time"].values
    assert of_fixed[0] == pytest.approx(swept[0], rel=1e-12)


# --- inference


def test_software_that_sends_fp8() -> None:
    """vLLM with DeepEP under FP8 is vLLM to which the format is stated; in BF16 it is vLLM; and so without dealing.

    On systems on which its kernels were not measured, that is.
    """
    on: dict[str, Any] = {"system": "h100-sxm"}
    found = served(stack="vllm-deepep", **on)
    assert found.value("time") == served(**on, **{THERE: FP8}).value("time") < served(**on).value("time")
    assert "DeepEP" in found.bound[THERE][1]
    assert (found.bound[THERE][0], found.bound[BACK][0]) == (FP8, 2.0)
    for how in ({"precision": "bf16"}, {"ep": 1}):
        assert served(stack="vllm-deepep", **on, **how).value("time") == served(**on, **how).value("time")
    assert served(stack="vllm-deepep", **on, **{THERE: 2.0}).value("time") == served(**on).value("time")


@pytest.mark.parametrize(("grouped", "most"), [(False, 0.6), (True, 0.75)])
def test_exchanges_of_deepep_are_faster_than_those_of_a_library(grouped: bool, most: float) -> None:
    """On an H800, between nodes: DeepEP's own times are a third to a half of an all-to-all's.

    Such an all-to-all sends a token between nodes anew for every expert. Where groups of experts limit the nodes of a
    token it crosses once to each under either; what is left is what DeepEP reaches of the links, and its start.
    """
    plain = executed(served(grouped=grouped, **{THERE: FP8}))
    found = executed(served(stack="vllm-deepep", grouped=grouped))
    changed = {
        name.split("/", 1)[1] for name in plain if plain[name].each_s != pytest.approx(found[name].each_s, rel=1e-12)
    }
    root = "layer/latent_attention_experts/experts"
    assert changed == {f"{root}/dispatch", f"{root}/combine"}
    for phase in ("prefill", "decode"):
        for name in ("dispatch", "combine"):
            path = f"{phase}/{root}/{name}"
            assert found[path].each_s < most * plain[path].each_s


def test_that_profile_is_vllm_but_for_experts() -> None:
    """It repeats vLLM's figures: a change of one file is one of both; and what DeepEP reaches on an H800."""
    one, two = Stack.load("vllm"), Stack.load("vllm-deepep")
    assert dataclasses.replace(two, name=one.name, title=one.title, experts=one.experts, reached=one.reached) == one
    assert (dict(one.experts), list(two.experts), list(two.sent_in("fp8"))) == ({}, ["fp8"], [THERE])


def test_fp8_there_in_inference() -> None:
    plain, found = executed(served()), executed(served(**{THERE: FP8}))
    assert set(plain) == set(found)
    changed = {
        name.rsplit("/", 1)[-1] for name in plain if plain[name].each_s != pytest.approx(found[name].each_s, rel=1e-12)
    }
    assert changed == {"permute", "dispatch"}
    assert served(**{THERE: FP8}).value("memory") < served().value("memory")
    both = executed(served("bf16", **{THERE: FP8, BACK: FP8}))
    added = {name.rsplit("/", 1)[-1] for name in set(both) - set(plain)}
    assert added == {"quantise", "restore", "quantise_results"}


def test_a_bandwidth_bound_dispatch_is_as_long_as_its_bytes() -> None:
    plain, found = executed(served()), executed(served(**{THERE: FP8}))
    name = "prefill/layer/latent_attention_experts/experts/dispatch"
    assert found[name].each_s / plain[name].each_s == pytest.approx(FP8 / 2, rel=0.02)


# --- what is refused, and what is told


@pytest.mark.parametrize("value", [0, -1, 1 / 32, 2000, float("nan"), "wide", True])
@pytest.mark.parametrize("name", SENT)
def test_values_out_of_range(name: str, value: Any) -> None:
    for make in (mixtral, served):
        with pytest.raises(sf.InputError, match=name):
            make(**{name: value})


def test_a_near_name_is_told() -> None:
    with pytest.raises(sf.InputError, match=THERE):
        mixtral(dispatch_elements_bytes=1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('experts = "fp8"', "experts"),
        ("[experts.fp9]", "fp9"),
        ("[experts.fp8]\ndispatch_bytes = 1", "dispatch_element_bytes"),
        ("[experts.fp8.dispatch_element_bytes]\nvalue = 0\nsource = 's'", "dispatch_element_bytes"),
        ("[experts.fp8.dispatch_element_bytes]\nvalue = 'wide'", "dispatch_element_bytes"),
        ("[experts]\nfp8 = 1", "experts.fp8"),
    ],
)
def test_bad_profiles(text: str, told: str, tmp_path: Path) -> None:
    lines = (CATALOGUE / "vllm.toml").read_text()
    place = tmp_path / "mine.toml"
    place.write_text(f"{text}\n{lines}" if text.startswith("experts") else f"{lines}\n{text}\n")
    with pytest.raises(sf.InputError, match=told):
        Stack.load(str(place))


def test_they_are_symbols_of_the_vocabulary(capsys: pytest.CaptureFixture[str]) -> None:
    assert {SYMBOLS[name].group for name in SENT} == {"format"}
    plan = ["--dp", "8", "--ep", "8", "--precision", "fp8", "--batch", "8", "--sequence", "512", "--json"]
    assert main(["train", "mixtral-8x7b", "-s", "h100-sxm", *plan, "--set", f"{THERE}=1.03125"]) == 0
    assert "quantise" in capsys.readouterr().out

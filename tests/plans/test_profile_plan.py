"""What a training software chooses for fields of a plan that are not given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.plans.plan_fields import FIELDS
from symperf.systems.software import Software, names

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = ["train", "mixtral-8x7b", "-s", "h100-sxm", "--tp", "2", "--dp", "4", "--ep", "4", "--batch", "8"]
TRAIN += ["--sequence", "2048", "--json", "--stack"]


@pytest.mark.parametrize("name", names())
def test_every_choice_is_a_field_with_a_source(name: str) -> None:
    software = Software.load(name)
    assert all(chosen.source for chosen in software.plan.values())
    assert set(software.plan) <= set(FIELDS)
    for degrees in ({}, {"tp": 2, "dp": 2}, {"dp": 4, "ep": 2}, {"tp": 2, "dp": 2, "ep": 4, "sequence_parallel": True}):
        plan = sf.Plan.under(name, **degrees)
        assert all(getattr(plan, field) == value for field, value in degrees.items())


def test_an_expert_is_split_as_its_framework_splits_it() -> None:
    """Megatron-LM takes the tensor-parallel degree where none is given; the plan alone has whole experts."""
    degrees = {"tp": 2, "dp": 4, "ep": 4}
    assert sf.Plan.under("megatron-core-2026", **degrees).expert_tp == 2
    assert sf.Plan.under("torchtitan-2026", **degrees).effective_expert_tp == 1
    assert sf.Plan.under("megatron-core-2026", tp=2, dp=4).expert_tp is None


@pytest.mark.parametrize("name", ["megatron-core-2024", "megatron-core-2026", "megatron-bridge-2026"])
def test_transfers_are_hidden_between_interleaved_stages_alone(name: str) -> None:
    assert sf.Plan.under(name, pp=4, vpp=2).overlap_pp == 1
    assert sf.Plan.under(name, pp=4, vpp=2, overlap_pp=0.5).overlap_pp == 0.5
    assert sf.Plan.under(name, pp=4).overlap_pp == 0
    assert sf.Plan.under("megatron-2021", pp=4, vpp=2).overlap_pp == 0


def test_what_is_given_stays_even_where_it_is_the_default(call: Any) -> None:
    def answer(*flags: str) -> dict[str, Any]:
        code, out, err = call([*TRAIN, "torchtitan-2026", *flags])
        assert (code, err) == (0, "")
        return dict(json.loads(out))

    chosen, kept = answer(), answer("--zero", "0", "--loss", "unfused", "--sequence-parallel")
    assert chosen["memory_bytes"]["weights"] < kept["memory_bytes"]["weights"]
    plan = {"tp": 2, "dp": 4, "ep": 4}
    run = sf.training(
        "mixtral-8x7b",
        "h100-sxm",
        sf.Plan.under("torchtitan-2026", **plan),
        batch=8,
        sequence=2048,
        stack="torchtitan-2026",
    )
    assert chosen["time_s"] == pytest.approx(run.value("time"))
    assert answer("--set", "zero=0")["memory_bytes"]["weights"] == kept["memory_bytes"]["weights"]


def test_each_software_has_the_loss_and_the_sharding_of_its_framework() -> None:
    found = {name: sf.Plan.under(name, dp=8) for name in names()}
    assert {name: (plan.zero, plan.loss) for name, plan in found.items() if "20" in name and "foundry" not in name} == {
        "megatron-2021": (0, "unfused"),
        "megatron-core-2024": (1, "unfused"),
        "megatron-core-2026": (1, "unfused"),
        "megatron-bridge-2026": (1, "fused"),
        "deepspeed-2025": (0, "unfused"),
        "torchtitan-2026": (3, "chunked"),
        "torchtitan-2026-compiled": (3, "chunked"),
        "maxtext-2026": (3, "fused"),
        "liger-2025": (0, "fused-linear"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plan = 1", "plan: found 1, expected a table"),
        ("[plan]\nzero = 3", "plan.zero: found 3, expected a table"),
        ("[plan]\nzero = { value = 3, why = 'x' }", "plan.zero: unknown key 'why'"),
        ("[plan]\nzero = { source = 'x' }", "plan.zero: value: found None"),
        ("[plan]\nzeros = { value = 3 }", "plan.zeros: unknown field; did you mean zero or"),
        ("[plan]\nzero = { value = 7 }", "plan.zero: zero: found 7"),
        ("[plan]\nloss = { value = 'fusd' }", "plan.loss: loss: found 'fusd'"),
        ("[plan]\nzero = { value = 3, needs = 'loss' }", "needs: found 'loss', expected a degree"),
        ("[plan]\ntp = { value = 2, needs = 'tpp' }", "needs: found 'tpp', expected a degree"),
    ],
)
def test_bad_choices_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "mine"\n{text}\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        sf.Plan.under(path, dp=2)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

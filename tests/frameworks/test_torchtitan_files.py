"""Files of torchtitan: how it deals layers to stages, and which of them it computes again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf

if TYPE_CHECKING:
    from pathlib import Path

DEALT = ("account_for", "uneven_stages", "first_stage_layers", "last_stage_layers", "layout")


@pytest.mark.parametrize(
    ("options", "layers", "wanted"),
    [
        ({}, 34, {"account_for": "both", "uneven_stages": False}),
        ({}, 32, {"account_for": "both", "uneven_stages": True}),
        ({"first": 0, "last": 0}, 32, {}),
        ({"first": 0, "last": 2}, 30, {"first_stage_layers": 8, "last_stage_layers": 6}),
        ({"first": 0, "last": 2}, 32, {"layout": "Et*9|t*9|t*8|t*6L"}),
        ({"first": 2, "last": 2}, 4, {"layout": "E|(t*2|)*2L"}),
        ({"first": 12}, 32, "the first stage has 12 layers less and the last 1, expected at most the 11 of a stage"),
        ({"layers_per_stage": 5}, 32, "5 layers a stage of 32, .* make 7 stages, expected pp = 4"),
    ],
    ids=str,
)
def test_stages_are_dealt_as_torchtitan_deals_them(
    tmp_path: Path, options: dict[str, int], layers: int, wanted: dict[str, Any] | str
) -> None:
    """By default both ends count as a layer, and the first stages have what is left over."""
    names = {"first": "first_stage_less_layers", "last": "last_stage_less_layers"}
    lines = [f"pipeline_parallel_{names.get(name, name)} = {value}" for name, value in options.items()]
    text = "\n".join(["[parallelism]", "pipeline_parallel_degree = 4", 'pipeline_parallel_schedule = "1F1B"', *lines])
    (tmp_path / "a.toml").write_text(text + '\n[activation_checkpoint]\nmode = "full"\n', encoding="utf-8")
    settings = sf.read_framework(tmp_path / "a.toml")
    if isinstance(wanted, str):
        with pytest.raises(sf.InputError, match=wanted):
            settings.plan(layers, devices=8)
        return
    plan, _ = settings.plan(layers, devices=8)
    usual = {name: getattr(sf.Plan(), name) for name in DEALT}
    assert {name: getattr(plan, name) for name in DEALT} == {**usual, **wanted}


@pytest.mark.parametrize(
    ("option", "over", "wanted"),
    [
        (None, {}, ("full", 16)),
        ("3", {}, ("full", 10)),
        ("1", {}, ("full", None)),
        ("64", {}, ("none", None)),
        ("op", {}, ("selective", None)),
        (None, {"recompute": "none"}, ("none", None)),
        (None, {"recompute_layers": 5}, ("full", 5)),
    ],
    ids=str,
)
def test_torchtitan_computes_one_layer_of_several_again(
    tmp_path: Path, option: str | None, over: dict[str, Any], wanted: tuple[str, int | None]
) -> None:
    """By default every second one of a model's 32."""
    line = "" if option is None else f'selective_ac_option = "{option}"\n'
    (tmp_path / "a.toml").write_text(f'[activation_checkpoint]\nmode = "selective"\n{line}', encoding="utf-8")
    plan, _ = sf.read_framework(tmp_path / "a.toml").plan(32, devices=8, **over)
    assert (plan.recompute, plan.recompute_layers) == wanted


def test_layers_are_dealt_to_the_stages_that_override_the_files(tmp_path: Path) -> None:
    text = '[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = "Interleaved1F1B"\n'
    (tmp_path / "a.toml").write_text(text + '[activation_checkpoint]\nmode = "full"\n', encoding="utf-8")
    settings = sf.read_framework(tmp_path / "a.toml")
    dealt = []
    for over in ({}, {"pp": 17}, {"pp": 2, "schedule": "1f1b"}, {"pp": 1, "schedule": None}):
        plan, _ = settings.plan(32, devices=136, **over)
        dealt.append((plan.vpp, plan.account_for, plan.uneven_stages))
    assert dealt == [(2, "both", True), (2, "both", False), (1, "both", False), (1, "none", False)]

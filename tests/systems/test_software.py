"""Training software: shares of efficiencies, their spreads and sources, and refusals."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.systems.software import SCALED, Software, names
from symperf.systems.system import catalogue_names

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = [
    "train",
    "gpt-22b",
    "-s",
    "h100-sxm",
    "--tp",
    "8",
    "--batch",
    "8",
    "--sequence",
    "2048",
    "--attention",
    "flash",
]


@pytest.mark.parametrize("name", names())
def test_every_profile_has_sources_and_sensible_shares(name: str) -> None:
    software = Software.load(name)
    assert (software.name, bool(software.title), bool(software.source)) == (name, True, True)
    for share in software.shares:
        quantity = share.quantity
        assert quantity.source
        assert 0 < (quantity.low or 0) <= quantity.value <= (quantity.high or 0) <= 1
        assert set(share.systems) <= set(catalogue_names())


def test_a_share_multiplies_value_and_spread() -> None:
    system = sf.System.load("a100-80gb-sxm")
    found = Software.load("llm-foundry-2023").on(system).quantities["attention_efficiency"]
    before = system.quantities["attention_efficiency"]
    assert found.value == pytest.approx(0.555 * before.value)
    assert before.low is not None
    assert found.low is not None
    own, given = math.log(before.low / before.value), math.log(0.4 / 0.555)
    assert math.log(found.low / found.value) == pytest.approx(-math.hypot(own, given))
    assert "arXiv 2307.08691" in found.source
    assert before.source in found.source


def test_a_share_of_named_systems_leaves_others_alone() -> None:
    software = Software.load("flash-attention-2")
    for name, changed in (("h100-sxm", True), ("h200-sxm", True), ("a100-80gb-sxm", False), ("b200-sxm", False)):
        system = sf.System.load(name)
        assert (software.on(system).quantities != system.quantities) is changed


def test_a_run_under_a_slower_software_is_slower_by_its_kernels() -> None:
    model, system, plan = sf.Model.load("gpt-22b"), sf.System.load("h100-sxm"), sf.Plan(tp=8, attention="flash")
    best = sf.training(model, system, plan, batch=8, sequence=2048)
    slow = sf.training(model, system, plan, batch=8, sequence=2048, stack="flash-attention-2")
    assert slow.structure == best.structure
    ratio = slow.value("layer/attention/flash/forward") / best.value("layer/attention/flash/forward")
    assert 1.5 < ratio <= 1 / 0.577
    assert slow.value("layer/mlp/up/forward") == best.value("layer/mlp/up/forward")
    same = sf.training(model, system, plan, batch=8, sequence=2048, stack="transformer-engine")
    assert same.value("time") == best.value("time")


def test_the_command_line_takes_and_lists_them(call: Any) -> None:
    code, out, err = call([*TRAIN, "--stack", "flash-attention-2", "--json"])
    assert (code, err) == (0, "")
    (entry,) = [row for row in json.loads(out)["overheads"] if row["name"] == "attention_efficiency"]
    assert "under flash-attention-2" in entry["source"]
    code, out, _ = call(["list", "stacks", "--json"])
    kinds = {row["name"]: row["kind"] for row in json.loads(out)["stacks"]}
    assert {kinds[name] for name in names()} == {"training"}
    assert kinds["vllm"] == "serving"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing name"),
        ('name = "x"\nshares = 1', "unknown key 'shares'; did you mean share?"),
        ('name = "x"\nshare = 1', "share: found 1, expected tables [[share]]"),
        ('name = "x"\n[[share]]\nefficiency = "matrix_efficency"\nvalue = 0.5', "did you mean matrix_efficiency"),
        ('name = "x"\n[[share]]\nefficiency = "matrix_efficiency"\nvalue = 1.5', "found 1.5"),
        ('name = "x"\n[[share]]\nefficiency = "matrix_efficiency"\nvalue = 0.5\nlow = 0.6', "low <= value <= high"),
        ('name = "x"\n[[share]]\nefficiency = "matrix_efficiency"\nsystems = "h100"\nvalue = 0.5', "a list of names"),
        ('name = "x"\n[[share]]\nefficiency = "matrix_efficiency"\nworth = 0.5', "unknown key 'worth'"),
        ("name = [", "not valid TOML"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Software.load(path)
    assert message in str(caught.value)
    assert "mine.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_names_are_refused_with_the_nearest(call: Any) -> None:
    code, out, err = call([*TRAIN, "--stack", "flash-atention-2"])
    assert (code, out) == (2, "")
    assert "flash-attention-2" in err
    assert "matrix_efficiency" in SCALED

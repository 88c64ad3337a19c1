"""Bad technologies and budgets are one clear line; the command line; a warm one imports no SymPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.paths import ROOT

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.technology import Technology

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def load(*arguments: Any, **more: Any) -> Callable[[], Any]:
    return lambda: Technology.load(*arguments, **more)


def chip(
    name: str = "deepflow", node: str | None = None, memory: str | None = None, **budget: Any
) -> Callable[[], Any]:
    return lambda: Technology.load(name, node, memory=memory).chip(**budget)


BAD: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "a node outside the table": (load("deepflow", "4nm"), ("node", "'4nm'", "14nm or 10nm", "5nm?")),
    "a node that a set has not": (load("tsmc", "1nm"), ("technology tsmc", "'1nm'", "7nm or 5nm or 3nm or 2nm")),
    "an unknown set": (load("deepflo"), ("technology", "'deepflo'", "did you mean deepflow?")),
    "no set at all": (load(7), ("technology", "found 7", "the path of a .toml file")),
    "an unknown memory": (load(memory="hbm9"), ("memory", "'hbm9'", "did you mean")),
    "an unknown network": (load("ampere", scale_up="nvlink9"), ("scale_up", "'nvlink9'", "nvlink5")),
    "a network of the other kind": (load("ampere", scale_up="ndr"), ("scale_up", "'ndr'", "nvlink2")),
    "an unknown quantity": (load(values={"core_flop": 3}), ("unknown name 'core_flop'", "did you mean core_flops")),
    "a margin that the law has not": (
        load(values={"core_margin": "0.01 V"}),
        ("core_margin", "a third of", "0.0667 V"),
    ),
    "a voltage below the threshold": (load(values={"core_voltage": "0.1 V"}), ("core_voltage", "0.1 V", "above")),
    "an area that holds no core": (chip(area_core=1e-4), ("area_core", "0.0815 mm2", "3.04 mm2", "8 cores")),
    "a share above 1": (chip(area_core=1.2), ("area_core", "found 1.2", "between")),
    "shares that sum to more than 1": (chip(area_core=0.9), ("shares area_*", "1.229", "at most 1")),
    "powers that sum to more than 1": (chip(power_core=0.9), ("shares power_*", "at most 1")),
    "edges that sum to more than 1": (chip(edge_memory=0.7), ("shares edge_*", "1.2", "at most 1")),
    "a memory that the perimeter has not": (chip(edge_memory=0.01), ("hbm1", "perimeter", "2.56 mm", "1.142 mm")),
    "a memory that the package has not": (chip(package_area="850 mm2"), ("hbm1 does not fit", "100 mm2", "35 and")),
    "a memory that has no controller": (chip(area_memory=1e-4), ("hbm1 does not fit", "5 mm2 of controller", "0.0815")),
    "a package smaller than the die": (chip(package_area="800 mm2"), ("package_area", "800 mm2", "815 mm2")),
    "a memory without an area": (chip(memory="gddr6"), ("gddr6 has no area", "stacks")),
    "no power for the memory": (chip(power_memory=0), ("power_memory", "found 0", "above zero")),
    "a memory that leaks all its power": (chip(power_memory=1e-4), ("memory_bandwidth is 0", "leaks")),
    "a unit that is missing": (chip(die_area=815), ("die_area", "found 815", "is the unit missing?")),
    "a unit of something else": (chip(power="300 mm"), ("power", "'300 mm'", "expected a power such as 400 W")),
    "an unknown budget": (chip(die_are=1), ("unknown name 'die_are'", "die_area?")),
    "half a core": (chip(cores=1.5), ("cores", "found 1.5", "whole number")),
    "a figure that a chip has not": (
        lambda: chip()().value("matrix_rat"),
        ("unknown figure 'matrix_rat'", "matrix_rate"),
    ),
    "a system without a name": (lambda: chip()().system(" "), ("name", "' '", "not empty")),
}


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.replace(" ", "-"))
def test_bad_input_is_one_clear_line(case: str) -> None:
    act, words = BAD[case]
    with pytest.raises(sf.InputError) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text
    assert all(word in text for word in words), text


GOOD = """
name = "mine"
title = "my set"
nodes = ["a", "b"]
memory = "hbm2"
[step]
voltage = 0.9
core_area = 0.5
core_power = 0.5
sram_area = 0.5
sram_energy = 0.5
port_area = 0.5
controller_area = 0.9
"""
FILES = {
    "an unknown key": (GOOD.replace("title", "titel"), ("unknown key 'titel'", "title?")),
    "no nodes": (GOOD.replace('nodes = ["a", "b"]', "nodes = []"), ("nodes", "expected a list of names")),
    "a step without a factor": (GOOD.replace("port_area = 0.5\n", ""), ("b", "missing port_area")),
    "an unknown factor": (GOOD + "core_energy = 0.5\n", ("unknown name 'core_energy'",)),
    "a factor out of range": (GOOD.replace("core_area = 0.5", "core_area = 50"), ("core_area", "found 50", "between")),
    "no base": (GOOD, ("base", "missing core_area")),
}


def _base() -> str:
    text = (ROOT / "symperf" / "catalogue" / "technology" / "sets" / "ampere.toml").read_text(encoding="utf-8")
    return text[text.index("[base.core_area]") :]


@pytest.mark.parametrize("case", FILES, ids=lambda case: case.replace(" ", "-"))
def test_a_bad_file_is_one_clear_line(case: str, tmp_path: Path) -> None:
    text, words = FILES[case]
    path = tmp_path / "mine.toml"
    path.write_text(text if case == "no base" else text + _base(), encoding="utf-8")
    with pytest.raises(sf.InputError) as caught:
        Technology.load(path, "b")
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_users_own_set(tmp_path: Path) -> None:
    """A file with steps of its own, and one of them special to a node."""
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + "[step.b]\ncore_area = 0.25\n" + _base(), encoding="utf-8")
    first, second = Technology.load(path), Technology.load(path, "b")
    assert second.quantities["core_area"].value == pytest.approx(0.25 * first.quantities["core_area"].value)
    assert second.quantities["core_power"].value == pytest.approx(0.5 * first.quantities["core_power"].value)
    assert second.chip().cores >= 4 * first.chip().cores - 4


def test_the_verb_writes_a_system_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`-o` writes a file that `train` takes; `--json` prints one object with every source."""
    path = tmp_path / "mine.toml"
    asked = ["technology", "ampere", "--node", "5nm", "--memory", "hbm3", "--set", "power=700 W", "--cost"]
    assert main([*asked, "--name", "mine", "-o", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["node"], found["memory"], found["scale_up"]) == ("5nm", "hbm3", "nvlink3")
    assert all(entry["source"] for entry in found["quantities"].values())
    assert found["cost"]["total"] == pytest.approx(sum(found["cost"]["dollars"].values()))
    assert sf.System.load(path).matrix_rate("bf16").value == found["figures"]["matrix_rate"]
    assert main(asked) == 0
    assert "TFLOP/s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--node", "4nm"], ("node", "'4nm'")),
        (["--set", "die_are=3"], ("--set", "did you mean die_area")),
        (["--set", "wafer_price=3"], ("wafer_price", "--cost")),
        (["--node", "2nm", "--cost"], ("2nm", "wafer_price")),
        (["--memori", "hbm3"], ("--memori", "--memory?")),
    ],
)
def test_bad_arguments_leave_with_two(
    arguments: list[str], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["technology", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert all(word in printed.err for word in words), printed.err


WARM = """
import json, sys
from symperf.technology import Technology
chip = Technology.load("h100").chip()
chip.cost(), chip.system()
print(json.dumps([dict(chip.figures), sorted({"sympy", "numpy", "numba", "cvxpy"} & sys.modules.keys())]))
"""


def test_a_warm_chip_imports_nothing_heavy(tmp_path: Path) -> None:
    """The first process builds the closed forms with SymPy; the second reads the programs that it kept."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    environment = kept | {"PYTHONPATH": str(ROOT), "SYMPERF_CACHE": str(folder)}
    runs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", WARM], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        runs.append(json.loads(done.stdout))
    assert runs[0][0] == runs[1][0]
    assert "sympy" in runs[0][1], "or the test shows nothing"
    assert runs[1][1] == []


@pytest.mark.parametrize("name", ["deepflow"])
def test_a_network_of_lanes_needs_what_a_lane_takes_of_the_die(name: str) -> None:
    with pytest.raises(
        InputError, match="does not give network_link_area or network_link_density, expected it for nvlink3"
    ):
        Technology.load(name, scale_up="nvlink3").chip()

"""Odd input to the newer verbs: one clear line, exit status 2, never a traceback, and no file is harmed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.paths import ONE_LAYER, ROOT
from support.validation_cases import TRAINING, folder, table

import symperf as sf
from codegen.adjoint import gradient
from codegen.interpret import adjoints, floats, run
from codegen.program import Program
from symperf.validation.layout import divisors

if TYPE_CHECKING:
    from collections.abc import Callable

TRAIN = ["train", ONE_LAYER, "-s", "a100-80gb-sxm", "--batch", "8", "--sequence", "2048"]
INFER = ["infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "1", "--prompt", "20", "--generate", "9"]
SEARCH = ["search", ONE_LAYER, "-s", "a100-80gb-sxm", "--devices", "8", "--batch", "8", "--sequence", "2048"]
ROWS = "kind,bytes,seconds\n" + "".join(f"copy,{2**at},{2 * 2**at / 4e12 + 2e-6}\n" for at in range(20, 30))
LONG = "n" * 300
ENDLESS = Path("/dev/zero")


@pytest.mark.parametrize("setting", ["host_latency=3 us", "jitter=5 %", "overhead_latency=1 ms"])
@pytest.mark.parametrize("tp", [1, 2])
def test_overheads_of_one_device_and_of_several(call, setting: str, tp: int) -> None:
    """The root of log2(1), the stragglers of one device, has no slope; every answer is a number all the same."""
    done = call([*TRAIN, "--tp", str(tp), "--set", setting, "--interval", "--json"])
    assert done.code == 0, done.err
    assert json.loads(done.out, parse_constant=pytest.fail)["time_s"] > 0


def test_resource_shares_sum_to_one_with_overheads() -> None:
    found = sf.training(
        *(sf.Model.load(ONE_LAYER), sf.System.load("a100-80gb-sxm"), sf.Plan()),
        batch=8,
        sequence=2048,
        jitter=0.1,
        host_latency=3e-6,
    )
    assert sum(found.shares().values()) == pytest.approx(1.0)


@pytest.mark.parametrize(("x", "slope"), [(0.0, 0.0), (4.0, 0.25), (1e-12, 5e5)])
def test_the_slope_of_a_root(x: float, slope: float) -> None:
    """As a power's, the slope at 0 is taken as 0, by both ways to differentiate."""
    program = Program([("input", "x"), ("sqrt", 0)], {"x": 0}, {}, {"root": 1})
    values = run(program, {"x": x}, floats())
    assert adjoints(program, values, 1, floats())[0] == pytest.approx(slope)
    derived = gradient(program, "root", ["x"])
    assert run(derived, {"x": x}, floats())[derived.outputs["d/x"]] == pytest.approx(slope)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*TRAIN, "--stack", ""], "stack: found ''"),
        ([*INFER, "--stack", ""], "stack: found ''"),
        ([*TRAIN, "--grid", "wrld"], "grid: found 'wrld', expected world"),
        ([*TRAIN, "--optimizer", "adamw"], "did you mean adam"),
        ([*TRAIN, "--offload", "optimiser"], "did you mean optimizer?"),
        ([*TRAIN, "--recompute-layers", "1"], "add --recompute full"),
        ([*TRAIN, "--overlap-parameters", "nan"], "overlap_parameters: found nan, expected a fraction"),
        ([*TRAIN, "--encoder-sequence", "9"], "has not both an encoder and a decoder"),
        ([*TRAIN, "--set", "fragmentatoin=0.1"], "did you mean fragmentation?"),
        (["infer", "bert-large", *INFER[2:]], "generate: found 9, expected 1"),
        ([*SEARCH, "--set", "tp=8", "--require", "tp=4"], "tp is given by --set and by --require"),
        ([*SEARCH, "--set", "batch=0"], "batch: found 0, expected a whole number"),
        ([*SEARCH, "--max-tp", "1", "--require", "tp=8"], "contradict each other"),
        ([*SEARCH, "--devices", "8,"], "expected a whole number, or several with commas"),
        (["technology", "ampere", "--node", ""], "node: found ''"),
        (["technology", "ampere", "--memory", ""], "memory: found ''"),
        (["technology", "ampere", "-o", ""], "'': cannot be written"),
        (["measure", "-o", ""], "cannot write '.': is a folder"),
        (["measure", "-o", "/"], "cannot write '/': is a folder"),
        (["validate", "--data", "n" * 5000], "cannot be read: File name too long"),
    ],
)
def test_refused(refused, arguments: list[str], told: str) -> None:
    assert told in refused(arguments)


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda run: run.carbon(["world"]), "grid: found"),
        (lambda run: run.swap(system=sf.System.load("h800-sxm")).cost(), "has no price"),
        (lambda run: run.interval("tim"), "did you mean time"),
        (lambda _: sf.Plan(offload=["weights"]), "offload: found"),
        (lambda _: sf.Plan(optimizer=None), "optimizer: found None"),
        (lambda _: sf.calibrate("rows.csv", "h200-sxm", noise="x"), "--noise: found 'x'"),
        (lambda _: sf.calibrate("rows.csv", "h200-sxm", prior=[0.0]), "--prior: found '0.0'"),
        (lambda _: sf.calibrate("rows.csv", "h200-sxm", fit="memory"), "--fit: no symbol 'memory'"),
        (lambda run: sf.inference(run.model, run.system, batch=1, prompt=1, generate=1, kv_precision=[8]), "kv_prec"),
        (lambda run: sf.inference(run.model, run.system, batch=1, prompt=1, generate=1, kv_precision=""), "kv_prec"),
    ],
)
def test_values_of_the_wrong_type_in_python(ask: Callable[[object], object], told: str) -> None:
    run = sf.training(*(sf.Model.load(ONE_LAYER), sf.System.load("a100-80gb-sxm"), sf.Plan()), batch=8, sequence=2048)
    with pytest.raises(sf.InputError, match=told):
        ask(run)


@pytest.mark.parametrize(
    "cells", [{"step_time_s": "1_0"}, {"step_time_s": "\uff11.4"}, {"tp": "1e30"}, {"global_batch_seqs": "1e13"}]
)
def test_numbers_of_a_users_table(refused, tmp_path: Path, cells: dict[str, str]) -> None:
    told = refused(["validate", "--data", str(folder(tmp_path, [TRAINING | cells]))])
    assert f"line 2: {next(iter(cells))}: found" in told


def test_a_large_batch_has_its_divisors_soon() -> None:
    assert divisors(1) == [1]
    assert divisors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]
    assert len(divisors(10**12)) == 13 * 13


@pytest.mark.skipif(not ENDLESS.exists(), reason="no device without an end")
def test_a_file_without_an_end_is_refused(refused, tmp_path: Path) -> None:
    (tmp_path / "training.csv").symlink_to(ENDLESS)
    assert "is larger than" in refused(["validate", "--data", str(tmp_path)])
    told = refused(["calibrate", str(ENDLESS), "-s", "h200-sxm", "-o", str(tmp_path / "new.toml")])
    assert told == "symperf: /dev/zero: is larger than 100,000,000 bytes, expected a CSV file\n"


def test_validate_harms_no_table(refused, tmp_path: Path) -> None:
    """What is read is not written over, by whatever path, and two outputs are not one file."""
    data = folder(tmp_path, [TRAINING])
    (tmp_path / "link.svg").symlink_to(data / "training.csv")
    for flag, path in (
        ("--csv", data / "training.csv"),
        ("--plot", tmp_path / "link.svg"),
        ("--csv", data / "inference.csv"),  # is not there yet; the next run would read it
    ):
        assert "is read or written already" in refused(["validate", "--data", str(data), flag, str(path)])
    twice = str(tmp_path / "out.txt")
    assert "is read or written already" in refused(["validate", "--csv", twice, "--markdown", twice])
    assert (data / "training.csv").read_text(encoding="utf-8") == table([TRAINING])
    assert not Path(twice).exists()


@pytest.mark.parametrize("name", ["loop.toml", "a\0b.toml", f"{LONG}.toml", "folder.toml"])
def test_calibrate_to_where_nothing_can_be_written(refused, tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    (tmp_path / "folder.toml").mkdir()
    before = sorted(tmp_path.iterdir())
    told = refused(["calibrate", str(tmp_path / "rows.csv"), "-s", "h200-sxm", "-o", f"{tmp_path}/{name}"])
    assert "cannot be written" in told
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "options", [("--noise", "1e-300"), ("--prior", "1e300"), ("--prior", "inf"), ("--prior", "memory_efficiency=1e-12")]
)
def test_calibrate_with_widths_that_floats_do_not_bear(refused, tmp_path: Path, options: tuple[str, str]) -> None:
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    arguments = ["calibrate", str(tmp_path / "rows.csv"), "-s", "h200-sxm", "-o", str(tmp_path / "new.toml")]
    assert f"{options[0]}: found" in refused([*arguments, *options])


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no such device")
def test_a_file_behind_standard_output_is_not_replaced(tmp_path: Path) -> None:
    """With standard output in a file, /dev/stdout leads to that file: text goes there too, and nothing is lost."""
    kept = tmp_path / "kept.txt"
    with kept.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            [sys.executable, "-m", "symperf", "technology", "ampere", "-o", "/dev/stdout"],
            cwd=ROOT,
            stdout=out,
            check=False,
        )
    assert done.returncode == 0
    text = kept.read_text(encoding="utf-8")
    assert "written: /dev/stdout" in text
    assert "matrix_rate =" in text or "[matrix_rate" in text

"""Constants from latencies and rates of inference, in the columns of `symperf validate`, and from several files."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.calibrate_cases import timed, write

import symperf as sf
from symperf.calibration.runs import families
from symperf.calibration.table import read
from symperf.cli import main

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("scipy")

SYSTEM, SHARING = "h200-sxm", "mi350x"
"""One that knows what products in 8 bits reach, and one where products in 16 bits tell it."""
TRUE = {"matrix_efficiency": 0.61, "memory_efficiency": 0.77}
METRICS = {
    "ttft": ("ms", lambda run: 1e3 * run.value("prefill")),
    "tpot": ("us", lambda run: 1e6 * run.value("time_per_token")),
    "latency": ("s", lambda run: run.value("time")),
    "output_throughput": ("tokens/s", lambda run: run.value("tokens_per_s")),
    "output_throughput_per_gpu": ("tokens/s/GPU", lambda run: run.value("tokens_per_s_per_device")),
    "prompt_eval_speed": ("tokens/s", lambda run: 512 / run.value("prefill")),
}
"""Metric -> unit, and what a row of it says."""


def latencies(true: dict[str, float], precision: str = "bf16", name: str = SYSTEM) -> list[dict[str, Any]]:
    """Rows of Llama 2 7B on one and two devices, with what `sf.inference` gives under these constants."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load(name)
    rows = []
    for at, (tp, batch, metric) in enumerate(itertools.product((1, 2), (1, 16), METRICS)):
        plan = sf.Plan(tp=tp, precision=precision)
        run = sf.inference(model, system, plan, batch=batch, prompt=512, generate=32, stack="tensorrt-llm", **true)
        unit, told = METRICS[metric]
        row = {"id": f"MINE-{at}", "model": "llama-2-7b", "hw_key": name, "num_devices": tp, "tp": tp}
        row |= {"batch_size": batch, "input_len_tokens": 512, "output_len_tokens": 32, "precision": precision}
        rows.append(row | {"metric": metric, "value": told(run), "unit": unit})
    return rows


def test_constants_of_latencies(tmp_path: Path) -> None:
    """Times to the first token and of each token, times and rates of requests lead back to the constants."""
    file = write(tmp_path / "mine.csv", latencies(TRUE))
    found = sf.calibrate(file, SYSTEM, fit=[*TRUE], prior=["100"])
    assert found.used == 24
    assert [kind.kind for kind in found.residuals] == ["latency", "all"]
    for name, value in TRUE.items():
        assert found.values[name] == pytest.approx(value, rel=1e-3), name
    assert abs(found.residuals[-1].worst) < 1e-3
    assert found.residuals[-1].worst_file == str(file)


@pytest.mark.parametrize(("name", "precision"), [(SYSTEM, "bf16"), (SYSTEM, "fp8"), (SHARING, "fp8")])
def test_slopes_are_those_of_the_predictions(tmp_path: Path, name: str, precision: str) -> None:
    """Central differences of ln(time), in 8 bits too, where another symbol, or one for all, is what products reach."""
    system = sf.System.load(name)
    every, left, parts = families(read(write(tmp_path / "mine.csv", latencies({}, precision, name))), system)
    assert not left
    assert parts == (name,)
    values = {name: quantity.value for name, quantity in system.quantities.items()}
    products = "fp8_efficiency" if (name, precision) == (SYSTEM, "fp8") else "matrix_efficiency"
    names = [products, "memory_efficiency", "launch_latency"]
    depend = set()
    for family in every:
        time, slopes = family.slopes(values, names)
        assert time == pytest.approx(family.seconds, rel=1e-9)
        for symbol in names:
            high, low = (family.predict(values | {symbol: values[symbol] * factor}) for factor in (1.0001, 0.9999))
            expected = np.log(high / low) / np.log(1.0001 / 0.9999)
            assert slopes[symbol] == pytest.approx(expected, abs=1e-4), (family.form, symbol)
            depend |= {symbol} if np.abs(expected).max() > 1e-3 else set()
        shared = {"matrix_efficiency", "half_efficiency"} if precision == "fp8" else {"matrix_efficiency"}
        assert set(family.inputs_of(products)) == (shared if name == SHARING else {"matrix_efficiency"})
    assert depend == set(names)


def test_several_files_are_fitted_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels tell what latencies alone do not: the files' rows count as those of one."""
    copies = [{"kind": "copy", "name": "copy", "bytes": 2**power} for power in range(17, 33)]
    true = TRUE | {"launch_latency": 2.2e-6}
    files = [
        write(tmp_path / "kernels.csv", timed(tmp_path, copies, true)),
        write(tmp_path / "requests.csv", latencies(true)),
    ]
    found = sf.calibrate(files, SYSTEM, fit=[*true], prior=["100"], date="2026-01-02")
    assert found.used == 40
    assert {kind.kind: kind.rows for kind in found.residuals} == {"copy": 16, "latency": 24, "all": 40}
    for name, value in true.items():
        assert found.values[name] == pytest.approx(value, rel=2e-3), name
    out = tmp_path / "new.toml"
    arguments = ["calibrate", *map(str, files), "-s", SYSTEM, "-o", str(out), "--fit", ",".join(true), "--prior", "100"]
    assert main(arguments) == 0
    assert f"rows of {files[0]}, {files[1]}" in " ".join(capsys.readouterr().out.split())
    memory = sf.System.load(out).quantities["memory_efficiency"]
    assert memory.value == pytest.approx(true["memory_efficiency"], rel=2e-3)
    assert all(f"{file.name} (sha256 {read(file).sha256[:16]})" in memory.source for file in files)
    assert main([*arguments, "--json"]) == 0
    assert [file["file"] for file in json.loads(capsys.readouterr().out)["files"]] == [str(file) for file in files]


def test_rows_that_no_closed_form_predicts_are_told(tmp_path: Path) -> None:
    rows = latencies(TRUE)
    rows[0] |= {"concurrency": 8, "batch_size": ""}
    rows[1]["metric"] = "goodput"
    rows[2]["use"] = "test"
    rows[3]["value"] *= 1000  # tokens a second of all prompts of a day
    rows[4]["framework"] = "Megatron"
    found = sf.calibrate(write(tmp_path / "mine.csv", rows), SYSTEM, fit=["memory_efficiency"])
    assert found.used == 19
    for words in ("no closed form", "'goodput' is not predicted", "marked as test", "1.3 times the peak", "no stack"):
        assert sum(words in reason for reason in found.left_out) == 1, words


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["mine.csv", "mine.csv"], "comes twice, expected each file once"),
        (["mine.csv", "none.csv"], "none.csv: no such file, expected a CSV file"),
        (["bad.csv"], "bad.csv: line 2: value: found 'fast'"),
        (["short.csv"], "short.csv: no column 'unit'"),
        (["units.csv"], "is column value in milliseconds rather than seconds?"),
    ],
)
def test_bad_files_are_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    rows = [row for row in latencies({}) if row["unit"] == "ms"]
    write(tmp_path / "mine.csv", rows)
    write(tmp_path / "bad.csv", [rows[0] | {"value": "fast"}, *rows[1:]])
    write(tmp_path / "short.csv", [{key: cell for key, cell in row.items() if key != "unit"} for row in rows])
    write(tmp_path / "units.csv", [row | {"unit": "s"} for row in rows])
    files = [str(tmp_path / name) for name in arguments]
    assert main(["calibrate", *files, "-s", SYSTEM, "-o", str(tmp_path / "new.toml")]) == 2
    told = capsys.readouterr().err
    assert line in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("name", ["none/new.toml", "taken.toml"])
def test_a_file_that_cannot_be_written_is_told_before_the_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "taken.toml").mkdir()
    monkeypatch.setattr("symperf.calibration.calibrate.calibrate", lambda *_, **__: pytest.fail("fitted first"))
    assert main(["calibrate", "mine.csv", "-s", SYSTEM, "-o", str(tmp_path / name)]) == 2
    assert "cannot be written" in capsys.readouterr().err

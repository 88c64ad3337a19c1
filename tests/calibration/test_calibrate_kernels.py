"""Constants of kernels from tables: what made the times is found again, and tables that are none are refused."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.kernel_tables import GEMM, PROMPT, write_table

import symperf as sf
from symperf.calibration.kernels.calibrate import calibrate_kernels
from symperf.calibration.kernels.rows import KernelFamily, gather, parts_of
from symperf.calibration.kernels.stages import STAGES, Stage
from symperf.cli import main
from symperf.infer.formats import FORMATS
from symperf.infer.stack import Stack
from symperf.systems.kernel_constants import FORMAT_CONSTANTS
from symperf.systems.system_symbols import SYMBOLS
from symperf.validation.kernels.forms import Form, Setting
from symperf.validation.kernels.operations import OPERATIONS

if TYPE_CHECKING:
    from pathlib import Path

H100 = "h100-nvl"
"""A device of which no profile says anything."""
LOOPS = {"inner_latency": 2e-9, "inner_ends": 100.0, "split_latency": 2e-5}
TRUTH = {"launch_latency": 4.1e-6, "matrix_efficiency": 0.61, "memory_efficiency": 0.72}
STAGE = Stage("products", dict.fromkeys(TRUTH, 0.5) | {"launch_latency": 1e-6}, {"gemm": ()}, of_device=True)
M, N, K = (1, 16, 256, 2048, 8192), (1024, 4096, 11008, 28672), (2048, 4096, 14336)


def shapes() -> list[dict[str, Any]]:
    return [GEMM | {"system": H100.replace("-", "_"), "m": m, "n": n, "k": k} for m in M for n in N for k in K]


def measured(folder: Path, system: sf.System, noise: float = 0.0) -> Path:
    """A folder with the times of a system, with a scatter."""
    rows = shapes()
    sizes = {f"row/{name}": np.array([float(row[name]) for row in rows]) for name in "mnk"}
    family = KernelFamily(Form("product"), Setting(system, "TensorRT-LLM"), system, sizes, np.ones(len(rows)))
    scatter = np.exp(np.random.default_rng(0).normal(0, noise, len(rows)))
    times = family.predict({}) * scatter
    return write_table(folder, "gemm", [row | {"latency": 1e3 * time} for row, time in zip(rows, times, strict=True)])


def moved(**values: float) -> sf.System:
    return sf.System.load(H100).with_values(values, "bf16")


@pytest.mark.parametrize(("noise", "within"), [(0.0, 0.01), (0.04, 0.06)])
def test_constants_that_made_the_times_are_found_again(tmp_path: Path, noise: float, within: float) -> None:
    folder = measured(tmp_path, moved(**TRUTH), noise)
    found = calibrate_kernels(folder, H100, stages=(STAGE,))
    for name, truth in TRUTH.items():
        quantity = found.constants[name]
        assert quantity.value == pytest.approx(truth, rel=within)
        assert quantity.low is None or quantity.low <= quantity.value <= quantity.high
    (fitted,) = found.stages
    assert fitted.before.median > 0.05 > fitted.after.median
    assert fitted.rows + fitted.after.rows == len(shapes())


def test_slopes_are_those_of_the_time(tmp_path: Path) -> None:
    del tmp_path
    system = sf.System.load(H100)
    sizes = {f"row/{name}": np.array([8.0, 300.0, 5000.0]) for name in "mnk"}
    family = KernelFamily(Form("product"), Setting(system, "vLLM"), system, sizes, np.ones(3))
    values = {name: system.value(name) for name in TRUTH}
    time, slopes = family.slopes(values, list(TRUTH))
    for name in TRUTH:
        more = family.predict(values | {name: values[name] * (1 + 1e-6)})
        found = np.broadcast_to(slopes.get(name, 0.0), time.shape)
        assert found == pytest.approx((more / time - 1) / 1e-6, rel=1e-3, abs=1e-6)


def test_rows_of_shapes_that_are_kept_back_do_not_move_a_constant(tmp_path: Path) -> None:
    first = calibrate_kernels(measured(tmp_path / "a", moved(**TRUTH)), H100, stages=(STAGE,))
    (table,) = (tmp_path / "a").iterdir()
    lines = table.read_text(encoding="utf-8").splitlines()
    head = lines[0].split(",")
    kept = {(n, k) for n in N for k in K if _is_test(n, k)}
    assert kept
    place = [head.index(name) for name in ("n", "k", "latency")]
    for number, line in enumerate(lines[1:], 1):
        cells = line.split(",")
        if (int(cells[place[0]]), int(cells[place[1]])) in kept:
            cells[place[2]] = str(3 * float(cells[place[2]]))
            lines[number] = ",".join(cells)
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    second = calibrate_kernels(tmp_path / "a", H100, stages=(STAGE,))
    assert {n: q.value for n, q in first.constants.items()} == {n: q.value for n, q in second.constants.items()}
    assert second.stages[0].after.median > 0.5


def _is_test(n: int, k: int) -> bool:
    from symperf.validation.kernels.rows import is_test

    return is_test({"n": float(n), "k": float(k)})


def test_stages_name_what_there_is() -> None:
    for stage in STAGES:
        assert stage.rows.keys() <= OPERATIONS.keys()
        assert stage.constants.keys() <= SYMBOLS.keys()
        assert stage.precision in ("", *FORMATS)
        if stage.precision:
            assert stage.constants.keys() <= FORMAT_CONSTANTS.keys()
        for name, start in stage.constants.items():
            assert SYMBOLS[name].low <= start <= SYMBOLS[name].high


def test_a_profile_is_written_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path / "tables", moved())
    (table,) = folder.iterdir()
    table.write_text(table.read_text(encoding="utf-8").replace("bfloat16", "fp8_block"), encoding="utf-8")
    out = tmp_path / "mine.toml"
    code = main(["calibrate", str(folder), "-s", H100, "--software", "TRTLLM", "-o", str(out), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert told["software"] == "TensorRT-LLM"
    assert told["constants"]
    stack = Stack.load(str(out))
    narrow = {each["name"]: each["value"] for each in told["constants"] if each["format"] == "fp8-block"}
    assert narrow
    assert {n: q.value for n, q in stack.reached[H100].formats["fp8-block"].items() if n in narrow} == narrow


def test_a_system_is_written_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.toml"
    assert (
        main(["calibrate", str(measured(tmp_path / "tables", moved(**TRUTH, **LOOPS))), "-s", H100, "-o", str(out)])
        == 0
    )
    assert "shapes kept back" in capsys.readouterr().out
    assert sf.System.load(str(out)).value("launch_latency") == pytest.approx(TRUTH["launch_latency"], rel=0.3)


def test_a_system_that_starts_from_another_takes_its_rows(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(f'base = "{H100}"\n', encoding="utf-8")
    folder = measured(tmp_path / "tables", moved(**TRUTH))
    found = calibrate_kernels(folder, str(mine), stages=(STAGE,))
    assert found.constants["matrix_efficiency"].value == pytest.approx(TRUTH["matrix_efficiency"], rel=0.01)


BAD = [
    (("-s", "a100-80gb-sxm"), "no row of a100-80gb-sxm (a100_sxm) that can be fitted; the tables have 'h100_nvl'"),
    (("-s", H100, "--software", "vLLM"), "--software: found 'vLLM', expected one of TensorRT-LLM"),
    (("-s", H100, "--software", "TRT"), "--software: found 'TRT'"),
    (("-s", H100, "--software", ""), "--software: found ''"),
    (("-s", H100, "--stack", "vllm-0.24"), "--stack: is the base of a software's profile, expected --software"),
    (("-s", H100, "--fit", "launch_latency"), "--fit: is for .csv files of measurements"),
    (("-s", H100, "--loss", "huber"), "--loss: is for .csv files of measurements"),
    (("-s", H100, "--noise", "0"), "--noise: is for .csv files of measurements"),
    (("-s", H100, "--software", "TRTLLM", "--stack", "vlm"), "found 'vlm'"),
]


@pytest.mark.parametrize(("flags", "says"), BAD)
def test_what_cannot_be_fitted_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], says: str
) -> None:
    folder = measured(tmp_path / "tables", moved())
    out = tmp_path / "mine.toml"
    assert main(["calibrate", str(folder), *flags, "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_tables_without_a_row_to_fit_say_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "mine.toml")
    rows = [GEMM | {"system": "h100_nvl", "latency": 0.0}] * 3
    assert main(["calibrate", str(write_table(tmp_path / "zero", "gemm", rows)), "-s", H100, "-o", out]) == 2
    assert "the tables have 'h100_nvl'; left out: 3 the time is zero" in capsys.readouterr().err
    empty = tmp_path / "empty" / "gemm.csv"
    empty.parent.mkdir()
    empty.write_text(",".join(GEMM) + "\n", encoding="utf-8")
    assert main(["calibrate", str(empty.parent), "-s", H100, "-o", out]) == 2
    assert "the tables have no row at all" in capsys.readouterr().err
    assert main(["calibrate", "", "-s", H100, "-o", out]) == 2
    assert "calibrate: found '', expected" in capsys.readouterr().err


def test_flags_of_a_folder_are_refused_for_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "mine.toml")
    assert main(["calibrate", "measured.csv", "-s", H100, "--software", "vLLM", "-o", out]) == 2
    assert "--software: is for a folder of kernel tables" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"latency": "latency_s"}, "no column 'latency'"),
        ({"gemm_dtype": "dtype"}, "no column 'gemm_dtype'"),
    ],
)
def test_tables_with_other_columns_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], says: str
) -> None:
    folder = measured(tmp_path / "tables", moved())
    (table,) = folder.iterdir()
    text = table.read_text(encoding="utf-8")
    for old, new in change.items():
        text = text.replace(old, new)
    table.write_text(text, encoding="utf-8")
    assert main(["calibrate", str(folder), "-s", H100, "-o", str(tmp_path / "mine.toml")]) == 2
    assert says in capsys.readouterr().err


def test_times_in_another_unit_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tables"
    write_table(folder, "gemm", [row | {"latency": 1e-6} for row in shapes()])
    assert main(["calibrate", str(folder), "-s", H100, "-o", str(tmp_path / "mine.toml")]) == 2
    assert "are they in seconds?" in capsys.readouterr().err


def test_only_the_usual_kernel_of_a_format_is_fitted_where_a_stage_says_so(tmp_path: Path) -> None:
    rows = [
        PROMPT | {"system": "h100_nvl", "kernel_source": kernel, "kv_cache_dtype": kv, "isl": length}
        for kernel, kv, count in (("usual", "bfloat16", 5), ("rare", "bfloat16", 2), ("rare", "fp8", 3))
        for length in range(100, 100 + count)
    ]
    system = sf.System.load(H100)
    found, _ = gather(write_table(tmp_path, "context_attention", rows), system, "TensorRT-LLM")
    stage = Stage("prompts", {"prompt_latency": 1e-5}, {"context_attention": ()}, commonest=True)
    taken = {
        (part.kernel, part.sort.format, part.rows.size)
        for test in (False, True)
        for part in parts_of(found, stage, test=test)
    }
    assert taken == {("usual", "bfloat16/bfloat16", 5), ("rare", "bfloat16/fp8", 3)}
    every = dataclasses.replace(stage, commonest=False)
    assert sum(part.rows.size for test in (False, True) for part in parts_of(found, every, test=test)) == len(rows)

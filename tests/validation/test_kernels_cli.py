"""`symperf validate --kernels`: what it prints and writes, and one clear line for what is wrong with a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.kernel_tables import GEMM, MOE, PROMPT, write_table

from symperf.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["validate", "--kernels", *arguments]) == 0
    return capsys.readouterr().out


def test_json_has_an_entry_for_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [GEMM | {"m": m, "gemm_dtype": dtype} for m in (1, 64) for dtype in ("bfloat16", "fp8", "int3")]
    found = json.loads(_run(capsys, str(write_table(tmp_path, "gemm", rows)), "--json"))
    assert [(each["format"], each["rows"]) for each in found["kernels"]] == [("", 0), ("bfloat16", 2), ("fp8", 2)]
    keys = {"device", "software", "operation", "format", "rows", "median", "mape", "bias", "left_out"}
    assert keys <= set(found["kernels"][1])


def test_tables_of_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path, "moe", [MOE])
    out = _run(capsys, str(write_table(tmp_path, "gemm", [GEMM, GEMM | {"gemm_dtype": "int3"}])))
    assert "2 kernels scored, 1 left out" in out
    assert "format int3: no format of a plan" in out


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    folder = write_table(tmp_path / "kernels", "gemm", [GEMM | {"m": m} for m in (1, 64, 4096)])
    paths = {flag: tmp_path / f"out{end}" for flag, end in (("markdown", ".md"), ("csv", ".csv"), ("plot", ".svg"))}
    _run(capsys, str(folder), *(part for flag, path in paths.items() for part in (f"--{flag}", str(path))))
    assert "| gemm | bfloat16 | h100_sxm | TensorRT-LLM | 3 |" in paths["markdown"].read_text(encoding="utf-8")
    lines = paths["csv"].read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4
    assert "torch_flow m=64 n=4096 k=4096" in lines[2]
    assert "h100_sxm" in paths["plot"].read_text(encoding="utf-8")


def test_nothing_to_score_is_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_table(tmp_path, "gemm", [GEMM | {"system": "abacus"}])
    plot = tmp_path / "plot.svg"
    assert main(["validate", "--kernels", str(folder), "--plot", str(plot)]) == 1
    assert "the catalogue has no system of this device" in capsys.readouterr().out
    assert not plot.exists()


def test_a_folder_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--kernels", ""]) == 2
    assert "kernels: found '', expected a folder of tables" in capsys.readouterr().err


def _without(column: str) -> Callable[[Path], None]:
    row = {name: value for name, value in GEMM.items() if name != column}
    return lambda folder: _write(folder, "gemm", [row])


def _write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    write_table(folder, name, rows)


FAULTS: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "notes.txt").write_text("none"), "holds no table"),
    (_without("k"), "gemm.csv: no column 'k', expected system, framework"),
    (lambda folder: _write(folder, "gemm", [_renamed(GEMM, "latency", "latancy")]), "did you mean latancy?"),
    (lambda folder: _write(folder, "gemm", [GEMM, GEMM | {"m": "many"}]), "gemm.csv: line 3: m: found 'many'"),
    (lambda folder: _write(folder, "gemm", [GEMM, GEMM | {"m": "1_000"}]), "gemm.csv: line 3: m: found '1_000'"),
    (
        lambda folder: _write(folder, "context_attention", [_renamed(PROMPT, "window_size", "windows_size")]),
        "unknown column 'windows_size'; did you mean window_size?",
    ),
    (lambda folder: _write(folder, "gem", [GEMM]), "gem.csv: no operation 'gem'; did you mean gemm?"),
    (lambda folder: _write(folder, "gemm", [GEMM | {"latency": 5e-5}]), "expected milliseconds (are they in seconds?)"),
    (lambda folder: (folder / "gemm.parquet").write_bytes(b"PAR0"), "gemm.parquet: cannot be read as Parquet"),
    (lambda folder: (folder / "gemm.csv").write_bytes(b"\xff\xfe\x00"), "gemm.csv: is not UTF-8"),
    (lambda folder: (folder / "gemm.csv").write_text("m,n,m\n1,2,3\n"), "gemm.csv: the column 'm' comes twice"),
    (lambda folder: (folder / "gemm.csv").write_text(""), "gemm.csv: no column 'system'"),
]


def _renamed(row: dict[str, object], old: str, new: str) -> dict[str, object]:
    return {new if name == old else name: value for name, value in row.items()}


@pytest.mark.parametrize(("make", "line"), FAULTS)
def test_a_table_that_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], object], line: str
) -> None:
    make(tmp_path)
    assert main(["validate", "--kernels", str(tmp_path)]) == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert line in done.err


def test_flags_of_published_tables_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write_table(tmp_path, "gemm", [GEMM]))
    assert main(["validate", "--kernels", folder, "--source", "KORTH"]) == 2
    assert "source: cannot be given with --kernels" in capsys.readouterr().err


def test_parquet_without_pyarrow_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gemm.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert main(["validate", "--kernels", str(tmp_path)]) == 2
    assert "needs pyarrow, which is not installed: pip install 'symperf[sweep]'" in capsys.readouterr().err

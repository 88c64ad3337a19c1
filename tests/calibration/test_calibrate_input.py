"""Bad measurements and bad options of `symperf calibrate`: one clear line that says where, never a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.calibrate_cases import write

import symperf as sf
from symperf.calibration.table import read

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("scipy")

SMALL: list[dict[str, Any]] = [{"kind": "copy", "bytes": 2**power} for power in range(17)]
COPIES: list[dict[str, Any]] = [
    {"kind": "copy", "bytes": 2**power, "seconds": 2**power / 4e12 + 3e-6} for power in range(16, 33)
]
GEMM = {"kind": "gemm", "dtype": "bf16", "m": 4096, "n": 4096, "k": 4096, "seconds": 2.1e-4}
HEAD = "kind,name,dtype,m,n,k,bytes,ranks,seconds\n"


@pytest.fixture
def calibrated(call, tmp_path: Path):
    """Run the command on a text; its exit status and its error line."""

    def run(text: str | bytes, *options: str, system: str = "h200-sxm") -> str:
        path = tmp_path / "rows.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = call(["calibrate", str(path), "-s", system, "-o", str(tmp_path / "new.toml"), *options])
        assert done.code == 2, done.out
        assert done.out == ""
        assert done.err.count("\n") == 1
        assert not (tmp_path / "new.toml").exists()
        return done.err.replace(str(path), "rows.csv")

    return run


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "rows.csv: is empty, expected a header"),
        ("\n\n", "is empty"),
        (HEAD, "has a header and no rows"),
        (b"\xff\xfe\x00", "byte 0 is not UTF-8"),
        ("kind,m,n,k,second\ngemm,1,1,1,1\n", "no column seconds; is it second?"),
        ("kinds,seconds\ngemm,1\n", "no column kind; is it kinds?"),
        ("kind,seconds,seconds\ngemm,1,1\n", "the column 'seconds' comes twice"),
        ("kind,m,n,seconds\ngemm,16,16,1e-5\n", "line 2: a gemm row needs column k"),
        ("kind,byte,seconds\ncopy,16,1e-5\n", "line 2: a copy row needs column bytes; is it byte?"),
        (HEAD + "gemm,,bf16,16,,16,,,1e-5\n", "line 2: n is empty"),
        (HEAD + "gem,,bf16,16,16,16,,,1e-5\n", "line 2: kind: found 'gem'"),
        (HEAD + "gem,,bf16,16,16,16,,,1e-5\n", "did you mean gemm?"),
        (HEAD + "gemm,,bf16,16,16,16,,,nan\n", "line 2: seconds: found 'nan', expected a finite number"),
        (HEAD + "gemm,,bf16,16,16,16,,,inf\n", "expected a finite number"),
        (HEAD + "gemm,,bf16,16,16,16,,,1e999\n", "expected a finite number"),
        (HEAD + "gemm,,bf16,16,16,16,,,\n", "line 2: seconds: found '', expected a number"),
        (HEAD + "gemm,,bf16,16,16,16,,,1_0\n", "expected a number"),
        (HEAD + "gemm,,bf16,16,16,16,,,soon\n", "line 2: seconds: found 'soon', expected a number"),
        (HEAD + "gemm,,bf16,16,16,16,,,0\n", "expected a time above zero"),
        (HEAD + "gemm,,bf16,16,16,16,,,-1e-5\n", "line 2: seconds: found '-1e-5', expected a time above zero"),
        (HEAD + "gemm,,bf16,16.5,16,16,,,1e-5\n", "line 2: m: found '16.5', expected a whole number"),
        (HEAD + "gemm,,bf16,-16,16,16,,,1e-5\n", "line 2: m: found '-16', expected a whole number above zero"),
        (HEAD + "copy,,,,,,0.5,,1e-3\n", "bytes: found '0.5', expected a whole number above zero, in bytes and not GB"),
        (HEAD + "gemm,,bf16,16,16,16,,1e-5\n", "line 2: found 8 cells, expected the first line's 9"),
        (HEAD + 'gemm,"x\n', "not valid CSV"),
    ],
)
def test_bad_rows(calibrated, text: str | bytes, told: str) -> None:
    assert told in calibrated(text)


def _text(rows: list[dict[str, object]]) -> str:
    columns = HEAD.strip().split(",")
    return HEAD + "".join(",".join(str(row.get(column, "")) for column in columns) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (COPIES[:2], "found 2 rows that can be used, expected at least 5"),
        ([{"kind": "step", "seconds": 0.1}] * 9, "9 left out: step rows"),
        ([row | {"seconds": row["seconds"] * 1e3} for row in COPIES], "is column seconds in milliseconds rather than"),
        ([row | {"seconds": row["seconds"] * 1e6} for row in COPIES], "is column seconds in microseconds rather than"),
        (
            [row | {"bytes": 2**at, "seconds": 1e9 * 2**at / 4e12} for at, row in enumerate(COPIES)],
            "bytes in GB rather",
        ),
        (
            [row | {"bytes": 2**at, "seconds": 1e6 * 2**at / 4e12} for at, row in enumerate(COPIES)],
            "bytes in MB rather",
        ),
        ([GEMM | {"seconds": 1e-6}], "line 2: gemm in 1e-06 s is 137.4 PFLOP/s, but the bf16 peak of h200-sxm is 989"),
        ([GEMM | {"dtype": "fp8", "m": 65536, "seconds": 4e-4}], "but the fp8 peak of h200-sxm is 1.979 PFLOP/s"),
        ([*COPIES, {"kind": "copy", "bytes": 10**10, "seconds": 1e-3}], "line 19: copy in 0.001 s is 10 TB/s, but the"),
        (
            [{"kind": "collective", "name": "all_reduce", "ranks": 8, "bytes": 10**9, "seconds": 1e-4}],
            "the scale-up link of h200-sxm is 450 GB/s",
        ),
        ([GEMM, *COPIES, GEMM | {"seconds": 9e-4}], "lines 2 and 20: the same gemm took 0.00021 s and 0.0009 s"),
        ([row | {"seconds": 0.9} for row in COPIES[:6]], "line 2: copy took 0.9 s, about"),
    ],
)
def test_implausible_rows(calibrated, rows: list[dict[str, object]], told: str) -> None:
    assert told in calibrated(_text(rows))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--fit", "memory_eficiency"), "--fit: no symbol 'memory_eficiency'; did you mean memory_efficiency"),
        (("--fit", "compute_units"), "--fit: compute_units is a figure of the data sheet"),
        (("--fit", "matrix_rate"), "--fit: matrix_rate is a figure of the data sheet"),
        (("--fit", "attention_efficiency"), "--fit: no row depends on attention_efficiency"),
        (("--prior", "memory_eficiency=0.1"), "--prior: no symbol 'memory_eficiency'; did you mean memory_efficiency"),
        (("--prior", "memory_efficiency=0"), "--prior: found 'memory_efficiency=0'"),
        (("--prior", "nan"), "--prior: found 'nan', expected NAME=WIDTH or WIDTH"),
        (("--prior", "=1"), "--prior: found '=1'"),
        (("--prior", "wide"), "--prior: found 'wide'"),
        (
            ("--loss", "hubert"),
            "--loss: found 'hubert', expected linear or soft-l1 or huber or cauchy; did you mean huber",
        ),
        (("--noise", "5"), "--noise: found 5, expected a number above 0 and up to 1: 0.05 is 5 %"),
        (("--noise", "nan"), "--noise: found nan"),
    ],
)
def test_bad_options(calibrated, options: tuple[str, ...], told: str) -> None:
    assert told in calibrated(_text(COPIES), *options)


def test_a_symbol_that_the_system_lacks(calibrated) -> None:
    """An A10G has no network."""
    told = calibrated(_text(COPIES), "--fit", "scale_up_latency", system="a10g")
    assert "scale_up_latency is not given" in told


def test_files(call, tmp_path: Path) -> None:
    """What is read must be there and stays as it is; what is written is a TOML file."""
    rows = write(tmp_path / "rows.csv", COPIES)
    base, empty = tmp_path / "base.toml", tmp_path / "empty"
    empty.mkdir()
    base.write_text('base = "h200-sxm"\n', encoding="utf-8")
    for arguments, told in (
        (
            [str(tmp_path / "none.csv"), "-s", "h200-sxm", "-o", str(tmp_path / "new.toml")],
            "none.csv: no such file, expected",
        ),
        (
            [str(tmp_path), "-s", "h200-sxm", "-o", str(tmp_path / "new.toml")],
            "found no table of kernels among rows.csv, expected a CSV file of measurements, or a folder",
        ),
        (
            [str(empty), "-s", "h200-sxm", "-o", str(tmp_path / "new.toml")],
            "holds no table, expected files such as gemm.parquet",
        ),
        ([str(rows), "-s", "h200", "-o", str(tmp_path / "new.toml")], "did you mean h200-sxm"),
        ([str(rows), "-s", str(base), "-o", str(base)], "is what is read; expected another file"),
        ([str(rows), "-s", "h200-sxm", "-o", str(tmp_path / "new.json")], "expected a .toml file"),
        ([str(rows), "-s", "h200-sxm", "-o", str(tmp_path / "none" / "new.toml")], "cannot be written"),
        ([str(rows), "-s", "h200-sxm"], "the following arguments are required: -o"),
    ):
        done = call(["calibrate", *arguments])
        assert done.code == 2
        assert told in done.err
        assert done.err.count("\n") == 1
    assert base.read_text(encoding="utf-8") == 'base = "h200-sxm"\n'


def test_a_null_character_in_a_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(sf.InputError, match="cannot be read"):
        read(f"{tmp_path}/a\0b.csv")


def test_spaces_and_aliases(tmp_path: Path) -> None:
    """Cells are stripped, `stream` is a copy, empty lines are none, and a byte-order mark is no part of a name."""
    path = tmp_path / "rows.csv"
    path.write_bytes("\ufeffkind , bytes, seconds\n stream , 1e6 , 4e-6 \n\n".encode())
    [row] = read(path).rows
    assert (row.kind, row.counts, row.seconds, row.line) == ("copy", {"bytes": 10**6}, 4e-6, 2)


def test_a_system_that_is_no_file_has_no_base_to_name(tmp_path: Path) -> None:
    """A system made in Python can be fitted; its file cannot be named."""
    (tmp_path / "mine.toml").write_text('base = "h200-sxm"\n', encoding="utf-8")
    system = sf.System.load(tmp_path / "mine.toml")
    found = sf.calibrate(write(tmp_path / "rows.csv", COPIES), system)
    assert found.system.value("memory_efficiency") == found.values["memory_efficiency"]
    with pytest.raises(sf.InputError, match="is not of the catalogue"):
        found.toml()

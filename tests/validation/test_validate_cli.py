"""`symperf validate`: tables, files, and one clear line for what is wrong with a user's tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.validation_cases import TRAINING, folder, refused, table

from symperf.cli import main

if TYPE_CHECKING:
    from pathlib import Path

ALWAYS = ("rows", "mape", "median", "bias", "max_error")
"""Keys of a source that are always there."""


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--source", "korth", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [source["name"] for source in found["sources"]] == ["KORTH"]
    assert len(found["rows"]) == 9


def _nulls(value: object, place: str = "") -> list[str]:
    if isinstance(value, dict):
        return [found for name, each in value.items() for found in _nulls(each, f"{place}.{name}")]
    if isinstance(value, list):
        return [found for each in value for found in _nulls(each, f"{place}[]")]
    return [place] if value is None else []


def test_json_has_no_null_and_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a family with nothing scored, of one row, of memory without intervals, and of all together."""
    folder(tmp_path, [TRAINING, TRAINING | {"id": "NONE-1", "model": "nobody"}])
    memory = {name: TRAINING[name] for name in ("id", "model", "hw_key", "num_devices", "tp", "pp", "seq_len_tokens")}
    folder(tmp_path, [memory | {"metric": "memory", "value": "60", "unit": "GB"}], "memory.csv")
    assert main(["validate", "--data", str(tmp_path), "--by", "device", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert _nulls(found) == []
    assert [source["name"] for source in found["sources"]] == ["MINE", "MINE memory"]
    assert all(source[name] is not None for source in found["sources"] for name in ALWAYS)
    assert found["unscored"][0]["name"] == "NONE"
    assert sum(found["unscored"][0]["left_out"].values()) == 1
    assert main(["validate", "--data", str(folder(tmp_path, [TRAINING | {"model": "nobody"}])), "--json"]) == 0
    capsys.readouterr()
    (tmp_path / "memory.csv").unlink()
    assert main(["validate", "--data", str(tmp_path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert _nulls(found) == []
    assert found["sources"] == []


def test_a_users_folder_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--data", str(folder(tmp_path, [TRAINING]))]) == 0
    out = capsys.readouterr().out
    assert "1 rows scored" in out
    assert "MINE" in out


def test_nothing_to_score_is_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--data", str(folder(tmp_path, [TRAINING | {"model": "nobody"}]))]) == 1
    assert "unknown model" in capsys.readouterr().out


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    paths = {flag: tmp_path / f"out{end}" for flag, end in (("markdown", ".md"), ("csv", ".csv"), ("plot", ".svg"))}
    flags = [part for flag, path in paths.items() for part in (f"--{flag}", str(path))]
    assert main(["validate", "--source", "KORTH", *flags]) == 0
    capsys.readouterr()
    assert paths["markdown"].read_text(encoding="utf-8").startswith("9 rows scored")
    assert len(paths["csv"].read_text(encoding="utf-8").splitlines()) == 10
    assert "<svg" in paths["plot"].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ({"step_time_s": "fast"}, "training.csv: line 2: step_time_s: found 'fast'"),
        ({"step_time_s": "-1"}, "line 2: step_time_s"),
        ({"step_time_s": "nan"}, "line 2: step_time_s"),
        ({"tp": "1.5"}, "line 2: tp: found '1.5', expected a positive whole number"),
        ({"tp": "0"}, "line 2: tp"),
    ],
)
def test_a_cell_that_is_no_number_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: dict[str, str], line: str
) -> None:
    assert line in refused(capsys, "--data", str(folder(tmp_path, [TRAINING | cells])))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "no column 'id'"),
        ("id,model\nA-1,gpt-22b\n", "no column 'hw_key'"),
        (table([TRAINING]).replace("step_time_s", "steptime_s"), "did you mean step_time_s?"),
        (table([TRAINING]).replace("seq_len_tokens", "seq_len_token"), "no column 'seq_len_tokens'"),
        (table([TRAINING]).replace("recompute", "tp"), "the column 'tp' comes twice"),
        (table([TRAINING]).splitlines()[0] + "\n", "has no row"),
        (table([TRAINING]) + "A-2,gpt-22b\n", "line 3: found 2 cells, expected the first line"),
        (table([TRAINING, TRAINING]), "line 3: id: found 'MINE-1'"),
        (table([TRAINING]).replace("MINE-1", '"MINE-1'), "not valid CSV"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    (tmp_path / "training.csv").write_text(text, encoding="utf-8")
    assert line in refused(capsys, "--data", str(tmp_path))


def test_other_faults_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds none of training.csv" in refused(capsys, "--data", str(tmp_path))
    assert "no such folder" in refused(capsys, "--data", str(tmp_path / "none"))
    (tmp_path / "training.csv").write_bytes(b"id,\xff\n")
    assert "is not UTF-8" in refused(capsys, "--data", str(tmp_path))
    assert "did you mean" in refused(capsys, "--source", "KORT")
    assert "expected a file that ends in .png" in refused(capsys, "--source", "KORTH", "--plot", "x.gif")
    assert "worst: found -1" in refused(capsys, "--worst", "-1")


@pytest.mark.parametrize("flag", ["--plot", "--markdown", "--csv"])
@pytest.mark.parametrize(
    ("name", "reason"), [("none/out.svg", "No such file"), ("file/out.svg", "Not a directory"), ("d.svg", "directory")]
)
def test_a_file_that_cannot_be_written_is_told_before_the_work(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    flag: str,
    name: str,
    reason: str,
) -> None:
    """No row is scored first: the run would be lost."""

    def scored(*arguments: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr("symperf.cli.validate.validate", scored)
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "d.svg").mkdir()
    line = refused(capsys, "--source", "KORTH", flag, str(tmp_path / name))
    assert "cannot be written" in line
    assert reason in line


@pytest.mark.parametrize(
    ("text", "reason"),
    [("selectiv", "did you mean selective?"), ("yes", "recompute: found 'yes', expected none, selective or full")],
)
def test_a_recomputation_that_is_not_known_is_left_out_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    """It was once scored as if nothing were computed again."""
    rows = [TRAINING, TRAINING | {"id": "MINE-2", "recompute": text}]
    assert main(["validate", "--data", str(folder(tmp_path, rows)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["rows"]) == 1
    assert any(reason in why for source in found["sources"] for why in source["left_out"])

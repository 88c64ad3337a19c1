"""`symperf validate --data FILE.csv`: any table of one's own, and one line for what is wrong with it."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part
from support.validation_cases import TRAINING, refused, table

from symperf.cli import main
from symperf.validation.own_columns import UNITS, columns_of, fold, recognise
from symperf.validation.own_file import KINDS, read_own
from symperf.validation.rows import UnreadableError

if TYPE_CHECKING:
    from pathlib import Path

STEP = {
    "Model": "gpt-22b",
    "GPU": "a100-80gb-sxm",
    "World Size": "8",
    "TP": "8",
    "Global Batch Size": "4",
    "mbs": "4",
    "seq_length": "2048",
    "recompute_granularity": "full",
    "Iteration time (ms)": "1420",
}
DECODE = {"isl": "128", "osl": "64", "batch": "1", "mean_ttft_ms": "12", "mean_tpot_ms": "7"}
MINE = ("--fill", "model=llama-2-7b", "--fill", "hw_key=h100-sxm")


def _file(path: Path, *rows: dict[str, str], name: str = "mine.csv") -> str:
    (path / name).write_text(table(list(rows)), encoding="utf-8")
    return str(path / name)


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["validate", "--json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_columns_by_other_names_give_the_same_as_the_documented_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documented = _json(capsys, "--data", _file(tmp_path, TRAINING, name="training.csv"))["rows"]
    found = _json(capsys, "--data", _file(tmp_path, STEP))
    assert found["columns"]["table"] == "training"
    for name in ("quantity", "measured", "predicted"):
        assert found["rows"][0][name] == documented[0][name]


def test_a_line_with_several_measurements_is_as_many_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, "--data", _file(tmp_path, DECODE), *MINE)["rows"]
    assert [(row["quantity"], row["measured"]) for row in found] == [("prefill_s", 0.012), ("time_per_token_s", 0.007)]
    found = _json(capsys, "--data", _file(tmp_path, STEP | {"max memory (GiB)": "50"}))["rows"]
    assert [row["quantity"] for row in found] == ["time_s", "memory_bytes"]
    assert found[1]["measured"] == pytest.approx(50 * 2**30)


def test_map_and_fill_say_what_columns_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {name: cell for name, cell in STEP.items() if name not in ("Model", "Iteration time (ms)")}
    path = _file(tmp_path, own | {"t": "1.42"})
    asked = ("--fill", "model=gpt-22b", "--map", "t=step_time_s:s")
    assert _json(capsys, "--data", path, *asked)["rows"][0]["measured"] == 1.42
    assert _json(capsys, "--data", path, *asked[:2], "--map", "t=step_time_s:min")["rows"][0][
        "measured"
    ] == pytest.approx(85.2)


def test_the_guide_tells_each_column_and_scores_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("symperf.cli.validate_file.scored_of", None)
    assert main(["validate", "--guide", "--data", _file(tmp_path, DECODE | {"colour": "red"})]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "read     mean_ttft_ms is ttft, in ms: mean time to the first token" in lines
    assert "ignored  colour" in lines
    assert [line.split()[1] for line in lines if line.startswith("missing")] == ["model:", "hw_key:"]
    assert main(["validate", "--guide", "--json", "--data", _file(tmp_path, DECODE), *MINE]) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == []


def test_rows_are_printed_as_they_are_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line stands before the second row is looked at."""
    import symperf.validation.own_score as scores

    predict, seen = scores.predict_case, []

    def watched(case: Any) -> Any:
        seen.append(capsys.readouterr().out)
        return predict(case)

    monkeypatch.setattr(scores, "predict_case", watched)
    assert main(["validate", "--data", _file(tmp_path, STEP, STEP | {"Iteration time (ms)": "1430"})]) == 0
    assert seen[0] == ""
    assert "measured 1.42" in seen[1]


@pytest.mark.parametrize(
    ("cells", "asked", "line"),
    [
        ({"Iteration time (ms)": "fast"}, (), "line 2: Iteration time (ms): found 'fast', expected a number"),
        ({"Iteration time (ms)": "nan"}, (), "line 2: Iteration time (ms): found 'nan'"),
        ({"TP": "1.5"}, (), "line 2: TP: found '1.5', expected a positive whole number"),
        ({"step_time": "1"}, ("--map", "Iteration time (ms)="), "column 'step_time': its unit is not said"),
        ({"iter_time_s": "1"}, (), "is step_time_s, as the column 'Iteration time (ms)' is"),
        ({"recomput": "full"}, (), "unknown column 'recomput'; did you mean recompute? (--map recomput= ignores it)"),
        ({}, ("--map", "TP=tpp"), "map: unknown field 'tpp'"),
        ({}, ("--map", "seq_len=tp"), "has no column 'seq_len'; did you mean seq_length?"),
        ({}, ("--map", "TP"), "map: found 'TP', expected COLUMN=FIELD"),
        ({}, ("--map", "Iteration time (ms)=step_time_s:h"), "found the unit 'h', expected"),
        ({}, ("--fill", "seq_len=4"), "fill: unknown field 'seq_len'; did you mean seq_len_tokens?"),
        ({}, ("--fill", "tp=4"), "is tp, as --fill is"),
        ({"url": "a"}, ("--fill", "url=b"), "column 'url': is url, as --fill is"),
        ({"url": "a", "link": "b"}, ("--map", "link=url"), "column 'url': is url, as the column 'link' is"),
        ({}, ("--fill", "tp"), "fill: found 'tp', expected FIELD=VALUE"),
        ({}, ("--map", "TP=pp", "--map", "TP=tp"), "map: 'TP' comes twice, expected it once"),
        ({}, ("--fill", "note=a", "--fill", "note=b"), "fill: 'note' comes twice, expected it once"),
        ({}, ("--table", "train"), "table: found 'train', expected training or inference"),
        ({}, ("--table", "serving"), "no column for backend (as documented), model_path"),
        ({"isl": "4", "ttft_ms": "1"}, (), "may be of training or of inference; say which by --table"),
        ({}, ("--map", "seq_length="), "no column for seq_len_tokens (tokens in a sequence)"),
        ({}, ("--map", "Iteration time (ms)="), "no column for what was measured"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: dict[str, str], asked: tuple[str, ...], line: str
) -> None:
    assert line in refused(capsys, "--data", _file(tmp_path, STEP | cells), *asked)


def test_faults_of_the_file_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.csv"
    wide = ",".join(f"c{number}" for number in range(100_000))
    for text, line in (
        ("", "no column for"),
        (wide + "\n", "100,000 columns, expected at most"),
        (wide[:3000].rpartition(",")[0] + "\n", "columns, expected at most 500"),
        ("x" * 200_000 + "\n", "not valid CSV"),
        (table([STEP]).splitlines()[0] + "\n", "has no row"),
        (table([STEP]) + "1,2\n", "line 3: found 2 cells"),
        (table([STEP]).replace("TP", "mbs"), "the column 'mbs' comes twice"),
        (table([STEP | {"run": "a"}, STEP | {"run": "a"}]), "line 3: run: found 'a', expected another"),
        ("a,\0\n", ""),
    ):
        path.write_text(text, encoding="utf-8")
        assert line in refused(capsys, "--data", str(path))
    assert "no such file" in refused(capsys, "--data", str(tmp_path / "none.csv"))
    assert "is larger than" in refused(capsys, "--data", "/dev/zero")
    assert "guide: goes with --data FILE.csv" in refused(capsys, "--guide")
    assert "map: goes with --data FILE.csv" in refused(capsys, "--map", "a=tp", "--data", str(tmp_path))


def test_a_pipe_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(table([STEP]),))
    writer.start()
    found = _json(capsys, "--data", str(pipe))
    writer.join()
    assert found["sources"][0]["name"] == "pipe"


def test_every_spelling_is_one_field_of_a_documented_table() -> None:
    """No spelling is of two fields; each field is a column of its table, or a measurement of it."""
    from symperf.validation.tables import columns_of as documented

    for kind in ("training", "inference"):
        known = documented(f"{kind}.csv")
        spellings = [name for column in columns_of(kind) for name in {column.field, *column.bases}]
        assert len(spellings) == len(set(spellings))
        for column in columns_of(kind):
            assert column.metric or column.field in (*known.required, *known.optional)
            assert column.bases == tuple(map(fold, column.bases))
            for unit in column.factors:
                assert recognise(f"{column.bases[-1]}_{unit}", kind) == (column, unit)
            assert not column.unit or not column.factors or column.unit in UNITS


@given(
    header=st.lists(st.text(max_size=12), max_size=6),
    cells=st.lists(st.text(max_size=6), max_size=6),
    maps=st.lists(st.text(max_size=8), max_size=2),
    kind=st.sampled_from([None, *KINDS]),
)
@part(0.2)
def test_any_text_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, header: list[str], cells: list[str], maps: list[str], kind: str | None
) -> None:
    path = tmp_path_factory.mktemp("own") / "any.csv"
    path.write_text(f"{','.join(header)}\n{','.join(cells)}\n", encoding="utf-8", errors="replace")
    told = ""
    try:
        read_own(path, maps, (), kind)
    except UnreadableError as error:
        told = str(error)
    assert len(told.splitlines()) <= 1

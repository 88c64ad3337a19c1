"""`symperf validate --explain ROW`: who says what, and a command line that gives the row's number exactly."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import NIGHTLY
from support.validation_cases import TRAINING, folder, table

from symperf.cli import main
from symperf.cli.validate_explain import number_of
from symperf.validation.case import Scored
from symperf.validation.documents import document_of
from symperf.validation.explain import BESIDE, MEASURED, every_row, explain, row_facts
from symperf.validation.readings import Reading

if TYPE_CHECKING:
    from pathlib import Path

    from symperf.validation.rows import TableRow

CHEAP = (
    "SC21-003",  # FLOPs as the source counts them
    "KORTHLAYER-001",  # one layer
    "KORTHMEM-001",  # the state
    "KORTHMEM-014",  # activations, relative to another plan
    "reference_training:6",
    "reference_inference:2",
    "FTGPT-001",  # memory of an inference
    "NIM-005",  # requests in flight
    "INFX-105",  # whose lengths spread
)
"""Rows of every kind of table whose structures are small."""


@pytest.fixture(scope="module")
def rows() -> list[TableRow]:
    return list(every_row())


def _sample(rows: list[TableRow]) -> list[str]:
    """The cheap rows; under `nightly` some of every family besides, and of every software that serves."""
    families: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        name = f"{row.table.removesuffix('.csv')}:{row.line}"
        families[row.table, row.text("backend") + row.text("mode") or row.family].append(name)
    more = [name for names in families.values() for name in names[:: max(len(names) // 5, 1)]]
    return [*CHEAP, *(more if NIGHTLY else ())]


def test_the_printed_command_gives_the_number_of_the_row(rows: list[TableRow]) -> None:
    scored = 0
    for name in _sample(rows):
        for each in explain(rows, name):
            if isinstance(each.result, Scored):
                assert isinstance(each.reading, Reading), each.reading
                assert number_of(each.reading) == pytest.approx(each.result.predicted, rel=1e-12), each.result.case
                scored += 1
    assert scored >= len(CHEAP)


def _explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["validate", "--json", *arguments]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"].startswith("symperf/validate/"), "not that of the verbs whose commands are run for it"
    found: list[dict[str, Any]] = answer["explained"]
    return found


def test_the_command_is_run_as_it_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A model of dimensions alone is written into a file that the command names."""
    sizes = {"layers": "4", "hidden": "1024", "heads": "16", "vocab": "50304", "ffn": "4096"}
    own = folder(tmp_path, [TRAINING | sizes | {"model": "mine", "step_time_s": "0.05"}])
    (found,) = _explained(capsys, "--data", str(own), "--explain", "mine-1", "-o", str(tmp_path / "files"))
    (command,) = found["commands"]
    assert str(tmp_path / "files" / "model.json") in command
    assert main([*shlex.split(command)[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["time_s"] == found["predicted"] == found["again"]


def test_each_field_says_who_says_it(rows: list[TableRow]) -> None:
    (found,) = explain(rows, "sc21-003")
    facts = {fact.name: fact.where for fact in found.facts}
    document = f"its document: {document_of(found.row).source}"
    assert facts["recompute"] == "the row: recompute full"
    assert facts["overlap_tp"] == facts["kernels"] == facts["flops"] == document
    found, *_ = explain(rows, "DGXC-001")
    facts = {fact.name: fact.where for fact in found.facts}
    assert facts["overlap_dp"].startswith("its software: NeMo")
    assert facts["micro_batch"].startswith("the row")


def test_what_is_no_default_is_said_by_somebody(rows: list[TableRow]) -> None:
    """Cells that a document fills are the document's; every other value of the plan has a source that is told."""
    for name in ("SC21-005", "MBRIDGE-002", "DSV3ISCA-001"):
        (found,) = explain(rows, name)
        said = document_of(found.row)
        for fact in found.facts:
            column = {"micro_batch": "micro_batch_seqs"}.get(fact.name, fact.name)
            if column in said.columns and not found.row.text(column):
                assert fact.where == f"its document: {said.source}"
            assert fact.where != "the default"


def test_a_breakdown_sums_to_the_step(rows: list[TableRow], capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = explain(rows, "SC21-003")
    assert found.run is not None
    (told,) = _explained(capsys, "--explain", "SC21-003")
    assert sum(term["time_s"] for term in told["breakdown"]) == pytest.approx(found.run.value("time"))
    assert [told[name] for name in ("measured", "error")] == [found.result.measured, found.result.error]  # type: ignore[union-attr]


def test_text_has_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--explain", "SC21-003"]) == 0
    text = capsys.readouterr().out
    for part in ("how it was read", "breakdown", "efficiencies and overheads", "the same number", "symperf train gpt-"):
        assert part in text


def test_a_row_of_ones_own_file_is_explained_by_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    own = {name.replace("step_time_s", "step_time_min"): cell for name, cell in TRAINING.items() if name != "id"}
    path.write_text(table([own | {"step_time_min": "0.02"}]), encoding="utf-8")
    (found,) = _explained(capsys, "--data", str(path), "--explain", "training:2")
    assert found["again"] == found["predicted"]


def test_a_row_that_is_left_out_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = folder(tmp_path, [TRAINING | {"model": "nobody"}])
    assert main(["validate", "--data", str(own), "--explain", "MINE-1"]) == 1
    assert "left out: unknown model 'nobody'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (("--explain", "SC21-03"), "explain: found 'SC21-03', which no row has; did you mean SC21-0"),
        (("--explain", ""), "explain: found '', which no row has"),
        (("--explain", "SC21-003", "--csv", "x.csv"), "csv: cannot be given with --explain"),
        (("--explain", "SC21-003", "--map", "a=tp"), "map: goes with --data FILE.csv"),
        (("--explain", "SC21-003", "-o", "pyproject.toml"), "output: 'pyproject.toml' cannot be written: found a file"),
        (("--source", "SC21", "-o", "x"), "output: goes with --explain ROW"),
        (("--explain", "SC21-003", "--data", "none"), "none: no such folder"),
    ],
)
def test_what_cannot_be_explained_is_one_line(
    capsys: pytest.CaptureFixture[str], asked: tuple[str, ...], line: str
) -> None:
    assert main(["validate", *asked]) == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert line in done.err


def test_every_cell_that_describes_a_row_is_told(rows: list[TableRow]) -> None:
    for row in rows[:: 1 if NIGHTLY else 53]:
        told = {fact.name: fact.value for fact in row_facts(row)}
        cells = {name: cell for name, cell in row.cells.items() if cell and name not in (*MEASURED, *BESIDE)}
        assert cells.keys() <= told.keys()
        assert all(told[name] == cell or name in document_of(row).instead for name, cell in cells.items())

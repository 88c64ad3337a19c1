"""The accuracy page is current: rows whose hash has changed are predicted again, all of them and no others."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.paths import ROOT

from symperf.validation.case import LeftOut, Scored
from symperf.validation.rows import PACKAGED, read
from symperf.validation.score import Report, cases, predict_case
from symperf.validation.tables import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from symperf.validation.rows import TableRow


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The script of the page, over three rows and a folder of its own."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import accuracy_hashes
    import accuracy_page

    rows = read(PACKAGED / "reference_training.csv", columns_of("reference_training.csv"))[:3]
    monkeypatch.setattr(accuracy_page, "TABLE", rows, raising=False)
    monkeypatch.setattr(
        accuracy_hashes, "every_item", lambda: [(row, item) for row in accuracy_page.TABLE for item in cases(row)]
    )
    monkeypatch.setattr(accuracy_page, "FIGURES", ())
    monkeypatch.setattr(accuracy_page, "REFERENCES", ())
    for script, name in ((accuracy_page, "ROWS"), (accuracy_page, "LEFT_OUT"), (accuracy_hashes, "FILE")):
        monkeypatch.setattr(script, name, tmp_path / f"{name}.txt")
    results = [predict_case(item) for _, item in accuracy_hashes.every_item()]  # type: ignore[arg-type]
    scored = [item for item in results if isinstance(item, Scored)]
    left = [LeftOut("a family", "a row", "a reason")]
    for path, text in accuracy_page.write(Report(scored, left)).items():
        path.write_text(text, encoding="utf-8")
    return accuracy_page


@pytest.fixture
def predicted(page: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rows that are predicted again."""
    found: list[str] = []

    def watched(case: Any) -> Scored | LeftOut:
        found.append(case.case)
        return predict_case(case)

    monkeypatch.setattr(page, "predict_case", watched)
    return found


def test_nothing_is_looked_at_where_nothing_has_changed(
    page: Any, predicted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page.accuracy_hashes, "every_item", None)
    assert page.stale() == []
    assert predicted == []


def change_row(page: Any, change: Callable[[TableRow], TableRow]) -> None:
    page.TABLE[1] = change(page.TABLE[1])
    page.accuracy_hashes.FILE.write_text(page.accuracy_hashes.FILE.read_text("utf-8").replace("inputs ", "inputs x"))


def test_a_row_that_changes_is_predicted_again_and_no_other(page: Any, predicted: list[str]) -> None:
    def longer(row: TableRow) -> TableRow:
        return dataclasses.replace(row, cells={**row.cells, "batch": "128"})

    change_row(page, longer)
    (line,) = page.stale()
    assert len(predicted) == 1
    assert predicted[0] in line
    assert ": predicted " in line


def test_what_a_row_says_besides_is_part_of_its_hash(page: Any, predicted: list[str]) -> None:
    change_row(page, lambda row: dataclasses.replace(row, cells={**row.cells, "source": "another"}))
    assert page.stale() == []
    assert len(predicted) == 1


def test_a_program_or_a_constant_that_changes_is_a_change_of_its_rows(
    page: Any, predicted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page.accuracy_hashes, "program", lambda kind: f"another {kind}")
    assert page.stale() == []
    assert len(predicted) == 3
    assert page.stale(sample=True) == []
    assert len(predicted) == 3


def test_a_figure_that_is_edited_by_hand_is_found(page: Any, predicted: list[str]) -> None:
    text = page.ROWS.read_text("utf-8")
    line = text.splitlines()[2]
    number = line.split(",")[-1 - len(page.tables.LABELS) - 4]
    kept = page.kept().scored[1]
    assert number == f"{kept.predicted:.6g}"
    page.ROWS.write_text(text.replace(line, line.replace(number, "77.5")), encoding="utf-8")
    (found,) = page.stale()
    assert found.endswith("was 77.5")
    assert len(predicted) == 1


LOADED = """
import sys
from symperf.validation.rows import PACKAGED, read
from symperf.validation.score import cases, predict_case
from symperf.validation.tables import columns_of
for item in (item for row in read(PACKAGED / sys.argv[1], columns_of(sys.argv[1]))[:2] for item in cases(row)):
    predict_case(item)
print(*(name for name in sys.modules if name.startswith("symperf.")))
"""


@pytest.mark.parametrize("table", ["reference_training.csv", "inference.csv"])
def test_predictions_pass_through_no_room_that_is_left_apart(page: Any, table: str) -> None:
    hashes = page.accuracy_hashes
    done = subprocess.run([sys.executable, "-c", LOADED, table], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {f"{name.removeprefix('symperf.').replace('.', '/')}/" for name in done.stdout.split()}
    apart = (*hashes.APART, *(hashes.NOT_TRAINING if hashes.kind_of(table) == "training" else ()))
    folders = tuple(f"{name.removesuffix('.py')}/" for name in apart)
    assert [name for name in sorted(loaded) if name.startswith(folders)] == []
    assert all((hashes.ROOT / name).exists() for name in apart)

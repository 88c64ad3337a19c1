"""What notebooks show of runs, terms, tables and regimes: the numbers of the answers, and names as plain text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.analysis.strips import Part, shares_strip, strip
from symperf.evaluation.rows import Row, Rows

if TYPE_CHECKING:
    from symperf.runs.training_run import Run

HOSTILE = "<script>alert('1')</script>&\"$x$"


@pytest.fixture(scope="module")
def run() -> Run:
    model, system = sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm")
    plan = sf.Plan(tp=8, recompute="selective", sequence_parallel=True)
    return sf.training(model, system, plan, batch=4, sequence=2048)


def tree(text: str) -> ElementTree.Element:
    """HTML that is well-formed XML, so that every name in it was escaped and every tag is closed."""
    return ElementTree.fromstring(f"<div>{text}</div>")


def cells(text: str) -> dict[str, list[str]]:
    """The cells of the rows of tables by the head of each row."""
    rows = [["".join(cell.itertext()) for cell in row] for row in tree(text).iter("tr")]
    return {row[0]: row[1:] for row in rows}


def test_a_training_run_shows_its_answer(run: Run) -> None:
    text = run._repr_html_()
    shown = cells(text)
    assert shown["step time"] == [f"{run.value('time'):.4g} s"]
    assert shown["tokens/s"] == [f"{run.value('tokens_per_s'):,.0f}"]
    assert shown["memory"][0].endswith("fits" if run.fits else "does not fit")
    assert "gpt-22b on a100-80gb-sxm" in "".join(tree(text).itertext())


def test_an_inference_shows_its_answer() -> None:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    answer = sf.inference(model, system, sf.Plan(), batch=1, prompt=200, generate=200)
    shown = cells(answer._repr_html_())
    assert set(shown) == {"prefill", "time per token", "in all", "tokens/s", "memory"}
    assert float(shown["prefill"][0].split()[0]) == pytest.approx(1e3 * answer.value("prefill"), rel=1e-3)


def test_a_run_with_free_symbols_shows_what_is_free(run: Run) -> None:
    assert "free: micro_batch" in run.free("micro_batch")._repr_html_()


def test_the_strip_has_every_resource_as_wide_as_its_share(run: Run) -> None:
    root = tree(shares_strip(run.shares()))
    widths = [float(re.findall(r"flex:([\d.]+)", str(bar.get("style")))[0]) for bar in root[0]]
    assert widths == sorted(widths, reverse=True)
    assert sum(widths) == pytest.approx(1, abs=0.005)
    largest = max(run.shares(), key=lambda name: run.shares()[name])
    assert str(root[0].get("aria-label")).startswith(f"{largest} ")


def test_a_table_shows_every_term_with_its_share(run: Run) -> None:
    table = run.table()
    shown = cells(table._repr_html_())
    assert set(shown) == {"term", *(row.name for row in table)}
    for row in table:
        assert shown[row.name][0] == f"{row.time_s:.4g}\u00a0s"
        assert shown[row.name][2] == f"{100 * row.share:.1f}\u00a0%"


def test_a_term_shows_itself_alone_and_as_a_closed_form(run: Run) -> None:
    row = run.table()[0]
    assert set(cells(row._repr_html_())) == {"term", row.name}
    assert run.time["layer/mlp/up"]._repr_latex_().startswith("$")


def test_regimes_show_a_strip_before_their_tables(run: Run) -> None:
    found = run.regimes("memory_bandwidth", 1e11, 1e13)
    root = tree(found._repr_html_())
    strip_, tables = root[0], list(root.iter("table"))
    assert [str(bar.get("title")).split()[0] for bar in strip_] == [span.bound for span in found.spans]
    widths = [float(re.findall(r"flex:([\d.]+)", str(bar.get("style")))[0]) for bar in strip_]
    assert sum(widths) == pytest.approx(4.60517, rel=1e-4)  # ln 100: every point of the range is in one stretch
    assert len(tables) == len(found.tables())


@pytest.mark.parametrize(
    "text",
    [
        strip([Part(HOSTILE, 1.0, HOSTILE)]),
        Row(HOSTILE, 1.0, 1.0, 1.0, HOSTILE, 1.0, 1.0, 1.0, 1.0)._repr_html_(),
        Rows([Row(HOSTILE, 1.0, 1.0, 1.0, None, 0.0, 0.0, 1.0, 1.0)])._repr_html_(),
    ],
    ids=["strip", "row", "rows"],
)
def test_names_stay_text(text: str) -> None:
    assert "<script" not in text
    assert HOSTILE in "".join(tree(text).itertext())


def test_the_name_of_a_run_stays_text(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def hostile(_: Any) -> str:
        return HOSTILE

    monkeypatch.setattr(type(run), "__repr__", hostile)
    assert HOSTILE in "".join(tree(run._repr_html_()).itertext())

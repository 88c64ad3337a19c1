"""Text at any width: nothing is cut off, no line is too wide, and --width and COLUMNS say how wide that is."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import NIGHTLY, part, some

from symperf.common.table import GAP, Table, columns, fold, hung, pack

if TYPE_CHECKING:
    from collections.abc import Callable

WIDE = 2000
SMALL = "llama-2-7b -s h100-sxm"
COMMANDS = [
    f"train {SMALL} --tp 2 --pp 2 --batch 8 --sequence 4096 --energy --interval",
    f"infer {SMALL} --batch 8 --prompt 200 --generate 100",
    f"serve {SMALL} --prompt 500 --generate 100 --ttft 1 --tpot 0.05 --load 2",
    f"derive train {SMALL} --batch 8 --sequence 4096",
    f"derive infer {SMALL} --batch 8 --prompt 200 --generate 100 --wrt memory_bandwidth",
    "inspect mixtral-8x7b",
    "technology ampere --node 5nm --cost",
    "formulas ring_all_reduce_time",
    "formulas",
    "validate --source SC21 --worst 3",
    "list systems",
    "list stacks",
    *([f"search {SMALL} --devices 8 --batch 8 --sequence 4096 --top 3"] if NIGHTLY else []),
]
"""A line of each verb that prints tables or sentences."""
FREE = {COMMANDS[4], "formulas ring_all_reduce_time"}
"""Whose equation is laid out anew at each width, with other words, or whose paths break at a slash."""


def text(call: Callable[..., Any], command: str, width: int) -> str:
    code, out, err = call([*shlex.split(command), "--width", str(width)])
    assert (code, err) == (0, "")
    return str(out)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[:24])
def test_a_narrow_terminal_shows_all_that_a_wide_one_does(command: str, call: Any) -> None:
    words = set(text(call, command, WIDE).split())
    for width in some((40, 60, 80, 120, 200), 0.4):
        out = text(call, command, width)
        assert max(map(columns, out.splitlines())) <= width
        assert not [line for line in out.splitlines() if line.endswith(" ")]
        found = "".join(out.split())
        took = {word for word in words if command.startswith("search") and word.replace(".", "").isdigit()}
        assert not [word for word in words - took if word not in found] or command in FREE
        assert found.count("…") == found.count("+…") + found.count(";…:")


def test_the_width_is_that_of_the_flag_or_of_columns_or_of_a_pipe(call: Any, monkeypatch: Any) -> None:
    def widest(*more: str) -> int:
        return max(map(columns, call(["list", "stacks", *more]).out.splitlines()))

    monkeypatch.delenv("COLUMNS", raising=False)
    assert 100 < widest() <= 120
    monkeypatch.setenv("COLUMNS", "60")
    assert 50 < widest() <= 60
    assert 80 < widest("--width", "90") <= 90
    for less in ("7", "0", "-5", "many", ""):
        monkeypatch.setenv("COLUMNS", less)
        assert 30 < widest() <= 120


def test_a_file_is_as_wide_as_a_pipe(call: Any, monkeypatch: Any, tmp_path: Any) -> None:
    """Whatever the terminal is on which it is written."""
    monkeypatch.setenv("COLUMNS", "50")
    command = shlex.split(f"derive train {SMALL} --batch 8 --sequence 4096 -o {tmp_path / 'form.txt'}")
    assert call(command).code == 0
    assert 60 < max(map(columns, (tmp_path / "form.txt").read_text("utf-8").splitlines())) <= 120


@pytest.mark.parametrize("value", ["39", "0", "-80", "80.5", "wide", "", "1e9", "99999"])
def test_a_width_that_is_none_is_one_line(value: str, call: Any) -> None:
    code, out, err = call(["list", "systems", f"--width={value}"])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"list: argument --width: found '{value}', expected a whole number from 40 to 10000" in err


def test_a_pipe_that_no_python_made_has_whole_values() -> None:
    """As `symperf ... | cat`."""
    code = "import sys; from symperf.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *shlex.split(f"infer {SMALL} --batch 8 --prompt 200 --generate 100")]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, encoding="utf-8").stdout
    assert "…" not in out
    assert max(map(columns, out.splitlines())) <= 120


WORDS = st.lists(st.text("ab/_-,.;é模", min_size=1, max_size=30), max_size=8).map(" ".join)


@part(0.5)
@given(
    heads=st.lists(WORDS, min_size=1, max_size=5),
    rows=st.data(),
    width=st.integers(40, 130),
    left=st.sets(st.integers(0, 4)),
    wraps=st.sets(st.integers(0, 4)),
)
def test_every_cell_of_a_table_is_there(
    heads: list[str], rows: st.DataObject, width: int, left: set[int], wraps: set[int]
) -> None:
    table = Table(heads, left=left, wraps=wraps)
    for cells in rows.draw(st.lists(st.tuples(*[WORDS] * len(heads)), max_size=5)):
        table.add_row(*cells)
    lines = [line for line, _ in table.lines(width)]
    assert all(columns(line) <= width for line in lines)
    # cells beside each other go on below themselves: their characters are there, those of others between them
    shown = sorted("".join("".join(lines).split()).replace(",", "").replace(";", ""))
    for cells in table.rows:
        for cell in cells:
            for letter in set(cell) - set(" ,;"):
                assert shown.count(letter) >= cell.count(letter)


@given(text=WORDS, width=st.integers(12, 60), indent=st.integers(0, 8))
@part(0.5)
def test_folding_loses_nothing(text: str, width: int, indent: int) -> None:
    for lines in (fold(text, width, " " * indent), hung(" " * indent + text, width)):
        assert all(columns(line) <= width for line in lines)
        assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_table_has_columns_where_they_fit_and_blocks_where_not() -> None:
    table = Table(("term", "time", "share", "why"), left=("term", "why"), wraps=("why",))
    table.add_row("layer/mlp/up", "12.3 ms", "40 %", "it is large and so on and so on, as far as one can see")
    table.add_row("b", "1 s", "5 %", "it is small")
    at = {width: [line for line, _ in table.lines(width)] for width in (120, 70, 40, 22)}
    assert at[120][0].split() == ["term", "time", "share", "why"]
    assert len(at[120]) == 3
    assert at[70][1].startswith("layer/mlp/up  12.3 ms   40 %  it is large")
    assert len(at[70]) == 4
    assert at[40][:2] == ["term             time  share", "layer/mlp/up  12.3 ms   40 %"]
    assert at[40][2].startswith("    why it is large")
    assert at[22][:3] == ["term", "layer/mlp/up", "    time 12.3 ms,"]


def test_a_number_keeps_its_unit_and_a_piece_stays_whole() -> None:
    assert fold("memory 20 %, launch 5 %", 10) == ["memory", "20 %,", "launch 5 %"]
    assert pack(["a = 1 b", "c = 2 d"], 12, "", "  ") == ["a = 1 b,", "  c = 2 d"]
    assert hung(f"cost{GAP}3 USD a token and more", 18) == ["cost  3 USD a", "      token and", "      more"]

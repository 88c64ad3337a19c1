"""`symperf list`: readable at any width, and nothing is cut off."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from symperf.cli import list as listed
from symperf.cli.listing import Entry, Group, show
from symperf.models.model import Model

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS: dict[str, Callable[[], listed.Listing]] = {
    "models": listed.models,
    "systems": listed.systems,
    "stacks": listed.stacks,
    "symbols": lambda: listed.symbols("h100-sxm"),
    "formulas": listed.formulas,
}


def printed(groups: Any, width: int) -> list[str]:
    """The lines of groups on a terminal of some columns."""
    text = io.StringIO()
    show(Console(file=text, width=width, markup=False, emoji=False, highlight=False), groups)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 80, 120])
@pytest.mark.parametrize("what", KINDS)
def test_every_value_is_there_and_no_line_is_wider_than_the_terminal(what: str, width: int) -> None:
    listing = KINDS[what]()
    lines = printed(listing.groups, width)
    assert max(map(len, lines)) <= width
    # Where a line breaks is free: compare without blanks.
    found = "".join("".join(lines).split())
    entries = [entry for group in listing.groups for entry in group.entries]
    assert {entry.cells[0] for entry in entries} == {row["name"] for row in listing.rows}
    for entry in entries:
        for text in (*entry.cells, *entry.notes):
            assert "".join(text.split()) in found
    for row in listing.rows:
        for key in ("title", "sentence", "source"):
            assert "".join((row.get(key) or "").split()) in found


@pytest.mark.parametrize("width", [80, 120])
def test_a_model_is_one_line_below_the_headings_of_its_family(width: int) -> None:
    lines = printed(listed.models("gpt2").groups, width)
    (head,) = [number for number, line in enumerate(lines) if line.split()[:1] == ["gpt2"] and "layers" in line]
    assert lines[head].split() == ["gpt2", "parameters", "layers", "hidden", "heads", "kv", "heads", "context"]
    (row,) = [line for line in lines if line.startswith("gpt-22b ")]
    assert row.split() == ["gpt-22b", "22.07", "G", "48", "6144", "64", "64", "2048"]


def test_a_family_is_chosen_by_its_start_or_by_that_of_a_name(call: Any) -> None:
    for start in ("qwen3", "Yi", "deepseek_v", "DeepSeek-V"):
        code, out, err = call(["list", "models", start, "--json"])
        assert (code, err) == (0, "")
        key = start.lower().replace("_", "-")
        for row in json.loads(out)["models"]:
            assert row["name"].startswith(key) or row["family"].replace("_", "-").startswith(key)
            assert row["parameters"] > 1e8
            assert row["context"] == Model.load(row["name"]).context


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            ["models", "qwenn3"],
            "expected the start of a family or of a model's name; did you mean qwen3",
        ),
        (["models", "gpt-22b-1-layer"], "found 'gpt-22b-1-layer'"),
        (["systems", "v100"], "found 'v100' after systems, expected a family only of models"),
    ],
)
def test_what_is_not_there_is_one_line(call: Any, line: list[str], told: str) -> None:
    code, out, err = call(["list", *line])
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_shares_of_a_training_software_say_where_they_hold() -> None:
    (text,) = [
        " ".join(entry.notes)
        for group in listed.stacks().groups
        for entry in group.entries
        if entry.cells[0] == "llm-foundry-2023"
    ]
    assert "attention_efficiency x 0.555" in text
    assert " on h100" in text


def test_wide_characters_count_twice() -> None:
    group = Group(("thing", "size"), [Entry(("模型模型", "12"), ("说明" * 20,)), Entry(("ab", "3"))], numbers=True)
    lines = printed([group], 20)
    assert lines[1] == "模型模型    12"
    assert lines[-1] == "ab           3"
    assert all(2 * sum(ord(c) > 255 for c in line) + sum(ord(c) < 256 for c in line) <= 20 for line in lines)

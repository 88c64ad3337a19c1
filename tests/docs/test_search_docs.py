"""What the page on searches says of frameworks and commands is so."""

from __future__ import annotations

import importlib
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import some
from support.paths import ROOT

from symperf.export.emit import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines() if line]


def test_the_table_of_options_is_that_of_the_code() -> None:
    """Each option with the address that documents it."""
    told: dict[tuple[str, str], str] = {}
    for framework, options, source in re.findall(r"^\| ([\w-]+) \| (`.*`) \| \[.*\]\((.*)\) \|$", PAGE, re.MULTILINE):
        told |= {(framework, name): source for name in re.findall(r"`([^`]+)`", options)}
    known = {
        (framework, name): option.source
        for framework, module in {**FRAMEWORKS, "dynamo": "dynamo"}.items()
        for name, option in importlib.import_module(f"symperf.export.{module}").OPTIONS.items()
    }
    assert told == known


@pytest.mark.parametrize("command", some(COMMANDS))
def test_commands_run(call: Callable[[Any], Any], command: str) -> None:
    words = shlex.split(command)
    assert words[0] == "symperf"
    code, out, err = call(words[1:])
    assert (code, err) == (0, "")
    assert out

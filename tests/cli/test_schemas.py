"""JSON of every verb is as its schema in the package says, and says which schema and which constants it has."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import NIGHTLY
from support.paths import ROOT
from support.schema_cases import CASES, FILES, SLOW, faults

from symperf.cli import parser
from symperf.cli.output import SCHEMAS
from symperf.common import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOLDER = ROOT / "symperf" / "catalogue" / "schemas"
SHOWN = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
ANSWERED = [verb for verb in CASES if NIGHTLY or verb not in SLOW]
OTHER = {"llama-2-7b": "llama-3-8b", "h100-sxm": "a100-80gb-sxm"}
"""What the schemas were not read off."""


def answer(call: Callable[[list[str]], Any], folder: Path, case: tuple[str, ...]) -> dict[str, Any]:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    other = {} if case[0] == "calibrate" else OTHER  # its measurements are of one device
    done = call([other.get(part, part.replace("@", str(folder))) for part in (*case, "--json")])
    assert (done.code, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_every_verb_has_a_schema() -> None:
    assert set(SHOWN) == set(parser.build()[1])
    for verb, schema in SHOWN.items():
        assert schema["$id"] == f"symperf/{verb}/{SCHEMAS}"
        assert {"schema", "constants_version"} <= set(schema["required"])


@pytest.mark.parametrize("verb", ANSWERED)
def test_answers_are_as_the_schema_says(verb: str, call: Callable[[list[str]], Any], tmp_path: Path) -> None:
    """Of another model and system than those that it was read off."""
    for case in CASES[verb] if NIGHTLY else CASES[verb][:1]:
        found = answer(call, tmp_path, case)
        assert faults(SHOWN[verb], found, verb) == []
        assert found["schema"] == SHOWN[verb]["$id"]
        assert found["constants_version"] == fingerprint.constants_version()


def test_the_schema_of_measure_has_the_keys_that_it_writes() -> None:
    text = (ROOT / "symperf" / "cli" / "measure.py").read_text(encoding="utf-8").partition("write_json(")[2]
    keys = re.findall(r'^ +"(\w+)":', text, re.MULTILINE)
    assert set(SHOWN["measure"]["properties"]) == {*keys, "schema", "constants_version"}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"a": 1, "b": [{"c": "x"}]}, ""),
        ({"a": None, "b": []}, ""),
        ({"a": True, "b": []}, ".a: bool, expected number or null"),
        ({"a": 1}, ".b: is missing"),
        ({"a": 1, "b": [{"c": 1}]}, ".b[].c: int, expected string"),
        ([], ": list, expected object"),
    ],
)
def test_the_validator_finds_what_differs(value: Any, fault: str) -> None:
    inner = {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string"}}}}
    schema = {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": ["number", "null"]}, "b": inner}}
    assert faults(schema, value) == ([fault] if fault else [])


def test_constants_have_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows from the content of their files alone."""
    (tmp_path / "catalogue" / "systems").mkdir(parents=True)
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    version = fingerprint.constants_version.__wrapped__
    file = tmp_path / "catalogue" / "systems" / "x.toml"
    seen = []
    for text in ("a = 1", "a = 2", "a = 1"):
        file.write_text(text)
        seen.append(version())
    assert seen[0] == seen[2] != seen[1]
    assert re.fullmatch("[0-9a-f]{12}", seen[0])
    file.rename(file.with_name("y.toml"))
    assert version() != seen[2]

"""Writes `symperf/catalogue/schemas/`: what keys the JSON answers of each verb have, read off answers.

Run it after a key is added: `python docs/schemas.py`. A key that is gone raises `SCHEMAS` in `symperf/cli/output.py`.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.schema_cases import CASES, FILES  # noqa: E402

from symperf.cli import main  # noqa: E402
from symperf.cli.output import SCHEMAS  # noqa: E402

FOLDER = ROOT / "symperf" / "catalogue" / "schemas"
MEASURE = {
    "device": "",
    "torch": "",
    "output": None,
    "rows": {},
    "left_out": {},
    "skipped": {},
    "seconds": 0.5,
    "measurements": None,
}
"""What `symperf measure --json` has, which needs a device."""


def answers(verb: str) -> list[dict[str, Any]]:
    """The answers of a verb's cases."""
    if verb == "measure":
        return [{**MEASURE, "schema": "", "constants_version": ""}]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        for case in CASES[verb]:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                assert main([part.replace("@", folder) for part in (*case, "--json")]) == 0, case
            found.append(json.loads(out.getvalue()))
    return found


def kinds(value: Any) -> str:
    """The type of a value; a number may be whole by chance."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    names = ((int, "number"), (float, "number"), (str, "string"), (list, "array"), (dict, "object"))
    return next(name for kind, name in names if isinstance(value, kind))


def schema_of(values: list[Any], *, top: bool = False) -> dict[str, Any]:
    """What some values have in common; what does not apply is null, and a key that is null in all may have any type."""
    types = sorted({kinds(value) for value in values} - {"null"})
    found: dict[str, Any] = {}
    if types:
        found["type"] = "object" if top else [*types, "null"]
    objects = [value for value in values if isinstance(value, dict)]
    items = [each for value in values if isinstance(value, list) for each in value]
    if objects:
        names = list(dict.fromkeys(name for each in objects for name in each))
        if top:
            found["required"] = [name for name in names if all(name in each for each in objects)]
        found["properties"] = {name: schema_of([each[name] for each in objects if name in each]) for name in names}
    if items:
        found["items"] = schema_of(items)
    return found


def schema(verb: str) -> dict[str, Any]:
    """The schema of a verb."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"symperf/{verb}/{SCHEMAS}",
        "title": f"What `symperf {verb} --json` answers",
    }
    return head | schema_of(answers(verb), top=True)


def write(verbs: list[str]) -> None:
    """Write the schemas of some verbs."""
    FOLDER.mkdir(exist_ok=True)
    for verb in verbs:
        text = json.dumps(schema(verb), indent=1, ensure_ascii=False)
        (FOLDER / f"{verb}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:] or [*CASES, "measure"])

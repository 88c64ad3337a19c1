"""Every package is installed: an editable install hides one that the list of packages lacks."""

from __future__ import annotations

import tomllib

from support.paths import ROOT


def test_every_folder_with_modules_is_listed() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(table["tool"]["setuptools"]["packages"])
    found = set()
    for top, name in (("symperf", "symperf"), ("formulas", "symperf.formulas"), ("codegen", "symperf.codegen")):
        for init in (ROOT / top).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT / top).parts
            if top == "symperf" and parts[:1] in (("formulas",), ("codegen",)):
                continue
            found.add(".".join((name, *parts)))
    assert found == listed

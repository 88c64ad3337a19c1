"""The three layers keep apart: who imports what, and what no file may do."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

STANDARD = set(sys.stdlib_module_names)
ALLOWED = {
    "formulas": STANDARD | {"sympy"},
    "codegen": STANDARD | {"sympy", "numpy", "jinja2", "numba", "llvmlite", "platformdirs"},
}
DOMAIN_WORDS = ("attention", "transformer", "tensor.?parallel", r"kv.?cache")
UNSAFE_MODULES = {"pickle", "shelve", "marshal", "yaml", "dill", "cloudpickle", "joblib"}
UNSAFE_CALLS = {"eval", "exec", "compile", "parse_expr", "__import__"}


def _files(*folders: str, suffixes: tuple[str, ...] = (".py",)) -> list[Path]:
    """The files of top-level folders; the links from symperf to the other two are not followed."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    linked = [ROOT / "symperf" / "formulas", ROOT / "symperf" / "codegen"]
    return sorted(p for p in found if not any(link in p.parents for link in linked) and "__pycache__" not in p.parts)


def _imports(path: Path) -> list[str]:
    """Every module that a file imports, absolute ones only, wherever in the file."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.append(node.module or "")
    return names


def _ups(path: Path) -> list[tuple[int, int]]:
    """For each relative import, its dots and how many lead no higher than the layer's folder."""
    depth = len(path.relative_to(ROOT).parts) - 1
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [(node.level, depth) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


each = pytest.mark.parametrize("path", _files("formulas", "codegen", "symperf"), ids=_name)


def test_the_walk_finds_the_layers() -> None:
    """The checks below look at files."""
    found = {_name(path).split("/")[0] for path in _files("formulas", "codegen", "symperf")}
    assert found == {"formulas", "codegen", "symperf"}
    assert "sympy" in _imports(ROOT / "formulas" / "language" / "atoms.py")


@pytest.mark.parametrize("path", _files("formulas", "codegen"), ids=_name)
def test_a_lower_layer_imports_only_what_it_may(path: Path) -> None:
    """Formulas know SymPy; codegen knows SymPy, NumPy, Jinja2 and Numba; neither knows the other or symperf."""
    layer = path.relative_to(ROOT).parts[0]
    assert {name.split(".")[0] for name in _imports(path)} <= ALLOWED[layer]
    assert all(level <= depth for level, depth in _ups(path)), "a relative import leaves the layer"


@each
def test_no_module_exists_twice(path: Path) -> None:
    """The layers are imported as symperf.formulas and symperf.codegen, never by their folder's name."""
    assert not {name.split(".")[0] for name in _imports(path)} & {"formulas", "codegen"}


@pytest.mark.parametrize(
    "path", _files("codegen", suffixes=(".py", ".j2", ".jinja", ".txt", ".md", ".c", ".js")), ids=_name
)
def test_the_compiler_knows_nothing_of_its_users(path: Path) -> None:
    """No word of machine learning occurs in codegen."""
    text = path.read_text(encoding="utf-8").lower()
    assert [word for word in DOMAIN_WORDS if re.search(rf"\b{word}", text)] == []


def _unsafe(tree: ast.AST) -> list[str]:
    """Calls that run or parse text as code, and sympify, which does so with strings unless told to be strict."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        of_re = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "re"
        strict = any(keyword.arg == "strict" and ast.unparse(keyword.value) == "True" for keyword in node.keywords)
        if (name in UNSAFE_CALLS and not of_re) or (name in ("sympify", "S") and not strict):
            found.append(f"{name} in line {node.lineno}")
    return found


@pytest.mark.parametrize("path", _files("symperf"), ids=_name)
def test_nothing_a_user_wrote_is_run(path: Path) -> None:
    """The product never evaluates text as code nor loads objects from files; it reads TOML, JSON and CSV."""
    assert _unsafe(ast.parse(path.read_text(encoding="utf-8"))) == []
    assert not {name.split(".")[0] for name in _imports(path)} & UNSAFE_MODULES


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("eval('1')", 1),
        ("builtins.exec(code)", 1),
        ("sympy.sympify(text)", 1),
        ("sympy.S('x')", 1),
        ("sympy.parse_expr(t)", 1),
        ("sympy.sympify(text, strict=True)", 0),
        ("re.compile('a')", 0),
        ("expr.evalf()", 0),
        ("sympy.S.One", 0),
    ],
)
def test_the_guard_sees_unsafe_calls(text: str, count: int) -> None:
    """The guard itself tells safe from unsafe."""
    assert len(_unsafe(ast.parse(text))) == count

"""The three layers keep apart: who imports what, and what no file may do."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT

from symperf.common import yaml_text

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


def test_the_walk_finds_the_layers() -> None:
    """The checks below look at files."""
    found = {_name(path).split("/")[0] for path in _files("formulas", "codegen", "symperf")}
    assert found == {"formulas", "codegen", "symperf"}
    assert "sympy" in _imports(ROOT / "formulas" / "language" / "atoms.py")


@cache
def _roots(path: Path) -> set[str]:
    """The top packages that a file imports absolutely."""
    return {name.split(".")[0] for name in _imports(path)}


@pytest.mark.parametrize("layer", ALLOWED)
def test_a_lower_layer_imports_only_what_it_may(layer: str) -> None:
    """Formulas know SymPy; codegen knows SymPy, NumPy, Jinja2 and Numba; neither knows the other or symperf."""
    assert {_name(path): _roots(path) - ALLOWED[layer] for path in _files(layer) if _roots(path) - ALLOWED[layer]} == {}
    assert [_name(path) for path in _files(layer) if any(level > depth for level, depth in _ups(path))] == []


def test_imports_inside_the_package_are_relative() -> None:
    """One style: no file names the package, or the layers by their folders, so that no module exists twice."""
    absolute = {"formulas", "codegen", "symperf"}
    assert [_name(path) for path in _files("formulas", "codegen", "symperf") if _roots(path) & absolute] == []


def test_the_compiler_knows_nothing_of_its_users() -> None:
    """No word of machine learning occurs in codegen."""
    texts = _files("codegen", suffixes=(".py", ".j2", ".jinja", ".txt", ".md", ".c", ".js"))
    pattern = re.compile(rf"\b({'|'.join(DOMAIN_WORDS)})")
    assert {_name(p): found for p in texts if (found := pattern.findall(p.read_text("utf-8").lower()))} == {}


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


def test_nothing_a_user_wrote_is_run() -> None:
    """The product never evaluates text as code nor loads objects from files; it reads TOML, JSON, CSV and YAML."""
    files = _files("symperf")
    assert {_name(p): found for p in files if (found := _unsafe(ast.parse(p.read_text("utf-8"))))} == {}
    assert [_name(path) for path in files if _roots(path) & UNSAFE_MODULES] == ["symperf/common/yaml_text.py"]
    loaders = [base for base in yaml_text._Loader.__mro__ if base.__module__ == "yaml.loader"]
    assert [base.__name__ for base in loaders] == ["SafeLoader"]


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

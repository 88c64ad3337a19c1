"""Nothing that nobody reaches: every function, class and method serves a verb, a public name or the documentation."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT
from support.reach import FUNCTIONS, Graph, Node, Uses, documented, packages, registered

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES = [
    Node("symperf", "_HOMES"),
    Node("symperf", "__getattr__"),
    Node("symperf", "__dir__"),
    Node("symperf.__main__", ""),
    Node("symperf.cli", "main"),
]
"""The public names, and the command line."""
ALLOWED = {
    r"symperf\.measuring\.clock Clock\.(eager|graph|host|sustained)": "the mode of a job is the name of the method",
    r"symperf\.formulas\.parallel\.\w+ (\w+_holds|experts_divide|uneven_stages_exact)": (
        "the conditions that formulas state under `Assumes:`; simulations of the schedules are compared under them"
    ),
    r"symperf\.report\.analysis .*|symperf\.analysis\.attribution Attribution\.(row|column)_sums": (
        "the terminal tables of regimes, attributions, gains and bounds, whose verbs are still to come"
    ),
    r"symperf\.timeline\.simulator by_kind": "equal stages, as the closed forms of schedules are held against them",
    r"symperf\.models\.gguf file_bytes": "published sizes of files are held against it",
    r"symperf\.calibration\.kernels\.calibrate calibrate_anywhere": (
        "benchmarks/calibration/kernels.py fits with it the constants that hold on any device"
    ),
}
"""What is reached in no way that is written down, and why it is there."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph(packages())


@pytest.fixture(scope="module")
def reached(graph: Graph) -> set[Node]:
    start = documented(graph)
    start.nodes |= {*ENTRIES, *registered(graph)}
    return graph.reach(start)


def _definitions(graph: Graph) -> set[Node]:
    """The functions, classes and methods; not the other names of a module."""
    found = set()
    for name, module in graph.modules.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.name in module.parts:
                found.add(Node(name, node.name))
        found |= {Node(name, p) for p, code in module.parts.items() if any(isinstance(c, FUNCTIONS) for c in code)}
    return found


def test_everything_is_reached(graph: Graph, reached: set[Node]) -> None:
    """What is not goes, or is allowed for a reason."""
    left = {f"{node.module} {node.name}" for node in _definitions(graph) - reached}
    assert sorted(name for name in left if not any(re.fullmatch(allowed, name) for allowed in ALLOWED)) == []
    assert [allowed for allowed in ALLOWED if not any(re.fullmatch(allowed, name) for name in left)] == []


def test_every_template_is_named(graph: Graph) -> None:
    """In the code, with or without a part that varies, or in another template."""
    paths = [path for folder in ("symperf", "codegen") for path in (ROOT / folder).rglob("*.j2")]
    texts = [ast.unparse(module.tree) for module in graph.modules.values()] + [path.read_text() for path in paths]
    named = {name for text in texts for name in re.findall(r"[\w{}.]+\.j2", text)}
    patterns = [re.sub(r"\\\{.*?\\\}", r"\\w+", re.escape(name)) for name in named]
    assert [path.name for path in paths if not any(re.fullmatch(pattern, path.name) for pattern in patterns)] == []


SAMPLE = {
    "a.py": """
from .b import used, Base
from . import c

class Mine(Base):
    def hook(self): ...
    def lost(self): ...
    def __len__(self): return helper()

def helper():
    '''Names stray in a docstring.'''
    used = 1
    return c.there(), getattr(Mine(), "called")

def main():
    return used(Mine())
""",
    "b.py": """
class Base:
    def run(self): self.hook()
    def called(self): ...

def used(thing): thing.run()
def stray(): used(None)
""",
    "c.py": "def there(): ...\ndef used(): ...\ndef gone(): ...\n",
}


def test_the_graph_sees_what_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods by an attribute, overrides of bases, special methods, modules; not docstrings and local names."""
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "__init__.py").write_text("")
    for name, text in SAMPLE.items():
        (tmp_path / "sample" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    graph = Graph({f"sample.{name[:-3]}": tmp_path / "sample" / name for name in SAMPLE})
    reached = graph.reach(Uses({Node("sample.a", "main")}))
    left = sorted(f"{node.module[7:]} {node.name}" for node in _definitions(graph) - reached)
    assert left == ["a Mine.lost", "b stray", "c gone", "c used"]

"""A static call graph of the three packages: what is reached from the command line, the public names and the docs.

A node is a module, or a function, class, method or module-level name of one. An edge leads from a node to every node
whose name stands in its text. A plain name means what the module defines or imports by it, unless the function binds
it itself; an attribute means that name in the module before the dot, or else the methods of all classes that have it.
So the graph never misses a use that is written down, and may see one that is none.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from .paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PACKAGES = {"symperf": "symperf", "formulas": "symperf.formulas", "codegen": "symperf.codegen"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
REGISTERS = {"formula"}
"""Decorators that put what they decorate into a table that is read by name."""
DISPATCHED = re.compile(r"__\w+__|_repr_\w+_|visit_\w+|_print_\w+|_eval_\w+|_latex")
"""Methods that Python, Jupyter, `ast` and SymPy call by a name that they make up."""
WORD = re.compile(r"[A-Za-z_]\w*")
INTRINSICS = "symperf.codegen.printers.intrinsics"
"""The module whose functions generated text calls by name."""


class Node(NamedTuple):
    """A definition: its module, and its name with that of its class; the name of a module itself is empty."""

    module: str
    name: str


@dataclass
class Uses:
    """What a piece of code names.

    Attributes:
        nodes: definitions.
        attributes: names after a dot, of methods or of functions in modules that are loaded by name.
        strings: constants of text, without docstrings.
        modules: modules that are handed on as values.
    """

    nodes: set[Node] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _targets(statement: ast.stmt) -> list[str]:
    """The names that a module-level assignment gives values to."""
    if isinstance(statement, ast.Assign):
        return [n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    if isinstance(statement, ast.AnnAssign | ast.AugAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id]
    return []


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under `if` and `try` too."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            handlers = statement.handlers if isinstance(statement, ast.Try) else []
            yield from _flat([*statement.body, *statement.orelse, *(s for h in handlers for s in h.body)])
        else:
            yield statement


class Module:
    """A file, with what the names in it stand for."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        self.parts: dict[str, list[ast.AST]] = defaultdict(list)
        """The pieces of code of each definition, by its name; of the module itself, by the empty one."""
        self.scope: dict[str, set[Node]] = {}
        """What each name may stand for."""
        for statement in _flat(self.tree.body):
            self._add(statement)

    def _add(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ClassDef):
            methods = [s for s in statement.body if isinstance(s, FUNCTIONS)]
            for method in methods:
                self.parts[f"{statement.name}.{method.name}"].append(method)
            rest = [s for s in statement.body if s not in methods]
            self.parts[statement.name] += [*statement.bases, *statement.keywords, *statement.decorator_list, *rest]
        elif isinstance(statement, FUNCTIONS):
            self.parts[statement.name].append(statement)
        elif names := _targets(statement):
            for name in names:
                self.parts[name].append(statement)
        elif not isinstance(statement, ast.Import | ast.ImportFrom) and not _is_docstring(statement):
            self.parts[""].append(statement)

    def imports(self) -> Iterator[tuple[str, str, str]]:
        """Module, name in it (empty: the module itself) and the name here, of every import anywhere in the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, "", alias.asname or alias.name.partition(".")[0]
            elif isinstance(node, ast.ImportFrom):
                base = self.package.split(".")[: len(self.package.split(".")) + 1 - node.level] if node.level else []
                home = ".".join([*base, *filter(None, [node.module])])
                for alias in node.names:
                    yield home, alias.name, alias.asname or alias.name


def _bound(function: ast.AST) -> set[str]:
    """The names that a function, or one in it, binds itself; imports are no such names."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


class Graph:
    """The call graph of some modules.

    Args:
        files: path by the name of the module.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        self.modules = {name: Module(name, path) for name, path in files.items()}
        for module in self.modules.values():
            module.scope = self.scope_of(module)
        self.nodes = {Node(m, part) for m, module in self.modules.items() for part in ("", *module.parts)}
        self.uses = {node: self.uses_of(self.modules[node.module], node.name) for node in self.nodes}

    def scope_of(self, module: Module) -> dict[str, set[Node]]:
        """What each name in a module may stand for."""
        scope: dict[str, set[Node]] = defaultdict(set)
        for name in module.parts:
            if name and "." not in name:
                scope[name].add(Node(module.name, name))
        for home, name, here in module.imports():
            if f"{home}.{name}" in self.modules:
                scope[here].add(Node(f"{home}.{name}", ""))
            elif home in self.modules:
                scope[here].add(Node(home, name))
        return scope

    def resolve(self, node: Node) -> Node:
        """The definition that a name stands for where a module has it from another."""
        for _ in range(5):
            if node.module not in self.modules or node.name in ("", *self.modules[node.module].parts):
                return node
            further = self.modules[node.module].scope.get(node.name, set()) - {node}
            if not further:
                return node
            node = next(iter(further))
        return node

    def uses_of(self, module: Module, name: str) -> Uses:
        """What a definition names."""
        found = Uses()
        for part in module.parts.get(name, []):
            self.read(module, part, found)
        return found

    def read(self, module: Module, part: ast.AST, found: Uses) -> None:
        """Add what a piece of code names."""
        scope = module.scope
        own = _bound(part) if isinstance(part, FUNCTIONS) else set()
        docs = {id(n.value) for n in ast.walk(part) if isinstance(n, ast.Expr)}
        bases = {id(node.value) for node in ast.walk(part) if isinstance(node, ast.Attribute)}
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own:
                found.nodes |= {self.resolve(target) for target in scope.get(node.id, ())}
                if id(node) not in bases:
                    found.modules |= {target.module for target in scope.get(node.id, ()) if target.name == ""}
            elif isinstance(node, ast.Attribute):
                base = scope.get(node.value.id, set()) if isinstance(node.value, ast.Name) else set()
                modules = [target.module for target in base if target.name == ""]
                found.nodes |= {self.resolve(Node(m, node.attr)) for m in modules}
                found.attributes |= {node.attr} if not modules else set()
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                found.strings.add(node.value)
            elif isinstance(node, ast.Dict):
                found.nodes |= set(self._table(module, node))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
                found.nodes |= set(self._by_name(module, node.args[0]))
        found.attributes |= {
            node.args[1].value
            for node in ast.walk(part)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr")
            and isinstance(node.args[1], ast.Constant)
        }

    def _table(self, module: Module, table: ast.Dict) -> Iterator[Node]:
        """The names of a table `{name: module}` of what is loaded when it is first used."""
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                home = f"{module.package}.{value.value}"
                if home in self.modules:
                    yield self.resolve(Node(home, str(key.value)))

    def _by_name(self, module: Module, base: ast.expr) -> Iterator[Node]:
        """What `getattr` may find in a module: what any text in the file that asks names."""
        if isinstance(base, ast.Name):
            words = {n.value for n in ast.walk(module.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            for target in module.scope.get(base.id, ()):
                if target.name == "":
                    yield from (Node(target.module, w) for w in words if w in self.modules[target.module].parts)

    @cached_property
    def methods(self) -> dict[str, set[Node]]:
        """The methods of all classes by their own name."""
        found: dict[str, set[Node]] = defaultdict(set)
        for node in self.nodes:
            if "." in node.name:
                found[node.name.partition(".")[2]].add(node)
        return found

    def loaded(self, module: Module, text: str) -> str | None:
        """The module that a text names, seen from a package or one around it."""
        parts = module.package.split(".")
        for stop in range(len(parts), 0, -1):
            if WORD.match(text) and (name := ".".join([*parts[:stop], text])) in self.modules:
                return name
        return None

    def reach(self, start: Uses) -> set[Node]:
        """Every definition that is reached from what `start` names."""
        reached: set[Node] = set()
        attributes: set[str] = set()
        by_name: set[str] = set()  # modules
        todo: list[Node] = []

        def take(uses: Uses, module: Module | None) -> None:
            todo.extend(uses.nodes)
            attributes.update(uses.attributes)
            by_name.update(uses.modules)
            for text in uses.strings if module is not None else ():
                assert module is not None
                if (name := self.loaded(module, text)) is not None:
                    by_name.add(name)
                    todo.append(Node(name, ""))
                if module.name.startswith("symperf.codegen"):
                    todo.extend(Node(INTRINSICS, word) for word in WORD.findall(text))

        take(start, None)
        while True:
            while todo:
                node = todo.pop()
                if node in reached or node not in self.nodes:
                    continue
                reached.add(node)
                module = self.modules[node.module]
                todo += [Node(node.module, ""), self._owner(node)]
                take(self.uses[node], module)
                if node.name and "." not in node.name:
                    todo += self._called_from_outside(node)
            todo = [n for word in attributes for n in self.methods.get(word, ()) if self._owner(n) in reached]
            todo += [n for m in by_name for word in attributes if (n := self.resolve(Node(m, word))) in self.nodes]
            todo = [n for n in todo if n not in reached]
            if not todo:
                return reached

    def _owner(self, method: Node) -> Node:
        return Node(method.module, method.name.partition(".")[0])

    def _called_from_outside(self, owner: Node) -> Iterator[Node]:
        """The methods of a class that Python or a library calls: special ones, and overrides of a library's."""
        own = [n for n in self.nodes if n.module == owner.module and n.name.startswith(f"{owner.name}.")]
        library: set[str] = set()
        if own:
            found = getattr(importlib.import_module(owner.module), owner.name)
            bases = [b for b in found.__mro__[1:] if not b.__module__.startswith("symperf")]
            library = {name for base in bases for name in vars(base)}
        for method in own:
            name = method.name.partition(".")[2]
            if DISPATCHED.fullmatch(name) or name in library:
                yield method


def packages() -> dict[str, Path]:
    """The files of the three packages by the names of their modules."""
    found = {}
    for folder, package in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if folder == "symperf" and parts[0] in ("formulas", "codegen"):
                continue
            found[".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])] = path
    return found


def registered(graph: Graph) -> set[Node]:
    """Functions that a decorator puts into a table."""
    found = set()
    for name, module in graph.modules.items():
        for part, pieces in module.parts.items():
            for piece in pieces:
                for decorator in getattr(piece, "decorator_list", []):
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    if isinstance(called, ast.Name) and called.id in REGISTERS:
                        found.add(Node(name, part))
    return found


def documented(graph: Graph) -> Uses:
    """What the documentation names in its code: in its pages and in its scripts."""
    found = Uses()
    for path in sorted((ROOT / "docs").rglob("*.py")):
        script = Module("script", path)
        script.scope = graph.scope_of(script)
        graph.read(script, script.tree, found)
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for code in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL) + re.findall(r"`([^`\n]+)`", text):
            found.attributes |= set(re.findall(r"\.([A-Za-z_]\w*)", code))
            for home, names in re.findall(r"from (symperf[\w.]*) import ([\w, ]+)", code):
                found.nodes |= {graph.resolve(Node(home, n)) for n in WORD.findall(names) if home in graph.modules}
    for path in (p for folder in PACKAGES for p in sorted((ROOT / folder).rglob("*.j2"))):
        words = set(WORD.findall(path.read_text(encoding="utf-8")))
        found.attributes |= words
        if "codegen" in path.parts:
            found.nodes |= {Node(INTRINSICS, word) for word in words}
    return found

"""Closed forms of a run as trees of named terms, printed readably and as LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.symbols import strip_units
from ..operations.schedule import Idle, Op, closed_form, terms, time_of

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun


@dataclass(frozen=True)
class CostTree:
    """A quantity, or a part of it, as a closed form over named terms.

    `tree["layer/mlp"]` is the part of a folder or of a term: how often each of its terms counts, in the current regime,
    times the term. The parts of all folders at one level sum to the quantity.

    Attributes:
        name: of the quantity, "time" or "memory".
        unit: "s" or "B".
        formula: the quantity in the symbols of its terms.
        terms: the closed form of each term by path; one execution of an operation, or all of an idle term.
        run: the run that it belongs to.
        part: the path of the part, or "" for the whole.
    """

    name: str
    unit: str
    formula: Any
    terms: dict[str, Any]
    run: BaseRun
    part: str = ""

    @property
    def expr(self) -> Any:
        """The whole closed form as one SymPy expression over the vocabulary; the unit FLOP is 1."""
        if self.part:
            return self.formula.xreplace({stand_in(path): form for path, form in self.terms.items()})
        if self.name == "time":
            return strip_units(closed_form(self.run.schedule_tree()))
        return strip_units(sympy.Add(*self.terms.values()))

    def __getitem__(self, path: str) -> CostTree:
        """The part of a term or of a folder of terms, by its whole path or from here.

        Raises:
            InputError: there is none of that path, with the nearest.
        """
        from .parts import part

        return part(self, path)

    def value(self) -> float:
        """The quantity at the run's values, or the part of it.

        Raises:
            InputError: symbols are free.
        """
        if not self.part:
            return self.run.value(self.name)
        from .parts import value

        return value(self)

    def __str__(self) -> str:
        return _indent(self)

    def __repr__(self) -> str:
        what = f"{self.name} of {self.part}" if self.part else self.name
        return f"CostTree({what}, {len(self.terms)} terms; print it, or take .expr)"

    def _repr_latex_(self) -> str:
        from .parts import display

        return display(self)


def stand_in(path: str) -> Any:
    """The symbol that stands for a term."""
    return sympy.Symbol(path, nonnegative=True)


def time_tree(run: BaseRun) -> CostTree:
    """The step time of a run."""
    tree = run.schedule_tree()
    named = terms(tree)

    def own(leaf: Op | Idle) -> Any:
        return leaf.time if isinstance(leaf, Op) else leaf.count * closed_form(leaf.child)

    formula = time_of(tree, lambda leaf: stand_in(leaf.path))
    return CostTree("time", "s", formula, {path: strip_units(own(leaf)) for path, leaf in named.items()}, run)


def memory_tree(run: BaseRun) -> CostTree:
    """The memory of a run's fullest device."""
    named = {path: strip_units(expr) for path, expr in run.memory_forms().items()}
    return CostTree("memory", "B", sympy.Add(*map(stand_in, named)), named, run)


def _indent(tree: CostTree) -> str:
    """One line a term under the folders of its path, with its value where all of its symbols are bound."""
    free = bool(tree.run.free_names)
    whole = f"{tree.name} of {tree.part}" if tree.part else tree.name
    lines = [whole if free else f"{whole} = {tree.value():.4g} {tree.unit}"]
    folders: list[str] = []
    for path, expr in tree.terms.items():
        *parents, last = path.split("/")
        common = 0
        while common < min(len(parents), len(folders)) and parents[common] == folders[common]:
            common += 1
        lines += [f"{'  ' * (level + 1)}{parents[level]}" for level in range(common, len(parents))]
        folders = parents
        key = path if tree.name == "time" else f"memory/{path}"
        text = str(expr)
        closed = text if len(text) <= 100 else f"{text[:97]}..."
        shown = "" if free else f" = {tree.run.value(key):.4g} {tree.unit}"
        lines.append(f"{'  ' * (len(parents) + 1)}{last}{shown}  {closed}")
    return "\n".join(lines)

"""Closed forms of a run as trees of named terms, printed readably and as LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from .formulas.symbols import SYMBOLS, latex, strip_units
from .schedule import Idle, Op, closed_form, terms, time_of

if TYPE_CHECKING:
    from .bound_run import BoundRun


@dataclass(frozen=True)
class CostTree:
    """A quantity as a closed form over named terms.

    Attributes:
        name: of the quantity, "time" or "memory".
        unit: "s" or "B".
        formula: the quantity in the symbols of its terms.
        terms: the closed form of each term by path; one execution of an operation, or all of an idle term.
        run: the run that it belongs to.
    """

    name: str
    unit: str
    formula: Any
    terms: dict[str, Any]
    run: BoundRun

    @property
    def expr(self) -> Any:
        """The whole closed form as one SymPy expression over the vocabulary; the unit FLOP is 1."""
        if self.name == "time":
            return strip_units(closed_form(self.run.schedule_tree()))
        return strip_units(sympy.Add(*self.terms.values()))

    def __str__(self) -> str:
        return _indented(self)

    def __repr__(self) -> str:
        return f"CostTree({self.name} of {len(self.terms)} terms; print it, or take .expr)"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {_latex(self.formula)}$"


def stand_in(path: str) -> Any:
    """The symbol that stands for a term."""
    return sympy.Symbol(path, nonnegative=True)


def time_tree(run: BoundRun) -> CostTree:
    """The step time of a run."""
    tree = run.schedule_tree()
    named = terms(tree)

    def own(leaf: Op | Idle) -> Any:
        return leaf.time if isinstance(leaf, Op) else leaf.count * closed_form(leaf.child)

    formula = time_of(tree, lambda leaf: stand_in(leaf.path))
    return CostTree("time", "s", formula, {path: strip_units(own(leaf)) for path, leaf in named.items()}, run)


def memory_tree(run: BoundRun) -> CostTree:
    """The memory of a run's fullest device."""
    named = {path: strip_units(expr) for path, expr in run.memory_forms().items()}
    return CostTree("memory", "B", sympy.Add(*map(stand_in, named)), named, run)


def _indented(tree: CostTree) -> str:
    """One line a term under the folders of its path, with its value where all of its symbols are bound."""
    lines = [f"{tree.name}{_shown(tree.run, tree.name, tree.unit)}"]
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
        lines.append(f"{'  ' * (len(parents) + 1)}{last}{_shown(tree.run, key, tree.unit)}  {closed}")
    return "\n".join(lines)


def _shown(run: BoundRun, key: str, unit: str) -> str:
    return "" if run.free_names else f" = {run.value(key):.4g} {unit}"


def latex_of(run: BoundRun) -> str:
    """`align*` of the step time over named terms and of each term, then a `tabular` of its symbols with values."""
    tree = time_tree(run)
    lines = [rf"  T &= {_latex(tree.formula)} \\"]
    lines += [rf"  {_glyph(path)} &= {latex(expr)} \\" for path, expr in tree.terms.items()]
    used = sorted({s.name for s in tree.expr.free_symbols})
    rows = [rf"  ${SYMBOLS[n].glyph}$ & {SYMBOLS[n].sentence} & {_number(run, n)} \\" for n in used]
    table = ["\\begin{tabular}{llr}", "  symbol & meaning & value (SI) \\\\", "  \\hline", *rows, "\\end{tabular}"]
    return "\n".join(["\\begin{align*}", *lines, "\\end{align*}", "", *table, ""])


def _number(run: BoundRun, name: str) -> str:
    if name in run.free_names:
        return "free"
    mantissa, _, exponent = f"{run.bound[name][0]:.6g}".partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if exponent else f"${mantissa}$"


def _glyph(path: str) -> str:
    return rf"\tau_{{\text{{{path.replace('_', ' ')}}}}}"


def _latex(formula: Any) -> str:
    names = {s: _glyph(s.name) for s in formula.free_symbols if s.name not in SYMBOLS}
    names |= {entry.symbol: entry.glyph for entry in SYMBOLS.values()}
    return str(sympy.latex(formula, symbol_names=names))

"""Parts of a cost tree: what the terms under a path are of the whole, in the current regime."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..common.errors import InputError
from .attribution import part_of
from .forms import memory_forms, prefixes, select_paths, stand_in, time_forms, values_of
from .question import check_term
from .regime import RegimeRewriter
from .rows import latex_rows
from .whole import parts_of

if TYPE_CHECKING:
    from .cost_tree import CostTree

LINE = 60.0
"""Em of a line in a notebook."""


def part(tree: CostTree, path: str) -> CostTree:
    """The part of a tree under a path, which is whole or begins at the part that the tree itself is.

    Raises:
        InputError: there is none, with the nearest.
    """
    if not isinstance(path, str):
        raise InputError(f"term: found {path!r}, expected a path such as {prefixes(list(tree.terms))[0]}")
    whole = path.strip("/")
    below = f"{tree.part}/{whole}" if tree.part else whole
    run = tree.run
    forms = time_forms(run) if tree.name == "time" else memory_forms(run)
    name = below if select_paths(list(tree.terms), below) else whole
    paths = [each for each in check_term(tree.name, forms, name) if each in tree.terms]
    if not paths:
        raise InputError(f"term: {path} is not part of {tree.part}")
    regime = RegimeRewriter(values_of(run))
    for each, form in forms.terms.items():
        regime.define(stand_in(each), form, regime.values(form))
    formula = part_of(forms, regime, paths)
    return dataclasses.replace(
        tree, formula=formula, terms={each: tree.terms[each] for each in paths}, part=name.removeprefix(f"{tree.name}/")
    )


def value(tree: CostTree) -> float:
    """A part's value at the run's values.

    Raises:
        InputError: symbols are free.
    """
    run = tree.run
    prefix = "" if tree.name == "time" else f"{tree.name}/"
    values = values_of(run)
    for path in tree.terms:
        values.define(stand_in(path), run.value(f"{prefix}{path}"))
    return values(tree.formula)


def display(tree: CostTree) -> str:
    """The formula of a tree for a notebook, the time's over named parts."""
    whole = tree.name == "time" and not tree.part
    steps = parts_of(tree.run) if whole else [("", tree.formula)]
    rows = latex_rows(steps, tree.terms, tree.name, tree.part or None, LINE)
    inside = " \\\\\n".join(rows)
    return f"$\\begin{{aligned}}\n{inside}\n\\end{{aligned}}$"

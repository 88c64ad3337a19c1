"""The whole closed form: as one expression, and as definitions with names for what a reader would name."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, get_args

import sympy

from ..formulas.language.atoms import ceil_div
from ..formulas.language.symbols import COUNT, SYMBOLS, strip_units
from ..operations.schedule import Idle, Node, Op, Sequence, time_of
from .forms import stand_in, time_forms, time_in, values_of
from .regime import RegimeRewriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..evaluation.base_run import BaseRun
    from .derivation import Derivation

NODES = get_args(Node)
WORTH = 6
"""A sequence of at least as many terms gets a name, or one that runs at several places."""
PHASES = ("forward", "backward", "prefill", "decode", "recompute")


def full_form(derivation: Derivation) -> Any:
    """A derivation's closed form in the vocabulary's symbols, with every maximum and minimum."""
    forms = derivation.forms
    if forms is None:
        time = derivation.time
        return (
            derivation.formula
            if time is None
            else derivation.formula.xreplace({time_in(derivation.formula): time.full})
        )
    return _substitute_terms(derivation.formula, forms.terms)


def active_form(derivation: Derivation) -> Any:
    """The same with every maximum and minimum replaced by its active branch."""
    if derivation.time is not None:
        form = RegimeRewriter(values_of(derivation.run)).active(derivation.formula)
        return form.xreplace({time_in(form): derivation.time.active})
    regime = RegimeRewriter(values_of(derivation.run))
    forms = derivation.forms
    if forms is None:
        return regime.active(derivation.formula)
    for path, form in forms.terms.items():
        regime.values.define(stand_in(path), regime.values(form))
    terms = {path: regime.active(form) for path, form in forms.terms.items()}
    return _substitute_terms(regime.active(derivation.formula), terms)


def _substitute_terms(formula: Any, terms: dict[str, Any]) -> Any:
    """A formula over terms with the terms put in, idle terms first: they are in the symbols of others."""
    names = {stand_in(path): form for path, form in terms.items()}
    idle = {symbol: form for symbol, form in names.items() if form.free_symbols & set(names)}
    plain = {symbol: form for symbol, form in names.items() if symbol not in idle}
    return formula.xreplace({symbol: form.xreplace(plain) for symbol, form in idle.items()} | plain)


def definitions(derivation: Derivation) -> list[tuple[str, Any]]:
    """The whole closed form in named steps: (name of a part or path of a term, its form), the quantity first as "".

    The time that a metric depends on follows it, as "time" or the name of its part.

    Parts are the sequences of the schedule that are long or run at several places; they have names such as
    "layer/forward". Terms that are the same closed form are told once, the others by the first's name.
    """
    forms = derivation.forms
    if forms is None:
        found = [("", derivation.formula)]
        if derivation.time is not None:
            (_, time), *rest = definitions(derivation.time)
            found += [(derivation.time.term or "time", time), *rest]
        return found
    if derivation.of == "time" and derivation.term is None:
        found = parts_of(derivation.run)
        used = [path for path in forms.terms if path not in dict(found)]
    else:
        found = [("", derivation.formula)]
        used = list(derivation.counts)
    known: dict[Any, str] = {}
    for path in used:
        form = forms.terms[path]
        found.append((path, stand_in(known[form]) if form in known else _readable(form)))
        known.setdefault(form, path)
    return found


def _readable(form: Any) -> Any:
    """A form in which no count is rounded up to a multiple of one."""
    ones = {node: node.args[0] for node in form.atoms(ceil_div) if node.args[1] == 1 and _is_count(node.args[0])}
    return form.xreplace(ones) if ones else form


def _is_count(expr: Any) -> bool:
    return expr.name in SYMBOLS and SYMBOLS[expr.name].domain == COUNT if expr.is_Symbol else False


def parts_of(run: BaseRun) -> list[tuple[str, Any]]:
    """The time over named sequences, each of these, and the idle terms over them."""
    tree = run.schedule_tree()
    names: dict[int, str] = {}
    nodes: dict[str, Any] = {}
    places: dict[int, int] = {}
    for node in _walk(tree):
        places[id(node)] = places.get(id(node), 0) + 1
    taken = {leaf.path for leaf in _walk(tree) if isinstance(leaf, Op | Idle)}
    for node in _walk(tree):
        if node is tree or not isinstance(node, Sequence) or id(node) in names:
            continue
        paths = list(dict.fromkeys(leaf.path for leaf in _walk(node) if isinstance(leaf, Op)))
        if len(paths) >= WORTH or (places[id(node)] > 1 and len(paths) > 1):
            name = _name(paths)
            if name and name not in nodes and name not in taken:
                names[id(node)] = name
                nodes[name] = node

    def symbol(leaf: Op | Idle) -> Any:
        return stand_in(leaf.path)

    def form(node: Any) -> Any:
        return strip_units(time_of(_rename(node, names, top=True), symbol))

    found = [("", form(tree)), *((name, form(node)) for name, node in nodes.items())]
    idle = {leaf.path: leaf for leaf in _walk(tree) if isinstance(leaf, Idle)}
    for path, leaf in idle.items():
        found.append((path, strip_units(leaf.count * time_of(_rename(leaf.child, names), symbol))))
    return found


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for each in dataclasses.fields(node):
        value = getattr(node, each.name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, NODES):
                yield from _walk(child)


def _rename(node: Any, names: dict[int, str], *, top: bool = False) -> Any:
    """A tree in which every named sequence is an operation of its name."""
    if not top and id(node) in names:
        return Op(names[id(node)], sympy.S.Zero)
    if isinstance(node, Op | Idle):
        return node
    changed: dict[str, Any] = {}
    for each in dataclasses.fields(node):
        value = getattr(node, each.name)
        if isinstance(value, NODES):
            changed[each.name] = _rename(value, names)
        elif isinstance(value, tuple):
            changed[each.name] = tuple(_rename(v, names) if isinstance(v, NODES) else v for v in value)
    return dataclasses.replace(node, **changed)


def _name(paths: list[str]) -> str:
    """What a sequence of terms is called: the folder and the phase that they share."""
    split = [path.split("/") for path in paths]
    shared = []
    for level in zip(*(parts[:-1] for parts in split), strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    ends = {parts[-1].split("_")[0] for parts in split}
    phase = next((each for each in PHASES if each in ends and ends <= {each, "recompute"}), "")
    if not phase and "backward" in ends and "forward" not in ends:
        phase = "backward"
    return "/".join([*shared, *([phase] if phase else [])])


def time_definitions(run: BaseRun) -> list[tuple[str, Any]]:
    """`definitions` of a run's whole time, without deriving it."""
    found = parts_of(run)
    known: dict[Any, str] = {}
    names = dict(found)
    for path, form in time_forms(run).terms.items():
        if path not in names:
            found.append((path, stand_in(known[form]) if form in known else _readable(form)))
            known.setdefault(form, path)
    return found

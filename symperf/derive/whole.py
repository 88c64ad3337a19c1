"""The whole closed form: as one expression, and as definitions with names for what a reader would name."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any, get_args

import sympy

from ..book.equation import called_formulas
from ..book.simplify import simplified
from ..formulas.language.named_calls import calls_in, name_calls
from ..formulas.language.symbols import SYMBOLS, strip_units
from ..operations.schedule import Idle, Node, Op, Repeat, Sequence, StepSeries, time_of
from .forms import memory_forms, metric_forms, stand_in, time_forms, time_in, values_of
from .regime import RegimeRewriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..evaluation.base_run import BaseRun
    from ..formulas.language.formula import Formula
    from .derivation import Derivation
    from .forms import Forms

NODES = get_args(Node)
NOTHING = Op("", sympy.S.Zero)
"""Stands where an operation is that takes no time there."""
WORTH = 6
"""A sequence of at least as many terms gets a name, or one that runs at several places."""
LONG_ARGUMENT = 20
"""Nodes of an argument that is long."""
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
    return _definitions(derivation, derivation.forms, derivation.formula)


def shown_definitions(derivation: Derivation) -> list[tuple[str, Any]]:
    """`definitions` for the eye: over the formulas that they call, and simplified."""
    run, of = derivation.run, derivation.of
    found: list[tuple[str, Any]]
    with name_calls():
        if derivation.forms is None:
            found = [("", metric_forms(run)[of])]
        else:
            forms = time_forms(run) if of == "time" else memory_forms(run)
            found = _definitions(derivation, forms, forms.formula if derivation.term is None else derivation.formula)
    if derivation.forms is None and derivation.time is not None:
        found += _time_below(derivation.time, shown_definitions(derivation.time))
    return _simplified(found)


def _definitions(derivation: Derivation, forms: Forms | None, formula: Any) -> list[tuple[str, Any]]:
    if forms is None:
        time = derivation.time
        return [("", formula), *([] if time is None else _time_below(time, definitions(time)))]
    if derivation.of == "time" and derivation.term is None:
        found = parts_of(derivation.run)
        return found + _terms(forms, [path for path in forms.terms if path not in dict(found)])
    return [("", formula), *_terms(forms, derivation.counts)]


def _time_below(time: Derivation, found: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(time.term or "time", found[0][1]), *found[1:]]


def _terms(forms: Forms, paths: Iterable[str]) -> list[tuple[str, Any]]:
    """Terms with their forms; one that is the same as one before is told by its name."""
    found = []
    known: dict[Any, str] = {}
    for path in paths:
        form = forms.terms[path]
        found.append((path, stand_in(known[form]) if form in known else form))
        known.setdefault(form, path)
    return found


def _simplified(found: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    known: dict[Any, Any] = {}
    return _arguments_named([(name, simplified(form, known)) for name, form in found])


def _arguments_named(found: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Definitions in which a long argument that several calls share goes by the name of the parameter that it is.

    Such as the parameters of a device; a second one of the same name is "parameters 2".
    """
    taken = {symbol for _, form in found for symbol in form.free_symbols}
    callers: dict[Any, dict[str, set[str]]] = {}
    places: dict[Any, int] = {}
    for call in (call for _, form in found for call in calls_in(form)):
        for parameter, argument in call.arguments.items():
            if SYMBOLS[parameter].group == "formal" and _size(argument) >= LONG_ARGUMENT:
                callers.setdefault(argument, {}).setdefault(parameter, set()).add(call.formula.name)
                places[argument] = places.get(argument, 0) + 1
    # The parameter of most formulas names it; the longest first, as others may be in it.
    names: dict[str, Any] = {}
    for argument in sorted(callers, key=lambda one: (-_size(one), str(one))):
        if places[argument] > 1:
            parameter = min(callers[argument], key=lambda one: (-len(callers[argument][one]), one))
            free = (name for name in _numbered(parameter) if name not in names and part_symbol(name) not in taken)
            names[next(free)] = argument
    symbols = {argument: part_symbol(name) for name, argument in names.items()}
    named = [(name, form.xreplace(symbols)) for name, form in found] if names else found
    return [*named, *names.items()]


def _numbered(parameter: str) -> Iterator[str]:
    yield parameter
    yield from (f"{parameter} {k}" for k in itertools.count(2))


def part_symbol(name: str) -> Any:
    """What stands for a definition in the others: a part or term, or an argument that is named after a parameter."""
    return SYMBOLS[name].symbol if name in SYMBOLS else stand_in(name)


def _size(expr: Any) -> int:
    return sum(1 for _ in sympy.preorder_traversal(expr))


def used_formulas(found: Iterable[tuple[str, Any]]) -> list[Formula]:
    """The formulas that definitions call, each followed by those that it calls itself, each once."""
    used: dict[str, Formula] = {}
    for _, form in found:
        waiting = sorted({call.formula for call in calls_in(form)}, key=lambda one: one.name)
        while waiting:
            formula = waiting.pop(0)
            if formula.name not in used:
                used[formula.name] = formula
                waiting = [*called_formulas(formula), *waiting]
    return list(used.values())


def parts_of(run: BaseRun) -> list[tuple[str, Any]]:
    """The time over named sequences, each of these, and the idle terms over them."""
    tree = _steps_apart(run.schedule_tree())
    names: dict[int, str] = {}
    nodes: dict[str, Any] = {}
    places: dict[int, int] = {}
    for node in _walk(tree):
        places[id(node)] = places.get(id(node), 0) + 1
    taken = {leaf.path for leaf in _walk(tree) if isinstance(leaf, Op | Idle)}
    for node in _walk(tree):
        if node is tree or not isinstance(node, Sequence) or id(node) in names:
            continue
        paths = list(dict.fromkeys(leaf.path for leaf in _walk(node) if isinstance(leaf, Op) and leaf is not NOTHING))
        if len(paths) >= WORTH or (places[id(node)] > 1 and len(paths) > 1):
            name = _name(paths)
            if name and name not in nodes and name not in taken:
                names[id(node)] = name
                nodes[name] = node

    def symbol(leaf: Op | Idle) -> Any:
        return sympy.S.Zero if leaf is NOTHING else stand_in(leaf.path)

    def form(node: Any) -> Any:
        return strip_units(time_of(_rename(node, names, top=True), symbol))

    found = [("", form(tree)), *((name, form(node)) for name, node in nodes.items())]
    idle = {leaf.path: leaf for leaf in _walk(tree) if isinstance(leaf, Idle)}
    for path, leaf in idle.items():
        found.append((path, strip_units(leaf.count * time_of(_rename(leaf.child, names), symbol))))
    return found


def _steps_apart(tree: Any) -> Any:
    """A tree in which a series of steps is what all steps have alike, repeated, and then what is a sum over them.

    A part that is named may then stand for its time wherever it is.
    """

    def rebuilt(node: Any, keep: Callable[[Op], bool], known: dict[int, Any]) -> Any:
        if isinstance(node, Op):
            return node if keep(node) else NOTHING
        if isinstance(node, Idle):
            return node
        if id(node) not in known:
            if isinstance(node, StepSeries):
                alike = rebuilt(node.child, lambda op: not op.summed, {})
                known[id(node)] = Sequence((Repeat(alike, node.count), rebuilt(node.child, lambda op: op.summed, {})))
            else:
                made = _changed(node, lambda child: rebuilt(child, keep, known))
                left = [leaf for leaf in _walk(made) if isinstance(leaf, Op | Idle) and leaf is not NOTHING]
                known[id(node)] = made if left else NOTHING
        return known[id(node)]

    has_steps = any(isinstance(node, StepSeries) for node in _walk(tree))
    return rebuilt(tree, lambda _: True, {}) if has_steps else tree


def _changed(node: Any, change: Callable[[Any], Any]) -> Any:
    """A node with its children changed."""
    changed: dict[str, Any] = {}
    for each in dataclasses.fields(node):
        value = getattr(node, each.name)
        if isinstance(value, NODES):
            changed[each.name] = change(value)
        elif isinstance(value, tuple):
            changed[each.name] = tuple(change(v) if isinstance(v, NODES) else v for v in value)
    return dataclasses.replace(node, **changed)


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
    return _changed(node, lambda child: _rename(child, names))


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
    """`shown_definitions` of a run's whole time, without deriving it."""
    with name_calls():
        found = parts_of(run)
        forms = time_forms(run)
        found += _terms(forms, [path for path in forms.terms if path not in dict(found)])
    return _simplified(found)

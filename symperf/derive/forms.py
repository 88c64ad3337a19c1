"""The closed forms of a run's quantities over its named terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import Max, less_one
from ..formulas.language.symbols import SYMBOLS, generate, strip_units
from ..operations.schedule import Idle, Op, terms, time_of
from .numeric import Values

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun

TIME = sympy.Symbol("time", positive=True)
"""Stands for the time in the closed forms of metrics."""
PREFILL, DECODE = (sympy.Symbol(name, nonnegative=True) for name in ("prefill", "decode"))
"""Stand for the parts of an inference's time."""
TIMES: dict[Any, str | None] = {TIME: None, PREFILL: "prefill", DECODE: "decode"}
"""The term of the time that each of these is, None for all of it."""
TREES = ("time", "memory")
"""Quantities that have named terms."""


@dataclass(frozen=True)
class Forms:
    """A quantity over its terms.

    Attributes:
        formula: in the symbols of the terms.
        terms: the closed form of one execution of each term by path; that of an idle term is in the terms' symbols.
        unit: of all of them.
    """

    formula: Any
    terms: dict[str, Any]
    unit: str


def stand_in(path: str) -> Any:
    """The symbol that stands for a term."""
    return sympy.Symbol(path, nonnegative=True)


def time_forms(run: BaseRun) -> Forms:
    """The time of a run over the times of its operations and idle terms."""
    tree = run.schedule_tree()

    def symbol(leaf: Op | Idle) -> Any:
        return stand_in(leaf.path)

    def own(leaf: Op | Idle) -> Any:
        return leaf.time if isinstance(leaf, Op) else leaf.count * time_of(leaf.child, symbol)

    found = {path: strip_units(own(leaf)) for path, leaf in terms(tree).items()}
    return Forms(strip_units(time_of(tree, symbol)), found, "s")


def memory_forms(run: BaseRun) -> Forms:
    """The bytes on the fullest device over their named terms."""
    found = {path: strip_units(expr) for path, expr in run.memory_forms().items()}
    return Forms(sympy.Add(*map(stand_in, found)), found, "B")


def metric_forms(run: BaseRun) -> dict[str, Any]:
    """Closed forms of the other answers of a run, in the symbols of `TIMES` and the vocabulary."""
    from ..infer.structure import InferenceStructure

    own = run.metric_forms(TIME)
    if own is not None:
        found = dict(own)
    elif isinstance(run.structure, InferenceStructure):
        from ..infer.build import metrics as of_inference

        step = DECODE / Max(1, less_one(generate))
        found = {"time_per_token": step} | of_inference(run.structure, PREFILL, step, TIME)
    else:
        from ..train.build import metrics

        found = metrics(run.structure, TIME)
    found["device_seconds"] = TIME * found["devices"]
    return {name: strip_units(expr) for name, expr in found.items()}


def time_in(form: Any) -> Any:
    """The symbol of `TIMES` that a closed form depends on, or None."""
    return next((symbol for symbol in TIMES if form.has(symbol)), None)


def values_of(run: BaseRun) -> Values:
    """The value of every symbol of the vocabulary that a run binds, those that are free of it too."""
    return Values({SYMBOLS[name].symbol: float(value) for name, (value, _) in run.bound.items() if name in SYMBOLS})


def select_paths(paths: list[str], term: str) -> list[str]:
    """The paths that are the term or lie under it."""
    return [path for path in paths if path == term or path.startswith(f"{term}/")]


def prefixes(paths: list[str]) -> list[str]:
    """Every path and every folder of paths."""
    found: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")
        found |= dict.fromkeys("/".join(parts[: k + 1]) for k in range(len(parts)))
    return list(found)

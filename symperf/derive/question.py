"""`derive`: from a run and a quantity to its closed form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import sympy

from ..common.errors import InputError, nearest, quote
from ..evaluation.base_run import ALIASES
from ..formulas.language.atoms import above_one
from ..formulas.language.symbols import SYMBOLS, batch, generate
from . import monomials as mono
from .attribution import counts, part_of, term_sums
from .conditions import conditions, resource_of, value_of
from .derivation import Derivation, Line
from .forms import (
    DECODE,
    SPENT,
    TIMES,
    TREES,
    Forms,
    memory_forms,
    metric_forms,
    prefixes,
    select_paths,
    spent_form,
    time_forms,
    time_in,
    told_spending,
    values_of,
)
from .regime import Choice, RegimeRewriter
from .relations import relations
from .writing import quantity_unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..evaluation.base_run import BaseRun

PHASES = tuple(term for term in TIMES.values() if term is not None)
NAMED = {"derive": "quantity", "free": "symbol", "fold": "symbol or a group of symbols"}
OTHER_NAMES = {"energy_j": "energy", "dollars": "cost", "prefill_s": "prefill", "decode_s": "decode"} | {
    "time_per_token_s": "time_per_token"
}
"""Keys of the JSON of a run that are quantities by another name, beside those that every run knows."""
FOLDS = ("formats", "efficiencies", "tiles", "all", "none")
"""Words for groups of symbols that may be made numbers."""


def derive(
    run: BaseRun,
    of: str = "time",
    *,
    term: str | None = None,
    free: Iterable[str] = (),
    below: float = 0.01,
    fold: Iterable[str] | None = None,
) -> Derivation:
    """The closed form of a quantity, whole and inside the regime that the run is in.

    Args:
        run: gives the structure, the values of its symbols and the names that are free.
        of: "time", "memory", "tokens_per_s", "mfu", ...: any of `quantities(run)`.
        term: a path of the breakdown, or a folder of paths such as "layer/mlp"; for time and memory only.
        free: names of symbols that vary besides those free in the run. With any, all others are numbers.
        below: lines of a smaller share of the quantity are dropped from what is shown.
        fold: what is made a number: names of symbols, "formats" (bytes of elements), "efficiencies", "tiles", "all" or
            "none". By default "formats", and "all" where symbols are free.

    Returns:
        Lines of one monomial each that sum to the quantity, and the conditions under which they do.

    Raises:
        InputError: an unknown quantity, term or symbol, with the nearest, or a share that is none.
    """
    (of,) = _names("derive", of)
    of = ALIASES.get(of, OTHER_NAMES.get(of, of))
    if term is not None and not isinstance(term, str):
        raise InputError(f"term: found {quote(term)}, expected a path such as layer/mlp")
    if of in PHASES and _has_phases(run):
        of, term = "time", of if term is None else f"{of}/{term.removeprefix(f'{of}/')}"
    metrics = {} if of in TREES or of in SPENT else metric_forms(run)
    if of not in TREES and of not in SPENT and of not in metrics:
        known = quantities(run)
        raise InputError(f"derive: unknown quantity {quote(of)}, expected {' or '.join(known)}{nearest(of, known)}")
    names = _check_free(run, _names("free", free))
    if isinstance(below, bool) or not isinstance(below, int | float) or not 0 <= below <= 1:
        raise InputError(f"below: found {quote(below)}, expected a share from 0 to 1")
    if term is not None and of not in TREES:
        raise InputError(f"term: {of} has no terms, expected one of time or memory")
    form, own = spent_form(run, of) if of in SPENT else (metrics.get(of), {})
    regime = _regime(run, names, None if fold is None else _names("fold", fold), own)
    if of in TREES:
        forms = time_forms(run) if of == "time" else memory_forms(run)
        return _tree(run, of, forms, term, names, float(below), regime)
    return _metric(run, of, form, names, float(below), regime, own)


def _names(where: str, given: Any) -> list[str]:
    """Names as a list; a text alone is one name.

    Raises:
        InputError: something else than names.
    """
    if isinstance(given, str):
        return [given]
    found = list(given) if hasattr(given, "__iter__") and where != "derive" else [given]
    for name in found:
        if not isinstance(name, str):
            raise InputError(f"{where}: found {quote(name)}, expected the name of a {NAMED[where]}")
    return found


def quantities(run: BaseRun) -> list[str]:
    """What `derive` can tell of a run."""
    return [*TREES, *(PHASES if _has_phases(run) else ()), *metric_forms(run), *told_spending(run)]


def _has_phases(run: BaseRun) -> bool:
    return all(phase in run.compiled.program.outputs for phase in PHASES)


def check_term(of: str, forms: Forms, term: str) -> list[str]:
    """The paths of a term or of a folder of terms.

    Raises:
        InputError: there is none, with the nearest.
    """
    paths = list(forms.terms)
    found = select_paths(paths, term.strip("/").removeprefix(f"{of}/"))
    if not found:
        raise InputError(f"term: {of} has no term {quote(term)}{_near(term, paths)}")
    return found


def _near(term: str, paths: list[str]) -> str:
    known = prefixes(paths)
    hint = nearest(term, known)
    if hint:
        return hint
    last = term.strip("/").rpartition("/")[2]
    ends = [path for path in known if path.rpartition("/")[2] == last][:3]
    tops = list(dict.fromkeys(path.split("/")[0] for path in paths))
    return f"; did you mean {' or '.join(ends)}?" if ends else f", expected one under {' or '.join(tops)}"


def _check_free(run: BaseRun, free: Iterable[str]) -> tuple[str, ...]:
    known = run.compiled.program.inputs
    for name in free:
        if name not in known:
            raise InputError(f"free: the run has no symbol {quote(name)}{nearest(name, known)}")
    return tuple(sorted({*run.free_names, *free}))


def _regime(run: BaseRun, free: tuple[str, ...], fold: Iterable[str] | None, own: dict[str, float]) -> RegimeRewriter:
    values = values_of(run)
    for name, value in own.items():
        values.define(SYMBOLS[name].symbol, value)
    words = (["all"] if free else ["formats"]) if fold is None else list(fold)
    numbers: set[Any] = set()
    for word in words:
        if word not in FOLDS and word not in run.compiled.program.inputs:
            raise InputError(
                f"fold: found {quote(word)}, expected {' or '.join(FOLDS)} or a symbol of the run"
                f"{nearest(word, [*FOLDS, *run.compiled.program.inputs])}"
            )
        numbers |= {
            entry.symbol
            for name, entry in SYMBOLS.every().items()
            if (name in run.bound or name in own) and _folds(word, entry)
        }
    varying = {SYMBOLS[name].symbol for name in free}
    numbers -= varying
    return RegimeRewriter(values, varying, numbers, relations(values, varying | numbers))


def _folds(word: str, entry: Any) -> bool:
    tile = entry.name.startswith("tile_")
    return bool(
        word in ("all", entry.name)
        or (word == "formats" and entry.group == "format")
        or (word == "tiles" and tile)
        or (word == "efficiencies" and entry.name.endswith("_efficiency"))
    )


def _tree(
    run: BaseRun,
    of: str,
    forms: Forms,
    term: str | None,
    free: tuple[str, ...],
    below: float,
    regime: RegimeRewriter,
) -> Derivation:
    paths = list(forms.terms) if term is None else check_term(of, forms, term)
    counted, sums = counts(forms, regime), term_sums(forms, regime)
    times = {path: count for path, count in counted.of.items() if path in paths}
    parts = {path: mono.multiply(count, sums.of[path]) for path, count in times.items() if sums.of[path]}
    lines = _lines(parts, regime)
    choices = [("", choice) for choice in counted.choices(paths)]
    choices += [each for path in times for each in sums.choices(path)]
    zeros = {path: tuple(counted.choices([path])) for path in paths if path not in times}
    zeros |= {path: tuple(choice for _, choice in sums.choices(path)) for path in times if not sums.of[path]}
    return Derivation(
        of=of,
        term=None if term is None else term.strip("/").removeprefix(f"{of}/"),
        unit=forms.unit,
        value=math.fsum(line.value for line in lines),
        run=run,
        free=free,
        folded=tuple(sorted(symbol.name for symbol in regime.numbers)),
        lines=lines,
        below=below,
        conditions=tuple(conditions(choices, regime, _resources())),
        relations=_relations(regime),
        counts={path: mono.expression(count) for path, count in times.items()},
        forms=forms,
        formula=forms.formula if term is None else part_of(forms, regime, paths),
        time=None,
        zeros={path: zeros[path] for path in paths if path in zeros},
    )


def _metric(
    run: BaseRun,
    of: str,
    form: Any,
    free: tuple[str, ...],
    below: float,
    regime: RegimeRewriter,
    own: dict[str, float],
) -> Derivation:
    symbol = time_in(form)
    if symbol == DECODE and regime.values(generate) <= 1:
        raise InputError(f"derive: {of} needs a decode step, found generate = 1, expected 2 or more")
    time = None if symbol is None else _tree(run, "time", time_forms(run), TIMES[symbol], free, below, regime)
    if time is not None:
        regime.define(symbol, time.formula, time.value)
    merged = regime.expanding(lambda count: batch in count.free_symbols)
    if any(exact < 0 for exact, _ in merged.sum_of(form).values()):
        merged = regime
    lines = _lines({"": merged.sum_of(form)}, merged)
    choices = merged.choices(form)
    if symbol == DECODE:  # what is told of a single token is the step that would follow
        choices.append(Choice("present", above_one(generate), sympy.S.One, (generate,)))
    found = conditions([("", choice) for choice in choices], merged, _resources())
    found += [] if time is None else time.conditions
    return Derivation(
        of=of,
        term=None,
        unit=quantity_unit(of),
        value=math.fsum(line.value for line in lines),
        run=run,
        free=free,
        folded=tuple(sorted(symbol.name for symbol in regime.numbers)),
        lines=lines,
        below=below,
        conditions=tuple(found),
        relations=_relations(regime),
        counts={},
        forms=None,
        formula=form,
        time=time,
        own=own,
    )


def _lines(parts: dict[str, mono.Sum], regime: RegimeRewriter) -> tuple[Line, ...]:
    """One line for each monomial of all parts, the largest first."""
    total = mono.add(*parts.values())
    sources: dict[mono.Monomial, dict[str, float]] = {}
    for path, part in parts.items():
        for monomial, (exact, _) in part.items():
            sources.setdefault(monomial, {})[path] = value_of(monomial, exact, regime)
    values = {monomial: value_of(monomial, exact, regime) for monomial, (exact, _) in total.items()}
    whole = math.fsum(values.values())
    resources = _resources()
    lines = [
        Line(
            *mono.rounded(pair),
            monomial=mono.product(monomial),
            value=values[monomial],
            share=values[monomial] / whole if whole else 0.0,
            resource=resource_of(monomial, resources),
            terms=dict(sorted(sources[monomial].items(), key=lambda pair: -abs(pair[1]))),
            exact=pair[0],
        )
        for monomial, pair in total.items()
    ]
    return tuple(sorted(lines, key=lambda line: (-abs(line.value), str(line.monomial))))


def _relations(regime: RegimeRewriter) -> dict[Any, Any]:
    return {symbol: mono.expression(found) for symbol, found in regime.relations.items()}


def _resources() -> dict[Any, str]:
    return {entry.symbol: entry.resource for entry in SYMBOLS.every().values() if entry.resource is not None}

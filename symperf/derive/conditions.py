"""The conditions of a regime, as a reader sees them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import Max, Min
from . import monomials as mono

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .regime import Choice, RegimeRewriter

LEADING = 0.05
"""Parts of a branch below this share of it are not written out."""


@dataclass(frozen=True)
class ConditionSide:
    """One side of a condition.

    Attributes:
        expr: its closed form, whole.
        leading: its largest monomials in the regime, as (coefficient, rounding, monomial) like those of a `Line`;
            of two branches, without what both have.
        more: whether there are others.
        value: at the run's values.
        resource: that it is time of, or None.
    """

    expr: Any
    leading: tuple[tuple[mono.Number, float, Any], ...]
    more: bool
    value: float
    resource: str | None


@dataclass(frozen=True)
class Condition:
    """What holds in the regime.

    Attributes:
        kind: "max": the active branch is at least the others; "min": at most; "present": the active count is above 1
            where `holds`, else it is 1; "fits": the active amount is at most the other; "divides": the other divides
            the active amount.
        active: the branch, count or amount.
        others: what it is compared with.
        terms: paths of the terms that it is part of; "" is the whole.
        holds: of a present count, whether it is above 1.
    """

    kind: str
    active: ConditionSide
    others: tuple[ConditionSide, ...]
    terms: tuple[str, ...]
    holds: bool = True

    @property
    def margin(self) -> float:
        """By which factor the nearest branch would have to change; infinite where there is no such factor."""
        if self.kind not in ("max", "min"):
            return math.inf
        pairs = [(self.active.value, other.value) for other in self.others]
        ratios = [a / b if self.kind == "max" else b / a for a, b in pairs if a > 0 and b > 0]
        return min(ratios, default=math.inf)

    @property
    def always(self) -> bool:
        """Whether it compares numbers of which none could change places with the active one, as 0 and -23."""
        if self.kind not in ("max", "min") or math.isfinite(self.margin):
            return False
        sides = (self.active, *self.others)
        return not any(side.more or any(m.free_symbols for _, _, m in side.leading) for side in sides)

    @property
    def distinct(self) -> Condition | None:
        """The condition without branches that are the same as the active one as long as it holds; None without any."""
        if self.kind not in ("max", "min"):
            return self
        others = tuple(other for other in self.others if other.leading != self.active.leading)
        return dataclasses.replace(self, others=others) if others else None


def readable(found: Iterable[Condition]) -> list[Condition]:
    """The conditions that a reader is shown: not what always holds, no exact division, nothing beside its like."""
    distinct = (condition.distinct for condition in found if condition.kind != "divides" and not condition.always)
    return sorted((each for each in distinct if each is not None), key=lambda each: each.margin)


def conditions(
    choices: Iterable[tuple[str, Choice]], regime: RegimeRewriter, resources: dict[Any, str], forms: dict[Any, Any]
) -> list[Condition]:
    """The conditions of the choices made in terms, each once, the nearest to a change first.

    Args:
        choices: (path of the term, choice).
        regime: in which they were made.
        resources: of the symbols that are rates or latencies.
        forms: of the symbols that stand for terms.

    Returns:
        With free symbols only those that depend on one: the others hold in any case.
    """
    varying = set(regime.free)
    for symbol, form in sorted(forms.items(), key=lambda pair: bool(pair[1].free_symbols & forms.keys())):
        if form.free_symbols & varying:
            varying.add(symbol)
    found: dict[Any, tuple[Choice, list[str]]] = {}
    for path, choice in choices:
        if not regime.free or choice.node.free_symbols & varying:
            found.setdefault(choice.node, (choice, []))[1].append(path)
    made: dict[Any, Condition] = {}
    for choice, paths in found.values():
        condition = _condition(choice, tuple(dict.fromkeys(paths)), regime, resources)
        if condition is None:
            continue
        key = (condition.kind, condition.active.leading, tuple(other.leading for other in condition.others))
        before = made.get(key)
        terms = condition.terms if before is None else (*before.terms, *condition.terms)
        made[key] = dataclasses.replace(condition, terms=tuple(dict.fromkeys(terms)))
    return sorted(made.values(), key=lambda each: each.margin)


def _condition(
    choice: Choice, paths: tuple[str, ...], regime: RegimeRewriter, resources: dict[Any, str]
) -> Condition | None:
    if choice.kind in ("present", "fits", "divides"):
        amount, *sizes = (_branch(side, regime.sum_of(side), regime, resources) for side in choice.node.args)
        return Condition(choice.kind, amount, tuple(sizes), paths, holds=choice.active != 0)
    own = regime.sum_of(choice.active)
    others = [
        each
        for each in choice.others
        if not each.is_Number and not (_steady(each, choice.kind) and _same(each, own, regime))
    ]
    if not others:
        return None
    common: mono.Sum = {}
    if len(others) == 1:
        other = regime.sum_of(others[0])
        common = {each: pair for each, pair in own.items() if other.get(each) == pair}
        if len(common) == len(other if choice.kind == "max" else own) and _steady(others[0], choice.kind):
            return None  # one branch is the other and more: it cannot lose
    active = _branch(choice.active, _without(own, common), regime, resources)
    losers = []
    for each in others:
        mirrored = mono.add(own, regime.sum_of(each)) == {}  # of an absolute value: it is the sign that counts
        losers.append(_branch(each, {} if mirrored else _without(regime.sum_of(each), common), regime, resources))
    return Condition(choice.kind, active, tuple(losers), paths)


def _without(whole: mono.Sum, common: mono.Sum) -> mono.Sum:
    return {each: pair for each, pair in whole.items() if each not in common}


def _same(other: Any, own: mono.Sum, regime: RegimeRewriter) -> bool:
    """Whether a branch is the active one in another shape, as that of a tile turned round is."""
    found = regime.sum_of(other)
    return found.keys() == own.keys() and all(
        math.isclose(found[each][0], own[each][0], rel_tol=1e-12) for each in found
    )


def _steady(other: Any, kind: str) -> bool:
    """Whether no switch inside a losing branch can bring it nearer to winning."""
    return not other.has(Max if kind == "max" else Min)


def _branch(expr: Any, shown: mono.Sum, regime: RegimeRewriter, resources: dict[Any, str]) -> ConditionSide:
    parts = sorted(
        ((value_of(monomial, pair[0], regime), monomial, pair) for monomial, pair in shown.items()),
        key=lambda part: -abs(part[0]),
    )
    total = math.fsum(value for value, _, _ in parts)
    kept = [part for k, part in enumerate(parts) if k == 0 or abs(part[0]) >= LEADING * abs(total)]
    leading = tuple((smooth, float(exact / smooth), mono.product(monomial)) for _, monomial, (exact, smooth) in kept)
    resource = resource_of(kept[0][1], resources) if kept else None
    return ConditionSide(expr, leading, len(kept) < len(parts), regime.values(expr), resource)


def value_of(monomial: mono.Monomial, coefficient: mono.Number, regime: RegimeRewriter) -> float:
    """The value of a monomial with its coefficient."""
    found = float(coefficient)
    for each, of in monomial:
        found *= regime.values(each) ** float(of)
    return found


def resource_of(monomial: mono.Monomial, resources: dict[Any, str]) -> str | None:
    """The resource that a monomial is time of: that of its latency or of the rate that divides it."""
    for each, of in monomial:
        if each in resources and (of < 0 or each.name.endswith("_latency")):
            return resources[each]
    return None

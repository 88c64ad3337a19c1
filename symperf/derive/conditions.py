"""The conditions of a regime, as a reader sees them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import bubble, ceil_div, complement, less_one, log2, ring_share
from . import monomials as mono
from .proofs import Proofs, is_whole, not_negative

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .regime import Choice, RegimeRewriter

LEADING = 0.05
"""Parts of a branch below this share of it are not written out."""
LEGIBLE = 16
"""Operations in a count or an amount that is written as it is, not as it is at the point."""
ORDER = ("max", "min", "present", "vanishes", "fits", "divides", "rounding", "equals")


@dataclass(frozen=True)
class ConditionSide:
    """One side of a condition.

    Attributes:
        expr: its closed form, whole.
        leading: its largest monomials in the regime, as (coefficient, rounding, monomial) like those of a `Line`;
            of two branches, without what both have. Of a count or an amount all of it, as it is.
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
            where `holds`, else it is 1; "vanishes": the active count or fraction is the other, a number, at which a
            part is 0; "fits": the active amount is at most the other; "divides": the other divides the active amount;
            "rounding": rounding up the quotient of the active amount and the other raises it by `factor`, or gives a
            number; "equals": the active symbol is the other, a number or a product of symbols.
        active: the branch, count, fraction, amount or symbol.
        others: what it is compared with.
        terms: paths of the terms that it is part of; "" is the whole.
        holds: of a present count, whether it is above 1.
        factor: of a rounding, what it adds: 1 for nothing.
        choices: the parts of the closed form that it decides, each with what replaces it.
    """

    kind: str
    active: ConditionSide
    others: tuple[ConditionSide, ...]
    terms: tuple[str, ...]
    holds: bool = True
    factor: float = 1.0
    choices: tuple[Choice, ...] = field(default=(), repr=False)

    @property
    def margin(self) -> float:
        """By which factor the nearest branch would have to change; infinite where there is no such factor."""
        if self.kind not in ("max", "min"):
            return math.inf
        pairs = [(self.active.value, other.value) for other in self.others]
        ratios = [a / b if self.kind == "max" else b / a for a, b in pairs if a > 0 and b > 0]
        return min(ratios, default=math.inf)

    @property
    def in_symbols(self) -> bool:
        """Whether a symbol is left in it; all else is a number where others are free."""
        sides = (self.active, *self.others)
        return any(monomial.free_symbols for side in sides for _, _, monomial in side.leading)

    @property
    def distinct(self) -> Condition | None:
        """The condition without branches that read like the active one, as that of a tile turned round; or None."""
        if self.kind not in ("max", "min"):
            return self
        others = tuple(other for other in self.others if other.leading != self.active.leading)
        return dataclasses.replace(self, others=others) if others else None


def readable(found: Iterable[Condition]) -> list[Condition]:
    """The branches and switches that a reader is shown first, in symbols, and none that reads like the active one."""
    distinct = (each.distinct for each in found if each.kind in ("max", "min", "present", "fits") and each.in_symbols)
    return sorted((each for each in distinct if each is not None), key=lambda each: each.margin)


def conditions(
    choices: Iterable[tuple[str, Choice]], regime: RegimeRewriter, resources: dict[Any, str]
) -> list[Condition]:
    """The conditions of the choices made in terms, each once, the nearest to a change first.

    A choice is left out where the rest implies it whatever the values: where both branches are sums of monomials under
    choices that are conditions too, and the active one is the other and more.

    Args:
        choices: (path of the term, choice).
        regime: in which they were made.
        resources: of the symbols that are rates or latencies.
    """
    found: dict[Choice, list[str]] = {}
    for path, choice in choices:
        found.setdefault(choice, []).append(path)
    proofs = Proofs(regime, found)
    made: dict[Any, Condition] = {}
    for choice, paths in found.items():
        condition = _condition(choice, tuple(dict.fromkeys(paths)), regime, resources, proofs)
        if condition is None:
            continue
        leading = tuple(other.leading for other in condition.others)
        key = (condition.kind, condition.active.leading, leading, condition.factor, condition.holds)
        before = made.get(key)
        if before is not None:
            terms, both = (*before.terms, *condition.terms), (*before.choices, *condition.choices)
            condition = dataclasses.replace(condition, terms=tuple(dict.fromkeys(terms)), choices=both)
        made[key] = condition
    return sorted(made.values(), key=lambda each: (each.margin, ORDER.index(each.kind)))


def _condition(
    choice: Choice,
    paths: tuple[str, ...],
    regime: RegimeRewriter,
    resources: dict[Any, str],
    proofs: Proofs,
) -> Condition | None:
    if choice.kind not in ("max", "min", "equals") and proofs.is_settled(choice):
        return None

    def side(expr: Any) -> ConditionSide:
        expr = _legible(expr)
        if expr.count_ops() > LEGIBLE:
            return _branch(expr, regime.sum_of(expr), regime, resources)
        return ConditionSide(expr, ((Fraction(1), 1.0, expr),), False, regime.values(expr), resources.get(expr))

    def made(active: Any, *others: Any, **more: Any) -> Condition:
        sides = tuple(side(other) for other in others)
        return Condition(choice.kind, side(active), sides, paths, choices=(choice,), **more)

    match choice.kind:
        case "present":
            return made(*choice.node.args, holds=choice.active != 0)
        case "vanishes":
            return made(*_vanishing(choice))
        case "fits" | "divides":
            return None if is_whole(choice) else made(*choice.node.args)
        case "rounding":
            amount, size = choice.node.args
            return made(amount, size, factor=regime.values(choice.node) / regime.values(amount / size))
        case "equals":
            return made(choice.node, choice.active)
    return _contest(choice, paths, regime, resources, proofs)


def _legible(expr: Any) -> Any:
    """An expression in which no symbol is rounded up to a whole number, which counts are."""
    ones = {node: node.args[0] for node in expr.atoms(ceil_div) if node.args[1] == 1 and node.args[0].is_Symbol}
    return expr.xreplace(ones) if ones else expr


def _vanishing(choice: Choice) -> tuple[Any, Any]:
    """A count or a fraction, and the number that it is where a part is 0 or a fraction takes nothing away."""
    node = choice.node
    if isinstance(node, complement):
        return node.args[0], 1 - choice.active
    if isinstance(node, less_one | log2 | ring_share | bubble):
        return node.args[0], sympy.S.One
    return node.args[0], sympy.S.Zero


def _contest(
    choice: Choice,
    paths: tuple[str, ...],
    regime: RegimeRewriter,
    resources: dict[Any, str],
    proofs: Proofs,
) -> Condition | None:
    # What is 0 here is so under conditions of zero parts, and then below all that is never negative.
    above = choice.kind == "max" and not_negative(choice.active)
    others = [each for each in choice.others if not proofs.wins_always(choice, each)]
    others = [each for each in others if regime.sum_of(each) or not above]
    if not others:
        return None
    own = regime.sum_of(choice.active)
    common: mono.Sum = {}
    if len(others) == 1:
        other = regime.sum_of(others[0])
        common = {each: pair for each, pair in own.items() if other.get(each) == pair}
    active = _branch(choice.active, _without(own, common), regime, resources)
    losers = []
    for each in others:
        mirrored = mono.add(own, regime.sum_of(each)) == {}  # of an absolute value: it is the sign that counts
        losers.append(_branch(each, {} if mirrored else _without(regime.sum_of(each), common), regime, resources))
    return Condition(choice.kind, active, tuple(losers), paths, choices=(choice,))


def _without(whole: mono.Sum, common: mono.Sum) -> mono.Sum:
    return {each: pair for each, pair in whole.items() if each not in common}


def _branch(expr: Any, shown: mono.Sum, regime: RegimeRewriter, resources: dict[Any, str]) -> ConditionSide:
    parts = sorted(
        ((value_of(monomial, pair[0], regime), monomial, pair) for monomial, pair in shown.items()),
        key=lambda part: -abs(part[0]),
    )
    total = math.fsum(value for value, _, _ in parts)
    kept = [part for k, part in enumerate(parts) if k == 0 or abs(part[0]) >= LEADING * abs(total)]
    leading = tuple((*mono.rounded(pair), mono.product(monomial)) for _, monomial, pair in kept)
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
        if each in resources and (of < 0 or "_latency" in each.name):
            return resources[each]
    return None

"""Tables of legal degrees: the rules of `validity` on columns, counted where they refuse, never listed.

A table grows column by column. Each rule is applied as soon as the columns that it reads are there, and what it refuses
stands for every row that would have grown from it; so hundreds of millions of plans are counted in milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from ..plans.grammar import fold
from ..plans.plan import FIELDS
from ..plans.plan_fields import NUMBERS
from ..plans.rule import ABSENT, BrokenRuleError
from ..plans.structure import ZERO_BUBBLE
from ..plans.validity import RULES
from .space import LARGEST, LAYOUT, layouts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..plans.grammar import Node
    from ..plans.rule import Rule
    from .space import Combination, SearchQuestion, TableForm

    Array = np.ndarray[Any, Any]


NOTHING_TO_SHARD = "nothing_to_shard"
"""ZeRO with one replica: the same plan as without."""
SAME_PLACES = "rank_order_changes_nothing"
"""Another order of ranks that moves no group to another tier: as the usual order."""
ONE_STAGE = "one_stage_has_no_schedule"
"""A schedule of a pipeline of one stage, which has nothing to schedule: 1F1B stands for all."""


@dataclass(frozen=True, eq=False)
class DegreeTable:
    """The degrees of the plans of one form.

    Attributes:
        columns: values by field, int64 (fractions float64), one row for each choice of degrees.
        considered: choices of degrees before any rule.
        rejected: of these, those that a rule refuses whatever the combination, by rule.
        combinations: those whose plans are rows here.
        legal: of each combination (a row) at each row of the table (a column).
        rejections: plans refused by rules that read the choices, by rule.
        examples: the message of the first plan that a rule refuses, by rule.
    """

    columns: dict[str, Array]
    considered: int
    rejected: dict[str, int]
    combinations: list[Combination]
    legal: Array
    rejections: dict[str, int]
    examples: dict[str, str]

    @property
    def length(self) -> int:
        """Number of rows of the table."""
        return len(self.columns["tp"])

    def degrees(self, row: int) -> dict[str, Any]:
        """The fields of a row, without `expert_tp`."""
        return {name: column[row].item() for name, column in self.columns.items() if name != "expert_tp"}


def table(question: SearchQuestion, form: TableForm, combinations: Sequence[Combination]) -> DegreeTable:
    """The table of a form.

    Args:
        question: what is searched.
        form: of the plans.
        combinations: of this form, whose choices go together.
    """
    names = question.constants
    constants = [dict(zip(names, c.constants, strict=True)) for c in combinations]
    varying = {name for name in names if len({each[name] for each in constants}) > 1}
    rules = (*RULES, *question.software.rules)
    always = [rule for rule in rules if not rule.tree.names() & varying]
    sometimes = [rule for rule in rules if rule.tree.names() & varying]
    examples = _Examples(question, combinations[0].fields if combinations else {})
    columns, considered, rejected = _grow(question, form, constants[0] if constants else None, always, examples)
    length = len(columns["tp"])
    legal = np.zeros((len(combinations), length), dtype=bool)
    rejections: dict[str, int] = {}
    known: dict[tuple[Any, ...], tuple[Array, dict[str, int]]] = {}
    read = {rule.name: sorted(rule.tree.names() & varying) for rule in sometimes}
    held: dict[tuple[Any, ...], Array] = {}
    for k, combination in enumerate(combinations):
        shards, scheduled = _shards(question, combination), _schedules(question, combination)
        key = (*combination.constants, shards, scheduled)
        if key not in known:
            examples.fields = combination.fields
            values = {**constants[k], **columns}
            rows = []
            for rule in sometimes:
                of_rule = rule.name, *(constants[k][name] for name in read[rule.name])
                if of_rule not in held:
                    held[of_rule] = _holds(rule, values, length)
                rows.append(held[of_rule])
            good, counts = _count(sometimes, rows, values, length, examples)
            if shards:
                copies = columns["dp"] * columns["cp"] * (columns["tp"] if constants[k]["routed"] else 1)
                counts |= {NOTHING_TO_SHARD: int(np.count_nonzero(good & (copies == 1)))}
                good &= copies > 1
            if scheduled:
                counts |= {ONE_STAGE: int(np.count_nonzero(good & (columns["pp"] == 1)))}
                good &= columns["pp"] > 1
            if _reorders(question, combination):
                moved = _moves_groups(question, columns)
                counts |= {SAME_PLACES: int(np.count_nonzero(good & ~moved))}
                good &= moved
            known[key] = good, counts
        legal[k], counts = known[key]
        for name, n in counts.items():
            rejections[name] = rejections.get(name, 0) + n
    return DegreeTable(columns, considered, rejected, list(combinations), legal, rejections, examples.found)


def _shards(question: SearchQuestion, combination: Combination) -> bool:
    """Whether a combination shards over replicas what another keeps whole."""
    fields = combination.fields
    return fields["zero"] > 0 and fields["schedule"] != "dualpipe" and 0 in question.candidates["zero"]


def _schedules(question: SearchQuestion, combination: Combination) -> bool:
    """Whether a combination schedules stages otherwise than 1F1B, which is searched too."""
    schedule = combination.fields["schedule"]
    return schedule in ("gpipe", *ZERO_BUBBLE) and "1f1b" in question.candidates["schedule"]


def _reorders(question: SearchQuestion, combination: Combination) -> bool:
    """Whether a combination has another order of ranks than the usual one, which is searched too."""
    usual = FIELDS["rank_order"].default
    return combination.fields["rank_order"] != usual and usual in question.candidates["rank_order"]


def _moves_groups(question: SearchQuestion, columns: Mapping[str, Array]) -> Array:
    """Where another order of ranks can move a group to another tier, so that a step may be faster.

    Data and pipeline must both be there. Nothing moves where the whole plan lies in one scale-up domain, nor where
    tensor and context fill one: then every step of data or pipeline leaves it, whichever comes first.
    """
    system = question.base.system
    size = system.value("scale_up_size") if len(system.tiers) > 1 else math.inf
    inside = columns["tp"] * columns["cp"]
    return (columns["pp"] > 1) & (columns["dp"] > 1) & (inside < size) & (question.devices > size)


def _grow(
    question: SearchQuestion,
    form: TableForm,
    values: Mapping[str, Any] | None,
    rules: Sequence[Rule],
    examples: _Examples,
) -> tuple[dict[str, Array], int, dict[str, int]]:
    """Columns of the rows that the rules allow, how many were considered, and what each rule refused.

    Without `values` no choices go together, and rows are only counted.
    """
    layers = question.base.model.sizes["num_layers"]
    dealt = layers + form.counted
    # Where pp divides what is dealt stages are even, and where it divides the layers no end need be counted.
    even = form.uneven and False in question.candidates["uneven_stages"]
    plain = form.counted and "none" in question.candidates["account_for"]
    start = [
        layout
        for layout in layouts(question)
        if (layout[2] > 1) is form.parts
        and not ((even and dealt % layout[1] == 0) or (plain and layers % layout[1] == 0))
    ]
    axes = {name: list(question.candidates[name]) for name in question.columns if name not in (*LAYOUT, "expert_tp")}
    axes["vpp"] = [vpp for vpp in axes["vpp"] if (vpp > 1) is form.interleaved]
    left = math.prod(len(axis) for axis in axes.values())
    considered = len(start) * left
    grown = np.array(start if values is not None else [], dtype=np.int64).reshape(-1, len(LAYOUT))
    columns: dict[str, Array] = {name: np.ascontiguousarray(grown[:, k]) for k, name in enumerate(LAYOUT)}
    rejected: dict[str, int] = {}
    waiting = list(rules)
    for name in (None, *axes):
        if name is not None:
            columns = _cross(columns, name, axes[name])
            left //= max(len(axes[name]), 1)
        if name == "ep":
            degree = np.where(columns["ep"] > 1, 1, columns["tp"])
            columns["expert_tp"] = degree if form.expert_tp is None else np.full_like(degree, form.expert_tp)
        known = {**(values or {}), **columns}
        now = [rule for rule in waiting if rule.tree.names() <= set(known)]
        waiting = [rule for rule in waiting if rule not in now]
        good, counts = _apply(now, known, len(columns["tp"]), examples)
        columns = {key: column[good] for key, column in columns.items()}
        for reason, n in counts.items():
            rejected[reason] = rejected.get(reason, 0) + n * left
    return {name: columns[name] for name in question.columns}, considered, rejected


def _cross(columns: Mapping[str, Array], name: str, values: Sequence[Any]) -> dict[str, Array]:
    """Every row with each of the values."""
    length = len(columns["tp"])
    if length * len(values) > LARGEST:
        raise InputError(
            f"search: more than {LARGEST} choices of degrees, expected limits such as --max-pp or fewer values"
        )
    kind = np.int64 if FIELDS[name].whole else np.float64
    crossed = {key: np.repeat(column, len(values)) for key, column in columns.items()}
    return {**crossed, name: np.tile(np.array(values, dtype=kind), length)}


class _Examples:
    """The messages of rules at the first plans that they refuse.

    Args:
        question: what is searched.
        fields: of the combination whose plans are looked at.
    """

    def __init__(self, question: SearchQuestion, fields: Mapping[str, Any]) -> None:
        self.found: dict[str, str] = {}
        self.fields = fields
        base = question.base
        self.words = {"model": base.model.name, "system": base.system.name, **base.model.sizes, **ABSENT}

    def see(self, rule: Rule, values: Mapping[str, Any], refused: Array) -> None:
        """Keep the message of a rule, unless there is one, at the first of the rows that it refuses."""
        if rule.name in self.found:
            return
        row = int(refused.argmax())
        known = {name: each[row].item() if isinstance(each, np.ndarray) else each for name, each in values.items()}
        told = dict.fromkeys(NUMBERS, 1) | self.words | {"schedule": self.fields.get("schedule")} | known
        self.found[rule.name] = str(BrokenRuleError.of(rule, told))


def _apply(
    rules: Sequence[Rule], values: Mapping[str, Any], length: int, examples: _Examples
) -> tuple[Array, dict[str, int]]:
    """Which rows hold every rule, and how many each rule was the first to refuse."""
    return _count(rules, [_holds(rule, values, length) for rule in rules], values, length, examples)


def _holds(rule: Rule, values: Mapping[str, Any], length: int) -> Array:
    """Which rows hold a rule."""
    with np.errstate(all="ignore"):  # both sides of an `or` are computed
        return np.broadcast_to(np.asarray(holding(rule.tree, values), dtype=bool), (length,))


def _count(
    rules: Sequence[Rule], rows: Sequence[Array], values: Mapping[str, Any], length: int, examples: _Examples
) -> tuple[Array, dict[str, int]]:
    """The same, where it is known which rows hold each rule."""
    good = np.ones(length, dtype=bool)
    counts: dict[str, int] = {}
    for rule, holds in zip(rules, rows, strict=True):
        refused = int(np.count_nonzero(good & ~holds))
        if refused:
            counts[rule.name] = refused
            examples.see(rule, values, good & ~holds)
            good &= holds
    return good, counts


def holding(node: Node, values: Mapping[str, Any]) -> Any:
    """The value of an expression on whole columns, exact in int64; of a condition, where it holds.

    >>> from symperf.plans.grammar import predicate
    >>> holding(predicate("a % b == 0", ["a", "b"], "here"), {"a": np.array([6, 7]), "b": 3}).tolist()
    [True, False]
    """
    return fold(node, _VECTOR | {"name": values.__getitem__})


_VECTOR: dict[str, Any] = {
    "number": lambda value: value,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "power": np.power,
    "negate": np.negative,
    "min": lambda *parts: reduce(np.minimum, parts),
    "max": lambda *parts: reduce(np.maximum, parts),
    "ceil": np.ceil,
    "floor": np.floor,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "and": lambda parts: np.logical_and(*parts),
    "or": lambda parts: np.logical_or(*parts),
    "not": np.logical_not,
}

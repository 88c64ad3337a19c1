"""The space of a search: what each field of a plan may be, and which choices go together.

Degrees and micro-batches are numbers of a row in a table (`legal`). Every other field is a choice: a combination of
choices has a structure and numbers of its own. A field that is not named here stays at the plan's default, unless the
question gives values for it; so a new field of `Plan` can be searched as soon as it exists.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..plans.plan import FIELDS, Plan, attention_of
from ..plans.plan_fields import COLUMNS
from ..plans.software_limits import SoftwareLimits
from ..plans.structure import COUNTED
from ..plans.validity import IMPOSSIBLE, NAMES, flags_of_order, run_values
from ..runs.training_run import Run
from ..spending.prices import device_second
from ..systems.software import Software
from ..train.inputs import stated_names, structure_of
from .reasons import name_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from ..models.model import Model
    from ..plans.structure import Structure
    from ..systems.system import System

DEGREES = COLUMNS
"""Columns of every table, from the outermost."""
LAYOUT = tuple(name for name in DEGREES if FIELDS[name].layout)
"""Degrees whose product is the number of devices."""
FRACTIONS = tuple(name for name, field in FIELDS.items() if field.kind == "fraction")
"""Fields that are columns of the table only where they have several values."""
STRUCTURAL = (*(name for name, field in FIELDS.items() if field.searched), "expert_tp")
"""Choices that change the structure and no number of a run."""
LEFT_OUT = {
    "gpipe": "as fast as 1f1b, and holds at least as many activations",
    "recompute selective with flash attention": "which keeps no scores, so that nothing is saved",
    "zero above 0 with one replica": "nothing is sharded",
    "embedding": "of ends that count as a layer: the loss is the heavier one",
}
"""Plans that can run and that no search needs, each with why; a question that names the value alone gets it."""
LARGEST = 20_000_000
"""Rows of a table of legal degrees that a search would hold."""


@dataclass(frozen=True)
class SearchQuestion:
    """What is searched.

    Attributes:
        model: what is trained.
        system: what it runs on.
        devices: how many, all of them used.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        values: of other symbols, as for a single run.
        required: values that a field of the plan may take, by field; the others take all that `candidates` names.
        limits: largest values of degrees and of the micro-batch.
        max_memory: bytes on a device that a plan may use; by default its capacity.
        by_energy: whether plans are ranked by the joules of resources, and not by time.
        software: what a software runs, where only that is sought.
        stack: name of a training software's profile, or the path of one.
    """

    model: Model
    system: System
    devices: int
    batch: int
    sequence: int
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    required: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    max_memory: float | None = None
    by_energy: bool = False
    software: SoftwareLimits = dataclasses.field(default_factory=SoftwareLimits)
    stack: str | os.PathLike[str] | None = None

    def run(self, **fields: Any) -> Run:
        """The run of one plan.

        Raises:
            InputError: it cannot run.
        """
        return Run(
            self.model,
            self.system,
            Plan(**fields),
            batch=self.batch,
            sequence=self.sequence,
            stack=self.stack,
            values=dict(self.values),
        )

    @cached_property
    def base(self) -> Run:
        """The run on one device: its model and system have the values that were set."""
        return self.run()

    @cached_property
    def candidates(self) -> dict[str, tuple[Any, ...]]:
        """The values of every field of the plan, in the order in which they are tried."""
        found: dict[str, tuple[Any, ...]] = {name: (field.default,) for name, field in FIELDS.items()}
        found |= _degrees(self) | _choices(self) | self.chosen | dict(self.required)
        found = {
            name: self.software.narrow(name, values, asked=name in self.required) for name, values in found.items()
        }
        for name, most in self.limits.items():
            found[name] = tuple(value for value in found[name] if value <= most)
        return found

    @cached_property
    def chosen(self) -> dict[str, tuple[Any, ...]]:
        """What the profile chooses for fields that are not searched."""
        if self.stack is None:
            return {}
        plan, software = Software.load(self.stack).plan, self.software
        return {
            name: (each.value,)
            for name, each in plan.items()
            if not (FIELDS[name].searched or name in DEGREES or name == "expert_tp") and software.runs(name, each.value)
        }

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The fields that a table has columns for, and `expert_tp`."""
        return (*DEGREES, *(name for name in FRACTIONS if len(self.candidates[name]) > 1), "expert_tp")

    @cached_property
    def capacity(self) -> float:
        """Bytes of a device."""
        return self.base.system.value("memory_capacity")

    @cached_property
    def device_second(self) -> float | None:
        """Dollars of a second of a device; None where each plan has its own.

        Raises:
            InputError: the system has no price.
        """
        return device_second(self.base)

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """Names that rules read and that no column gives."""
        return tuple(name for name in NAMES if name not in self.columns)


@dataclass(frozen=True)
class TableForm:
    """What combinations of choices agree in where their plans share a table of degrees.

    Attributes:
        parts: sequences are in parts: cp is above 1, else it is 1.
        interleaved: vpp is above 1, else it is 1.
        uneven: stages differ by a layer: pp does not divide the layers.
        counted: ends of the model that are dealt as layers; where these are a choice, pp does not divide the layers.
        expert_tp: the tensor-parallel degree inside an expert, if it is given.
    """

    parts: bool
    interleaved: bool
    uneven: bool
    counted: int
    expert_tp: int | None


@dataclass(frozen=True, eq=False)
class Combination:
    """Choices, with the reason if they do not go together.

    Attributes:
        number: in the order of the search.
        form: of the table that its plans are rows of.
        fields: of the plan, without the columns of the table.
        constants: what rules read of it, in the order of the question's `constants`.
        structure: of its plans; None where the choices do not go together.
        refusal: why they do not.
        rule: the name of the rule that says so.
    """

    number: int
    form: TableForm
    fields: dict[str, Any]
    constants: tuple[Any, ...]
    structure: Structure | None
    refusal: str = ""
    rule: str = IMPOSSIBLE

    @property
    def numbers(self) -> tuple[Any, ...]:
        """The choices that numbers of a run may depend on, beside those that `check_combination` and rules know."""
        return tuple(value for name, value in self.fields.items() if name not in STRUCTURAL)


def combinations(question: SearchQuestion) -> list[Combination]:
    """Every combination of the choices of a question, in the order of the candidates."""
    values = question.candidates
    names = [name for name in Plan.names() if name not in question.columns or name == "expert_tp"]
    found: list[Combination] = []
    with_rows: dict[TableForm, bool] = {}
    known: dict[tuple[Any, ...], Combination] = {}
    for chosen in product(*(values[name] for name in names)):
        fields = dict(zip(names, chosen, strict=True))
        for parts in (False, True):
            if not parts and fields["cp_kind"] != values["cp_kind"][0]:
                continue  # of a whole sequence there is one kind
            interleaved, counted = fields["schedule"] == "interleaved", sum(COUNTED[fields["account_for"]])
            form = TableForm(parts, interleaved, fields["uneven_stages"], counted, fields["expert_tp"])
            if form not in with_rows:
                with_rows[form] = _has_rows(question, form)
            if not with_rows[form] or _needless(question, fields):
                continue
            key = parts, *(value for name, value in fields.items() if name != "rank_order")
            if key in known:
                found.append(_reordered(question, known[key], len(found), fields))
            else:
                found.append(_combination(question, len(found), form, fields))
                if _serves_both_orders(question, found[-1]):
                    known[key] = found[-1]
    return found


def _serves_both_orders(question: SearchQuestion, combination: Combination) -> bool:
    """Whether a combination differs from that of the other order of ranks in what rules of degrees read of it alone.

    No rule of choices reads the order, and the structure has a form for both.
    """
    structure = combination.structure
    return len(question.candidates["rank_order"]) > 1 and (structure is None or structure.rank_order == "either")


def _reordered(question: SearchQuestion, other: Combination, number: int, fields: dict[str, Any]) -> Combination:
    """The combination of another order of ranks."""
    inside = flags_of_order(fields["rank_order"])
    constants = tuple(
        inside.get(name, value) for name, value in zip(question.constants, other.constants, strict=not other.refusal)
    )
    return dataclasses.replace(other, number=number, fields=fields, constants=constants)


def _has_rows(question: SearchQuestion, form: TableForm) -> bool:
    values = question.candidates
    return (
        any((cp > 1) is form.parts for cp in values["cp"])
        and any((vpp > 1) is form.interleaved for vpp in values["vpp"])
        and not (form.uneven and form.interleaved and False in values["uneven_stages"])
        and not (form.counted and not form.interleaved and "none" in values["account_for"])
    )


def _needless(question: SearchQuestion, fields: Mapping[str, Any]) -> bool:
    """Whether another combination is the same in everything: selective recomputation of what is never kept."""
    return (
        fields["attention"] == "flash"
        and fields["recompute"] == "selective"
        and "none" in question.candidates["recompute"]
    )


def _combination(question: SearchQuestion, number: int, form: TableForm, fields: dict[str, Any]) -> Combination:
    model, system = question.base.model, question.base.system
    work = (question.batch, question.sequence)
    try:
        plan = Plan(**fields, **_smallest(form))
        structure = _of_both_orders(question, structure_of(model, system, plan, stated_names(question.values)))
        question.software.refuse(fields, parts=form.parts)
    except InputError as error:
        return Combination(number, form, fields, (), None, str(error), name_of(error, model.name))
    rules = run_values(plan, model.name, model.sizes, system, work, question.values.get("encoder_sequence"))
    return Combination(number, form, fields, tuple(rules.get(name, 1) for name in question.constants), structure)


def _of_both_orders(question: SearchQuestion, structure: Structure) -> Structure:
    """The structure for either order of ranks where both are searched; shards of a hybrid have forms for each."""
    if len(question.candidates["rank_order"]) < 2 or structure.hybrid:
        return structure
    return dataclasses.replace(structure, rank_order="either")


def _smallest(form: TableForm) -> dict[str, Any]:
    """Degrees with which a plan of the form is one."""
    return {"tp": 2, "pp": 2, "cp": 2 if form.parts else 1, "vpp": 2 if form.interleaved else 1, "micro_batch": 1}


# --- candidates


def _degrees(question: SearchQuestion) -> dict[str, tuple[Any, ...]]:
    devices, sizes = divisors(question.devices), question.base.model.sizes
    layers = sizes["num_layers"]
    turns = {part for ends in _ends(question) for part in divisors(layers + ends)}
    if tuple(question.required.get("uneven_stages", ())) == (True,):
        turns |= {*range(1, layers // 2 + 1)}
    return {
        **dict.fromkeys(LAYOUT, devices),
        "micro_batch": divisors(question.batch),
        "vpp": tuple(sorted(turns)),
        "ep": divisors(sizes["num_experts"]) if "num_experts" in sizes else (1,),
    }


def _choices(question: SearchQuestion) -> dict[str, tuple[Any, ...]]:
    (dropout, *_) = question.required.get("dropout", (None,))
    usual = attention_of(Plan(dropout=dropout), question.base.model)
    every = {name: field.choices or (False, True) for name, field in FIELDS.items() if field.searched}
    orders = every["rank_order"]
    return {
        **every,
        "schedule": tuple(name for name in every["schedule"] if name not in LEFT_OUT),
        "attention": tuple(dict.fromkeys((usual, "flash"))),
        "account_for": tuple(
            name for name in every["account_for"] if name not in LEFT_OUT and sum(COUNTED[name]) in _ends(question)
        ),
        "rank_order": orders if len(question.base.system.tiers) > 1 else orders[:1],
    }


def _ends(question: SearchQuestion) -> tuple[int, ...]:
    """How many ends of the model may count as layers: none, or where that lets stages be interleaved that else are not.

    Stages that are not interleaved differ by a layer instead. A question that names ends, and not none, has them.
    """
    layers, stages = question.base.model.sizes["num_layers"], divisors(question.devices)
    named = question.required.get("account_for", ("none",))
    asked = set() if "none" in named else {sum(COUNTED[name]) for name in named}
    found = [n for n in (1, 2) if n in asked or any(layers % pp and (layers + n) % pp == 0 for pp in stages)]
    return (0, *found)


def divisors(n: int) -> tuple[int, ...]:
    """Every divisor, in rising order.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    low = [k for k in range(1, int(n**0.5) + 1) if n % k == 0]
    return tuple(sorted({*low, *(n // k for k in low)}))


def layouts(question: SearchQuestion) -> Iterator[tuple[int, ...]]:
    """Every way to use all devices: degrees in the order of `LAYOUT`."""
    tp, pp, cp, dp = (sorted(set(question.candidates[name])) for name in LAYOUT)
    known = set(dp)
    for first in tp:
        for second in pp:
            share, left = divmod(question.devices, first * second)
            if left:
                continue
            for third in cp:
                rest, left = divmod(share, third)
                if not left and rest in known:
                    yield first, second, third, rest

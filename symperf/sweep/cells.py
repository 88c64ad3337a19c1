"""One cell of a sweep: the part of its grid with one structure and one set of choices, ready to be computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..evaluation.base_run import ALIASES
from ..plans.grammar import Node, evaluate, number, predicate
from ..plans.host_rules import check_host
from ..plans.plan import FIELDS, LARGEST, NUMBERS, Plan, require_modelled
from ..plans.validity import (
    ABSENT,
    CHOICE_RULES,
    IMPOSSIBLE,
    NAMES,
    RULES,
    BrokenRuleError,
    divided_sizes,
    flags,
    model_flags,
    reason_of,
)
from ..systems.quantities import check_number
from ..systems.units import COUNT
from ..train.binding import DEFAULTS, LIMITS, bind, precision_of
from ..train.compile import compile_step
from ..train.inputs import TRAINED_SIZES, WORK, limits_of, require_multi_token_head, stated_names, structure_of
from .assemble import assemble
from .axes import WHOLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..models.model import Model
    from ..plans.structure import Structure
    from ..systems.system import System

FITS = "reserved <= memory_capacity"
_SPECIAL = {"capacity_bytes": "memory_capacity", "tflops_per_device": "flops_per_s_per_device / 1e12"}
_ANSWERS = (
    *("time", "memory", "reserved", "mfu", "hfu", "model_flops", "hardware_flops", "tokens", "devices", "parameters"),
)
ANSWERS = (*_ANSWERS, "tokens_per_s", "tokens_per_s_per_device", "flops_per_s_per_device")
"""Outputs of every structure that conditions may read."""


@dataclass(frozen=True)
class Base:
    """What a sweep holds fixed: the arguments of a run, of which any may be missing where an axis gives it.

    Attributes:
        model: what is trained.
        system: what it runs on.
        plan: fields of the plan.
        work: batch and sequence.
        values: other symbols.
    """

    model: Model | None
    system: System | None
    plan: Mapping[str, Any]
    work: Mapping[str, int]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class SweepQuestion:
    """What is asked at every point.

    Attributes:
        outputs: names of quantities.
        derived: expressions that replace symbols, or add names.
        where: conditions by the name of the reason when they fail.
        varying: symbols and names that the axes give.
    """

    outputs: tuple[str, ...]
    derived: Mapping[str, Node]
    where: Mapping[str, Node]
    varying: frozenset[str]

    def given(self) -> frozenset[str]:
        """Names that do not come from the base."""
        return self.varying | set(self.derived)

    def rules(self) -> dict[str, Node]:
        """What every point must satisfy before `where` is asked, by reason."""
        domains = {name: _domain(name) for name in self.derived}
        found = {f"{name}_is_out_of_range": node for name, node in domains.items() if node is not None}
        return found | {rule.name: rule.tree for rule in RULES}

    def reasons(self) -> list[str]:
        """Every reason, in the order in which they are asked; their codes count from 1."""
        return [IMPOSSIBLE, *(rule.name for rule in CHOICE_RULES), *self.rules(), *self.where]


@dataclass(frozen=True)
class Cell:
    """A program and the numbers that it holds fixed.

    Attributes:
        program: outputs are those asked for, and the slack of each constraint.
        scalars: numbers by input.
        constraints: names of the slacks, in order; those that hold everywhere in the cell are left out.
        absent: outputs that the cell's structure does not have; they are NaN.
        impossible: the error line of choices that do not go together; then there is no program.
        reason: the name of the rule that says so.
    """

    program: Program | None
    scalars: Mapping[str, float]
    constraints: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    impossible: str = ""
    reason: str = IMPOSSIBLE


def cell(base: Base, question: SweepQuestion, choices: Mapping[str, Any], first: Mapping[str, float | None]) -> Cell:
    """Build a cell.

    Args:
        base: what is fixed.
        question: what is asked.
        choices: what gives the cell its form: values of the axes of choices, and of numbers what `Field.form` says.
        first: a value of each varying number; None where the cell leaves it open.

    Raises:
        InputError: choices that do not go together, where no axis gives any; an unknown output; a fixed value that
            breaks a rule.
    """
    single = not choices
    try:
        structure, scalars = _bind(base, question, choices, first)
    except InputError as error:
        if single:
            raise
        earlier = _broken_plan_rule(base, question, choices)
        return Cell(None, {}, impossible=str(error), reason=earlier or reason_of(error))
    program = compile_step(structure).program
    known = set(program.outputs) | set(program.lets)
    wanted, absent = {}, []
    for name in question.outputs:
        key = ALIASES.get(name, name)
        if key in _SPECIAL:
            wanted[name] = number(_SPECIAL[key], [*ANSWERS, "memory_capacity"], "output")
        elif key in known or key in scalars or key in question.given():
            wanted[name] = Node("name", (key,))
        else:
            absent.append(name)
    rules = question.rules()
    derived = _with_stand_ins(base, question, first)
    if "encoder_sequence" not in scalars and "encoder_sequence" not in question.given():
        derived["encoder_sequence"] = Node("name", ("sequence",))
    if structure.chunks and first.get("vpp") == 1:  # the layout says it, as in a plan
        derived["vpp"] = number("layout_stages / pp", ["layout_stages", "pp"], "vpp")
    kept = {}
    for name, node in rules.items():
        names = node.names()
        if names & (question.given() | set(derived)):
            kept[name] = node
        elif not _holds(node, scalars):
            if single:
                raise _refusal(name, base, scalars)
            kept[name] = node
    constraints = kept | dict(question.where)
    made = assemble(program, wanted, derived | _symbols(), constraints, question.varying)
    missing = [name for name in made.inputs if name not in scalars and name not in question.varying]
    if missing:
        raise InputError(f"{missing[0]}: the system does not give it; set it, or use a system that has it")
    scalars = {name: scalars[name] for name in made.inputs if name in scalars and name not in question.varying}
    return Cell(made, scalars, tuple(constraints), tuple(absent))


def unknown_output(
    name: str, base: Base, question: SweepQuestion, choices: Mapping[str, Any], first: Any
) -> InputError:
    """The error of an output that no cell has."""
    structure, _ = _bind(base, question, choices, first)
    program = compile_step(structure).program
    known = [*ALIASES, *_SPECIAL, *program.outputs, *program.lets]
    return InputError(f"outputs: unknown quantity {quote(name)}{nearest(name, known)}")


def _bind(
    base: Base, question: SweepQuestion, choices: Mapping[str, Any], first: Mapping[str, float | None]
) -> tuple[Structure, dict[str, float]]:
    """The structure of a cell, and every number that its base gives."""
    model, system = choices.get("model", base.model), choices.get("system", base.system)
    assert model is not None
    assert system is not None
    given = question.given()
    plan = _representative(base, question, choices, first)
    asked = base.values.get("encoder_sequence", first.get("encoder_sequence"))
    require_modelled(model, None if asked is None else int(asked))
    figures = {n: v for n, v in base.values.items() if n not in (*TRAINED_SIZES, *DEFAULTS, *WORK)}
    figures |= {n: v for n, v in first.items() if limits_of(n) is not None and n not in DEFAULTS}
    system = system.with_values(figures, precision_of(plan, system)) if figures else system
    sizes = {n: v for n, v in base.values.items() if n in TRAINED_SIZES}
    require_multi_token_head(model, {*sizes, *given})
    if "position_rows" in {*sizes, *given} and model.architecture.positions != "learned":
        raise InputError(f"position_rows: {model.name} has no learned positions")
    defaults = {n: check_number(v, LIMITS[n], f"set: {n}") for n, v in base.values.items() if n in DEFAULTS}
    bound = bind(model, system, plan, 1, 1, defaults)
    scalars = {name: value for name, (value, _) in bound.items()}
    scalars |= {name: float(value) for name, value in {**base.work, **sizes}.items()}
    scalars |= {name: field.number(_plan_fields(base)) for name, field in NUMBERS.items()}
    if plan.layout is not None:
        scalars["vpp"] = float(plan.vpp)
    scalars |= {name: float(value) for name, value in flags(plan, len(system.tiers)).items()}
    scalars |= {name: float(value) for name, value in model_flags(model.sizes).items()}
    scalars |= {name: float(value) for name, value in divided_sizes(model.sizes).items() if name not in sizes}
    scalars = {name: float(value) for name, value in ABSENT.items()} | scalars
    scalars.pop("encoder_sequence", None)
    if "encoder_sequence" in base.values:
        scalars["encoder_sequence"] = float(base.values["encoder_sequence"])
    elif "sequence" in base.work and "sequence" not in given:
        scalars["encoder_sequence"] = float(base.work["sequence"])
    if "scale_up_size" not in scalars:
        scalars["scale_up_size"] = 1.0
    stated = stated_names(base.values) | set(given)
    structure = structure_of(model, system, plan, stated)
    check_host(plan, system)
    return structure, {n: v for n, v in scalars.items() if n not in given}


def _representative(
    base: Base, question: SweepQuestion, choices: Mapping[str, Any], first: Mapping[str, float | None]
) -> Plan:
    """A plan of the cell's form: its choices, and of its numbers those that decide the form.

    Degrees are checked point by point, so that all others are 1; `vpp` and `pp` are as the schedule or the layout needs
    them.
    """
    fixed, given = _plan_fields(base), question.given()
    for name, field in FIELDS.items():
        if name not in given:
            field.check(fixed[name], training=True)
    fields = {name: choices.get(name, fixed[name]) for name in FIELDS if name not in NUMBERS}
    for name, field in NUMBERS.items():
        if field.form != "none":
            fields[name] = first.get(name, 1 if name in question.derived else fixed[name])
    if fields["layout"] is not None:
        return Plan(**fields, pp=first.get("pp", fixed["pp"])).with_micro_batch(1)
    vpp = fields.pop("vpp")
    interleaved: dict[str, Any] = {"vpp": 2, "pp": 2}
    several = fields["schedule"] == "interleaved" or (fields["schedule"] is None and vpp > 1)
    return Plan(**fields, **(interleaved if several else {})).with_micro_batch(1)


def _broken_plan_rule(base: Base, question: SweepQuestion, choices: Mapping[str, Any]) -> str | None:
    """The rule of plans alone that all points of a cell break, if there is one: a single run asks it first."""
    values = {**_plan_fields(base), **choices}
    if {"vpp", "pp"} & question.given():
        return None
    try:
        Plan(**{name: values[name] for name in ("pp", "vpp", "schedule", "layout")})
    except BrokenRuleError as error:
        return reason_of(error)
    except InputError:
        pass
    return None


def _plan_fields(base: Base) -> dict[str, Any]:
    """Every field of the plan as the base has it."""
    return {name: base.plan.get(name, field.default) for name, field in FIELDS.items()}


def _with_stand_ins(base: Base, question: SweepQuestion, first: Mapping[str, float | None]) -> dict[str, Node]:
    """What is derived in a cell: what the question says, and what follows from other fields where one is left open.

    Each stands before the first that reads it.
    """
    fixed, given = _plan_fields(base), question.given()
    waiting: dict[str, Node] = {}
    for name, field in NUMBERS.items():
        reads, value = field.stand_in.names(), first.get(name, fixed[name])
        if value is None and name not in question.derived and reads and (name in question.varying or reads & given):
            waiting[name] = field.stand_in
    found: dict[str, Node] = {}
    for name, node in question.derived.items():
        for read in node.names() & set(waiting):
            late = waiting[read].names() & set(question.derived) - set(found)
            if late:
                raise InputError(f"derived {name}: reads {read}, which follows from {min(late)}, which comes after it")
            found[read] = waiting.pop(read)
        found[name] = node
    return found | waiting


def _symbols() -> dict[str, Node]:
    """The numbers of fields whose symbols have other names."""
    return {f.symbol: number(name, [name], name) for name, f in NUMBERS.items() if f.symbol != name}


def _holds(node: Node, scalars: Mapping[str, float]) -> bool:
    return bool(evaluate(node, {name: int(scalars[name]) for name in node.names()}))


def _refusal(name: str, base: Base, scalars: Mapping[str, float]) -> InputError:
    """The error line of a single run that breaks a rule."""
    rule = next(rule for rule in RULES if rule.name == name)
    names = {
        "model": getattr(base.model, "name", ""),
        "system": getattr(base.system, "name", ""),
        "schedule": base.plan.get("schedule"),
    }
    return BrokenRuleError.of(rule, {key: int(value) for key, value in scalars.items() if key in NAMES} | names)


def _domain(name: str) -> Node | None:
    """The condition under which a derived value of a symbol is one that a single run takes."""
    if name in WHOLE or name in TRAINED_SIZES:
        lowest = 0 if name == "num_multi_token_layers" else 1
        text = f"{name} == floor({name}) and {lowest} <= {name} <= {LARGEST}"
    elif name in NUMBERS:
        text = f"0 <= {name} <= 1"
    else:
        limits = limits_of(name)
        if limits is None:
            return None
        text = f"{limits.low!r} <= {name} <= {limits.high!r}"
        if limits.zero:
            text = f"{name} == 0 or {text}"
        if limits.dimension is COUNT:
            text = f"{name} == floor({name}) and {text}"
    return predicate(text, (name,), f"domain of {name}")

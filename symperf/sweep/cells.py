"""One cell of a sweep: the part of its grid with one structure and one set of choices, ready to be computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, shown
from ..evaluation.base_run import ALIASES
from ..plans.combinations import check_host
from ..plans.grammar import Node, evaluate, number, predicate
from ..plans.plan import LARGEST, Plan, require_modelled
from ..plans.validity import ABSENT, NAMES, RULES, flags, model_flags
from ..systems.system import checked_number
from ..systems.units import COUNT
from ..train.binding import DEFAULTS, LIMITS, bind, precision_of
from ..train.compile import compile_step
from ..train.inputs import TRAINED_SIZES, WORK, limits_of, require_multi_token_head, stated_of, structure_of
from .assemble import assemble
from .axes import DEGREES, FRACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..models.model import Model
    from ..plans.structure import Structure
    from ..systems.system import System

IMPOSSIBLE = "choices_do_not_go_together"
FITS = "memory <= memory_capacity"
_SPECIAL = {"capacity_bytes": "memory_capacity", "tflops_per_device": "flops_per_s_per_device / 1e12"}
_ANSWERS = ("time", "memory", "mfu", "hfu", "model_flops", "hardware_flops", "tokens", "devices", "parameters")
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
        return [IMPOSSIBLE, *self.rules(), *self.where]


@dataclass(frozen=True)
class Cell:
    """A program and the numbers that it holds fixed.

    Attributes:
        program: outputs are those asked for, and the slack of each constraint.
        scalars: numbers by input.
        constraints: names of the slacks, in order; those that hold everywhere in the cell are left out.
        absent: outputs that the cell's structure does not have; they are NaN.
        impossible: the error line of choices that do not go together; then there is no program.
    """

    program: Program | None
    scalars: Mapping[str, float]
    constraints: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    impossible: str = ""


def cell(base: Base, question: SweepQuestion, choices: Mapping[str, Any], first: Mapping[str, float]) -> Cell:
    """Build a cell.

    Args:
        base: what is fixed.
        question: what is asked.
        choices: values of the axes of choices, and `vpp` above 1 as `interleaved`.
        first: a value of each varying number.

    Raises:
        InputError: choices that do not go together, where no axis gives any; an unknown output; a fixed value that
            breaks a rule.
    """
    single = not choices
    try:
        structure, scalars = _bound(base, question, choices, first)
    except InputError as error:
        if single:
            raise
        return Cell(None, {}, impossible=str(error))
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
    derived = dict(question.derived)
    if "encoder_sequence" not in scalars and "encoder_sequence" not in question.given():
        derived["encoder_sequence"] = Node("name", ("sequence",))
    kept = {}
    for name, node in rules.items():
        names = node.names()
        if names & (question.given() | set(derived)):
            kept[name] = node
        elif not _holds(node, scalars):
            if single:
                raise InputError(_message(name, base, scalars))
            kept[name] = node
    constraints = kept | dict(question.where)
    made = assemble(program, wanted, derived, constraints, question.varying)
    missing = [name for name in made.inputs if name not in scalars and name not in question.varying]
    if missing:
        raise InputError(f"{missing[0]}: the system does not give it; set it, or use a system that has it")
    scalars = {name: scalars[name] for name in made.inputs if name in scalars and name not in question.varying}
    return Cell(made, scalars, tuple(constraints), tuple(absent))


def unknown_output(
    name: str, base: Base, question: SweepQuestion, choices: Mapping[str, Any], first: Any
) -> InputError:
    """The error of an output that no cell has."""
    structure, _ = _bound(base, question, choices, first)
    program = compile_step(structure).program
    known = [*ALIASES, *_SPECIAL, *program.outputs, *program.lets]
    return InputError(f"outputs: unknown quantity {shown(name)}{nearest(name, known)}")


def _bound(
    base: Base, question: SweepQuestion, choices: Mapping[str, Any], first: Mapping[str, float]
) -> tuple[Structure, dict[str, float]]:
    """The structure of a cell, and every number that its base gives."""
    model, system = choices.get("model", base.model), choices.get("system", base.system)
    assert model is not None
    assert system is not None
    given = question.given()
    fields = {**base.plan, **{k: v for k, v in choices.items() if k in Plan.names()}}
    degrees = {name: fields.pop(name, Plan.__dataclass_fields__[name].default) for name in (*DEGREES[:5], *FRACTIONS)}
    degrees = {name: 1 if value is None else value for name, value in degrees.items()}
    for name in degrees:
        if name not in given:
            alone: dict[str, Any] = {"pp": 2} if name == "vpp" else {}
            Plan(**{**alone, name: degrees[name]})
    folded = choices["interleaved"] if "interleaved" in choices else degrees["vpp"] != 1
    several = fields.get("schedule") == "interleaved" or (fields.get("schedule") is None and folded)
    if several:
        fields |= {"vpp": 2, "pp": 2}
    plan = Plan(**fields).with_micro_batch(1)
    check_host(plan, system)
    asked = base.values.get("encoder_sequence", first.get("encoder_sequence"))
    require_modelled(model, None if asked is None else int(asked))
    figures = {n: v for n, v in base.values.items() if n not in (*TRAINED_SIZES, *DEFAULTS, *WORK)}
    figures |= {n: v for n, v in first.items() if limits_of(n) is not None and n not in DEFAULTS}
    system = system.with_values(figures, precision_of(plan, system)) if figures else system
    sizes = {n: v for n, v in base.values.items() if n in TRAINED_SIZES}
    require_multi_token_head(model, {*sizes, *given})
    if "position_rows" in {*sizes, *given} and model.architecture.positions != "learned":
        raise InputError(f"position_rows: {model.name} has no learned positions")
    defaults = {n: checked_number(v, LIMITS[n], f"set: {n}") for n, v in base.values.items() if n in DEFAULTS}
    bound = bind(model, system, plan, 1, 1, defaults)
    scalars = {name: value for name, (value, _) in bound.items()}
    scalars |= {name: float(value) for name, value in {**degrees, **base.work, **sizes}.items()}
    scalars |= {name: float(value) for name, value in flags(plan, len(system.tiers)).items()}
    scalars |= {name: float(value) for name, value in model_flags(model.sizes).items()}
    scalars = {name: float(value) for name, value in ABSENT.items()} | scalars
    scalars.pop("encoder_sequence", None)
    if "encoder_sequence" in base.values:
        scalars["encoder_sequence"] = float(base.values["encoder_sequence"])
    elif "sequence" in base.work and "sequence" not in given:
        scalars["encoder_sequence"] = float(base.work["sequence"])
    if "scale_up_size" not in scalars:
        scalars["scale_up_size"] = 1.0
    stated = stated_of(base.values) | set(given)
    return structure_of(model, system, plan, stated), {n: v for n, v in scalars.items() if n not in given}


def _holds(node: Node, scalars: Mapping[str, float]) -> bool:
    return bool(evaluate(node, {name: int(scalars[name]) for name in node.names()}))


def _message(name: str, base: Base, scalars: Mapping[str, float]) -> str:
    rule = next(rule for rule in RULES if rule.name == name)
    numbers = {key: int(value) for key, value in scalars.items() if key in NAMES}
    degrees = {key: numbers.get(key, 1) for key in ("tp", "pp", "dp", "vpp", "micro_batch", "batch")}
    share = degrees["dp"] * degrees["micro_batch"]
    return rule.message.format_map(
        {
            **numbers,
            "model": getattr(base.model, "name", ""),
            "system": getattr(base.system, "name", ""),
            "schedule": base.plan.get("schedule"),
            "stages": degrees["pp"] * degrees["vpp"],
            "share": share,
            "micro_batches": degrees["batch"] // share,
            "devices": degrees["tp"] * degrees["pp"] * degrees["dp"] * numbers.get("cp", 1),
            "chunks": f"cp = {numbers.get('cp', 1)}",
        }
    )


def _domain(name: str) -> Node | None:
    """The condition under which a derived value of a symbol is one that a single run takes."""
    if name in DEGREES or name in TRAINED_SIZES:
        lowest = 0 if name == "num_multi_token_layers" else 1
        text = f"{name} == floor({name}) and {lowest} <= {name} <= {LARGEST}"
    elif name in FRACTIONS:
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

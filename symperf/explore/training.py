"""All training steps that the choices of an explorer reach."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..plans.grammar import number
from ..plans.plan import FIELDS, NUMBERS, Plan
from ..plans.validity import PLAN_RULES, RUN_RULES, run_values
from ..runs.training_run import Run
from ..spending.program import spending_program
from ..train.binding import bind
from ..train.compile import compile_step
from ..train.inputs import structure_of
from ..train.memory.memory_tables import stage_program
from .answers import told_answers
from .cases import Case, Choice, Form, Kind, Numbered
from .formulas import told_operations
from .passes import draws, pass_program
from .probe import movable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.model import Model
    from ..systems.system import System

VARIED: dict[str, tuple[Any, ...]] = {
    "recompute": ("none", "selective", "full"),
    "sequence_parallel": (False, True),
    "zero": (0, 1, 2, 3),
    "schedule": ("1f1b", "interleaved", "zero-bubble"),
    "attention": ("flash", "eager"),
}
"""Fields of a plan whose values have forms of their own, and those that a page offers."""
ALONE: dict[str, Any] = dict.fromkeys(("tp", "pp", "dp", "cp", "ep", "vpp", "micro_batch"), 1) | {
    "sequence_parallel": False,
    **dict.fromkeys(("schedule", "expert_tp", "zero_shards")),
}
"""One device: what a run binds of a system does not follow from how it is laid out."""
DEGREES = tuple(2**power for power in range(13))
WORK = ("batch", "sequence")


def training_kind(
    models: Sequence[Model], systems: Sequence[System], plan: Plan, work: tuple[int, int], varied: Mapping[str, Any]
) -> Kind:
    """What a page knows of training.

    Args:
        models: to choose from.
        systems: to choose from.
        plan: where it starts, and what stays of it.
        work: sequences of a batch, and tokens of each, at first.
        varied: values of the fields that the page offers, by name.

    Raises:
        InputError: the plan at first, or its work, cannot be.
    """
    start = Run(models[0], systems[0], plan, batch=work[0], sequence=work[1])
    plan = start.plan
    now = {**vars(plan), "attention": start.structure.attention}
    now["schedule"] = plan.effective_schedule
    choices = [
        Choice("model", "what is trained", tuple(model.name for model in models), models[0].name),
        Choice("system", "what it runs on", tuple(system.name for system in systems), systems[0].name),
    ]
    for name, values in varied.items():
        known = tuple(dict.fromkeys((*values, now[name])))
        choices.append(Choice(name, FIELDS[name].sentence, known, now[name]))
    cases: dict[tuple[int, ...], Case] = {}
    forms: dict[str, Form] = {}
    for places in itertools.product(*(range(len(choice.values)) for choice in choices)):
        fields = {c.name: c.values[at] for c, at in zip(choices[2:], places[2:], strict=True)}
        cases[places] = _case(models[places[0]], systems[places[1]], plan, fields, work, forms)
    runs = {
        f"{i}/{j}": Run(model, system, replace(plan, **ALONE), batch=1, sequence=1)
        for (i, model), (j, system) in itertools.product(enumerate(models), enumerate(systems))
    }
    used = {name for form in forms.values() for name in form.compiled.program.inputs}
    numbers = (
        *(_degree(name, plan, start.model) for name in ("tp", "pp", "dp", "ep", "vpp", "micro_batch")),
        *(_fraction(name, plan) for name in ("overlap_dp", "overlap_tp") if NUMBERS[name].symbol in used),
        Numbered("batch", "work", float(work[0]), 1, 65536, whole=True),
        Numbered("sequence", "work", float(work[1]), 1, 2**20, whole=True),
        *movable(runs, used),
    )
    routed = any(model.architecture.routed for model in models)
    kept = tuple(each for each in numbers if each.name != "ep" or routed)
    free = {each.name for each in kept}
    derived = {
        field.symbol: field.stand_in
        for name, field in NUMBERS.items()
        if getattr(plan, name) is None and name not in free and field.stand_in.names() & free
    }
    derived |= {f.symbol: number(n, [n], n) for n, f in NUMBERS.items() if f.symbol != n and n in free}
    named = {name: name for name in (*(n for n in NUMBERS if n in free), *WORK)}
    told = {*free, *varied}
    flags = {"plan": {n: v for n, v in vars(plan).items() if n not in told and v != FIELDS[n].default}, "options": {}}
    return Kind("train", tuple(choices), cases, forms, (*PLAN_RULES, *RUN_RULES), derived, named, kept, flags)


def count_structures(models: Sequence[Model], systems: Sequence[System], plan: Plan, varied: Mapping[str, Any]) -> int:
    """How many structures some choices reach; none is compiled."""
    found = set()
    for model, system in itertools.product(models, systems):
        for values in itertools.product(*varied.values()):
            try:
                found.add(structure_of(model, system, _least(plan, dict(zip(varied, values, strict=True)))).key())
            except InputError:
                continue
    return len(found)


def _least(plan: Plan, fields: Mapping[str, Any]) -> Plan:
    """The least plan of a form, as degrees are checked where they are known."""
    several = fields.get("schedule") == "interleaved"
    least = dict.fromkeys(("tp", "pp", "dp", "ep"), 1) | {"vpp": 1, "expert_tp": plan.expert_tp}
    least |= {"pp": 2, "vpp": 2} if several else {}
    return Plan(**{**vars(plan), **least, **fields})


def _case(
    model: Model, system: System, plan: Plan, fields: Mapping[str, Any], work: tuple[int, int], forms: dict[str, Form]
) -> Case:
    """The case of some choices."""
    try:
        chosen = _least(plan, fields)
        structure = structure_of(model, system, chosen)
        bound = bind(model, system, chosen, *work, {})
    except InputError as error:
        return Case(reason=str(error))
    key = structure.key()
    if key not in forms:
        forms[key] = Form(
            compile_step(structure),
            spending_program(structure),
            told_operations(structure),
            told_answers(structure),
            stage_program(structure),
            pass_program(structure) if draws(structure) else None,
        )
    known = run_values(chosen, model.name, model.sizes, system, work)
    words = {name: str(known.pop(name)) for name in ("model", "system", "schedule")}
    ruled = {name: float(value) for name, value in known.items()}
    return Case(key, bound, ruled, words)


def _degree(name: str, plan: Plan, model: Model) -> Numbered:
    layers = int(model.sizes["num_layers"])
    offered = DEGREES if name != "vpp" else tuple(n for n in range(1, layers + 1) if layers % n == 0)
    if name == "pp":
        offered = tuple(sorted({*DEGREES[:7], *(n for n in range(1, 129) if layers % n == 0)}))
    if name == "tp":
        heads = int(model.sizes["num_attention_heads"]) or 1
        offered = tuple(sorted({*DEGREES[:7], *(n for n in range(1, 65) if heads % n == 0)}))
    start = int(plan.number(name))
    return Numbered(name, "plan", float(start), 1, 1e6, whole=True, degrees=tuple(sorted({*offered, start})))


def _fraction(name: str, plan: Plan) -> Numbered:
    return Numbered(name, "plan", plan.number(name), 0, 1)

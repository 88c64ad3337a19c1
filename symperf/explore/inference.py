"""All inferences that the choices of an explorer reach."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..infer.rules import ALWAYS, RULES
from ..plans.grammar import number
from ..plans.plan import FIELDS
from ..plans.rule import NAMES, Rule
from ..plans.validity import MODEL_RULES, run_values
from ..runs.inference_run import InferenceRun
from ..spending.program import spending_program
from .answers import told_answers
from .cases import Case, Choice, Form, Kind, Numbered
from .formulas import told_operations
from .probe import movable
from .serving import serve_points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.model import Model
    from ..plans.plan import Plan
    from ..systems.system import System

DEGREES = {"tp": (1, 2, 4, 8, 16), "pp": (1, 2, 4), "ep": (1, 2, 4, 8, 16, 32)}
"""What a page offers of degrees that decide the form of an inference, or what its symbols are bound to."""
ALONE: dict[str, Any] = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "expert_tp": None}
"""One device: figures of a system are bound alike however a run is laid out."""
FORMATS = ("bf16", "fp8")
"""Formats of the products that a page offers, where the device has them."""
WORK = ("batch", "prompt", "generate")
LENGTHS = Rule(
    "sequence_exceeds_learned_positions",
    "position_rows == 0 or prompt + generate <= position_rows",
    "prompt + generate: {prompt} + {generate} = {total} tokens, but {model} has {position_rows} learned positions",
    (*NAMES, "prompt", "generate"),
)


def inference_kind(
    models: Sequence[Model],
    systems: Sequence[System],
    plan: Plan,
    work: tuple[int, int, int],
    options: Mapping[str, Any],
) -> Kind:
    """What a page knows of inference.

    Args:
        models: to choose from.
        systems: to choose from.
        plan: where it starts, and what stays of it.
        work: sequences, tokens of each prompt, and tokens generated for each, at first.
        options: stack and format of the cache.

    Raises:
        InputError: the plan at first, or its work, cannot be, or a part of the plan that no page moves.
    """
    _refuse_parts(models, plan)
    batch, prompt, generate = work
    InferenceRun(models[0], systems[0], plan, batch=batch, prompt=prompt, generate=generate, **options)
    formats = tuple(dict.fromkeys((plan.precision, *(f for f in FORMATS if f in systems[0].matrix_rates))))
    formats = tuple(f for f in formats if f != "bf16" or plan.precision is not None) or formats
    routed = any(model.architecture.routed for model in models)
    degrees = [name for name in DEGREES if name != "ep" or routed]
    choices = (
        Choice("model", "what runs", tuple(model.name for model in models), models[0].name),
        Choice("system", "what it runs on", tuple(system.name for system in systems), systems[0].name),
        Choice("precision", FIELDS["precision"].sentence, formats, plan.precision),
        *(_degree(name, plan) for name in degrees),
    )
    cases: dict[tuple[int, ...], Case] = {}
    forms: dict[str, Form] = {}
    for places in itertools.product(*(range(len(choice.values)) for choice in choices)):
        fields = {c.name: c.values[at] for c, at in zip(choices[2:], places[2:], strict=True)}
        chosen = replace(plan, **fields)
        cases[places] = _case(models[places[0]], systems[places[1]], chosen, work[1:], options, forms)
    runs = {
        f"{i}/{j}/{k}": InferenceRun(
            model, system, replace(plan, **ALONE | {"precision": form}), batch=1, prompt=1, generate=1, **options
        )
        for (i, model), (j, system), (k, form) in itertools.product(
            enumerate(models), enumerate(systems), enumerate(formats)
        )
    }
    used = {name for form in forms.values() for name in form.compiled.program.inputs}
    numbers = (
        Numbered("dp", "plan", float(plan.dp), 1, 1e6, whole=True, degrees=tuple(sorted({plan.dp, *_powers(10)}))),
        Numbered("batch", "work", float(work[0]), 1, 65536, whole=True),
        Numbered("prompt", "work", float(work[1]), 1, 2**20, whole=True),
        Numbered("generate", "work", float(work[2]), 1, 2**17, whole=True),
        *movable(runs, used),
    )
    derived = {} if plan.micro_batch else {"micro_batch": number("max(batch // dp, 1)", ["batch", "dp"], "micro_batch")}
    heads = all(model.sizes["num_attention_heads"] for model in models)
    rules = (LENGTHS, *(rule for rule in RULES if heads or rule not in MODEL_RULES))
    named = {name: name for name in ("dp", *WORK)}
    told = {*(choice.name for choice in choices), "dp"}
    fields = {n: v for n, v in vars(plan).items() if n not in told and v != FIELDS[n].default}
    flags = {"plan": fields, "options": {name: value for name, value in options.items() if value is not None}}
    return Kind("infer", choices, cases, forms, rules, derived, named, numbers, flags)


def _powers(count: int) -> tuple[int, ...]:
    return tuple(2**power for power in range(count))


def _degree(name: str, plan: Plan) -> Choice:
    now = getattr(plan, name)
    return Choice(name, FIELDS[name].sentence, tuple(sorted({*DEGREES[name], now})), now)


def _refuse_parts(models: Sequence[Model], plan: Plan) -> None:
    """Refuse what changes with numbers that a page moves, in ways that only a run of its own knows.

    Raises:
        InputError: naming it.
    """
    for name in ("cp", "dcp"):
        if getattr(plan, name) != 1:
            raise InputError(f"explore: {name}: found {getattr(plan, name)}, expected 1 in inference (--only train)")
    for model in models:
        one = model.architecture
        if one.stacks == 2 or one.patches or one.spectra or all(kind.encoder for kind in one.kinds):
            raise InputError(f"explore: {model.name}: expected a decoder alone in inference (--only train)")


def _case(
    model: Model,
    system: System,
    plan: Plan,
    lengths: tuple[int, int],
    options: Mapping[str, Any],
    forms: dict[str, Form],
) -> Case:
    """The case of some choices, with as many replicas as experts lie on: rules of replicas are asked at each point."""
    inside = plan.ep * plan.effective_expert_tp if model.architecture.routed else 1
    replicas = max(1, inside // plan.tp)
    chosen = replace(plan, dp=replicas)
    try:
        run = InferenceRun(model, system, chosen, batch=replicas, prompt=1, generate=1, **options)
        if run.stack.stage_tokens and plan.pp > 1:
            raise InputError(f"pp: {run.stack.name} cuts batches for stages, which symperf infer knows and no page")
    except InputError as error:
        return Case(reason=str(error))
    key = run.structure.key()
    if key not in forms:
        structure = run.structure
        forms[key] = Form(
            run.compiled, spending_program(structure), told_operations(structure), told_answers(structure)
        )
    known = run_values(run.plan, model.name, model.sizes, system, (1, 2)) | ALWAYS
    words = {name: str(known.pop(name)) for name in ("model", "system", "schedule")}
    ruled = {name: float(value) for name, value in known.items()}
    return Case(key, run.bound, ruled, words, served=serve_points(model, system, chosen, lengths, options))

"""The run that a question is about: `VERB train|infer|serve MODEL -s SYSTEM ...`; values with units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..analysis.measures import kind_of_unit
from ..common.errors import InputError, nearest, quote
from ..common.numbers import numeral
from ..models.model import Model
from ..models.sounds import parse_media
from ..plans.plan import FIELDS, Plan
from ..systems import units
from ..systems.system import System
from .output import write_error
from .settings import parse_offload, run_values

if TYPE_CHECKING:
    import argparse

    from ..evaluation.base_run import BaseRun
    from ..infer.adapter_slots import Adapters

WORK = {
    "train": ("batch", "sequence"),
    "infer": ("batch", "prompt", "generate"),
    "serve": ("prompt", "generate"),
}
"""What each kind of run needs to be asked."""
OPTIONS = {
    "train": ("stack",),
    "infer": ("stack", "kv_precision", "memory_utilization", "lora_adapters", "prefix", "images", "sounds"),
    "serve": ("stack", "kv_precision", "memory_utilization", "lora_adapters", "concurrency", "chunk"),
}
"""What else it may be asked."""
APART = ("memory_utilization", "lora_adapters", "images", "sounds")
"""Of these, what is no argument of a run: the values of symbols, and parts of what requests bring."""


def build_run(options: argparse.Namespace) -> BaseRun:
    """The run that the options describe.

    Raises:
        InputError: a kind of run that there is not, a flag that it needs is missing, or one is of another kind.
    """
    verb, kind = options.verb, options.what
    if kind not in WORK:
        raise InputError(
            f"{verb}: found {quote(kind)}, expected {' or '.join(WORK)} before the model{nearest(kind, WORK)}"
        )
    values = run_values(options)
    fields = {name: getattr(options, name) for name in Plan.names() if getattr(options, name, None) is not None}
    if "offload" in fields:
        fields["offload"] = parse_offload(fields["offload"], values)
    told = {name: values.pop(name) for name in list(values) if name in Plan.names()}
    fields |= told
    work = {name: values.pop(name, getattr(options, name)) for name in WORK[kind]}
    for name, value in work.items():
        if value is None:
            raise InputError(f"{verb} {kind}: --{name} is needed")
    allowed = {*WORK[kind], *OPTIONS[kind]}
    for name in sorted({name for names in (*WORK.values(), *OPTIONS.values()) for name in names} - allowed):
        if getattr(options, name, None) not in (None, []):
            raise InputError(f"{verb} {kind}: --{name.replace('_', '-')} is of another kind of run")
    own = [name for name in OPTIONS[kind] if name not in APART]
    more = {name: value for name in own if (value := getattr(options, name, None)) is not None}
    if kind != "train":
        more["adapters"] = _adapters(options, fields)
    plan = Plan(**fields)
    if kind == "train" and options.stack is not None:
        plan = Plan.under(options.stack, **{name: fields[name] for name in fields if name in {*told, *options.given}})
    made: BaseRun = MAKERS[kind](options, plan, work, more, values)
    return made


def _adapters(options: argparse.Namespace, fields: dict[str, Any]) -> Adapters | None:
    """The adapters of requests, whose rank and targets are taken out of the fields of the plan."""
    from ..infer.adapter_slots import adapters_of

    asked = {name: fields.pop(name) for name in list(fields) if FIELDS[name].adapters}
    rank, targets = asked.get("lora_rank"), asked.get("lora_targets")
    if rank is targets is options.lora_adapters is None:
        return None
    return adapters_of(Model.load(options.model, options.ignore_key), rank, options.lora_adapters, targets)


def _training(options: argparse.Namespace, plan: Plan, work: Any, more: Any, values: Any) -> BaseRun:
    from ..runs.training_run import Run

    return Run(
        Model.load(options.model, options.ignore_key), System.load(options.system), plan, **work, **more, values=values
    )


def _inference(options: argparse.Namespace, plan: Plan, work: Any, more: Any, values: Any) -> BaseRun:
    from ..runs.inference_run import InferenceRun

    more["images"] = media = parse_media(options.images, options.frames, options.sounds)
    model, system = Model.load(options.model, options.ignore_key), System.load(options.system)
    found = InferenceRun(model, system, plan, **work, **more, values=values)
    if media:
        write_error(
            "images: closed forms are of prefill and decode, whose tokens they join; the encoder is not in them"
        )
    return found


def _serving(options: argparse.Namespace, plan: Plan, work: Any, more: Any, values: Any) -> BaseRun:
    from ..serve.iteration_run import IterationRun

    return IterationRun(
        Model.load(options.model, options.ignore_key), System.load(options.system), plan, **work, **more, values=values
    )


MAKERS: dict[str, Any] = {"train": _training, "infer": _inference, "serve": _serving}
"""How each kind of run is made from the options."""


def value_of(flag: str, name: str, text: str | None) -> float | None:
    """The value of a symbol or quantity that a text gives, with or without a unit: "10 GB/s", "80 GB", "2 us", "64".

    Args:
        flag: that it was given by, for the error line.
        name: of the symbol or quantity.
        text: what was given, or None.

    Raises:
        InputError: no number, or another unit than that of the symbol, with one that would do.
    """
    if text is None:
        return None
    plain = numeral(text, float)
    if plain is not None:
        return plain
    try:
        return units.parse(text, kind_of_unit(name))
    except InputError as error:
        raise InputError(f"{flag} of {name}: {error}") from None

"""`symperf serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..infer.stack import DEFAULT
from ..models.draft_heads import draft_of
from ..models.model import Model
from ..models.sounds import parse_media
from ..serve.request import ServingRequest
from ..serve.serving import Serving
from ..serve.workload import NAMES, Workload
from ..systems.system import System
from .output import console, write_json
from .settings import longest_of, lora_of, plan_of, run_values

if TYPE_CHECKING:
    import argparse

WORK = ("prompt", "generate", "ttft", "tpot", "load", "chunk", "acceptance", "draft_length")


def run(options: argparse.Namespace) -> int:
    """Print the answers for one serving system; 1 where it does not fit, or cannot serve what is asked."""
    from ..report import serving as report

    answer = build_serving(options)
    if options.json:
        write_json(report.as_json(answer, longest_of(options)))
    else:
        with console() as out:
            report.show(answer, out, longest_of(options))
    return 0 if report.can(answer) else 1


def build_serving(options: argparse.Namespace) -> Serving:
    """The system that the options ask for.

    Raises:
        InputError: an impossible plan, an unknown name or a value out of range.
    """
    values = run_values(options)
    plan = plan_of(options, values)
    work = {name: values.pop(name, getattr(options, name)) for name in WORK}
    model = Model.load(options.model, options.ignore_key)
    load = {name: values.pop(name, getattr(options, name)) for name in NAMES}
    load = {name: value for name, value in load.items() if value is not None}
    media = parse_media(options.images, options.frames, options.sounds)
    return Serving(
        model,
        System.load(options.system),
        plan,
        ServingRequest(**work, images=media, workload=Workload(**load)),
        draft=draft_of(model, options.draft, options.speculate),
        stack=DEFAULT if options.stack is None else options.stack,
        kv_precision=options.kv_precision,
        adapters=lora_of(options, model),
        values=values,
        prefill=options.prefill,
    )

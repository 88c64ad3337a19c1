"""`symperf infer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..infer.stack import DEFAULT
from ..models.model import Model
from ..models.sounds import parse_media
from ..runs.inference_run import WORK, InferenceRun
from ..systems.system import System
from .settings import longest_of, plan_of, print_run, run_values

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print the answers for one inference."""
    from ..report import inference as report

    print_run(build_run(options), report, options, longest_of(options))
    return 0


def build_run(options: argparse.Namespace) -> InferenceRun:
    """The run that the options ask for.

    Raises:
        InputError: an impossible plan, an unknown name or a value out of range.
    """
    values = run_values(options)
    plan = plan_of(options, values)
    work = {name: values.pop(name, getattr(options, name)) for name in WORK}
    model, system = Model.load(options.model, options.ignore_key), System.load(options.system)
    return InferenceRun(
        model,
        system,
        plan,
        **work,
        stack=DEFAULT if options.stack is None else options.stack,
        kv_precision=options.kv_precision,
        images=parse_media(
            getattr(options, "images", ()), getattr(options, "frames", 1), getattr(options, "sounds", ())
        ),
        values=values,
    )

"""`symperf infer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..infer.stack import DEFAULT
from ..models.draft_heads import draft_of
from ..models.model import Model
from ..models.sounds import parse_media
from ..runs.inference_run import WORK, InferenceRun
from ..systems.system import System
from .plots import check_plot, show_bars, write_plot
from .settings import longest_of, lora_of, plan_of, print_run, run_values
from .timeline import check_timeline, write_timeline

if TYPE_CHECKING:
    import argparse

    from ..pictures.figure import Sheet
    from ..report.speculative import Speculative
    from ..timeline.chrome import Timeline
    from .settings import Answers


def run(options: argparse.Namespace) -> int:
    """Print the answers for one inference."""
    from ..report import bars
    from ..report import inference as report

    check_timeline(options)
    check_plot(options)
    answer = build_run(options)
    beside: dict[str, Answers | None] = {"speculative": build_speculation(answer, options)}
    write_timeline(options, lambda: _timeline(answer))
    write_plot(options, lambda: _picture(answer))
    print_run(answer, report, options, longest_of(options), beside=beside)
    show_bars(options, lambda: bars.of_run(answer))
    return 0


def _timeline(answer: InferenceRun) -> Timeline:
    from ..timeline.inference import inference_timeline

    return inference_timeline(answer)


def _picture(answer: InferenceRun) -> Sheet:
    from ..report.picture_inference import sheet

    return sheet(answer)


def build_speculation(answer: InferenceRun, options: argparse.Namespace) -> Speculative | None:
    """The same generation with drafted tokens, where something is to draft them.

    Raises:
        InputError: a model without the head that is asked for, or an option that means nothing.
    """
    from ..report.speculative import Speculative as _Speculative

    draft = draft_of(answer.base_model, options.draft, options.speculate)
    for name in ("acceptance", "draft_length") if draft is None else ():
        if getattr(options, name) is not None:
            raise InputError(f"{name}: means something with a draft model only, found none (draft or speculate)")
    return None if draft is None else _Speculative(answer, draft, options.acceptance, options.draft_length)


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
        adapters=lora_of(options, model),
        prefix=getattr(options, "prefix", 0),
        values=values,
    )

"""`symperf infer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..infer.stack import DEFAULT
from ..models.model import Model
from ..plans.plan import Plan
from ..runs.inference_run import WORK, InferenceRun
from ..systems.system import System
from .output import console, write_json
from .train import parse_values

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print the answers for one inference."""
    from ..report import inference as report
    from ..report import interval, spending

    answer = asked(options)
    if options.json:
        write_json(
            report.as_json(answer)
            | answer.spending_json(options.grid)
            | {"interval": interval.as_json(answer) if options.interval else None}
        )
        return 0
    with console() as out:
        report.show(answer, out)
        spending.show(answer, options, out)
        for line in interval.lines(answer) if options.interval else ():
            out.print(line, highlight=False)
    return 0


def asked(options: argparse.Namespace) -> InferenceRun:
    """The run that the options ask for.

    Raises:
        InputError: an impossible plan, an unknown name or a value out of range.
    """
    values = parse_values(options.set)
    plan_fields = {name: getattr(options, name) for name in Plan.names()}
    plan_fields |= {name: values.pop(name) for name in list(values) if name in plan_fields}
    work = {name: values.pop(name, getattr(options, name)) for name in WORK}
    model, system = Model.load(options.model), System.load(options.system)
    return InferenceRun(
        model,
        system,
        Plan(**plan_fields),
        **work,
        stack=DEFAULT if options.stack is None else options.stack,
        kv_precision=options.kv_precision,
        values=values,
    )

"""`symperf train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, shown
from ..models.model import Model
from ..plans.plan import Plan
from ..runs.training_run import Run
from ..systems.system import System
from .flags import numeral
from .output import console, write_json

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print the answers for one training step."""
    from ..report import interval, spending
    from ..report import training as report

    values = parse_values(options.set)
    plan_fields = {name: getattr(options, name) for name in Plan.names()}
    plan_fields |= {name: values.pop(name) for name in list(values) if name in plan_fields}
    batch, sequence = values.pop("batch", options.batch), values.pop("sequence", options.sequence)
    model, system = Model.load(options.model), System.load(options.system)
    sequence = _of_images(model) if sequence is None else sequence
    if options.encoder_sequence is not None:
        values.setdefault("encoder_sequence", options.encoder_sequence)
    if options.stack is not None:
        from ..systems.software import Software

        system = Software.load(options.stack).on(system)
    answer = Run(model, system, Plan(**plan_fields), batch=batch, sequence=sequence, values=values)
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


def _of_images(model: Model) -> int:
    """Tokens of an image: its patches, and one for its class.

    Raises:
        InputError: the model reads texts, whose length has to be given.
    """
    if not model.architecture.patches:
        raise InputError("train: the following arguments are required: --sequence")
    return model.sizes["num_patches"] + 1


def parse_values(settings: list[str]) -> dict[str, Any]:
    """The values of `--set NAME=VALUE`: whole numbers, numbers, or text with a unit.

    Raises:
        InputError: a setting without `=`, or a name given twice.

    >>> parse_values(["memory_bandwidth=4.8e12", "tp=8", "launch_latency=3 us"])
    {'memory_bandwidth': 4800000000000.0, 'tp': 8, 'launch_latency': '3 us'}
    """
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not text.strip():
            raise InputError(f"--set: found {shown(setting)}, expected NAME=VALUE")
        if name in found:
            raise InputError(f"--set: {name} is given twice")
        found[name] = _value(text.strip())
    return found


def _value(text: str) -> int | float | str | bool:
    for kind in (int, float):
        if (found := numeral(text, kind)) is not None:
            return found
    return {"true": True, "false": False}.get(text.lower(), text)

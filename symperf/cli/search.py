"""`symperf search`."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..common.cluster import Scheduler
from ..common.errors import InputError, quote
from ..common.numbers import numeral
from ..models.model import Model
from ..plan_search.space import DEGREES
from ..plan_search.spent import check_axes
from ..plan_search.spent import front as pareto_front
from ..plans.plan import Plan
from ..systems.system import System
from . import search_inference
from .output import console, write, write_error, write_json
from .plots import show_bars, write_plot
from .reproduce import train_command
from .settings import field_value, parse_values, split_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator


def run(options: argparse.Namespace) -> int:
    """Print the best plans."""
    if options.prompt is not None and (name := extra_flag(options)) is not None:
        raise InputError(f"search: {name} is of training, but --prompt asks for inference")
    if (other := search_inference.instead(options)) is not None:
        return other
    from ..report import bars
    from ..report import search as report
    from . import search_extras as more

    if options.json and options.csv:
        raise InputError("search: found --json and --csv, expected one of them")
    more.check(options)
    values = parse_values(options.set)
    require = _parse_required(options.require)
    if twice := next((name for name in values if name in require), None):
        raise InputError(f"search: {twice} is given by --set and by --require, expected one of them")
    require |= {name: [values.pop(name)] for name in list(values) if name in Plan.names()}
    limits = {name: getattr(options, f"max_{name}") for name in DEGREES}
    model, system = Model.load(options.model, options.ignore_key), System.load(options.system)
    started = time.monotonic()
    with _bar(options.json or options.csv) as progress:
        question = {
            "batch": values.pop("batch", options.batch),
            "sequence": values.pop("sequence", options.sequence),
            "top": options.top,
            "by": options.by.replace("-", "_"),
            "max_memory": options.max_memory,
            "require": require,
            "limits": {name: most for name, most in limits.items() if most is not None},
            "pareto": options.pareto,
            "values": values,
            "progress": progress,
            "dask": Scheduler.parse(options.dask, options.dask_tls),
            "software": more.software(options, model),
            "stack": more.stack(options),
        }
        found, scaling = more.search(model, system, options, _devices(options.devices), question)
    took = time.monotonic() - started
    whole = found.whole and all(point.answer.whole for point in scaling.points)
    if not whole and not any(len(each.tally.best) for each in found.found):
        raise KeyboardInterrupt
    axes = check_axes(options.axes)
    front = pareto_front(found, axes) if options.pareto else []
    extras = more.extras(model, system, options, found, scaling)
    title = f"{model.name} on {system.title}"
    write_plot(options, lambda: more.draw(extras, front, axes, title))
    if options.json:
        told = report.as_json(found, front) | {"whole": whole} | more.as_json(extras)
        for each in (*told["plans"], *told["pareto"]):
            each["command"] = train_command(each, found, options)
        write_json(told)
    elif extras.emitted is not None:
        more.write_emitted(extras.emitted)
    elif options.csv:
        write(report.as_csv(front if options.pareto else found.records))
    else:
        with console() as out:
            best = train_command(found.records[0], found, options)
            report.show(found, out, took=took, command=best, front=(front, axes) if options.pareto else None)
            more.show(extras, out)
        if whole:
            show_bars(options, lambda: bars.of_search(found))
    if not whole:
        write_error("interrupted: this is the best of what was seen")
        return 130
    return 0


EXTRA = ("weak", "tokens", "iso_time", "iso_cost")


def extra_flag(options: argparse.Namespace) -> str | None:
    """The first flag that asks for more than the plans of a training step."""
    return next((f"--{name.replace('_', '-')}" for name in EXTRA if getattr(options, name)), None)


def _devices(text: str) -> list[int]:
    """Numbers with commas between.

    >>> _devices("64,128")
    [64, 128]
    """
    found = []
    for part in text.split(","):
        if not part.strip().isdigit() or (count := numeral(part, int)) is None:
            raise InputError(f"--devices: found {quote(text)}, expected a whole number, or several with commas between")
        found.append(count)
    return found


def _parse_required(settings: list[str]) -> dict[str, list[Any]]:
    """The values of `--require NAME=VALUE[,VALUE...]`.

    >>> _parse_required(["zero=0,1", "schedule=1f1b", "expert-tp=none"])
    {'zero': [0, 1], 'schedule': ['1f1b'], 'expert_tp': [None]}
    """
    expected, once = "NAME=VALUE or NAME=VALUE,VALUE", ", expected its values with commas between"
    texts = split_settings(settings, "--require", expected, once=once)
    return {name: [field_value(name, part.strip()) for part in text.split(",")] for name, text in texts.items()}


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar with the rate on standard error, where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("search", total=None, rate="")

        def tell(done: int, total: int) -> None:
            speed = bar.tasks[task].speed or 0.0
            bar.update(task, completed=done, total=total, rate=f"{speed / 1e6:.2f} M plans/s")

        yield tell

"""`symperf search` with `--prompt`: plans for inference."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..models.draft_heads import draft_of
from ..models.model import Model
from ..plans.plan_fields import COLUMNS, FIELDS
from ..systems.system import System
from .output import console, write, write_error, write_json
from .plots import check_plot, write_plot
from .reproduce import command
from .settings import parse_values

if TYPE_CHECKING:
    import argparse

OWN = (
    *("prompt", "generate", "ttft", "tpot", "max_chunk"),
    *("speculate", "draft", "acceptance", "draft_length"),
)
TRAINED = tuple(f"max_{name}" for name in COLUMNS if FIELDS[name].inference != "searched")
TRAINING = ("sequence", "weak", "tokens", "iso_time", "iso_cost", *TRAINED, "dask")
"""Flags that mean something in one kind of search only."""


def instead(options: argparse.Namespace) -> int | None:
    """The exit status of a search for inference, or None where one for training is asked for.

    Raises:
        InputError: neither, or flags of both.
    """
    if options.prompt is None and options.generate is None:
        own = [name for name in OWN if getattr(options, name) is not None] + ["disaggregate"] * options.disaggregate
        if own:
            raise InputError(f"search: found {_flag(own[0])} without --prompt and --generate, expected them as well")
        missing = [name for name in ("batch", "sequence") if getattr(options, name) is None]
        if missing:
            raise InputError(f"search: the following arguments are required: {', '.join(map(_flag, missing))}")
        return None
    missing = [name for name in ("prompt", "generate") if getattr(options, name) is None]
    if missing:
        raise InputError(f"search: the following arguments are required: {', '.join(map(_flag, missing))}")
    for name in TRAINING:
        if getattr(options, name, None):
            raise InputError(f"search: found {_flag(name)} with --prompt, expected it in a search for training only")
    return run(options)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def run(options: argparse.Namespace) -> int:
    """Print the best plans."""
    from ..infer.stack import DEFAULT
    from ..plan_search.inference.search import answer_inference
    from ..plan_search.inference.space import FIELDS as SEARCHED
    from ..plan_search.inference.space import LIMITED
    from ..plan_search.inference.versus import fewest_devices, versus
    from ..report import search_inference as report
    from ..report import versus_inference as against
    from ..report.picture_search import front_sheet
    from .search import _bar, _devices, _parse_required
    from .search_emit import emitted, software
    from .search_extras import pairs

    if options.json and options.csv:
        raise InputError("search: found --json and --csv, expected one of them")
    if options.plot is not None and not options.pareto:
        raise InputError("search: found --plot without --pareto, expected it as well: the front is what is drawn")
    check_plot(options)
    if options.csv and (options.explain is not None or options.within is not None):
        raise InputError("search: found --csv with --explain or --within, expected one of them")
    if options.within is not None and not 0 < options.within < float("inf"):
        raise InputError(f"--within: found {options.within}, expected a number above 0")
    asked = None if options.explain is None else pairs(options.explain)
    if options.emit is not None and options.csv:
        raise InputError("search: found --csv and --emit, expected one of them")
    stack, runs = (options.stack or DEFAULT, None) if options.emit is None else software(options)
    values = parse_values(options.set)
    require = _parse_required(options.require)
    require |= {name: [values.pop(name)] for name in list(values) if name in SEARCHED}
    if options.draft_length is not None:
        require.setdefault("draft_length", [options.draft_length])
    limits = {name: getattr(options, f"max_{name}") for name in LIMITED if name != "batch"}
    model, system = Model.load(options.model, options.ignore_key), System.load(options.system)
    started = time.monotonic()
    with _bar(options.json or options.csv) as progress:
        found = answer_inference(
            model,
            system,
            devices=_devices(options.devices),
            prompt=options.prompt,
            generate=options.generate,
            ttft=options.ttft,
            tpot=options.tpot,
            batch=options.batch,
            by=None if options.by == "time" else options.by.replace("-", "_"),
            top=options.top,
            disaggregate=options.disaggregate,
            stack=stack,
            software=runs,
            max_memory=options.max_memory,
            require=require,
            limits={name: most for name, most in limits.items() if most is not None},
            values=values,
            pareto=options.pareto,
            axes=None if options.axes is None else options.axes.split(","),
            draft=draft_of(model, options.draft, options.speculate),
            acceptance=options.acceptance,
            progress=progress,
        )
    took = time.monotonic() - started
    if not found.records:
        raise KeyboardInterrupt
    if found.front is not None:
        write_plot(options, partial(front_sheet, found.front))
    emission = None if options.emit is None else emitted(found.winner, options)
    explained = None if asked is None else versus(found, asked)
    within = None if options.within is None else fewest_devices(found, options.within)
    if options.json:
        told = report.as_json(found) | {"emitted": None if emission is None else emission.as_json()}
        told["explained"] = None if explained is None else against.as_json(explained)
        told["within"] = None if within is None else against.within_json(within, options.within)
        for key, records in (("plans", found.records), ("pareto", found.front.records if found.front else [])):
            for each, one in zip(told[key] or (), records, strict=True):
                flying = one.measures["concurrency"] if key == "pareto" else None
                each["command"] = command(one, found.questions[0], options, flying=flying)
        write_json(told)
    elif emission is not None:
        write(emission.text)
    elif options.csv:
        write(report.as_csv(found))
    else:
        with console() as out:
            report.show(found, out, took=took, command=command(found.winner, found.questions[0], options))
            if within is not None:
                against.show_within(within, options.within, out)
            if explained is not None:
                against.show(explained, out)
    if not found.whole:
        write_error("interrupted: this is the best of what was seen")
        return 130
    return 0

"""An explorer of few structures, settings of it drawn at random, and what Python says of them."""

from __future__ import annotations

import json
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.cli.infer import build_run
from symperf.cli.parser import parse
from symperf.cli.train import ask
from symperf.common.errors import InputError
from symperf.explore.explorer import Explorer
from symperf.runs.inference_run import InferenceRun
from symperf.runs.training_run import Run

if TYPE_CHECKING:
    import random

    from symperf.runs.full_run import FullRun

MODEL, SYSTEM = "llama-2-7b", "h100-sxm"
VARY = {
    "recompute": ("none",),
    "sequence_parallel": (False, True),
    "zero": (1,),
    "schedule": ("1f1b", "interleaved", "zero-bubble"),
    "attention": ("flash",),
}


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    """An explorer of few structures, as a page reads it."""
    plan = sf.Plan(tp=2, dp=2, zero=1)
    explorer = Explorer([sf.Model.load(MODEL)], [sf.System.load(SYSTEM)], plan, train=(32, 2048), varied=VARY)
    found: dict[str, Any] = json.loads(json.dumps(explorer.data()))
    return found


def draw(kind: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A configuration: any choices, and half of the numbers anywhere in their ranges."""
    numbers = {}
    for each in kind["numbers"]:
        if rng.random() < 0.5:
            continue
        if each["degrees"]:
            numbers[each["name"]] = rng.choice(each["degrees"][:4])
        elif each["whole"]:
            numbers[each["name"]] = rng.choice([8, 32, 64, 7, 500])
        else:
            numbers[each["name"]] = rng.uniform(each["low"], each["high"])
    choices = {choice["name"]: rng.choice(choice["values"]) for choice in kind["choices"]}
    return {"kind": kind["name"], "choices": choices, "numbers": numbers}


def make_run(kind: dict[str, Any], asked: dict[str, Any]) -> FullRun:
    """What Python says of a configuration.

    Raises:
        InputError: it cannot be.
    """
    grouped: dict[str, dict[str, Any]] = {"plan": {}, "work": {}, "system": {}}
    for each in kind["numbers"]:
        value = asked["numbers"].get(each["name"], each["start"])
        if each["group"] != "system" or each["name"] in asked["numbers"]:
            grouped[each["group"]][each["name"]] = int(value) if each["whole"] else value
    fields = {name: value for name, value in asked["choices"].items() if name not in ("model", "system")}
    plan = sf.Plan(**fields, **grouped["plan"])
    make: Any = Run if kind["name"] == "train" else InferenceRun
    made: FullRun = make(
        sf.Model.load(MODEL), sf.System.load(SYSTEM), plan, **grouped["work"], values=grouped["system"]
    )
    return made


def of_command(text: str) -> FullRun:
    """The run that a command line asks for."""
    options = parse(shlex.split(text)[1:])
    return ask(options).answer if options.verb == "train" else build_run(options)


def run_or_refusal(kind: dict[str, Any], asked: dict[str, Any]) -> tuple[FullRun | None, str | None]:
    try:
        return make_run(kind, asked), None
    except InputError as error:
        return None, str(error)


def check_answer(found: dict[str, Any], run: FullRun, memory: str) -> None:
    """What the page's program says of a run is what Python says; `memory` is its name of the bytes needed."""
    assert found["time"] == pytest.approx(run.value("time"), rel=1e-12)
    assert found[memory] == pytest.approx(run.needed_bytes, rel=1e-12)
    assert found["joules"] == pytest.approx(run.energy().total, rel=1e-12)
    assert found["dollars"] == pytest.approx(run.cost().dollars, rel=1e-12)

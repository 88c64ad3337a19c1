"""What the tests of training's state share: a run with any option, and the value of a form in it."""

from __future__ import annotations

from typing import Any

import sympy

import symperf as sf
from symperf.formulas.language.symbols import SYMBOLS, strip_units

HOST = {"host_bandwidth": 64e9, "host_memory_bandwidth": 75e9}
LLAMA_7B = 6_738_415_616
"""Parameters of Llama-2-7B, as published with the model."""


def make(model: str = "llama-2-7b", system: str = "h100-sxm", batch: int = 64, **more: Any) -> sf.Run:
    """A run of 4096 tokens a sequence, or of 2048 where the model has no more positions."""
    plan = {name: more.pop(name) for name in sf.Plan.names() if name in more}
    work = {"batch": batch, "sequence": 2048 if model.startswith("gpt3") else 4096}
    return sf.training(sf.Model.load(model), sf.System.load(system), sf.Plan(**plan), **work, **more)


def number(run: sf.Run, form: Any) -> float:
    """The value of a closed form in a run."""
    values = {SYMBOLS[name].symbol: value for name, (value, _) in run.bound.items() if name in SYMBOLS}
    return float(strip_units(sympy.sympify(form)).xreplace(values))


def state(run: sf.Run) -> float:
    """Bytes of optimizer state."""
    return sum(size for name, size in run.memory_terms().items() if name.startswith("optimizer/"))

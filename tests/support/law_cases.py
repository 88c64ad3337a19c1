"""What laws of a training step share: what they draw, and what they read of a structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from hypothesis import settings
from hypothesis import strategies as st

import symperf as sf
from support.points import REGIMES, STRUCTURES, Batch, Values, points
from symperf.codegen.interpret import arrays, run
from symperf.codegen.lower import lower
from symperf.formulas.language.symbols import SYMBOLS
from symperf.train.memory.footprint import footprint

if TYPE_CHECKING:
    from symperf.plans.structure import Structure

regimes = st.sampled_from(sorted(REGIMES))
some = st.sampled_from(sorted(STRUCTURES))
few = settings(max_examples=max(8, settings.default.max_examples // 5))
"""An example is thousands of points."""
each_structure = pytest.mark.parametrize("name", STRUCTURES)
RESOURCES = {name for name, entry in SYMBOLS.items() if entry.resource is not None}


def points_of(name: str, seed: int, regime: str = "even", **how: Any) -> Batch:
    return points(seed, regime, interleaved=STRUCTURES[name].schedule == "interleaved", **how)


def values_of(name: str, seed: int, regime: str = "even", **changes: Any) -> Values:
    return Values(STRUCTURES[name], points_of(name, seed, regime) | changes)


def relative(excess: Any, size: Any) -> float:
    return float(np.max(excess / size, initial=0.0))


PRODUCTS = ("qkv", "attention/output", "mlp/up", "mlp/down", "core/scores", "core/context", "flash")
TRANSFERS = {"gather", "reduce", "send", "tied"}


def is_transfer(path: str) -> bool:
    return not path.startswith("optimizer/") and not TRANSFERS.isdisjoint(path.replace("_", "/").split("/"))


def is_product(path: str) -> bool:
    named = path.startswith("layer/") and any(part in path for part in PRODUCTS)
    return named and not is_transfer(path) and "bias" not in path


def memory_of(of: Structure, batch: Batch) -> dict[str, Any]:
    """The terms of the memory, without building the step."""
    terms = footprint(of)
    program = lower([], terms | {"total": sympy.Add(*terms.values())})
    values = run(program, batch, arrays())
    return {name: np.broadcast_to(values[at], batch["tp"].shape) for name, at in program.outputs.items()}


def predict(model: str, batch: int, **plan: Any) -> sf.Run:
    return sf.training(
        sf.Model.load(model), sf.System.load("a100-80gb-sxm"), sf.Plan(**plan), batch=batch, sequence=1024
    )

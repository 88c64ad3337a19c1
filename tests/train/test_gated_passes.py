"""Kernels of a gated activation that take longer than one kernel's bytes: as stated, and of nothing else."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf
from symperf.operations.schedule import Op, terms

SLOW = {"gated_passes": 1.6, "gated_backward_passes": 3.1}


def traffic(model: str, **values: Any) -> dict[str, float]:
    plan = sf.Plan(dp=8, ep=8 if "a3b" in model else 1)
    run = sf.training(model, "h100-sxm", plan, batch=8, sequence=2048, **values)
    found = {path: op for path, op in terms(run.schedule_tree()).items() if isinstance(op, Op)}
    return {path: value_of(run, op.demand.memory_bytes) for path, op in found.items()}


def value_of(run: Any, form: Any) -> float:
    if not getattr(form, "free_symbols", None):
        return float(form)
    return float(form.subs({symbol: run.bound[symbol.name][0] for symbol in form.free_symbols}))


@pytest.mark.parametrize("model", ["llama-3-8b", "qwen3-30b-a3b"])
def test_activations_take_as_many_passes_as_are_stated(model: str) -> None:
    plain, slow = traffic(model), traffic(model, **SLOW)
    ratios = {path: slow[path] / each for path, each in plain.items() if each and slow[path] != each}
    assert ratios
    assert all("activation" in path for path in ratios)
    assert {round(ratio, 6) for ratio in ratios.values()} == {1.6, 3.1}


def test_one_alone_leaves_the_other() -> None:
    plain, slow = traffic("llama-3-8b"), traffic("llama-3-8b", gated_passes=2)
    changed = [slow[path] / each for path, each in plain.items() if slow[path] != each]
    assert changed == pytest.approx([2.0] * len(changed))


def test_other_activations_are_as_before() -> None:
    assert traffic("gpt3-175b", **SLOW) == traffic("gpt3-175b")


def test_passes_are_positive() -> None:
    with pytest.raises(ValueError, match="gated_passes"):
        sf.training("llama-3-8b", "h100-sxm", sf.Plan(dp=8), batch=8, sequence=2048, gated_passes=-1)

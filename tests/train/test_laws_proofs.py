"""Laws of a training step that the fold proves: in what time and memory rise and fall."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from support.effort import some
from support.law_cases import RESOURCES, few
from support.points import ARCHITECTURES, directions, structure
from support.strategies import structures

from symperf.formulas.language.discipline import judge
from symperf.formulas.language.symbols import SYMBOLS, overlap_pp, vpp
from symperf.operations.schedule import Idle, Op, closed_form, terms, time_of
from symperf.train.memory.footprint import footprint
from symperf.train.step.step import TrainingStep

if TYPE_CHECKING:
    from symperf.plans.structure import Structure

NETWORKS = ((True, True), (True, False), (False, False))


def _against(ways: dict[Any, int]) -> set[str]:
    """Rates and latencies in which something is not proved to fall and to rise."""
    return {
        str(symbol)
        for symbol, way in ways.items()
        if str(symbol) in RESOURCES and way != (1 if str(symbol).endswith("_latency") else -1)
    }


@cache
def _term_against(time: Any) -> set[str]:
    return _against(judge(time).directions)


def _composed_against(of: Structure) -> set[str]:
    """The same of a step, from its parts: it rises with the time of each term, and each term moves as it should."""
    tree = TrainingStep(of).tree()

    def stand_in(leaf: Op | Idle) -> Any:
        return (
            sympy.Symbol(leaf.path, positive=True)
            if isinstance(leaf, Op)
            else leaf.count * time_of(leaf.child, stand_in)
        )

    ways = {str(symbol): way for symbol, way in judge(time_of(tree, stand_in)).directions.items()}
    assert not RESOURCES & set(ways)
    wrong: set[str] = set()
    for path, leaf in terms(tree).items():
        if isinstance(leaf, Op):
            wrong |= _term_against(leaf.time) if ways[path] == 1 else {path}
    return wrong


@pytest.mark.parametrize("tiers", [0, 1, 2])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("attention", ["eager", "flash"])
def test_the_step_is_proved_monotone_in_every_resource(attention: Any, recompute: Any, tiers: int) -> None:
    """Whatever the structural choices, a faster part never costs time and a longer latency never saves it."""
    schedules = ("1f1b", "interleaved")  # gpipe takes the time of 1f1b, see the next test
    choices = itertools.product((False, True), schedules, (0, 1), (False, True), NETWORKS)
    for sequence_parallel, schedule, zero, dropout, (quantised, l2) in some(choices, 0.3):
        of = structure(
            attention=attention,
            recompute=recompute,
            sequence_parallel=sequence_parallel,
            schedule=schedule,
            zero=zero,
            dropout=dropout,
            quantised=quantised,
            l2=l2,
            tiers=tiers,
        )
        assert not _composed_against(of), of


@given(structures)
def test_any_architecture_is_proved_monotone_in_every_resource(of: Structure) -> None:
    """The same for random architectures and choices, of the whole closed form."""
    ways = judge(closed_form(TrainingStep(of).tree())).directions
    assert {"matrix_rate", "memory_bandwidth", "launch_latency"} <= set(map(str, ways))
    assert not _against(ways)
    assert not _composed_against(of)


@few
@given(structures)
def test_gpipe_takes_the_time_of_1f1b(of: Structure) -> None:
    """They differ in memory alone, where no transfer between stages hides beside a pass."""
    times = []
    for schedule in ("gpipe", "1f1b"):
        time = closed_form(TrainingStep(dataclasses.replace(of, schedule=schedule)).tree())
        times.append(time.xreplace({overlap_pp: sympy.S.Zero, vpp: sympy.S.One}))
    assert times[0] == times[1]


@pytest.mark.parametrize("model", ARCHITECTURES)
def test_the_step_is_proved_to_grow_with_the_model(model: str) -> None:
    """More layers, width, words, sequences or tokens never save time, for every architecture."""
    ways = directions(structure(model))
    sizes = {"num_layers", "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads", "head_dim"}
    for name in (sizes | {"batch", "sequence", "num_key_value_heads"}) & set(ways):
        assert ways[name] == 1, name
    assert sizes <= set(ways)


@given(structures)
def test_memory_is_proved_to_grow_with_the_model(of: Structure) -> None:
    """Every term of the memory never falls with a size of the model, the tokens or the bytes of a format."""
    grows = ("hidden_size", "num_layers", "intermediate_size", "vocab_size", "num_attention_heads", "head_dim")
    grows += ("num_key_value_heads", "sequence", "batch")
    grows += tuple(name for name, entry in SYMBOLS.items() if entry.group == "format")
    for path, expr in footprint(of).items():
        ways = {str(symbol): way for symbol, way in judge(expr).directions.items()}
        assert all(ways.get(name, 1) == 1 for name in grows), path

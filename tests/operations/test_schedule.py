"""The schedule algebra, and the closed forms of pipelines against a simulation event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.oracle import evaluate
from support.strategies import structures

from symperf.formulas.language.symbols import batch, dp, num_layers, overlap_pp, pp, vpp
from symperf.formulas.parallel import pipeline as pipe
from symperf.operations.schedule import (
    Ends,
    Idle,
    Node,
    Op,
    Overlap,
    Repeat,
    Sequence,
    closed_form,
    executions,
    sequence,
    terms,
    time_of,
)
from symperf.train.step.step import BUBBLE, TrainingStep

if TYPE_CHECKING:
    from symperf.plans.structure import Structure

a, b, c, n, m, p, f = sympy.symbols("a b c n m p f", positive=True)
one, two, three = Op("one", a), Op("two", b), Op("three", c)


def _at(expr: Any, **values: float) -> float:
    numbers = {sympy.Symbol(name, positive=True): value for name, value in values.items()}
    return float(evaluate(expr, {symbol: numbers[symbol] for symbol in expr.free_symbols}))


def test_sequences_add() -> None:
    """One after another: times add; an absent child adds nothing; an empty sequence takes no time."""
    assert closed_form(sequence(one, None, two)) == a + b
    assert closed_form(Sequence((one, one))) == 2 * a
    assert closed_form(sequence(None)) == 0


def test_repeats_multiply() -> None:
    """n times, and nested repeats n times m times."""
    assert closed_form(Repeat(sequence(one, two), n)) == n * (a + b)
    assert closed_form(Repeat(Repeat(one, n), m)) == n * m * a


def test_overlap_limits() -> None:
    """With nothing hidden times add; with all of it hidden the longer counts."""
    none = closed_form(Overlap(one, two, 0))
    assert _at(none, a=2, b=3) == 5
    full = closed_form(Overlap(one, two, 1))
    assert _at(full, a=2, b=3) == 3
    assert _at(full, a=4, b=3) == 4


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0, 1))
def test_overlap_lies_between_its_limits(work: float, transfer: float, fraction: float) -> None:
    """max <= T <= sum, whatever part may hide; and the hidden part is the smaller of transfer part and work."""
    time = _at(closed_form(Overlap(one, two, f)), a=work, b=transfer, f=fraction)
    rounding = 1e-12 * (work + transfer)
    assert max(work, transfer) - rounding <= time <= work + transfer + rounding
    assert time == pytest.approx(work + transfer - min(work, fraction * transfer), rel=1e-12)


@given(st.floats(0, 9), st.floats(0, 9), st.integers(1, 40), st.integers(1, 40))
def test_ends(first: float, last: float, micro_batches: int, stages: int) -> None:
    """On one stage both ends run for every micro-batch; on several the slower paces, and the first passes both."""
    time = _at(closed_form(Ends(one, two, m, p)), a=first, b=last, m=micro_batches, p=stages)
    pace = first + last if stages == 1 else max(first, last)
    expected = (micro_batches - 1) * pace + first + last
    assert time == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_idle_time_is_a_term_of_its_own() -> None:
    """It takes as long as what is waited for, runs nothing, and can be named or spelt out."""
    tree = sequence(Repeat(one, m), Idle("idle", sequence(one, two), n))
    assert sympy.expand(closed_form(tree) - (m * a + n * (a + b))) == 0
    assert time_of(tree, lambda leaf: sympy.Symbol(leaf.path)) == m * sympy.Symbol("one") + sympy.Symbol("idle")
    assert executions(tree) == {"one": m}
    assert list(terms(tree)) == ["one", "idle"]


def test_executions() -> None:
    """How often each operation runs, over all the places where it stands."""
    tree = sequence(
        one,
        Repeat(sequence(one, Repeat(two, n)), m),
        Overlap(two, three, f),
        Ends(one, three, m, p),
    )
    found = executions(tree)
    assert sympy.expand(found["one"] - (1 + 2 * m)) == 0
    assert sympy.expand(found["two"] - (1 + m * n)) == 0
    assert sympy.expand(found["three"] - (1 + m)) == 0


def test_terms_come_in_order_and_once() -> None:
    """One operation at several places is one term."""
    tree = sequence(three, Repeat(one, n), Overlap(two, one, f), three)
    assert terms(tree) == {"three": three, "one": one, "two": two}
    assert list(terms(tree)) == ["three", "one", "two"]


def test_two_operations_of_one_path_are_refused() -> None:
    """A name stands for one operation; two would be added up unseen."""
    with pytest.raises(ValueError, match="two terms are called one"):
        terms(sequence(one, Op("one", b)))
    with pytest.raises(ValueError, match="two terms are called one"):
        terms(sequence(one, Idle("one", two, n)))


@given(structures)
def test_a_step_names_every_operation_once(structure: Structure) -> None:
    """No structure gives two operations one path, and each runs at least once."""
    tree = TrainingStep(structure).tree()
    named = terms(tree)
    running = {path for path, leaf in named.items() if isinstance(leaf, Op)}
    assert set(executions(tree)) == running
    assert set(named) - running == {BUBBLE}


OUTSIDE = ("embedding/", "head/", "gradients/", "optimizer/", "parameters/")


@given(structures, st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(0, 9))
def test_the_step_is_the_schedule_of_the_literature(
    structure: Structure, micro_batches: int, stages: int, virtual: int, salt: int
) -> None:
    """Without ends, replicas and optimizer the fold of the tree equals the published time, exactly.

    No transfer between stages hides beside a pass, as the literature has it.
    """
    step = TrainingStep(structure)

    def leaf(node: Op | Idle) -> Any:
        if isinstance(node, Idle):
            return node.count * time_of(node.child, leaf)
        if node.path.startswith(OUTSIDE):
            return sympy.S.Zero
        return sympy.Rational(sum(map(ord, node.path)) % 97 + 1, salt + 3)

    virtual = virtual if structure.schedule == "interleaved" else 1
    numbers = {num_layers: 24 * stages, pp: stages, vpp: virtual, dp: 1, overlap_pp: 0}
    numbers |= dict.fromkeys(step.micro_batches.free_symbols, 1)
    numbers[batch] = micro_batches

    def value(expr: Any) -> Any:
        found = sympy.sympify(expr).xreplace(numbers)
        return found.xreplace(dict.fromkeys(found.free_symbols, sympy.S.Half))

    forward, backward = (value(time_of(part, leaf)) for part in (step.forward, step.backward))
    if structure.schedule == "interleaved":
        expected = pipe.interleaved_time(forward, backward, micro_batches, stages, virtual)
    else:
        expected = pipe.one_f_one_b_time(forward, backward, micro_batches, stages)
        assert expected == pipe.gpipe_time(forward, backward, micro_batches, stages)
    assert value(time_of(step.tree(), leaf)) == expected
    assert value(step.idle_slots()) / micro_batches == pipe.bubble_fraction(micro_batches, stages, virtual)


# A pipeline, event by event -----------------------------------------------------------------------------------


def _order(schedule: str, stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """What a stage runs, in order, after Narayanan et al. 2021 figures 3 and 4."""
    if schedule == "gpipe":
        return [("F", i) for i in range(micro_batches)] + [("B", i) for i in range(micro_batches)]
    ahead = min(stages - stage - 1, micro_batches)
    order = [("F", i) for i in range(ahead)]
    for i in range(micro_batches - ahead):
        order += [("F", ahead + i), ("B", i)]
    return order + [("B", i) for i in range(micro_batches - ahead, micro_batches)]


def _simulate(schedule: str, stages: int, micro_batches: int, forward: float, backward: float) -> tuple[float, int]:
    """The end of the last event, and the most micro-batches that the first stage holds at once."""
    orders = [_order(schedule, stage, stages, micro_batches) for stage in range(stages)]
    done: dict[tuple[str, int, int], float] = {}
    clock, position = [0.0] * stages, [0] * stages
    while any(position[stage] < len(orders[stage]) for stage in range(stages)):
        moved = False
        for stage in range(stages):
            while position[stage] < len(orders[stage]):
                kind, i = orders[stage][position[stage]]
                if kind == "F":
                    needs = None if stage == 0 else ("F", i, stage - 1)
                else:
                    needs = ("F", i, stage) if stage == stages - 1 else ("B", i, stage + 1)
                if needs is not None and needs not in done:
                    break
                start = max(clock[stage], done[needs] if needs is not None else 0.0)
                clock[stage] = start + (forward if kind == "F" else backward)
                done[kind, i, stage] = clock[stage]
                position[stage] += 1
                moved = True
        assert moved, "deadlock"
    held = most = 0
    for kind, _ in orders[0]:
        held += 1 if kind == "F" else -1
        most = max(most, held)
    return max(clock), most


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@given(st.integers(1, 12), st.integers(1, 24), st.floats(0.01, 10), st.floats(0.01, 10))
def test_the_closed_form_equals_a_simulation(
    schedule: str, stages: int, micro_batches: int, forward: float, backward: float
) -> None:
    """Equal stages, event by event: the same end to 1e-9, and the same micro-batches in flight on the first stage."""
    end, held = _simulate(schedule, stages, micro_batches, forward, backward)
    formulas: dict[str, Any] = {
        "gpipe": (pipe.gpipe_time, pipe.gpipe_in_flight(micro_batches)),
        "1f1b": (pipe.one_f_one_b_time, pipe.one_f_one_b_in_flight(micro_batches, stages)),
    }
    time, in_flight = formulas[schedule]
    assert end == pytest.approx(float(time(forward, backward, micro_batches, stages)), rel=1e-9)
    assert held == in_flight


@given(st.integers(2, 6), st.integers(1, 10), st.floats(0, 3), st.floats(0, 3))
def test_ends_equal_a_simulation_of_uneven_stages(stages: int, micro_batches: int, first: float, last: float) -> None:
    """A flow line whose first and last stages take longer: what exceeds the even line is the formula's extra time."""
    even = [1.0] * stages
    uneven = [1.0 + first, *even[1:-1], 1.0 + last]

    def line(times: list[float]) -> float:
        clock = [0.0] * stages
        for _ in range(micro_batches):
            ready = 0.0
            for stage, time in enumerate(times):
                clock[stage] = ready = max(clock[stage], ready) + time
        return clock[-1]

    extra = float(pipe.end_stages_time(first, last, micro_batches, stages))
    assert line(uneven) - line(even) == pytest.approx(extra, abs=1e-9)


def test_nodes_are_told_apart_by_identity() -> None:
    """Two operations alike in everything are two, since each has its place in the step."""
    nodes: set[Node] = {Op("same", a), Op("same", a)}
    assert len(nodes) == 2

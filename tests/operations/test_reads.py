"""What is made of a structure once, for all structures that agree in what was read of it."""

from __future__ import annotations

import dataclasses
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part
from support.points import structure

from symperf.formulas.language.atoms import _ordered
from symperf.formulas.language.formula import memoize_formulas
from symperf.operations.named_times import NamedTimes
from symperf.operations.reads import changed, remembered
from symperf.operations.schedule import closed_form
from symperf.train.step.step import TrainingStep

if TYPE_CHECKING:
    from symperf.plans.structure import Structure

CHOICES: dict[str, tuple[Any, ...]] = {
    "zero": (0, 1, 2, 3),
    "recompute": ("none", "full"),
    "schedule": ("1f1b", "interleaved"),
    "sequence_parallel": (False, True),
}
some_structures = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()})


def of(**fields: Any) -> Structure:
    return dataclasses.replace(structure(), **fields)


@part(0.2)
@given(st.lists(some_structures, min_size=1, max_size=12))
def test_what_is_remembered_is_what_is_made(asked: list[dict[str, Any]]) -> None:
    """Whatever is read, in whatever order, by way of others, of a changed structure too: no result is another's."""

    @remembered
    def inner(each: Structure) -> tuple[Any, ...]:
        return (each.zero,) if each.sequence_parallel else (each.recompute, each.shards_gradients)

    @remembered
    def outer(each: Structure, more: int) -> tuple[Any, ...]:
        if each.schedule == "1f1b":
            return inner(each), more
        plain = changed(each, recompute="none", zero=3)
        return inner(plain), plain.shards_weights, more

    plain = [(outer(of(**fields), more)) for fields in asked for more in (1, 2)]
    with memoize_formulas():
        assert [(outer(of(**fields), more)) for fields in asked for more in (1, 2)] == plain


def test_it_is_made_once_for_what_is_read() -> None:
    """Structures that differ in what was not read, or that a property does not tell apart, have one result."""
    made = []

    @remembered
    def count(each: Structure) -> int:
        made.append(each.recompute)
        return len(made) if each.shards_gradients else -len(made)

    with memoize_formulas():
        found = [count(of(zero=zero, schedule=schedule)) for zero in range(4) for schedule in ("1f1b", "gpipe")]
    assert made == ["none"] * 2
    assert found == [-1] * 4 + [2] * 4


def test_a_structure_is_not_read_after_its_result_was_remembered() -> None:
    """What holds the structure could read more of it later, of which nothing would be known: that is an error."""
    with memoize_formulas():
        held = remembered(lambda each: (each.zero, each))(of(zero=2))[1]
        with pytest.raises(RuntimeError, match="after what is made of it was remembered"):
            _ = held.recompute


def test_what_another_thread_makes_meanwhile_is_told_apart() -> None:
    """A sweep builds structures in threads: the tree may grow between a first look at it and the result."""
    began, go_on = threading.Event(), threading.Event()

    @remembered
    def slow(each: Structure) -> tuple[Any, ...]:
        if each.zero == 1 and not go_on.is_set():
            began.set()
            assert go_on.wait(60)
        return each.zero, each.recompute

    def ask(zero: int, recompute: str) -> tuple[Any, ...]:
        with memoize_formulas():
            return slow(of(zero=zero, recompute=recompute))

    asked = [(1, "none"), (2, "full"), (1, "full"), (2, "none"), (0, "none")]
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, *asked[0])
        assert began.wait(60)
        assert ask(*asked[1]) == asked[1]
        go_on.set()
        assert first.result(60) == asked[0]
    assert [ask(*each) for each in asked] == asked


@pytest.mark.parametrize("fields", [{"zero": 3}, {"stages": "uneven", "schedule": "zero-bubble"}], ids=str)
def test_named_times_are_closed_forms(fields: dict[str, Any]) -> None:
    """The times of two steps in names, with the names put back, are their closed forms at any point."""
    times, forms = NamedTimes(), []
    for each in (of(**fields), of(**fields, recompute="full")):
        with memoize_formulas():
            tree = TrainingStep(each).tree()
            forms.append((times.of(tree), closed_form(tree)))
    names: dict[Any, Any] = {}
    symbols = sorted(set().union(*(form.free_symbols for _, form in forms)), key=str)
    point = {symbol: sympy.Integer(2 + k % 5) for k, symbol in enumerate(symbols)}
    for name, form in times.definitions:
        names[name] = _at(form, {**point, **names})
    for named, whole in forms:
        assert float(_at(named, {**point, **names})) == pytest.approx(float(_at(whole, point)), rel=1e-12)


def _at(form: Any, values: dict[Any, Any]) -> Any:
    return sympy.N(form.xreplace(values), 30)


def test_arguments_of_maxima_are_in_the_order_of_sympy() -> None:
    """Keys that are made only as far as they are needed give the order of whole ones."""
    x, y, z = sympy.symbols("x y z", positive=True)
    parts = {
        x,
        2 * x,
        y / 2,
        x * y,
        x**2,
        3 * y**2,
        x + y,
        x + y + z,
        2 * (x + z),
        sympy.Integer(3),
        sympy.sqrt(x),
        1 / x,
    }
    parts |= {
        sympy.Integer(3),
        sympy.ceiling(x),
        2 * sympy.ceiling(y),
        sympy.ceiling(x) ** 2,
        sympy.Dummy("d"),
        (x + 1) * (y + 2),
    }
    assert _ordered(parts) == sorted(parts, key=sympy.core.sorting.default_sort_key)


def test_a_hash_stays_in_its_process() -> None:
    """Hashes of texts differ from process to process, so none is sent along."""
    one = of(zero=2)
    assert hash(one) == hash(of(zero=2))
    assert "_hash" in vars(one)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert "_hash" not in {**vars(again), **vars(again.architecture)}

"""Programs over the rows of a table: equal to the reference at every row, whatever the columns repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from symperf.codegen.evaluate import outputs_at
from symperf.codegen.lower import lower
from symperf.codegen.passes import prune
from symperf.codegen.rows import BLOCK, PointTable, RowProgram
from symperf.formulas.language.atoms import Max, above_one, bubble, ceil_div, log2

A, B, C, S = sympy.symbols("a b c s", positive=True)
FORMS = {
    "nothing": S + 1,
    "one": ceil_div(A, 3) + log2(A),
    "two": Max(A * S, B) / (1 + bubble(B, A)),
    "three": A / B + above_one(C) * Max(A, B * C) ** 2,
    "column": C,
}
PROGRAM = prune(lower([], FORMS), list(FORMS))


def table(seed: int, rows: int, kinds: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {name: draw.integers(1, kinds + 1, rows).astype(float) for name in "abc"}


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.sampled_from([1, 2, 5, 100]))
def test_every_row_is_what_the_reference_computes(seed: int, rows: int, kinds: int) -> None:
    columns = table(seed, rows, kinds)
    expected = outputs_at(PROGRAM, {**columns, "s": 1.5}, rows)
    program = RowProgram(PROGRAM, list(columns))
    for block, found in program.run(PointTable(columns), {"s": 1.5}, list(FORMS)):
        for name, values in zip(FORMS, found, strict=True):
            assert np.array_equal(values, expected[name][block]), name


def test_some_rows_in_blocks() -> None:
    """Chosen rows come in their order, in blocks, and outputs in the order asked for."""
    columns = table(3, 3 * BLOCK, 40)
    expected = outputs_at(PROGRAM, {**columns, "s": 2.0}, 3 * BLOCK)
    chosen = np.arange(5, 3 * BLOCK, 2)
    names = ["three", "one"]
    parts = list(RowProgram(PROGRAM, list(columns)).run(PointTable(columns), {"s": 2.0}, names, chosen))
    assert len(parts) == 2
    assert np.array_equal(np.concatenate([block for block, _ in parts]), chosen)
    for k, name in enumerate(names):
        assert np.array_equal(np.concatenate([found[k] for _, found in parts]), expected[name][chosen])


def test_distinct_combinations() -> None:
    """Of some columns: which combination each row has, and its first row; no gaps, whatever the values."""
    columns = {"a": [1e9, 1, 1e9, 1], "b": [2, 2, 3, 2], "c": [0.5, 7, 7, 7]}
    rows = PointTable(columns)
    code, first = rows.distinct(0b011)
    assert code.tolist() == [1, 0, 2, 0]
    assert first.tolist() == [1, 0, 2]
    assert rows.link(0b001, 0b011).tolist() == [0, 1, 1]


def test_tables_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="lengths 1, 2"):
        PointTable({"a": [1.0], "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match="found columns a; expected a, b, c"):
        next(RowProgram(PROGRAM, ["a", "b", "c"]).run(PointTable({"a": [1.0]}), {"s": 1.0}, ["one"]))

"""Axes: values checked as a single run would, ranges, choices, and zipped symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.sweep.axes import Zip, axis, label, linear, logarithmic, powers
from symperf.sweep.chunks import block_shape, count, every, nth, size


@pytest.mark.parametrize(
    ("name", "given", "values"),
    [
        ("tp", [1, 2, 4], [1, 2, 4]),
        ("tp", range(1, 4), [1, 2, 3]),
        ("tp", np.array([1.0, 2.0]), [1, 2]),
        ("tp", (x for x in (1, 2)), [1, 2]),
        ("tp", [np.int64(2), np.float32(4)], [2, 4]),
        ("batch", {"from": 1, "to": 10, "step": 4}, [1, 5, 9]),
        ("pp", {"from": 1, "to": 64, "powers_of": 4}, [1, 4, 16, 64]),
        ("pp", {"from": 3, "to": 13, "powers_of": 2}, [3, 6, 12]),
        ("memory_bandwidth", ["1 TB/s", 2e12], [1e12, 2e12]),
        ("memory_bandwidth", {"from": "1 TB/s", "to": "3 TB/s", "count": 3}, [1e12, 2e12, 3e12]),
        ("memory_bandwidth", {"from": 1e10, "to": 1e12, "count": 3, "scale": "log"}, [1e10, 1e11, 1e12]),
        ("overlap_dp", {"from": 0, "to": 0.3, "step": 0.1}, [0, 0.1, 0.2, 0.3]),
        ("launch_latency", [0, "3 us"], [0, 3e-6]),
        ("hidden_size", [1024], [1024]),
        ("workspace_bytes", [0, 1e9], [0, 1e9]),
        ("recompute", ["none", "full"], ["none", "full"]),
        ("sequence_parallel", [True, False], [True, False]),
        ("schedule", [None, "interleaved"], [None, "interleaved"]),
        ("zero", [0, 1], [0, 1]),
        ("system", ["h100-sxm", "A100-80GB-SXM"], ["h100-sxm", "a100-80gb-sxm"]),
        ("model", ["gpt3-175b"], ["gpt3-175b"]),
    ],
)
def test_values(name: str, given: Any, values: list[Any]) -> None:
    """Lists, ranges, arrays and texts with units become numbers; choices are checked and loaded."""
    found = axis(name, given)
    assert found.name == name
    assert len(found) == len(values)
    (member,) = found.members.values()
    if isinstance(member, np.ndarray):
        np.testing.assert_allclose(member, values, rtol=1e-15)
    else:
        assert [label(value) for value in member] == values


def test_counts_are_whole_and_figures_are_floats() -> None:
    """The type of a coordinate says what it is."""
    assert axis("tp", [1.0]).members["tp"].dtype == np.int64  # type: ignore[union-attr]
    assert axis("matrix_rate", [10**14]).members["matrix_rate"].dtype == np.float64  # type: ignore[union-attr]


BAD = [
    ("tp", [], "axis tp: is empty"),
    ("tp", np.array([]), "axis tp: is empty"),
    ("tp", range(0), "axis tp: is empty"),
    ("recompute", [], "axis recompute: is empty"),
    ("tp", 4, "axis tp: found 4, expected a list"),
    ("tp", "1, 2", "expected a list"),
    ("tp", [0], "found 0, expected a whole number from 1"),
    ("tp", [1, 2.5], "found 2.5, expected a whole number"),
    ("tp", [1, "a"], "found 'a', expected a whole number"),
    ("tp", ["2"], "found '2', expected a whole number"),
    ("tp", [True], "found True, expected a whole number"),
    ("tp", [None], "found None, expected a whole number"),
    ("tp", [float("nan")], "found nan"),
    ("tp", [float("inf")], "found inf"),
    ("tp", [10**400], "within the range of a float"),
    ("tp", [2, 4, 2], "2 comes twice"),
    ("tp", [[1, 2]], "expected a whole number"),
    ("tp", np.ones((2, 2)), "2 dimensions, expected numbers"),
    ("tp", np.array(["a"]), "expected numbers"),
    ("tp", np.array([True]), "expected numbers"),
    ("tpp", [1], "axis tpp: no such symbol; did you mean tp"),
    ("time", [1], "axis time: no such symbol"),
    ("fp4_efficiency", [0.2, 0.4], "axis fp4_efficiency: cannot vary, expected fp8_efficiency"),
    ("memory_bandwidth", [-1e12], "found -1000000000000"),
    ("memory_bandwidth", [4.8], "between 1 GB/s"),
    ("memory_bandwidth", linear(0, 1e12, 5), "axis memory_bandwidth: found 0"),
    ("memory_bandwidth", ["4.8 TBs"], "unit"),
    ("memory_bandwidth", ["fast"], "does not begin with a plain number"),
    ("memory_efficiency", [0.5, 1.5], "found 1.5"),
    ("overlap_tp", [0.5, 1.01], "expected a fraction from 0 to 1"),
    ("compute_units", [1.5], "found 1.5"),
    ("recompute", ["none", "some"], "found 'some', expected none or selective or full"),
    ("recompute", ["none", "none"], "'none' comes twice"),
    ("sequence_parallel", ["yes"], "expected true or false"),
    ("zero", [4], "expected 0, 1, 2 or 3"),
    ("schedule", ["1f1c"], "did you mean 1f1b"),
    ("system", ["h100"], "did you mean"),
    ("model", ["gpt9"], "no such file"),
    ("model", [3], "expected a catalogue name"),
    ("tp", {"from": 8, "to": 1, "step": 1}, "is reversed or empty: from 8 to 1"),
    ("tp", {"from": 4, "to": 4, "count": 3}, "is reversed or empty"),
    ("tp", {"from": 1, "to": 8}, "expected from, to and one of count, step, powers_of"),
    ("tp", {"from": 1, "step": 8}, "(no to)"),
    ("tp", {"from": 1, "to": 8, "step": 1, "count": 3}, "one of count"),
    ("tp", {"form": 1, "to": 8, "step": 1}, "unknown key 'form'; did you mean from"),
    ("tp", {"from": "a", "to": 8, "step": 1}, "axis tp: from: found 'a'"),
    ("tp", {"from": 1, "to": 8, "step": 0}, "step is 0, expected a number above 0"),
    ("tp", {"from": 1, "to": 8, "step": -1}, "step is -1"),
    ("tp", {"from": 1, "to": 8, "step": "1"}, "step is '1'"),
    ("tp", {"from": 1, "to": 8, "count": 2.5}, "count is 2.5, expected a whole number"),
    ("tp", {"from": 1, "to": 8, "count": 10**12}, "count is 1000000000000"),
    ("tp", {"from": 1, "to": 10**9, "step": 1}, "expected at most"),
    ("tp", {"from": 1, "to": 8, "count": 4, "scale": "cubic"}, "scale is 'cubic'"),
    ("tp", {"from": 1, "to": 8, "step": 1, "scale": "log"}, "log with count"),
    ("overlap_tp", {"from": 0, "to": 1, "count": 4, "scale": "log"}, "above 0 on a log scale"),
    ("tp", {"from": 1, "to": 8, "powers_of": 1}, "2 or more"),
    ("recompute", {"from": 1, "to": 8, "count": 2}, "expected a list"),
    ("shape", Zip(), "zips nothing"),
    ("shape", Zip(tp=[1, 2], pp=[1]), "tp has 2 values, pp has 1 values"),
    ("shape", {"zip": [1]}, "zip is [1]"),
    ("tp", Zip(pp=[1], dp=[2]), "a name that is no symbol"),
    ("shape", Zip(tp=[0]), "axis shape: tp: found 0"),
]


@pytest.mark.parametrize(("name", "given", "message"), BAD, ids=lambda value: repr(value)[:30])
def test_bad_axes_are_one_line(name: str, given: Any, message: str) -> None:
    """What was found, where, and what was expected."""
    with pytest.raises(InputError) as caught:
        axis(name, given)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"axis {name}")
    assert "\n" not in str(caught.value)


def test_zipped() -> None:
    """Symbols that vary together share a dimension; values may repeat."""
    found = axis("shape", Zip(tp=[1, 2, 2], system=["h100-sxm", "h100-sxm", "h200-sxm"]))
    assert list(found.members) == ["tp", "system"]
    assert len(found) == 3
    assert len(axis("shape", {"zip": {"tp": [1, 2], "pp": [4, 2]}})) == 2


def test_a_name_that_expressions_read() -> None:
    """Names that are no symbols may be axes where they are declared; whole numbers stay whole."""
    assert axis("cards", [8, 16], ["cards"]).members["cards"].dtype == np.int64  # type: ignore[union-attr]
    assert axis("ratio", [0.5], ["ratio"]).members["ratio"].dtype == np.float64  # type: ignore[union-attr]
    with pytest.raises(InputError, match="expected a finite number"):
        axis("cards", ["8"], ["cards"])


def test_range_functions() -> None:
    """The ends are included, exactly."""
    assert (linear(1, 8, 8) == np.arange(1, 9)).all()
    assert logarithmic(1e9, 1e12, 4)[[0, -1]].tolist() == [1e9, 1e12]
    assert powers(2, 1, 7) == [1, 2, 4]


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 7), (4, 1, 5, 2)])
@pytest.mark.parametrize("points", [1, 3, 7, 20, 1000])
def test_chunks_tile_the_grid_in_order(shape: tuple[int, ...], points: int) -> None:
    """Every point is in one chunk, no chunk is too large, and chunks follow the order of the grid."""
    block = block_shape(shape, points)
    chunks = list(every(shape, block))
    assert len(chunks) == count(shape, block)
    assert chunks == [nth(shape, block, index) for index in range(len(chunks))]
    assert max(map(size, chunks)) <= points
    flat = np.arange(np.prod(shape)).reshape(shape)
    assert np.concatenate([flat[chunk].ravel() for chunk in chunks]).tolist() == flat.ravel().tolist()


def test_zip_is_a_public_name() -> None:
    """As the page on sweeps has it."""
    assert sf.Zip is Zip

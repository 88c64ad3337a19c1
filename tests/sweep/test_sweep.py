"""Sweeps agree with single runs at every point, refuse the same plans, and reduce to the same best."""

from __future__ import annotations

import dataclasses
import math
import pickle
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.plans.plan import Plan
from symperf.plans.validity import RULES
from symperf.sweep.axes import Zip
from symperf.sweep.best import best
from symperf.sweep.cells import Base
from symperf.sweep.sweep import REASON, Sweep, base_of

if TYPE_CHECKING:
    from symperf.runs.training_run import Run

SAMPLE = 150


@pytest.fixture(scope="module")
def run() -> Run:
    """The main job of the README."""
    plan = sf.Plan(tp=8, pp=8, recompute="selective", sequence_parallel=True)
    return sf.training(sf.Model.load("gpt3-175b"), sf.System.load("a100-80gb-sxm"), plan, batch=64, sequence=2048)


GRIDS: dict[str, dict[str, Any]] = {
    "plan": {
        "tp": [1, 2, 5, 8],
        "pp": [1, 2, 3, 8, 16],
        "vpp": [1, 2, 3],
        "micro_batch": [1, 2, 3],
        "recompute": ["none", "selective", "full"],
        "sequence_parallel": [True, False],
        "schedule": [None, "1f1b", "interleaved"],
    },
    "figures": {
        "tp": [2, 8],
        "memory_bandwidth": np.linspace(1e12, 8e12, 40),
        "matrix_rate": [1e14, 1e15],
        "matrix_efficiency": [0.3, 0.9],
        "activation_bytes": [1.0, 2.0],
        "overlap_tp": [0.0, 0.5, 1.0],
    },
    "overheads": {
        "tp": [2, 8],
        "host_latency": [0.0, 1e-5, 1e-4],
        "overhead_latency": [0.0, 0.5],
        "jitter": [0.0, 0.02],
    },
    "sizes": {
        "num_layers": [8, 12, 96],
        "num_attention_heads": [8, 12, 96],
        "num_key_value_heads": [1, 4, 5],
        "hidden_size": [1024, 12288],
        "sequence": [512, 2048, 4096],
        "pp": [1, 4],
        "tp": [2, 8],
    },
    "machines": {
        "model": ["gpt3-175b", "llama-2-7b", "gpt2"],
        "system": ["a100-80gb-sxm", "h100-sxm", "v100-32gb-sxm"],
        "precision": [None, "bf16", "fp16"],
        "shape": Zip(tp=[1, 2, 4, 8], pp=[2, 4, 8, 1], vpp=[1, 2, 1, 1]),
        "batch": [8, 64],
        "dropout": [None, True],
        "zero": [0, 1],
    },
}


def _point(sweep: Sweep, at: tuple[int, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axis, position in zip(sweep.axes, at, strict=True):
        for name, values in axis.members.items():
            found[name] = values[position].item() if isinstance(values, np.ndarray) else values[position]
    return found


def _single(run: Run, point: dict[str, Any]) -> tuple[Run | None, str]:
    """A run at a point of a sweep, or why there is none."""
    point = dict(point)
    model, system = point.pop("model", run.base_model), point.pop("system", run.base_system)
    work = {name: point.pop(name, getattr(run, name)) for name in ("batch", "sequence")}
    fields = {name: point.pop(name) for name in list(point) if name in Plan.names()}
    try:
        return sf.training(model, system, dataclasses.replace(run.plan, **fields), **work, **point), ""
    except InputError as error:
        return None, str(error)


def _whole(sweep: Sweep) -> dict[str, Any]:
    return sweep.compute(tuple(slice(0, n) for n in sweep.shape))


@pytest.mark.parametrize("name", GRIDS)
def test_every_point_is_a_single_run(run: Run, name: str) -> None:
    """The numbers are its numbers to the last places; where it refuses, the reason is the rule that it broke."""
    sweep = Sweep(base_of(run), GRIDS[name], outputs=["time", "memory", "mfu", "optimizer/adam"])
    found = _whole(sweep)
    messages = {rule.name: rule.message.split(":")[0] for rule in RULES}
    random = np.random.default_rng(0)
    seen = set()
    for flat in random.choice(sweep.points, min(SAMPLE, sweep.points), replace=False):
        at = tuple(int(k) for k in np.unravel_index(flat, sweep.shape))
        code = int(found[REASON][at])
        seen.add(code)
        one, refusal = _single(run, _point(sweep, at))
        reason = sweep.reasons[code - 1] if code else ""
        assert (code == 0) is (one is not None), (reason, refusal)
        if reason in messages and "{" not in messages[reason]:
            assert refusal.startswith(messages[reason])
        for output in sweep.outputs:
            expected = math.nan if one is None else one.value(output)
            np.testing.assert_allclose(found[output][at], expected, rtol=1e-12)
    assert 0 in seen


def test_derived_symbols(run: Run) -> None:
    """`dp` follows from other axes; where it is no whole number, the point is refused as a single run would."""
    data = run.sweep(tp=[2, 4, 8], pp=[1, 2, 4, 8], devices=[64, 96], dp="devices / (tp * pp)", outputs="time")
    assert data.sizes == {"tp": 3, "pp": 4, "devices": 2}
    assert (data.dp == data.devices / (data.tp * data.pp)).where(data.reason == 0, True).all()
    for tp, pp, devices in ((2, 4, 64), (8, 8, 64), (4, 1, 64)):
        one = run.bind(tp=tp, pp=pp, dp=devices // (tp * pp))
        got = data.time.sel(tp=tp, pp=pp, devices=devices)
        assert math.isclose(got, one.value("time"), rel_tol=1e-12)
    half = run.sweep(tp=[2, 8], cards=[24], dp="cards / (tp * pp)", outputs=["time"])
    assert [half.reason.attrs["flag_meanings"].split()[code] for code in half.reason.values.ravel()] == [
        "dp_is_out_of_range"
    ] * 2
    chained = run.sweep(tp=[2, 4], derived={"groups": "64 / tp", "dp": "groups / pp"}, outputs=["devices"])
    assert chained.devices.values.tolist() == [64, 64]


def test_where_marks_and_keeps_values(run: Run) -> None:
    """A condition that fails is a reason with a name; the values stay."""
    grid = {"tp": [1, 2, 4, 8], "pp": [8, 48]}
    data = run.sweep(
        **grid, where=["fits", "tp * pp <= 64"], sequence_parallel=False, outputs=["time", "memory", "reserved"]
    )
    meanings = data.reason.attrs["flag_meanings"].split()
    assert len(meanings) == len(data.reason.attrs["flag_values"])
    at = {name: meanings.index(name) for name in ("does_not_fit", "not_tp_times_pp_le_64")}
    capacity = run.value("capacity_bytes")
    for tp in (1, 2, 4, 8):
        for pp in (8, 48):
            point = data.sel(tp=tp, pp=pp)
            fits = bool(point.reserved <= capacity)
            assert point.memory < point.reserved
            expected = at["does_not_fit"] if not fits else at["not_tp_times_pp_le_64"] if tp * pp > 64 else 0
            assert int(point.reason) == expected
            assert np.isfinite(point.time)
    named = run.sweep(tp=[2, 8], where={"too_many": "tp < 8"})
    assert named.reason.attrs["flag_meanings"].split()[-1] == "too_many"
    assert (named.reason.values > 0).tolist() == [False, True]


def test_the_dataset_says_what_it_is(run: Run) -> None:
    """Units, glyphs and sentences of coordinates; units of outputs; what was fixed."""
    data = run.sweep(
        memory_bandwidth=["1 TB/s", "2 TB/s"],
        system=["a100-80gb-sxm", "h100-sxm"],
        schedule=[None, "1f1b"],
        outputs=["time", "memory/weights/layers", "mfu", "term/optimizer/adam/flops"],
    )
    assert data.memory_bandwidth.attrs["units"] == "B/s"
    assert data.memory_bandwidth.attrs["glyph"] == r"\beta"
    assert data.system.values.tolist() == ["a100-80gb-sxm", "h100-sxm"]
    assert data.schedule.values.tolist() == ["default", "1f1b"]
    assert [data[name].attrs["units"] for name in data.data_vars if name != REASON] == ["s", "B", "1", "FLOP"]
    assert data.attrs["model"] == "gpt3-175b"
    assert "batch=64" in data.attrs["fixed"]
    assert data.reason.dtype == np.uint8
    zipped = run.sweep(shape=Zip(tp=[2, 8], pp=[8, 2]))
    assert zipped.tp.dims == zipped.pp.dims == ("shape",)


def test_axis_order_and_blocks_do_not_matter(run: Run) -> None:
    """Any order of axes and any block gives the same numbers, bit for bit."""
    axes = {"tp": [2, 8], "memory_bandwidth": np.linspace(1e12, 3e12, 7), "recompute": ["none", "full"], "pp": [1, 8]}
    forward = Sweep(base_of(run), axes)
    backward = Sweep(base_of(run), dict(reversed(axes.items())))
    found, turned = _whole(forward), _whole(backward)
    for name in (*forward.outputs, REASON):
        np.testing.assert_array_equal(found[name], turned[name].transpose())
        part = forward.compute((slice(1, 2), slice(2, 5), slice(0, 2), slice(1, 2)))[name]
        np.testing.assert_array_equal(part, found[name][1:2, 2:5, 0:2, 1:2])


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "axes: found 0"),
    ({"tp": []}, "axis tp: is empty"),
    ({"tpp": [1, 2]}, "no such symbol; did you mean tp"),
    ({"cards": [1, 2], "tp": [1]}, "axis cards: no such symbol"),
    ({"tp": ["two"]}, "expected a whole number"),
    ({"tp": [1, 2], "outputs": ["tyme"]}, "unknown quantity 'tyme'; did you mean time"),
    ({"tp": [1, 2], "outputs": []}, "expected one name or more"),
    ({"tp": [1, 2], "outputs": ["time", "time"]}, "each once"),
    ({"tp": [1, 2], "outputs": ["tp"]}, "outputs: tp is an axis"),
    ({"tp": [1, 2], "outputs": [3]}, "expected names of quantities"),
    ({"tp": [1, 2], "where": ["fit"]}, "unknown name 'fit'"),
    ({"tp": [1, 2], "where": ["tp * pp"]}, "is a number, expected a condition"),
    ({"tp": [1, 2], "where": ["__import__('os')"]}, "where not_"),
    ({"tp": [1, 2], "where": [3]}, "expected an expression as text"),
    ({"tp": [1, 2], "where": {"two words": "fits"}}, "expected a plain name"),
    ({"tp": [1, 2], "where": {"time": "fits"}}, "where time: is the name of an output or of another reason"),
    ({"tp": [1, 2], "where": {"choices_do_not_go_together": "fits"}}, "expected a new one"),
    ({"tp": [1, 2], "precision": ["bf16", "fp7"]}, "axis precision"),
    ({"tp": [1, 2], "dp": "64 / tpp"}, "derived dp: unknown name 'tpp'"),
    ({"tp": [1, 2], "dp": "time / 2"}, "derived dp: unknown name 'time'"),
    ({"tp": [1, 2], "dp": "tp < 3"}, "expected a number"),
    ({"tp": [1, 2], "dp": "dp + 1"}, "reads dp itself"),
    (
        {"tp": [1, 2], "dpp": "64 / tp"},
        "derived dpp: no such symbol, and no expression reads it; did you mean pp or dp",
    ),
    ({"tp": [1, 2], "dp": "pp", "pp": "tp"}, "reads pp, which comes after it"),
    ({"tp": [1, 2], "vpp": "tp"}, "derived vpp: needs a schedule"),
    ({"tp": [1, 2], "shape": Zip(tp=[1], pp=[2])}, "axis tp: is given twice"),
    ({"tp": [1, 2], "pp": 0}, "set pp: found 0"),
    ({"tp": [1, 2], "pp": None}, "set pp: found None"),
    ({"tp": [1, 2], "system": "h1000"}, "set system"),
    ({"tp": [1, 2], "memory_bandwidth": -1}, "set memory_bandwidth"),
    ({"pp": [1, 2], "tp": 5}, "tp: 5 does not divide the 96 attention heads of gpt3-175b"),
    ({"pp": [1, 2], "batch": 63, "micro_batch": 2}, "batch: 63 sequences are not divisible"),
    ({"tp": [1, 2], "position_rows": [2048], "model": "llama-2-7b"}, "has no learned positions"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: repr(value)[:40])
def test_bad_sweeps_are_one_line(run: Run, arguments: dict[str, Any], message: str) -> None:
    """What was found, where, and what was expected; a plan that never runs is refused as a single run is."""
    with pytest.raises(InputError) as caught:
        run.sweep(**arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sweep_too_large_for_memory_is_refused(run: Run) -> None:
    """The line says how much it would take, and what to do instead."""
    long = np.linspace(1e12, 8e12, 10**6)
    with pytest.raises(InputError, match=r"need .* GB, and memory has .*`symperf sweep`"):
        run.sweep(memory_bandwidth=long, matrix_rate=np.linspace(1e14, 1e15, 10**6))


@pytest.mark.parametrize("module", ["xarray", "pandas"])
def test_a_missing_package_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """The line names the extra that has it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"needs {module}, which is not installed: pip install 'symperf\[sweep\]'"):
        run.sweep(tp=[1, 2]) if module == "xarray" else run.best(tp=[2, 4], minimize="time")


def _best_by_hand(sweep: Sweep, name: str, sign: float) -> list[int]:
    found = _whole(sweep)
    good = np.flatnonzero(found[REASON].ravel() == 0)
    return good[np.lexsort((good, sign * found[name].ravel()[good]))].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("how", "name", "sign"), [("minimize", "time", 1.0), ("maximize", "mfu", -1.0)])
def test_best_is_the_top_of_the_sweep(run: Run, how: str, name: str, sign: float) -> None:
    """The same points in the same order, of equal ones the first in the grid; and the count of the others."""
    axes = {"tp": [1, 2, 4, 8], "pp": range(1, 17), "vpp": [1, 2], "recompute": ["none", "full"], "price": [1e4, 2e4]}
    sweep = Sweep(base_of(run), axes, where=["fits"])
    expected = _best_by_hand(sweep, name, sign)
    table = run.best(**axes, **{how: name}, where=["fits"], top=7)
    assert len(table) == 7
    for row, flat in zip(table.to_dict("records"), expected, strict=False):
        point = _point(sweep, tuple(int(k) for k in np.unravel_index(flat, sweep.shape)))
        assert {key: row[key] for key in point} == point
    assert table.attrs["considered"] == sweep.points == table.attrs["feasible"] + sum(table.attrs["rejected"].values())
    assert table.attrs["feasible"] == len(expected)


def test_best_of_nothing_is_empty(run: Run) -> None:
    """Where no point is feasible the table has no rows, and says why."""
    table = run.best(tp=[2, 4], minimize="time", where=["tp > 8"])
    assert len(table) == 0
    assert table.attrs["rejected"] == {"not_tp_gt_8": 2}
    assert "time" in table.columns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected one of them"),
        ({"minimize": "time", "maximize": "mfu"}, "expected one of them"),
        ({"minimize": "tyme"}, "unknown quantity 'tyme'"),
        ({"minimize": 3}, "expected the name of a quantity"),
        ({"minimize": "time", "top": 0}, "top: found 0"),
        ({"minimize": "time", "top": 10**7}, "top: found 10000000"),
    ],
)
def test_bad_best(run: Run, arguments: dict[str, Any], message: str) -> None:
    """One line each."""
    with pytest.raises(InputError, match=message):
        run.best(tp=[2, 4], **arguments)


def test_choices_that_do_not_go_together_are_a_reason(run: Run) -> None:
    """A system without a precision does not stop the others."""
    data = run.sweep(system=["a100-80gb-sxm", "h100-sxm"], precision=["bf16", "fp8"], outputs="time")
    assert np.isnan(data.time.sel(system="a100-80gb-sxm", precision="fp8"))
    code = int(data.reason.sel(system="a100-80gb-sxm", precision="fp8"))
    assert data.reason.attrs["flag_meanings"].split()[code] == "choices_do_not_go_together"
    with pytest.raises(InputError, match="no matrix_rate for precision 'fp8'"):
        run.sweep(system="a100-80gb-sxm", precision="fp8", batch=[64, 128])


def test_a_base_without_a_model_or_work(run: Run) -> None:
    """What neither the base nor an axis gives is asked for."""
    empty = Base(None, run.base_system, {}, {}, {})
    with pytest.raises(InputError, match="model: is missing"):
        Sweep(empty, {"tp": [1, 2]})
    with pytest.raises(InputError, match="batch: is missing"):
        Sweep(Base(run.base_model, run.base_system, {}, {}, {}), {"tp": [1, 2]})
    whole = Sweep(empty, {"model": ["gpt2"], "batch": [8], "sequence": [512], "tp": [1, 2]})
    assert np.isfinite(_whole(whole)["time"]).all()
    table = best(empty, {"model": ["gpt2", "gpt3-175b"], "batch": [8], "sequence": [512]}, minimize="time")
    assert table.model.tolist() == ["gpt2", "gpt3-175b"]


def test_a_sweep_goes_to_other_processes(run: Run) -> None:
    """It is sent without what it builds itself, and computes the same there."""
    sweep = Sweep(base_of(run), {"tp": [2, 8], "system": ["a100-80gb-sxm", "h100-sxm"]})
    again = pickle.loads(pickle.dumps(sweep))
    assert not again._cells
    for name, values in _whole(sweep).items():
        np.testing.assert_array_equal(values, _whole(again)[name])

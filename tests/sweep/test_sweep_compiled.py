"""Large cells are compiled: the same numbers, reasons and best points as NumPy's, whatever the blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import symperf as sf
from symperf.codegen import tiers
from symperf.codegen.kernel import GridKernel
from symperf.sweep import best
from symperf.sweep import cell_kernel as engine
from symperf.sweep.axes import Zip
from symperf.sweep.cell_kernel import stores
from symperf.sweep.sweep import REASON, Sweep, base_of

if TYPE_CHECKING:
    from symperf.runs.training_run import Run

OUTPUTS = ["time", "memory", "mfu", "optimizer/adam"]


@pytest.fixture(scope="module")
def run() -> Run:
    """The main job of the README."""
    plan = sf.Plan(tp=8, pp=8, recompute="selective", sequence_parallel=True)
    return sf.training(sf.Model.load("gpt3-175b"), sf.System.load("a100-80gb-sxm"), plan, batch=64, sequence=2048)


def _whole(sweep: Sweep) -> dict[str, Any]:
    return sweep.compute(tuple(slice(0, n) for n in sweep.shape))


GRIDS: dict[str, dict[str, Any]] = {
    "plain": {
        "tp": [1, 2, 5, 8],
        "memory_bandwidth": np.linspace(1e12, 8e12, 37),
        "system": ["a100-80gb-sxm", "a100-40gb-sxm"],
        "price": [1e4, 2e4],
        "cards": [64, 96],
        "dp": "cards / (tp * pp)",
    },
    "zipped": {
        "sequence": [512, 2048, 4096],
        "shape": Zip(tp=[1, 2, 4, 8, 8], pp=[8, 4, 2, 1, 3], price=[2.5, 1e4, 1, 1e8, 3]),
        "matrix_efficiency": np.linspace(0.3, 0.9, 11),
        "pair": Zip(zero=[1, 0, 1, 0], micro_batch=[1, 2, 3, 1], dp=[2, 2, 4, 1]),
    },
    "fields": {
        "model": ["mixtral-8x7b"],
        "shape": Zip(tp=[2, 4, 2, 4], ep=[1, 1, 8, 3], expert_tp=[None, None, 1, 2]),
        "dp": [4, 8],
        "cp": [1, 2],
        "overlap_parameters": np.linspace(0, 1, 11),
        "price": [1e4, 2e4],
        "layers": Zip(recompute_layers=[None, 1, 3], recompute=["none", "full", "full"]),
    },
}


@pytest.mark.parametrize("name", GRIDS)
def test_compiled_is_numpy(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Numbers within 1e-13, reasons to the bit, undefined where they were; a part has the bits of the whole."""
    where = ["fits", "price + tp < 20000", "time < 60"]
    plain = Sweep(base_of(run), GRIDS[name], outputs=OUTPUTS, where=where)
    assert not plain.compiled
    expected = _whole(plain)
    monkeypatch.setattr(engine, "LEAST", 10)
    monkeypatch.setattr(engine, "best_tier", lambda *_, **__: "numba")
    sweep = Sweep(base_of(run), GRIDS[name], outputs=OUTPUTS, where=where)
    assert sweep.compiled
    found = _whole(sweep)
    assert sweep._kernels
    assert set(found) == set(expected)
    np.testing.assert_array_equal(found[REASON], expected[REASON])
    assert len(np.unique(found[REASON])) > 2
    for output in sweep.outputs:
        np.testing.assert_allclose(found[output], expected[output], rtol=1e-13)
    random = np.random.default_rng(1)
    for longest in (engine.LONGEST, 2):
        monkeypatch.setattr(engine, "LONGEST", longest)
        for _ in range(3):
            starts = [int(random.integers(0, n)) for n in sweep.shape]
            block = tuple(slice(s, int(random.integers(s, n)) + 1) for s, n in zip(starts, sweep.shape, strict=True))
            part = sweep.compute(block)
            for output, values in found.items():
                np.testing.assert_array_equal(part[output], values[block])


def test_what_is_compiled_follows_from_the_sweep(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that NumPy would take longer for than making a kernel takes; points that share nothing are so the first."""
    monkeypatch.setattr(engine, "LEAST", 90)
    monkeypatch.setattr(tiers, "COMPILING", 5e-5)
    monkeypatch.setattr(tiers, "PER_INSTRUCTION", 0.0)

    def compiled(*axes: int, **more: Any) -> bool:
        names = ("memory_bandwidth", "matrix_rate")[: len(axes)]
        numbers = {name: np.linspace(1e12, 2e12, n) for name, n in zip(names, axes, strict=True)}
        return Sweep(base_of(run), {**numbers, **more}, where=["x < 9"] if "'x'" in str(more) else []).compiled

    assert compiled(20, 10)
    assert not compiled(10, 9)
    assert not compiled(10, 9, recompute=["none", "full"])
    assert compiled(20, 10, recompute=["none", "full"])
    both = np.linspace(1e12, 2e12, 90)
    assert compiled(shape=Zip(memory_bandwidth=both, matrix_rate=both))
    assert not compiled(shape=Zip(memory_bandwidth=both[1:], matrix_rate=both[1:]))
    assert compiled(20, 10, shape=Zip(tp=[1, 2], x=[0, -1]))
    sweep = Sweep(base_of(run), {"tp": [2, 4]})
    assert not stores(sweep.axes, [1, 1], sweep.outputs, lambda: sweep.cell((0,)))


def _random_study(seed: int) -> tuple[dict[str, Any], list[str]]:
    random = np.random.default_rng(seed)
    pairs = [(int(t), int(p)) for t in (1, 2, 4, 8) for p in (1, 2, 3, 8)]
    chosen = [pairs[k] for k in random.permutation(len(pairs))[: random.integers(3, 12)]]
    choices: list[tuple[str, Any]] = [
        ("shape", Zip(tp=[t for t, _ in chosen], pp=[p for _, p in chosen])),
        ("memory_bandwidth", random.uniform(1e12, 4e12, 5)),
        ("micro_batch", [1, 2, 3]),
        ("recompute", ["none", "selective", "full"]),
        ("other", Zip(matrix_efficiency=random.uniform(0.2, 0.9, 4), overlap_tp=random.uniform(0, 1, 4))),
        ("system", ["a100-80gb-sxm", "h100-sxm"]),
        ("price", [1.0, 2.0]),
    ]
    kept = [choices[k] for k in sorted(random.permutation(len(choices))[:5])]
    axes = dict(choices[k] for k in random.permutation(len(choices)) if choices[k] in kept or choices[k][0] == "shape")
    return axes, ["fits"] if seed % 2 else ["fits", "tp * pp <= 16", "time < 100"]


@pytest.mark.parametrize("seed", range(6))
def test_best_by_kernel_is_best_by_numpy(run: Run, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The same points in the same order, the same values, the same counts by reason; of zipped axes too."""
    axes, where = _random_study(seed)
    asked: dict[str, Any] = {**axes, "where": where, "top": 12, "outputs": ["time", "memory"]}
    asked |= {"maximize": "mfu"} if seed % 3 else {"minimize": "time"}
    plain = run.best(**asked)
    monkeypatch.setattr(best, "COMPILED", 0)
    table = run.best(**asked)
    assert table.equals(plain)
    assert table.attrs == plain.attrs
    assert table.attrs["considered"] == table.attrs["feasible"] + sum(table.attrs["rejected"].values())


def test_best_by_machine_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled for real, with a zipped axis and an axis that nothing reads."""
    axes = {
        "shape": Zip(tp=[8, 4, 8], pp=[8, 8, 4]),
        "memory_bandwidth": np.linspace(1e12, 8e12, 50),
        "vpp": [1, 2],
        "price": [1.0, 2.0, 3.0],
    }
    plain = run.best(**axes, minimize="time", where=["fits"], top=9)
    monkeypatch.setattr(best, "COMPILED", 0)
    plain_run = GridKernel.run
    axes_run = []

    def numba(self: GridKernel, *args: Any, **named: Any) -> Any:
        axes_run.append(self.axes)
        return plain_run(self, *args, **{**named, "tier": "numba"})

    monkeypatch.setattr(GridKernel, "run", numba)
    table = run.best(**axes, minimize="time", where=["fits"], top=9)
    assert axes_run == [(("tp", "pp"), "memory_bandwidth", "axis 3")] * 2
    assert table.equals(plain)
    assert table.attrs == plain.attrs


def test_a_quantity_that_a_structure_lacks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is undefined there, though the point is feasible; it is never the best."""
    name = sorted(set(run.compiled.program.lets) - set(run.bind(recompute="none").compiled.program.lets))[0]
    axes = {"recompute": ["none", "selective"], "memory_bandwidth": [1e12, 2e12, 3e12]}
    monkeypatch.setattr(engine, "best_tier", lambda *_, **__: "numba")
    for least in (10**9, 0):
        monkeypatch.setattr(engine, "LEAST", max(least, 2))
        monkeypatch.setattr(best, "COMPILED", least)
        both = run.sweep(**axes, outputs=["time", name])
        assert (both.reason == 0).all()
        assert np.isfinite(both.time).all()
        assert np.isnan(both[name].sel(recompute="none")).all()
        assert both[name].values[1, 0] == pytest.approx(run.bind(memory_bandwidth=1e12).value(name), rel=1e-12)
        table = run.best(**axes, minimize=name, top=9)
        assert table.recompute.tolist() == ["selective"] * 3
        assert table.attrs["feasible"] == 6
        beside = run.best(**axes, minimize="time", outputs=[name], top=9)
        assert np.isnan(beside[name][beside.recompute == "none"]).all()
        assert np.isfinite(beside[name][beside.recompute == "selective"]).all()

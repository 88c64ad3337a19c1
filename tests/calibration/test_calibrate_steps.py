"""Constants from whole training steps, in the columns of `symperf validate`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.calibrate_cases import write

import symperf as sf

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("scipy")

TRUE = {"matrix_efficiency": 0.61, "scale_up_efficiency": 0.7}


def steps(true: dict[str, float], precision: str = "bf16") -> list[dict[str, Any]]:
    """Rows of Llama 2 7B on eight devices, with the step's time that `sf.training` gives under these constants."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    rows = []
    for at, (tp, batch, sequence) in enumerate(itertools.product((2, 4, 8), (32, 64), (2048, 4096))):
        plan = sf.Plan(tp=tp, dp=8 // tp, micro_batch=1, recompute="full", precision=precision)
        run = sf.training(model, system, plan, batch=batch, sequence=sequence, **true)
        row = {"id": f"MINE-{at}", "model": "llama-2-7b", "hw_key": "h100-sxm", "num_devices": 8, "tp": tp, "pp": 1}
        row |= {"dp": 8 // tp, "micro_batch_seqs": 1, "global_batch_seqs": batch, "seq_len_tokens": sequence}
        row |= {"recompute": "full", "precision": precision, "step_time_s": run.value("time")}
        if at % 2:  # every second row tells its rate instead
            row["tokens_per_s"] = batch * sequence / row.pop("step_time_s")
        rows.append(row)
    return rows


def test_constants_of_whole_steps(tmp_path: Path) -> None:
    """Times and rates of whole runs lead back to the constants; derivatives are those of the compiled step."""
    found = sf.calibrate(write(tmp_path / "training.csv", steps(TRUE)), "h100-sxm", fit=[*TRUE], prior=["100"])
    assert found.used == 12
    assert found.residuals[0].kind == "step"
    for name, value in TRUE.items():
        assert found.values[name] == pytest.approx(value, rel=1e-3), name
    assert np.abs([found.residuals[-1].worst]) < 1e-3


def test_what_products_in_8_bits_reach_is_a_symbol_of_its_own(tmp_path: Path) -> None:
    true = {"fp8_efficiency": 0.48, "scale_up_efficiency": 0.7}
    found = sf.calibrate(write(tmp_path / "training.csv", steps(true, "fp8")), "h100-sxm", fit=[*true], prior=["100"])
    for name, value in true.items():
        assert found.values[name] == pytest.approx(value, rel=1e-3), name


def test_steps_of_which_no_constant_may_come_are_told(tmp_path: Path) -> None:
    """Rows that are marked as test, and those faster than the devices' peak."""
    rows = steps(TRUE)
    rows[0]["use"] = "test"
    rows[2]["step_time_s"] /= 1000
    found = sf.calibrate(write(tmp_path / "training.csv", rows), "h100-sxm", fit=["matrix_efficiency"])
    assert found.used == 10
    assert sorted(found.left_out.values()) == [1, 1]
    assert any("marked as test" in reason for reason in found.left_out)
    assert any("1.3 times the peak" in reason for reason in found.left_out)


def test_steps_that_cannot_be_fitted_are_told(tmp_path: Path) -> None:
    """Rows without a time, and of models that are not known, are left out with the reason."""
    rows = steps(TRUE)
    for row in rows[:2]:
        row.pop("step_time_s", None)
        row.pop("tokens_per_s", None)
    rows[2]["model"] = "nothing-9b"
    found = sf.calibrate(write(tmp_path / "training.csv", rows), "h100-sxm", fit=["matrix_efficiency"])
    assert found.used == 9
    assert sum(found.left_out.values()) == 3
    rows[3]["tp"] = "two"
    with pytest.raises(sf.InputError, match=r"line 5: tp: found 'two'"):
        sf.calibrate(write(tmp_path / "training.csv", rows), "h100-sxm", fit=["matrix_efficiency"])

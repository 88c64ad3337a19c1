"""Constants of a library's collectives from a table of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.kernel_tables import write_table

from symperf.calibration.kernels.calibrate import calibrate_kernels
from symperf.calibration.kernels.stages import STAGES
from symperf.common.errors import InputError
from symperf.systems.kernel_constants import FAMILIES
from symperf.systems.system import System
from symperf.validation.kernels.score import score

if TYPE_CHECKING:
    from pathlib import Path

COLLECTIVES = [stage for stage in STAGES if stage.name == "collectives"]
SIZES = tuple(2**power for power in range(8, 29, 2))


def calls(folder: Path, device: str) -> Path:
    """A table of calls that take exactly as long as the catalogue's constants say."""
    rows = [
        {
            "framework": "TRTLLM",
            "version": "2",
            "system": device,
            "op_name": name,
            "kernel_source": "NCCL",
            "nccl_dtype": "half",
            "num_gpus": ranks,
            "message_size": size,
            "latency": 1e3,
        }
        for name in ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
        for ranks in (2, 4, 8)
        for size in SIZES
    ]
    predicted: dict[str, list[float]] = {}
    for group, found in score(write_table(folder, "nccl", rows)).items():
        predicted[group.operation.rpartition("/")[2]] = list(found.predicted)
    for row in rows:
        row["latency"] = predicted[str(row["op_name"])].pop(0) * 1e3
    return write_table(folder, "nccl", rows)


@pytest.mark.parametrize(("device", "system"), [("h100_sxm", "h100-sxm"), ("l40s", "l40s-shared-root")])
def test_the_constants_of_calls_are_found_again(tmp_path: Path, device: str, system: str) -> None:
    """By the stage of links of their own, or of those of the host, which has one constant more."""
    found = calibrate_kernels(calls(tmp_path, device), system, stages=COLLECTIVES)
    names = {*FAMILIES["domain"], *(FAMILIES["crowding"] if device == "l40s" else ())}
    assert set(found.constants) == names
    for name in names:
        assert found.constants[name].value == pytest.approx(System.load(system).value(name), rel=0.02)
    assert found.stages[0].after is not None
    assert found.stages[0].after.median < 0.005


def test_calls_of_one_server_set_no_constant_of_another(tmp_path: Path) -> None:
    """A table's l40s share a root complex; cards with links of another kind are not measured by it."""
    with pytest.raises(InputError, match="no stage has"):
        calibrate_kernels(calls(tmp_path, "l40s"), "l40s", stages=COLLECTIVES)

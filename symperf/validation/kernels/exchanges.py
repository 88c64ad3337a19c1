"""Tables of collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .formats import LeftOutError, width_of
from .forms import Form, Setting
from .operation import Operation, Sort

if TYPE_CHECKING:
    from ...systems.system import System
    from .operation import Arrays

LIBRARY: Final = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
}


def _nccl(texts: dict[str, str], _: str, system: System) -> Sort:
    name, dtype = texts["op_name"], texts["nccl_dtype"]
    if name not in LIBRARY:
        raise LeftOutError(f"{name}: no such collective")
    setting = Setting(networked(system), "NCCL")
    return Sort(name, dtype, Form(LIBRARY[name]), setting, {"width": width_of(dtype)})


def _custom(texts: dict[str, str], software: str, system: System) -> Sort:
    dtype, mode = texts["allreduce_dtype"], texts["kernel_source"].rpartition("_")[2].lower()
    setting = Setting(networked(system), software, own_all_reduce=True)
    label = mode if mode in ("eager", "graph") else ""
    return Sort(label, dtype, Form("all_reduce"), setting, {"width": width_of(dtype)})


def networked(system: System) -> System:
    """The system.

    Raises:
        LeftOutError: it describes no network.
    """
    if not system.tiers:
        raise LeftOutError(f"{system.name} describes no network")
    return system


def _message_sizes(rows: Arrays) -> Arrays:
    return {"row/elements": rows["message_size"], "row/width": rows["width"], "row/ranks": rows["num_gpus"]}


OPERATIONS: Final = {
    "nccl": Operation(
        ("op_name", "nccl_dtype"), ("num_gpus", "message_size"), ("message_size",), _nccl, _message_sizes
    ),
    "custom_allreduce": Operation(
        ("allreduce_dtype",), ("num_gpus", "message_size"), ("message_size",), _custom, _message_sizes
    ),
}
"""By the name of the table."""

"""What runs on a device holds of its memory beside tensors: by the runtime of the device, and by the training software.

A runtime is the key `runtime` of a system's file. A profile of a training software has a table `[memory]` with the same
names as that of a serving software.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..common.errors import InputError, nearest, quote
from .limits import Limits, Quantity
from .quantities import quantity_of
from .units import BYTES, FRACTION

if TYPE_CHECKING:
    from collections.abc import Mapping

_HELD: Final = Limits(BYTES, 1, 1e15, zero=True)
MEMORY_SYMBOLS: Final[Mapping[str, Limits]] = {
    "fragmentation": Limits(FRACTION, 1e-6, 1.0, zero=True),
    "context_bytes": _HELD,
    "collective_buffer_bytes": _HELD,
    "library_bytes": _HELD,
    "workspace_bytes": _HELD,
    "loss_working_bytes": Limits(BYTES, 1 / 16, 1000),
}
"""Symbols of memory beside tensors, and what values they may take."""
_MIB: Final = 2.0**20
_GIB: Final = 2.0**30
_FRAGMENTS: Final = Quantity(
    0.15,
    "PyTorch's caching allocator: 15 % on average of eight models with recomputation, offload and adapters (GMLake, "
    "arXiv 2401.08156, abstract), taken as a part of what comes and goes; low: expandable_segments; high: STWeaver, "
    "arXiv 2507.16274, abstract",
    0.0,
    0.43,
)
_CONTEXT: Final = Quantity(
    0.44 * _GIB,
    "CUDA context: geometric mean of five devices, as of vLLM (catalogue/stacks/vllm.toml): L40S 0.23 GiB to B200 0.70",
    0.23 * _GIB,
    0.70 * _GIB,
)
_NCCL: Final = Quantity(
    616 * _MIB,
    "a communicator of NCCL after its first all-reduce: middle of 544 MiB between 2 A100 and 688 MiB among more "
    "(https://github.com/NVIDIA/nccl/issues/964); low: 392 MiB (aiconfigurator, systems/b60.yaml at 66a01e1e)",
    392 * _MIB,
    688 * _MIB,
)
_CUBLAS: Final = Quantity(
    64 * _MIB,
    "workspaces of cuBLAS of 32 MiB on Hopper (8.1 MiB before) for each of two handles, forward and backward: PyTorch, "
    "aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize",
    16 * _MIB,
    128 * _MIB,
)
_HIP: Final = Quantity(
    0.35 * _GIB,
    "HIP context: 1 GiB with the first communicator, less 0.65 GiB of one "
    "(https://github.com/Lumi-supercomputer/LUMI-AI-Guide/issues/111)",
)
_RCCL: Final = Quantity(
    0.65 * _GIB,
    "a communicator of RCCL: 0.65 GiB (https://github.com/Lumi-supercomputer/LUMI-AI-Guide/issues/111)",
)
_PLANNED: Final = Quantity(
    0.0, "a compiler lays all buffers out before the step runs, in the capacity that it is given"
)
RUNTIMES: Final[Mapping[str, Mapping[str, Quantity]]] = {
    "cuda": {
        "fragmentation": _FRAGMENTS,
        "context_bytes": _CONTEXT,
        "collective_buffer_bytes": _NCCL,
        "library_bytes": _CUBLAS,
    },
    "rocm": {
        "fragmentation": _FRAGMENTS,
        "context_bytes": _HIP,
        "collective_buffer_bytes": _RCCL,
        "library_bytes": Quantity(64 * _MIB, "assumed: as cuBLAS", 0.0, 128 * _MIB),
    },
    "compiled": dict.fromkeys(("fragmentation", "context_bytes", "collective_buffer_bytes", "library_bytes"), _PLANNED),
}
"""What each runtime holds: CUDA and ROCm with PyTorch, and compilers of whole graphs (XLA, Neuron, Synapse)."""
DEFAULT_RUNTIME: Final = "cuda"


def runtime_of(found: object, label: str) -> str:
    """A runtime that a system's file names.

    Raises:
        InputError: it is none of them.
    """
    if isinstance(found, str) and found in RUNTIMES:
        return found
    near = nearest(found, RUNTIMES) if isinstance(found, str) else ""
    raise InputError(f"{label}: runtime: found {quote(found)}, expected one of {', '.join(RUNTIMES)}{near}")


def read_memory(table: object, label: str) -> dict[str, Quantity]:
    """The table `[memory]` of a training software's profile.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    where = f"{label}: memory"
    if not isinstance(table, dict):
        raise InputError(f"{where}: found {quote(table)}, expected a table of {', '.join(MEMORY_SYMBOLS)}")
    found: dict[str, Quantity] = {}
    for name, entry in table.items():
        if name not in MEMORY_SYMBOLS:
            raise InputError(f"{where}: unknown key {quote(name)}{nearest(name, MEMORY_SYMBOLS)}")
        found[name] = quantity_of(entry, MEMORY_SYMBOLS[name], where, name)
    return found


def memory_values(runtime: str) -> dict[str, tuple[float, str]]:
    """Value and provenance of the symbols that a runtime gives.

    >>> memory_values("compiled")["fragmentation"][0]
    0.0
    """
    return {name: (quantity.value, quantity.source) for name, quantity in RUNTIMES[runtime].items()}

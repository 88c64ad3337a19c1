"""Collectives of NCCL among the devices of this machine, where there are several."""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .clock import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = tuple(2**power for power in range(12, 31, 2))
NAMES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def measure_collectives(torch: Any, devices: int) -> Iterator[dict[str, Any]]:
    """Rows for 2, 4, 8, ... devices, and for all; processes of their own measure them."""
    for ranks in sorted({*(2**power for power in range(1, devices.bit_length()) if 2**power <= devices), devices}):
        context = torch.multiprocessing.get_context("spawn")
        results = context.SimpleQueue()
        with tempfile.TemporaryDirectory() as folder:
            meeting = (Path(folder) / "meeting").as_uri()
            started = torch.multiprocessing.spawn(_worker, (ranks, meeting, results), nprocs=ranks, join=False)
            try:
                while (row := results.get()) is not None:
                    yield row
                started.join()
            finally:
                for process in started.processes:
                    if process.is_alive():
                        process.terminate()


def _worker(rank: int, ranks: int, meeting: str, results: Any) -> None:
    torch = importlib.import_module("torch")
    torch.cuda.set_device(rank)
    distributed = torch.distributed
    try:
        distributed.init_process_group("nccl", init_method=meeting, rank=rank, world_size=ranks)
        clock = Clock(torch)
        for size in SIZES:
            for name in NAMES:
                call = _call(torch, name, size // 2 // ranks * ranks, ranks)
                distributed.barrier()
                timing = clock.fixed(call, 20 if size < 2**26 else 5)
                if rank == 0:
                    row = {"kind": "collective", "name": name, "dtype": "bf16", "ranks": ranks, "bytes": size}
                    results.put(row | vars(timing) | {"mode": "stream", "note": "one node, NCCL"})
    finally:
        if rank == 0:
            results.put(None)
        with contextlib.suppress(Exception):
            distributed.destroy_process_group()


def _call(torch: Any, name: str, count: int, ranks: int) -> Any:
    """A call on `count` elements: the larger of its buffers, as nccl-tests counts them."""
    distributed = torch.distributed
    whole, other = (torch.ones(count, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    part = torch.ones(count // ranks, dtype=torch.bfloat16, device="cuda")
    calls = {
        "all_reduce": lambda _: distributed.all_reduce(whole),
        "all_gather": lambda _: distributed.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda _: distributed.reduce_scatter_tensor(part, whole),
        "all_to_all": lambda _: distributed.all_to_all_single(other, whole),
    }
    return calls[name]

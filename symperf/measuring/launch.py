"""What a kernel costs that does nothing: in a queue, in a graph, and of the thread that launches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench


def jobs() -> list[Job]:
    """Chains of kernels on one element, each after the one before it, and launches of larger operations."""
    return [
        _job("kernel", "stream", "a kernel on one element, behind another in the queue", _empty),
        _job("kernel", "graph", "a kernel on one element, behind another in a CUDA graph", _empty),
        _job("kernel", "host", "launch of an in-place addition", _empty),
        _job("matmul", "stream", "a product of 16 x 16 matrices", _tiny),
        _job("matmul", "graph", "the same in a CUDA graph", _tiny),
        _job("matmul", "host", "launch of a product", _tiny),
    ]


def _job(name: str, mode: str, note: str, prepare: Callable[[Bench], Callable[[int], Any]]) -> Job:
    return Job({"kind": "launch", "name": name, "dtype": "bf16", "note": note}, prepare, mode)


def _empty(bench: Bench) -> Callable[[int], Any]:
    one = bench.torch.ones(1, dtype=bench.torch.bfloat16, device="cuda")
    return lambda _: one.add_(1)


def _tiny(bench: Bench) -> Callable[[int], Any]:
    torch = bench.torch
    left, right, result = (torch.ones((16, 16), dtype=torch.bfloat16, device="cuda") for _ in range(3))
    return lambda _: torch.mm(left, right, out=result)

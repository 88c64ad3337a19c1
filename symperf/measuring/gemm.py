"""Matrix products of real layers: activations times weights that come from device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .bench import WIDTHS, NotMeasuredError
from .jobs import Job, scatter, turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench

ROWS = tuple(2**power for power in range(15))
FEW_ROWS = (1, 8, 64, 512, 4096, 16384)
LAYERS = (  # hidden; outputs of qkv, of up (and gate), inputs of down
    (4096, 6144, 28672, 14336),  # Llama 3 8B
    (4096, 12288, 22016, 11008),  # Llama 2 7B
    (5120, 15360, 27648, 13824),  # Llama 2 13B
    (8192, 10240, 57344, 28672),  # Llama 2 and 3 70B
)
SQUARES = (1024, 2048, 4096, 8192, 16384)
PARTS = (1, 2, 4, 8)
DECODED = (1, 16)
"""Rows of a decode step, which runs in CUDA graphs."""
SAMPLE = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (8192, 8192), (7168, 8192), (8192, 3584))


def products() -> list[tuple[str, int, int]]:
    """Name, n and k of the projections of layers in 1 to 8 parts, and of square ones; each once."""
    found: dict[tuple[int, int], str] = {}
    for hidden, qkv, up, down in LAYERS:
        for parts in PARTS:
            for name, n, k in (
                ("qkv", qkv // parts, hidden),
                ("out", hidden, hidden // parts),
                ("up", up // parts, hidden),
                ("down", hidden, down // parts),
            ):
                found.setdefault((n, k), name)
    for size in SQUARES:
        found.setdefault((size, size), "square")
    return [(name, n, k) for (n, k), name in found.items()]


def jobs() -> list[Job]:
    """The grid in bf16; samples in fp8 and fp16; those of a decode step in CUDA graphs."""
    grid = [(name, m, n, k) for name, n, k in products() for m in ROWS]
    few = [(name, m, n, k) for name, n, k in products()[::2] for m in FEW_ROWS]
    some = [("sample", m, n, k) for n, k in SAMPLE for m in FEW_ROWS]
    thin = [(name, m, n, k) for name, n, k in products() for m in DECODED]
    found = [_job(*shape, "bf16", "stream") for shape in scatter(grid)]
    others = [_job(*shape, "fp8", "stream") for shape in scatter(few)]
    others += [_job(*shape, "bf16", "graph") for shape in scatter(thin)]
    others += [_job(*shape, "fp16", "stream") for shape in scatter(some)]
    return _mix(found, others)


def _mix(long: list[Job], short: list[Job]) -> list[Job]:
    """Both lists in their own order, such that they end together."""
    placed = [((at + 0.5) / len(part), job) for part in (long, short) for at, job in enumerate(part)]
    return [job for _, job in sorted(placed, key=lambda pair: pair[0])]


def _job(name: str, m: int, n: int, k: int, dtype: str, mode: str) -> Job:
    width = WIDTHS[dtype]
    size = width * (m * k + n * k) + max(width, 2) * m * n
    row = {"kind": "gemm", "name": name, "dtype": dtype, "m": m, "n": n, "k": k, "bytes": size}
    return Job(row, lambda bench: product(bench, m, n, k, dtype), mode)


def product(bench: Bench, m: int, n: int, k: int, dtype: str) -> Callable[[int], Any]:
    """X W^T as a linear layer computes it, (m, k) by (n, k); weights in turns.

    Raises:
        NotMeasuredError: it does not fit, or this PyTorch has no such product.
    """
    torch = bench.torch
    left = bench.views(dtype, 0, (m, k), rotate=False)[0]
    weights = [weight.t() for weight in bench.views(dtype, 1, (n, k))]
    bench.check_fits(2 * m * n)
    if dtype != "fp8":
        result = torch.empty((m, n), dtype=bench.dtype(dtype), device="cuda")
        return turns(lambda weight: torch.mm(left, weight, out=result), weights)
    if not hasattr(torch, "_scaled_mm"):
        raise NotMeasuredError(f"PyTorch {bench.version} has no product in fp8")
    one = torch.ones((), dtype=torch.float32, device="cuda")

    def scaled(weight: Any) -> Any:
        return torch._scaled_mm(left, weight, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)

    return turns(scaled, weights)

"""Power and clock under loads that last: what the device draws at rest, for bytes and for FLOPs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from . import attention, gemm, steps, streams
from .bench import WIDTHS
from .jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench

SIZE = 8192
STREAMED = 1 << 31
CACHED = 1 << 24
LOADED = ((32, 32, 128), (4, 4096))
IDLE = 0.02
THIN = (16, 28672, 8192)
LAYERS = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (57344, 8192), (8192, 28672))
"""Outputs and inputs of products of real layers, of `SIZE` rows."""


def jobs() -> list[Job]:
    """One load each, the ones that tell most first."""
    return [
        _job("idle", _idle, note="the device has nothing to do"),
        _product("bf16", "random numbers"),
        _stream("read", STREAMED),
        _product("fp8", "random numbers"),
        *(_product("bf16", "random numbers", n, k) for n, k in LAYERS),
        _stream("copy", STREAMED),
        _stream("l2_copy", CACHED),
        _job("wait", _wait, note="one multiprocessor counts cycles"),
        _product("bf16", "zeros"),
        *(_attention(way, backend) for backend in attention.BACKENDS for way in ("forward", "backward")),
        *(_product("fp8", "random numbers", n, k) for n, k in LAYERS[::2]),
        _product("bf16", "weights from memory", *THIN[1:], m=THIN[0]),
        _product("fp16", "random numbers"),
        *(_block(size) for size in steps.BLOCKS[:3]),
    ]


def _job(
    name: str,
    prepare: Callable[[Bench], Callable[[int], Any]],
    dtype: str = "",
    sizes: dict[str, Any] | None = None,
    note: str = "",
) -> Job:
    row = {"kind": "power", "name": name, "dtype": dtype, "note": note} | (sizes or {})
    return Job(row, prepare, "sustained")


def _idle(_: Bench) -> Callable[[int], Any]:
    return lambda _: time.sleep(IDLE)


def _wait(bench: Bench) -> Callable[[int], Any]:
    return lambda _: bench.torch.cuda._sleep(2_000_000)


def _stream(name: str, size: int) -> Job:
    sizes = {"bytes": size * streams.BUFFERS[name], "elements": size // 4}
    return _job(name, lambda bench: streams.stream(bench, name, size), "fp32", sizes)


def _product(dtype: str, note: str, n: int = SIZE, k: int = SIZE, m: int = SIZE) -> Job:
    width = WIDTHS[dtype]
    size = width * (m * k + n * k) + max(width, 2) * m * n
    sizes = {"m": m, "n": n, "k": k, "flops": 2 * m * n * k, "bytes": size}
    make = _zeros if note == "zeros" else gemm.product
    return _job(
        "gemm_zeros" if note == "zeros" else "gemm", lambda bench: make(bench, m, n, k, dtype), dtype, sizes, note
    )


def _zeros(bench: Bench, m: int, n: int, k: int, dtype: str) -> Callable[[int], Any]:
    torch = bench.torch
    made = {"dtype": bench.dtype(dtype), "device": "cuda"}
    left, right, result = (torch.zeros(shape, **made) for shape in ((m, k), (k, n), (m, n)))
    return lambda _: torch.mm(left, right, out=result)


def _attention(way: str, backend: str) -> Job:
    heads, (batch, sequence) = LOADED
    row = attention.row(way, heads, batch, sequence, sequence)
    row["flops"] = (4 if way == "forward" else 10) * batch * sequence**2 * heads[0] * heads[2] // 2
    for column in ("kind", "name", "dtype"):
        del row[column]
    name = way if backend == "flash" else f"{way}_{backend}"
    return _job(
        name, lambda bench: attention.causal(bench, *LOADED, way, backend), "bf16", row, f"causal, {backend} kernel"
    )


def _block(size: steps.Size) -> Job:
    made = steps.block(size, "forward+backward")
    return Job(made.row | {"kind": "power"}, made.prepare, "sustained")

"""Fused attention: causal over whole sequences, forward and backward, and one query each against a long cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .bench import NotMeasuredError
from .jobs import Job, scatter, turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench

HEADS = ((32, 32, 128), (32, 8, 128), (64, 8, 128), (32, 32, 64), (8, 8, 128), (8, 1, 128))
"""Query heads, key-value heads, width of a head."""
LONG = ((32, 512), (16, 1024), (8, 2048), (4, 4096), (2, 8192), (1, 16384))
SHAPES = (*LONG, (1, 32768), (1, 512), (1, 2048), (1, 8192))
"""Sequences, tokens of each."""
CACHES = tuple((batch, context) for batch in (1, 8, 32, 128) for context in (512, 2048, 8192, 32768, 131072))
MOST_CACHED = 1 << 33
BACKENDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION"}


def jobs() -> list[Job]:
    """Flash attention for all shapes; the kernels of cuDNN for some of them."""
    whole = [(heads, shape) for heads in HEADS for shape in SHAPES if shape[0] * shape[1] * heads[0] <= 2**21]
    long = [(heads, shape) for heads in HEADS[:2] for shape in LONG]
    found = [_whole(heads, shape, way, "flash") for heads, shape in whole for way in ("forward", "backward")]
    found += [_whole(heads, shape, way, "cudnn") for heads, shape in long for way in ("forward", "backward")]
    found += [_decode(heads, cache) for heads in HEADS for cache in CACHES if _cache_bytes(heads, cache) <= MOST_CACHED]
    return scatter(found)


def _cache_bytes(heads: tuple[int, int, int], cache: tuple[int, int]) -> int:
    return 4 * cache[0] * cache[1] * heads[1] * heads[2]


def row(name: str, heads: tuple[int, int, int], batch: int, sequence: int, context: int) -> dict[str, Any]:
    """The columns of a call, with the bytes of queries, keys, values and results, each once."""
    query, key_value, width = heads
    size = 2 * batch * width * (2 * sequence * query + 2 * context * key_value)
    return {
        "kind": "attention",
        "name": name,
        "dtype": "bf16",
        "batch": batch,
        "sequence": sequence,
        "context": context,
        "heads": query,
        "kv_heads": key_value,
        "head_dim": width,
        "bytes": size,
    }


def _whole(heads: tuple[int, int, int], shape: tuple[int, int], way: str, backend: str) -> Job:
    batch, sequence = shape
    name = way if backend == "flash" else f"{way}_{backend}"
    made = row(name, heads, batch, sequence, sequence) | {"note": f"causal, {backend} kernel"}
    if way == "backward":
        made["bytes"] *= 2  # the same tensors and their gradients
    return Job(made, lambda bench: causal(bench, heads, shape, way, backend))


def _decode(heads: tuple[int, int, int], cache: tuple[int, int]) -> Job:
    made = row("decode", heads, cache[0], 1, cache[1]) | {"note": "one query a sequence, flash kernel"}
    return Job(made, lambda bench: _cache(bench, heads, cache))


def tensor(bench: Bench, batch: int, tokens: int, heads: int, width: int, grad: bool = False) -> Any:
    """Heads of a projection's result: (batch, tokens, heads, width), seen as (batch, heads, tokens, width)."""
    made = bench.torch.randn((batch, tokens, heads, width), dtype=bench.torch.bfloat16, device="cuda")
    seen = made.transpose(1, 2)
    return seen.requires_grad_(True) if grad else seen


def attend(bench: Bench, backend: str, grouped: bool, causal: bool) -> Callable[..., Any]:
    """Attention of queries, keys and values by one kernel.

    Raises:
        NotMeasuredError: this PyTorch cannot choose it.
    """
    torch = bench.torch
    attention: Any = getattr(torch.nn, "attention", None)
    chosen = getattr(getattr(attention, "SDPBackend", None), BACKENDS[backend], None)
    if chosen is None:
        raise NotMeasuredError(f"PyTorch {bench.version} cannot choose the kernel of {backend}")
    options: dict[str, Any] = {"enable_gqa": True} if grouped else {}

    def call(query: Any, key: Any, value: Any) -> Any:
        with attention.sdpa_kernel(chosen):
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal, **options)

    return call


def causal(
    bench: Bench, heads: tuple[int, int, int], shape: tuple[int, int], way: str, backend: str
) -> Callable[[int], Any]:
    """Attention of whole sequences, forward or backward."""
    query_heads, key_value, width = heads
    batch, sequence = shape
    bench.check_fits(16.0 * batch * sequence * width * (query_heads + key_value))
    back = way == "backward"
    query = tensor(bench, batch, sequence, query_heads, width, back)
    key, value = (tensor(bench, batch, sequence, key_value, width, back) for _ in range(2))
    run = attend(bench, backend, query_heads != key_value, True)
    if not back:
        return lambda _: run(query, key, value)
    result = run(query, key, value)
    gradient = tensor(bench, batch, sequence, query_heads, width)
    grad = bench.torch.autograd.grad
    return lambda _: grad(result, (query, key, value), gradient, retain_graph=True)


def _cache(bench: Bench, heads: tuple[int, int, int], cache: tuple[int, int]) -> Callable[[int], Any]:
    query_heads, key_value, width = heads
    batch, context = cache
    count = min(bench.rotation(_cache_bytes(heads, cache)), 64)
    bench.check_fits(_cache_bytes(heads, cache) * count)
    query = tensor(bench, batch, 1, query_heads, width)
    caches = [tuple(tensor(bench, batch, context, key_value, width) for _ in range(2)) for _ in range(count)]
    run = attend(bench, "flash", query_heads != key_value, False)
    return turns(lambda pair: run(query, *pair), caches)

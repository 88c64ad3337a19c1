"""Transformer blocks that generate a token for each sequence, in a CUDA graph: a decode step of a part of the heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import attention
from .jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench

LAYERS = 4
CONTEXT = 512
BATCHES = (1, 16)
PARTS = (1, 2, 4, 8)
MODELS = ((4096, 11008, 32, 32), (5120, 13824, 40, 40), (8192, 28672, 64, 8))
"""Hidden, inner width of the MLP, query heads and key-value heads: Llama 2 7B, 13B, 70B."""
HEAD_DIM = 128


@dataclass(frozen=True)
class Part:
    """What one device of several has of a block; the residual stream is whole."""

    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    batch: int

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Outputs and inputs of the products: qkv, out, gate with up, down."""
        joined = HEAD_DIM * (self.heads + 2 * self.kv_heads)
        out = (self.hidden, HEAD_DIM * self.heads)
        return (joined, self.hidden), out, (2 * self.ffn, self.hidden), (self.hidden, self.ffn)


def jobs() -> list[Job]:
    """Blocks of three models in 1 to 8 parts, of one and of several sequences."""
    return [
        _job(Part(hidden, ffn // parts, heads // parts, kv_heads // parts, batch))
        for batch in BATCHES
        for parts in PARTS
        for hidden, ffn, heads, kv_heads in MODELS
    ]


def _job(part: Part) -> Job:
    row: dict[str, Any] = {"kind": "step", "name": "llama-block decode", "dtype": "bf16", "layers": LAYERS}
    row |= {"batch": part.batch, "sequence": 1, "context": CONTEXT, "head_dim": HEAD_DIM}
    row |= {key: getattr(part, key) for key in ("heads", "kv_heads", "hidden", "ffn")}
    row["note"] = "norm, qkv, flash attention, out, sum, norm, gate with up, silu, product, down, sum; no rotary"
    return Job(row, lambda bench: _call(bench, part), "graph")


def _call(bench: Bench, part: Part) -> Callable[[int], Any]:
    torch = bench.torch
    functional = torch.nn.functional
    weights = [
        [torch.randn(shape, dtype=torch.bfloat16, device="cuda") * shape[1] ** -0.5 for shape in part.shapes]
        for _ in range(LAYERS)
    ]
    gain = torch.ones(part.hidden, dtype=torch.bfloat16, device="cuda")
    caches = [
        [attention.tensor(bench, part.batch, CONTEXT, part.kv_heads, HEAD_DIM) for _ in range(2)] for _ in range(LAYERS)
    ]
    attend = attention.attend(bench, "flash", part.heads != part.kv_heads, False)
    given = torch.randn((part.batch, 1, part.hidden), dtype=torch.bfloat16, device="cuda")

    def block(stream: Any, layer: int) -> Any:
        qkv, out, up, down = weights[layer]
        joined = functional.linear(functional.rms_norm(stream, (part.hidden,), gain), qkv)
        heads = joined.view((part.batch, 1, part.heads + 2 * part.kv_heads, HEAD_DIM)).transpose(1, 2)
        found = attend(heads[:, : part.heads], *caches[layer]).transpose(1, 2)
        stream = stream + functional.linear(found.reshape((part.batch, 1, part.heads * HEAD_DIM)), out)
        joined = functional.linear(functional.rms_norm(stream, (part.hidden,), gain), up)
        gate, inner = joined[..., : part.ffn], joined[..., part.ffn :]
        return stream + functional.linear(functional.silu(gate) * inner, down)

    def step(_: int) -> Any:
        stream = given
        for layer in range(LAYERS):
            stream = block(stream, layer)
        return stream

    return step

"""Transformer blocks and a whole training step in eager PyTorch: what a user's own measurement looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import decoding
from .jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench


@dataclass(frozen=True)
class Size:
    """A stack of blocks; `gated`: RMS norm, rotary positions, SwiGLU; else layer norm, biases, GELU."""

    name: str
    gated: bool
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    layers: int
    batch: int
    sequence: int
    vocabulary: int = 0

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.hidden // self.heads

    @property
    def parameters(self) -> int:
        """Weights of the blocks and of the tied embedding, near enough to tell whether they fit."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return self.layers * (attention + (3 if self.gated else 2) * self.hidden * self.ffn) + (
            self.vocabulary * self.hidden
        )


BLOCKS = (
    Size("llama-block", True, 4096, 14336, 32, 8, 4, 1, 4096),
    Size("gpt-block", False, 6144, 24576, 64, 64, 2, 4, 2048),
    Size("llama-block", True, 8192, 28672, 64, 8, 2, 1, 4096),
    Size("gpt-block", False, 2048, 8192, 16, 16, 4, 8, 1024),
)
WHOLE = (
    Size("llama-step", True, 2048, 8192, 32, 8, 16, 4, 2048, 128256),
    Size("gpt-step", False, 4096, 16384, 32, 32, 8, 4, 2048, 51200),
)


def jobs() -> list[Job]:
    """Blocks forward, and forward with backward; whole steps with the optimizer; blocks that generate tokens."""
    found = [block(size, way) for size in BLOCKS for way in ("forward", "forward+backward")]
    return [*found, *(block(size, "training step") for size in WHOLE), *decoding.jobs()]


def block(size: Size, way: str) -> Job:
    """A stack forward, with its backward pass, or a whole training step."""
    row: dict[str, Any] = {"kind": "step", "name": f"{size.name} {way}", "dtype": "bf16"}
    for key in ("batch", "sequence", "heads", "kv_heads", "head_dim", "hidden", "ffn", "layers"):
        row[key] = getattr(size, key)
    row["context"] = size.sequence
    row["note"] = "eager, default fused attention, no dropout" + (", rotary in separate kernels" if size.gated else "")
    if size.vocabulary:
        row["vocabulary"] = size.vocabulary
        row["note"] += ", bf16 weights tied, fp32 masters, fused Adam over fp32 copies"
    return Job(row, lambda bench: _call(bench, size, way), "eager")


def _call(bench: Bench, size: Size, way: str) -> Callable[[int], Any]:
    tokens = size.batch * size.sequence
    saved = 2.0 * tokens * size.layers * (12 * size.hidden + 4 * size.ffn) + 8.0 * tokens * size.vocabulary
    bench.check_fits(18.0 * size.parameters + saved)
    stack = BlockStack(bench, size)
    if way == "training step":
        return stack.training_step()
    shape = (size.batch, size.sequence, size.hidden)
    given = bench.torch.randn(shape, dtype=bench.torch.bfloat16, device="cuda", requires_grad=way != "forward")
    if way == "forward":
        return lambda _: stack.without_gradients(given)
    gradient = bench.torch.randn(shape, dtype=bench.torch.bfloat16, device="cuda")
    wanted = [given, *stack.weights]
    grad = bench.torch.autograd.grad
    return lambda _: grad(stack.forward(given), wanted, gradient)


class BlockStack:
    """Weights of the blocks, and their forward pass."""

    def __init__(self, bench: Bench, size: Size) -> None:
        self._torch = bench.torch
        self._size = size
        self.weights: list[Any] = []
        inner = size.heads * size.head_dim
        joined = inner + 2 * size.kv_heads * size.head_dim
        shapes = [(joined, size.hidden), (size.hidden, inner), (size.ffn, size.hidden), (size.hidden, size.ffn)]
        self._blocks = []
        for _ in range(size.layers):
            block = {"gains": [self._weight((size.hidden,)) for _ in range(2)]}
            block["linear"] = [self._weight(shape) for shape in [*shapes, *([shapes[2]] if size.gated else [])]]
            block["biases"] = [] if size.gated else [self._weight((shape[0],)) for shape in [(size.hidden,), *shapes]]
            self._blocks.append(block)
        turn = (1, 1, size.sequence, size.head_dim)
        self._turns = [self._torch.randn(turn, dtype=self._torch.bfloat16, device="cuda") for _ in range(2)]

    def _weight(self, shape: tuple[int, ...]) -> Any:
        made = self._torch.randn(shape, dtype=self._torch.bfloat16, device="cuda") * shape[-1] ** -0.5
        weight = made.requires_grad_(True)
        self.weights.append(weight)
        return weight

    def forward(self, stream: Any) -> Any:
        """(batch, sequence, hidden) through all blocks."""
        block_of = self._gated if self._size.gated else self._plain
        for block in self._blocks:
            stream = block_of(stream, block)
        return stream

    def without_gradients(self, stream: Any) -> Any:
        """The same, as in inference."""
        with self._torch.no_grad():
            return self.forward(stream)

    def _plain(self, stream: Any, block: dict[str, list[Any]]) -> Any:
        functional = self._torch.nn.functional
        (first, second), (qkv, out, up, down) = block["gains"], block["linear"]
        shift, *biases = block["biases"]
        inner = functional.layer_norm(stream, (self._size.hidden,), first, shift)
        inner = self._attention(functional.linear(inner, qkv, biases[0]))
        stream = stream + functional.linear(inner, out, biases[1])
        inner = functional.layer_norm(stream, (self._size.hidden,), second, shift)
        inner = functional.gelu(functional.linear(inner, up, biases[2]), approximate="tanh")
        return stream + functional.linear(inner, down, biases[3])

    def _gated(self, stream: Any, block: dict[str, list[Any]]) -> Any:
        functional = self._torch.nn.functional
        (first, second), (qkv, out, up, down, gate) = block["gains"], block["linear"]
        inner = functional.rms_norm(stream, (self._size.hidden,), first)
        stream = stream + functional.linear(self._attention(functional.linear(inner, qkv)), out)
        inner = functional.rms_norm(stream, (self._size.hidden,), second)
        inner = functional.silu(functional.linear(inner, gate)) * functional.linear(inner, up)
        return stream + functional.linear(inner, down)

    def _attention(self, joined: Any) -> Any:
        size = self._size
        parts = joined.view((size.batch, size.sequence, size.heads + 2 * size.kv_heads, size.head_dim)).transpose(1, 2)
        query, key = parts[:, : size.heads], parts[:, size.heads : size.heads + size.kv_heads]
        value = parts[:, size.heads + size.kv_heads :]
        if size.gated:
            query, key = self._rotated(query), self._rotated(key)
        options: dict[str, Any] = {"enable_gqa": True} if size.heads != size.kv_heads else {}
        attend = self._torch.nn.functional.scaled_dot_product_attention
        result = attend(query, key, value, is_causal=True, **options)
        return result.transpose(1, 2).reshape((size.batch, size.sequence, size.heads * size.head_dim))

    def _rotated(self, heads: Any) -> Any:
        half = self._size.head_dim // 2
        crossed = self._torch.cat((-heads[..., half:], heads[..., :half]), dim=-1)
        return heads * self._turns[0] + crossed * self._turns[1]

    def training_step(self) -> Callable[[int], Any]:
        """Embedding, blocks, loss, backward, and Adam over fp32 masters that are copied back."""
        torch, size = self._torch, self._size
        functional = torch.nn.functional
        embedding = self._weight((size.vocabulary, size.hidden))
        tokens = torch.randint(size.vocabulary, (size.batch, size.sequence), device="cuda")
        weights = self.weights
        masters = [weight.detach().float() for weight in weights]
        optimizer = torch.optim.Adam(masters, lr=1e-5, fused=True)

        def step(_: int) -> None:
            logits = functional.linear(self.forward(functional.embedding(tokens, embedding)), embedding)
            loss = functional.cross_entropy(logits.view((-1, size.vocabulary)), tokens.view(-1))
            loss.backward()
            for weight, master in zip(weights, masters, strict=True):
                master.grad = weight.grad.float()
                weight.grad = None
            optimizer.step()
            with torch.no_grad():
                torch._foreach_copy_(weights, masters)

        return step

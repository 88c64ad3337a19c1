"""A use of a block whose weights several layers share as operations (Zamba2): it reads the embedding beside the stream.

Adapters are narrow and whole on every device up to their rank, and split by columns from there; the projection of the
result is whole and runs over a device's own part of the stream. Its result is added to what the next layer reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import elementwise as ew
from ...formulas.language.symbols import activation_bytes, adapter_rank, hidden_size
from ...models import shared_blocks as block
from ...operations.shapes import FLOPS_PER_ELEMENT
from .transformer import Decoder

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .transformer import Mixer


class SharedBlock(Decoder):
    """Attention and MLP without additions to the stream between them."""

    @property
    def read_width(self) -> Any:
        """Stream and embedding side by side."""
        return block.read_width(self.kind)

    @property
    def read_message(self) -> Any:
        """Bytes of both, where they are gathered."""
        return 2 * self.stream_message

    @property
    def adapters(self) -> tuple[Any, Any]:
        """Features of the narrow side of the adapters of attention: all of them, and of one."""
        return 3 * adapter_rank, adapter_rank

    def mixer_forward(self, beside: tuple[Mixer, ...], phase: str) -> Operations:
        """The embedding beside the stream, their norm, and attention."""
        (mixer,) = beside
        return [
            self.side_by_side(mixer.path(f"join/{phase}")),
            self.norm_of(mixer.path(f"norm/{phase}"), 2 * self.stream_elements),
            self.gather(mixer.path(f"gather/{phase}"), self.read_message),
            *self.attention_adapter(mixer, phase),
            *mixer.forward(phase),
            self.linear(mixer.path("output"), phase, mixer.output_width, hidden_size),
            self.reduce(mixer.path(f"reduce/{phase}")),
        ]

    def mixer_backward(self, beside: tuple[Mixer, ...]) -> Operations:
        """Their gradients: those of the embedding are summed over the uses."""
        (mixer,) = beside
        return [
            self.gather(mixer.path("gather/backward")),
            self.row_backward(mixer.path("output"), mixer.output_width, hidden_size),
            *self.attention_adapter(mixer, "backward"),
            *mixer.backward(),
            self.norm_gradient_of(mixer.path("norm/backward"), 2 * self.stream_elements),
            self.addition(mixer.path("stream/backward")),
            self.addition(mixer.path("embedding/backward")),
        ]

    def side_by_side(self, path: str) -> Op:
        """The stream and the embedding, copied to one tensor."""
        n = 2 * self.stream_elements
        return self.kernels.stream(path, ew.activation_function_bytes(n, activation_bytes), n, 0)

    def attention_adapter(self, mixer: Mixer, phase: str) -> Operations:
        """The adapters of queries, keys and values, where the model has them."""
        if "adapted_attention" not in self.kind.traits:
            return []
        return self.adapter(mixer.path("adapter"), phase, self.read_width, self.adapters, mixer.projected)  # type: ignore[union-attr]

    def adapter(self, path: str, phase: str, features: Any, narrow: tuple[Any, Any], results: Any) -> Operations:
        """Products into an adapter's rank and out of it, and the addition; or their gradients.

        Args:
            path: of the adapter.
            phase: of the pass.
            features: that it reads.
            narrow: features of all the ranks, and of the one that a result needs.
            results: on the device.
        """
        kernels, tokens, (ranks, rank) = self.kernels, self.shapes.tokens, narrow
        if phase != "backward":
            n = tokens * results
            added = kernels.stream(f"{path}/sum/{phase}", ew.residual_bytes(n, activation_bytes), n,
                                   FLOPS_PER_ELEMENT["residual"])  # fmt: skip
            return [
                self.linear(f"{path}/down", phase, features, ranks),
                self.linear(f"{path}/up", phase, rank, results),
                added,
            ]
        return [
            kernels.matmul(f"{path}/up/backward_input", tokens, rank, results),
            kernels.weight_gradient(f"{path}/up/backward_weight", tokens, rank, results),
            kernels.all_reduce(f"{path}/reduce/backward", tokens * ranks * activation_bytes, self.group),
            kernels.matmul(f"{path}/down/backward_input", tokens, features, ranks),
            kernels.weight_gradient(f"{path}/down/backward_weight", tokens, features, ranks),
        ]

    def mlp_adapter(self, phase: str) -> Operations:
        """The adapter of the MLP's first product."""
        path = f"{self.root}/mlp/adapter"
        return self.adapter(path, phase, hidden_size, (adapter_rank, adapter_rank), self.up_width)

    def feed_forward(self, phase: str) -> Operations:
        """A norm, the MLP with its adapter, the projection of its result, and the addition to what is read next."""
        root, own = f"{self.root}/mlp", self.shapes.stream_tokens
        return [
            self.norm(f"{root}/norm", phase),
            *self.mlp_adapter(phase),
            *self.mlp_forward(phase),
            self.linear(f"{root}/joining", phase, hidden_size, hidden_size, own),
            self.addition(f"{root}/sum/{phase}"),
        ]

    def feed_backward(self) -> Operations:
        """Their gradients."""
        root, own = f"{self.root}/mlp", self.shapes.stream_tokens
        return [
            self.input_gradient(f"{root}/joining", hidden_size, hidden_size, own),
            self.kernels.weight_gradient(f"{root}/joining/backward_weight", own, hidden_size, hidden_size),
            *self.mlp_backward(),
            *self.mlp_adapter("backward"),
            self.norm_backward(f"{root}/norm"),
        ]

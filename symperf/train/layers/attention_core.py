"""The core of softmax attention as operations: scores, softmax and weighted values, or the flash kernel.

A flash kernel skips what its mask hides: later keys, and those outside of a window or a chunk; eager attention computes
and stores every pair of a query and a key.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...formulas.kernels import attention as att
from ...formulas.kernels import documents, windows
from ...formulas.kernels import elementwise as ew
from ...formulas.language.symbols import (
    activation_bytes,
    document_length,
    mask_bytes,
    micro_batch,
    sliding_window,
    statistic_bytes,
)
from ...models import attention_widths as widths
from ...operations.schedule import Op, Sequence, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from .context import ContextAttention

if TYPE_CHECKING:
    from .transformer import Decoder

Operations = list["Op | Sequence | None"]


class AttentionCore:
    """The attention of one kind of layer, over its own tokens.

    Args:
        layer: that it belongs to.
        name: of its block in paths.
    """

    latent = False
    name = "attention"

    def __init__(self, layer: Decoder) -> None:
        self.layer, self.shapes, self.kernels = layer, layer.shapes, layer.kernels
        self.structure, self.architecture, self.kind = layer.structure, layer.architecture, layer.kind
        self.queries = self.keys = layer.shapes.length

    def path(self, name: str) -> str:
        """The path of an operation of the attention block."""
        return f"{self.layer.root}/{self.name}/{name}"

    @property
    def key_width(self) -> Any:
        """Width of a key."""
        return self.shapes.head_dim

    @property
    def value_width(self) -> Any:
        """Width of a value."""
        return widths.core_value_width(self.kind)

    @property
    def output_width(self) -> Any:
        """Features that the output projection reads."""
        return self.shapes.heads * widths.value_width(self.kind)

    @property
    def masked(self) -> bool:
        """Whether a query sees only itself and what is before it."""
        return not self.kind.encoder

    @property
    def windowed(self) -> bool:
        """Whether a query sees a window only."""
        return self.kind.mixer == "local_attention"

    # --- what the flash kernel needs

    @property
    def seen(self) -> Any:
        """Keys of the sequence, or of the document, in which a query is."""
        return document_length if self.structure.documents else self.keys

    @property
    def work(self) -> Any:
        """FLOPs of the forward flash kernel over whole sequences: the pairs that the mask leaves."""
        heads, width = self.shapes.heads, widths.core_width(self.kind)
        if self.structure.documents:
            pairs = documents.packed_pairs(self.queries, document_length, self._document_pairs())
            return windows.masked_attention_flops(micro_batch, pairs, heads, width)
        if not self.masked and self.windowed:
            pairs = windows.two_sided_pairs(self.queries, sliding_window)
            return windows.masked_attention_flops(micro_batch, pairs, heads, width)
        if not self.masked:
            return att.attention_flops(micro_batch, self.queries, self.keys, heads, width)
        if self.windowed:
            count = windows.chunk_pairs if self.architecture.chunked_attention else windows.window_pairs
            return windows.masked_attention_flops(micro_batch, count(self.queries, sliding_window), heads, width)
        return att.flash_flops(micro_batch, self.queries, heads, width)

    def _document_pairs(self) -> Any:
        """Pairs that the mask leaves of a document as long as that of the mean token."""
        length = document_length
        if self.windowed and not self.masked:
            return windows.two_sided_pairs(length, sliding_window)
        if self.windowed:
            count = windows.chunk_pairs if self.architecture.chunked_attention else windows.window_pairs
            return count(length, sliding_window)
        return windows.causal_pairs(length) if self.masked else length**2

    def traffic(self, queries: Any, keys: Any, heads: Any, key_value_heads: Any) -> Any:
        """Bytes of the forward flash kernel."""
        # Keys in the place of queries: as many more heads of them.
        shared = key_value_heads if keys == queries else key_value_heads * keys / queries
        width = widths.core_width(self.kind)
        biases = widths.distance_bytes(self.kind, micro_batch * queries * heads)
        return biases + att.flash_bytes(micro_batch, queries, heads, shared, width, activation_bytes, statistic_bytes)

    @property
    def demand(self) -> tuple[Any, Any]:
        """Work and traffic of the forward flash kernel."""
        shapes = self.shapes
        return self.work, self.traffic(self.queries, self.keys, shapes.heads, shapes.key_value_heads)

    # --- operations

    @cached_property
    def parts(self) -> ContextAttention | None:
        """The core over parts of a sequence, if sequences are in parts."""
        return None if self.structure.context == "none" else ContextAttention(self)

    def core_forward(self, phase: str) -> Sequence:
        """Scores, softmax, dropout and weighted values; or the flash kernel."""
        if self.parts:
            return self.parts.forward(phase)
        if self.structure.attention == "flash":
            return sequence(self.kernels.flash(self.path(f"flash/{phase}"), *self.demand))
        queries, keys = self.queries, self.keys
        return sequence(
            self.product(f"scores/{phase}", queries, keys, self.key_width),
            self.bias(phase),
            self.softmax(phase),
            self.dropout(phase),
            self.product(f"context/{phase}", queries, self.value_width, keys),
        )

    def core_backward(self) -> Sequence:
        """The core's gradients: of values and probabilities, through the softmax, of queries and keys."""
        if self.parts:
            return self.parts.backward()
        if self.structure.attention == "flash":
            return sequence(self.kernels.flash_backward(self.path("flash/backward"), *self.demand))
        queries, keys = self.queries, self.keys
        return sequence(
            self.product("context/backward_scores", queries, keys, self.value_width),
            self.product("context/backward_values", keys, self.value_width, queries),
            self.dropout("backward"),
            self.softmax("backward"),
            self.bias("backward"),
            self.product("scores/backward_queries", queries, self.key_width, keys),
            self.product("scores/backward_keys", keys, self.key_width, queries),
        )

    def recomputed(self) -> Sequence | None:
        """The core once more, where only that is computed again."""
        return self.core_forward("recompute") if "core_attn" in self.structure.modules else None

    def product(self, name: str, rows: Any, columns: Any, inner: Any) -> Op:
        """One of the products with the scores: they are its result, or one of its factors."""
        groups = micro_batch * self.shapes.heads
        return self.kernels.matmul(self.path(f"core/{name}"), rows, columns, inner, groups, right=activation_bytes)

    @property
    def scores(self) -> Any:
        """Scores on the device."""
        square = att.score_elements(micro_batch, self.queries, self.shapes.heads)
        return square if self.keys == self.queries else square * self.keys / self.queries

    def softmax(self, phase: str) -> Op:
        """The fused softmax over the scores, or its gradient."""
        backward = phase == "backward"
        traffic = (att.softmax_backward_bytes if backward else att.softmax_bytes)(self.scores, activation_bytes)
        work = FLOPS_PER_ELEMENT["softmax backward" if backward else "softmax"]
        return self.kernels.stream(self.path(f"core/softmax/{phase}"), traffic, self.scores, work)

    def dropout(self, phase: str) -> Op | None:
        """The dropout on the probabilities."""
        if not self.structure.dropout:
            return None
        traffic = ew.dropout_bytes(self.scores, activation_bytes, mask_bytes)
        return self.kernels.stream(
            self.path(f"core/dropout/{phase}"), traffic, self.scores, FLOPS_PER_ELEMENT["dropout"]
        )

    def bias(self, phase: str) -> Op | None:
        """Learned biases of relative positions, added to the scores; or their gradients, summed over the layers."""
        if self.architecture.positions != "relative" or self.name == "cross":
            return None
        traffic = ew.residual_bytes(self.scores, activation_bytes)
        return self.kernels.stream(self.path(f"core/bias/{phase}"), traffic, self.scores, FLOPS_PER_ELEMENT["residual"])

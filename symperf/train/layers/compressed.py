"""Attention of a layer to a window and to compressed entries as operations (DeepSeek-V4), forward and backward.

Heads and groups of the output are dealt to a tensor-parallel group; narrow projections, the key, compressors and
indexers are whole on every device. Entries are pooled in one kernel, which is computed again in the backward pass.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...formulas.kernels import attention as att
from ...formulas.kernels import compressed_attention as comp
from ...formulas.kernels import elementwise as ew
from ...formulas.kernels import selected_attention as sel
from ...formulas.kernels import windows
from ...formulas.language.symbols import (
    activation_bytes,
    compress_ratio,
    head_dim,
    hidden_size,
    index_head_dim,
    micro_batch,
    output_groups,
    output_lora_rank,
    q_lora_rank,
    sequence,
    sliding_window,
    statistic_bytes,
    tp,
)
from ...formulas.mathematics.series import excess
from ...models import sparse_counts
from ...operations.groups import context_group, parts
from ...operations.schedule import sequence as in_sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from .indexer import Indexer
from .selected import SelectedKeys

if TYPE_CHECKING:
    from ...operations.schedule import Op, Sequence
    from .attention_core import Operations
    from .transformer import Decoder


class CompressedAttention(SelectedKeys):
    """The compressed attention of one kind of layer."""

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.width = layer.shapes.heads * head_dim
        self.groups = output_groups / tp
        self.series = sparse_counts.compressor_series(layer.kind)

    @cached_property
    def indexer(self) -> Indexer | None:
        """The indexer of layers that select entries."""
        return EntryIndexer(self) if "selected_entries" in self.kind.traits else None

    @property
    def output_width(self) -> Any:
        """Features that the output projection reads: those of each group of heads."""
        return self.groups * output_lora_rank

    def forward(self, phase: str) -> Operations:
        """Queries and keys, entries, the core, and the first projection of its results."""
        layer, tokens = self.layer, self.shapes.tokens
        narrow = q_lora_rank + head_dim
        return [
            layer.linear(self.path("query_key_down"), phase, hidden_size, narrow),
            layer.norm_of(f"{self.path('narrow_norm')}/{phase}", tokens * narrow),
            layer.linear(self.path("query_up"), phase, q_lora_rank, self.width),
            layer.norm_of(f"{self.path('head_norm')}/{phase}", tokens * self.width),
            self.rotary(f"rotary/{phase}", self.width + head_dim),
            *(self.compressor("compress", phase, head_dim) if self.series else ()),
            *(self.indexer.forward(phase) if self.indexer else ()),
            self.core_forward(phase),
            self.rotary(f"derotate/{phase}", self.width),
            self.kernels.matmul(self.path(f"group_output/{phase}"), tokens, *self.grouped),
        ]

    def backward(self) -> Operations:
        """Their gradients; the input is gathered, and its gradient summed, once."""
        layer, tokens = self.layer, self.shapes.tokens
        narrow, (columns, inner, groups) = q_lora_rank + head_dim, self.grouped
        path = self.path("group_output")
        return [
            self.kernels.matmul(f"{path}/backward_input", tokens, inner, columns, groups),
            self.kernels.weight_gradient(f"{path}/backward_weight", tokens, inner, columns, groups),
            self.rotary("derotate/backward", self.width),
            self.recomputed(),
            self.core_backward(),
            *(self.indexer.backward() if self.indexer else ()),
            *(self.compressor_backward("compress", head_dim) if self.series else ()),
            self.rotary("rotary/backward", self.width + head_dim),
            layer.norm_gradient_of(f"{self.path('head_norm')}/backward", tokens * self.width),
            layer.column_backward(self.path("query_up"), q_lora_rank, self.width, shared=True),
            layer.norm_gradient_of(f"{self.path('narrow_norm')}/backward", tokens * narrow),
            layer.column_backward(self.path("query_key_down"), hidden_size, narrow),
        ]

    @property
    def grouped(self) -> tuple[Any, Any, Any]:
        """Columns, inner size and number of the first output products."""
        return output_lora_rank, self.width / self.groups, self.groups

    def rotary(self, name: str, width: Any) -> Op:
        """Positions of some features of a token."""
        n = self.shapes.tokens * width
        return self.kernels.stream(
            self.path(name), ew.rotary_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["rotary"]
        )

    # --- compressors

    def compressor(self, name: str, phase: str, width: Any) -> Operations:
        """Values and gates of all tokens, and their pooling."""
        columns = self.series * width
        size = self.shapes.tokens, columns, width, compress_ratio, activation_bytes, activation_bytes
        return [
            self.layer.linear(self.path(name), phase, hidden_size, 2 * columns),
            self.pooled(f"{name}_pool/{phase}", comp.pooling_bytes(*size), columns, "softmax"),
        ]

    def compressor_backward(self, name: str, width: Any, *, inputs: bool = True) -> Operations:
        """Gradients of values and gates, and of the weights; of the input unless it is let go."""
        columns = self.series * width
        size = self.shapes.tokens, columns, width, compress_ratio, activation_bytes, activation_bytes
        path = self.path(name)
        gradient: Op | Sequence
        if inputs:
            gradient = self.layer.column_backward(path, hidden_size, 2 * columns, shared=True)
        else:
            gradient = self.weight_gradient(path, hidden_size, 2 * columns)
        traffic = comp.pooling_backward_bytes(*size)
        return [self.pooled(f"{name}_pool/backward", traffic, columns, "softmax backward"), gradient]

    def pooled(self, name: str, traffic: Any, columns: Any, work: str) -> Op:
        """A kernel over values and gates."""
        return self.kernels.stream(self.path(name), traffic, self.shapes.tokens * columns, FLOPS_PER_ELEMENT[work])

    def weight_gradient(self, path: str, in_features: Any, out_features: Any) -> Op:
        """The gradient of weights whose input has none."""
        return self.kernels.weight_gradient(f"{path}/backward_weight", self.shapes.tokens, in_features, out_features)

    # --- the core

    def core_forward(self, phase: str) -> Sequence:
        """The kernel over whole sequences; or over parts, with the entries of all and a window of the part before."""
        if self.structure.context == "none":
            return super().core_forward(phase)
        kernel = self.kernels.flash(self.path(f"flash/{phase}"), *self.part_demand)
        return in_sequence(*self.exchanged(phase), kernel)

    def core_backward(self) -> Sequence:
        """Its gradients; those of entries are summed over the parts, those of a window go back."""
        if self.structure.context == "none":
            return super().core_backward()
        scatter = self.kernels.reduce_scatter(self.path("context/scatter"), self.gathered, context_group())
        returned = self.kernels.send(self.path("context/window_gradients"), self.lent, context_group())
        kernel = self.kernels.flash_backward(self.path("flash/backward"), *self.part_demand)
        return in_sequence(*self.exchanged("backward"), kernel, scatter if self.series else None, returned)

    def exchanged(self, phase: str) -> Operations:
        """A window of keys from the part before, and entries of all parts, with those of the indexer."""
        window = self.kernels.send(self.path(f"context/window/{phase}"), self.lent, context_group())
        entries = self.kernels.all_gather(self.path(f"context/gather/{phase}"), self.gathered, context_group())
        return [window, entries if self.series else None]

    @property
    def lent(self) -> Any:
        """Bytes of the windows before the two chunks of a part."""
        return 2 * comp.shared_key_bytes(micro_batch, sliding_window, head_dim, activation_bytes)

    @property
    def gathered(self) -> Any:
        """Bytes of the entries of a whole sequence."""
        width = head_dim + (index_head_dim if self.indexer else 0)
        return comp.shared_key_bytes(micro_batch, self.entries, width, activation_bytes)

    @property
    def part_demand(self) -> tuple[Any, Any]:
        """Work and traffic of the kernel over a device's part of a sequence."""
        own = self.queries / parts(self.structure)
        return self.work / parts(self.structure), self.traffic(own, own + 2 * sliding_window, self.shapes.heads, 0)

    @property
    def whole_pairs(self) -> Any:
        """Pairs of a query and an entry that it sees, of one sequence."""
        return excess(self.pairs, windows.window_pairs(self.queries, sliding_window))

    @property
    def cached(self) -> Any:
        """Elements of an entry."""
        return head_dim

    @property
    def score_work(self) -> Any:
        """FLOPs of the scores of the device's queries with the entries that they see: one of the two products."""
        return att.attention_flops(self.selected, 1, 1, self.shapes.heads, head_dim) / 2

    @property
    def pairs(self) -> Any:
        """Pairs of a query and a key or entry that it sees, of one sequence."""
        return sparse_counts.prefill_pairs(self.kind, self.queries)

    @property
    def entries(self) -> Any:
        """Entries of a whole sequence."""
        return comp.compressed_entries(self.queries, compress_ratio) if self.series else 0

    @property
    def work(self) -> Any:
        """FLOPs of the forward kernel over whole sequences: the pairs that the mask and the selection leave."""
        return windows.masked_attention_flops(micro_batch, self.pairs, self.shapes.heads, head_dim)

    def traffic(self, queries: Any, keys: Any, heads: Any, key_value_heads: Any) -> Any:  # noqa: ARG002
        """Bytes of the forward kernel: queries in, results out, keys, and entries once or gathered for each query."""
        own = att.flash_bytes(micro_batch, queries, heads, 0, head_dim, activation_bytes, statistic_bytes)
        own += comp.shared_key_bytes(micro_batch, keys, head_dim, activation_bytes)
        if self.indexer:
            pairs = micro_batch * self.whole_pairs * queries / self.queries
            return own + sel.gathered_bytes(pairs, 1, self.cached, activation_bytes)
        return own + comp.shared_key_bytes(micro_batch, self.entries, head_dim, activation_bytes)


class EntryIndexer(Indexer):
    """An indexer whose keys are entries of a compressor of its own."""

    core: CompressedAttention

    @property
    def pairs(self) -> Any:
        """Pairs of a query of the device and an entry that it may see."""
        return micro_batch * comp.entry_pairs(sequence, compress_ratio) / parts(self.core.structure)

    @property
    def keys(self) -> Any:
        """Entries of a whole sequence."""
        return comp.compressed_entries(sequence, compress_ratio)

    def projections(self, phase: str) -> Operations:
        """Entries, queries, and the heads' weights."""
        path, columns = self.core.path, self.heads * index_head_dim
        return [
            *self.core.compressor("index_compress", phase, index_head_dim),
            self.layer.linear(path("index_query"), phase, q_lora_rank, columns),
            self.layer.linear(path("index_weights"), phase, hidden_size, self.heads),
            self._rotary(phase, self.tokens * columns),
        ]

    def projections_backward(self) -> Operations:
        """Gradients of their weights."""
        columns = self.heads * index_head_dim
        return [
            self._rotary("backward", self.tokens * columns),
            self._weights("index_query", q_lora_rank, columns),
            self._weights("index_weights", hidden_size, self.heads),
            *self.core.compressor_backward("index_compress", index_head_dim, inputs=False),
        ]

"""The indexer of a layer in training: its projections, scores and selection, and the loss that trains it.

It is trained beside the model: its inputs are cut from the model's gradient, and its loss is the divergence of its
scores over the selected keys from what attention gave these keys, summed over the heads (DeepSeek-AI 2025, V3.2,
section 2.1, the sparse stage). Every device of a tensor-parallel group has the whole indexer beside latent attention,
as Megatron-Core duplicates its linear layers (experimental_attention_variant/dsa.py at 00bebb45).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import elementwise as ew
from ...formulas.kernels import selected_attention as sel
from ...formulas.kernels import sparse_selection as sparse
from ...formulas.kernels.windows import causal_pairs
from ...formulas.language.atoms import ceil_div
from ...formulas.language.symbols import (
    activation_bytes,
    hidden_size,
    index_block_size,
    index_head_dim,
    index_num_heads,
    index_training,
    micro_batch,
    q_lora_rank,
    sequence,
    statistic_bytes,
    tp,
)
from ...operations.groups import parts
from ...operations.schedule import Repeat
from ...operations.schedule import sequence as in_sequence
from ...operations.shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .selected import SelectedKeys


class Indexer:
    """The indexer of one kind of layer.

    Args:
        core: the attention that it selects keys for.
    """

    def __init__(self, core: SelectedKeys) -> None:
        self.core, self.layer, self.kernels = core, core.layer, core.kernels
        self.tokens = core.shapes.tokens
        self.blocks = "block_index" in core.kind.traits
        self.heads = ceil_div(index_num_heads, tp) if self.blocks else index_num_heads
        self.columns = index_head_dim + (0 if self.blocks else self.heads)
        self.inner = hidden_size if self.blocks else q_lora_rank

    @property
    def pairs(self) -> Any:
        """Pairs of a query of the device and a token that it may see."""
        return micro_batch * causal_pairs(sequence) / parts(self.core.structure)

    @property
    def scores(self) -> Any:
        """Scores that are written: of every pair, or the best of each block for each head."""
        return self.pairs * self.heads / index_block_size if self.blocks else self.pairs

    def pair_work(self, pairs: Any) -> Any:
        """FLOPs of the scores of so many pairs."""
        return sparse.index_score_flops(1, 1, pairs, self.heads, index_head_dim)

    @property
    def keys(self) -> Any:
        """Keys of a whole sequence."""
        return sequence

    def forward(self, phase: str) -> Operations:
        """Projections; scores, and the selection among them."""
        traffic = sel.index_read_bytes(micro_batch, self.keys, index_head_dim, activation_bytes)
        traffic += sel.score_traffic_bytes(self.scores, statistic_bytes)
        path = self.core.path(f"flash/index_scores/{phase}")
        return [*self.projections(phase), self.kernels.flash(path, self.pair_work(self.pairs), traffic)]

    def projections(self, phase: str) -> Operations:
        """Queries, a key and the heads' weights; norm and rotary positions."""
        path, n = self.core.path, self.tokens * index_head_dim * (self.heads + 1)
        return [
            self.layer.linear(path("index_query"), phase, self.inner, self.heads * index_head_dim),
            self.layer.linear(path("index_key"), phase, hidden_size, self.columns),
            self.layer.norm_of(path(f"index_norm/{phase}"), self.tokens * index_head_dim),
            self._rotary(phase, n),
        ]

    def backward(self) -> Operations:
        """The loss over the selected keys, and gradients of the indexer's weights alone; a frozen one has neither.

        What attention gave is computed again, summed over the heads and over the devices that hold them; the scores of
        the selected keys are computed again too, with the gradients of their two factors.
        """
        core, path = self.core, self.core.path
        pairs = core.selected
        target = pairs * (self.heads if self.blocks else 1) * statistic_bytes
        keys = sel.gathered_bytes(pairs, 1, index_head_dim, activation_bytes)
        steps = in_sequence(
            self.kernels.flash(path("flash/index_target/backward"), core.score_work, core.gathered_keys + target),
            None if self.blocks else self.kernels.all_reduce(path("index_target/reduce"), target, self.layer.group),
            self.kernels.flash(path("flash/index_loss/backward"), 3 * self.pair_work(pairs), 2 * keys + 2 * target),
            *self.projections_backward(),
        )
        return [in_sequence(Repeat(steps, index_training))]

    def projections_backward(self) -> Operations:
        """Gradients of the projections' weights."""
        path, n = self.core.path, self.tokens * index_head_dim * (self.heads + 1)
        return [
            self._rotary("backward", n),
            self.layer.norm_gradient_of(path("index_norm/backward"), self.tokens * index_head_dim),
            self._weights("index_query", self.inner, self.heads * index_head_dim),
            self._weights("index_key", hidden_size, self.columns),
        ]

    def _rotary(self, phase: str, elements: Any) -> Op:
        traffic, work = ew.rotary_bytes(elements, activation_bytes), FLOPS_PER_ELEMENT["rotary"]
        return self.kernels.stream(self.core.path(f"index_rotary/{phase}"), traffic, elements, work)

    def _weights(self, name: str, in_features: Any, out_features: Any) -> Op:
        return self.kernels.weight_gradient(
            f"{self.core.path(name)}/backward_weight", self.tokens, in_features, out_features
        )

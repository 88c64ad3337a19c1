"""Delta rules of a layer as operations: linear attention with a matrix as the state of each value head, in chunks.

Tensor parallelism deals key and value heads to the devices, as Megatron-LM's gated delta net does. Queries and keys are
repeated for every value head before the scan. Narrow widths, through which decays and gates may pass, are computed
whole on every device, and their gradients summed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import channel_decay as decay
from ...formulas.kernels import linear_attention as lin
from ...formulas.kernels import scan
from ...formulas.language.symbols import (
    activation_bytes,
    linear_key_head_dim,
    linear_num_key_heads,
    linear_num_value_heads,
    linear_value_head_dim,
    micro_batch,
    ssm_chunk_size,
    state_bytes,
    tp,
)
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .transformer import Decoder


class DeltaRule(Recurrent):
    """A gated delta rule: products and a triangular solve in every chunk, and three products with the state.

    Forward six kernels: decays, key scores, inverse, solved keys and values, states, results. Backward seven: solved
    keys and values and states again, values inside chunks, passing back, queries and keys, the solved form, decays; and
    three sums of PyTorch (flash-linear-attention, gated_delta_rule/chunk.py).
    """

    launches = 6, 10
    name = "linear_attention"

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.heads = linear_num_value_heads / tp
        self.output_width = self.heads * linear_value_head_dim
        self.channels = 2 * linear_num_key_heads / tp * linear_key_head_dim + self.output_width
        self.narrow = narrow_widths(layer.kind.traits, self.heads)
        gate = sum(width for width, _ in self.narrow.values())
        gate += 0 if "gate" in self.narrow else self.output_width
        self.projected = self.channels + gate + (1 if "decay" in self.narrow else 2) * self.heads
        self.size = micro_batch, self.length, ssm_chunk_size
        self.shape = self.heads, linear_key_head_dim, linear_value_head_dim

    def forward(self, phase: str) -> Operations:
        """As of any mixer, with what narrow widths become after the first projection."""
        first, *others = super().forward(phase)
        wide = [self.layer.linear(self.path(name), phase, *shape) for name, shape in self.narrow.items()]
        return [first, *wide, *others]

    def backward(self) -> Operations:
        """Their gradients; those of narrow widths are sums over the devices' heads."""
        *others, first = super().backward()
        wide: Operations = [
            self.layer.column_backward(self.path(name), *shape, shared=True) for name, shape in self.narrow.items()
        ]
        if wide:
            message = self.tokens * sum(width for width, _ in self.narrow.values()) * activation_bytes
            wide.append(self.kernels.all_reduce(self.path("narrow/reduce/backward"), message, self.layer.group))
        return [*others, *wide, first]

    def scan(self, phase: str) -> Op:
        """The chunked rule, with its solves."""
        work = lin.delta_rule_flops(*self.size, *self.shape) + lin.delta_solve_flops(*self.size, *self.shape)
        traffic = lin.delta_rule_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked(f"scan/{phase}", work, traffic)

    def scan_backward(self) -> Op:
        """Its gradients, with solves and states once more."""
        work = scan.delta_rule_backward_flops(*self.size, *self.shape)
        traffic = scan.delta_rule_backward_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked("scan/backward", work, traffic, backward=True)


class ChannelDeltaRule(DeltaRule):
    """Kimi Delta Attention: the same products, with a decay for every key channel.

    Forward six kernels: sums of decays, scores of diagonal blocks, the other scores with the inverse, the solved form,
    states, results. Backward nine: sums of decays, the solved form and states again, values inside chunks, passing
    back, gradients through states, inside chunks, reversed sums, the gate; and three casts of PyTorch
    (flash-linear-attention, kda/chunk_fwd.py and chunk_bwd.py).
    """

    launches = 6, 12

    def scan(self, phase: str) -> Op:
        """The chunked rule, with its solves and what its decays move."""
        work = lin.delta_rule_flops(*self.size, *self.shape) + lin.delta_solve_flops(*self.size, *self.shape)
        traffic = decay.channel_delta_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked(f"scan/{phase}", work, traffic)

    def scan_backward(self) -> Op:
        """Its gradients, with what is not kept once more."""
        work = decay.channel_delta_backward_flops(*self.size, *self.shape)
        traffic = decay.channel_delta_backward_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked("scan/backward", work, traffic, backward=True)


def narrow_widths(traits: tuple[str, ...], heads: Any) -> dict[str, tuple[Any, Any]]:
    """What passes through a narrow width, by name: this width, which is whole, and that of a device's heads."""
    widths = {
        "decay": ("channel_decay", linear_key_head_dim),
        "gate": ("narrow_gate", linear_value_head_dim),
    }
    return {name: (width, heads * width) for name, (trait, width) in widths.items() if trait in traits}


def delta_rule(layer: Decoder) -> DeltaRule:
    """The delta rule of a layer, by how its state decays."""
    return (ChannelDeltaRule if "channel_decay" in layer.kind.traits else DeltaRule)(layer)

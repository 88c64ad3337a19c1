"""The time mixing of RWKV-7 as operations: a generalized delta rule between shifted inputs and a gated norm.

Tensor parallelism deals heads to the devices, as a gated delta rule's. Narrow widths, through which decays, rates,
gates and what is taken of the first layer's values pass, are computed whole on every device, their gradients summed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import wkv
from ...formulas.language.symbols import (
    activation_bytes,
    decay_rank,
    gate_rank,
    hidden_size,
    linear_key_head_dim,
    linear_num_value_heads,
    linear_value_head_dim,
    micro_batch,
    rate_rank,
    ssm_chunk_size,
    state_bytes,
    tp,
    value_rank,
)
from ...operations.shapes import FLOPS_PER_ELEMENT
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .transformer import Decoder

MIXTURES = 6
"""Inputs of a time mixing: of receptance, decay, key, value, rate and gate."""


class TimeMixing(Recurrent):
    """Shifted inputs, wide and narrow projections, operands, the chunked rule, and a norm with a bonus and a gate.

    The rule's kernels, forward: sums of decays, scores, inverse, solved form, states, results. Backward all but the
    last again; scores, passing back, values, operands, the solved form, inside chunks, decays; and a cast of PyTorch
    (flash-linear-attention, generalized_delta_rule/dplr/chunk.py).
    """

    launches = 6, 13
    name = "wkv"

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.heads = linear_num_value_heads / tp
        self.keys, self.output_width = self.heads * linear_key_head_dim, self.heads * linear_value_head_dim
        self.wide = {"receptance": self.keys, "key": self.keys, "value": self.output_width}
        self.narrow = {"decay": (decay_rank, self.keys), "rate": (rate_rank, self.keys)}
        if "first_values" not in layer.kind.traits:
            self.narrow["taken"] = (value_rank, self.output_width)
        self.narrow["gate"] = (gate_rank, self.output_width)
        self.shape = self.heads, linear_key_head_dim, linear_value_head_dim
        self.chunks = micro_batch, self.length, ssm_chunk_size, *self.shape

    def forward(self, phase: str) -> Operations:
        """From the normalised stream to what the projection out reads."""
        linear = self.layer.linear
        found: Operations = [self.layer.shift(self.path("shift"), phase, MIXTURES)]
        found += [linear(self.path(name), phase, hidden_size, width) for name, width in self.wide.items()]
        for name, (rank, width) in self.narrow.items():
            found += [
                linear(self.path(f"{name}_down"), phase, hidden_size, rank),
                linear(self.path(f"{name}_up"), phase, rank, width),
            ]
        return [*found, self.operands(phase), self.scan(phase)]

    def backward(self) -> Operations:
        """Its gradients; the rule's kernels compute all that they need again."""
        column = self.layer.column_backward
        found: Operations = [self.scan_backward(), self.operands("backward")]
        for name, (rank, width) in self.narrow.items():
            found += [
                column(self.path(f"{name}_up"), rank, width, shared=True),
                self.summed(name, rank),
                column(self.path(f"{name}_down"), hidden_size, rank, shared=True),
            ]
        *others, last = self.wide.items()
        found += [column(self.path(name), hidden_size, width, shared=True) for name, width in others]
        found.append(column(self.path(last[0]), hidden_size, last[1]))
        return [*found, self.layer.shift(self.path("shift"), "backward", MIXTURES)]

    def summed(self, name: str, rank: Any) -> Op | None:
        """The sum of a narrow width's gradient over the devices' heads."""
        message = self.tokens * rank * activation_bytes
        return self.kernels.all_reduce(self.path(f"{name}_down/reduce/backward"), message, self.layer.group)

    def operands(self, phase: str) -> Op:
        """What makes the operands of the rule, and its results' norm, bonus and gate; or their gradients."""
        backward = phase == "backward"
        of = wkv.wkv_operand_backward_bytes if backward else wkv.wkv_operand_bytes
        traffic = of(self.tokens, *self.shape, activation_bytes)
        work = FLOPS_PER_ELEMENT["gated norm backward" if backward else "gated norm"]
        elements = self.tokens * (self.keys + self.output_width)
        return self.kernels.stream(self.path(f"operands/{phase}"), traffic, elements, work)

    def scan(self, phase: str) -> Op:
        """The chunked rule."""
        traffic = wkv.wkv_bytes(*self.chunks, activation_bytes, state_bytes)
        return self.chunked(f"scan/{phase}", wkv.wkv_flops(*self.chunks), traffic)

    def scan_backward(self) -> Op:
        """Its gradients."""
        traffic = wkv.wkv_backward_bytes(*self.chunks, activation_bytes, state_bytes)
        return self.chunked("scan/backward", wkv.wkv_backward_flops(*self.chunks), traffic, backward=True)

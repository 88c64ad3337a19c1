"""Recurrent layers of an inference whose state is a matrix for each head: delta rules.

Narrow widths, through which decays and gates may pass, are computed whole on every device (vLLM, kda.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.generation import recurrent_decode as step
from ..formulas.kernels import channel_decay as decay
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import linear_attention as lin
from ..formulas.language import symbols as sym
from ..formulas.language.symbols import activation_bytes, hidden_size, state_bytes, tp
from ..operations.shapes import FLOPS_PER_ELEMENT
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Layer

DELTA_KERNELS = 6
"""Decays, key scores, solve, new keys and values, states, results: flash-linear-attention, chunk_gated_delta_rule; or
decays, scores of diagonal blocks, the other scores and the solve, the others alike: chunk_kda."""


class DeltaRule(Recurrent):
    """Linear attention by a gated delta rule: a matrix for each value head."""

    chunked = True
    rates_of_head = 2
    """Numbers a head and token that a kernel of their own makes: decay and rate."""

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.key_heads, self.heads = sym.linear_num_key_heads / tp, sym.linear_num_value_heads / tp
        self.keys = self.key_heads * sym.linear_key_head_dim
        self.inner = self.heads * sym.linear_value_head_dim
        self.channels = 2 * self.keys + self.inner
        self.state = self.inner * sym.linear_key_head_dim
        self.scratch = 2 * self.channels + 2 * self.inner
        self.shape = self.heads, sym.linear_key_head_dim, sym.linear_value_head_dim

    def projections(self) -> list[Op | None]:
        """Queries, keys, values and gate in one product; decay and rate of every head in another."""
        return [
            self.layer.linear(self.name("in"), hidden_size, self.channels + self.inner),
            self.layer.linear(self.name("rates_in"), hidden_size, 2 * self.heads),
        ]

    def rates(self, tokens: Any, end: str) -> Op:
        """The kernel that makes rates of every head, and decays, from their projections."""
        n = self.rates_of_head * tokens * self.heads
        return self.kernels.stream(
            self.path(f"rates{end}"),
            ew.activation_function_bytes(n, activation_bytes),
            n,
            FLOPS_PER_ELEMENT["activation"],
        )

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """Products of the chunks, and their triangular solves."""
        arguments = sequences, length, sym.ssm_chunk_size, *self.shape
        return lin.delta_rule_flops(*arguments) + lin.delta_solve_flops(*arguments)

    def scan_bytes(self, sequences: Any, length: Any) -> Any:
        """Bytes that the kernels of the chunked rule move, without the states that they start from."""
        shape = sequences, length, sym.ssm_chunk_size, *self.shape
        return lin.delta_rule_bytes(*shape, activation_bytes, state_bytes)

    @property
    def step_width(self) -> Any:
        """Features of a token that a step moves: queries, keys, values and results, and two numbers a head."""
        return 2 * self.keys + 2 * self.inner + 2 * self.heads

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """Convolution, rates, norms of queries and keys, and the kernels of the chunked rule."""
        tokens = sequences * length
        normed = 2 * tokens * self.keys
        work, traffic = self.scan_flops(sequences, length), self.scan_bytes(sequences, length)
        return [
            self.convolve(tokens),
            self.rates(tokens, ""),
            self.kernels.stream(
                self.path("qk_norm"), ew.norm_bytes(normed, activation_bytes), normed, FLOPS_PER_ELEMENT["norm"]
            ),
            self.kernels.scan(self.path("scan"), work, traffic + self.kept(sequences), DELTA_KERNELS, length),
        ]

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """Convolution, rates, and the recurrent kernel, which also norms queries and keys."""
        tokens = sequences * new_tokens
        shape = *self.shape, self.step_width
        traffic = step.matrix_step_bytes(sequences, new_tokens, *shape, activation_bytes, state_bytes)
        work = step.delta_step_flops(tokens, *self.shape)
        return [self.convolve_step(sequences, new_tokens), self.rates(tokens, "_update"), self.update(traffic, work)]


class ChannelDeltaRule(DeltaRule):
    """Kimi Delta Attention: a delta rule with a decay for every key channel, made inside the kernels of the rule."""

    rates_of_head = 1

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.decays = self.heads * sym.linear_key_head_dim
        self.narrow_gate = "narrow_gate" in layer.kind.traits
        self.narrow = sym.linear_key_head_dim + (sym.linear_value_head_dim if self.narrow_gate else 0)
        self.scratch += 2 * self.decays + self.narrow

    def projections(self) -> list[Op | None]:
        """Queries, keys, values, rates, the gate and narrow widths in one product; and what these become."""
        gate = 0 if self.narrow_gate else self.inner
        found: list[Op | None] = [
            self.layer.linear(self.name("in"), hidden_size, self.channels + gate + self.heads + self.narrow),
            self.layer.linear(self.name("decay"), sym.linear_key_head_dim, self.decays),
        ]
        if self.narrow_gate:
            found.append(self.layer.linear(self.name("gate"), sym.linear_value_head_dim, self.inner))
        return found

    def scan_bytes(self, sequences: Any, length: Any) -> Any:
        """Bytes that the kernels of the chunked rule move, decays among them."""
        shape = sequences, length, sym.ssm_chunk_size, *self.shape
        return decay.channel_delta_bytes(*shape, activation_bytes, state_bytes)

    @property
    def step_width(self) -> Any:
        """Features of a token that a step moves: those of any delta rule, with a decay for every key channel."""
        return 2 * self.keys + 2 * self.inner + self.decays + self.heads


def delta_rule(layer: Layer, name: str | None = None) -> DeltaRule:
    """The delta rule of a layer, by how its state decays."""
    return (ChannelDeltaRule if "channel_decay" in layer.kind.traits else DeltaRule)(layer, name)

"""Recurrent layers of an inference whose state is a matrix for each head: delta rules, matrix memories and time mixing.

Narrow widths, through which decays and gates may pass, are computed whole on every device (vLLM, kda.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.generation import recurrent_decode as step
from ..formulas.kernels import channel_decay as decay
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import linear_attention as lin
from ..formulas.kernels import matrix_memory as memory
from ..formulas.kernels import wkv
from ..formulas.kernels.measured_scan import measured_update_time
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


MIXTURES = 6
"""Inputs of a time mixing: of receptance, decay, key, value, rate and gate."""
MEMORY = 4
"""Logarithms of gates and their sums, states, results: mlstm_kernels."""


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
            self.convolve(sequences, length),
            self.rates(tokens, ""),
            self.kernels.stream(
                self.path("qk_norm"), ew.norm_bytes(normed, activation_bytes), normed, FLOPS_PER_ELEMENT["norm"]
            ),
            self.kernels.scan(
                self.path("scan"),
                work,
                traffic + self.kept(sequences),
                DELTA_KERNELS,
                length,
                channelwise=self.channelwise,
            ),
        ]

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """Convolution, rates, and the recurrent kernel, which also norms queries and keys."""
        tokens = sequences * new_tokens
        shape = *self.shape, self.step_width
        traffic = step.matrix_step_bytes(sequences, new_tokens, *shape, activation_bytes, state_bytes)
        work, time = step.delta_step_flops(tokens, *self.shape), measured_update_time(traffic)
        return [
            self.convolve_step(sequences, new_tokens),
            self.rates(tokens, "_update"),
            self.kernels.measured("updates", self.update(traffic, work), time, channelwise=self.channelwise),
        ]


class ChannelDeltaRule(DeltaRule):
    """Kimi Delta Attention: a delta rule with a decay for every key channel, made inside the kernels of the rule."""

    rates_of_head = 1
    channelwise = True

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


class MatrixMemory(Recurrent):
    """The matrix memory of xLSTM: no convolution; its state is kept in the format of activations."""

    chunked = True

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.heads = sym.linear_num_value_heads / tp
        self.keys, self.inner = self.heads * sym.linear_key_head_dim, self.heads * sym.linear_value_head_dim
        self.beside = self.keys + self.heads
        self.state = self.inner * sym.linear_key_head_dim + self.beside
        self.scratch = 2 * self.keys + 3 * self.inner + 2 * self.heads
        self.shape = self.heads, sym.linear_key_head_dim, sym.linear_value_head_dim

    def projections(self) -> list[Op | None]:
        """Queries, keys, values and the output's gate in one product; two gates of every head in another."""
        return [
            self.layer.linear(self.name("in"), hidden_size, 2 * self.keys + 2 * self.inner),
            self.layer.linear(self.name("rates_in"), hidden_size, 2 * self.heads),
        ]

    def kept(self, sequences: Any) -> Any:
        """Bytes of the states of sequences: matrices, sums of keys and largest exponents."""
        return sequences * self.state * activation_bytes

    def sequence_bytes(self) -> Any:
        """Bytes that a sequence keeps, however long it is."""
        return self.kept(1)

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """Products of the chunks."""
        return memory.matrix_memory_flops(sequences, length, sym.ssm_chunk_size, *self.shape)

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """The kernels of the chunked recurrence."""
        shape = sequences, length, sym.ssm_chunk_size, *self.shape
        traffic = memory.matrix_memory_bytes(*shape, activation_bytes, sym.statistic_bytes) + self.kept(sequences)
        return [self.kernels.fused_products(self.path("scan"), self.scan_flops(sequences, length), traffic, MEMORY)]

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """The recurrent kernel: queries, keys, values, results and gates beside the states."""
        tokens = sequences * new_tokens
        width = 2 * self.keys + 2 * self.inner + 2 * self.heads + 2 * self.beside
        shape = *self.shape, width, activation_bytes, activation_bytes
        traffic = step.matrix_step_bytes(sequences, new_tokens, *shape)
        return [self.update(traffic, memory.matrix_memory_step_flops(tokens, *self.shape))]


class TimeMixing(Recurrent):
    """The time mixing of RWKV-7: a generalized delta rule; a sequence keeps its matrices and two last tokens."""

    chunked = True

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.heads = sym.linear_num_value_heads / tp
        self.keys, self.inner = self.heads * sym.linear_key_head_dim, self.heads * sym.linear_value_head_dim
        self.state = self.inner * sym.linear_key_head_dim
        self.shape = self.heads, sym.linear_key_head_dim, sym.linear_value_head_dim
        narrow = {"decay": (sym.decay_rank, self.keys), "rate": (sym.rate_rank, self.keys)}
        if "first_values" not in layer.kind.traits:
            narrow["taken"] = (sym.value_rank, self.inner)
        self.narrow = narrow | {"gate": (sym.gate_rank, self.inner)}
        self.scratch = MIXTURES * hidden_size + 6 * self.keys + 4 * self.inner

    def projections(self) -> list[Op | None]:
        """Mixtures of the tokens; receptance, keys and values; and what passes through narrow widths."""
        linear = self.layer.linear
        found: list[Op | None] = [self.layer.shift(self.name("shift"), MIXTURES)]
        wide = {"receptance": self.keys, "key": self.keys, "value": self.inner}
        found += [linear(self.name(name), hidden_size, width) for name, width in wide.items()]
        for name, (rank, width) in self.narrow.items():
            down, up = f"{name}_down", f"{name}_up"
            found += [linear(self.name(down), hidden_size, rank), linear(self.name(up), rank, width)]
        return found

    def output(self) -> list[Op | None]:
        """The projection of the results, whose norm and gate are among the operands."""
        return [self.layer.linear(self.name("out"), self.inner, hidden_size)]

    def sequence_bytes(self) -> Any:
        """Bytes that a sequence keeps, however long it is: matrices, and the last token that each part has read."""
        return self.kept(1) + 2 * hidden_size * activation_bytes

    def operands(self, tokens: Any, end: str) -> Op:
        """What makes the operands of the rule, and its results' norm, bonus and gate."""
        traffic = wkv.wkv_operand_bytes(tokens, *self.shape, activation_bytes)
        n = tokens * (self.keys + self.inner)
        return self.kernels.stream(self.path(f"operands{end}"), traffic, n, FLOPS_PER_ELEMENT["gated norm"])

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """Products of the chunks."""
        return wkv.wkv_flops(sequences, length, sym.ssm_chunk_size, *self.shape)

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """Operands, and the kernels of the chunked rule."""
        shape = sequences, length, sym.ssm_chunk_size, *self.shape
        traffic = wkv.wkv_bytes(*shape, activation_bytes, state_bytes) + self.kept(sequences)
        work = self.scan_flops(sequences, length)
        return [
            self.operands(sequences * length, ""),
            self.kernels.fused_products(self.path("scan"), work, traffic, DELTA_KERNELS),
        ]

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """Operands, and the recurrent kernel: receptance, decay, three kinds of keys, values and results."""
        tokens = sequences * new_tokens
        shape = *self.shape, 5 * self.keys + 2 * self.inner, activation_bytes, state_bytes
        traffic = step.matrix_step_bytes(sequences, new_tokens, *shape)
        return [self.operands(tokens, "_update"), self.update(traffic, wkv.wkv_step_flops(tokens, *self.shape))]


def delta_rule(layer: Layer, name: str | None = None) -> DeltaRule:
    """The delta rule of a layer, by how its state decays."""
    return (ChannelDeltaRule if "channel_decay" in layer.kind.traits else DeltaRule)(layer, name)

"""The matrices of a layer on one device: what optimizers that look at whole matrices, and casts of weights, need."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from ...common.symbolic import replace_symbols
from ...formulas.kernels.optimizers import factored_elements
from ...formulas.language import symbols as sym
from ...formulas.language.atoms import ceil_div
from ...formulas.language.symbols import ep, expert_tp, hidden_size, num_attention_heads, num_experts, tp
from ...formulas.parallel import dual_pipe as dual
from ...models import attention_widths as widths
from ...models import counts
from ...models import layer_counts as layers
from ...models import recurrent_counts as recurrent
from ...models import sparse_counts as sparse
from ...models.architecture import RECURRENT
from ...models.own_sizes import in_own_sizes
from . import device_counts as device
from .multi_token_counts import module_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from ...models.architecture import Architecture, LayerKind
    from ...plans.structure import Structure

IN_SIXTEEN_BITS = ("router", "compress", "index_weights", "connections")
"""How the names of matrices end whose products are never in low precision: small, and stored in 16 or 32 bits in the
checkpoints of DeepSeek-V3 and V4."""


@dataclass(frozen=True)
class Matrix:
    """Equal matrices of a layer.

    Attributes:
        name: of the layer that has it.
        rows: outputs, of all devices.
        columns: inputs, of all devices.
        local: rows and columns on one device.
        count: such matrices on one device.
        ranks: devices that a matrix is split over.
        routed: it is a routed expert's.
        half: its products stay in 16 bits in any case.
    """

    name: str
    rows: Any
    columns: Any
    local: tuple[Any, Any]
    count: Any = sympy.S.One
    ranks: Any = sympy.S.One
    routed: bool = False
    half: bool = False

    @property
    def linear(self) -> bool:
        """Whether its products may run in low precision: not those inside of scans, of routers, or that are small."""
        return not (self.half or self.name.endswith(IN_SIXTEEN_BITS))

    @property
    def elements(self) -> Any:
        """Elements on one device, of all that are equal."""
        return self.count * self.local[0] * self.local[1]

    @property
    def factors(self) -> Any:
        """Row and column statistics on one device, of all that are equal."""
        return self.count * factored_elements(*self.local)


@in_own_sizes
def layer_matrices(architecture: Architecture, kind: LayerKind) -> list[Matrix]:
    """The matrices of one layer of a kind."""
    found = [matrix for each in kind.alone for matrix in _mixer(architecture, each)] + _indexer(kind)
    if architecture.hyper_connections:
        parts = (kind.mixer != "none") + (kind.ffn != "none")
        mixing = (2 + sym.num_streams) * sym.num_streams
        found.append(_whole("connections", mixing, sym.num_streams * hidden_size, parts))
    if kind.ffn in ("dense", "dense_experts"):
        found += _mlp(architecture, "mlp", sym.intermediate_size, tp)
    if kind.ffn in ("experts", "dense_experts"):
        found.append(_whole("router", num_experts, hidden_size))
        if architecture.shared_experts:
            found += _mlp(architecture, "shared", sym.shared_expert_intermediate_size, tp)
        if architecture.latent_experts:
            found.append(_whole("experts_in", sym.moe_latent_size, hidden_size))
            found.append(_whole("experts_out", hidden_size, sym.moe_latent_size))
        routed = _mlp(architecture, "experts", sym.expert_intermediate_size, expert_tp, num_experts / ep)
        found += replace_symbols(routed, {hidden_size: layers.expert_hidden(architecture)})
    return found


def _whole(name: str, rows: Any, columns: Any, count: Any = sympy.S.One) -> Matrix:
    return Matrix(name, rows, columns, (rows, columns), count)


def _by_rows(name: str, rows: Any, columns: Any) -> Matrix:
    return Matrix(name, rows, columns, (rows / tp, columns), ranks=tp)


def _by_columns(name: str, rows: Any, columns: Any) -> Matrix:
    return Matrix(name, rows, columns, (rows, columns / tp), ranks=tp)


def _mixer(architecture: Architecture, kind: LayerKind) -> list[Matrix]:
    if kind.mixer in RECURRENT:
        return _recurrent(kind)
    if kind.mixer == "compressed_attention":
        return _compressed(kind)
    return _latent(architecture) if kind.mixer == "latent_attention" else _attention(architecture, kind)


def _attention(architecture: Architecture, kind: LayerKind) -> list[Matrix]:
    if kind.mixer == "none":
        return []
    key, value, heads = sym.head_dim, widths.value_width(kind), num_attention_heads
    query = _by_rows("attention/query", heads * key * (2 if architecture.attention_gate else 1), hidden_size)
    output = _by_columns("attention/output", hidden_size, heads * value)
    if "reused_keys" in kind.traits:
        return [query, output]
    if key == value:
        count = 1 if architecture.shared_key_value and kind.mixer == "attention" else 2
        return [query, _of_heads("key_value", key, count), output]
    return [query, _of_heads("key", key), _of_heads("value", value), output]


def _of_heads(name: str, width: Any, copies: int = 1) -> Matrix:
    kv_heads = sym.num_key_value_heads
    share = ceil_div(kv_heads, tp) * width, hidden_size
    return Matrix(f"attention/{name}", kv_heads * width, hidden_size, share, copies, tp)


def _latent(architecture: Architecture) -> list[Matrix]:
    a, nope, rope, rank = num_attention_heads, sym.qk_nope_head_dim, sym.qk_rope_head_dim, sym.kv_lora_rank
    found = [
        _whole("attention/key_value_down", rank + rope, hidden_size),
        _by_rows("attention/key_value_up", a * (nope + sym.v_head_dim), rank),
        _by_columns("attention/output", hidden_size, a * sym.v_head_dim),
    ]
    if architecture.query_compression:
        return [
            _whole("attention/query_down", sym.q_lora_rank, hidden_size),
            _by_rows("attention/query_up", a * (nope + rope), sym.q_lora_rank),
            *found,
        ]
    return [_by_rows("attention/query", a * (nope + rope), hidden_size), *found]


def _recurrent(kind: LayerKind) -> list[Matrix]:
    """Projections in and out, which Transformer Engine runs in low precision; what scans read stays in 16 bits.

    Convolutions, and Mamba-1's decays, are among the vectors: optimizers of matrices leave them to Adam.
    """
    inner, projected = {
        "ssm": (
            recurrent.SSM_WIDTH,
            2 * recurrent.SSM_WIDTH / tp
            + 2 * ceil_div(sym.ssm_groups, tp) * sym.ssm_state_size
            + sym.ssm_num_heads / tp,
        ),
        "ssm1": (sym.ssm_inner_size, 2 * sym.ssm_inner_size / tp),
        "linear_attention": (recurrent.LINEAR_VALUES, _delta_rule_columns(kind)),
        "short_convolution": (hidden_size, 3 * hidden_size / tp),
        "gated_lru": (sym.lru_width, 2 * sym.lru_width / tp),
        "lightning_attention": (recurrent.LINEAR_VALUES, 3 * recurrent.LINEAR_VALUES / tp),
    }[kind.mixer]
    name = kind.mixer
    found = [
        Matrix(f"{name}/in", tp * projected, hidden_size, (projected, hidden_size), ranks=tp),
        _by_columns(f"{name}/output", hidden_size, inner),
    ]
    if "channel_decay" in kind.traits:
        narrow = sym.linear_key_head_dim
        found.append(_by_rows(f"{name}/decay", sym.linear_num_value_heads * narrow, narrow))
    if "narrow_gate" in kind.traits:
        found.append(_by_rows(f"{name}/gate", recurrent.LINEAR_VALUES, sym.linear_value_head_dim))
    if name == "lightning_attention":
        found.append(_by_rows(f"{name}/gate_in", inner, hidden_size))
    if name == "ssm1":
        rank, narrow = sym.ssm_time_step_rank, sym.ssm_time_step_rank + 2 * sym.ssm_state_size
        found += [
            dataclasses.replace(_by_columns(f"{name}/narrow", narrow, inner), half=True),
            dataclasses.replace(_by_rows(f"{name}/time_step", inner, rank), half=True),
        ]
    if name == "gated_lru":
        block = inner / num_attention_heads
        found.append(Matrix(f"{name}/gates", block, block, (block, block), 2 * num_attention_heads / tp, half=True))
    return found


def _delta_rule_columns(kind: LayerKind) -> Any:
    """Columns of a delta rule's projection in on one device; narrow widths are whole on each."""
    channel, gate = "channel_decay" in kind.traits, "narrow_gate" in kind.traits
    dealt = recurrent.LINEAR_CHANNELS + (0 if gate else recurrent.LINEAR_VALUES)
    dealt += sym.linear_num_value_heads * (1 if channel else 2)
    narrow = (sym.linear_key_head_dim if channel else 0) + (sym.linear_value_head_dim if gate else 0)
    return dealt / tp + narrow


def _compressed(kind: LayerKind) -> list[Matrix]:
    """Narrow projections, compressors and indexers are whole on every device; heads and groups of them are dealt."""
    width, rank, series = num_attention_heads * sym.head_dim, sym.output_lora_rank, sparse.compressor_series(kind)
    inner, groups = width / sym.output_groups, sym.output_groups / tp
    found = [
        _whole("attention/query_down", sym.q_lora_rank, hidden_size),
        _whole("attention/key", sym.head_dim, hidden_size),
        _by_rows("attention/query_up", width, sym.q_lora_rank),
        Matrix("attention/group_output", rank, inner, (rank, inner), groups),
        _by_columns("attention/output", hidden_size, sym.output_groups * rank),
    ]
    if series:
        found.append(_whole("attention/compress", series * sym.head_dim, hidden_size, 2))
    if "selected_entries" in kind.traits:
        found += [
            _whole("attention/index_compress", series * sym.index_head_dim, hidden_size, 2),
            _whole("attention/index_query", sym.index_num_heads * sym.index_head_dim, sym.q_lora_rank),
            _whole("attention/index_weights", sym.index_num_heads, hidden_size),
        ]
    return found


def _indexer(kind: LayerKind) -> list[Matrix]:
    """The indexer's: whole on every device beside latents, else with a head for each key-value head."""
    heads, width = sym.index_num_heads, sym.index_head_dim
    if "indexer" in kind.traits:
        query = _whole("attention/index_query", heads * width, sym.q_lora_rank)
        return [query, _whole("attention/index_key", width + heads, hidden_size)]
    if "block_index" in kind.traits:
        local = ceil_div(heads, tp) * width, hidden_size
        query = Matrix("attention/index_query", heads * width, hidden_size, local, ranks=tp)
        return [query, _whole("attention/index_key", width, hidden_size)]
    return []


def _mlp(architecture: Architecture, name: str, width: Any, ranks: Any, count: Any = sympy.S.One) -> list[Matrix]:
    ups, routed = (2 if architecture.gated_mlp else 1), name == "experts"
    return [
        Matrix(f"{name}/up", width, hidden_size, (width / ranks, hidden_size), ups * count, ranks, routed),
        Matrix(f"{name}/down", hidden_size, width, (hidden_size, width / ranks), count, ranks, routed),
    ]


@dataclass(frozen=True)
class Held:
    """What the layers of the fullest device hold: each matrix with how many layers have it, and elements of vectors."""

    matrices: tuple[tuple[Any, Matrix], ...] = ()
    vectors: Any = sympy.S.Zero
    expert_vectors: Any = sympy.S.Zero

    def __add__(self, other: Held) -> Held:
        """What both hold."""
        return Held(
            self.matrices + other.matrices,
            self.vectors + other.vectors,
            self.expert_vectors + other.expert_vectors,
        )

    def elements(self, *, routed: bool) -> Any:
        """Elements of the matrices of experts, or of the others."""
        return sympy.Add(*(n * m.elements for n, m in self.matrices if m.routed == routed))

    def factors(self, *, routed: bool) -> Any:
        """Elements of factored moments, vectors whole."""
        vectors = self.expert_vectors if routed else self.vectors
        return vectors + sympy.Add(*(n * m.factors for n, m in self.matrices if m.routed == routed))

    def linear(self, *, routed: bool) -> Any:
        """Elements of the weights of linear layers whose products may run in low precision: all but the router's."""
        kept = (n * m.elements for n, m in self.matrices if m.routed == routed and m.linear)
        return sympy.Add(*kept)


def class_of(name: str) -> str:
    """The class of parameters (`plans.freezing.LAYERS`) that a matrix of a layer belongs to, by its name.

    >>> class_of("attention/query"), class_of("experts_in"), class_of("ssm/in")
    ('attention', 'experts', 'attention')
    """
    first = name.split("/")[0].split("_")[0]
    return {"mlp": "mlp", "experts": "experts", "shared": "experts", "router": "router", "connections": "streams"}.get(
        first, "attention"
    )


def held_matrices(structure: Structure, layers_of: Callable[[Any], Any], frozen: Container[str] = ()) -> Held:
    """The matrices and vectors of the layers of a device.

    Args:
        structure: of the step.
        layers_of: how many layers a device has of which the model has a count.
        frozen: classes of parameters that are left out.
    """
    architecture = structure.architecture
    kinds = counts.kinds_with_counts(architecture)
    found, vectors, expert_vectors = [], sympy.S.Zero, sympy.S.Zero
    for of_model, kind in kinds:
        count = layers_of(of_model)
        if structure.schedule == "dualpipe":
            count = dual.dual_pipe_parameters(count)
        matrices = [each for each in layer_matrices(architecture, kind) if class_of(each.name) not in frozen]
        if len(kinds) > 1:
            label = kind.label
            matrices = [dataclasses.replace(matrix, name=f"{label}/{matrix.name}") for matrix in matrices]
        found += [(count, matrix) for matrix in matrices]
        dense = device.dense_parameters(architecture, kind, frozen)
        experts = sympy.S.Zero if "experts" in frozen else device.expert_parameters(architecture, kind)
        vectors += count * _rest(dense, [m for m in matrices if not m.routed])
        expert_vectors += count * _rest(experts, [m for m in matrices if m.routed])
    return Held(tuple(found), vectors, expert_vectors)


def held_modules(structure: Structure, count: Any, frozen: Container[str] = ()) -> Held:
    """The matrices and vectors of `count` modules for multi-token prediction, unless they are frozen."""
    architecture = structure.architecture
    if not architecture.multi_token_head or "multi_token" in frozen:
        return Held()
    kind = architecture.module_kind
    found = [
        Matrix("projection", hidden_size, 2 * hidden_size, (hidden_size / tp, 2 * hidden_size), ranks=tp),
        *layer_matrices(architecture, kind),
    ]
    matrices = [dataclasses.replace(matrix, name=f"multi_token/{matrix.name}") for matrix in found]
    dense, experts = module_parameters(architecture)
    return Held(
        tuple((count, matrix) for matrix in matrices),
        count * _rest(dense, [m for m in matrices if not m.routed]),
        count * _rest(experts, [m for m in matrices if m.routed]),
    )


def _rest(parameters: Any, matrices: list[Matrix]) -> Any:
    """Parameters of a layer that are no matrix's: norms, biases. The polynomials cancel term by term."""
    return sympy.expand(parameters - sum(matrix.elements for matrix in matrices))

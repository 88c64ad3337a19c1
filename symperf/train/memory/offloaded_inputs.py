"""Bytes that layers keep of the inputs of parts that the host may keep by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language import symbols as sym
from ...formulas.language.symbols import hidden_size
from ...formulas.memory import saved_activations as saved
from ...formulas.parallel import expert_parallel as dealt
from ...models import attention_widths as widths
from ...models import layer_counts as layers
from ...models.own_sizes import in_own_sizes
from ...operations.shapes import Shapes
from ...plans.offloaded_inputs import has_input, inputs_of
from .saved_activations import layer_activations, layer_norm_kept, read_kept

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure

FREED = {"qkv_linear": "layernorm", "expert_fc1": "moe", "moe_act": "moe"}
"""Inputs that are not kept where a module is computed again."""


def moved_activations(structure: Structure, kind: LayerKind) -> Any:
    """Bytes that one layer of a kind keeps of one micro-batch and the host may hold: all, or inputs of its parts."""
    if "activations" in structure.offload:
        return layer_activations(structure, kind)
    return sum((input_kept(structure, kind, name) for name in inputs_of(structure.offload)), sympy.S.Zero)


@in_own_sizes
def input_kept(structure: Structure, kind: LayerKind, name: str) -> Any:
    """Bytes that a layer keeps of the input of one of its parts."""
    architecture, shapes = structure.architecture, Shapes.of(structure, kind)
    if not has_input(architecture, kind, name) or FREED.get(name) in structure.modules:
        return sympy.S.Zero
    tokens, stream = shapes.tokens, shapes.stream_tokens
    match name:
        case "attn_norm" | "mlp_norm":
            return layer_norm_kept(structure, stream)
        case "qkv_linear":
            return read_kept(structure, stream, hidden_size)
        case "core_attn":
            return _operands(structure, kind, shapes)
        case "attn_proj":
            latent = kind.mixer == "latent_attention"
            width = shapes.heads * (sym.v_head_dim if latent else widths.value_width(kind))
            return read_kept(structure, tokens, width, "attention", "o")
    arriving = dealt.arriving_tokens(stream, sym.num_experts_per_token, sym.token_imbalance) * sym.expert_tp
    if name == "expert_fc1":
        return read_kept(structure, arriving, layers.expert_hidden(architecture), "experts", "experts")
    wide = 2 if architecture.gated_mlp else 1
    return saved.input_kept_bytes(arriving, wide * sym.expert_intermediate_size / sym.expert_tp)


def _operands(structure: Structure, kind: LayerKind, shapes: Shapes) -> Any:
    """Bytes of queries, keys and values; expanded latents are not kept where their products are computed again."""
    if kind.mixer == "latent_attention":
        if "mla_up_proj" in structure.modules:
            return sympy.S.Zero
        each = 2 * sym.qk_nope_head_dim + 2 * sym.qk_rope_head_dim + sym.v_head_dim
        return saved.input_kept_bytes(shapes.tokens, shapes.heads * each)
    return saved.input_kept_bytes(shapes.tokens, widths.projected(kind, shapes.heads, shapes.key_value_heads))

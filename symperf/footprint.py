"""Bytes on the fullest device of a training step, as named terms."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import sympy

from . import counts
from . import device_counts as device
from .architecture import UNIFORM
from .context import context_workspace
from .formulas import attention as att
from .formulas import expert_parallel as dealt
from .formulas import memory as mem
from .formulas import symbols as sym
from .formulas.atoms import Max, complement, present
from .formulas.symbols import (
    gradient_bytes,
    head_dim,
    hidden_size,
    micro_batch,
    num_layers,
    optimizer_bytes,
    pp,
    weight_bytes,
    workspace_bytes,
)
from .formulas.symbols import sequence as sequence_length
from .groups import expert_shard_groups, shard_groups
from .shapes import Shapes
from .stages import held_parameters, in_flight, stage_count
from .structure import ZERO_BUBBLE

if TYPE_CHECKING:
    from .architecture import LayerKind
    from .structure import Structure

SHARDED_FROM = {"optimizer": 1, "gradients": 2, "weights": 3}
"""The ZeRO stage from which each part of the state is sharded (Rajbhandari et al. 2020 section 5)."""


def layer_activations(structure: Structure, kind: LayerKind = UNIFORM) -> Any:
    """Bytes that one layer of a kind keeps of one micro-batch for the backward pass."""
    shapes, architecture = Shapes.of(structure), structure.architecture
    tokens, stream = shapes.tokens, shapes.stream_tokens
    if structure.recompute == "full":
        return mem.input_kept_bytes(stream, hidden_size)
    blocks = 1 if architecture.parallel_block and architecture.block_norms == 1 else 2
    norms = max(architecture.block_norms, 1)
    gated = architecture.gated_mlp
    kept = (norms + blocks) * mem.input_kept_bytes(stream, hidden_size)
    if kind.mixer == "latent_attention":
        kept += _latent_kept(structure, shapes)
    else:
        kept += mem.query_key_value_kept_bytes(tokens, shapes.heads, shapes.key_value_heads, head_dim)
        if architecture.query_key_norm != "none":
            kept += mem.input_kept_bytes(tokens, head_dim * (shapes.heads + shapes.key_value_heads))
        kept += mem.input_kept_bytes(tokens, shapes.attention_width)
    if kind.ffn != "experts":
        kept += (mem.gated_mlp_kept_bytes if gated else mem.mlp_kept_bytes)(tokens, shapes.inner)
    if kind.ffn in ("experts", "dense_experts"):
        kept += _experts_kept(structure, shapes)
    if structure.dropout:
        kept += 2 * mem.dropout_kept_bytes(stream, hidden_size)
    if structure.attention == "flash":
        return kept + mem.flash_kept_bytes(tokens, shapes.heads)
    if structure.recompute == "selective":
        return kept
    scores = att.score_elements(micro_batch, sequence_length, shapes.heads)
    return kept + (mem.scores_kept_bytes if structure.dropout else mem.probabilities_kept_bytes)(scores)


def _latent_kept(structure: Structure, shapes: Shapes) -> Any:
    """Bytes that latent attention keeps: narrow projections before and after their norms, heads, and the result."""
    architecture, tokens, heads = structure.architecture, shapes.tokens, shapes.heads
    narrow = (
        2 * sym.kv_lora_rank + sym.qk_rope_head_dim + (2 * sym.q_lora_rank if architecture.query_compression else 0)
    )
    each = 2 * sym.qk_nope_head_dim + 2 * sym.qk_rope_head_dim + 2 * sym.v_head_dim
    return mem.input_kept_bytes(tokens, narrow + heads * each)


def _experts_kept(structure: Structure, shapes: Shapes) -> Any:
    """Bytes that experts keep: scores of the router, rows in and out, inner tensors; and those of shared experts."""
    architecture, own = structure.architecture, shapes.stream_tokens
    arriving = dealt.arriving_tokens(own, sym.num_experts_per_token, sym.token_imbalance) * sym.expert_tp
    inner = mem.gated_mlp_kept_bytes if architecture.gated_mlp else mem.mlp_kept_bytes
    kept = mem.logits_kept_bytes(own, sym.num_experts) + 2 * mem.input_kept_bytes(arriving, hidden_size)
    kept += inner(arriving, sym.expert_intermediate_size / sym.expert_tp)
    if architecture.shared_experts:
        kept += inner(shapes.tokens, sym.shared_expert_intermediate_size / sym.tp)
    return kept


def stage_activations(structure: Structure, held: Any) -> Any:
    """Bytes that the fullest stage's layers keep of `held` micro-batches."""
    if structure.stages != "even":
        kinds = structure.architecture.kinds
        counted = [(counts.count_of(kind), layer_activations(structure, kind)) for kind in kinds]
        if structure.architecture.uniform_dense:
            counted = [(num_layers, layer_activations(structure))]
        return sum(mem.stage_activation_bytes(each, stage_count(structure, n), 1, held) for n, each in counted)
    if structure.architecture.uniform_dense:
        return mem.stage_activation_bytes(layer_activations(structure), num_layers, pp, held)
    return sum(
        mem.stage_activation_bytes(layer_activations(structure, kind), counts.count_of(kind), pp, held)
        for kind in structure.architecture.kinds
    )


def recomputed_bytes(structure: Structure) -> Any:
    """Bytes that one layer's recomputed activations take while its backward pass runs, beside what is kept of it."""
    if structure.recompute == "none" or (structure.recompute == "selective" and structure.attention == "flash"):
        return sympy.S.Zero
    kinds = (UNIFORM,) if structure.architecture.uniform_dense else structure.architecture.kinds
    plain = dataclasses.replace(structure, recompute="none")
    if structure.recompute == "selective":
        return Max(*(layer_activations(plain, kind) - layer_activations(structure, kind) for kind in kinds))
    return Max(*(layer_activations(plain, kind) for kind in kinds))


def end_activations(structure: Structure) -> tuple[Any, Any]:
    """Bytes that the embedding and the head keep of one micro-batch."""
    shapes, architecture = Shapes.of(structure), structure.architecture
    stream = shapes.stream_tokens
    first = mem.dropout_kept_bytes(stream, hidden_size) if structure.dropout else 0
    if architecture.embedding_norm:
        first += mem.input_kept_bytes(stream, hidden_size)
    norms = 2 if architecture.final_norm else 1
    head = norms * mem.input_kept_bytes(stream, hidden_size) + mem.logits_kept_bytes(shapes.tokens, shapes.vocabulary)
    return first, head


def footprint(structure: Structure) -> dict[str, Any]:
    """Named terms of the memory of a training step on the fullest device; a total is their sum.

    The first stage of a pipeline holds the most micro-batches; the last holds the logits. Activations are the larger
    of the two, weights those of the larger end. A zero-bubble schedule holds as many micro-batches on every stage;
    under DualPipe the first device is both ends.
    """
    layers, experts, ends = held_parameters(structure)
    found = _state(structure, {"layers": layers, "ends": ends}, shard_groups(structure)[0].ranks)
    if structure.architecture.routed:
        found |= _state(structure, {"experts": experts}, expert_shard_groups(structure)[0].ranks)
    if structure.zero == 3:
        unit = device.largest_layer_parameters(structure.architecture)
        sharded = present(shard_groups(structure)[0].ranks)
        found["workspace/gathered"] = sharded * 2 * unit * (weight_bytes + gradient_bytes)
    if structure.context != "none":
        found["workspace/context"] = context_workspace(structure)
    return found | {
        "activations": _activations(structure),
        "workspace/recompute": recomputed_bytes(structure),
        "workspace/framework": workspace_bytes,
    }


def _state(structure: Structure, parameters: dict[str, Any], shards: Any) -> dict[str, Any]:
    """Weights, gradients and optimizer state of parameters by what they are, sharded as the ZeRO stage has it."""
    each = {
        "weights": (mem.weights_memory, weight_bytes),
        "gradients": (mem.gradients_memory, gradient_bytes),
        "optimizer": (mem.optimizer_memory, optimizer_bytes),
    }
    return {
        f"{state}/{name}": form(count, size) / shards if structure.zero >= SHARDED_FROM[state] else form(count, size)
        for state, (form, size) in each.items()
        for name, count in parameters.items()
    }


def _activations(structure: Structure) -> Any:
    """Bytes of activations on the fullest stage."""
    held = in_flight(structure)
    layer_bytes = stage_activations(structure, held)
    first, last = end_activations(structure)
    if structure.schedule == "dualpipe":
        return layer_bytes + held / 2 * first + last
    newest = layer_bytes if structure.schedule in ZERO_BUBBLE else stage_activations(structure, 1)
    first_stage = layer_bytes + held * first + complement(present(pp)) * last
    return Max(first_stage, present(pp) * (newest + last))

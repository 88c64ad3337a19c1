"""Bytes on the fullest device of a training step, as named terms."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import sympy

from . import counts
from .formulas import attention as att
from .formulas import memory as mem
from .formulas import pipeline as pipe
from .formulas.atoms import Max, complement, present
from .formulas.symbols import (
    batch,
    dp,
    gradient_bytes,
    head_dim,
    hidden_size,
    micro_batch,
    num_layers,
    optimizer_bytes,
    pp,
    vpp,
    weight_bytes,
    workspace_bytes,
)
from .formulas.symbols import sequence as sequence_length
from .shapes import Shapes

if TYPE_CHECKING:
    from .structure import Structure


def layer_activations(structure: Structure) -> Any:
    """Bytes that one layer keeps of one micro-batch for the backward pass."""
    shapes, architecture = Shapes.of(structure), structure.architecture
    tokens, stream = shapes.tokens, shapes.stream_tokens
    if structure.recompute == "full":
        return mem.input_kept_bytes(stream, hidden_size)
    blocks = 1 if architecture.parallel_block and architecture.block_norms == 1 else 2
    norms = max(architecture.block_norms, 1)
    gated = architecture.gated_mlp
    kept = (norms + blocks) * mem.input_kept_bytes(stream, hidden_size)
    kept += mem.query_key_value_kept_bytes(tokens, shapes.heads, shapes.key_value_heads, head_dim)
    if architecture.query_key_norm != "none":
        kept += mem.input_kept_bytes(tokens, head_dim * (shapes.heads + shapes.key_value_heads))
    kept += mem.input_kept_bytes(tokens, shapes.attention_width)
    kept += (mem.gated_mlp_kept_bytes if gated else mem.mlp_kept_bytes)(tokens, shapes.inner)
    if structure.dropout:
        kept += 2 * mem.dropout_kept_bytes(stream, hidden_size)
    if structure.attention == "flash":
        return kept + mem.flash_kept_bytes(tokens, shapes.heads)
    if structure.recompute == "selective":
        return kept
    scores = att.score_elements(micro_batch, sequence_length, shapes.heads)
    return kept + (mem.scores_kept_bytes if structure.dropout else mem.probabilities_kept_bytes)(scores)


def recomputed_bytes(structure: Structure) -> Any:
    """Bytes that one layer's recomputed activations take while its backward pass runs, beside what is kept of it."""
    if structure.recompute == "none" or (structure.recompute == "selective" and structure.attention == "flash"):
        return sympy.S.Zero
    whole = layer_activations(dataclasses.replace(structure, recompute="none"))
    return whole - layer_activations(structure) if structure.recompute == "selective" else whole


def in_flight(structure: Structure) -> Any:
    """Micro-batches whose activations the first stage holds."""
    count = pipe.micro_batch_count(batch, micro_batch, dp)
    if structure.schedule == "gpipe":
        return pipe.gpipe_in_flight(count)
    if structure.schedule == "1f1b":
        return pipe.one_f_one_b_in_flight(count, pp)
    return pipe.interleaved_in_flight(count, pp, vpp)


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
    of the two, weights those of the larger end.
    """
    architecture = structure.architecture
    layers = counts.stage_layer_parameters(architecture)
    ends = counts.stage_end_parameters(architecture)
    kept_layer, held = layer_activations(structure), in_flight(structure)
    layer_bytes = mem.stage_activation_bytes(kept_layer, num_layers, pp, held)
    first, last = end_activations(structure)
    newest = mem.stage_activation_bytes(kept_layer, num_layers, pp, 1)
    first_stage = layer_bytes + held * first + complement(present(pp)) * last
    last_stage = present(pp) * (newest + last)
    share = mem.sharded_optimizer_memory if structure.zero else None

    def optimizer(count: Any) -> Any:
        return share(count, optimizer_bytes, dp) if share else mem.optimizer_memory(count, optimizer_bytes)

    return {
        "weights/layers": mem.weights_memory(layers, weight_bytes),
        "weights/ends": mem.weights_memory(ends, weight_bytes),
        "gradients/layers": mem.gradients_memory(layers, gradient_bytes),
        "gradients/ends": mem.gradients_memory(ends, gradient_bytes),
        "optimizer/layers": optimizer(layers),
        "optimizer/ends": optimizer(ends),
        "activations": Max(first_stage, last_stage),
        "workspace/recompute": recomputed_bytes(structure),
        "workspace/framework": workspace_bytes,
    }

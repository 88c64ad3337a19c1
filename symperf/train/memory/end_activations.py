"""Bytes that the ends of a model keep of a micro-batch for its backward pass: embeddings and encoders, and the head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels import losses
from ...formulas.language import symbols as sym
from ...formulas.language.symbols import hidden_size, micro_batch
from ...formulas.memory import saved_activations as saved
from ...models import side_counts as side
from ...models.counts import SPECTRA
from ...operations.shapes import Shapes
from ...plans.gradients import gradients_of
from .encoder_counts import encoder_activations
from .saved_activations import norm_kept, streams_kept

if TYPE_CHECKING:
    from ...plans.structure import Structure

ZERO = sympy.S.Zero


def end_activations(structure: Structure) -> tuple[Any, Any]:
    """Bytes that the embedding and the head keep of one micro-batch."""
    architecture = structure.architecture
    shapes = Shapes.of(structure, architecture.kinds[-1])
    first = embedding_kept(structure, shapes.stream_tokens) + encoder_activations(structure)
    if architecture.stacks == 2 and gradients_of(structure).through_layers:
        shapes_of_encoder = Shapes.of(structure, architecture.kinds[0])
        encoder = shapes_of_encoder.stream_tokens
        # The encoder's end: the input of its norm, and its output, which the decoder's layers share.
        outputs = 2 if architecture.final_norm else 1
        first += spectra_kept(shapes_of_encoder.tokens) if architecture.spectra else ZERO
        first += embedding_kept(structure, encoder) + outputs * saved.input_kept_bytes(encoder, hidden_size)
    return first, head_kept(structure, shapes)


def spectra_kept(tokens: Any) -> Any:
    """Bytes that the convolutions of spectra keep: their inputs, and those of their activation functions."""
    read = saved.input_kept_bytes(SPECTRA[0][0] * tokens, sym.mel_bins + 2 * hidden_size)
    return read + saved.input_kept_bytes(tokens, hidden_size)


def embedding_kept(structure: Structure, stream: Any) -> Any:
    """Bytes that one embedding keeps."""
    architecture, gradients = structure.architecture, gradients_of(structure)
    if not gradients.embeds:
        return ZERO
    kept = saved.dropout_kept_bytes(stream, hidden_size) if structure.dropout else ZERO
    if architecture.embedding_norm:
        kept += saved.input_kept_bytes(stream, hidden_size)
    # The layers' features, the input of their projection and norm, and of the projections to further streams.
    kept += saved.input_kept_bytes(stream, 3 * side.features(architecture))
    if architecture.side_blocks:
        kept += saved.input_kept_bytes(stream, hidden_size)
    if architecture.patches and gradients.trains("embedding"):
        kept += saved.input_kept_bytes(micro_batch * sym.num_patches, sym.patch_features)
    return kept


def head_kept(structure: Structure, shapes: Shapes) -> Any:
    """Bytes that the head keeps: inputs of its norms and products, and the logits."""
    architecture, stream, gradients = structure.architecture, shapes.stream_tokens, gradients_of(structure)
    each = saved.input_kept_bytes(stream, hidden_size)
    joined = saved.input_kept_bytes(stream, sym.num_update_streams * hidden_size)
    norm = norm_kept(structure, stream) if architecture.final_norm else ZERO
    norm += streams_kept(stream) if architecture.hyper_connections else ZERO
    norm += joined if architecture.alternating_updates else ZERO
    if not (gradients.through_layers or gradients.trains("final_norm")):
        norm = ZERO
    match architecture.head:
        case "none":
            return norm
        case "labels":
            return norm + saved.logits_kept_bytes(*logits_shape(structure))
        case "transformed":
            # Input of the product, of the activation function, of the norm and of the logits' product.
            norm += 3 * each
    read = each if gradients.trains(gradients.vocabulary) else ZERO
    return norm + read + logits_kept(structure, shapes)


def logits_kept(structure: Structure, shapes: Shapes) -> Any:
    """Bytes of logits that the loss holds at once: in 32 bits where unfused, else in 16, or a number a token if cut.

    Where chunks have their backward pass at once, the gradient of the head's input is kept until the layers' pass.
    """
    tokens, columns = shapes.tokens, shapes.vocabulary
    if structure.loss == "unfused":
        return saved.logits_kept_bytes(tokens, columns)
    if structure.loss == "cut":
        return saved.logits_kept_bytes(tokens, 1)
    chunks = chunks_of(structure, columns)
    gradient = saved.input_kept_bytes(tokens, hidden_size) if chunks != 1 else ZERO
    return gradient + losses.fused_logits_kept_bytes(tokens, columns, sym.activation_bytes, chunks)


def chunks_of(structure: Structure, columns: Any) -> Any:
    """Chunks of tokens that the loss takes one by one, over `columns` of the vocabulary."""
    match structure.loss:
        case "chunked":
            return sym.loss_chunks
        case "fused-linear":
            return losses.linear_loss_chunks(columns, hidden_size)
        case _:
            return sympy.S.One


def logits_shape(structure: Structure) -> tuple[Any, Any]:
    """Rows and columns of the logits of a micro-batch on a device; no rows where there is no loss."""
    match structure.architecture.head:
        case "none":
            return ZERO, ZERO
        case "labels":
            return micro_batch, sym.num_labels
        case _:
            shapes = Shapes.of(structure, structure.architecture.kinds[-1])
            return shapes.tokens, shapes.vocabulary

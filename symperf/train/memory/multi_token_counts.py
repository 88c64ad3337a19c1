"""Multi-token prediction in numbers: what its modules hold, keep and multiply, on a device and altogether.

Each of D modules has a norm of the stream and one of the next tokens' embeddings, a projection of both to one stream, a
layer of the model's last kind, and a norm before the head; table and head are the model's (DeepSeek-AI 2024, V3,
section 2.2). All are on the last stage, as in Megatron-Core, which has a copy of the table unless it is there already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels import hyper_connections as hyper
from ...formulas.kernels import matmul
from ...formulas.language.atoms import above_one, ceil_div
from ...formulas.language.symbols import (
    batch,
    document_length,
    hidden_size,
    num_multi_token_layers,
    num_streams,
    pp,
    sequence,
    stage_number,
    tp,
    vocab_size,
)
from ...formulas.memory import parameters as par
from ...formulas.memory import saved_activations as saved
from ...formulas.memory import stage_memory as each
from ...models import layer_counts as layers
from ...operations.reads import changed
from ...operations.shapes import Shapes
from ...plans.gradients import gradients_of, module_frozen
from . import device_counts as device
from .end_activations import embedding_kept, head_kept
from .saved_activations import layer_activations, read_kept

if TYPE_CHECKING:
    from ...models.architecture import Architecture
    from ...plans.structure import Structure

ZERO = sympy.S.Zero
ANY = above_one(1 + num_multi_token_layers)
"""One where there are such modules, else 0."""


# Parameters -------------------------------------------------------------------------------------------------------


def module_parameters(architecture: Architecture) -> tuple[Any, Any]:
    """Parameters of one module on one device: dense ones, and those of its routed experts."""
    kind = architecture.module_kind
    own = 3 * layers.norm(architecture, hidden_size) + par.linear_parameters(2 * hidden_size, hidden_size / tp)
    if architecture.hyper_connections:
        own += hyper.stream_head_parameters(hidden_size, num_streams)
    return device.dense_parameters(architecture, kind) + own, device.expert_parameters(architecture, kind)


def modules_on_fullest(structure: Structure) -> Any:
    """Modules on the last stage, which has all of them."""
    return num_multi_token_layers if structure.architecture.multi_token_head else ZERO


def modules_on_stage(structure: Structure) -> Any:
    """Modules on the device of stage i; under DualPipe on those of the first and the last."""
    last = each.is_last_stage(stage_number, pp)
    if apart(structure):
        return is_module_stage(structure) * modules_on_fullest(structure)
    if structure.schedule == "dualpipe":
        last += each.is_first_stage(stage_number)
    return last * modules_on_fullest(structure)


def apart(structure: Structure) -> bool:
    """Whether a layout has the modules on another stage than the head, which then has their logits alone.

    Megatron-Core builds the head and the loss of the modules with the model's (gpt_model.py, `post_process`).
    """
    return structure.module_stage not in (0, len(structure.chunks))


def is_module_stage(structure: Structure) -> Any:
    """One for the stage that a layout gives the modules; else 0."""
    return is_stage(stage_number, structure.module_stage)


def is_stage(number: Any, at: Any) -> Any:
    """One for the stage of number `at`; else 0."""
    return each.is_last_stage(number, at) - above_one(number / at)


def copies_table(architecture: Architecture, schedule: str) -> bool:
    """Whether the last stage of a pipeline has a copy of the table for its modules.

    It has one of a tied table anyway, and under DualPipe the first stage is on the same device.
    """
    return architecture.multi_token_head and not architecture.tied_embeddings and schedule != "dualpipe"


def copied_parameters(structure: Structure) -> Any:
    """Parameters of that copy on one device of the last of several stages."""
    if not copies_table(structure.architecture, structure.schedule):
        return ZERO
    return ANY * par.linear_parameters(hidden_size, ceil_div(vocab_size, tp))


# Activations ------------------------------------------------------------------------------------------------------


def recomputes(structure: Structure) -> bool:
    """Whether a module is computed again as a whole: with all layers, not where some layers of a stage are chosen."""
    return structure.recompute == "full" and not structure.some_layers


def module_activations(structure: Structure) -> Any:
    """Bytes that one module keeps of one micro-batch; the stream that it reads the head has kept already."""
    kind = structure.architecture.module_kind
    shapes = Shapes.of(structure, kind)
    stream = shapes.stream_tokens
    if not gradients_of(structure).through_modules:
        return head_kept(structure, shapes)
    one = saved.input_kept_bytes(stream, hidden_size)
    found = one + embedding_kept(structure, stream) + head_kept(structure, shapes)
    if recomputes(structure):
        # The input of the last norm is computed again.
        return found - one
    plain = changed(structure, recompute="none") if structure.recompute == "full" else structure
    projection = read_kept(structure, stream, projected_width(structure), "multi_token")
    plain = changed(plain, frozen=module_frozen(structure), adapted=())
    return found + projection + layer_activations(plain, kind)


def module_logits(structure: Structure) -> Any:
    """Of these, the bytes that the head keeps for a module."""
    return head_kept(structure, Shapes.of(structure, structure.architecture.module_kind))


def projected_width(structure: Structure) -> Any:
    """Features of a token that a module's projection reads: of its embedding, and of the stream or of all streams."""
    return hidden_size * (1 + (num_streams if structure.architecture.hyper_connections else 1))


# Products ---------------------------------------------------------------------------------------------------------


def forward_flops(architecture: Architecture, keys: Any = sequence) -> tuple[Any, Any, Any]:
    """FLOPs of the modules' forward pass over B sequences: attention scores, other products, and those of the head.

    Args:
        architecture: of the model.
        keys: tokens that a query attends to, masked or not.
    """
    if not architecture.multi_token_head:
        return ZERO, ZERO, ZERO
    found = dict(layers.layer_flops(architecture, architecture.module_kind, sequence, keys))
    scores = found.pop("attention_scores", ZERO)
    tokens, several = batch * sequence, architecture.hyper_connections
    rows = tokens * (1 + (num_streams if several else 1))
    products = sum(found.values()) + matmul.matmul_flops(rows, hidden_size, hidden_size, 1)
    if several:
        products += hyper.stream_head_flops(tokens, hidden_size, num_streams)
    head = matmul.matmul_flops(tokens, vocab_size, hidden_size, 1)
    return tuple(num_multi_token_layers * part for part in (scores, products, head))


def recomputed_flops(structure: Structure) -> Any:
    """FLOPs of the modules that a step computes again."""
    keys = document_length if structure.documents else sequence
    scores, products, _ = forward_flops(structure.architecture, keys)
    if recomputes(structure):
        return scores + products
    return scores if "core_attn" in structure.modules else ZERO

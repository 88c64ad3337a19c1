"""What stands before the layer of a head that drafts for another model, and what the head weighs beside its layer.

A module for multi-token prediction normalises the embedding and the stream, and projects both to one stream; EAGLE's
head does so without norms; EAGLE-3's makes its stream of three of the model's in the first pass, whose tokens the model
has seen, and attends to the embedding beside it (vLLM, model_executor/models/deepseek_mtp.py @03356f8c, llama_eagle.py
@00da9231, llama_eagle3.py @00bd1493). Projections are whole on every device and in 16 bits; tables of tokens are the
model's (llm_base_proposer.py: "Sharing target model lm_head weights with the draft model").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulas.kernels import elementwise as ew
from ..formulas.language.atoms import above_one, ceil_div
from ..formulas.language.symbols import (
    activation_bytes,
    hidden_size,
    num_streams,
    step_tokens,
    table_bytes,
    tp,
    vocab_size,
)
from ..formulas.memory.parameters import linear_parameters
from ..models import counts, layer_counts
from ..operations.shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from ..models.architecture import Architecture
    from ..operations.schedule import Op
    from .layer import Block

SEEN = 3
"""Layers of the model whose streams EAGLE-3 reads (Li et al. 2025, section 3)."""


def entrance(block: Block) -> list[Op | None]:
    """From the embeddings and the hidden states of the model to the stream of the head's layer."""
    what = block.architecture.draft_head
    if what == "mtp":
        several = block.architecture.hyper_connections
        norms = [block.norm("draft/norm/embedding"), _norm(block, num_streams if several else 1)]
        if several:
            return [*norms, _product(block, "embedding", 1), _product(block, "streams", 1, num_streams)]
        return [*norms, _join(block), _product(block, "projection", 2)]
    if what == "eagle":
        return [_join(block), _product(block, "projection", 2)]
    if what == "eagle3":
        seen = _product(block, "projection", SEEN)
        first = above_one(step_tokens) if block.phase == "decode" else 1
        return [replace(seen, time=first * seen.time), _norm(block, 1), _join(block)]
    return []


def _norm(block: Block, streams: Any) -> Op:
    n = block.tokens * hidden_size * streams
    return block.kernels.stream(
        block.path("draft/norm/stream"), ew.norm_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["norm"]
    )


def _join(block: Block) -> Op:
    """Embeddings and the stream side by side, a copy of both."""
    n = 2 * block.tokens * hidden_size
    return block.kernels.stream(block.path("draft/join"), ew.activation_function_bytes(n, activation_bytes), n, 0)


def _product(block: Block, name: str, widths: Any, rows: Any = 1) -> Op:
    kinds = {"right": table_bytes, "left": activation_bytes}
    path = block.path(f"draft/{name}")
    return block.kernels.matmul(path, rows * block.tokens, hidden_size, widths * hidden_size, **kinds)


def end_parameters(architecture: Architecture) -> Any:
    """Parameters of a head beside its layer, on one device: projections, norms, and a table that is its own."""
    last = counts.final_norm_parameters(architecture)
    norm = layer_counts.norm(architecture, hidden_size)
    if architecture.draft_head == "eagle3":
        own = linear_parameters(hidden_size, ceil_div(vocab_size, tp))
        return last + norm + linear_parameters(SEEN * hidden_size, hidden_size) + own
    norms = 2 * norm if architecture.draft_head == "mtp" else 0
    return last + norms + linear_parameters(2 * hidden_size, hidden_size)

"""Attention over a sequence in c parts: ring, all-to-all (Ulysses) and all-gather, as operations with flash kernels.

Parts are balanced: of 2c chunks a device has one from the start and one from the end, so that every step of the ring
has as many visible pairs (Grattafiori et al. 2024 section 3.3.2). The trees have the times of `context_parallel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels import compressed_attention as comp
from ...formulas.kernels.latent_attention import latent_cache_elements
from ...formulas.language.atoms import Max, above_one, complement, less_one
from ...formulas.language.symbols import (
    activation_bytes,
    compress_ratio,
    cp,
    head_dim,
    kv_lora_rank,
    micro_batch,
    qk_nope_head_dim,
    qk_rope_head_dim,
    sliding_window,
    v_head_dim,
)
from ...formulas.language.symbols import sequence as whole
from ...formulas.parallel import context_parallel as con
from ...models import attention_widths as widths
from ...models import sparse_counts
from ...models.own_sizes import of_kind
from ...models.sparse_counts import index_elements
from ...operations.groups import context_group
from ...operations.schedule import Node, Op, Overlap, Repeat, Sequence, sequence
from ...operations.shapes import Shapes

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure
    from .attention_core import AttentionCore

BESIDE = sympy.S.One
"""A part's transfer runs wholly beside the attention to the part before (Liu et al. 2023 section 3)."""


class ContextAttention:
    """The attention core of one kind of layer over parts of a sequence."""

    def __init__(self, core: AttentionCore) -> None:
        self.core, self.kernels, self.shapes = core, core.kernels, core.shapes
        self.way, self.latent = core.structure.context, core.latent
        self.path = f"{core.layer.root}/{core.name}"

    def forward(self, phase: str) -> Sequence:
        """The core's forward pass."""
        step = self.kernels.flash(f"{self.path}/flash/{phase}", *self.demand)
        if self.way == "all-to-all":
            return self.dealt(step, phase)
        if self.way == "all-gather":
            return sequence(self.gather(phase), step)
        transfer = self.send(f"ring/{phase}")
        passes = sequence(step, Repeat(_beside(step, transfer), less_one(cp)))
        return sequence(passes, self.merge("results", phase, self.part_bytes(self.core.value_width)))

    def backward(self) -> Sequence:
        """Gradients of queries, keys and values over the parts of a sequence."""
        step = self.kernels.flash_backward(f"{self.path}/flash/backward", *self.demand)
        if self.way == "all-to-all":
            return self.dealt(step, "backward")
        if self.way == "all-gather":
            scatter = self.kernels.reduce_scatter(f"{self.path}/context/scatter", self.all_keys, context_group())
            return sequence(self.gather("backward"), step, scatter)
        transfer, gradients = self.send("ring/backward"), self.send("ring/backward_gradients")
        merged = sequence(
            self.merge("queries", "backward", self.part_bytes(self.core.key_width)),
            self.merge("keys", "backward", key_value_bytes(self.shapes, self.core.kind)),
        )
        if transfer is None or gradients is None:
            return sequence(Repeat(step, cp), merged)
        return sequence(
            Repeat(step, complement(above_one(cp))),
            Repeat(
                sequence(Overlap(step, transfer, BESIDE), Overlap(step, gradients, BESIDE), gradients), above_one(cp)
            ),
            Repeat(Overlap(step, sequence(transfer, gradients), BESIDE), less_one(Max(1, less_one(cp)))),
            merged,
        )

    def dealt(self, step: Op, phase: str) -> Sequence:
        """Heads instead of tokens for the time of the attention: four all-to-alls, which nothing hides."""
        tokens, shapes = self.shapes.tokens, self.shapes
        if self.latent:
            keys = queries = tokens * shapes.heads * (qk_nope_head_dim + qk_rope_head_dim) * activation_bytes
            values = results = tokens * shapes.heads * v_head_dim * activation_bytes
        else:
            kind = self.core.kind
            queries = con.query_part_bytes(tokens, shapes.heads, shapes.head_dim, activation_bytes)
            results = con.query_part_bytes(tokens, shapes.heads, widths.core_value_width(kind), activation_bytes)
            width = widths.stored_width(kind)
            both = con.dealt_key_value_bytes(tokens, shapes.key_value_heads, width, activation_bytes, cp)
            keys = values = both / 2

        def deal(name: str, message: Any) -> Op | None:
            return self.kernels.all_to_all(f"{self.path}/context/{name}/{phase}", message, context_group())

        return sequence(
            deal("queries", queries), deal("keys", keys), deal("values", values), step, deal("results", results)
        )

    def gather(self, phase: str) -> Op | None:
        """Keys and values of all parts."""
        return self.kernels.all_gather(f"{self.path}/context/gather/{phase}", self.all_keys, context_group())

    def send(self, name: str) -> Op | None:
        """Keys and values of a part, or their gradients, to the next device of the ring."""
        return self.kernels.send(f"{self.path}/{name}", key_value_bytes(self.shapes, self.core.kind), context_group())

    def merge(self, name: str, phase: str, partial_bytes: Any) -> Sequence:
        """The sum of what the steps of a ring found: the first is scaled, or copied, each further one added."""
        path, elements = f"{self.path}/merge/{name}", partial_bytes / activation_bytes
        first = self.kernels.stream(f"{path}/first/{phase}", 2 * partial_bytes, elements, 1)
        further = self.kernels.stream(f"{path}/further/{phase}", 3 * partial_bytes, elements, 2)
        return sequence(Repeat(first, above_one(cp)), Repeat(further, less_one(cp)))

    def part_bytes(self, width: Any) -> Any:
        """Bytes of the queries of a device's tokens, or of its results."""
        return con.query_part_bytes(self.shapes.tokens, self.shapes.heads, width, activation_bytes)

    @property
    def all_keys(self) -> Any:
        """Bytes of the keys and values of all parts."""
        return cp * key_value_bytes(self.shapes, self.core.kind)

    @property
    def demand(self) -> tuple[Any, Any]:
        """Work and traffic of one forward kernel: a step of the ring, or all of a device's attention."""
        heads, key_heads = self.shapes.heads, self.shapes.key_value_heads
        own, keys = whole / cp, whole / cp
        share = cp**2 if self.way == "ring" else cp
        if self.way == "all-to-all":
            own = keys = whole
            heads, key_heads = heads / cp, Max(key_heads, cp) / cp
        elif self.way == "all-gather":
            keys = whole
        return self.core.work / share, self.core.traffic(own, keys, heads, key_heads)


def key_value_bytes(shapes: Shapes, kind: LayerKind) -> Any:
    """Bytes of the keys and values of a device's tokens, with an indexer's keys; latents that are selected stay so."""
    index = shapes.tokens * index_elements(kind) * activation_bytes
    if kind.mixer == "latent_attention":
        selected = {"indexer", "reused_index"} & set(kind.traits)
        width = qk_nope_head_dim + qk_rope_head_dim + v_head_dim
        each = latent_cache_elements(kv_lora_rank, qk_rope_head_dim) if selected else shapes.heads * width
        return shapes.tokens * each * activation_bytes + index
    stored = widths.stored_width(kind)
    return con.key_value_part_bytes(shapes.tokens, shapes.key_value_heads, stored, activation_bytes) + index


def context_workspace(structure: Structure) -> Any:
    """Bytes of one layer's keys and values of other parts, and of their gradients.

    A ring holds the part in use and the one that comes; an all-gather all parts; all-to-all none beside what is saved.
    """
    if structure.context == "all-to-all":
        return sympy.S.Zero
    kinds = [kind for kind in structure.architecture.kinds if kind.mixer != "none"]
    held = 2 if structure.context == "ring" else cp
    sizes = {of_kind(held * key_value_bytes(Shapes.of(structure, kind), kind), kind) for kind in kinds}
    if structure.architecture.has("compressed_attention"):
        sizes = {of_kind(_entry_bytes(kind), kind) for kind in kinds}
    return above_one(cp) * 2 * Max(*sizes)


def _entry_bytes(kind: LayerKind) -> Any:
    """Bytes of the compressed entries of all parts, and of the windows before the two chunks of one."""
    entries = comp.compressed_entries(whole, compress_ratio) * sparse_counts.entry_elements(kind)
    return micro_batch * (entries + 2 * sliding_window * head_dim) * activation_bytes


def _beside(step: Op, transfer: Op | None) -> Node:
    return step if transfer is None else Overlap(step, transfer, BESIDE)

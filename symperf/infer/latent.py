"""Latent attention (MLA) of an inference: expanded in prefill, absorbed in decoding.

The cache holds one latent and one rotary key a token, which every device of a tensor-parallel group keeps whole. In a
decode step the projections up to the heads move to the queries and to the results (DeepSeek-AI 2024, V2, section
2.1.2), so that the cache is read as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulas.generation import block_decode as block
from ..formulas.kernels import attention_blocks as blocked
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import latent_attention as mla
from ..formulas.kernels import looped_matmul as looped
from ..formulas.kernels.roofline import traffic_time, work_time
from ..formulas.language.atoms import ceil_div
from ..formulas.language.symbols import (
    absorb_latency,
    activation_bytes,
    attention_rate,
    cache_casts,
    hidden_size,
    kv_bytes,
    kv_lora_rank,
    latent_efficiency,
    memory_bandwidth,
    memory_efficiency,
    micro_batch,
    num_attention_heads,
    operand_bytes,
    q_lora_rank,
    qk_nope_head_dim,
    qk_rope_head_dim,
    score_rate,
    tp,
    v_head_dim,
)
from ..operations.groups import parts
from ..operations.shapes import FLOPS_PER_ELEMENT
from . import split_context
from .attention import CachedAttention
from .cache_read import BlockRead, CacheRead
from .kernels import PromptBlocks, cast_bytes

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Layer


class LatentAttention(CachedAttention):
    """The latent attention of one kind of layer, in one phase; a unit takes one head of one sequence."""

    families = ("latent", "latent")

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.heads = self.units = num_attention_heads / tp
        self.value_width = kv_lora_rank
        self.query_width = self.heads * (qk_nope_head_dim + qk_rope_head_dim)

    def name(self, name: str) -> str:
        """The path of an operation of the attention block, without its phase."""
        return f"{self.layer.root}/{self.folder}/{name}"

    def projections(self) -> list[Op | None]:
        """Queries and latents with their norms, and rotary positions."""
        layer = self.layer
        joined = layer.fusion.latent_down and layer.architecture.query_compression
        latents = kv_lora_rank + qk_rope_head_dim
        if layer.architecture.query_compression:
            queries: list[Op | None] = [
                layer.linear(self.name("query_down"), hidden_size, q_lora_rank + (latents if joined else 0)),
                self.norm("query_norm", q_lora_rank),
                layer.linear(self.name("query_up"), q_lora_rank, self.query_width),
            ]
        else:
            queries = [layer.linear(self.name("query"), hidden_size, self.query_width)]
        gated, width = layer.architecture.attention_gate, self.heads * v_head_dim
        return [
            *queries,
            layer.linear(self.name("gate_in"), hidden_size, width) if gated else None,
            None if joined else layer.linear(self.name("latent_down"), hidden_size, latents),
            self.norm("latent_norm", kv_lora_rank),
            self.rotary(),
            self.append(),
        ]

    def output(self) -> list[Op | None]:
        """The gate, if there is one, and the projection of the results."""
        gate, width = None, self.heads * v_head_dim
        if self.layer.architecture.attention_gate:
            n = self.layer.tokens * width
            traffic, work = ew.gated_activation_bytes(n, activation_bytes), FLOPS_PER_ELEMENT["activation"]
            gate = self.layer.kernels.stream(self.path("gate"), traffic, n, work)
        return [gate, self.layer.linear(self.name("output"), width, hidden_size)]

    def append(self) -> Op | None:
        """The kernel that writes new latents and rotary keys into the cache."""
        return self.append_of(self.layer.tokens * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim))

    def norm(self, name: str, width: Any) -> Op:
        """The norm of a narrow projection."""
        n = self.layer.tokens * width
        return self.layer.kernels.stream(
            self.path(name), ew.norm_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["norm"]
        )

    def rotary(self) -> Op | None:
        """Rotary positions, where they are a kernel of their own."""
        if self.layer.architecture.positions != "rotary" or self.layer.fusion.rotary_cache:
            return None
        n = self.layer.tokens * qk_rope_head_dim * (self.heads + 1)
        return self.layer.kernels.stream(
            self.path("rotary"), ew.rotary_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["rotary"]
        )

    def prefill(self, length: Any) -> list[Op | None]:
        """Keys and values of all heads, and causal attention among the prompt's tokens."""
        layer, own = self.layer, length / parts(self.layer.structure)
        widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
        work = mla.expanded_attention_flops(micro_batch, own, length + 1, self.heads, *widths) / 2
        traffic = mla.expanded_attention_bytes(micro_batch, own, length, self.heads, *widths, activation_bytes)
        expanded = self.heads * (qk_nope_head_dim + v_head_dim)
        blocks = self.new_blocks(micro_batch, own, (length + 1) / 2, length)
        # Latents of all parts are expanded on every device, for its own heads.
        up = layer.kernels.matmul(self.path("latent_up"), micro_batch * length, expanded, kv_lora_rank)
        attend = layer.kernels.flash(self.path("flash"), work, traffic, blocks)
        return [up, *split_context.passed(self, micro_batch * length, attend)]

    def absorbed_prefill(self, length: Any) -> Op:
        """Causal attention among a prompt's latents, which some software takes for prompts after a short prefix."""
        pair = mla.absorbed_attention_flops(1, 1, 1, 1, kv_lora_rank, qk_rope_head_dim)
        groups, mean = micro_batch * self.heads, (length + 1) / 2
        read = self.demand(micro_batch, length)
        latents = micro_batch * length * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim)
        written = blocked.cache_write_bytes(latents, activation_bytes, kv_bytes)
        if "widened_cache" in self.layer.structure.latent:
            written *= 1 + cache_casts
        blocks = PromptBlocks(groups, length, mean, length, pair, written=written)
        traffic = read.own + latents * kv_bytes
        op = self.layer.kernels.flash(self.path("flash"), groups * length * mean * pair, traffic, blocks)
        widened = "widened_cache" in self.layer.structure.latent
        return replace(op, time=op.time.xreplace({score_rate: attention_rate})) if widened else op

    def new_blocks(
        self, sequences: Any, new_tokens: Any, mean_keys: Any, longest_keys: Any = None
    ) -> PromptBlocks | None:
        """Expanded attention of new tokens as blocks of queries, where the constants of latent attention are known."""
        if not self.families_known[0]:
            return None
        widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
        tokens = sequences * new_tokens
        latents = tokens * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim)
        cast = mla.expanded_cache_elements(self.heads, *widths) + self.query_width
        moved = blocked.cache_write_bytes(latents, activation_bytes, kv_bytes)
        moved += cache_casts * blocked.cache_write_bytes(tokens * cast, activation_bytes, kv_bytes)
        pair = mla.expanded_attention_flops(1, 1, 1, 1, *widths)
        longest = new_tokens if longest_keys is None else longest_keys
        return PromptBlocks(sequences * self.heads, new_tokens, mean_keys, longest, pair, written=moved)

    def decode(self, contexts: tuple[Any, Any]) -> list[Op | None]:
        """The steps of a generation: their number, and the keys that the first one reads."""
        return self.absorbed(self.layer.tokens, self.growing(contexts))

    def absorbed(self, rows: Any, core: Op, prefix: str = "") -> list[Op | None]:
        """Queries carried into the latent's width, attention over the cache, results carried out of it."""
        return [
            self.absorb(f"{prefix}absorb_key", rows, kv_lora_rank, qk_nope_head_dim),
            *split_context.joined(self, rows, core),
            self.absorb(f"{prefix}absorb_value", rows, v_head_dim, kv_lora_rank),
        ]

    def absorb(self, name: str, rows: Any, columns: Any, inner: Any) -> Op:
        """A product for each head, in 16 bits where the software has them so; else its left factor may be cast."""
        kernels = self.layer.kernels.of_class("attention")
        structure = self.layer.structure.of_class("attention")
        wide = kernels.mixed_rates and "wide_absorption" in structure.latent
        kinds = {"left": activation_bytes, "right": activation_bytes} if wide else {}
        op = kernels.matmul(self.path(name), rows, columns, inner, self.heads, **kinds)
        if "absorbed" not in structure.families:
            return op
        late = op.time + absorb_latency
        if not wide and kernels.casts:
            late += looped.cast_time(rows * self.heads, inner, operand_bytes)
            moved = op.demand.memory_bytes + cast_bytes(rows * self.heads, inner, operand_bytes)
            op = replace(op, demand=replace(op.demand, memory_bytes=moved))
        return kernels.in_format(replace(op, time=late))

    def demand(self, sequences: Any, new_tokens: Any = 1) -> CacheRead:
        """Queries in, results out; latents and rotary keys once for all heads."""
        work = mla.absorbed_attention_flops(sequences, new_tokens, 1, self.heads, kv_lora_rank, qk_rope_head_dim)
        own = sequences * new_tokens * self.heads * (2 * kv_lora_rank + qk_rope_head_dim) * activation_bytes
        return CacheRead(work, own, sequences * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim) * kv_bytes)

    def blocks(self, found: CacheRead, sequences: Any, new_tokens: Any) -> BlockRead:
        """A block for each sequence and 64 of its heads, whose rows are multiplied whether they are heads or not."""
        rows, known = ceil_div(self.heads, blocked.BLOCK), self.layer.structure.latent
        work = found.work * rows * blocked.BLOCK / self.heads
        bandwidth = memory_bandwidth * memory_efficiency
        blocks = sequences * new_tokens * rows
        own, each, start = traffic_time(found.own, bandwidth), found.each, block.latent_start_time(blocks)
        rate, before = score_rate, 0
        if "widened_cache" in known:
            # A kernel of its own reads the narrow latents and writes wide ones, which attention then reads.
            rate, wide = attention_rate, cache_casts * found.each / kv_bytes * activation_bytes
            before = traffic_time(cache_casts * found.each + wide, bandwidth)
            each = (1 - cache_casts) * found.each + wide
            start += blocked.cache_cast_time() if "cache_casts" in self.layer.structure.families else 0
        products, key = work_time(work, rate * latent_efficiency), traffic_time(each, bandwidth)
        if "whole_contexts" in known:
            products *= block.unit_share(blocks)
        return BlockRead(work, found.own, each, before + products, own, before + key, start)

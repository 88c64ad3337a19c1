"""Attention where devices have parts of a sequence: of prompts over c devices, of caches over c t_c.

Prompts (`cp`): a device has the queries of one of c balanced parts. Keys of all parts are gathered first, or go round
beside the attention to those that are there; latents travel as they are, and are expanded where they arrive. Caches
(`cp` and `dcp`): keys are dealt to c t_c devices in turn. Queries of the t_c devices of a tensor-parallel group are
gathered, each device attends to its own keys for all of their heads, and results are corrected by the softmax
statistics of all, summed and scattered; over c, whose devices decode the same tokens, they are summed for all.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulas.generation.decode import chunk_attention_bytes
from ..formulas.kernels import latent_attention as mla
from ..formulas.language.atoms import less_one
from ..formulas.language.symbols import (
    activation_bytes,
    cp,
    dcp,
    head_dim,
    kv_bytes,
    kv_lora_rank,
    micro_batch,
    qk_rope_head_dim,
    statistic_bytes,
    v_head_dim,
)
from ..formulas.parallel.context_parallel import key_value_part_bytes, query_part_bytes
from ..operations.groups import Group, context_group, parts
from ..operations.schedule import Demand, Op, Overlap, Repeat
from ..operations.shapes import FLOPS_PER_ELEMENT
from .cache_read import BlockRead

if TYPE_CHECKING:
    from ..operations.schedule import Node
    from .attention import CachedAttention, SoftmaxAttention
    from .cache_read import CacheRead
    from .structure import InferenceStructure

CACHES = Group(dcp, 1)
"""The devices of a tensor-parallel group that share one copy of a cache: neighbours in rank order."""


def cache_parts(structure: InferenceStructure) -> Any:
    """Devices to which the keys of one cache are dealt."""
    return parts(structure) * dcp if structure.contexts_split else 1


def part_of(mixer: CachedAttention, sequences: Any, new_tokens: Any, passes: Any = None) -> CacheRead | BlockRead:
    """Attention of the heads of all devices that share a cache, for each key of it: a device has every so many-th."""
    structure = mixer.layer.structure
    if not structure.contexts_split:
        return mixer.read(sequences, new_tokens, passes)
    whole = copy.copy(mixer)
    whole.heads = mixer.heads * dcp
    found, count = whole.read(sequences, new_tokens, passes), cache_parts(structure)
    own = {"work": found.work / count, "each": found.each / count}
    if isinstance(found, BlockRead):
        own |= {"work_time": found.work_time / count, "key_time": found.key_time / count}
    return replace(found, **own)


def joined(mixer: CachedAttention, rows: Any, core: Op) -> list[Any]:
    """Attention to parts of caches, with what makes one result of those of all parts.

    Args:
        mixer: whose results they are.
        rows: new tokens.
        core: attention to the keys of a device.
    """
    layer, structure = mixer.layer, mixer.layer.structure
    if not structure.contexts_split:
        return [core]
    kernels, heads = layer.kernels, mixer.heads * dcp
    queries = query_part_bytes(rows, heads, key_width(mixer), activation_bytes)
    elements = rows * heads * mixer.value_width
    results, statistics = elements * activation_bytes, rows * heads * statistic_bytes
    apart = structure.context != "none"
    everyone = context_group()
    return [
        kernels.all_gather(mixer.path("gather_queries"), queries, CACHES),
        core,
        kernels.all_gather(mixer.path("gather_statistics"), statistics * dcp, CACHES),
        kernels.all_gather(mixer.path("gather_statistics_of_parts"), statistics * cp, everyone) if apart else None,
        kernels.stream(mixer.path("correct"), 2 * results, elements, FLOPS_PER_ELEMENT["residual"]),
        kernels.all_reduce(mixer.path("sum_of_parts"), results, everyone) if apart else None,
        kernels.reduce_scatter(mixer.path("scatter_results"), results, CACHES),
    ]


def key_width(mixer: CachedAttention) -> Any:
    """Features of a query that is sent to other keys: of its head, or carried into the width of a latent."""
    return kv_lora_rank + qk_rope_head_dim if _latent(mixer) else head_dim


def passed(mixer: CachedAttention, tokens: Any, attend: Op, prefix: str = "") -> list[Any]:
    """Attention of one part's queries to the keys of all parts of `tokens` new ones, which come from their devices.

    Args:
        mixer: whose keys they are.
        tokens: of all parts.
        attend: attention to all of them.
        prefix: of the paths.
    """
    kernels, structure = mixer.layer.kernels, mixer.layer.structure
    if structure.context == "none":
        return [attend]
    keys = key_bytes(mixer, tokens, activation_bytes)
    path = mixer.path(f"{prefix}context")
    if structure.context == "all-gather":
        return [kernels.all_gather(f"{path}/gather", keys, context_group()), attend]
    each = Demand(attend.demand.flops / cp, attend.demand.memory_bytes / cp)
    step = replace(attend, time=attend.time / cp, demand=each)
    send = kernels.send(f"{path}/ring", keys / cp, context_group())
    width = v_head_dim if _latent(mixer) else mixer.value_width
    partial = query_part_bytes(tokens / cp, mixer.heads, width, activation_bytes)
    merge = kernels.stream(f"{path}/merge", 3 * partial, partial / activation_bytes, 2)
    later: Node = step if send is None else Overlap(step, send, 1)
    return [step, Repeat(later, less_one(cp)), Repeat(merge, less_one(cp))]


def prompts_part(mixer: SoftmaxAttention, length: Any) -> list[Any]:
    """Causal attention of a device's part of whole prompts among themselves; parts see as many pairs."""
    own = length / cp
    shape = mixer.heads, mixer.units, mixer.core_width
    traffic = chunk_attention_bytes(micro_batch, own, length, *shape, activation_bytes, activation_bytes)
    traffic += micro_batch * own * mixer.heads * statistic_bytes
    blocks = mixer.new_blocks(micro_batch, own, (length + 1) / 2, length)
    attend = mixer.layer.kernels.flash(mixer.path("flash"), mixer.prefill_flops(length) / cp, traffic, blocks)
    return passed(mixer, micro_batch * length, attend)


def gathered_cache(mixer: CachedAttention, sequences: Any, keys: Any) -> Op | None:
    """What earlier chunks left in caches, gathered from the devices of a tensor-parallel group that have its parts."""
    if not mixer.layer.structure.contexts_split:
        return None
    message = key_bytes(mixer, sequences * keys, kv_bytes) / parts(mixer.layer.structure)
    return mixer.layer.kernels.all_gather(mixer.path("gather_cache"), message, CACHES)


def key_bytes(mixer: CachedAttention, tokens: Any, element_bytes: Any) -> Any:
    """Bytes of the keys and values, or latents, of some tokens on one device of each part."""
    if _latent(mixer):
        return tokens * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim) * element_bytes
    return key_value_part_bytes(tokens, mixer.units, mixer.stored_width, element_bytes)  # type: ignore[attr-defined]


def _latent(mixer: CachedAttention) -> bool:
    return mixer.layer.kind.mixer == "latent_attention"

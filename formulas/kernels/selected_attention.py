"""Kernels of attention to selected keys: what an indexer reads and writes, and attention over keys that are gathered.

Shapes: b sequences of s queries over l keys, of which a query sees n. An indexer caches one key of d_x features a
token, in a format of its own. Each query gathers its own keys, so that no tile of queries shares them.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    attention_rate,
    gather_efficiency,
    index_efficiency,
    index_latency,
    index_rate,
    memory_bandwidth,
    memory_efficiency,
    select_passes,
    selected_efficiency,
    selected_latency,
    slot_share,
)
from ..mathematics.series import excess
from ..sources import DEEPSEEK32
from .thin_matmul import gap_time


@formula(
    glyph="Q_{idx}",
    dimension=BYTE,
    source=DEEPSEEK32,
    increasing="context index_head_dim index_key_bytes micro_batch",
    curvature="affine",
)
def index_read_bytes(micro_batch: Any, context: Any, index_head_dim: Any, index_key_bytes: Any) -> Any:
    """Bytes of the indexer's cached keys that scoring reads: b l d_x w_idx, once for all of its heads.

    Assumes: a tile of queries passes over the keys once; later tiles find them in L2.

    Source: DeepSeek-AI 2025 (V3.2) equation (1): one key for all heads. The released code keeps it in FP8 with a scale
    of 4 bytes for 128 features, so that w_idx = 1 + 4 / 128.

    >>> from sympy import Rational
    >>> index_read_bytes(1, 1000, 128, 1 + Rational(4, 128))
    132000
    """
    return micro_batch * context * index_head_dim * index_key_bytes


@formula(
    glyph="Q_{sco}",
    dimension=BYTE,
    source=DEEPSEEK32,
    increasing="scores statistic_bytes",
    curvature="affine",
)
def score_traffic_bytes(scores: Any, statistic_bytes: Any) -> Any:
    """Bytes of an indexer's scores between its two kernels: each written once and read once, 2 N w_s.

    Assumes: scores in FP32; those that the causal mask hides are neither written nor read.

    Source: counted from the kernels that the released code calls: DeepGEMM writes scores, and a selection reads them.

    >>> from sympy import symbols
    >>> score_traffic_bytes(*symbols("N w"))
    2*N*w
    """
    return 2 * scores * statistic_bytes


@formula(
    glyph="T_{idx}",
    dimension=SECOND,
    source=DEEPSEEK32,
    increasing="gap_latency index_latency score_bytes select_passes traffic_bytes work_flops",
    decreasing="graph_removal index_efficiency index_rate memory_bandwidth memory_efficiency",
)
def index_time(work_flops: Any, traffic_bytes: Any, score_bytes: Any) -> Any:
    """Time of an indexer's kernels: the slower of products and keys, then the selection among the scores.

    The equation: T_gap + lambda_idx + max(W / (F_idx eta_idx), Q / beta') + rho_sel Q_xs / beta'.

    Assumes: selection waits for the scores of its query; a radix selection reads them rho_sel times as often as once.

    Source: derivation from the two kernels of the released code (DeepGEMM's logits, and a selection of the best).

    >>> from sympy import symbols
    >>> index_time(*symbols("W Q S"))  # doctest: +NORMALIZE_WHITESPACE
    S*select_passes/(memory_bandwidth*memory_efficiency) + gap_latency*complement(graph_removal) + index_latency +
    Max(Q/(memory_bandwidth*memory_efficiency), W/(index_efficiency*index_rate))
    """
    bandwidth = memory_bandwidth * memory_efficiency
    scoring = Max(work_flops / (index_rate * index_efficiency), traffic_bytes / bandwidth)
    return gap_time() + index_latency + scoring + select_passes * score_bytes / bandwidth


@formula(
    glyph="n_{slot}",
    dimension=ONE,
    source=DEEPSEEK32,
    increasing="slot_share slots",
)
def computed_keys(visible_keys: Any, slots: Any) -> Any:
    """Keys that a kernel computes for a query of k_max places: n_see + sigma_sel max(k_max - n_see, 0).

    Assumes: sigma_sel is 0 where a kernel stops at the last key and 1 where it computes empty places as well.

    Source: derivation. Evidence: prompts of 32 tokens take vLLM and TensorRT-LLM on an H200 as long a token as prompts
    of 2,048, whose queries fill their places.

    >>> computed_keys(100, 2048), computed_keys(4096, 2048)
    (1948*slot_share + 100, 4096)
    """
    return visible_keys + slot_share * excess(slots, visible_keys)


@formula(
    glyph="Q_{gat}",
    dimension=BYTE,
    source=DEEPSEEK32,
    increasing="cached_elements kv_bytes tokens visible_keys",
    curvature="affine",
)
def gathered_bytes(tokens: Any, visible_keys: Any, cached_elements: Any, kv_bytes: Any) -> Any:
    """Bytes of the selected keys that queries gather from the cache: T n_see n_el w_kv.

    Assumes: no two queries share what they read.

    Source: counted from DeepSeek-AI 2025 (V3.2) equation (2): each query has a set of keys of its own.

    >>> gathered_bytes(1, 2048, 576, 2)
    2359296
    """
    return tokens * visible_keys * cached_elements * kv_bytes


@formula(
    glyph="T_{sel}",
    dimension=SECOND,
    source=DEEPSEEK32,
    increasing="gap_latency selected_latency traffic_bytes work_flops",
    decreasing="attention_rate gather_efficiency graph_removal memory_bandwidth selected_efficiency",
)
def selected_attention_time(work_flops: Any, traffic_bytes: Any) -> Any:
    """Time of attention to selected keys: the slower of its products and of gathering, and its start.

    The equation: T_gap + lambda_sel + max(W / (F_att eta_sel), Q / (beta eta_gat)).

    Assumes: products in 16 bits, as attention's.

    Source: derivation, as `flash_time`, with the constants of a kernel that gathers.

    >>> from sympy import symbols
    >>> selected_attention_time(*symbols("W Q"))  # doctest: +NORMALIZE_WHITESPACE
    gap_latency*complement(graph_removal) + selected_latency +
    Max(Q/(gather_efficiency*memory_bandwidth), W/(attention_rate*selected_efficiency))
    """
    products = work_flops / (attention_rate * selected_efficiency)
    return gap_time() + selected_latency + Max(products, traffic_bytes / (memory_bandwidth * gather_efficiency))

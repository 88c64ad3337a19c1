"""Attention to a window and to compressed entries, of which one stands for m_c tokens (DeepSeek-V4).

One key of d_h features for all heads is the value too, and is cached once. *Sparse*: an indexer selects k_x of the
entries; an entry is pooled from 2 m_c tokens with stride m_c. *Heavy*: every entry is seen, pooled from m_c tokens.
The output is projected in g_o groups of heads to r_o features each, and from there to the stream.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, ceil_div, less_one
from ..language.dimension import BYTE, ONE
from ..language.formula import formula
from ..mathematics.series import excess
from ..sources import DEEPSEEK32, KWON
from .windows import exceeding


@formula(
    glyph="N_{cqa}",
    dimension=ONE,
    source=DEEPSEEK32,
    increasing="head_dim hidden_size num_attention_heads output_groups output_lora_rank q_lora_rank",
    curvature="convex",
)
def shared_key_parameters(
    hidden_size: Any,
    num_attention_heads: Any,
    head_dim: Any,
    q_lora_rank: Any,
    output_groups: Any,
    output_lora_rank: Any,
) -> Any:
    """Weights of attention whose one key is its value: compressed queries, the key, and the grouped output.

    The equation: r_q (h + a d_h) + h d_h + a d_h r_o + g_o r_o h.

    Assumes: no biases; norms are counted apart. A group of heads projects its own a d_h / g_o features only.

    Source: counted from the modules of DeepSeek-V4 in transformers.

    >>> shared_key_parameters(4096, 64, 512, 1024, 8, 1024)
    106954752
    """
    width = num_attention_heads * head_dim
    queries = q_lora_rank * (hidden_size + width)
    return queries + hidden_size * head_dim + width * output_lora_rank + output_groups * output_lora_rank * hidden_size


@formula(glyph="N_{cmp}", dimension=ONE, source=DEEPSEEK32, increasing="head_dim hidden_size", curvature="affine")
def compressor_parameters(hidden_size: Any, head_dim: Any) -> Any:
    """Weights of a compressor, 2 h d: values and gates of a token. One with overlap has two series: twice as many.

    Assumes: the pooling of gated tokens is elementwise; position biases and the norm are counted apart.

    Source: counted from the modules of DeepSeek-V4 in transformers.

    >>> compressor_parameters(4096, 512)
    4194304
    """
    return 2 * hidden_size * head_dim


@formula(glyph="n_{ent}", dimension=ONE, source=DEEPSEEK32, increasing="context", decreasing="compress_ratio")
def compressed_entries(context: Any, compress_ratio: Any) -> Any:
    """Compressed entries of l tokens: floor(l / m_c).

    Assumes: an entry is there once its m_c tokens are.

    Source: counted from the caches of DeepSeek-V4 in transformers.

    >>> [compressed_entries(tokens, 4) for tokens in (3, 4, 2049)]
    [0, 1, 512]
    """
    return less_one(ceil_div(context + 1, compress_ratio))


@formula(glyph="n_{epr}", dimension=ONE, source=DEEPSEEK32)
def entry_pairs(sequence: Any, compress_ratio: Any) -> Any:
    """Pairs of a query and an entry before it, all seen: the sum over t from 1 to s of floor(t / m_c).

    The equation: n (s + 1) - m_c n (n + 1) / 2 for n = floor(s / m_c) entries.

    Assumes: a query sees an entry from its last token on.

    Source: derivation: entry j is seen by the s + 1 - j m_c queries from its last token on.

    >>> entry_pairs(2048, 128), sum(token // 128 for token in range(1, 2049))
    (15376, 15376)
    """
    entries = compressed_entries(sequence, compress_ratio)
    return excess(entries * (sequence + 1), compress_ratio * entries * (entries + 1) / 2)


@formula(
    glyph="n_{sel}", dimension=ONE, source=DEEPSEEK32, increasing="context index_top_keys", decreasing="compress_ratio"
)
def selected_entries(context: Any, compress_ratio: Any, index_top_keys: Any) -> Any:
    """Entries that a query at place l sees of those compressed: min(k_x, floor(l / m_c)).

    Assumes: as `selected_entry_pairs`.

    Source: counted from the masks of DeepSeek-V4 in transformers.

    >>> selected_entries(8193, 4, 512), selected_entries(100, 4, 512)
    (512, 25)
    """
    return Min(index_top_keys, compressed_entries(context, compress_ratio))


@formula(glyph="n_{sep}", dimension=ONE, source=DEEPSEEK32)
def selected_entry_pairs(sequence: Any, compress_ratio: Any, index_top_keys: Any) -> Any:
    """Pairs of a query and a selected entry: the sum over t from 1 to s of min(k_x, floor(t / m_c)).

    The equation: n (s + 1) - m_c n (n + 1) / 2 with n = min(k_x, floor(s / m_c)).

    Assumes: a query with k_x entries or fewer sees all.

    Source: derivation: the j-th of a query's entries, up to k_x, is there for the s + 1 - j m_c tokens from j m_c on.

    >>> selected_entry_pairs(2048, 4, 100), sum(min(100, token // 4) for token in range(1, 2049))
    (184700, 184700)
    """
    seen = selected_entries(sequence, compress_ratio, index_top_keys)
    return excess(seen * (sequence + 1), compress_ratio * seen * (seen + 1) / 2)


@formula(
    glyph="n_{cho}",
    dimension=ONE,
    source=DEEPSEEK32,
    increasing="sequence",
    decreasing="compress_ratio index_top_keys",
)
def choosing_tokens(sequence: Any, compress_ratio: Any, index_top_keys: Any) -> Any:
    """Tokens of a sequence that see more entries than they select: max(s - (m_c (k_x + 1) - 1), 0).

    Assumes: a token that sees k_x entries or fewer takes all of them, which software does without looking at scores.

    Source: derivation: floor(t / m_c) > k_x from t = m_c (k_x + 1) on.

    >>> choosing_tokens(3000, 4, 512), sum(token // 4 > 512 for token in range(1, 3001))
    (949, 949)
    """
    return excess(sequence, exceeding(compress_ratio * (index_top_keys + 1), 1))


@formula(
    glyph="M_{ovl}",
    dimension=BYTE,
    source=DEEPSEEK32,
    increasing="compress_ratio element_bytes head_dim micro_batch state_bytes",
    curvature="convex",
)
def overlap_state_bytes(
    micro_batch: Any, compress_ratio: Any, head_dim: Any, element_bytes: Any, state_bytes: Any
) -> Any:
    """Bytes that a compressor with overlap keeps of a sequence: values and gates of the last m_c tokens.

    The equation: b m_c d (w + w_st).

    Assumes: gates in FP32, values in the format of activations.

    Source: counted from the caches of DeepSeek-V4 in transformers.

    >>> overlap_state_bytes(1, 4, 512, 2, 4)
    12288
    """
    return micro_batch * compress_ratio * head_dim * (element_bytes + state_bytes)


@formula(
    glyph="M_{cst}",
    dimension=BYTE,
    source=KWON,
    increasing="compress_ratio micro_batch state_bytes width",
    decreasing="head_dim",
    curvature="affine",
)
def compressor_state_bytes(micro_batch: Any, compress_ratio: Any, head_dim: Any, width: Any, state_bytes: Any) -> Any:
    """Bytes that serving software holds of a sequence for a compressor: values and gates of the tokens pooled next.

    The equation: 2 b m_c (n / d) n w_st, with n the features of its series together: d, or 2 d with overlap, where an
    entry is pooled from 2 m_c tokens.

    Assumes: room for all tokens of an entry is held whether they are there yet or not; in FP32.

    Source: vLLM, deepseek_v4/compressor.py, CompressorStateCache: a window of m_c tokens, twice as many with overlap.

    >>> compressor_state_bytes(1, 128, 512, 512, 4), compressor_state_bytes(1, 4, 512, 1024, 4)
    (524288, 65536)
    """
    return 2 * micro_batch * compress_ratio * width / head_dim * width * state_bytes


@formula(
    glyph="Q_{cst}",
    dimension=BYTE,
    source=DEEPSEEK32,
    increasing="statistic_bytes tokens width",
    curvature="affine",
)
def kept_state_bytes(tokens: Any, width: Any, statistic_bytes: Any) -> Any:
    """Bytes of keeping values and gates of tokens until they are pooled: 4 T n w_s.

    Assumes: a kernel of its own reads what the product gave and writes the state; both in FP32.

    Source: vLLM, deepseek_v4/common/ops/save_partial_states.py.

    >>> from sympy import symbols
    >>> kept_state_bytes(*symbols("T n w"))
    4*T*n*w
    """
    return 4 * tokens * width * statistic_bytes


@formula(
    glyph="Q_{pool}",
    dimension=BYTE,
    source=DEEPSEEK32,
    increasing="activation_bytes head_dim statistic_bytes tokens width",
    decreasing="compress_ratio",
    curvature="convex",
)
def pooling_bytes(
    tokens: Any, width: Any, head_dim: Any, compress_ratio: Any, activation_bytes: Any, statistic_bytes: Any
) -> Any:
    """Bytes of pooling tokens into entries: T (2 n w_s + d w / m_c).

    Assumes: one kernel reads values and gates of every series once, n features each, and writes normalised entries with
    their positions.

    Source: derivation from the modules of DeepSeek-V4 in transformers: a softmax of the gates weighs the values.

    >>> from sympy import symbols
    >>> pooling_bytes(*symbols("T n d m w v"))
    T*(d*w/m + 2*n*v)
    """
    return tokens * (2 * width * statistic_bytes + head_dim * activation_bytes / compress_ratio)


@formula(
    glyph="Q_{pool}^{b}",
    dimension=BYTE,
    source=DEEPSEEK32,
    increasing="activation_bytes head_dim statistic_bytes tokens width",
    decreasing="compress_ratio",
    curvature="convex",
)
def pooling_backward_bytes(
    tokens: Any, width: Any, head_dim: Any, compress_ratio: Any, activation_bytes: Any, statistic_bytes: Any
) -> Any:
    """Bytes of the gradients of values and gates: T (4 n w_s + d w / m_c).

    Assumes: one kernel reads values, gates and the entries' gradients, pools once more, and writes two gradients.

    Source: derivation, as `pooling_bytes`.

    >>> from sympy import symbols
    >>> pooling_backward_bytes(*symbols("T n d m w v"))
    T*(d*w/m + 4*n*v)
    """
    return tokens * (4 * width * statistic_bytes + head_dim * activation_bytes / compress_ratio)


@formula(
    glyph="Q_{skr}",
    dimension=BYTE,
    source=DEEPSEEK32,
    increasing="context head_dim kv_bytes micro_batch",
    curvature="affine",
)
def shared_key_bytes(micro_batch: Any, context: Any, head_dim: Any, kv_bytes: Any) -> Any:
    """Bytes of l keys that are the values too, for all heads: b l d_h w_kv.

    Assumes: read, or held, once; a layout that keeps rotary features in 16 bits, with scales, has 584 bytes for 512
    features of 8 bits.

    Source: counted from the caches of DeepSeek-V4 in transformers.

    >>> from sympy import symbols
    >>> shared_key_bytes(*symbols("b l d w"))
    b*d*l*w
    """
    return micro_batch * context * head_dim * kv_bytes

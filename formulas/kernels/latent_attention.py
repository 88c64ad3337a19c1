"""Latent attention (MLA): keys and values are kept as one narrow latent vector a token, beside one rotary key.

Shapes: b sequences of s queries over l keys, a' heads; a key has d_n features from the latent (r_kv) and d_r rotary
ones that all heads share, a value has d_v. *Expanded*: keys and values of every head are made from the latent, and
attention is plain. *Absorbed*: the key expansion is multiplied into the query and the value expansion into the
output, so that all heads attend to the latent itself, as in MQA. Both give the same b x s x a' x d_v result.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE, FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import DEEPSEEK2


@formula(
    glyph="N_{mla}",
    dimension=ONE,
    source=DEEPSEEK2,
    increasing="hidden_size kv_lora_rank num_attention_heads qk_nope_head_dim qk_rope_head_dim v_head_dim",
    curvature="convex",
)
def latent_attention_parameters(
    hidden_size: Any,
    num_attention_heads: Any,
    kv_lora_rank: Any,
    qk_nope_head_dim: Any,
    qk_rope_head_dim: Any,
    v_head_dim: Any,
) -> Any:
    """Weights of latent attention without its queries: down to latent and rotary key, up to all heads, and output.

    The equation: h (r_kv + d_r) + r_kv a (d_n + d_v) + a d_v h.

    Assumes: no biases; the norm of the latent is counted apart.

    Source: DeepSeek-AI 2024 (V2) equations (9) to (19).

    >>> from sympy import symbols
    >>> latent_attention_parameters(*symbols("h a r n d v"))
    a*h*v + a*r*(n + v) + h*(d + r)
    """
    down = hidden_size * (kv_lora_rank + qk_rope_head_dim)
    up = kv_lora_rank * num_attention_heads * (qk_nope_head_dim + v_head_dim)
    return down + up + num_attention_heads * v_head_dim * hidden_size


@formula(
    glyph="N_{mlaq}",
    dimension=ONE,
    source=DEEPSEEK2,
    increasing="hidden_size num_attention_heads qk_nope_head_dim qk_rope_head_dim",
    curvature="convex",
)
def latent_query_parameters(
    hidden_size: Any, num_attention_heads: Any, qk_nope_head_dim: Any, qk_rope_head_dim: Any
) -> Any:
    """Weights of latent attention's queries made straight from the hidden state: h a (d_n + d_r).

    Assumes: no biases, no compression (DeepSeek-V2-Lite).

    Source: DeepSeek-AI 2024 (V2) appendix B.

    >>> from sympy import symbols
    >>> latent_query_parameters(*symbols("h a n d"))
    a*h*(d + n)
    """
    return hidden_size * num_attention_heads * (qk_nope_head_dim + qk_rope_head_dim)


@formula(
    glyph="N_{mlac}",
    dimension=ONE,
    source=DEEPSEEK2,
    increasing="hidden_size num_attention_heads q_lora_rank qk_nope_head_dim qk_rope_head_dim",
    curvature="convex",
)
def compressed_query_parameters(
    hidden_size: Any, num_attention_heads: Any, q_lora_rank: Any, qk_nope_head_dim: Any, qk_rope_head_dim: Any
) -> Any:
    """Weights of latent attention's queries through a narrow vector: r_q (h + a (d_n + d_r)).

    Assumes: no biases; the norm of the narrow vector is counted apart.

    Source: DeepSeek-AI 2024 (V2) equations (12) to (14).

    >>> from sympy import symbols
    >>> compressed_query_parameters(*symbols("h a r n d"))
    r*(a*(d + n) + h)
    """
    return q_lora_rank * (hidden_size + num_attention_heads * (qk_nope_head_dim + qk_rope_head_dim))


@formula(
    glyph="W_{mla}",
    dimension=FLOP,
    source=DEEPSEEK2,
    increasing="context flop heads micro_batch qk_nope_head_dim qk_rope_head_dim sequence v_head_dim",
    curvature="convex",
)
def expanded_attention_flops(
    micro_batch: Any,
    sequence: Any,
    context: Any,
    heads: Any,
    qk_nope_head_dim: Any,
    qk_rope_head_dim: Any,
    v_head_dim: Any,
) -> Any:
    """FLOPs of the two score products of expanded latent attention: 2 b s l a' (d_n + d_r + d_v).

    Assumes: every pair counted; keys and values of all heads are there (`latent_expansion_flops` makes them).

    Source: DeepSeek-AI 2024 (V2) equations (15) to (18).

    >>> from sympy import symbols
    >>> expanded_attention_flops(*symbols("b s l a n d v"))
    2*a*b*flop*l*s*(d + n + v)
    """
    pairs = micro_batch * sequence * context
    return 2 * pairs * heads * (qk_nope_head_dim + qk_rope_head_dim + v_head_dim) * flop


@formula(
    glyph="W_{up}",
    dimension=FLOP,
    source=DEEPSEEK2,
    increasing="flop heads kv_lora_rank qk_nope_head_dim tokens v_head_dim",
    curvature="convex",
)
def latent_expansion_flops(tokens: Any, heads: Any, kv_lora_rank: Any, qk_nope_head_dim: Any, v_head_dim: Any) -> Any:
    """FLOPs that make keys and values of all heads from the latents of some tokens: 2 T r_kv a' (d_n + d_v).

    Assumes: once a token where expanded keys and values are cached; once a cached token and step where latents are.

    Source: DeepSeek-AI 2024 (V2) equations (10) and (11).

    >>> from sympy import symbols
    >>> latent_expansion_flops(*symbols("T a r n v"))
    2*T*a*flop*r*(n + v)
    """
    return 2 * tokens * kv_lora_rank * heads * (qk_nope_head_dim + v_head_dim) * flop


@formula(
    glyph="W_{abs}",
    dimension=FLOP,
    source=DEEPSEEK2,
    increasing="context flop heads kv_lora_rank micro_batch qk_rope_head_dim sequence",
    curvature="convex",
)
def absorbed_attention_flops(
    micro_batch: Any, sequence: Any, context: Any, heads: Any, kv_lora_rank: Any, qk_rope_head_dim: Any
) -> Any:
    """FLOPs of the two score products of absorbed latent attention: 2 b s l a' (2 r_kv + d_r).

    Assumes: every pair counted; scores over latent and rotary key, sums over latents.

    Source: DeepSeek-AI 2024 (V2) section 2.1.2: the key expansion is absorbed into the queries' projection and the
    value expansion into the output's.

    >>> from sympy import symbols
    >>> absorbed_attention_flops(*symbols("b s l a r d"))
    2*a*b*flop*l*s*(d + 2*r)
    """
    return 2 * micro_batch * sequence * context * heads * (2 * kv_lora_rank + qk_rope_head_dim) * flop


@formula(
    glyph="W_{absp}",
    dimension=FLOP,
    source=DEEPSEEK2,
    increasing="flop heads kv_lora_rank qk_nope_head_dim tokens v_head_dim",
    curvature="convex",
)
def absorption_flops(tokens: Any, heads: Any, kv_lora_rank: Any, qk_nope_head_dim: Any, v_head_dim: Any) -> Any:
    """FLOPs that carry queries into the latent's width and results out of it: 2 T r_kv a' (d_n + d_v).

    Assumes: the expansions stay factors of their own: a' products of d_n by r_kv, and of r_kv by d_v, a query token.

    Source: as `latent_expansion_flops`, which has the same count for the tokens of the keys.

    >>> from sympy import symbols
    >>> absorption_flops(*symbols("T a r n v"))
    2*T*a*flop*r*(n + v)
    """
    return 2 * tokens * heads * kv_lora_rank * (qk_nope_head_dim + v_head_dim) * flop


@formula(
    glyph="n_{lat}",
    dimension=ONE,
    source=DEEPSEEK2,
    increasing="kv_lora_rank qk_rope_head_dim",
    curvature="convex",
)
def latent_cache_elements(kv_lora_rank: Any, qk_rope_head_dim: Any) -> Any:
    """Elements that a layer caches of a token in latent attention: r_kv + d_r, whatever the heads.

    Assumes: the rotary key is shared by the heads; tensor parallelism does not divide it.

    Source: DeepSeek-AI 2024 (V2) table 1.

    >>> from sympy import symbols
    >>> latent_cache_elements(*symbols("r d"))
    d + r
    """
    return kv_lora_rank + qk_rope_head_dim


@formula(
    glyph="n_{exp}",
    dimension=ONE,
    source=DEEPSEEK2,
    increasing="heads qk_nope_head_dim qk_rope_head_dim v_head_dim",
    curvature="convex",
)
def expanded_cache_elements(heads: Any, qk_nope_head_dim: Any, qk_rope_head_dim: Any, v_head_dim: Any) -> Any:
    """Elements of the keys and values of a token's heads, made from its latent: a' (d_n + d_r + d_v).

    Assumes: the shared rotary key is stored with every head. A cache without compression would hold them.

    Source: counted from the shapes of DeepSeek-AI 2024 (V2) equations (10) to (17).

    >>> from sympy import symbols
    >>> expanded_cache_elements(*symbols("a n d v"))
    a*(d + n + v)
    """
    return heads * (qk_nope_head_dim + qk_rope_head_dim + v_head_dim)


@formula(
    glyph="Q_{mla}",
    dimension=BYTE,
    source=DEEPSEEK2,
    increasing="activation_bytes context heads micro_batch qk_nope_head_dim qk_rope_head_dim sequence v_head_dim",
    curvature="convex",
)
def expanded_attention_bytes(
    micro_batch: Any,
    sequence: Any,
    context: Any,
    heads: Any,
    qk_nope_head_dim: Any,
    qk_rope_head_dim: Any,
    v_head_dim: Any,
    activation_bytes: Any,
) -> Any:
    """Device-memory bytes of expanded latent attention, forward: queries, keys, values in, results out, once each.

    The equation: b a' w ((s + l) (d_n + d_r + d_v)).

    Assumes: a flash kernel, keys and values of a head read once from device memory.

    Source: counted as `flash_bytes` is, with unequal widths.

    >>> from sympy import symbols
    >>> expanded_attention_bytes(*symbols("b s l a n d v w"))
    a*b*w*(l + s)*(d + n + v)
    """
    width = qk_nope_head_dim + qk_rope_head_dim + v_head_dim
    return micro_batch * heads * activation_bytes * (sequence + context) * width


@formula(
    glyph="Q_{abs}",
    dimension=BYTE,
    source=DEEPSEEK2,
    increasing="activation_bytes context heads kv_lora_rank micro_batch qk_rope_head_dim sequence",
    curvature="convex",
)
def absorbed_attention_bytes(
    micro_batch: Any,
    sequence: Any,
    context: Any,
    heads: Any,
    kv_lora_rank: Any,
    qk_rope_head_dim: Any,
    activation_bytes: Any,
) -> Any:
    """Device-memory bytes of absorbed latent attention, forward: the latents are read once for all heads.

    The equation: b w (l (r_kv + d_r) + s a' (2 r_kv + d_r)).

    Assumes: a flash kernel that reads a tile of latents once for keys, values and every head.

    Source: counted from DeepSeek-AI 2024 (V2) section 2.1.2.

    Reference only: of tokens that attend in one kernel; a decode step reads a cache that grows from step to step.

    >>> from sympy import symbols
    >>> absorbed_attention_bytes(*symbols("b s l a r d w"))
    b*w*(a*s*(d + 2*r) + l*(d + r))
    """
    keys = context * (kv_lora_rank + qk_rope_head_dim)
    queries = sequence * heads * (2 * kv_lora_rank + qk_rope_head_dim)
    return micro_batch * activation_bytes * (keys + queries)

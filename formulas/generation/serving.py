"""Serving in a steady state: continuous batching with chunked prefill, as waits and mean iterations.

An iteration decodes one token of every sequence that has its first one, and processes at most C prompt tokens: one
of K equal chunks of a prompt, or up to J whole prompts. Requests arrive at random (Poisson), Lambda a second.
"""

from __future__ import annotations

from typing import Any

from ..kernels.thin_matmul import kernel_start_time
from ..language.atoms import Max, Min, ceil_div, complement, less_one
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    attention_efficiency,
    attention_rate,
    flop,
    memory_bandwidth,
    memory_efficiency,
    statistic_bytes,
)
from ..language.symbols.serving import PER_SECOND
from ..mathematics.fractions import E_INVERSE, fraction_power
from ..mathematics.series import max_sum
from ..sources import AINSLIE, KELLY, LITTLE, SARATHI
from .decode import cache_read_bytes, chunk_attention_bytes


@formula(
    glyph="K",
    dimension=ONE,
    source=SARATHI,
    increasing="prompt",
    decreasing="chunk",
)
def prompt_chunks(prompt: Any, chunk: Any) -> Any:
    """Equal chunks into which a prompt is cut, so that none exceeds s_c tokens: ceil(s_p / s_c).

    Assumes: prompts of one length.

    Source: Agrawal et al. 2024 section 4.2, with equal chunks instead of full ones and a rest.

    >>> prompt_chunks(4096, 1000), prompt_chunks(200, 1000)
    (5, 1)
    """
    return ceil_div(prompt, chunk)


@formula(
    glyph="J",
    dimension=ONE,
    source=SARATHI,
    increasing="chunk",
    decreasing="prompt",
)
def prompts_of_a_chunk(prompt: Any, chunk: Any) -> Any:
    """Whole prompts that an iteration may prefill: max(1, floor(s_c / s_p)).

    Assumes: a prompt that does not fit into what is left of a chunk waits for the next one.

    Source: Agrawal et al. 2024 section 4.2; floor(s_c / s) = ceil((s_c + 1) / s) - 1 of whole numbers.

    >>> prompts_of_a_chunk(4096, 1000), prompts_of_a_chunk(200, 1000)
    (1, 5)
    """
    return Max(1, less_one(ceil_div(chunk + 1, prompt)))


@formula(
    glyph="T_{chk}",
    dimension=SECOND,
    source=AINSLIE,
    increasing="activation_bytes flop gap_latency groups head_dim heads key_value_heads kv_bytes launch_latency "
    "prompt statistic_bytes",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def chunked_attention_time(
    groups: Any,
    prompt: Any,
    chunks: Any,
    heads: Any,
    key_value_heads: Any,
    head_dim: Any,
    activation_bytes: Any,
    kv_bytes: Any,
) -> Any:
    """Mean over the K chunks of a prompt of the time of a chunk's causal attention, g chunks in a kernel.

    Chunk i of s_p / K tokens sees i chunks before it, so that its work and its traffic are straight lines in i, and
    `max_sum` is the sum over the chunks. All chunks together see s_p (s_p + 1) / 2 pairs.

    Assumes: as `flash_flops` and `chunk_attention_bytes`; keys are read from the cache; a statistic for each query.

    Source: `flash_flops` and `chunk_attention_bytes` of each chunk, summed.

    >>> from sympy import symbols
    >>> chunked_attention_time(*symbols("g s K a k d w v", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    gap_latency*complement(graph_removal) + launch_latency + max_sum(K, 0, 2*a*d*flop*g*s*(1 +
    s/K)/(K*attention_efficiency*attention_rate), 4*a*d*flop*g*s**2/(K**2*attention_efficiency*attention_rate),
    (2*a*d*g*s*w/K + a*g*s*statistic_bytes/K + 2*d*g*k*s*v/K)/(memory_bandwidth*memory_efficiency),
    2*d*g*k*s*v/(K*memory_bandwidth*memory_efficiency))/K
    """
    piece = prompt / chunks
    pair = 4 * heads * head_dim * groups * flop / (attention_rate * attention_efficiency)
    bandwidth = memory_bandwidth * memory_efficiency
    own = chunk_attention_bytes(groups, piece, piece, heads, key_value_heads, head_dim, activation_bytes, kv_bytes)
    own += groups * piece * heads * statistic_bytes
    each = cache_read_bytes(groups, piece, key_value_heads, head_dim, kv_bytes)
    pairs = piece * (piece + 1) / 2
    total = max_sum(chunks, 0, pair * pairs, pair * piece**2, own / bandwidth, each / bandwidth)
    return total / chunks + kernel_start_time()


@formula(
    glyph="N_{seq}",
    dimension=ONE,
    source=LITTLE,
    increasing="decode_steps iteration_time load",
    curvature="affine",
)
def decoding_sequences(load: Any, decode_steps: Any, iteration_time: Any) -> Any:
    """Mean number of sequences that decode at a moment: Lambda N_dec tau.

    Assumes: a steady state.

    Source: Little 1961: arrivals a second times the time that each decodes.

    >>> from sympy import symbols
    >>> decoding_sequences(*symbols("R N tau"))
    N*R*tau
    """
    return load * decode_steps * iteration_time


@formula(
    glyph=r"\phi_{mix}",
    dimension=ONE,
    source=SARATHI,
    increasing="arrivals chunks",
    decreasing="chunk_prompts",
)
def prefilling_share(arrivals: Any, chunks: Any, chunk_prompts: Any) -> Any:
    """Part of the iterations that prefill, where x prompts arrive during one: max(1 - e^-x, x K / J).

    A cut prompt (J = 1) takes K iterations of its own, which is exact: x K of them for each iteration. Whole prompts
    share the next iteration; none arrived with probability e^-x, and when more than J did, later ones are filled.

    Assumes: Poisson arrivals; x K <= J, otherwise prompts pile up.

    Source: derivation: conservation of chunks, and the Poisson probability of no arrival.

    >>> from sympy import Rational
    >>> prefilling_share(Rational(1, 10), 4, 1), round(prefilling_share(Rational(1, 10), 1, 5), 6)
    (2/5, 0.095163)
    """
    return Max(complement(fraction_power(E_INVERSE, arrivals)), arrivals * chunks / chunk_prompts)


@formula(
    glyph="s_{sat}",
    dimension=ONE,
    source=LITTLE,
    increasing="chunk_prompts decoding prompt",
    decreasing="chunks decode_steps",
    curvature="concave",
)
def saturated_chunk_tokens(decoding: Any, prompt: Any, decode_steps: Any, chunks: Any, chunk_prompts: Any) -> Any:
    """Prompt tokens of a mean iteration that keeps n sequences decoding: min(n s_p / N_s, s_p J / K).

    A sequence decodes for N_s iterations, so that n / N_s end in each; as many begin, each after s_p tokens of its
    prompt. An iteration holds no more than a full chunk, s_p J / K.

    Assumes: saturation, so that a request waits to take each place that becomes free; prompts spread evenly over the
    iterations. Where a full chunk is the smaller, prefill cannot keep n sequences decoding.

    Source: conservation of sequences (Little's law of the decoding places: n = x N_s).

    >>> from sympy import symbols
    >>> saturated_chunk_tokens(64, 1024, 256, 1, 2), saturated_chunk_tokens(4096, 1024, 256, 1, 2)
    (256, 2048)
    """
    return Min(decoding * prompt / decode_steps, prompt * chunk_prompts / chunks)


@formula(
    glyph=r"\tau",
    dimension=SECOND,
    source=SARATHI,
    increasing="chunk_extra_time chunk_share decode_time",
    curvature="convex",
)
def mean_iteration_time(decode_time: Any, chunk_extra_time: Any, chunk_share: Any) -> Any:
    """Mean time of an iteration: tau_d + phi_mix tau_c.

    Assumes: which iterations prefill does not depend on how many sequences decode.

    Source: the mean over iterations with and without prefill.

    >>> from sympy import symbols
    >>> mean_iteration_time(*symbols("d c p"))
    c*p + d
    """
    return decode_time + chunk_share * chunk_extra_time


@formula(
    glyph=r"\tau_\Lambda",
    dimension=SECOND,
    source=KELLY,
    increasing="alone_time load",
    decreasing="spare_load",
    curvature="convex",
)
def loaded_iteration_time(alone_time: Any, load: Any, spare_load: Any) -> Any:
    """Time per token under load, where iterations are affine in what they hold: tau_1 / (1 - rho).

    With tau(n) = tau_0 + a n and b seconds more for each prompt, a request adds s_r = a N_s + b seconds of work, the
    capacity is 1 / s_r, and 1 / (1 - rho) = 1 + Lambda / (1 / s_r - Lambda).

    Assumes: Poisson arrivals; no limit of memory or chunk is reached. tau_1 = tau_0 + a is the time of one alone.

    Source: a queue in which n requests each progress at the rate 1 / tau(n) is symmetric, so that the law of n is
    negative binomial for every law of lengths (Kelly 1979, theorem 3.8): mean Lambda N_s (tau_0 + a) / (1 - rho).
    It is also the fixed point of tau = tau(1 + n): an arrival sees the mean number of others.

    >>> loaded_iteration_time(2, 3, 1)
    8
    """
    return alone_time * (1 + load / spare_load)


@formula(
    glyph=r"\Lambda_{max}",
    dimension=PER_SECOND,
    source=KELLY,
    decreasing="request_work",
    curvature="affine",
)
def affine_capacity(request_work: Any) -> Any:
    """Requests in a second that iterations of affine time can serve, all limits apart: 1 / s_r.

    Assumes: as `loaded_iteration_time`.

    Source: the load at which rho = Lambda s_r = 1.

    >>> affine_capacity(4)
    1/4
    """
    return 1 / request_work


@formula(
    glyph=r"\Lambda_C",
    dimension=PER_SECOND,
    source=SARATHI,
    increasing="chunk_prompts pp",
    decreasing="chunks mixed_time",
    curvature="affine",
)
def chunk_capacity(mixed_time: Any, chunks: Any, chunk_prompts: Any, pp: Any) -> Any:
    """Requests in a second that prefill can serve when every iteration holds a full chunk: J p / (K tau_m).

    Assumes: p groups of sequences are in flight, each with its own chunk.

    Source: conservation: an iteration of a group ends J / K prompts.

    >>> chunk_capacity(2, 4, 1, 1)
    1/8
    """
    return chunk_prompts * pp / (chunks * mixed_time)


@formula(
    glyph="n_{oth}",
    dimension=ONE,
    source=LITTLE,
    increasing="apart decode_steps iteration_time load prefill_time",
    curvature="convex",
)
def others_seen(load: Any, decode_steps: Any, iteration_time: Any, prefill_time: Any, apart: Any) -> Any:
    """Other sequences that one sees in the mean while it decodes: Lambda (N_dec tau o^2 + 2 S_p o).

    Two requests whose prompts follow each other start to decode K iterations apart, and so do all that arrive while
    the first is prefilled, which takes the time S_p; others start further apart, one arrival for each 1 / Lambda
    of decoding. With o = 1 - K / N_dec, the part of its steps that two neighbours share, the sum of what both overlap
    is Lambda N_dec (N_dec tau o^2 + 2 S_p o) steps.

    Assumes: pairs of requests, independent of one another; fewer at high loads, where prompts leave prefill evenly.

    Source: derivation: the integral of the overlap over the arrivals before and after.

    >>> from sympy import symbols
    >>> others_seen(*symbols("R N t S"), 1)
    R*(N*t + 2*S)
    """
    return load * (decode_steps * iteration_time * apart**2 + 2 * prefill_time * apart)


@formula(
    glyph="x_s",
    dimension=ONE,
    source=LITTLE,
    increasing="boundary_time iteration_time load prefill_time",
    decreasing="decode_steps",
    curvature="convex",
)
def arrivals_seen(load: Any, iteration_time: Any, prefill_time: Any, boundary_time: Any, decode_steps: Any) -> Any:
    """Prompts prefilled for each iteration that a request decodes in: Lambda (tau + (S_p / 2 + W_b) / N_dec).

    What arrives during its steps is prefilled during them; what arrived while it was prefilled itself comes on top,
    and what is not done at its end goes off.

    Assumes: the rest of a prefill in progress is half of it.

    Source: derivation: work behind a prompt when its prefill ends, Lambda (W + S_p), less the mean work at a moment,
    Lambda (W_q + S_p / 2).

    >>> from sympy import symbols
    >>> arrivals_seen(*symbols("R t S b N"))
    R*(t + (S/2 + b)/N)
    """
    return load * (iteration_time + (prefill_time / 2 + boundary_time) / decode_steps)

"""Constants of attention kernels: starts of kernels and of their blocks, and what they attain of their peaks."""

from __future__ import annotations

from ..dimension import FLOP, RATE, SECOND
from .entry import POSITIVE, ZERO_UP, add

exponent_rate = add(
    "device",
    "exponent_rate",
    "F_{exp}",
    "Exponentials per second of the special-function units, counted as one operation each.",
    RATE,
    POSITIVE,
    "compute",
)
query_block = add(
    "device",
    "query_block",
    "B_{dev}",
    "Rows of queries that a unit takes together in attention of prompts.",
)
score_rate = add(
    "device",
    "score_rate",
    "F_{qk}",
    "Dense peak of the matrix units in the format in which attention multiplies: 8 bits where products and cache have "
    "them, else 16.",
    RATE,
    POSITIVE,
    "compute",
)
cache_casts = add(
    "format",
    "cache_casts",
    "n_{q8}",
    "Casts of queries to the format of the cache: 1 where it is narrower than activations, else 0.",
    domain=ZERO_UP,
)
prompt_latency = add(
    "efficiency",
    "prompt_latency",
    r"\lambda_{pre}",
    "Time that attention of a prompt takes beside its blocks and bytes: it and the kernel that writes the cache start.",
    SECOND,
    ZERO_UP,
    "launch",
)
prompt_efficiency = add(
    "efficiency",
    "prompt_efficiency",
    r"\eta_{pre}",
    "Part of the matrix peak at which a prompt's attention multiplies, its exponentials apart.",
    domain=POSITIVE,
)
block_latency = add(
    "efficiency",
    "block_latency",
    r"\lambda_{blk}",
    "Time that a block of queries takes on its unit beside its pairs: its start and its end.",
    SECOND,
    ZERO_UP,
    "compute",
)
cache_cast_latency = add(
    "efficiency",
    "cache_cast_latency",
    r"\lambda_{q8}",
    "Time that kernels take to start that cast queries to the format of the cache.",
    SECOND,
    ZERO_UP,
    "launch",
)
decode_latency = add(
    "efficiency",
    "decode_latency",
    r"\lambda_{dec}",
    "Time that attention over a cache takes beside its blocks and bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
decode_block_latency = add(
    "efficiency",
    "decode_block_latency",
    r"\lambda_{kv}",
    "Time that a sequence and key-value head takes on its unit beside its bytes, in attention over a cache.",
    SECOND,
    ZERO_UP,
    "compute",
)
cache_efficiency = add(
    "efficiency",
    "cache_efficiency",
    r"\eta_{kv}",
    "Part of the memory bandwidth at which attention reads keys and values.",
    domain=POSITIVE,
)
latent_latency = add(
    "efficiency",
    "latent_latency",
    r"\lambda_{lat}",
    "Time that absorbed attention over latents takes beside its blocks, products and bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
latent_efficiency = add(
    "efficiency",
    "latent_efficiency",
    r"\eta_{lat}",
    "Part of the matrix peak at which absorbed attention over latents multiplies.",
    domain=POSITIVE,
)
absorb_latency = add(
    "efficiency",
    "absorb_latency",
    r"\lambda_{abs}",
    "Time that batched products which absorb projections need more to start than the library's other products.",
    SECOND,
    ZERO_UP,
    "launch",
)

block_rows = add("formal", "block_rows", "B_q", "Rows of queries of a block of attention.")
mean_keys = add("formal", "mean_keys", "l_m", "Keys that a query sees, the mean over the queries.", domain=POSITIVE)
longest_keys = add(
    "formal", "longest_keys", "l_x", "Keys that the query which sees most of them sees.", domain=POSITIVE
)
pair_flops = add("formal", "pair_flops", "W_{qk}", "FLOPs of the products of a query and a key.", FLOP, POSITIVE)
key_work_time = add(
    "formal", "key_work_time", r"\tau_w", "Time that the products with one cached key take.", SECOND, ZERO_UP
)
cache_blocks = add(
    "formal", "cache_blocks", "N_{kb}", "Parts of the work over a cache that a unit takes one after the other."
)
own_time = add(
    "formal", "own_time", r"\tau_0", "Time of an attention kernel's bytes that are no keys.", SECOND, ZERO_UP
)

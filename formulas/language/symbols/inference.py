"""What is asked of an inference, its number formats, and what the serving software adds."""

from __future__ import annotations

from ..dimension import BYTE, RATE, SECOND
from .entry import FRACTION, POSITIVE, ZERO_UP, add

prompt = add("work", "prompt", "s_p", "Tokens of a prompt.")
generate = add(
    "work", "generate", "G", "Tokens generated for a prompt; prefill yields the first, a decode step each other one."
)

operand_bytes = add(
    "format", "operand_bytes", "w_q", "Bytes of an activation element that a product reads.", BYTE, POSITIVE
)
kv_bytes = add("format", "kv_bytes", "w_{kv}", "Bytes of an element of the key-value cache.", BYTE, POSITIVE)
table_bytes = add("format", "table_bytes", "w_t", "Bytes of a weight of the token table and the head.", BYTE, POSITIVE)

attention_rate = add(
    "device",
    "attention_rate",
    "F_a",
    "Dense peak of the matrix units in the 16-bit format that attention runs in, whatever the products run in.",
    RATE,
    POSITIVE,
    "compute",
)
half_efficiency = add(
    "efficiency",
    "half_efficiency",
    r"\eta_{16}",
    "Attainable part of the 16-bit matrix peak, for products that stay in 16 bits beside narrower ones.",
    domain=POSITIVE,
)
half_inner_latency = add(
    "efficiency",
    "half_inner_latency",
    r"\tau_{16}",
    "Least time of an element of the contracted side, for products that stay in 16 bits beside narrower ones.",
    SECOND,
    ZERO_UP,
    "launch",
)
tile_thin = add("efficiency", "tile_thin", "T_t", "Rows of the smallest matrix instruction, for thin products.")
split_inner = add(
    "efficiency", "split_inner", "k_s", "Longest contracted side of a product that the library never splits along it."
)
kv_block = add("efficiency", "kv_block", "B_{kv}", "Tokens of a block of the paged key-value cache.")
gap_latency = add(
    "efficiency",
    "gap_latency",
    r"\lambda_g",
    "Idle time between two kernels that the serving software launches one after the other.",
    SECOND,
    ZERO_UP,
    "launch",
)
graph_removal = add(
    "efficiency",
    "graph_removal",
    r"\gamma",
    "Part of the gaps between kernels that recorded graphs remove.",
    domain=FRACTION,
)
step_latency = add(
    "efficiency",
    "step_latency",
    r"\lambda_s",
    "Time that the serving software adds to every forward pass: scheduling, sampling on the host, transfer of tokens.",
    SECOND,
    ZERO_UP,
    "launch",
)
start_removal = add(
    "efficiency",
    "start_removal",
    r"\gamma_s",
    "Part of a kernel's start that the end of the one before it hides in a recorded graph.",
    domain=FRACTION,
)
recorded_tokens = add(
    "efficiency",
    "recorded_tokens",
    r"n_{rec}",
    "Most new tokens of a pass for which the serving software has recorded a graph.",
)
request_latency = add(
    "efficiency",
    "request_latency",
    r"\lambda_r",
    "Time of a request outside the engine: HTTP, queues between processes, and the way of its first token.",
    SECOND,
    ZERO_UP,
    "launch",
)
tokenizer_latency = add(
    "efficiency",
    "tokenizer_latency",
    r"\lambda_t",
    "Time that a token of a prompt adds to the way of its request to the engine: text, tokenizer, transport.",
    SECOND,
    ZERO_UP,
    "launch",
)
crowd_latency = add(
    "efficiency",
    "crowd_latency",
    r"\lambda_{if}",
    "Time that each request in flight adds to the way of another one, beside which its tokens are sent.",
    SECOND,
    ZERO_UP,
    "launch",
)
sampling_kernels = add(
    "efficiency", "sampling_kernels", "n_{smp}", "Kernels that choose a token from the logits, one after the other."
)

steps = add("formal", "steps", "n_g", "Decode steps of a generation.")
first_context = add("formal", "first_context", "l_0", "Keys that the first decode step reads.")
new_tokens = add("formal", "new_tokens", "n_q", "Queries of each sequence in one pass.", domain=POSITIVE)
context_splits = add("formal", "context_splits", "n_k", "Parts of a context that fill the device.")
parts_bytes = add("formal", "parts_bytes", "Q_p", "Bytes of the partial results of split contexts.", BYTE, ZERO_UP)
combine_time = add(
    "formal", "combine_time", "T_+", "Time of the kernel that adds the parts of split contexts.", SECOND, ZERO_UP
)
heads_together = add(
    "formal",
    "heads_together",
    "h_k",
    "Query heads of a group that an attention kernel computes in one pass over its keys.",
)
cache_passes = add("formal", "cache_passes", "r_k", "Times that attention reads each cached key, in parts of a group.")
key_time = add(
    "formal", "key_time", r"\tau_k", "Time that the bytes of one cached key take an attention kernel.", SECOND, ZERO_UP
)
whole_key_time = add(
    "formal",
    "whole_key_time",
    r"\tau_{k1}",
    "Time that the bytes of one cached key take, with whole contexts on a part of the units.",
    SECOND,
    ZERO_UP,
)
own_bytes = add(
    "formal", "own_bytes", "Q_0", "Bytes of an attention kernel that do not depend on the context.", BYTE, ZERO_UP
)

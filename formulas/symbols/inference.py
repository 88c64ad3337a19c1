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
tile_thin = add("efficiency", "tile_thin", "T_t", "Rows of the smallest matrix instruction, for thin products.")
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
    "efficiency", "graph_removal", r"\gamma", "Part of these gaps that recorded graphs remove.", domain=FRACTION
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
sampling_kernels = add(
    "efficiency", "sampling_kernels", "n_{smp}", "Kernels that choose a token from the logits, one after the other."
)

steps = add("formal", "steps", "n_g", "Decode steps of a generation.")
first_context = add("formal", "first_context", "l_1", "Keys that the first decode step reads.")
new_tokens = add("formal", "new_tokens", "n_q", "Queries of each sequence in one pass.", domain=POSITIVE)
own_bytes = add(
    "formal", "own_bytes", "Q_0", "Bytes of an attention kernel that do not depend on the context.", BYTE, ZERO_UP
)

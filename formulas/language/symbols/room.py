"""What serving software does with a device's memory: the part that it takes, what it reserves, what is left."""

from __future__ import annotations

from ..dimension import BYTE
from .entry import POSITIVE, ZERO_UP, add

memory_utilization = add(
    "efficiency",
    "memory_utilization",
    r"\upsilon",
    "Part of a device's memory that serving software takes: of all of it, of what weights leave, or for both.",
    domain=POSITIVE,
)
max_num_seqs = add("work", "max_num_seqs", "n_{seq}", "Sequences for which serving software reserves memory at most.")
whole_contexts = add(
    "efficiency", "whole_contexts", "n_{wh}", "Longest context whose prompt serving software prefills in one step."
)
sampling_copies = add(
    "efficiency",
    "sampling_copies",
    r"\kappa_{smp}",
    "Memory that sampling holds at once, in logits of 32 bits.",
    domain=POSITIVE,
)
graph_bytes = add(
    "efficiency", "graph_bytes", "W_{gr}", "Memory that serving software sets aside for recorded graphs.", BYTE, ZERO_UP
)

context_tokens = add("formal", "context_tokens", "n_{ctx}", "Tokens of a context.")
hidden_bytes = add("formal", "hidden_bytes", "A_h", "Bytes of the last layer's outputs.", BYTE, ZERO_UP)
sampling_bytes = add("formal", "sampling_bytes", "A_s", "Bytes that sampling holds at once.", BYTE, ZERO_UP)
held_bytes = add("formal", "held_bytes", "W_W", "Bytes of a device's weights.", BYTE, ZERO_UP)
runtime_bytes = add("formal", "runtime_bytes", "W_X", "Bytes of driver, libraries and framework.", BYTE, ZERO_UP)
rest_bytes = add("formal", "rest_bytes", "W_R", "Bytes of all that is no cache.", BYTE, ZERO_UP)
budget_bytes = add("formal", "budget_bytes", "B_{kv,m}", "Bytes that software leaves for the cache.", BYTE, ZERO_UP)

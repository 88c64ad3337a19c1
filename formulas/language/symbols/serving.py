"""Serving: what arrives, what one iteration holds, and what speculative decoding drafts."""

from __future__ import annotations

from ..dimension import BYTE, ONE, SECOND
from .entry import FRACTION, POSITIVE, ZERO_UP, add

PER_SECOND = ONE / SECOND

load = add("work", "load", r"\Lambda", "Requests that arrive at a replica in a second.", PER_SECOND, POSITIVE)
chunk = add("work", "chunk", "s_c", "Prompt tokens that an iteration may process.")
decoding = add("work", "decoding", "b_d", "Sequences that an iteration decodes, of one group.", domain=POSITIVE)
chunk_tokens = add("work", "chunk_tokens", "c_p", "Prompt tokens that an iteration processes.", domain=ZERO_UP)
step_tokens = add("work", "step_tokens", "n_v", "Tokens of a sequence in a step: drafted ones to verify, and one more.")
groups_in_flight = add(
    "work", "groups_in_flight", "p_g", "Groups of sequences in the stages of a pipeline at once.", domain=POSITIVE
)
prefilling_ranks = add(
    "work",
    "prefilling_ranks",
    r"\phi_{pr}",
    "Part of the replicas that pass the same experts which prefill in an iteration that prefills.",
    domain=POSITIVE,
)
chunks = add("work", "chunks", "K", "Equal chunks into which a prompt is cut.")
context_before = add(
    "work",
    "context_before",
    "h_{bef}",
    "Cached tokens before those that are prefilled; a mean.",
    domain=ZERO_UP,
)
chunk_context = add(
    "work",
    "chunk_context",
    "h_{chk}",
    "Cached tokens before a mean prompt with as many pairs.",
    domain=ZERO_UP,
)
acceptance = add("work", "acceptance", r"\alpha_d", "Probability that a drafted token is accepted.", domain=FRACTION)
draft_length = add("work", "draft_length", "k_d", "Tokens that are drafted for a step.")

cached_tokens = add("work", "cached_tokens", "s_{pre}", "First tokens of a prompt that are in the cache.")
fresh_tokens = add("work", "fresh_tokens", "s_{new}", "Tokens of a prompt behind those in the cache.")
lora_rank = add("work", "lora_rank", "r_{lo}", "Rank of adapters of linear layers; of requests, that of their slots.")
lora_adapters = add("work", "lora_adapters", "N_{lo}", "Slots of adapters that a device holds.")

chunk_prompts = add("formal", "chunk_prompts", "J", "Whole prompts that fit in a chunk; 1 where a prompt is cut.")
decode_steps = add("formal", "decode_steps", "N_{dec}", "Decode steps that a request takes.", domain=POSITIVE)
iteration_time = add("formal", "iteration_time", r"\tau", "Mean time of an iteration.", SECOND, POSITIVE)
decode_time = add("formal", "decode_time", r"\tau_d", "Time of an iteration that only decodes.", SECOND, POSITIVE)
mixed_time = add("formal", "mixed_time", r"\tau_m", "Time of an iteration that prefills too.", SECOND, POSITIVE)
chunk_extra_time = add(
    "formal", "chunk_extra_time", r"\tau_c", "Time by which prefill makes an iteration longer.", SECOND, ZERO_UP
)
alone_time = add("formal", "alone_time", r"\tau_1", "Time of an iteration for one sequence alone.", SECOND, POSITIVE)
request_work = add(
    "formal", "request_work", "s_r", "Time that a request adds to all iterations that serve it.", SECOND, POSITIVE
)
spare_load = add("formal", "spare_load", r"\Lambda_s", "Capacity less load.", PER_SECOND, POSITIVE)
arrivals = add("formal", "arrivals", "x", "Mean number of prompts that arrive during an iteration.", domain=ZERO_UP)
chunk_share = add("formal", "chunk_share", r"\phi_{mix}", "Part of iterations that prefill too.", domain=FRACTION)
service_time = add("formal", "service_time", "S", "Time of one service.", SECOND, POSITIVE)
servers = add("formal", "servers", "c_{srv}", "Requests in service at once, at most.")
decode_share = add("formal", "decode_share", "v_d", "Part of the time in iterations that only decode.", domain=FRACTION)
mixed_share = add(
    "formal",
    "mixed_share",
    "v_m",
    "Part of the time in iterations that prefill, which a prompt waits out.",
    domain=FRACTION,
)
boundary_time = add("formal", "boundary_time", "W_b", "Mean wait for the next iteration.", SECOND, ZERO_UP)
queue_time = add("formal", "queue_time", "W_q", "Mean wait behind other prompts.", SECOND, ZERO_UP)
cache_time = add("formal", "cache_time", "W_k", "Mean wait for memory of the cache.", SECOND, ZERO_UP)
prefill_time = add("formal", "prefill_time", "S_p", "Time of all iterations of a prompt.", SECOND, POSITIVE)
first_token_time = add("formal", "first_token_time", "T_{ttft}", "Mean time to the first token.", SECOND, POSITIVE)
wait_deviation = add("formal", "wait_deviation", r"\sigma_W", "Standard deviation of a wait.", SECOND, ZERO_UP)
tail = add("formal", "tail", r"\epsilon", "Probability of a longer wait.", domain=POSITIVE)
wait_slack = add("formal", "wait_slack", "W_{sl}", "Longest mean wait that a target leaves.", SECOND, POSITIVE)
prefill_load = add(
    "formal", "prefill_load", r"\Lambda_p", "Requests in a second of an instance that prefills.", PER_SECOND, POSITIVE
)
decode_load = add(
    "formal", "decode_load", r"\Lambda_d", "Requests in a second of an instance that decodes.", PER_SECOND, POSITIVE
)
cache_bytes = add("formal", "cache_bytes", "Q_s", "Bytes of a prompt's cache on one device.", BYTE, ZERO_UP)
draft_time = add("formal", "draft_time", r"\tau_q", "Time to draft one token.", SECOND, ZERO_UP)
verify_time = add("formal", "verify_time", r"\tau_v", "Time of the step that verifies.", SECOND, POSITIVE)
later_tokens = add(
    "formal", "later_tokens", "n_{+}", "Mean tokens that a step yields behind an accepted one.", domain=POSITIVE
)
occupancy = add("formal", "occupancy", r"\theta", "Part of the places that is taken.", domain=FRACTION)
apart = add("formal", "apart", "o", "Part of its steps that a request shares with the next one.", domain=FRACTION)
last_spare_load = add(
    "formal",
    "last_spare_load",
    r"\Lambda_s'",
    "Capacity where as many sequences decode as at it, less load.",
    PER_SECOND,
    POSITIVE,
)

concurrency = add("formal", "concurrency", "N_{if}", "Requests in flight, of which each is replaced as it ends.")
missed = add("formal", "missed", "m_{it}", "Iterations that have begun as a request is sent.", domain=ZERO_UP)
packs = add("formal", "packs", "q_b", "Packs of prompts that are prefilled one after another.")
burst_time = add("formal", "burst_time", "T_{bst}", "Mean time to the first token in a burst.", SECOND, POSITIVE)
burst_share = add(
    "formal", "burst_share", r"\omega_b", "Part of a run's requests that arrive at once.", domain=FRACTION
)
deviation = add("formal", "deviation", r"\sigma_G", "Standard deviation of a request's decode steps.", domain=POSITIVE)
spacing = add("formal", "spacing", "d_K", "Iterations from one request's prefill to the next one's.", domain=POSITIVE)
idle = add("formal", "idle", r"\iota", "Part of the iterations that do not prefill.", domain=POSITIVE)
packs_behind = add("formal", "packs_behind", "Q_b", "Packs of prompts behind the first one.", domain=ZERO_UP)
risen = add(
    "formal", "risen", "z_b", "Part of a burst's packs that are prefilled as its first request ends.", domain=FRACTION
)
ramp = add("formal", "ramp", "R_{bst}", "Iterations in which a burst is prefilled.", domain=POSITIVE)
waves = add("formal", "waves", "k_w", "How often the requests of a loop were replaced.")

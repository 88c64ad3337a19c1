"""Symbols of kernels that select keys, and of attention to those that are selected."""

from __future__ import annotations

from ..dimension import BYTE, RATE, SECOND
from .entry import FRACTION, POSITIVE, ZERO_UP, add

index_key_bytes = add(
    "format",
    "index_key_bytes",
    "w_x",
    "Bytes of an element of an indexer's cached key, its part of a scale included.",
    BYTE,
    POSITIVE,
)
index_rate = add(
    "device",
    "index_rate",
    "F_{idx}",
    "Dense peak of the matrix units in the format of an indexer's keys.",
    RATE,
    POSITIVE,
    "compute",
)
index_latency = add(
    "efficiency",
    "index_latency",
    r"\lambda_{idx}",
    "Time that the kernels of an indexer take together beside its projections, products and bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
index_efficiency = add(
    "efficiency",
    "index_efficiency",
    r"\eta_{idx}",
    "Part of the matrix peak at which an indexer scores keys.",
    domain=POSITIVE,
)
select_passes = add(
    "efficiency",
    "select_passes",
    r"\rho_{sel}",
    "Bytes that selection of keys takes the time of, over those of writing each score and reading it once.",
    domain=POSITIVE,
)
selected_latency = add(
    "efficiency",
    "selected_latency",
    r"\lambda_{sel}",
    "Time that attention to selected keys takes beside its products and bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
selected_efficiency = add(
    "efficiency",
    "selected_efficiency",
    r"\eta_{sel}",
    "Part of the matrix peak at which attention to selected keys multiplies.",
    domain=POSITIVE,
)
gather_efficiency = add(
    "efficiency",
    "gather_efficiency",
    r"\eta_{gat}",
    "Bandwidth at which selected keys are gathered, over that of memory; above 1 where L2 has keys of neighbours.",
    domain=POSITIVE,
)
slot_share = add(
    "efficiency",
    "slot_share",
    r"\sigma_{sel}",
    "Part of a query's places for selected keys that a kernel computes though they are empty.",
    domain=FRACTION,
)

module_latency = add(
    "efficiency",
    "module_latency",
    r"\lambda_{mod}",
    "Time that a host takes to launch the kernels of an attention module one by one, without those of its indexer.",
    SECOND,
    ZERO_UP,
    "launch",
)
index_module_latency = add(
    "efficiency",
    "index_module_latency",
    r"\lambda_{xmod}",
    "Time that a host takes to launch the kernels of a module's indexer one by one.",
    SECOND,
    ZERO_UP,
    "launch",
)
block_module_latency = add(
    "efficiency",
    "block_module_latency",
    r"\lambda_{mod}^{b}",
    "Time that a host takes to launch the kernels of a module of attention to selected blocks one by one.",
    SECOND,
    ZERO_UP,
    "launch",
)
block_index_latency = add(
    "efficiency",
    "block_index_latency",
    r"\lambda_{idx}^{b}",
    "Time that the kernels of an indexer of blocks take together beside its products and bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
block_index_efficiency = add(
    "efficiency",
    "block_index_efficiency",
    r"\eta_{idx}^{b}",
    "Part of the matrix peak at which an indexer of blocks scores keys.",
    domain=POSITIVE,
)
block_select_passes = add(
    "efficiency",
    "block_select_passes",
    r"\rho_{sel}^{b}",
    "Bytes that selection of blocks takes the time of, over those of writing each score and reading it once.",
    domain=POSITIVE,
)
block_selected_latency = add(
    "efficiency",
    "block_selected_latency",
    r"\lambda_{sel}^{b}",
    "Time that attention to selected blocks takes beside its products and bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
block_selected_efficiency = add(
    "efficiency",
    "block_selected_efficiency",
    r"\eta_{sel}^{b}",
    "Part of the matrix peak at which attention to selected blocks multiplies.",
    domain=POSITIVE,
)
block_gather_efficiency = add(
    "efficiency",
    "block_gather_efficiency",
    r"\eta_{gat}^{b}",
    "Bandwidth at which selected blocks are gathered, over that of memory; above 1 where L2 has keys of neighbours.",
    domain=POSITIVE,
)
block_slot_share = add(
    "efficiency",
    "block_slot_share",
    r"\sigma_{sel}^{b}",
    "Part of a query's places for selected blocks that a kernel computes though they are empty.",
    domain=FRACTION,
)
index_training = add(
    "efficiency",
    "index_training",
    r"\chi_{idx}",
    "Part of the steps that train the indexers as well: 1 in the sparse stage, 0 where they are frozen.",
    domain=FRACTION,
)
group_rows = add(
    "efficiency",
    "group_rows",
    "B_{grp}",
    "Rows that attention to selected blocks multiplies for a group of query heads, however few they are.",
    domain=POSITIVE,
)

scores = add("formal", "scores", "N_{sco}", "Scores that an indexer gives, of queries with keys.", domain=POSITIVE)
cached_elements = add(
    "formal", "cached_elements", "n_{el}", "Elements that a layer caches of a token.", domain=POSITIVE
)
visible_keys = add("formal", "visible_keys", "n_v", "Selected keys that a query sees, the mean.", domain=POSITIVE)
slots = add("formal", "slots", "n_s^{max}", "Places that a query has for selected keys.", domain=POSITIVE)
score_bytes = add("formal", "score_bytes", "S", "Bytes of an indexer's scores, written and read once.", BYTE, ZERO_UP)

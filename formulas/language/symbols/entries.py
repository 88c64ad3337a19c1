"""Symbols of the kernels of attention to compressed entries, and of the indexer that chooses among them."""

from __future__ import annotations

from ..dimension import SECOND
from .entry import FRACTION, POSITIVE, ZERO_UP, add

entry_index_latency = add(
    "efficiency",
    "entry_index_latency",
    r"\lambda_{idx}^{e}",
    "Time that the kernels of an indexer of entries take together beside its products and bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
entry_index_efficiency = add(
    "efficiency",
    "entry_index_efficiency",
    r"\eta_{idx}^{e}",
    "Part of the matrix peak at which an indexer scores compressed entries.",
    domain=POSITIVE,
)
entry_select_passes = add(
    "efficiency",
    "entry_select_passes",
    r"\rho_{sel}^{e}",
    "Bytes that selection of entries takes the time of, over those of writing each score and reading it once.",
    domain=POSITIVE,
)
entry_choice_latency = add(
    "efficiency",
    "entry_choice_latency",
    r"\lambda_{cho}^{e}",
    "Time that selection takes where there are more entries than are selected, and not all are taken unseen.",
    SECOND,
    ZERO_UP,
    "launch",
)
entry_selected_latency = add(
    "efficiency",
    "entry_selected_latency",
    r"\lambda_{sel}^{e}",
    "Time that attention to a window and entries takes beside its products and bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
entry_selected_efficiency = add(
    "efficiency",
    "entry_selected_efficiency",
    r"\eta_{sel}^{e}",
    "Part of the matrix peak at which attention to a window and entries multiplies.",
    domain=POSITIVE,
)
entry_gather_efficiency = add(
    "efficiency",
    "entry_gather_efficiency",
    r"\eta_{gat}^{e}",
    "Bandwidth at which a window and entries are gathered, over that of memory; above 1 where L2 has them already.",
    domain=POSITIVE,
)
entry_slot_share = add(
    "efficiency",
    "entry_slot_share",
    r"\sigma_{sel}^{e}",
    "Part of a query's places for a window and entries that a kernel computes though they are empty.",
    domain=FRACTION,
)

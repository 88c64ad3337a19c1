"""What is fitted to rows of whole attention modules with compressed entries (DeepSeek-V4), for each software alone."""

from __future__ import annotations

from typing import Final

from ...validation.kernels import compressed
from .stages import Stage

COMPRESSED: Final = (
    Stage(
        "compressed attention",
        {
            "entry_selected_latency": 8e-6,
            "entry_selected_efficiency": 0.4,
            "entry_gather_efficiency": 0.5,
            "entry_slot_share": 0.2,
            "entry_index_latency": 5e-6,
            "entry_index_efficiency": 0.4,
            "entry_select_passes": 1.5,
            "entry_choice_latency": 2e-5,
        },
        dict.fromkeys(compressed.OPERATIONS, ()),
        whole=True,
    ),
)
"""Constants of the modules' own kernels; those of their products are known by then."""

"""Rows of `steps.csv`: steps of small models on one node, by which a host's constants were set; told apart for it."""

from __future__ import annotations

from .rows import Columns
from .training import express

__all__ = ["COLUMNS", "express"]

COLUMNS = Columns(
    required=(
        *("use", "id", "layers", "hidden", "tp", "pp", "dp"),
        *("micro_batch_seqs", "global_batch_seqs", "step_time_s"),
    )
)
"""What all rows have in common stands in `documents.toml`."""

"""What is asked of a run."""

from __future__ import annotations

from .entry import add

batch = add("work", "batch", "B", "Sequences in a global batch.")
micro_batch = add("work", "micro_batch", "b", "Sequences in one micro-batch of one replica.")
sequence = add("work", "sequence", "s", "Tokens in a sequence.")

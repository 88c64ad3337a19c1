"""A generation with drafted tokens in words."""

from __future__ import annotations

from ..serve.speculative_generation import SpeculativeGeneration
from .scaled import quantity, seconds


class Speculative(SpeculativeGeneration):
    """The same with lines for a terminal."""

    def lines(self) -> list[str]:
        """What drafting brings to the batch, and what it takes."""
        found = self.to_dict()
        fits = "fits" if found["fits"] else "does not fit"
        step = f"{found['tokens_per_step']:.4g} tokens a step of {seconds(found['step_s'])}"
        each = f"{seconds(found['time_per_token_s'])} a token: {found['speedup']:.4g} times as fast"
        return [
            "",
            f"with {found['draft']} drafting {found['draft_length']}: {step}",
            f"prefill {seconds(found['prefill_s'])}, decode {seconds(found['decode_s'])}, {each}",
            f"what drafts takes {quantity(found['draft_bytes'], 'B')} of a device, caches included: {fits}",
        ]

"""A small model as published: GPT-2 124M of nanoGPT, compiled, on A100, and what padding its vocabulary gains."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf

EARLY = {"loss": "unfused", "stack": "flash-attention-1"}
"""PyTorch 2.0 of early 2023: its flash kernel is FlashAttention of 2022; the loss is taken as unfused."""
UNFUSED = {"loss": "unfused", "stack": None, "attention": "eager"}
"""The same without its flash kernel."""
LATER = {"loss": "fused", "stack": None}
"""PyTorch of 2024."""
SXM = "a100-80gb-sxm"
MEASURED: dict[str, tuple[Any, ...]] = {
    "karpathy/nanoGPT issue 110, 8 x A100 in February 2023": ("a100-40gb-sxm", 8, 12, 480, 50257, EARLY, 0.562),
    "PyTorch's blog of April 2023, eager attention": (SXM, 1, 12, 12, 50257, UNFUSED, 0.143),
    "PyTorch's blog of April 2023, flash attention": (SXM, 1, 12, 12, 50257, EARLY, 0.113),
    "PyTorch's blog of April 2023, and padded": (SXM, 1, 12, 12, 50304, EARLY, 0.087),
    "A. Karpathy, Let's reproduce GPT-2 (June 2024), padded": (SXM, 1, 16, 16, 50304, LATER, 0.093),
    "victorbjorsvik/andrej (build-nanogpt), 8 x A100 80 GB": (SXM, 8, 64, 512, 50304, LATER, 0.34),
}
"""System, devices, micro-batch and batch of 1024 tokens each, vocabulary, software, seconds of an iteration."""


def iteration(system: str, devices: int, micro: int, batch: int, vocabulary: int, software: Any) -> Any:
    """An iteration, compiled."""
    plan = sf.Plan(
        dp=devices,
        micro_batch=micro,
        attention=software.get("attention", "flash"),
        dropout=False,
        overlap_dp=1.0,
        compiled=True,
        loss=software["loss"],
    )
    return sf.training(
        "gpt2", system, plan, batch=batch, sequence=1024, vocab_size=vocabulary, stack=software["stack"]
    ).value("time")


@pytest.mark.parametrize("source", MEASURED)
def test_an_iteration_takes_what_was_measured(source: str) -> None:
    """Within 15 %; nothing of the model is set by these rows but what an unaligned vocabulary costs."""
    *work, measured = MEASURED[source]
    assert iteration(*work) == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize("software", [EARLY, LATER])
def test_a_padded_vocabulary_is_a_quarter_faster(software: Any) -> None:
    """The gain that was published when nanoGPT padded 50,257 to 50,304; `alignment_efficiency` is from it."""
    gain = iteration(SXM, 1, 12, 12, 50257, software) / iteration(SXM, 1, 12, 12, 50304, software)
    assert 1.2 < gain < 1.4

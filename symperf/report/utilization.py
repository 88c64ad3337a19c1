"""Utilisations by the convention beside those of what the kernels execute, with a word on why they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scaled import percent

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun

APART = 0.02
"""From this relative difference on both are shown."""


def executed(run: BaseRun, convention: str, counted: str) -> str | None:
    """The utilisation of what the kernels execute, and why it is another than the convention's.

    Args:
        run: a bound run.
        convention: name of the utilisation by the convention.
        counted: name of the utilisation of what is executed.

    Returns:
        Nothing where they are within 2 % of each other.
    """
    one, other = run.value(convention), run.value(counted)
    if abs(other - one) <= APART * one:
        return None
    return f"{percent(other)} of peak: {'; '.join(reasons(run))}"


def reasons(run: BaseRun) -> list[str]:
    """Why the kernels of a run execute something else than the convention counts."""
    structure: Any = run.structure
    kinds = structure.architecture.kinds
    training = hasattr(structure, "recompute")
    fused = structure.attention == "flash" if training else structure.fusion.fused_prefill
    found = []
    if fused and any(kind.mixer in ("local_attention", "compressed_attention") and not kind.encoder for kind in kinds):
        found.append("by the convention attention counts in full, kernels skip what windows and masks hide")
    elif fused and any(kind.mixer in ("attention", "latent_attention") and not kind.encoder for kind in kinds):
        found.append("by the convention attention counts in full, a causal kernel executes half of it")
    if training and structure.attention == "flash":
        found.append("the flash kernel's backward pass computes scores again")
    if training and structure.recompute != "none":
        found.append("recomputation repeats work")
    if structure.products != "half" if training else structure.mixed_rates:
        found.append("16-bit products count against 16-bit peak")
    if training and structure.optimizer == "muon":
        found.append("the optimizer's products count too")
    return found or ["kernels execute what the convention does not count, as whole chunks and shares do"]


def impossible(run: BaseRun, names: dict[str, str], counted: str) -> tuple[str, ...]:
    """A warning for each utilisation by the convention that is above 1, which no device reaches.

    Args:
        run: a bound run.
        names: what each utilisation is called in text, by name.
        counted: name of the utilisation of what is executed.
    """
    real = percent(run.value(counted))
    return tuple(
        f"{text} of {percent(value)} is above 100 %: by convention attention counts every pair of tokens, also those "
        f"that masks, windows or chunks hide; the kernels execute {real} of the peak"
        for name, text in names.items()
        if (value := run.value(name)) > 1
    )

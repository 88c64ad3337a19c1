"""Adapters that a training step trains, as JSON and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scaled import percent, quantity

if TYPE_CHECKING:
    from ..runs.training_run import Run


def as_json(run: Run) -> dict[str, Any] | None:
    """Which linear layers have adapters, and how many parameters are trained; None without any."""
    if not run.structure.adapted:
        return None
    trained, frozen = run.value("adapter_parameters"), run.value("parameters")
    return {
        "rank": run.plan.lora_rank,
        "layers": list(run.structure.adapted),
        "dora": run.structure.decomposed,
        "base_precision": run.plan.base_precision,
        "trainable_parameters": trained,
        "trainable_share": trained / (trained + frozen),
    }


def rows(run: Run) -> list[tuple[str, str]]:
    """The same as a row of facts; none without adapters."""
    found = as_json(run)
    if found is None:
        return []
    kind = "DoRA" if found["dora"] else "LoRA"
    base = f", base in {found['base_precision']}" if found["base_precision"] else ""
    trained = f"{quantity(found['trainable_parameters'], 'parameters')} ({percent(found['trainable_share'])})"
    return [("trained", f"{trained}: {kind} of rank {found['rank']} on {', '.join(found['layers'])}{base}")]

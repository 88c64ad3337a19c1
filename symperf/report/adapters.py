"""Adapters of requests in words: what they take, and how much slower a step is with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scaled import quantity

if TYPE_CHECKING:
    from ..runs.inference_run import InferenceRun


def as_json(run: InferenceRun) -> dict[str, Any] | None:
    """The adapters with their bytes on a device and the slowdown of a mean decode step; None without any."""
    if run.adapters is None:
        return None
    plain: InferenceRun = run.bind(adapters=None)
    return {
        "rank": run.adapters.rank,
        "number": run.adapters.number,
        "targets": list(run.adapters.targets),
        "bytes": _weights(run) - _weights(plain),
        "prefill_slowdown": run.value("prefill") / plain.value("prefill"),
        "decode_slowdown": run.value("time_per_token") / plain.value("time_per_token"),
    }


def _weights(run: InferenceRun) -> float:
    return sum(size for name, size in run.memory_terms().items() if name.startswith("weights"))


def rows(run: InferenceRun) -> list[tuple[str, str]]:
    """The same as a row of facts; none without adapters."""
    found = as_json(run)
    if found is None:
        return []
    names, slots = ", ".join(found["targets"]), quantity(found["bytes"], "B")
    times = f"prefill {found['prefill_slowdown']:.4g}, a step {found['decode_slowdown']:.4g} times as long"
    return [("adapters", f"{found['number']} of rank {found['rank']} on {names}: {slots}"), ("", times)]

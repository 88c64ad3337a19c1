"""The encoders of a training step: what its images and recordings are, and what passing them takes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..plans.encoders import encode
from .scaled import quantity, seconds

if TYPE_CHECKING:
    from ..runs.training_run import Run


def as_json(run: Run) -> dict[str, Any]:
    """Seconds of one micro-batch on the first stage, bytes on a device of it, and tokens of one sequence's images.

    The step's time and memory contain them.
    """
    encoders = run.structure.encoders
    return {
        "part": " and ".join(part.part for part in encoders),
        "tokens": sum(part.tokens for part in encoders),
        "encode_s": _of_micro_batch(run, forward=True),
        "gradients_s": _of_micro_batch(run, forward=False),
        "weight_bytes": run.value("encoders/weights"),
        "activation_bytes": run.value("encoders/activations"),
        "split": all(part.split for part in encoders),
        "sizes": [dataclasses.asdict(item) | dataclasses.asdict(encode(run.model, item)) for item in run.images],
    }


def _of_micro_batch(run: Run, *, forward: bool) -> float:
    """Seconds of the encoders' forward passes, or of all else of them, of one micro-batch."""
    micro_batches = run.batch / (run.plan.dp * (run.plan.micro_batch or 1))
    roots = tuple(f"{part.part}/" for part in run.structure.encoders)
    paths = (term.path for term in run.compiled.terms if term.path.startswith(roots))
    chosen = [path for path in paths if path.endswith("/forward") == forward]
    return sum(run.value(path) * run.value(f"term/{path}/count") for path in chosen) / micro_batches


def rows(run: Run) -> list[tuple[str, str]]:
    """The same for the table of a run's answers."""
    found = as_json(run)
    each = ", ".join(
        " x ".join(str(value) for name, value in dataclasses.asdict(item).items() if (name, value) != ("frames", 1))
        for item in run.images
    )
    what = "sound" if found["part"] == "audio" else "images"
    times = f"encoded in {seconds(found['encode_s'])}, gradients in {seconds(found['gradients_s'])}"
    kept = f"{quantity(found['weight_bytes'], 'B')} of weights, {quantity(found['activation_bytes'], 'B')} kept"
    return [
        (what, f"{each}: {found['tokens']} tokens of each sequence"),
        ("encoder", f"a micro-batch {times}; {kept}"),
    ]

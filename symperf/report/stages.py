"""Memory of each stage of a pipeline, and of the host, as JSON and as a terminal table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.table import Table
from .run_parts import by_class
from .scaled import gibibytes

if TYPE_CHECKING:
    from ..runs.training_run import Run

LISTED_STAGES = 4096
"""Pipelines of more stages than anyone has are told of as a whole only."""
CLASSES = ("weights", "gradients", "optimizer", "activations", "workspace")


def classes(terms: dict[str, float]) -> dict[str, float]:
    """Bytes of a stage by class, and their total."""
    bytes_held = {path: value for path, value in terms.items() if path.split("/")[0] in CLASSES}
    return by_class(bytes_held, CLASSES, terms["total"])


def stages_json(run: Run) -> list[dict[str, Any]]:
    """One object a stage: its number, layers, what its virtual stages hold, micro-batches in flight, bytes by class."""
    held = holds(run)
    return [
        {
            "stage": number,
            "layers": row["layers"],
            "holds": held[number - 1] if held else None,
            "in_flight": row["in_flight"],
            "memory_bytes": classes(row) | {"reserved": row["reserved"]},
            "parts": parts(row),
        }
        for number, row in enumerate(run.stage_memory(), 1)
    ]


def holds(run: Run) -> list[list[str]] | None:
    """What each virtual stage of each device has, in the letters of a layout; None where stages are equal."""
    sizes = run.model.sizes
    return run.plan.stage_holds(sizes["num_layers"], sizes.get("num_multi_token_layers", 0))


def parts(row: dict[str, float]) -> dict[str, float]:
    """What a device of a stage has its memory for, in words of the field; the parts sum to what it must have."""
    held = classes(row)
    return {
        "weights": held["weights"],
        "gradients": held["gradients"],
        "states": held["optimizer"],
        "activations": held["activations"] - row["logits"],
        "logits": row["logits"],
        "buffers": held["workspace"],
        "reserved_extra": row["reserved"] - row["total"],
    }


def fullest_stage(run: Run) -> int:
    """The number of the stage whose device must have most, the first of equals."""
    reserved = [row["reserved"] for row in run.stage_memory()]
    return reserved.index(max(reserved)) + 1


def stages_table(run: Run) -> Table:
    """One row a stage; neighbours that hold the same share one."""
    held = holds(run)
    rows = run.stage_memory()
    names = (name.replace("_", " ") for name in parts(rows[0]))
    table = Table(("stage", *(("holds",) if held else ()), "layers", "in flight", *names, "reserved"))
    start = 0
    for position, row in enumerate(rows):
        following = position + 1
        if following < len(rows) and rows[following] == row and (held is None or held[following] == held[position]):
            continue
        name = str(position + 1) if start == position else f"{start + 1}-{position + 1}"
        sizes = (gibibytes(size) for size in (*parts(row).values(), row["reserved"]))
        letters = [" | ".join(held[position])] if held else []
        table.add_row(name, *letters, f"{row['layers']:.4g}", f"{row['in_flight']:.4g}", *sizes)
        start = position + 1
    return table

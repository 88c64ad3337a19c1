"""FLOPs as a source counts them: what a text of the column `tflops_definition` means, and the count of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen.interpret import floats
from ..codegen.interpret import run as interpreted
from ..common.errors import InputError, quote
from .documents import document_of
from .models import model_of

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun
    from .rows import TableRow

CONVENTIONS = ("model", "hardware", "causal")
"""Without recomputation and with attention in full; with recomputation; without it and with attention by half."""
PHRASES = (
    ("hardware FLOPs", "hardware"),
    ("incl. full recompute", "hardware"),
    ("includes recompute", "hardware"),
    ("recompute forward is counted", "hardware"),
    ("attention causal-halved", "causal"),
    ("causal attention halved", "causal"),
    ("not causal-halved", "model"),
    ("causal attention was not halved", "model"),
    ("no recompute", "model"),
    ("without recompute", "model"),
    ("model FLOPs", "model"),
    ("non-causal", "model"),
)
"""What a text holds -> the convention; the first that fits."""


def convention_of(row: TableRow) -> str:
    """How a row's source counts FLOPs: what the row says, else what its document says, else model FLOPs.

    Raises:
        InputError: the row says something that is not known, and its document says nothing.
    """
    text = row.text("tflops_definition")
    folded = text.casefold()
    told = next((name for phrase, name in PHRASES if phrase.casefold() in folded), "") or document_of(row).flops
    if text and not told:
        raise InputError(f"tflops_definition: found {quote(text)}, expected one that says whether recomputation counts")
    return told or "model"


def counted_flops(run: BaseRun, row: TableRow, convention: str = "") -> float:
    """FLOPs of a step on each device, as the row's source counts them, or by a convention."""
    counted = convention or convention_of(row)
    name = "hardware_flops" if counted == "hardware" else "model_flops"
    sizes = model_of(row).sizes
    inputs = {name: value for name, (value, _) in run.bound.items()} | {"num_layers": float(sizes["num_layers"])}
    program = run.compiled.program
    total = float(interpreted(program, inputs, floats())[program.outputs[name]])
    if counted == "causal":
        pairs = inputs["batch"] * inputs["sequence"] ** 2
        total -= 6 * sizes["num_layers"] * sizes["num_attention_heads"] * sizes["head_dim"] * pairs
    return total / run.value("devices")

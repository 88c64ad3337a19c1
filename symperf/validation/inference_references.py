"""Rows of `reference_inference.csv`: the inference cases of the paper's own validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..plans.plan import Plan
from ..runs.inference_run import InferenceRun
from .case import Case
from .models import model_of
from .rows import Columns
from .systems import system_of
from .tables import source_of

if TYPE_CHECKING:
    from .case import Expressed
    from .rows import TableRow

COLUMNS = Columns(
    required=("model", "system", "tp", "batch", "prompt", "generate", "measured_s"),
    optional=("use", "precision", "source"),
)

STACK = "tensorrt-llm"
"""The page was of NVIDIA's NeMo, whose engines of early 2024 were TensorRT-LLM's."""


def express(row: TableRow) -> list[Expressed]:
    """The case of a row; which software was measured is not published, so that `STACK` stands for it.

    Raises:
        InputError: the row cannot be expressed.
    """
    measured = row.number("measured_s")
    if not measured:
        raise InputError("the row gives no time")

    def run() -> InferenceRun:
        plan = Plan(tp=row.whole("tp") or 1, precision=row.text("precision") or None)
        batch, prompt, generate = (row.whole(name) or 1 for name in ("batch", "prompt", "generate"))
        return InferenceRun(
            model_of(row), system_of(row), plan, batch=batch, prompt=prompt, generate=generate, stack=STACK
        )

    name = f"{row.text('model')}, {row.text('system')}, tp {row.text('tp')}"
    labels = {name: row.text(name) for name in ("model", "system", "tp")}
    return [Case(source_of(row), name, "time_s", measured, run, lambda found: found.value("time"), labels)]

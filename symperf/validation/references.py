"""Rows of `reference_training.csv`: the training cases of the paper's own validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..plans.plan import Plan
from ..runs.training_run import Run
from .case import Case
from .documents import documents
from .models import model_of
from .rows import Columns
from .systems import system_of
from .tables import source_of

if TYPE_CHECKING:
    from .case import Expressed
    from .rows import TableRow

SCRIPTS = {"GPT-310B": {"vpp": 2}, "GPT-530B": {"vpp": 3}, "GPT-1T": {}}
"""Chunks of a stage of the set "narayanan", which is a part of the family SC21: see `documents.toml`."""
SIZES = ("heads", "hidden", "layers", "vocab")
DEGREES = ("dp", "tp", "pp", "vpp", "micro_batch")
COLUMNS = Columns(
    required=("model", "system", "sequence", "batch", "tp", "pp", "dp", "measured_s"),
    optional=(
        *("use", "set", *SIZES, "devices", "micro_batch", "vpp", "recompute", "sequence_parallel"),
        *("paper_predicted_s_probable", "source"),
    ),
)


def express(row: TableRow) -> list[Expressed]:
    """The case of a row; a micro-batch that is not stated is one sequence.

    Raises:
        InputError: the row cannot be expressed.
    """
    measured = row.number("measured_s")
    if not measured:
        raise InputError("the row gives no time")
    recompute = row.text("recompute") or "none"
    with_sequence = row.text("sequence_parallel") == "True"

    def run() -> Run:
        fields: dict[str, Any] = {name: row.whole(name) or 1 for name in DEGREES}
        if row.text("set") == "narayanan":
            fields |= {**documents()["SC21"][0].plan, **SCRIPTS.get(row.text("model"), {})}
        plan = Plan(**fields, recompute=recompute, sequence_parallel=with_sequence)
        batch, sequence = row.whole("batch") or 0, row.whole("sequence") or 0
        return Run(model_of(row), system_of(row), plan, batch=batch, sequence=sequence)

    words = [row.text("model"), f"{row.text('devices')} devices", recompute + (" + SP" if with_sequence else "")]
    name = f"{row.text('set')} {', '.join(words)}"
    labels = {"model": row.text("model"), "set": row.text("set"), "recompute": recompute}
    return [Case(source_of(row), name, "time_s", measured, run, lambda found: found.value("time"), labels)]

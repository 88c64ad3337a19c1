"""How a row was read, field by field, and by which command line its prediction can be had again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..plans.plan import FIELDS
from ..runs.training_run import Run
from . import inference_definitions, tables
from .case import Case, LeftOut, Scored
from .definitions import TrainingFramework, software_of
from .documents import document_of, filled
from .readings import is_reference, reading_of
from .rows import PACKAGED, read
from .runs import stack_of
from .score import cases, predict_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..evaluation.base_run import BaseRun
    from .readings import Reading
    from .rows import TableRow

MEASURED = (
    *("step_time_s", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "tflops_per_device", "mfu_pct"),
    *("value", "measured_s", "unit", "silicon_ttft_ms", "silicon_tpot_ms"),
)
"""Columns of what was measured, which say nothing of the run."""
BESIDE = ("use", "id", "source", "source_locator", "url", "note", "params_b", "hardware", "hfu_pct", "primary_metric")
"""Columns that say nothing of the run either."""
OF_COLUMN = {
    "micro_batch": "micro_batch_seqs",
    "expert_tp": "etp",
    "zero": "sharding",
    "zero_shards": "sharding",
    "recompute_modules": "recompute",
}
"""Fields of the plan -> the columns that say them, where these have another name."""
OPEN = ("micro_batch", "vpp")
"""Fields that a row may leave open: the fastest plan that fits is taken."""
OF_FASTEST = "not said: of the fastest plan that fits"
DEALT = ("uneven_stages", "account_for", "layout")
"""Fields that say how layers are dealt to stages."""


@dataclass(frozen=True)
class Fact:
    """What one thing is taken to be, and who says it."""

    name: str
    value: str
    where: str


@dataclass(frozen=True)
class Explanation:
    """A case of a row, explained.

    Attributes:
        row: as its table has it.
        case: what is compared; None where the row is left out before it becomes one.
        result: the prediction, or why there is none.
        facts: how the row was read.
        run: of the case; None without one.
        reading: how its number is had again; a sentence where it is not.
    """

    row: TableRow
    case: Case | None
    result: Scored | LeftOut
    facts: tuple[Fact, ...]
    run: BaseRun | None = None
    reading: Reading | str = ""


def explain(rows: Iterable[TableRow], name: str) -> list[Explanation]:
    """Every case of the rows of a name: an id, in any case, or TABLE:LINE.

    Raises:
        InputError: no row has it, with the nearest.
    """
    every = list(rows)
    wanted = name.strip().casefold()
    found = [row for row in every if wanted and wanted in (row.text("id").casefold(), place_of(row))]
    if not found:
        known = [row.text("id") or place_of(row) for row in every]
        near = nearest(name[:60], known) or f", expected an id such as {known[0]}, or TABLE:LINE such as training:2"
        raise InputError(f"explain: found {quote(name)}, which no row has{near}")
    return [each for row in found for each in explain_row(row)]


def place_of(row: TableRow) -> str:
    """Where a row stands, as a name.

    >>> from symperf.validation.rows import TableRow
    >>> place_of(TableRow("training.csv", 2, {}))
    'training:2'
    """
    return f"{row.table.removesuffix('.csv')}:{row.line}"


def explain_row(row: TableRow) -> Iterator[Explanation]:
    """The cases of a row, explained."""
    for item in cases(row):
        if isinstance(item, LeftOut):
            yield Explanation(row, None, item, tuple(row_facts(row)))
            continue
        result = predict_case(item)
        try:
            run = item.run()
        except InputError:
            yield Explanation(row, item, result, tuple(row_facts(row)))
            continue
        reading: Reading | str
        try:
            reading = reading_of(filled(row), item, run)
        except InputError as error:
            reading = str(error)
        facts = (*row_facts(row), *run_facts(row, run))
        yield Explanation(row, item, result, facts, run, reading)


def row_facts(row: TableRow) -> Iterator[Fact]:
    """What a row says, and what its document and its software say besides."""
    said = document_of(row)
    for name, cell in row.cells.items():
        if cell and name not in (*MEASURED, *BESIDE) and name not in said.instead:
            yield Fact(row.names.get(name, name), cell, "the row")
    document = f"its document: {said.source}"
    for name, cell in said.instead.items():
        yield Fact(name, cell, f"{document} (the row: {row.text(name) or 'nothing'})")
    for name, cell in said.columns.items():
        if not row.text(name):
            yield Fact(name, cell, document)
    told: dict[str, Any] = {**said.values, **said.network, "flops": said.flops, "batch_tokens": said.batch_tokens}
    for name, value in told.items():
        if value:
            yield Fact(name, str(value), document)


def run_facts(row: TableRow, run: BaseRun) -> Iterator[Fact]:
    """What the run of a row has that its columns do not say by themselves: the plan, the profile, values of symbols."""
    yield Fact("model", f"{run.model.name} ({run.model.source})", "the name, or the dimensions, of the row")
    yield Fact("system", f"{run.system.name} ({run.system.title})", "the name in the row")
    said = document_of(row)
    software = software_of(filled(row).text("framework")) if isinstance(run, Run) else TrainingFramework("")
    own = f"its software: {software.why}"
    if isinstance(run, Run) and not is_reference(row):
        stack = str(run.question["stack"] or stack_of(filled(row)))
        where = f"its document: {said.source}" if said.stack else own
        yield Fact("kernels", stack or "those of the system's file", where if stack else "no profile is declared")
    elif not isinstance(run, Run):
        yield Fact("software", str(run.question["stack"]), _serving_software(filled(row)))
    for name in FIELDS:
        value = getattr(run.plan, name)
        where = _who_says(name, value, row, run, software)
        if value != FIELDS[name].default or where.startswith(("its", "not")):
            yield Fact(name, str(value), where)
    for name, value in run.given.items():
        if name not in said.values:
            yield Fact(name, str(value), own if _says(software, name, value) else "what was read from the row")


def _who_says(name: str, value: Any, row: TableRow, run: BaseRun, software: TrainingFramework) -> str:
    """Who says the value of a field of the plan."""
    said, column = document_of(row), OF_COLUMN.get(name, name)
    if name == "dp" and not row.text(column):
        column = "num_devices"
    if (name in said.plan and said.plan[name] == value) or column in said.instead:
        return f"its document: {said.source}"
    if row.text(column):
        return f"the row: {column} {row.text(column)}"
    if column in said.columns:
        return f"its document: {said.source}"
    if value == FIELDS[name].default and not _says(software, name, value):
        left_open = name in OPEN and isinstance(run, Run) and not is_reference(row)
        return OF_FASTEST if left_open and (name != "vpp" or run.plan.pp > 1) else "the default"
    if name in DEALT:
        return "layers that stages cannot share evenly"
    if _says(software, name, value) or (name == "sequence_parallel" and software.sequence_parallel):
        return f"its software: {software.why}"
    return OF_FASTEST if name in OPEN else "what was read from the row"


def _says(software: TrainingFramework, name: str, value: Any) -> bool:
    """Whether a software's entry says a value, in any of its tables or as an attribute of that name."""
    tables = (getattr(software, each.name) for each in fields(software))
    inside = any(isinstance(table, Mapping) and name in table and table[name] == value for table in tables)
    return inside or bool(value and getattr(software, name, None) == value)


def _serving_software(row: TableRow) -> str:
    """Where it is read which profile stands for a row's software."""
    if row.table == "serving.csv":
        from .serving import asked_of

        return f"the row: backend {row.text('backend')}; its options: {asked_of(row).script.why or 'the defaults'}"
    if row.table == "reference_inference.csv":
        return "not published"
    found = inference_definitions.software_of(row)
    return f"{'the row' if row.text('framework') else 'the row names none'}: {found.why}"


def every_row() -> Iterator[TableRow]:
    """The rows of all published tables."""
    for name in tables.TABLES:
        yield from read(PACKAGED / name, tables.columns_of(name))

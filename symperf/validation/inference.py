"""Rows of `inference.csv`: latencies and throughputs of a batch, or of a server with requests in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..evaluation.causes import FIRST_TOKEN, TOKEN
from ..plans.plan import Plan
from ..runs.inference_run import InferenceRun
from .case import Case
from .documents import document_of
from .inference_definitions import METRICS, SPEEDS, UNITS, micro_batch_of, software_of
from .inference_formats import formats_of
from .models import model_of
from .rows import Columns
from .systems import system_of
from .tables import source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..evaluation.base_run import BaseRun
    from ..serve.serving import Serving
    from ..systems.system import System
    from .case import Expressed
    from .inference_definitions import ServingFramework
    from .rows import TableRow

DESCRIPTION = ("params_b", "layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "hardware")
DEGREES = ("num_devices", "tp", "pp", "dp", "ep")
WORK = ("batch_size", "concurrency", "requests", "input_len_tokens", "output_len_tokens", "length_spread")
COLUMNS = Columns(
    required=("model", "hw_key", "metric", "value", "unit"),
    optional=(
        *("use", "id", "family", "precision", "weight_dtype", "kv_dtype", "phase", "framework"),
        *(*DESCRIPTION, *DEGREES, *WORK, "source", "source_locator", "url", "note"),
    ),
)
OUTPUTS = {"prefill_s": "prefill", "time_per_token_s": "time_per_token", "time_s": "time"}
"""Keys of `symperf infer --json` -> names of a run's values, where they differ."""
LOOP_KEYS = {
    "prefill_s": "ttft_s",
    "time_per_token_s": "tpot_s",
    "time_s": "e2e_s",
    "tokens_per_s": "output_tokens_per_s",
    "tokens_per_s_per_device": "output_tokens_per_s_per_device",
}
"""The same keys -> those of `symperf serve --json`, of requests in flight."""


@dataclass(frozen=True)
class RowWork:
    """What a row's software was asked: sequences together or in flight, and their lengths; 0 where it is not said.

    Attributes:
        batch: sequences that begin together.
        requests: in flight.
        prompt: tokens of one, or their mean.
        generate: tokens generated for one, or their mean.
        spread: part of both means by which lengths in flight differ.
    """

    batch: int
    requests: int
    prompt: int
    generate: int
    spread: float


def express(row: TableRow) -> list[Expressed]:
    """The case of a row.

    Raises:
        InputError: the row cannot be expressed, or states nothing that is predicted.
    """
    if left_out := document_of(row).left_out:
        raise InputError(left_out)
    doubt(row)
    software = software_of(row)
    work = work_of(row)
    quantity, measured = measurement(row, work)
    labels = {name: row.text(name) for name in ("model", "hw_key", "precision", "framework", "tp", "batch_size")}
    labels |= {"lengths": f"{work.prompt}+{work.generate}"}
    run, read = _serve(row, software, work, quantity) if work.requests else _batch(row, software, work, quantity)

    def implied(found: BaseRun) -> float:
        return found.value("prefill_flops") / (measured * found.value("devices") * found.bound["matrix_rate"][0])

    doubted = implied if quantity in ("prefill_s", "time_s") and not work.requests else None
    kind = "" if not work.requests else FIRST_TOKEN if quantity == "prefill_s" else TOKEN
    return [Case(source_of(row), describe_row(row, work), quantity, measured, run, read, labels, doubted, kind)]


def doubt(row: TableRow) -> None:
    """Refuse a row of which its own note says that the number, or what it is of, is doubtful.

    Raises:
        InputError: it is.
    """
    note = row.text("note").casefold()
    if "outlier" in note:
        raise InputError("its note calls it an outlier of its source")
    if "unit header says total" in note and (row.whole("tp") or 1) > 1:
        raise InputError("its page gives totals in one table and rates of a device in the other, and tp is above 1")


def describe_row(row: TableRow, work: RowWork) -> str:
    """A row's id and a short text of what it is."""
    degrees = " ".join(f"{name}{row.text(name)}" for name in DEGREES[1:] if row.text(name) not in ("", "1"))
    together = f"{work.requests} in flight" if work.requests else f"batch {work.batch}"
    lengths = f"{together}, {work.prompt} in, {work.generate} out"
    formats = row.text("weight_dtype") or row.text("precision")
    words = (row.text("model"), row.text("hw_key"), degrees, formats, lengths, row.text("metric"))
    return f"{row.id}: {', '.join(word for word in words if word)}"


def measurement(row: TableRow, work: RowWork) -> tuple[str, float]:
    """What a row measured: its JSON key and the number in SI units.

    Raises:
        InputError: it measured nothing that is predicted, in a unit that is not known.
    """
    metric, unit = row.text("metric"), row.text("unit")
    if metric not in METRICS:
        raise InputError(f"the metric {quote(metric)} is not predicted")
    if unit not in UNITS:
        raise InputError(f"the unit {quote(unit)} is not known, expected {', '.join(UNITS)}")
    value = row.number("value")
    if not value:
        raise InputError("the row gives no number")
    quantity = METRICS[metric]
    if metric in SPEEDS:
        return quantity, (work.prompt if quantity == "prefill_s" else 1) / value
    if quantity.startswith("tokens_per_s") != unit.startswith("tokens"):
        raise InputError(f"the metric {quote(metric)} is not in {unit}")
    return quantity, value * UNITS[unit]


def work_of(row: TableRow) -> RowWork:
    """What a row's software was asked.

    A speed of generation from an empty context has a prompt of one token.

    Raises:
        InputError: the row does not say it.
    """
    prompt, generate = row.whole("input_len_tokens"), row.number("output_len_tokens")
    if row.text("metric") == "generation_speed":
        prompt = prompt or 1
    if prompt is None:
        raise InputError("the length of the prompts is not said")
    requests, batch = row.whole("concurrency") or 0, row.whole("batch_size") or 0
    if not (requests or batch):
        raise InputError("neither the batch nor the requests in flight are said")
    spread = row.number("length_spread") or 0.0
    if spread >= 1:
        raise InputError(f"length_spread: found {spread:g}, expected a part of the mean, from 0 to below 1")
    if spread and not requests:
        raise InputError("length_spread: sequences of one batch are predicted with equal lengths alone")
    return RowWork(batch, requests, prompt, int(generate or 0), spread)


def plan_of(row: TableRow, precision: str | None, micro_batch: int | None = None) -> Plan:
    """How a row's model is laid out."""
    degrees: dict[str, Any] = {name: row.whole(name) or 1 for name in ("tp", "pp", "dp", "ep")}
    return Plan(**degrees, precision=precision, micro_batch=micro_batch)


def run_of(row: TableRow, software: ServingFramework, work: RowWork, system: System | None = None) -> InferenceRun:
    """The run of a row's static batch, on the system that it names or on a given one.

    A prompt longer than what passes the model at once is as many sequences of that length, one after another: their
    attention to what came before is left out.

    Raises:
        InputError: the row cannot be expressed.
    """
    system = system or system_of(row, document_of(row).network)
    formats = formats_of(row, system)
    values = dict(formats.values)
    batch, prompt = work.batch, work.prompt
    micro_batch = micro_batch_of(software, batch, prompt, row.whole("pp") or 1)
    prompt = max(1, round(software.tokens.get((batch, prompt), batch * prompt) / batch))
    if software.prompt_batch and prompt > software.prompt_batch and not work.generate:
        parts = -(-prompt // software.prompt_batch)
        batch, prompt, micro_batch = batch * parts, -(-prompt // parts), batch
    if encodes(row):
        values["position_rows"] = prompt
    return InferenceRun(
        model_of(row),
        system,
        plan_of(row, formats.precision, micro_batch),
        batch=batch,
        prompt=prompt,
        generate=max(work.generate, 1),
        stack=software.stack,
        kv_precision=formats.kv_precision,
        values=values,
    )


def encodes(row: TableRow) -> bool:
    """Whether a row is of the layers of an encoder alone, which read hidden states: no table limits their number."""
    return row.text("phase") == "encoder_forward"


def _batch(
    row: TableRow, software: ServingFramework, work: RowWork, quantity: str
) -> tuple[Callable[[], BaseRun], Callable[[BaseRun], float]]:
    def run() -> BaseRun:
        found = run_of(row, software, work)
        if software.in_turns and not found.fits:
            raise InputError("its sequences do not fit together: the software serves them in turns")
        return found

    if encodes(row):
        return run, layers_time
    return run, lambda found: found.value(OUTPUTS.get(quantity, quantity))


def layers_time(run: BaseRun) -> float:
    """Seconds of a pass through the layers alone, between the embedding and the head."""
    return sum(term.time_s for term in run.table() if not set(term.name.split("/")) & {"embedding", "head"})


def _serve(
    row: TableRow, software: ServingFramework, work: RowWork, quantity: str
) -> tuple[Callable[[], BaseRun], Callable[[BaseRun], float]]:
    made: list[Serving] = []

    def run() -> BaseRun:
        made.append(serving_of(row, software, work))
        return made[-1].run

    def read(_: BaseRun) -> float:
        found = made[-1].loop
        if found is None:
            raise InputError("the model does not fit the memory of its devices")
        value: float | None = getattr(found[0], LOOP_KEYS[quantity])
        if value is None:
            raise InputError("the server generates nothing behind the first token")
        return value

    return run, read


def serving_of(row: TableRow, software: ServingFramework, work: RowWork) -> Serving:
    """The server of a row.

    Raises:
        InputError: the row cannot be expressed.
    """
    from ..serve.request import ServingRequest
    from ..serve.serving import Serving
    from ..serve.workload import Workload

    workload = Workload(work.requests, row.whole("requests"), prompt_spread=work.spread, generate_spread=work.spread)
    system = system_of(row, document_of(row).network)
    formats = formats_of(row, system)
    return Serving(
        model_of(row),
        system,
        plan_of(row, formats.precision),
        ServingRequest(work.prompt, max(work.generate, 1), chunk=software.chunk or None, workload=workload),
        stack=software.stack,
        kv_precision=formats.kv_precision,
        values=dict(formats.values),
    )

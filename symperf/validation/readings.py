"""How the number of a row is read from what command lines print under `--json`: the commands, and what to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..runs.inference_run import InferenceRun
from ..runs.training_run import Run
from . import memory, training
from .commands import Command, inference_command, inference_words, set_words, training_command
from .flop_counts import convention_of, counted_flops
from .inference import LOOP_KEYS, encodes
from .inference_definitions import software_of
from .layout import layout_of
from .models import model_of
from .runs import stack_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..evaluation.base_run import BaseRun
    from .case import Case
    from .rows import TableRow

    Answers = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Reading:
    """How a number is read.

    Attributes:
        commands: whose answers are read.
        words: how, in the keys of `--json`.
        read: the number, of the objects that the commands print.
    """

    commands: tuple[Command, ...]
    words: str
    read: Callable[[Answers], float]


def reading_of(row: TableRow, case: Case, run: BaseRun) -> Reading:
    """How the prediction of a case is read from command lines.

    Raises:
        NoCommandError: no command line gives it.
    """
    if row.table == "serving.csv":
        from .serving_command import serving_reading

        return serving_reading(row, case)
    if isinstance(run, Run):
        return _training(row, case, run)
    assert isinstance(run, InferenceRun)
    if row.table == "inference.csv" and row.whole("concurrency"):
        return _in_flight(row, case, run)
    command = inference_command(run, _names(row), _systems(row))
    if case.quantity == "memory_bytes":
        return _key((command,), "memory_bytes", "total")
    if encodes(row):
        return Reading((command,), "the sum of breakdown[].time_s but of embedding and head", _layers)
    return _key((command,), case.quantity)


def _names(row: TableRow) -> list[str]:
    """What the model of a row may be called."""
    return [name for name in (row.text("model"), row.text("model_path")) if name]


def _systems(row: TableRow) -> list[str]:
    return [name for name in (row.text("hw_key"), row.text("system")) if name]


def _key(commands: tuple[Command, ...], *path: str) -> Reading:
    """A number that stands in the answer."""
    return Reading(commands, ".".join(path), lambda answers: _at(answers[0], path))


def _at(answer: Mapping[str, Any], path: Sequence[str]) -> float:
    found: Any = answer
    for name in path:
        found = found[name]
    return float(found)


def _mean(
    commands: tuple[Command, ...], words: str, read: Callable[[Mapping[str, Any]], float], share: float = 0.0
) -> Reading:
    """A number of one answer, or the mean of those of two, of which the second weighs `share`."""
    if len(commands) == 1:
        return Reading(commands, words, lambda answers: read(answers[0]))
    told = f"the mean of {words} of both" if share == 0.5 else f"{1 - share!r} of {words} and {share!r} of the second"
    return Reading(commands, told, lambda answers: (1 - share) * read(answers[0]) + share * read(answers[1]))


def _layers(answers: Answers) -> float:
    terms = answers[0]["breakdown"]
    return float(sum(term["time_s"] for term in terms if not set(term["name"].split("/")) & {"embedding", "head"}))


# --- training


def _training(row: TableRow, case: Case, run: Run) -> Reading:
    def command(of: Run) -> Command:
        return training_command(of, _names(row), _systems(row), "" if is_reference(row) else stack_of(row))

    layout = None if is_reference(row) else layout_of(row, model_of(row), memory_only=True)
    runs = (run, run.bind(**layout.rest)) if layout and layout.rest else (run,)
    share = layout.share if layout else 0.0
    commands = tuple(map(command, runs))
    if case.quantity == "layer_time_s":
        return _layer(row, run, commands)
    if case.quantity in ("memory_bytes", "share_of_activations"):
        return _memory(row, run, commands, command, share)
    time = _mean(commands, "time_s", lambda answer: float(answer["time_s"]), share)
    if case.quantity == "time_s" or is_reference(row):
        return time
    amounts = {
        "tokens_per_s": ("tokens of a step", run.value("tokens")),
        "tokens_per_s_per_device": ("tokens of a step on a device", run.value("tokens") / run.value("devices")),
        "samples_per_s": ("sequences of a step", float(run.batch)),
    }
    if case.quantity in amounts:
        told, amount = amounts[case.quantity]
    else:
        counted = convention_of(row)
        told, amount = f"{counted} FLOPs of a step on a device", counted_flops(run, row, counted)
        if case.quantity == "tflops_per_device":
            told, amount = f"{told}, in units of 1e12", amount / 1e12
        else:
            told, amount = f"{told} over the peak rate", amount / run.bound["matrix_rate"][0]
    return Reading(commands, f"{amount!r} ({told}) / {time.words}", lambda answers: amount / time.read(answers))


def is_reference(row: TableRow) -> bool:
    """Whether a row is of the paper's own cases, which say all that is needed."""
    return row.table.startswith("reference_")


def _layer(row: TableRow, run: Run, commands: tuple[Command, ...]) -> Reading:
    part, layers = training.PASSES[row.text("primary_metric")], run.model.sizes["num_layers"]
    words = ("of layer/*/forward", "of layer/* but of layer/*/forward", "of layer/*")[part]

    def read(answers: Answers) -> float:
        terms = [term for term in answers[0]["breakdown"] if term["name"].startswith("layer/")]
        forward = sum(term["time_s"] for term in terms if term["name"].endswith("/forward")) / layers
        both = sum(term["time_s"] for term in terms) / layers
        return float((forward, both - forward, both)[part])

    return Reading(commands, f"the sum of breakdown[].time_s {words} / {layers} layers", read)


def _memory(
    row: TableRow, run: Run, commands: tuple[Command, ...], command: Callable[[Run], Command], share: float
) -> Reading:
    classes = next(classes for part, classes in memory.METRICS if part in row.text("metric"))
    if classes == memory.SAVED:
        keys: list[tuple[str, ...]] = [("saved_activation_bytes",)]
    else:
        keys = [("memory_bytes", name) for name in classes or ("total",)]
    keys += [] if classes else [("reserved_bytes", name) for name in memory.BESIDE[memory.held_of(row)]]
    words = " + ".join(".".join(key) for key in keys)

    def of(asked: tuple[Command, ...]) -> Reading:
        return _mean(asked, words, lambda answer: sum(_at(answer, key) for key in keys), share)

    own = of(commands)
    if memory.RELATIVE not in row.text("metric"):
        return own
    plain = of((command(run.bind(recompute="none", sequence_parallel=False)),))
    return Reading(
        (*own.commands, *plain.commands),
        f"{own.words} / {plain.words} of the last",
        lambda answers: own.read(answers[:-1]) / plain.read(answers[-1:]),
    )


# --- requests in flight


def _in_flight(row: TableRow, case: Case, run: InferenceRun) -> Reading:
    words, files, values = inference_words(run, _names(row), _systems(row))
    work = [
        "--prompt",
        row.text("input_len_tokens"),
        "--generate",
        str(max(int(row.number("output_len_tokens") or 0), 1)),
    ]
    for name in ("concurrency", "requests"):
        work += [f"--{name}", row.text(name)] if row.text(name) else []
    for name in ("--prompt-spread", "--generate-spread"):
        work += [name, row.text("length_spread")] if row.text("length_spread") else []
    chunk = software_of(row).chunk
    work += ["--chunk", str(chunk)] if chunk else []
    command = Command(("symperf", "serve", *words[:3], *work, *words[3:], *set_words(values)), files)
    return _key((command,), LOOP_KEYS[case.quantity])

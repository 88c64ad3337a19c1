"""A study: a sweep described by a TOML file.

    model = "gpt3-175b"             # a catalogue name or a path; may be an axis instead
    system = "a100-80gb-sxm"
    batch = 64
    sequence = 2048
    outputs = ["time", "mfu"]       # default: time, memory, mfu
    where = ["fits", "tp * pp <= 64"]

    [plan]                          # fields that are fixed
    recompute = "selective"

    [set]                           # symbols that are fixed
    memory_bandwidth = "2 TB/s"

    [axes]
    tp = [1, 2, 4, 8]
    pp = { from = 1, to = 64, powers_of = 2 }
    scale_out_bandwidth = { from = "10 GB/s", to = "100 GB/s", count = 100, scale = "log" }
    shape = { zip = { micro_batch = [1, 2], vpp = [2, 1] } }

    [derived]
    dp = "512 / (tp * pp)"

Expressions are in the grammar of `symperf.plans.grammar`; nothing of a study is evaluated as code.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.errors import InputError, nearest, quote
from ..common.files import read_toml
from ..plans.plan import FIELDS, positive_integer
from .axes import CHOICES, NUMERIC, choice, one
from .cells import Base
from .sweep import DEFAULT_OUTPUTS, Sweep

MAX_BYTES = 10_000_000
_TABLES = ("plan", "set", "axes", "derived")
WORK: tuple[str, ...] = ("batch", "sequence")
KEYS = ("model", "system", "batch", "sequence", "outputs", "where", *_TABLES)


@dataclass(frozen=True)
class Study:
    """A sweep and the file that describes it."""

    path: Path
    sweep: Sweep


def load(path: str | Path) -> Study:
    """Read a study.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    path = Path(path)
    table = read_toml(path, str(path), "a study (.toml)", MAX_BYTES)
    try:
        return Study(path, _sweep(table, path.parent))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _sweep(table: dict[str, Any], folder: Path) -> Sweep:
    for key in table:
        if key not in KEYS:
            raise InputError(f"unknown key {quote(key)}{nearest(key, KEYS)}")
    parts: dict[str, dict[str, Any]] = {}
    for key in _TABLES:
        parts[key] = table.get(key, {})
        if not isinstance(parts[key], dict):
            raise InputError(f"{key}: found {quote(parts[key])}, expected a table")
    if not parts["axes"]:
        raise InputError("axes: there are none, expected one or more")
    for name in parts["plan"]:
        if name not in FIELDS:
            raise InputError(f"plan: unknown field {quote(name)}{nearest(name, FIELDS)}")
    for name, value in parts["axes"].items():
        if not isinstance(value, list | dict):
            raise InputError(f"axis {name}: found {quote(value)}, expected a list or a range")
    for name, value in parts["derived"].items():
        if not isinstance(value, str):
            raise InputError(f"derived {name}: found {quote(value)}, expected an expression as text")
    values = {}
    for name, value in parts["set"].items():
        if name in FIELDS or name in ("batch", "sequence", *CHOICES) or name not in NUMERIC:
            where = " (it belongs under [plan])" if name in FIELDS else ""
            where = where or (" (it belongs above all tables)" if name in ("batch", "sequence") else "")
            hint = where or nearest(name, [n for n in NUMERIC if n not in FIELDS])
            raise InputError(f"set: unknown symbol {quote(name)}{hint}")
        values[name] = one(name, value, f"set: {name}")
    work: dict[str, int] = {name: positive_integer(name, table[name]) for name in WORK if name in table}
    fixed = {name: choice(name, _local(table[name], folder), name) for name in ("model", "system") if name in table}
    fields = {name: choice(name, value, f"plan: {name}") for name, value in parts["plan"].items()}
    base = Base(fixed.get("model"), fixed.get("system"), fields, work, values)
    _refuse_repeats(parts, table)
    axes = {name: _locate(name, value, folder) for name, value in parts["axes"].items()}
    where, outputs = table.get("where", []), table.get("outputs", list(DEFAULT_OUTPUTS))
    if not isinstance(where, list | dict):
        raise InputError(f"where: found {quote(where)}, expected a list of conditions, or a table of them by name")
    if not isinstance(outputs, list):
        raise InputError(f"outputs: found {quote(outputs)}, expected a list of names")
    return Sweep(base, axes, derived=parts["derived"], where=where, outputs=outputs)


def _refuse_repeats(parts: dict[str, dict[str, Any]], table: dict[str, Any]) -> None:
    fixed = {**dict.fromkeys(parts["plan"], "[plan]"), **dict.fromkeys(parts["set"], "[set]")}
    fixed |= {name: "the top" for name in ("model", "system", "batch", "sequence") if name in table}
    for kind in ("axes", "derived"):
        for name, value in parts[kind].items():
            inner = value.get("zip") if isinstance(value, dict) else None
            for member in inner if isinstance(inner, dict) else (name,):
                if member in fixed:
                    raise InputError(f"{kind}: {member} is fixed in {fixed[member]} too, expected it once")


def _locate(name: str, value: Any, folder: Path) -> Any:
    """An axis whose files of models and systems are found beside the study."""
    if name in ("model", "system") and isinstance(value, list):
        return [_local(entry, folder) for entry in value]
    if isinstance(value, dict) and isinstance(value.get("zip"), dict):
        return {**value, "zip": {n: _locate(n, v, folder) for n, v in value["zip"].items()}}
    return value


def _local(entry: Any, folder: Path) -> Any:
    if isinstance(entry, str) and ("/" in entry or entry.endswith((".toml", ".json"))):
        return str(folder / entry)
    return entry

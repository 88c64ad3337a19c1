"""What names mean, for the attributes of tables and files: unit, glyph and sentence; from the cache, or with SymPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from .artefacts import load_or_make

_UNITS = {
    "time": "s",
    "mfu": "1",
    "hfu": "1",
    "mfu_executed": "1",
    "prefill_mfu": "1",
    "prefill_mfu_executed": "1",
    "tokens": "1",
    "devices": "1",
    "parameters": "1",
    "model_flops": "FLOP",
    "hardware_flops": "FLOP",
    "flops_per_s_per_device": "FLOP/s",
    "tflops_per_device": "TFLOP/s",
}
_ENDS = {"flops": "FLOP", "bytes": "B", "message": "B", "count": "1"}


@dataclass(frozen=True)
class Meaning:
    """What a symbol is; `resource` is empty unless it is a rate or a latency of one."""

    unit: str
    glyph: str
    sentence: str
    resource: str = ""


@cache
def vocabulary() -> dict[str, Meaning]:
    """The meaning of every symbol of the vocabulary, by name."""
    return load_or_make("vocabulary", "", _read, _to_json, _from_json)


def meaning_of(name: str) -> Meaning | None:
    """The meaning of a symbol; of a numbered size, such as `head_dim_2`, from that of the size."""
    found = vocabulary().get(name)
    base, _, number = name.rpartition("_")
    if found is not None or not number.isdecimal() or base not in vocabulary():
        return found
    from ..formulas.language.symbols import SYMBOLS

    entry = SYMBOLS.find(name)
    return None if entry is None else Meaning(str(entry.dimension), entry.glyph, entry.sentence)


def resource_of(name: str) -> str:
    """The resource whose rate or latency a symbol is; empty where it is none, as no numbered size is."""
    found = vocabulary().get(name)
    return "" if found is None else found.resource


def attributes(name: str) -> dict[str, str]:
    """The attributes of a coordinate or a variable: `units`, and of a symbol `glyph` and `long_name`."""
    found = meaning_of(name)
    if found is not None:
        return {"units": found.unit, "glyph": found.glyph, "long_name": found.sentence}
    return {"units": unit(name), "long_name": name.replace("_", " ")} if unit(name) else {}


def unit(name: str) -> str:
    """The SI unit of an output, or nothing where it is not known."""
    name = {"time_s": "time", "memory_bytes": "memory", "capacity_bytes": "memory"}.get(name, name)
    if name in _UNITS:
        return _UNITS[name]
    if name.startswith("tokens_per_s"):
        return "1/s"
    if name.startswith("share of "):
        return "1"
    if name.startswith("term/"):
        return _ENDS.get(name.rpartition("/")[2], "")
    if name in ("memory", "reserved", "saved_activations") or name.startswith(("memory/", "beside/", "bytes/")):
        return "B"
    if name.startswith("flops/"):
        return "FLOP"
    return "s" if "/" in name else ""


def _read() -> dict[str, Meaning]:
    from ..formulas.language.symbols import SYMBOLS

    entries = {name: entry for name, entry in SYMBOLS.items() if entry.group not in ("formal", "unit")}
    return {n: Meaning(str(e.dimension), e.glyph, e.sentence, e.resource or "") for n, e in entries.items()}


def _to_json(found: dict[str, Meaning]) -> dict[str, Any]:
    return {name: [m.unit, m.glyph, m.sentence, m.resource] for name, m in found.items()}


def _from_json(data: dict[str, Any]) -> dict[str, Meaning]:
    return {name: Meaning(*map(str, parts)) for name, parts in data.items()}

"""The vocabulary in groups, as the chapter on notation shows it: by where the value of a symbol comes from."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..formulas.language import symbols as vocabulary_package
from ..formulas.language.symbols import SYMBOLS
from .entry import symbol_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..formulas.language.symbols import Entry
    from .entry import SymbolRow

NETWORK = ("scale_up", "scale_out", "host")
"""Resources and beginnings of names of what connects devices."""


@dataclass(frozen=True)
class Group:
    """Symbols whose values come from one place.

    Attributes:
        name: in anchors.
        title: for people.
        text: where the values come from.
        rows: the symbols, in the vocabulary's order.
    """

    name: str
    title: str
    text: str
    rows: tuple[SymbolRow, ...]


def _formal(*modules: str) -> Callable[[Entry], bool]:
    return lambda entry: entry.group == "formal" and module_of(entry.name) in modules


def _network(entry: Entry) -> bool:
    return entry.resource in NETWORK or entry.name.startswith(NETWORK)


_REPLACED = "Parameters of formulas, which a prediction replaces by what it is composed of."
_KINDS: tuple[tuple[str, str, str, Callable[[Entry], bool]], ...] = (
    (
        "model",
        "Model",
        "Sizes of a model, read from its `config.json`; `symperf inspect` prints them.",
        lambda entry: entry.group == "model",
    ),
    (
        "work",
        "Work",
        "What is asked of a run: `--batch`, `--sequence`, `--prompt`, `--generate`, `--micro-batch`, a load.",
        lambda entry: entry.group == "work",
    ),
    (
        "plan",
        "Plan",
        "How the work is laid out: fields of `Plan`, with flags of the same names, `--tp` and so on.",
        lambda entry: entry.group == "plan",
    ),
    (
        "format",
        "Number formats",
        "Bytes of elements, which follow from `--precision`, the optimizer and the serving software.",
        lambda entry: entry.group == "format",
    ),
    (
        "device",
        "Device",
        "Keys of a system's TOML file: data sheets.",
        lambda entry: (
            entry.group == "device" and not _network(entry) and module_of(entry.name) not in ("energy", "cost")
        ),
    ),
    (
        "network",
        "Network and host",
        "Keys of a system's TOML file: links between devices, and to their hosts.",
        lambda entry: entry.group == "device" and _network(entry) and module_of(entry.name) != "energy",
    ),
    (
        "bills",
        "Energy and prices of a device",
        "Keys of a system's TOML file, or of the catalogue of prices.",
        lambda entry: entry.group == "device" and module_of(entry.name) in ("energy", "cost"),
    ),
    (
        "efficiency",
        "Efficiencies, latencies and sizes that software chooses",
        "Keys of a system's TOML file or of a stack's, with their sources and spreads; `symperf calibrate` fits them.",
        lambda entry: entry.group == "efficiency",
    ),
    (
        "formal",
        "Parameters of kernels, collectives and pipelines",
        _REPLACED,
        _formal(
            "formal",
            "model",
            "state",
            "attention",
            "documents",
            "selection",
            "collectives",
            "products",
            "experts",
            "scans",
        ),
    ),
    ("formal-inference", "Parameters of generation and serving", _REPLACED, _formal("inference", "serving", "room")),
    ("formal-chip", "Parameters of chips, energy and cost", _REPLACED, _formal("chip", "energy", "cost")),
)
"""Name, title, text and what belongs to it, of each group."""


def groups(names: Iterable[str] | None = None) -> list[Group]:
    """The vocabulary by groups, all of it or some symbols; without the unit of work, which is never printed."""
    wanted = set(SYMBOLS if names is None else names)
    found = []
    for name, title, text, belongs in _KINDS:
        rows = tuple(symbol_row(key) for key, entry in SYMBOLS.items() if key in wanted and belongs(entry))
        if rows:
            found.append(Group(name, title, text, rows))
    return found


@functools.cache
def _modules() -> dict[str, str]:
    package = vocabulary_package.__name__
    found = {}
    for info in pkgutil.iter_modules(vocabulary_package.__path__):
        module = importlib.import_module(f"{package}.{info.name}")
        found.update({name: info.name for name, value in vars(module).items() if name in SYMBOLS and value})
    return found


def module_of(name: str) -> str:
    """The module of the vocabulary that adds a symbol.

    >>> module_of("tp"), module_of("num_attention_dense_layers")
    ('plan', 'model')
    """
    return _modules().get(name, SYMBOLS[name].group)

"""What the book says of one formula and of one symbol, in no markup yet; and the formulas by page."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from ..formulas.language.symbols import SYMBOLS, strip_units
from ..formulas.registry import load
from .proof import Claim, claims, undecided_symbols
from .prose import paragraphs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..formulas.language.dimension import Dimension
    from ..formulas.language.formula import Formula

TITLES = {
    "roofline": "Roofline",
    "matmul": "Matrix products",
    "tiles": "Tiles of matrix products",
    "thin_matmul": "Thin matrix products",
    "low_precision": "Low precision",
    "attention": "Attention",
    "windows": "Windows of attention",
    "latent_attention": "Latent attention",
    "linear_attention": "Linear attention",
    "ssm": "State-space models",
    "scan": "Scans",
    "convolution": "Convolution",
    "moe": "Mixtures of experts",
    "expert_formats": "Formats of what travels to experts",
    "elementwise": "Element-wise kernels",
    "embedding": "Embedding and loss",
    "optimizers": "Optimizers",
    "tiers": "Tiers of the network",
    "send": "Send and receive",
    "broadcast": "Broadcast",
    "gather": "All-gather and reduce-scatter",
    "all_reduce": "All-reduce",
    "pipelined": "Pipelined collectives",
    "all_to_all": "All-to-all",
    "in_network": "Reductions in the network",
    "switched": "All-reduce by switch or ring",
    "one_shot_two_shot": "One-shot and two-shot all-reduce",
    "call_overhead": "Overhead of calling a collective",
    "sharding": "Sharded states",
    "context_parallel": "Context parallelism",
    "expert_parallel": "Expert parallelism",
    "pipeline": "Pipelines",
    "zero_bubble": "Zero-bubble pipelines",
    "dual_pipe": "Bidirectional pipelines",
    "overheads": "Launches by the host and stragglers",
    "decode": "Decoding",
    "decode_bounds": "Bounds of decoding",
    "cache_reads": "Reads of the cache",
    "split_decode": "Decoding with split contexts",
    "recurrent_decode": "Decoding with recurrent layers",
    "serving": "Continuous batching",
    "queueing": "Queueing",
    "speculative": "Speculative decoding",
    "disaggregation": "Prefill and decode apart",
    "parameters": "Parameters and FLOPs",
    "model_state": "Model state",
    "saved_activations": "Saved activations",
    "stage_memory": "Memory by stage",
    "offload": "Offload to the host",
    "chip": "Chips",
    "voltage": "Voltage and frequency",
    "links": "Links and memory stacks",
    "energy": "Energy",
    "cost": "Cost",
    "carbon": "Carbon",
}
"""Pages in reading order, with their titles; any other follows, under its own name."""
CURVATURES = {
    "affine": "affine in logarithms (a monomial)",
    "convex": "convex in logarithms (a posynomial, or a maximum of such)",
    "concave": "concave in logarithms",
}


@dataclass(frozen=True)
class SymbolRow:
    """One symbol: its name in Python and files, its LaTeX glyph, meaning, unit and domain."""

    name: str
    glyph: str
    meaning: str
    unit: str
    domain: str


@dataclass(frozen=True)
class BookEntry:
    """One formula as the book shows it.

    Attributes:
        formula: of the registry.
        sentence: what it gives.
        details: more paragraphs of its docstring.
        symbols: every symbol of its equation, its parameters first.
        claims: proved directions.
        undecided: names of symbols without a proved direction.
        curvature: in words, or nothing.
        unit: of the result.
    """

    formula: Formula
    sentence: str
    details: tuple[str, ...]
    symbols: tuple[SymbolRow, ...]
    claims: tuple[Claim, ...]
    undecided: tuple[str, ...]
    curvature: str
    unit: str


@dataclass(frozen=True)
class Page:
    """The formulas of one module, introduced by its docstring."""

    name: str
    title: str
    introduction: tuple[str, ...]
    formulas: tuple[Formula, ...]


def entry(name: str) -> BookEntry:
    """The entry of a formula.

    Raises:
        InputError: there is none of that name; the nearest are told.
    """
    formula = find(name)
    first, *details = paragraphs(formula.doc)
    return BookEntry(
        formula=formula,
        sentence=first,
        details=tuple(details),
        symbols=tuple(symbol_row(symbol) for symbol in _symbols(formula)),
        claims=tuple(claims(formula)),
        undecided=tuple(undecided_symbols(formula)),
        curvature=CURVATURES.get(formula.curvature or "", ""),
        unit=unit(formula.dimension),
    )


def find(name: str) -> Formula:
    """The formula of a name.

    Raises:
        InputError: there is none; the nearest are told.
    """
    known = load()
    if name not in known:
        hint = nearest(name, known) or ", expected one that `symperf formulas` shows"
        raise InputError(f"formulas: unknown formula {quote(name)}{hint}")
    return known[name]


def symbol_row(name: str) -> SymbolRow:
    """What the vocabulary says of a symbol."""
    symbol = SYMBOLS[name]
    return SymbolRow(name, symbol.glyph, symbol.sentence, unit(symbol.dimension), symbol.domain)


def unit(dimension: Dimension) -> str:
    """A dimension as readers know it; of counts and fractions, nothing.

    >>> from ..formulas.language.dimension import BANDWIDTH, ONE
    >>> unit(BANDWIDTH), unit(ONE)
    ('B/s', '')
    """
    text = str(dimension)
    return "" if text == "1" else text


def pages(names: Iterable[str] | None = None) -> list[Page]:
    """The formulas by page, in reading order; all of them, or those of some names."""
    chosen = [find(name) for name in names] if names is not None else list(load().values())
    by_module: dict[str, list[Formula]] = {}
    for formula in chosen:
        by_module.setdefault(formula.module, []).append(formula)
    return [
        Page(module, title(formulas[0].page), tuple(_introduction(module)), tuple(formulas))
        for module, formulas in sorted(by_module.items(), key=lambda item: _place(item[0]))
    ]


def title(page: str) -> str:
    """The title of a page.

    >>> title("matmul"), title("some_new_page")
    ('Matrix products', 'Some new page')
    """
    return TITLES.get(page) or page.replace("_", " ").capitalize()


def vocabulary(formulas: Iterable[Formula]) -> list[SymbolRow]:
    """Every symbol of these formulas, in the vocabulary's order."""
    used = {name for formula in formulas for name in _symbols(formula)}
    return [symbol_row(name) for name in SYMBOLS if name in used]


def _symbols(formula: Formula) -> list[str]:
    used = {symbol.name for symbol in strip_units(formula.expression).free_symbols}
    return list(dict.fromkeys([*formula.parameters, *(name for name in SYMBOLS if name in used)]))


def _introduction(module: str) -> list[str]:
    return paragraphs(inspect.getdoc(importlib.import_module(module)) or "")


def _place(module: str) -> tuple[int, str]:
    page = module.rsplit(".", 1)[-1]
    return (list(TITLES).index(page) if page in TITLES else len(TITLES), module)

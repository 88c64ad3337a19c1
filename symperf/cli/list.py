"""`symperf list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from .output import console, write_json

if TYPE_CHECKING:
    import argparse

    from ..systems.software import Software


def run(options: argparse.Namespace) -> int:
    """Print what there is of one kind."""
    if options.system is not None and options.what != "symbols":
        raise InputError(f"list: -s shows the values of symbols, found it with {options.what}")
    columns, rows = {"models": models, "systems": systems, "stacks": stacks, "symbols": symbols, "formulas": formulas}[
        options.what
    ](options.system)
    if options.json:
        write_json({options.what: [dict(zip(columns, row, strict=True)) for row in rows]})
        return 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold", no_wrap=name == "name")
    for row in rows:
        table.add_row(*map(_cell, row))
    with console() as out:
        out.print(table)
    return 0


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


Listing = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def models(_: str | None) -> Listing:
    """Catalogue models by name, family and sizes."""
    from ..models.model import Model, catalogue_names

    rows = []
    for name in catalogue_names():
        model = Model.load(name)
        sizes = model.sizes
        rows.append(
            (
                name,
                model.family,
                sizes["num_layers"],
                sizes["hidden_size"],
                sizes["num_attention_heads"],
                sizes["num_key_value_heads"],
                sizes["intermediate_size"],
                sizes["vocab_size"],
            )
        )
    columns = (
        "name",
        "family",
        "num_layers",
        "hidden_size",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "vocab_size",
    )
    return columns, rows


def systems(_: str | None) -> Listing:
    """Catalogue systems by name, with their main figures."""
    from ..report.scaled import quantity
    from ..systems.system import System, catalogue_names

    rows = []
    for name in catalogue_names():
        system = System.load(name)
        rate = max(system.matrix_rates, key=lambda p: (p == "bf16", p == "fp16"))
        rows.append(
            (
                name,
                f"{rate} {quantity(system.matrix_rate(rate).value, 'FLOP/s')}",
                quantity(system.value("memory_bandwidth"), "B/s"),
                quantity(system.value("memory_capacity"), "B"),
                system.title,
            )
        )
    return ("name", "matrix_rate", "memory_bandwidth", "memory_capacity", "title"), rows


def stacks(_: str | None) -> Listing:
    """Serving software by name with what it adds, and training software with the efficiencies it has a share of."""
    from ..infer.stack import Stack, names
    from ..systems import software

    found = [Stack.load(name) for name in names()]
    trained = [software.Software.load(name) for name in software.names()]
    columns = ("name", "kind", *found[0].quantities, "shares", "title", "source")
    serving: list[tuple[Any, ...]] = [
        (stack.name, "serving", *(q.value for q in stack.quantities.values()), "", stack.title, stack.source)
        for stack in found
    ]
    nothing = (None,) * len(found[0].quantities)
    training: list[tuple[Any, ...]] = [
        (each.name, "training", *nothing, _shares(each), each.title, each.source) for each in trained
    ]
    return columns, serving + training


def _shares(software: Software) -> str:
    return ", ".join(f"{share.quantity.value:.3g} {share.efficiency}" for share in software.shares)


def symbols(system: str | None) -> Listing:
    """The vocabulary: glyph, unit, domain, sentence; and value and provenance on a system."""
    from ..formulas.language.symbols import SYMBOLS
    from ..train.binding import DEFAULTS

    given: dict[str, tuple[float, str]] = dict(DEFAULTS)
    if system is not None:
        from ..systems.system import System

        given |= {name: (q.value, q.source) for name, q in System.load(system).quantities.items()}
    rows: list[tuple[Any, ...]] = []
    for name, entry in SYMBOLS.items():
        if entry.group in ("formal", "unit"):
            continue
        value, source = given.get(name, (None, None))
        rows.append((name, entry.glyph, str(entry.dimension), entry.domain, entry.sentence, value, source))
    return ("name", "glyph", "unit", "domain", "sentence", "value", "source"), rows


def formulas(_: str | None) -> Listing:
    """The registry: page, unit, sentence, source."""
    from ..formulas.registry import load

    rows: list[tuple[Any, ...]] = [(f.name, f.page, str(f.dimension), f.sentence, f.source) for f in load().values()]
    return ("name", "page", "unit", "sentence", "source"), rows

"""`symperf inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..inspection import inspect
from ..model import Model
from ..report.scaled import quantity
from .output import console, write_json

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print what a model has."""
    model = Model.load(options.model)
    found = inspect(model, batch=options.batch, sequence=options.sequence, causal_half=options.causal_half)
    if options.json:
        write_json(found)
        return 0
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for name, count in found["parameters"].items():
        table.add_row(f"parameters, {name}".replace("_", " "), f"{count:,}", quantity(count, ""))
    table.add_row("KV cache a token", f"{found['kv_bytes_per_token']:,} B", "2 bytes an element")
    work = f"{options.batch} x {options.sequence} tokens"
    for name, flops in found["flops_forward"].items():
        table.add_row(f"forward FLOPs, {name}".replace("_", " "), f"{flops:,}", f"{quantity(flops, 'FLOP')}, {work}")
    for name, size in found["sizes"].items():
        table.add_row(name, f"{size:,}", "")
    with console() as out:
        out.print(Text.assemble((model.name, "bold"), f" ({model.family}), {model.source}"))
        out.print(table)
        for text in found["warnings"]:
            out.print(Text(f"warning: {text}", "yellow"))
    return 0

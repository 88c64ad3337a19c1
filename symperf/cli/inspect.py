"""`symperf inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.table import Table
from ..models.model import Model
from ..report.scaled import quantity
from ..runs.inspection import inspect
from .output import console, write_json

if TYPE_CHECKING:
    import argparse

CACHE_ROWS = {
    "window_bytes_per_token": "of it in layers with a window",
    "state_bytes_per_sequence": "recurrent state a sequence",
    "cross_bytes_per_encoder_token": "cross-attention cache an encoder token",
}
"""Parts of the cache that are shown where there are such layers."""

TOWERS = ("language", "vision", "audio")
"""Parts of a model that are shown where there are several."""


def run(options: argparse.Namespace) -> int:
    """Print what a model has."""
    model = Model.load(options.model, options.ignore_key)
    found = inspect(
        model,
        batch=options.batch,
        sequence=options.sequence,
        causal_half=options.causal_half,
        encoder_sequence=getattr(options, "encoder_sequence", None),
        context=getattr(options, "context", None),
        absorbed=getattr(options, "absorbed", False),
    )
    if options.json:
        write_json(found)
        return 0
    from rich.text import Text

    table = Table(("", "", ""), left=(0, 2), wraps=(2,))
    for row in _rows(found, f"{options.batch} x {options.sequence} tokens"):
        table.add_row(*row)
    with console() as out:
        out.print(Text.assemble((model.name, "bold"), f" ({model.family}), {model.source}"))
        out.print(table)
        for text in found["warnings"]:
            out.print(Text(f"warning: {text}", "yellow"))
    return 0


def _rows(found: dict[str, Any], work: str) -> list[tuple[str, str, str]]:
    rows = []
    parts = found.get("parts")
    for name, count in found["parameters"].items():
        if count is not None and (parts or name not in TOWERS):
            rows.append((f"parameters, {name}".replace("_", " "), f"{count:,}", quantity(count, "")))
    if parts:
        for name, counts in parts.items():
            if isinstance(counts, dict):
                rows += [(f"of it, {name} {part}", f"{count:,}", quantity(count, "")) for part, count in counts.items()]
    if modules := found["multi_token_parameters"]:
        rows.append(("beside them, multi-token modules", f"{modules:,}", quantity(modules, "")))
    kinds = found["layers"]
    for layer in kinds:
        size = found["parameters_per_layer"][layer["kind"]]
        if len(kinds) > 1:
            rows.append((f"{layer['count']} layers: {layer['kind']}", f"{size:,}", f"{quantity(size, '')} each"))
    stored = found["checkpoint"]
    rows.append(("checkpoint", f"{stored['bytes']:,} B", stored["quantization"] or "16 bits"))
    if stored["quantization"]:
        for each in stored["classes"]:
            size = each["weight_bytes"] + each["scale_bytes"]
            words = f"of it {each['module_class']}".replace("_", " ")
            rows.append((words, f"{size:,} B", f"{each['format']}, scales {each['scale_bytes']:,} B"))
    rows.append(("KV cache a token", f"{found['kv_bytes_per_token']:,} B", "2 bytes an element"))
    cache = found["kv_cache"]
    for name, words in CACHE_ROWS.items():
        if cache[name]:
            note = f"{cache['window_tokens']:,} tokens at most" if name.startswith("window") else ""
            rows.append((words, f"{cache[name]:,} B", note))
    for name, flops in found["flops_forward"].items():
        rows.append((f"forward FLOPs, {name}".replace("_", " "), f"{flops:,}", f"{quantity(flops, 'FLOP')}, {work}"))
    rows += [(name, f"{size:,}", "") for name, size in found["sizes"].items()]
    return rows

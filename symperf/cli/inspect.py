"""`symperf inspect`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..common.table import Table
from ..models.config_files import find_config
from ..models.model import Model
from ..report.scaled import quantity
from ..runs.inspection import inspect
from .output import console, write_error, write_json
from .plots import show_bars

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from ..checking.compare import Comparison

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
    checked = _compare(options.model, model) if options.check else None
    found = inspect(
        model,
        batch=options.batch,
        sequence=options.sequence,
        causal_half=options.causal_half,
        encoder_sequence=getattr(options, "encoder_sequence", None),
        context=getattr(options, "context", None),
        absorbed=getattr(options, "absorbed", False),
    )
    found["check"] = checked.as_json() if checked else None
    if options.json:
        write_json(found)
        return _judge(model, checked)
    from rich.text import Text

    from ..report import bars

    table = Table(("", "", ""), left=(0, 2), wraps=(2,))
    for row in _rows(found, f"{options.batch} x {options.sequence} tokens"):
        table.add_row(*row)
    with console() as out:
        out.print(Text.assemble((model.name, "bold"), f" ({model.family}), {model.source}"))
        out.print(table)
        if taken := found["class_defaults"]:
            told = ", ".join(f"{each['key']} = {json.dumps(each['value'])}" for each in taken)
            out.print(Text(f"class defaults of {taken[0]['source']}, for keys that the file omits: {told}"))
        for text in found["warnings"]:
            out.print(Text(f"warning: {text}", "yellow"))
        if checked:
            _show(checked, out)
    show_bars(options, lambda: bars.of_model(found))
    return _judge(model, checked)


def _compare(source: str, model: Model) -> Comparison:
    """The counts of a model beside those of its modules."""
    from ..checking.build import build
    from ..checking.compare import compare

    file = find_config(source)
    return compare(model, build(file.data, file.where, model))


def _show(checked: Comparison, out: Console) -> None:
    """A table of both counts."""
    from rich.text import Text

    modules = checked.modules
    versions = ", ".join(f"{package} {version}" for package, version in modules.versions.items())
    out.print(Text.assemble("\n", (modules.name, "bold"), f", built by {versions}"))
    table = Table(("", "symperf", "modules", ""), left=(0, 3))
    for row in checked.rows:
        cells = (_count(row.ours), _count(row.theirs))
        table.add_row(row.what, *cells, "" if row.agrees else "differs")
    out.print(table)
    for text in checked.notes:
        out.print(Text(f"note: {text}"))
    if not checked.differing:
        out.print(Text(f"all {len(checked.rows)} counts agree"))


def _count(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)


def _judge(model: Model, checked: Comparison | None) -> int:
    """The exit status: 1 where a count differs, which a line then tells."""
    if not checked or not (differing := checked.differing):
        return 0
    first, number = differing[0], len(checked.rows)
    write_error(
        f"{model.name}: --check: {len(differing)} of {number} counts {'differ' if len(differing) > 1 else 'differs'}: "
        f"{first.what}: {_count(first.ours)} here, {_count(first.theirs)} in {checked.modules.name}"
    )
    return 1


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

"""`symperf list`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from .listing import Entry, Group, show
from .output import console, write_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ..infer.stack import Stack
    from ..systems.software import Share
    from ..systems.system_symbols import Quantity


@dataclass(frozen=True)
class Listing:
    """What there is of one kind: objects for `--json`, groups for a terminal."""

    rows: Sequence[dict[str, Any]]
    groups: Sequence[Group]


def run(options: argparse.Namespace) -> int:
    """Print what there is of one kind."""
    if options.system is not None and options.what != "symbols":
        raise InputError(f"list: -s shows the values of symbols, found it with {options.what}")
    if options.family is not None and options.what != "models":
        raise InputError(f"list: found {quote(options.family)} after {options.what}, expected a family only of models")
    if options.what == "models":
        listing = models(options.family)
    elif options.what == "symbols":
        listing = symbols(options.system)
    else:
        listing = {"systems": systems, "stacks": stacks, "formulas": formulas}[options.what]()
    if options.json:
        write_json({options.what: list(listing.rows)})
        return 0
    with console() as out:
        show(out, listing.groups)
    return 0


def models(start: str | None = None) -> Listing:
    """Catalogue models by family, with their sizes.

    Args:
        start: only those whose family, or whose name, starts so.

    Raises:
        InputError: none does.
    """
    from ..models.catalogue import fold_name
    from ..models.model import Model, catalogue_names
    from ..runs.inspection import inspect

    every = [Model.load(name) for name in catalogue_names()]
    wanted = fold_name(start or "")
    loaded = [model for model in every if fold_name(model.family).startswith(wanted) or model.name.startswith(wanted)]
    if not loaded:
        known = sorted({model.family for model in every}) + [model.name for model in every]
        raise InputError(
            f"list: found {quote(start)}, expected the start of a family or of a model's name{nearest(wanted, known)}"
        )
    rows: list[dict[str, Any]] = [
        {
            "name": model.name,
            "family": model.family,
            **{
                name: model.sizes[name]
                for name in (
                    *("num_layers", "hidden_size", "num_attention_heads", "num_key_value_heads"),
                    *("intermediate_size", "vocab_size"),
                )
            },
            "parameters": inspect(model)["parameters"]["total"],
            "context": model.context,
        }
        for model in loaded
    ]
    headings = ("parameters", "layers", "hidden", "heads", "kv heads", "context")

    def entry(row: dict[str, Any]) -> Entry:
        sizes = (row[name] for name in ("num_layers", "hidden_size", "num_attention_heads", "num_key_value_heads"))
        cells = (str(size or "") for size in (*sizes, row["context"]))
        return Entry((row["name"], _count(row["parameters"]), *cells))

    by_family = groupby(sorted(rows, key=lambda row: str(row["family"])), key=lambda row: str(row["family"]))
    groups = [Group((family, *headings), [entry(row) for row in each], numbers=True) for family, each in by_family]
    return Listing(rows, groups)


def _count(parameters: int) -> str:
    """Parameters to four digits, in millions or in thousands of millions.

    >>> _count(124_439_808), _count(1_008_038_707_200)
    ('124.4 M', '1008 G')
    """
    return f"{parameters / 1e9:.4g} G" if parameters >= 1e9 else f"{parameters / 1e6:.4g} M"


def systems() -> Listing:
    """Catalogue systems by name, with their main figures."""
    from ..report.scaled import quantity
    from ..systems.system import System, catalogue_names

    rows: list[dict[str, Any]] = []
    for name in catalogue_names():
        system = System.load(name)
        rate = max(system.matrix_rates, key=lambda p: (p == "bf16", p == "fp16"))
        rows.append(
            {
                "name": name,
                "matrix_rate": f"{rate} {quantity(system.matrix_rate(rate).value, 'FLOP/s')}",
                "memory_bandwidth": quantity(system.value("memory_bandwidth"), "B/s"),
                "memory_capacity": quantity(system.value("memory_capacity"), "B"),
                "title": system.title,
            }
        )
    entries = [Entry((*list(row.values())[:4],), (row["title"],)) for row in rows]
    return Listing(rows, [Group(("system", "matrix rate", "memory bandwidth", "memory capacity"), entries)])


def stacks() -> Listing:
    """Serving software by name with what it adds, and training software with the efficiencies it has a share of."""
    from ..infer.stack import Stack, names
    from ..systems import software

    serving = [Stack.load(name) for name in names()]
    training = [software.Software.load(name) for name in software.names()]
    nothing = dict.fromkeys(serving[0].quantities)
    rows: list[dict[str, Any]] = []
    entries: dict[str, list[Entry]] = {"serving": [], "training": []}
    for stack in serving:
        values = {name: quantity.value for name, quantity in stack.quantities.items()}
        told = {"shares": "", "title": stack.title, "source": stack.source}
        rows.append({"name": stack.name, "kind": "serving", **values, **told, "on": _reached(stack)})
        line = ", ".join(f"{name}={_number(value)}" for name, value in values.items())
        known = ", ".join(f"{name} ({reached.count})" for name, reached in stack.reached.items())
        notes = (stack.title, line, *([f"constants of its kernels on {known}"] if known else []))
        entries["serving"].append(Entry((stack.name,), (*notes, f"source: {stack.source}")))
    for each in training:
        shares = ", ".join(f"{share.quantity.value:.3g} {share.efficiency}" for share in each.shares)
        told = {"shares": shares, "title": each.title, "source": each.source}
        rows.append({"name": each.name, "kind": "training", **nothing, **told, "on": {}})
        notes = (each.title, *map(_share, each.shares), f"source: {each.source}")
        entries["training"].append(Entry((each.name,), notes))
    return Listing(rows, [Group((f"{kind} software",), listed) for kind, listed in entries.items()])


def _reached(stack: Stack) -> dict[str, Any]:
    """The constants of a software's kernels by system, with those of products in one format under its name."""

    def told(constants: Mapping[str, Quantity]) -> dict[str, Any]:
        return {name: vars(quantity) for name, quantity in constants.items()}

    return {
        name: told(reached.constants) | {form: told(constants) for form, constants in reached.formats.items()}
        for name, reached in stack.reached.items()
    }


def _share(share: Share) -> str:
    where = f" on {', '.join(share.systems)}" if share.systems else ""
    return f"{share.efficiency} x {share.quantity.value:.3g}{where}"


def _number(value: float) -> str:
    return f"{value:.6g}"


def symbols(system: str | None = None) -> Listing:
    """The vocabulary by group: glyph, unit, domain, sentence; and value and provenance on a system."""
    from ..book.unicode import plain
    from ..formulas.language.symbols import SYMBOLS
    from ..train.binding import DEFAULTS

    given: dict[str, tuple[float, str]] = dict(DEFAULTS)
    if system is not None:
        from ..systems.system import System

        given |= {name: (q.value, q.source) for name, q in System.load(system).quantities.items()}
    rows: list[dict[str, Any]] = []
    entries: dict[str, list[Entry]] = {}
    for name, symbol in SYMBOLS.items():
        if symbol.group in ("formal", "unit"):
            continue
        value, source = given.get(name, (None, None))
        cells = {"name": name, "glyph": symbol.glyph, "unit": str(symbol.dimension), "domain": symbol.domain}
        rows.append({**cells, "sentence": symbol.sentence, "value": value, "source": source})
        notes = (symbol.sentence,) if value is None else (symbol.sentence, f"= {_number(value)}: {source}")
        shown = cells | {"glyph": plain(symbol.glyph)}
        entries.setdefault(symbol.group, []).append(Entry((*shown.values(),), notes))
    headings = ("glyph", "unit", "domain")
    return Listing(rows, [Group((f"symbols: {group}", *headings), listed) for group, listed in entries.items()])


def formulas() -> Listing:
    """The registry by page: unit, sentence, source."""
    from ..formulas.registry import load

    rows: list[dict[str, Any]] = []
    entries: dict[str, list[Entry]] = {}
    for formula in load().values():
        told = {"page": formula.page, "unit": str(formula.dimension), "sentence": formula.sentence}
        rows.append({"name": formula.name, **told, "source": formula.source})
        notes = (formula.sentence, f"source: {formula.source}")
        entries.setdefault(formula.page, []).append(Entry((formula.name, told["unit"]), notes))
    return Listing(rows, [Group((page, "unit"), listed) for page, listed in entries.items()])

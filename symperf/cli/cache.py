"""`symperf cache`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..codegen.store import Store
from ..common.artefacts import cache_folder
from ..common.errors import InputError
from ..systems.units import BYTES, spell
from .output import console, write_json

if TYPE_CHECKING:
    import argparse

    from ..codegen.store import StoreEntry

PASS = ("name", "instructions", "operations_per_point")
"""Of a pass: its name, and what is left after it."""


def run(options: argparse.Namespace) -> int:
    """Show or clear the cache of compiled structures and kernels."""
    store = Store(cache_folder())
    if options.clear and options.explain:
        raise InputError("cache: found --clear and --explain, expected one of them")
    entries = store.clear() if options.clear else store.entries()
    told = _explanations(store, entries) if options.explain else {}
    total = sum(entry.bytes for entry in entries)
    if options.json:
        write_json(
            {
                "folder": str(store.folder),
                "cleared": options.clear,
                "bytes": total,
                "limit_bytes": store.limit_bytes,
                "entries": [
                    {
                        "key": e.key,
                        "kind": e.kind,
                        "bytes": e.bytes,
                        "used_unix_s": round(e.used, 3),
                        "axes": told[e.key][0] if e.key in told else None,
                        "passes": [dict(zip(PASS, each, strict=True)) for each in told[e.key][1]]
                        if e.key in told
                        else None,
                    }
                    for e in entries
                ],
            }
        )
        return 0
    kinds = {kind: [e for e in entries if e.kind == kind] for kind in ("artefact", "module")}
    counted = " and ".join(f"{len(found)} {kind}{'s' * (len(found) != 1)}" for kind, found in kinds.items())
    verb = "removed " if options.clear else ""
    limit = "" if options.clear else f" of at most {spell(store.limit_bytes, BYTES)}"
    with console() as out:
        out.print(f"{store.folder}: {verb}{counted}, {spell(total, BYTES)}{limit}", soft_wrap=True)
        for axes, passes in told.values():
            out.print("\nkernel over " + " x ".join(f"{name} ({count:,})" for name, count in axes.items()))
            before = passes[0][2]
            for name, instructions, operations in passes:
                saved = f"  {1 - operations / before:+.0%} saved" if before and name != passes[0][0] else ""
                out.print(f"  {name:16} {instructions:6,} instructions {operations:10,.1f} operations a point{saved}")
                before = operations
        if options.explain and not told:
            out.print("no kernel has been compiled: grids are small enough for NumPy")
    return 0


def _explanations(store: Store, entries: list[StoreEntry]) -> dict[str, tuple[dict[str, int], list[list[Any]]]]:
    """The axes and the passes of every kernel that is kept, by key."""
    found = {}
    for entry in entries:
        data = store.load(entry.key) if entry.kind == "artefact" else None
        if data is not None and "passes" in data:
            found[entry.key] = data["axes"], data["passes"]
    return found

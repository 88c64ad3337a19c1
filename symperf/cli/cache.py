"""`symperf cache`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen.store import Store
from ..common.artefacts import cache_folder
from ..systems.units import BYTES, spell
from .output import console, write_json

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Show or clear the cache of compiled structures and kernels."""
    store = Store(cache_folder())
    entries = store.clear() if options.clear else store.entries()
    total = sum(entry.bytes for entry in entries)
    if options.json:
        write_json(
            {
                "folder": str(store.folder),
                "cleared": options.clear,
                "bytes": total,
                "limit_bytes": store.limit_bytes,
                "entries": [
                    {"key": e.key, "kind": e.kind, "bytes": e.bytes, "used_unix_s": round(e.used, 3)} for e in entries
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
    return 0

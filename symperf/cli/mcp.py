"""`symperf mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from .mcp_server import serve
from .mcp_tools import tools
from .output import write_json

if TYPE_CHECKING:
    import argparse

LONGEST = 86_400


def run(options: argparse.Namespace) -> int:
    """Serve the verbs to an assistant, or with `--json` print what tools there are."""
    if not 1 <= options.seconds <= LONGEST:
        raise InputError(f"mcp: --seconds: found {options.seconds:g}, expected 1 to {LONGEST}")
    names = [] if options.verbs is None else [part.strip() for part in options.verbs.split(",")]
    found = tools(names, write=options.write)
    if options.json:
        write_json({"tools": [tool.to_dict() for tool in found.values()]})
    else:
        serve(found, options.seconds)
    return 0

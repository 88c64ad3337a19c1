"""`symperf doctor`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from ..common.fingerprint import constants_version
from ..common.table import fold
from ..common.version import VERSION
from ..installation import packages, surroundings
from .output import columns, console, write_json

if TYPE_CHECKING:
    import argparse

    from ..installation.check import Check

STATES = ("fault", "slow", "missing", "fine")
"""From the worst."""


def run(options: argparse.Namespace) -> int:
    """Print what is installed, and what of it is slow or missing; exit status 1 where the program cannot work."""
    gpus = surroundings.gpus()
    checks = list(chain(packages.checks(), surroundings.checks(gpus)))
    counts = {state: sum(check.state == state for check in checks) for state in STATES}
    if options.json:
        write_json(
            {
                "version": VERSION,
                "works": not counts["fault"],
                "counts": counts,
                "checks": [check.to_dict() for check in checks],
                "versions": packages.versions(),
                "gpus": gpus,
            }
        )
    else:
        with console() as out:
            for line in (*chain.from_iterable(map(_lines, checks)), f"constants {constants_version()}", _sum(counts)):
                out.print(line, soft_wrap=True)
    return 1 if counts["fault"] else 0


def _lines(check: Check) -> list[str]:
    """The state and name of a check, what was found, and what helps."""
    head, hang = f"{check.state:8} {check.name:19} ", " " * 11
    lines = fold(check.found, columns(), head, hang)
    return [*lines, *(fold(f"do: {check.remedy}", columns(), hang, f"{hang}    ") if check.remedy else ())]


def _sum(counts: dict[str, int]) -> str:
    words = {"fault": "stops the program", "slow": "slow", "missing": "missing, which only some verbs need"}
    found = [f"{counts[state]} {told}" for state, told in words.items() if counts[state]]
    return f"in all: {'; '.join(found) or 'nothing is wrong'}"

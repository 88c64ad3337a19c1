"""`symperf completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .completion_bash import bash
from .completion_fish import fish
from .completion_words import words
from .completion_zsh import zsh
from .output import write, write_json

if TYPE_CHECKING:
    import argparse

SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}


def run(options: argparse.Namespace) -> int:
    """Print what a shell reads."""
    script = SCRIPTS[options.shell](words())
    if options.json:
        write_json({"shell": options.shell, "script": script})
    else:
        write(script)
    return 0

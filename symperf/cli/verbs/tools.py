"""`symperf completion`, `doctor` and `mcp`: what stands around the program."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...common.errors import nearest, quote
from ..flags import number

if TYPE_CHECKING:
    from . import Verb

SHELLS = ("bash", "zsh", "fish")
HOW = """\
for one session  eval "$(symperf completion bash)"            and so in zsh; in fish: symperf completion fish | source
for all          add that line to ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish"""


def add(verb: Verb) -> None:
    """Add the verbs."""
    completion = verb(
        "completion",
        "What a shell needs to complete verbs, flags, and the names of models, systems and software.",
        "symperf completion bash",
        "completion",
    )
    completion.epilog = f"{HOW}\n\n{completion.epilog}"
    completion.add_argument("shell", type=shell, metavar="SHELL", help=" or ".join(SHELLS))
    verb(
        "doctor",
        "What is installed here, and what of it is slow or missing: packages, the cache, compilers, GPUs.",
        "symperf doctor",
        "doctor",
    )
    mcp = verb(
        "mcp",
        "Serves the verbs as tools of an assistant (Model Context Protocol, over standard input and output).",
        "symperf mcp --verbs train,infer,search",
        "mcp",
    )
    mcp.epilog = f"With --json it prints the tools instead. Needs symperf[mcp].\n\n{mcp.epilog}"
    mcp.add_argument("--verbs", metavar="NAMES", help="those that are tools, with commas between (default: all)")
    mcp.add_argument("--write", action="store_true", help="let tools write files, and verbs be tools that must")
    mcp.add_argument("--seconds", type=number, default=600.0, metavar="N", help="that one call may take (default 600)")


def shell(text: str) -> str:
    """One of the shells that are known."""
    if text not in SHELLS:
        raise argparse.ArgumentTypeError(f"found {quote(text)}, expected {' or '.join(SHELLS)}{nearest(text, SHELLS)}")
    return text

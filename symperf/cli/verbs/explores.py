"""`symperf explore`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import flags
from ..flags import whole

if TYPE_CHECKING:
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verb."""
    explore = verb(
        "explore",
        "One file of HTML that answers by itself: every symbol on a slider, every number live, no network.",
        "symperf explore llama-2-7b -s h100-sxm --only infer -o explorer.html",
        "explore",
    )
    explore.add_argument("models", nargs="+", metavar="MODEL", help="catalogue names, or paths of a config.json")
    explore.add_argument(
        "--ignore-key",
        action="append",
        default=[],
        metavar="NAME",
        help="read the models' files as if they had no such key; may be repeated",
    )
    explore.add_argument(
        "-s",
        "--system",
        action="extend",  # an assistant's list of systems is the flag once for each
        nargs="+",
        required=True,
        help="catalogue names, or paths of .toml files, to choose from; all: those of the catalogue",
    )
    explore.add_argument("-o", "--output", required=True, metavar="FILE", help="the file that is written")
    explore.add_argument("--only", metavar="KIND", help="train or infer alone (default: both)")
    explore.add_argument("--batch", type=whole, help="of training, at first: sequences in the global batch")
    explore.add_argument("--sequence", type=whole, help="of training, at first: tokens in a sequence")
    explore.add_argument("--sequences", type=whole, metavar="N", help="of inference, at first: sequences at once")
    explore.add_argument("--prompt", type=whole, help="of inference, at first: tokens of each prompt")
    explore.add_argument("--generate", type=whole, help="of inference, at first: tokens generated for each")
    explore.add_argument("--stack", metavar="NAME", help="of inference: a serving software (see: symperf list stacks)")
    explore.add_argument("--kv-precision", metavar="NAME", help="of inference: format of the cache")
    explore.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="values of recompute, sequence_parallel, zero, schedule or attention that the page offers for training, "
        "with commas between (default: all of them, which take a minute to compile the first time); may be repeated",
    )
    explore.add_argument(
        "--book",
        default="",
        metavar="ADDRESS",
        help="folder of the book's pages (symperf formulas --site), to which every formula leads",
    )
    flags.plan(explore)

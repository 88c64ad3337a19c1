"""`symperf regimes` and `symperf phase`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..flags import number, whole

if TYPE_CHECKING:
    from ..parser import Parser
    from . import Verb

RUN = "llama-2-70b -s h100-sxm --tp 8"


def add(question: Verb) -> None:
    """Add the verbs."""
    _regimes(question)
    _phase(question)


def _regimes(question: Verb) -> None:
    parser = question(
        "regimes",
        "What binds along a symbol, from where to where, and where it changes.",
        f"symperf regimes infer {RUN} --batch 8 --prompt 512 --generate 128 --over batch --from 1 --to 512 --of decode",
        "regimes",
    )
    parser.add_argument("--over", metavar="NAME", required=True, help="the symbol that varies")
    _range(parser, "", "--over")
    _of(parser)
    parser.add_argument(
        "--view", choices=("whole", "smooth"), help="of a whole number: each that the run accepts, or without roundings"
    )
    parser.add_argument(
        "--band", type=number, metavar="SHARE", help="tell smaller changes as flicker (default 0.1, over a doubling)"
    )
    parser.add_argument("--all", action="store_true", help="tell every change, and every branch that changes")


def _phase(question: Verb) -> None:
    parser = question(
        "phase",
        "What binds over two symbols: a map, its regions and the curves between them.",
        f"symperf phase infer {RUN} --batch 8 --prompt 512 --generate 128 --over batch --and memory_bandwidth",
        "phase",
    )
    parser.add_argument("--over", metavar="X", required=True, help="the first symbol")
    parser.add_argument("--and", dest="and_", metavar="Y", required=True, help="the second symbol")
    _range(parser, "", "--over")
    _range(parser, "and-", "--and")
    _of(parser)
    parser.add_argument(
        "--points", type=whole, metavar="N", help="of the grid along each symbol (default 33, with --plot 65)"
    )


def _range(parser: Parser, prefix: str, of: str) -> None:
    dest = prefix.replace("-", "_")
    parser.add_argument(
        f"--{prefix}from", dest=f"{dest}from_", metavar="A", help=f"of {of}: from this value (default: now / 16)"
    )
    parser.add_argument(
        f"--{prefix}to", dest=f"{dest}to", metavar="B", help=f"of {of}: to this one (default: now x 16)"
    )


def _of(parser: Parser) -> None:
    parser.add_argument(
        "--of",
        default="time",
        metavar="WHAT",
        help="time (default), memory, tokens_per_s, mfu, cost, energy, decode, a term or a folder of terms: layer/mlp",
    )

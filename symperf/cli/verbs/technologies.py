"""`symperf technology` and `allocate`, and the flags of what a run spends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import flags
from ..flags import whole

if TYPE_CHECKING:
    from ..parser import Parser
    from . import Verb

SETTING = "a quantity of the budget or of the node, such as die_area='815 mm2' or area_core=0.35; may be repeated"


def add(verb: Verb) -> None:
    """Add the verbs."""
    technology = verb(
        "technology",
        "The chip that a logic node, a memory and networks give within a budget, and what it costs to make.",
        "symperf technology ampere --node 5nm --memory hbm3 --scale-up nvlink4 --set power='700 W' -o mine.toml",
        "technology",
    )
    _technology(technology)
    technology.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help=f"{SETTING}; also the price of a wafer, ..."
    )
    technology.add_argument("--name", default="generated", help="of the system (default: generated)")
    technology.add_argument("--cost", action="store_true", help="what the device costs to make")
    technology.add_argument("-o", "--output", metavar="FILE", help="write the system as a .toml file")
    allocate = verb(
        "allocate",
        "The best split of a chip's area, power and perimeter for a training step, as a geometric program.",
        "symperf allocate gpt-22b --technology ampere --node 5nm --area '814 mm2' --power '700 W' --tp 8 --batch 8 "
        "--sequence 2048",
        "allocate",
    )
    flags.model(allocate)
    _technology(allocate, flag=True)
    budgets = allocate.add_argument_group("budgets")
    budgets.add_argument("--area", metavar="A", help="of the die, such as '814 mm2' (default: the technology's)")
    budgets.add_argument("--power", metavar="P", help="of the device, such as '700 W' (default: the technology's)")
    budgets.add_argument("--perimeter", metavar="L", help="that links may use, such as '100 mm' (default: all)")
    budgets.add_argument("--package-area", metavar="A", help="of the package (default: the technology's)")
    budgets.add_argument("--fits", action="store_true", help="the memory must hold the run")
    budgets.add_argument("--smooth", action="store_true", help="leave L2 and whole tiles out of the time")
    allocate.add_argument("--batch", type=whole, required=True, help="sequences in the global batch")
    allocate.add_argument("--sequence", type=whole, required=True, help="tokens in a sequence")
    flags.plan(allocate)


def spending(parser: Parser) -> None:
    """The flags of what a run spends."""
    group = parser.add_argument_group("energy and cost")
    group.add_argument("--energy", action="store_true", help="print joules by resource")
    group.add_argument("--cost", action="store_true", help="print dollars, and carbon dioxide where a grid is known")
    group.add_argument("--grid", metavar="NAME", help="a grid of the catalogue, such as world or france")


def _technology(parser: Parser, *, flag: bool = False) -> None:
    names = "deepflow (default), ampere, tsmc, a part (a100, h100), or the path of a .toml file"
    if flag:
        parser.add_argument("--technology", metavar="NAME", default="deepflow", help=names)
    else:
        parser.add_argument("technology", nargs="?", default="deepflow", help=names)
    parser.add_argument("--node", metavar="NAME", help="logic node, such as 5nm (default: the first of the set)")
    parser.add_argument("--memory", metavar="NAME", help="memory generation, such as hbm3 (default: the set's)")
    parser.add_argument("--scale-up", metavar="NAME", help="network inside a domain, such as nvlink4, or none")
    parser.add_argument("--scale-out", metavar="NAME", help="network between domains, such as ndr, or none")

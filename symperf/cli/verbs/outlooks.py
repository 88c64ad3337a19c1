"""`symperf gains` and `symperf limits`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verbs."""
    gains = verb(
        "gains",
        "What to buy or tune next: the gain from each symbol and resource a tenth better, twice, without limit.",
        "symperf gains train gpt3-175b -s a100-80gb-sxm --tp 8 --pp 8 --batch 64 --sequence 2048",
        "gains",
    )
    gains.add_argument("--of", default="time", metavar="QUANTITY", help="time (default), mfu, tokens_per_s, cost, ...")
    gains.add_argument("--by-term", action="store_true", help="show the seconds of each term by resource instead")
    limits = verb(
        "limits",
        "Where a quantity goes as a symbol goes to infinity and to zero: leading term in symbols, exponent, bounds.",
        "symperf limits train gpt3-175b -s a100-80gb-sxm --tp 8 --batch 64 --sequence 2048 --over sequence",
        "limits",
    )
    limits.add_argument("--over", required=True, metavar="NAME", help="the symbol that goes to its ends")
    limits.add_argument("--of", default="time", metavar="QUANTITY", help="time (default), memory, mfu, a term, ...")

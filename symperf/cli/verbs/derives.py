"""`symperf derive` and `symperf formulas`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import flags
from ..flags import number

if TYPE_CHECKING:
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verbs."""
    _derive(verb)
    _formulas(verb)


def _derive(verb: Verb) -> None:
    derive = verb(
        "derive",
        "The closed form of a quantity, term by term inside the current regime; as text, LaTeX or code.",
        "symperf derive train gpt3-175b -s a100-80gb-sxm --tp 8 --pp 8 --batch 64 --sequence 2048 --term layer/mlp",
        "derive",
    )
    flags.question(derive)
    derive.add_argument(
        "--of", default="time", metavar="QUANTITY", help="time (default), memory, tokens_per_s, mfu, energy, cost, ..."
    )
    derive.add_argument("--term", metavar="PATH", help="a term of the breakdown, or a folder of terms: layer/mlp")
    derive.add_argument(
        "--free", action="append", default=[], metavar="NAME", help="a symbol that varies; all others become numbers"
    )
    derive.add_argument(
        "--fold",
        action="append",
        default=[],
        metavar="NAME",
        help="what becomes a number: formats (default), efficiencies, tiles, all, none, or a symbol; may be repeated",
    )
    derive.add_argument(
        "--below", type=number, default=0.01, metavar="SHARE", help="drop lines of a smaller share (default 0.01)"
    )
    derive.add_argument(
        "--conditions",
        choices=("nearest", "all"),
        default="nearest",
        help="print the conditions nearest to a change (default), or every one",
    )
    derive.add_argument("--whole", action="store_true", help="print also the whole closed form over named terms")
    derive.add_argument("--wrt", metavar="NAME", help="print also the regimes and crossovers along a symbol")
    derive.add_argument("--from", dest="from_", type=number, metavar="A", help="with --wrt: from this value")
    derive.add_argument("--to", type=number, metavar="B", help="with --wrt: to this value")
    group = derive.add_mutually_exclusive_group()
    for name, text in (
        ("latex", "a LaTeX document that needs amsmath only"),
        ("fragment", "its align block of the lines"),
        ("unicode", "text (default)"),
        ("python", "a Python function of the free symbols, or of all"),
        ("c", "the same in C99"),
        ("js", "the same as an ES module"),
    ):
        group.add_argument(f"--{name}", action="store_true", help=f"print {text}")
    flags.plot(derive, "the lines' shares")
    derive.add_argument("-o", "--output", metavar="FILE", help="write to a file; its suffix may say the format")
    flags.software(derive)
    flags.plan(derive)


def _formulas(verb: Verb) -> None:
    formulas = verb(
        "formulas",
        "Every formula with its equation, symbols, assumptions, proofs and source; also as a book.",
        "symperf formulas ring_all_reduce_time",
        "formulas",
    )
    formulas.add_argument("name", nargs="?", help="one formula; without it the list of all")
    group = formulas.add_mutually_exclusive_group()
    group.add_argument("--latex", action="store_true", help="print equations only, in LaTeX")
    for kind, text in (
        ("pdf", "write the book as PDF (needs pdflatex)"),
        ("tex", "write its LaTeX, which needs amsmath and hyperref"),
        ("md", "write it as Markdown"),
        ("html", "write it as one HTML file with MathML (needs symperf[book])"),
    ):
        group.add_argument(f"--{kind}", metavar="FILE", help=text)
    group.add_argument(
        "--site",
        metavar="FOLDER",
        help="write it as pages of HTML with a search box, which need no network (needs symperf[book])",
    )
    against = formulas.add_argument_group("where it passes another formula")
    against.add_argument("--against", metavar="NAME", help="the other formula")
    against.add_argument("--over", metavar="SYMBOL", help="the symbol along which they are compared")
    against.add_argument("--low", metavar="A", help="where the comparison begins (default: 0)")
    against.add_argument("--high", metavar="B", help="where it ends (default: nowhere)")
    against.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="the value of another symbol")
    flags.plot(against, "both")

"""The verbs of the algebra: what they share, and each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import flags
from ..flags import whole
from . import changes, outlooks, targets

if TYPE_CHECKING:
    from ..parser import Parser
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verbs."""

    def question(name: str, text: str, example: str, module: str) -> Parser:
        parser = verb(name, text, example, module)
        flags.question(parser)
        flags.software(parser)
        flags.plan(parser)
        group = parser.add_argument_group("output")
        group.add_argument("--latex", action="store_true", help="print a LaTeX document that needs amsmath only")
        flags.plot(group, "it")
        group.add_argument("-o", "--output", metavar="FILE", help="write the text or LaTeX to a file")
        if "--width" not in parser.flags():
            group.add_argument("--width", type=whole, metavar="N", help="columns of the text (default: the terminal's)")
        return parser

    for group in (changes, targets, outlooks):
        group.add(question)

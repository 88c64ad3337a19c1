"""The vocabulary: every symbol of every formula, once, with glyph, dimension, domain and sentence.

Glyphs follow the Megatron papers (arXiv 2104.04473, 2205.05198): b s h a L V and t p d c e. A symbol's `name` is
also its name in Python, TOML, the command line and JSON. A symbol with a `resource` is a rate or a latency of that
resource: time is homogeneous of degree one in latencies and reciprocal rates, which makes exact shares possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from .adapters import *  # noqa: F403
from .attention import *  # noqa: F403
from .chip import *  # noqa: F403
from .collectives import *  # noqa: F403
from .cost import *  # noqa: F403
from .device import *  # noqa: F403
from .documents import *  # noqa: F403
from .efficiency import *  # noqa: F403
from .energy import *  # noqa: F403
from .entries import *  # noqa: F403
from .entry import COUNT as COUNT
from .entry import FRACTION as FRACTION
from .entry import POSITIVE as POSITIVE
from .entry import SYMBOLS as SYMBOLS
from .entry import ZERO_UP as ZERO_UP
from .entry import Entry as Entry
from .exchanges import *  # noqa: F403
from .experts import *  # noqa: F403
from .formal import *  # noqa: F403
from .formal import flop as flop
from .formats import *  # noqa: F403
from .inference import *  # noqa: F403
from .model import *  # noqa: F403
from .plan import *  # noqa: F403
from .products import *  # noqa: F403
from .room import *  # noqa: F403
from .scans import *  # noqa: F403
from .selection import *  # noqa: F403
from .serving import *  # noqa: F403
from .software import *  # noqa: F403
from .state import *  # noqa: F403
from .work import *  # noqa: F403

if TYPE_CHECKING:
    from ..dimension import Dimension

GROUPS = ("model", "work", "plan", "format", "device", "efficiency", "formal", "unit")
"""Kinds of symbols, in the order in which they are listed."""

for _entry in sorted(SYMBOLS.values(), key=lambda entry: GROUPS.index(entry.group)):
    SYMBOLS[_entry.name] = SYMBOLS.pop(_entry.name)


def dimensions() -> dict[Any, Dimension]:
    """The dimension of every symbol."""
    return {entry.symbol: entry.dimension for entry in SYMBOLS.every().values()}


UNITS: dict[Any, Any] = {flop: sympy.S.One}
"""What stands for the unit of work where an expression is printed or compiled."""


def strip_units(expr: Any) -> Any:
    """`expr` with the unit of work set to 1."""
    return sympy.sympify(expr, strict=True).xreplace(UNITS)


def latex(expr: Any) -> str:
    """`expr` in LaTeX, with the glyphs of the vocabulary."""
    names = {entry.symbol: entry.glyph for entry in SYMBOLS.values()}
    return str(sympy.latex(strip_units(expr), symbol_names=names, mul_symbol=r" \, "))

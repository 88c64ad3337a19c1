"""The formula book: every formula with its equation, symbols, assumptions, proofs and source.

`tex`, `markdown`, `html` and `site` print the book, `pdf` compiles it, `show` gives one formula to a notebook, and
`used_formulas` tells which formulas a computation calls. Names are loaded when they are first used: what a run cites is
told from the cache folder without SymPy.

Imports `common`, `infer`, `plans`, `train`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazy_names

if TYPE_CHECKING:
    from .jupyter import show as show
    from .pdflatex import pdf as pdf
    from .render import html as html
    from .render import markdown as markdown
    from .render import tex as tex
    from .used import used_formulas as used_formulas
    from .website import site as site

_HOMES = {
    "html": "render",
    "markdown": "render",
    "pdf": "pdflatex",
    "show": "jupyter",
    "site": "website",
    "tex": "render",
    "used_formulas": "used",
}

__all__ = [*_HOMES]

__getattr__ = lazy_names(__name__, _HOMES)

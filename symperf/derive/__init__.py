"""Closed forms that people can read: what a quantity is inside its current regime, term by term.

`derive` answers a question about a run with a `Derivation`, which prints on a terminal, as LaTeX and as JSON, and
writes itself as a function in Python, C or JavaScript. Nothing is imported before it is used: a prediction needs no
SymPy.

Imports `book`, `common`, `evaluation`, `infer`, `operations`, `pictures`, `spending`, `train`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazy_names

if TYPE_CHECKING:
    from .derivation import Derivation as Derivation
    from .question import derive as derive

_HOMES = {"Derivation": "derivation", "derive": "question"}

__all__ = [*_HOMES]

__getattr__ = lazy_names(__name__, _HOMES)

"""What a sweep's numbers follow from, as short texts: two jobs that agree in all of them have the same numbers."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.store import digest
from ..common.fingerprint import PACKAGES, sources

if TYPE_CHECKING:
    from .sweep import Sweep

_TOLD = ("source", "title", "warnings")
"""Fields of models and systems that are words for readers."""


def identity(sweep: Sweep) -> dict[str, str]:
    """The study, the package and what it computes with, each under a word for it."""
    found = {"study": digest(_text(_parts_of_question(sweep))), "symperf": sources(), "engine": "numpy"}
    found |= {label: version(name) for label, name in PACKAGES.items() if label != "Numba"}
    if sweep.compiled:
        found |= {"engine": "compiled", "Numba": version(PACKAGES["Numba"])}
    return found


def _parts_of_question(sweep: Sweep) -> list[Any]:
    axes = [(axis.name, list(axis.members.items()), list(axis.unset.items())) for axis in sweep.axes]
    question = sweep.question
    return [axes, sweep.base, question.outputs, list(question.derived.items()), list(question.where.items())]


def _text(value: Any) -> str:
    """A text that differs wherever a value does."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if dataclasses.is_dataclass(value):
        fields = [f.name for f in dataclasses.fields(value) if f.name not in _TOLD]
        return f"{type(value).__name__}({', '.join(f'{name}={_text(getattr(value, name))}' for name in fields)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_text(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)

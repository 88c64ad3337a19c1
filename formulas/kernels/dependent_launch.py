"""Kernels of a recorded graph that begin before the one before them has ended."""

from __future__ import annotations

from typing import Any

from ..language.atoms import complement
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import start_removal
from ..sources import DEPENDENT_LAUNCH


@formula(
    glyph="T_{dep}",
    dimension=SECOND,
    source=DEPENDENT_LAUNCH,
    increasing="start_time",
    decreasing="start_removal",
    curvature="concave",
)
def dependent_start_time(start_time: Any) -> Any:
    """Start of a kernel that the one before it hides in part: (1 - gamma_s) T_0.

    A kernel that is measured alone begins on an idle device. In a recorded graph its blocks may be there, and what does
    not depend on the kernel before it be done, when that one ends.

    Assumes: the same part of every start.

    Source: CUDA C++ Programming Guide, section Programmatic Dependent Launch and Synchronization.

    >>> dependent_start_time(10)
    10*complement(start_removal)
    """
    return complement(start_removal) * start_time

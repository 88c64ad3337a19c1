"""What recorded graphs take off the starts of kernels, and for which passes there is a graph."""

from __future__ import annotations

from typing import Any

from ..language.atoms import above_one, complement
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..language.symbols import recorded_tokens, start_removal
from ..sources import DEPENDENT_LAUNCH, VLLM_GRAPHS


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


@formula(
    glyph="r_{rec}",
    dimension=ONE,
    source=VLLM_GRAPHS,
    increasing="recorded_tokens",
    decreasing="new_tokens",
)
def recorded_share(new_tokens: Any) -> Any:
    """Whether a recorded graph runs a pass: 1 of n new tokens up to those of the largest graph, n_rec, 0 above.

    A graph has the shapes with which it was recorded. Software records graphs of some sizes at its start and pads a
    pass to the next of them; above the largest it launches every kernel again, and the gaps are whole.

    Assumes: rows that are added to come to the next size cost nothing; with sizes of 8 they are at most 7, of products
    that read the same weights.

    Source: vLLM, CUDA Graphs; vllm/config/vllm.py, _set_cudagraph_sizes.

    >>> from sympy import symbols
    >>> recorded_share(symbols("n"))
    complement(above_one(n/recorded_tokens))
    """
    return complement(above_one(new_tokens / recorded_tokens))

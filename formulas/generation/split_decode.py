"""Attention over a cache where software splits contexts when that pays.

A kernel takes one unit for each sequence and key-value head. Where they leave units idle, n_k = max(1, u / (b a'_kv))
parts of every context would fill the device: the kernel is then n_k times as fast, and a second one adds the parts.
A step takes the faster way, so that nothing is charged for splitting where nothing is split.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..kernels.thin_matmul import kernel_start_time
from ..kernels.windows import chunk_sums
from ..language.atoms import Atom, Max, Min, ceil_div, stop_gradient
from ..language.dimension import ONE, SECOND, Dimension, DimensionError, alike
from ..language.formula import formula
from ..language.symbols import compute_units, memory_bandwidth, memory_efficiency
from ..mathematics.series import excess, max_sum
from ..sources import BELTAGY, FLASH_DECODING
from .decode import attention_lines

FLAT = sympy.Float("1e-100")
"""Keeps a quotient and its derivative finite where one line is no steeper than another; no slope is as small."""


class least_sum(Atom):  # noqa: N801
    """The sum of min(max(a + b x, c + d x), max(e + f x, g + h x)) over x = start, start + 1, ..., `count` terms.

    The first maximum minus the second must not fall with x, so that the first is the smaller one up to some x* and the
    second from there on. Each line of the first exceeds one of the second from the quotient of their distances on, and
    the first maximum exceeds a line when one of its lines does: x* is the larger of two smaller quotients. Both parts
    are sums of a larger line. Terms next to x* are equal, so that rounding it moves nothing.

    >>> least_sum(4, 1, 0, 2, 0, 0, 5, 0, 0, 0)
    16
    >>> sum(min(2 * x, 5) for x in range(1, 5))
    16
    """

    nargs = 10
    operation = "least_sum"
    directions = (1,) * 10
    curvature = None

    @staticmethod
    def plain(*args: Any) -> Any:
        """The closed form, in the language's own functions."""
        count, start, a, b, c, d, e, f, g, h = args
        first, second = ((a, b), (c, d)), ((e, f), (g, h))
        passed = [
            Min(*(ceil_div(Max(0, high - low), Max(slope - other, FLAT)) for low, slope in first))
            for high, other in second
        ]
        before = stop_gradient(Max(0, Min(count, Max(*passed) - start)))
        return max_sum(before, start, a, b, c, d) + max_sum(count - before, start + before, e, f, g, h)

    def dimension(self, parts: list[Dimension]) -> Dimension:
        """That of the lines' values; count and start are numbers."""
        for part, arg in zip(parts[:2], self.args[:2], strict=True):
            if part != ONE:
                raise DimensionError(f"least_sum: the range is in {part}, not a number: {arg}")
        lines = [part for part, arg in zip(parts[2:], self.args[2:], strict=True) if arg != 0]
        return alike(lines, "sum", self)

    def _tex(self, printer: Any) -> str:
        count, start, *lines = map(printer._print, self.args)
        each = [f"{x} + {y}\\,x" for x, y in zip(lines[::2], lines[1::2], strict=True)]
        ways = [rf"\max\left({one},\; {other}\right)" for one, other in (each[:2], each[2:])]
        return rf"\sum_{{x={start}}}^{{{start} + {count} - 1}} \min\left({ways[0]},\; {ways[1]}\right)"


@formula(
    glyph="n_k",
    dimension=ONE,
    source=FLASH_DECODING,
    increasing="compute_units",
    decreasing="key_value_heads micro_batch",
    curvature="convex",
)
def context_parts(micro_batch: Any, key_value_heads: Any) -> Any:
    """Parts of each context that fill the device: max(1, u / (b a'_kv)), 1 where nothing has to be split.

    Assumes: a unit takes one part of one sequence and key-value head; contexts of many tokens a part.

    Source: Flash-Decoding (Dao et al. 2023): keys and values are split until the device is filled.

    >>> from sympy import symbols
    >>> context_parts(*symbols("b k"))
    Max(1, compute_units/(b*k))
    """
    return Max(1, compute_units / (micro_batch * key_value_heads))


def _ways(
    work_flops: Any,
    own_bytes: Any,
    key_time: Any,
    whole_key_time: Any,
    context_splits: Any,
    parts_bytes: Any,
    combine_time: Any,
) -> tuple[Any, ...]:
    """The lines of a step whose contexts are whole, on a part of the units, and of one whose contexts are split."""
    work, own, each = attention_lines(work_flops, own_bytes, key_time)
    parts = parts_bytes / (memory_bandwidth * memory_efficiency)
    whole = (0, context_splits * work, context_splits * own, whole_key_time)
    return (*whole, combine_time, work, combine_time + own + parts, each)


@formula(
    glyph="T_{dec}^{k}",
    dimension=SECOND,
    source=FLASH_DECODING,
    increasing="combine_time context context_splits gap_latency key_time launch_latency own_bytes parts_bytes "
    "whole_key_time work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def split_attention_time(
    context: Any,
    work_flops: Any,
    own_bytes: Any,
    key_time: Any,
    whole_key_time: Any,
    context_splits: Any,
    parts_bytes: Any,
    combine_time: Any,
) -> Any:
    """Time of attention to l keys, contexts whole or split, whichever is faster; and the kernel's start.

    The equation: min(max(n_k l W / F', n_k Q_0 / beta' + l tau_k1), max(l W / F', (Q_0 + Q_p) / beta' + l tau_k)
    + T_+).

    Assumes: units share rate and bandwidth equally; a whole context occupies one unit of n_k that could share it.

    Source: Flash-Decoding (Dao et al. 2023), with `decode_attention_time` for each way.

    >>> from sympy import symbols
    >>> split_attention_time(*symbols("l W Q_0 T_k T_w n Q_p T", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    gap_latency*complement(graph_removal) + launch_latency + least_sum(1, l, 0,
    W*n/(attention_efficiency*attention_rate), Q_0*n/(memory_bandwidth*memory_efficiency), T_w, T,
    W/(attention_efficiency*attention_rate), Q_0/(memory_bandwidth*memory_efficiency) +
    Q_p/(memory_bandwidth*memory_efficiency) + T, T_k)
    """
    lines = _ways(work_flops, own_bytes, key_time, whole_key_time, context_splits, parts_bytes, combine_time)
    return least_sum(1, context, *lines) + kernel_start_time()


@formula(
    glyph="T_{gen}^{k}",
    dimension=SECOND,
    source=FLASH_DECODING,
    increasing="combine_time context_splits first_context gap_latency key_time launch_latency own_bytes "
    "parts_bytes steps whole_key_time work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def split_generation_time(
    steps: Any,
    first_context: Any,
    work_flops: Any,
    own_bytes: Any,
    key_time: Any,
    whole_key_time: Any,
    context_splits: Any,
    parts_bytes: Any,
    combine_time: Any,
) -> Any:
    """Sum of `split_attention_time` over n_s steps with contexts l_0, l_0 + 1, ..., exact across every change.

    Assumes: as `split_attention_time`. Whole contexts lose ground as they grow: n_k >= 1 multiplies their slope.

    Source: derivation: each step is the smaller of two maxima of lines, so `least_sum` is their sum.

    >>> from sympy import symbols
    >>> split_generation_time(*symbols("n l W Q_0 T_k T_w k Q_p T", positive=True))  # doctest: +NORMALIZE_WHITESPACE
    n*(gap_latency*complement(graph_removal) + launch_latency) + least_sum(n, l, 0,
    W*k/(attention_efficiency*attention_rate), Q_0*k/(memory_bandwidth*memory_efficiency), T_w, T,
    W/(attention_efficiency*attention_rate), Q_0/(memory_bandwidth*memory_efficiency) +
    Q_p/(memory_bandwidth*memory_efficiency) + T, T_k)
    """
    lines = _ways(work_flops, own_bytes, key_time, whole_key_time, context_splits, parts_bytes, combine_time)
    return least_sum(steps, first_context, *lines) + steps * kernel_start_time()


@formula(
    glyph="T_{gen}^{wk}",
    dimension=SECOND,
    source=BELTAGY,
    increasing="combine_time context_splits gap_latency key_time launch_latency own_bytes parts_bytes steps "
    "whole_key_time work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def windowed_split_generation_time(
    steps: Any,
    first_context: Any,
    sliding_window: Any,
    work_flops: Any,
    own_bytes: Any,
    key_time: Any,
    whole_key_time: Any,
    context_splits: Any,
    parts_bytes: Any,
    combine_time: Any,
) -> Any:
    """Sum of `split_attention_time` over n_s steps of a layer that attends to the last w_a keys.

    Assumes: as `windowed_generation_time`.

    Source: derivation, as `windowed_generation_time` and `split_generation_time`.

    >>> from sympy import symbols
    >>> rest = symbols("W Q_0 T_k T_w k Q_p T", positive=True)
    >>> windowed_split_generation_time(6, 1, 4, *rest)  # doctest: +NORMALIZE_WHITESPACE
    6*gap_latency*complement(graph_removal) + 6*launch_latency + 2*least_sum(1, 4, 0,
    W*k/(attention_efficiency*attention_rate), Q_0*k/(memory_bandwidth*memory_efficiency), T_w, T,
    W/(attention_efficiency*attention_rate), Q_0/(memory_bandwidth*memory_efficiency) +
    Q_p/(memory_bandwidth*memory_efficiency) + T, T_k) + least_sum(4, 1, 0, W*k/(attention_efficiency*attention_rate),
    Q_0*k/(memory_bandwidth*memory_efficiency), T_w, T, W/(attention_efficiency*attention_rate),
    Q_0/(memory_bandwidth*memory_efficiency) + Q_p/(memory_bandwidth*memory_efficiency) + T, T_k)
    """
    lines = _ways(work_flops, own_bytes, key_time, whole_key_time, context_splits, parts_bytes, combine_time)
    growing = excess(sliding_window + 1, first_context)
    grown = least_sum(Min(steps, growing), first_context, *lines)
    full = excess(steps, growing) * least_sum(1, sliding_window, *lines)
    return grown + full + steps * kernel_start_time()


@formula(
    glyph="T_{gen}^{ck}",
    dimension=SECOND,
    source=BELTAGY,
    increasing="combine_time context_splits gap_latency key_time launch_latency own_bytes parts_bytes "
    "whole_key_time work_flops",
    decreasing="attention_efficiency attention_rate graph_removal memory_bandwidth memory_efficiency",
)
def chunked_split_generation_time(
    steps: Any,
    first_context: Any,
    sliding_window: Any,
    work_flops: Any,
    own_bytes: Any,
    key_time: Any,
    whole_key_time: Any,
    context_splits: Any,
    parts_bytes: Any,
    combine_time: Any,
) -> Any:
    """Sum of `split_attention_time` over n_s steps of a layer that attends to its own chunk of w_a tokens.

    Assumes: as `chunked_generation_time`.

    Source: derivation, as `chunked_generation_time` and `split_generation_time`.

    >>> from sympy import symbols
    >>> rest = symbols("W Q_0 T_k T_w k Q_p T", positive=True)
    >>> chunked_split_generation_time(6, 1, 4, *rest)  # doctest: +NORMALIZE_WHITESPACE
    6*gap_latency*complement(graph_removal) + 6*launch_latency + least_sum(2, 1, 0,
    W*k/(attention_efficiency*attention_rate), Q_0*k/(memory_bandwidth*memory_efficiency), T_w, T,
    W/(attention_efficiency*attention_rate), Q_0/(memory_bandwidth*memory_efficiency) +
    Q_p/(memory_bandwidth*memory_efficiency) + T, T_k) + least_sum(4, 1, 0, W*k/(attention_efficiency*attention_rate),
    Q_0*k/(memory_bandwidth*memory_efficiency), T_w, T, W/(attention_efficiency*attention_rate),
    Q_0/(memory_bandwidth*memory_efficiency) + Q_p/(memory_bandwidth*memory_efficiency) + T, T_k)
    """
    lines = _ways(work_flops, own_bytes, key_time, whole_key_time, context_splits, parts_bytes, combine_time)
    sums = chunk_sums(steps, first_context, sliding_window)
    total = sum(times * least_sum(count, first, *lines) for times, count, first in sums)
    return total + steps * kernel_start_time()

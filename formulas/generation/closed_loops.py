"""Closed loops: so many requests in flight, each replaced as it ends; the burst with which one begins; finite runs."""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import complement, ring_share
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..language.symbols.serving import PER_SECOND
from ..sources import LITTLE, REISER


@formula(
    glyph=r"n_{o}",
    dimension=ONE,
    source=REISER,
    increasing="concurrency decoding",
    curvature="concave",
)
def others_in_loop(decoding: Any, concurrency: Any) -> Any:
    """Of what N requests in flight do in the mean, that which one sees the others do: n (N - 1) / N.

    Assumes: requests that have lost step with one another.

    Source: Reiser and Lavenberg 1980: an arrival sees the state that the loop has with one request fewer; here all
    N alike, so that each of the others does an N-th of it.

    >>> others_in_loop(12, 4), others_in_loop(1, 1)
    (9, 0)
    """
    return decoding * ring_share(concurrency)


@formula(
    glyph=r"\Lambda_N",
    dimension=PER_SECOND,
    source=LITTLE,
    increasing="concurrency",
    decreasing="decode_steps first_token_time iteration_time",
    curvature="concave",
)
def loop_load(concurrency: Any, first_token_time: Any, decode_steps: Any, iteration_time: Any) -> Any:
    """Requests in a second of a closed loop: N / (T_ttft + N_dec tau).

    Assumes: the next request is sent at the moment at which one ends.

    Source: Little 1961: N requests are in flight, each for the time of a request.

    >>> loop_load(10, 1, 99, 1)
    1/10
    """
    return concurrency / (first_token_time + decode_steps * iteration_time)


@formula(
    glyph="x_N",
    dimension=ONE,
    source=LITTLE,
    increasing="concurrency",
    decreasing="chunks decode_steps missed",
    curvature="concave",
)
def loop_arrivals(concurrency: Any, decode_steps: Any, chunks: Any, missed: Any) -> Any:
    """Requests that end, and begin, in a mean iteration of a loop without queues: N / (N_dec + K + 1).

    One request takes K iterations of prefill and N_dec steps, and misses the iteration that begins as it is sent
    (m = 1; 0 where all wait for it).

    Assumes: requests of one length, whose prefills follow one another as in the burst with which they began, so
    that none waits behind another.

    Source: Little 1961, counted in iterations.

    >>> loop_arrivals(10, 95, 4, 1)
    1/10
    """
    return concurrency / (decode_steps + chunks + missed)


@formula(
    glyph="g_o",
    dimension=ONE,
    source=REISER,
    increasing="deviation idle",
    decreasing="spacing",
    curvature="concave",
)
def order_lost(deviation: Any, spacing: Any, idle: Any) -> Any:
    """Part of the wait of random arrivals that is left in a loop: (1 + 0.34 d / (sigma (1 - rho)^2))^(-1/2).

    Prefill leaves requests in order, d iterations apart, and the numbers of tokens that they generate, which deviate
    by sigma, mix them up again.

    Assumes: an interpolation between two limits; in between it is tested against simulation only. sigma large:
    arrivals are random (1). rho -> 1: the wait is S E|Z| for a normal Z of the variance that the number of a
    window's requests has where each of a regular order is displaced on its own, 2 / sqrt(3) sigma / d.

    Source: derivation of the limits: sum of p (1 - p) over the order, for both ends of a window and a uniform law of
    width 2 sqrt(3) sigma, is 2 / sqrt(3) sigma / d; E|Z| = sqrt(2 / pi) of its deviation; the wait of random arrivals
    is S rho / (2 (1 - rho)); both meet with sqrt(3) pi / 16 = 0.34.

    >>> from sympy import oo
    >>> order_lost(oo, 1, 1)
    1
    """
    return sympy.sqrt(1 / (1 + sympy.Rational(17, 50) * spacing / (deviation * idle**2)))


@formula(
    glyph=r"\rho_k",
    dimension=ONE,
    source=LITTLE,
    decreasing="deviation waves",
    increasing="ramp",
    curvature="concave",
)
def wave_occupancy(ramp: Any, deviation: Any, waves: Any) -> Any:
    """Part of the iterations that prefill while the k-th wave of a loop begins: R / sqrt(R^2 + 4 pi k sigma^2).

    A burst is prefilled in R iterations without a gap; its requests end, and are replaced, spread over as many and by
    the sum of what k of them generate more or less than the mean.

    Assumes: that waves have not met (then it is that of the whole loop, which is less); as seen by a request.

    Source: derivation: of R arrivals of the density f one sees R times the integral of f^2, which is 1 / R of a
    uniform law and 1 / (2 sqrt(pi) s) of a normal one; in between the root of both squares. 4 pi = 88 / 7.

    >>> wave_occupancy(100, 0, 3)
    1
    """
    return sympy.sqrt(1 / (1 + sympy.Rational(88, 7) * waves * (deviation / ramp) ** 2))


@formula(
    glyph="n_{bst}",
    dimension=ONE,
    source=LITTLE,
    increasing="chunk_prompts packs_behind risen",
)
def burst_decoding(chunk_prompts: Any, packs_behind: Any, risen: Any) -> Any:
    """Sequences that decode beside a burst's prefill, in the mean that its times weigh: J Q (1 - (1 - z)^3) / 3.

    Q packs come after the first one. The number of sequences rises by J with each of them, until a part z of them is
    done; then as many end as begin.

    Assumes: many packs, so that sums are integrals; with z = 1 it is J Q / 3, exact for whole packs.

    Source: derivation: the time of pack i counts in the first token of all behind it, so that it has the weight Q - i;
    the integral of (Q - y) J min(y, z Q) over Q^2 / 2.

    >>> burst_decoding(2, 9, 1)
    6
    """
    return chunk_prompts * packs_behind * complement(complement(risen) ** 3) / 3


@formula(
    glyph="n_{bmn}",
    dimension=ONE,
    source=LITTLE,
    increasing="chunk_prompts packs_behind risen",
)
def mean_burst_decoding(chunk_prompts: Any, packs_behind: Any, risen: Any) -> Any:
    """Sequences that decode beside a burst's prefill, in the mean over its packs: J Q (1 - (1 - z)^2) / 2.

    Assumes: as `burst_decoding`.

    Source: derivation: the integral of J min(y, z Q) over Q.

    >>> mean_burst_decoding(2, 9, 1)
    9
    """
    return chunk_prompts * packs_behind * complement(complement(risen) ** 2) / 2


@formula(
    glyph=r"T_{burst}",
    dimension=SECOND,
    source=LITTLE,
    increasing="chunks mixed_time packs",
    curvature="convex",
)
def burst_first_token_time(chunks: Any, packs: Any, mixed_time: Any) -> Any:
    """Mean time to the first token of requests that arrive at once: K (q + 1) / 2 tau_m.

    q packs of J prompts are prefilled one after another, K iterations each.

    Assumes: tau_m is the time beside `burst_decoding` sequences.

    Source: derivation: the i-th pack ends after the sum of K (a + b J j) over j < i, whose mean over the packs is
    K (q + 1) / 2 (a + b J (q - 1) / 3): exact for iterations of affine time.

    >>> burst_first_token_time(2, 9, 3)
    30
    """
    return chunks * (packs + 1) / 2 * mixed_time


@formula(
    glyph=r"T_{last}",
    dimension=SECOND,
    source=LITTLE,
    increasing="chunks mixed_time packs",
    curvature="affine",
)
def last_first_token_time(chunks: Any, packs: Any, mixed_time: Any) -> Any:
    """Time to the first token of the last of requests that arrive at once: K q tau_m.

    Assumes: tau_m is the time beside `mean_burst_decoding` sequences.

    Source: the sum of the times of all packs.

    >>> last_first_token_time(2, 9, 3)
    54
    """
    return chunks * packs * mixed_time


@formula(
    glyph=r"T_{run}",
    dimension=SECOND,
    source=LITTLE,
    increasing="burst_time first_token_time",
)
def finite_run_time(burst_time: Any, first_token_time: Any, burst_share: Any) -> Any:
    """Mean time to the first token of a run whose first requests, a part w, arrive at once: w T_b + (1 - w) T_ttft.

    Assumes: the loop is steady behind its burst.

    Source: the mean of both parts; a benchmark of M requests with N in flight has w = N / M.

    >>> from sympy import Rational
    >>> finite_run_time(11, 1, Rational(1, 10))
    2
    """
    return burst_share * burst_time + complement(burst_share) * first_token_time

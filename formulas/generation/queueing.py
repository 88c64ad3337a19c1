"""Waits of requests in a serving system: for an iteration, for prefill, for memory; and bounds of long ones."""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import complement, less_one
from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols.serving import PER_SECOND
from ..mathematics.fractions import fraction_power
from ..sources import FUHRMANN, SAKASEGAWA, SARATHI


@formula(
    glyph="W_q",
    dimension=SECOND,
    source=SAKASEGAWA,
    increasing="load occupancy service_time",
    decreasing="servers spare_load",
)
def queue_wait(service_time: Any, servers: Any, occupancy: Any, load: Any, spare_load: Any) -> Any:
    """Mean wait for one of c places: S / (2 c) theta^(sqrt(2 (c + 1)) - 1) / (1 - rho), rho = Lambda / capacity.

    Assumes: Poisson arrivals, services of one length S, first come first served. theta is the part of the places
    that is taken; it is rho where the length of a service does not depend on the load. With one place, and theta = rho,
    it is the formula of Pollaczek and Khinchine, S rho / (2 (1 - rho)), which is exact.

    Source: Sakasegawa 1977, with half the wait of exponential services (Allen and Cunneen).

    >>> from sympy import Rational
    >>> queue_wait(2, 1, Rational(1, 2), 1, 1)
    1
    """
    chance = fraction_power(occupancy, less_one(sympy.sqrt(2 * (servers + 1))))
    return service_time / (2 * servers) * chance * (1 + load / spare_load)


@formula(
    glyph=r"\Lambda_e",
    dimension=PER_SECOND,
    source=SAKASEGAWA,
    increasing="last_spare_load spare_load",
)
def spare_of_queue(occupancy: Any, spare_load: Any, last_spare_load: Any) -> Any:
    """Spare load that a queue for prefill has in effect: 1 / ((1 - theta^2) / Lambda_s + theta^2 / Lambda_s').

    Prompts that wait are prefilled while sequences pile up, which slows them: in a light load as many as in the mean,
    in a long queue as many as at the capacity.

    Assumes: an interpolation between the two limits, exact in both; in between it is tested against simulation only.

    Source: derivation of the limits: theta -> 0 leaves the mean of the load, theta -> 1 that of the capacity.

    >>> from sympy import Rational
    >>> spare_of_queue(0, 2, 1), spare_of_queue(1, 2, 1), spare_of_queue(Rational(1, 2), 4, 1)
    (2, 1, 16/7)
    """
    squared = occupancy**2
    return 1 / (complement(squared) / spare_load + squared / last_spare_load)


@formula(
    glyph="W_b",
    dimension=SECOND,
    source=FUHRMANN,
    increasing="decode_share decode_time mixed_share mixed_time",
    curvature="convex",
)
def boundary_wait(decode_share: Any, decode_time: Any, mixed_share: Any, mixed_time: Any) -> Any:
    """Mean wait for the iteration in progress to end: (v_d tau_d + v_m tau_m) / 2.

    Assumes: iterations of each kind have one length. v_d is the part of the time, while no prompt is served, in
    which sequences decode; v_m counts iterations that prefill only where prompts may join the next one: behind a
    prompt that is cut, `queue_wait` has the rest of its service.

    Source: a decode iteration is a vacation of the prefill; the mean wait of a queue with vacations is the queue's
    and half a vacation (Fuhrmann and Cooper 1985).

    >>> from sympy import symbols
    >>> boundary_wait(*symbols("v d w m"))
    d*v/2 + m*w/2
    """
    return (decode_share * decode_time + mixed_share * mixed_time) / 2


@formula(
    glyph="T_{ttft}",
    dimension=SECOND,
    source=FUHRMANN,
    increasing="boundary_time cache_time prefill_time queue_time",
    curvature="convex",
)
def mean_first_token_time(boundary_time: Any, queue_time: Any, cache_time: Any, prefill_time: Any) -> Any:
    """Mean time to the first token (TTFT): W_b + W_q + W_k + S_p.

    Assumes: the first token comes out of the iteration of the prompt's last chunk.

    Source: the sum of the parts of a request's way; waits for cache and for prefill are taken as independent.

    >>> from sympy import symbols
    >>> mean_first_token_time(*symbols("b q k s"))
    b + k + q + s
    """
    return boundary_time + queue_time + cache_time + prefill_time


@formula(
    glyph="T_{e2e}",
    dimension=SECOND,
    source=SARATHI,
    increasing="first_token_time generate iteration_time",
)
def request_time(first_token_time: Any, generate: Any, iteration_time: Any) -> Any:
    """Mean time of a request: T_ttft + (G - 1) tau, tau the time per output token.

    Assumes: every later token takes tau in the mean.

    Source: the definition of time per output token.

    >>> request_time(1, 11, 2)
    21
    """
    return first_token_time + less_one(generate) * iteration_time


@formula(
    glyph=r"\sigma_W",
    dimension=SECOND,
    source=FUHRMANN,
    increasing="decode_time load queue_time service_time",
    decreasing="spare_load",
    curvature="convex",
)
def wait_spread(queue_time: Any, service_time: Any, load: Any, spare_load: Any, decode_time: Any) -> Any:
    """Bound of the standard deviation of the wait for prefill, a prompt at a time.

    The equation: sqrt(W_q^2 + S^2 / 3 Lambda / (capacity - Lambda) + tau_d^2 / 9).

    Assumes: Poisson arrivals and services of one length S; the rest of a decode iteration is uniform where there is
    one, of variance at most tau_d^2 / 9.

    Source: the second moment of the wait of an M/G/1 queue (Takacs): Var = W^2 + Lambda E[S^3] / (3 (1 - rho)); the
    vacation's part is independent (Fuhrmann and Cooper 1985).

    >>> wait_spread(2, 3, 4, 1, 0)
    4
    """
    return sympy.sqrt(queue_time**2 + service_time**2 / 3 * load / spare_load + decode_time**2 / 9)


@formula(
    glyph=r"T_\epsilon",
    dimension=SECOND,
    source=FUHRMANN,
    increasing="first_token_time wait_deviation",
    decreasing="tail",
    curvature="convex",
)
def first_token_bound(first_token_time: Any, wait_deviation: Any, tail: Any) -> Any:
    """A time that the first token exceeds with probability epsilon at most: T_ttft + sigma_W / sqrt(epsilon).

    Assumes: nothing but mean and deviation of the wait.

    Source: Cantelli's inequality, P(W - E W >= t) <= sigma^2 / (sigma^2 + t^2) <= sigma^2 / t^2.

    >>> first_token_bound(1, 2, sympy.Rational(1, 100))
    21
    """
    return first_token_time + wait_deviation / sympy.sqrt(tail)

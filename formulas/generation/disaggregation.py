"""Prefill and decode on devices of their own: what each pool serves, how to divide devices, and moving the cache."""

from __future__ import annotations

from typing import Any

from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..language.symbols.serving import PER_SECOND
from ..sources import DISTSERVE, LITTLE


@formula(
    glyph=r"\Lambda_p",
    dimension=PER_SECOND,
    source=DISTSERVE,
    increasing="wait_slack",
    decreasing="service_time",
    curvature="concave",
)
def prefill_pool_load(service_time: Any, wait_slack: Any) -> Any:
    """Largest load of an instance that only prefills, where the mean wait may be w: 1 / (S + S^2 / (2 w)).

    Assumes: Poisson arrivals, one prompt at a time, services of one length.

    Source: Zhong et al. 2024 section 3.1 (M/D/1): w = Lambda S^2 / (2 (1 - Lambda S)), solved for Lambda.

    >>> prefill_pool_load(1, 1)
    2/3
    """
    return 1 / (service_time + service_time**2 / (2 * wait_slack))


@formula(
    glyph=r"\Lambda_d",
    dimension=PER_SECOND,
    source=LITTLE,
    increasing="decoding",
    decreasing="decode_steps decode_time",
    curvature="affine",
)
def decode_pool_load(decoding: Any, decode_steps: Any, decode_time: Any) -> Any:
    """Load at which an instance that only decodes holds b_d sequences: b_d / (N_dec tau_d(b_d)).

    Assumes: a steady state.

    Source: Little 1961.

    >>> decode_pool_load(32, 100, 2)
    4/25
    """
    return decoding / (decode_steps * decode_time)


@formula(
    glyph="y_d",
    dimension=ONE,
    source=DISTSERVE,
    increasing="prefill_load",
    decreasing="decode_load",
    curvature="concave",
)
def decode_pool_share(prefill_load: Any, decode_load: Any) -> Any:
    """Part of the instances that decode where neither pool waits for the other: 1 / (1 + Lambda_d / Lambda_p).

    Assumes: instances of one size; their number may be divided at will.

    Source: y_p Lambda_p = y_d Lambda_d with y_p + y_d = 1.

    >>> decode_pool_share(3, 1)
    3/4
    """
    return 1 / (1 + decode_load / prefill_load)


@formula(
    glyph=r"\Lambda_{pd}",
    dimension=PER_SECOND,
    source=DISTSERVE,
    increasing="decode_load prefill_load",
    curvature="concave",
)
def balanced_pool_load(prefill_load: Any, decode_load: Any) -> Any:
    """Requests in a second for each instance at the best division: 1 / (1 / Lambda_p + 1 / Lambda_d).

    Assumes: as `decode_pool_share`.

    Source: y_p Lambda_p at the best share.

    >>> balanced_pool_load(3, 1)
    3/4
    """
    return 1 / (1 / prefill_load + 1 / decode_load)


@formula(
    glyph="T_{mov}",
    dimension=SECOND,
    source=DISTSERVE,
    increasing="cache_bytes link_latency",
    decreasing="link_bandwidth",
    curvature="convex",
)
def cache_transfer_time(cache_bytes: Any, link_bandwidth: Any, link_latency: Any) -> Any:
    """Time to send a prompt's cache to the devices that decode: Q_s / beta_l + alpha.

    Assumes: every device sends its own part over its own link, after the prefill.

    Source: Zhong et al. 2024 section 3.3, with the start of a message.

    >>> cache_transfer_time(10, 5, 1)
    3
    """
    return cache_bytes / link_bandwidth + link_latency

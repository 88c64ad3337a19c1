"""Energy of work, of bytes and of waiting, and the time that a power cap leaves."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max
from ..language.dimension import JOULE, POWER, SECOND
from ..language.formula import formula
from ..sources import BARROSO, ENERGY_ROOFLINE, PUE


@formula(
    glyph="E_W",
    dimension=JOULE,
    source=ENERGY_ROOFLINE,
    increasing="flop_energy work_flops",
    curvature="affine",
)
def work_energy(work_flops: Any, flop_energy: Any) -> Any:
    """Energy of FLOPs, W e_W.

    Assumes: a FLOP costs the same wherever it stands; its operands' registers are in e_W.

    Source: Choi et al. 2013, W e_flop.

    >>> from sympy import symbols
    >>> work_energy(*symbols("W e"))
    W*e
    """
    return work_flops * flop_energy


@formula(
    glyph="E_Q",
    dimension=JOULE,
    source=ENERGY_ROOFLINE,
    increasing="byte_energy traffic_bytes",
    curvature="affine",
)
def traffic_energy(traffic_bytes: Any, byte_energy: Any) -> Any:
    """Energy of bytes moved at one level, Q e_b.

    Assumes: a byte costs the same at any bandwidth.

    Source: Choi et al. 2013, Q e_mem, at every level.

    >>> from sympy import symbols
    >>> traffic_energy(*symbols("Q e"))
    Q*e
    """
    return traffic_bytes * byte_energy


@formula(
    glyph="E_s",
    dimension=JOULE,
    source=ENERGY_ROOFLINE,
    increasing="busy_time devices static_power",
    curvature="affine",
)
def static_energy(static_power: Any, devices: Any, busy_time: Any) -> Any:
    """Energy that devices draw whatever they do, P_s D T.

    Assumes: no device sleeps while it waits.

    Source: Choi et al. 2013, pi_0 T.

    >>> from sympy import symbols
    >>> static_energy(*symbols("P D T"))
    D*P*T
    """
    return static_power * devices * busy_time


@formula(
    glyph="P_m",
    dimension=POWER,
    source=ENERGY_ROOFLINE,
    increasing="device_energy",
    decreasing="busy_time devices",
    curvature="affine",
)
def mean_power(device_energy: Any, devices: Any, busy_time: Any) -> Any:
    """Mean power of a device, E_tot / (D T).

    Assumes: all devices draw alike.

    Source: energy over time.

    >>> from sympy import symbols
    >>> mean_power(*symbols("E D T"))
    E/(D*T)
    """
    return device_energy / (devices * busy_time)


@formula(
    glyph="T_P",
    dimension=SECOND,
    source=ENERGY_ROOFLINE,
    increasing="busy_time dynamic_energy",
    decreasing="devices power_cap",
    curvature="convex",
)
def capped_time(busy_time: Any, dynamic_energy: Any, devices: Any, power_cap: Any) -> Any:
    """Time under a power cap, max(T, E_d / (D P_c)): power is one more resource.

    Assumes: P_c is what the cap leaves beyond the static power; the clock falls at a fixed voltage until the mean power
    fits, and energy per operation stays. A lower voltage would do better.

    Source: Choi et al. 2013, the power cap of the roofline.

    >>> from sympy import symbols
    >>> capped_time(*symbols("T E D P"))
    Max(T, E/(D*P))
    """
    return Max(busy_time, dynamic_energy / (devices * power_cap))


@formula(
    glyph=r"E_\pi",
    dimension=JOULE,
    source=PUE,
    increasing="device_energy facility_overhead",
    curvature="affine",
)
def facility_energy(device_energy: Any, facility_overhead: Any) -> Any:
    """Energy of the data centre for that of its computers, pi E_tot.

    Assumes: cooling and distribution grow with the load.

    Source: ISO/IEC 30134-2, power usage effectiveness; Barroso et al. 2018 section 5.1.

    >>> from sympy import symbols
    >>> facility_energy(*symbols("E pi"))
    E*pi
    """
    return device_energy * facility_overhead


@formula(
    glyph="E_t",
    dimension=JOULE,
    source=BARROSO,
    increasing="device_energy",
    decreasing="produced_tokens",
    curvature="affine",
)
def token_energy(device_energy: Any, produced_tokens: Any) -> Any:
    """Energy of a token, E_tot / N_t.

    Assumes: all tokens share the energy alike.

    Source: energy over tokens.

    >>> from sympy import symbols
    >>> token_energy(*symbols("E N"))
    E/N
    """
    return device_energy / produced_tokens

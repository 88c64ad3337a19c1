"""Memory stacks and links of a chip: what the package holds, what leaves the die's edges, and how much it carries."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min
from ..language.dimension import BANDWIDTH, ONE
from ..language.formula import formula
from ..sources import DEEPFLOW
from .chip import floor_div, powered_bandwidth


@formula(
    glyph="N_s",
    dimension=ONE,
    source=DEEPFLOW,
    increasing="area_budget package_space",
    decreasing="controller_area stack_area",
)
def memory_stacks(package_space: Any, stack_area: Any, area_budget: Any, controller_area: Any) -> Any:
    """Memory stacks of a package, min(floor(A_p / A_stk), floor(A_bud / a_m)): those beside the die with a controller.

    Assumes: stacks lie beside the die; each needs a controller on it.

    Source: Ardalani et al. 2022.

    >>> from sympy import symbols
    >>> memory_stacks(*symbols("A_p a_s A a_m"))
    Min(floor_div(A, a_m), floor_div(A_p, a_s))
    """
    return Min(floor_div(package_space, stack_area), floor_div(area_budget, controller_area))


@formula(
    glyph="n_{edg}",
    dimension=ONE,
    source=DEEPFLOW,
    increasing="edge_length edge_share link_density",
)
def edge_links(edge_length: Any, edge_share: Any, link_density: Any) -> Any:
    """Links that leave a share of the die's edges, floor(l phi_e rho).

    Assumes: links leave at one density, in one row of bumps or several.

    Source: Ardalani et al. 2022: 4 sqrt(A_chip) share links_per_mm.

    >>> from sympy import symbols
    >>> edge_links(*symbols("l phi rho"))
    floor_div(l*phi*rho, 1)
    """
    return floor_div(edge_length * edge_share * link_density, 1)


@formula(
    glyph="n_m",
    dimension=ONE,
    source=DEEPFLOW,
    increasing="edge_length edge_share link_density stack_links stacks",
)
def memory_links(edge_length: Any, edge_share: Any, link_density: Any, stacks: Any, stack_links: Any) -> Any:
    """Data links to memory, min(edge links, N_s n_stk).

    Assumes: a stack whose links do not all fit is used in part.

    Source: Ardalani et al. 2022.

    >>> from sympy import symbols
    >>> memory_links(*symbols("l phi rho N n"))
    Min(N*n, floor_div(l*phi*rho, 1))
    """
    return Min(edge_links(edge_length, edge_share, link_density), stacks * stack_links)


@formula(
    glyph="n_n",
    dimension=ONE,
    source=DEEPFLOW,
    increasing="area_budget edge_length edge_share link_density",
    decreasing="link_area",
)
def network_links(edge_length: Any, edge_share: Any, link_density: Any, area_budget: Any, link_area: Any) -> Any:
    """Links of a network, min(edge links, floor(A_bud / a_l)).

    Assumes: every link needs its circuits on the die.

    Source: Ardalani et al. 2022.

    >>> from sympy import symbols
    >>> network_links(*symbols("l phi rho A a"))
    Min(floor_div(A, a), floor_div(l*phi*rho, 1))
    """
    return Min(edge_links(edge_length, edge_share, link_density), floor_div(area_budget, link_area))


@formula(
    glyph=r"\beta_{clk}",
    dimension=BANDWIDTH,
    source=DEEPFLOW,
    increasing="beat_bytes frequency links",
    curvature="affine",
)
def clocked_bandwidth(links: Any, beat_bytes: Any, frequency: Any) -> Any:
    """Bandwidth of links, n_lnk b_l f_clk, with an eighth of a byte a beat.

    Assumes: a link carries a bit in every cycle.

    Source: Ardalani et al. 2022: links f_clk / 8.

    >>> from sympy import symbols
    >>> clocked_bandwidth(*symbols("n b f"))
    b*f*n
    """
    return links * beat_bytes * frequency


@formula(
    glyph=r"\beta_{lnk}",
    dimension=BANDWIDTH,
    source=DEEPFLOW,
    increasing="beat_bytes limit_frequency links power_budget",
    decreasing="byte_energy",
    curvature="concave",
)
def linked_bandwidth(links: Any, beat_bytes: Any, limit_frequency: Any, power_budget: Any, byte_energy: Any) -> Any:
    """Bandwidth of links at the rate of their standard, or at what their power moves: min(n_lnk b_l f_m, P_bud / e_b).

    Assumes: the energy of a byte is fixed, as where a standard fixes the voltage.

    Source: Ardalani et al. 2022, at a fixed voltage.

    >>> from sympy import symbols
    >>> linked_bandwidth(*symbols("n b f P e"))
    Min(P/e, b*f*n)
    """
    return Min(clocked_bandwidth(links, beat_bytes, limit_frequency), powered_bandwidth(power_budget, byte_energy))

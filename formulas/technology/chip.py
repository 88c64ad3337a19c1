"""A chip from its budgets: how many cores and banks an area holds, and what they compute, store and give.

An area holds whole units (`floor_div`); a clock comes from `voltage`. Powers are budgets: of what is not spent on
leaking, a memory moves bytes.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Atom, Min, ceil_div, complement
from ..language.dimension import BANDWIDTH, BYTE, FLOP, JOULE, METRE, ONE, POWER, RATE, Dimension, alike
from ..language.formula import formula
from ..sources import DEEPFLOW


class floor_div(Atom):  # noqa: N801
    """How many whole things of a size an amount holds: `floor(amount / size)`, kept whole.

    Its relaxation is the quotient itself, which is never less.

    >>> floor_div(525, 75), floor_div(524, 75)
    (7, 6)
    """

    nargs = 2
    operation = "floor_div"
    directions = (1, -1)
    curvature = None

    @staticmethod
    def plain(amount: Any, size: Any) -> Any:
        """The ceiling of the opposite, turned."""
        return -ceil_div(-amount, size)

    @classmethod
    def value(cls, amount: Any, size: Any) -> Any:
        """The value at numbers."""
        return sympy.floor(amount / size)

    def relaxed(self) -> Any:
        """The quotient without rounding: an upper bound, and a monomial of monomials."""
        return self.args[0] / self.args[1]

    def dimension(self, parts: list[Dimension]) -> Dimension:
        """A count; amount and size share a dimension."""
        alike(parts, "ratio", self)
        return ONE

    def _tex(self, printer: Any) -> str:
        amount, size = map(printer._print, self.args)
        return rf"\left\lfloor \frac{{{amount}}}{{{size}}} \right\rfloor"


@formula(
    glyph="N_c",
    dimension=ONE,
    source=DEEPFLOW,
    increasing="area_budget",
    decreasing="unit_area",
)
def units_of_area(area_budget: Any, unit_area: Any) -> Any:
    """Whole units on an area, floor(A_bud / A_1).

    Assumes: units tile the area; wiring between them is in their area.

    Source: Ardalani et al. 2022: N = floor(A_core / A_mcu).

    >>> from sympy import symbols
    >>> units_of_area(*symbols("A a"))
    floor_div(A, a)
    """
    return floor_div(area_budget, unit_area)


@formula(
    glyph="F",
    dimension=RATE,
    source=DEEPFLOW,
    increasing="cores cycle_flops frequency",
    curvature="affine",
)
def clocked_rate(cores: Any, cycle_flops: Any, frequency: Any) -> Any:
    """Peak rate of units that work in step, N_c c_f f_clk.

    Assumes: every unit computes in every cycle.

    Source: Ardalani et al. 2022, without their utilisation, which is an efficiency of a run.

    >>> from sympy import symbols
    >>> clocked_rate(*symbols("N c f"))
    N*c*f
    """
    return cores * cycle_flops * frequency


@formula(
    glyph="e_W",
    dimension=JOULE / FLOP,
    source=DEEPFLOW,
    increasing="nominal_power",
    decreasing="cycle_flops nominal_frequency",
    curvature="affine",
)
def nominal_flop_energy(nominal_power: Any, cycle_flops: Any, nominal_frequency: Any) -> Any:
    """Energy of a FLOP of one unit at the nominal voltage, P_0 / (c_f f_0).

    Assumes: P_0 is the power of one unit, all of it dynamic.

    Source: power over rate. At another voltage it is (V / V_0)^2 of it.

    >>> from sympy import symbols
    >>> nominal_flop_energy(*symbols("P c f"))
    P/(c*f)
    """
    return nominal_power / (cycle_flops * nominal_frequency)


@formula(
    glyph="N_b",
    dimension=ONE,
    source=DEEPFLOW,
    increasing="area_budget cell_share",
    decreasing="bank_bytes cell_area port_area sharers",
)
def sram_banks(area_budget: Any, cell_share: Any, bank_bytes: Any, cell_area: Any, sharers: Any, port_area: Any) -> Any:
    """Banks of an on-chip memory, floor(A_bud / (b a_b / eta_a + n a_p)).

    Assumes: a part eta_a of the arrays is cells; every bank has a port for each of n groups of cores.

    Source: Ardalani et al. 2022; solved for the banks: N (b a_b / eta_a + n a_p) = A_bud.

    >>> from sympy import symbols
    >>> sram_banks(*symbols("A eta b a n a_p"))
    floor_div(A, a*b/eta + a_p*n)
    """
    return floor_div(area_budget, bank_bytes * cell_area / cell_share + sharers * port_area)


@formula(
    glyph="C_s",
    dimension=BYTE,
    source=DEEPFLOW,
    increasing="bank_bytes banks",
    curvature="affine",
)
def banked_bytes(banks: Any, bank_bytes: Any) -> Any:
    """Bytes of an on-chip memory, N_b b_k.

    Assumes: none are spares.

    Source: Ardalani et al. 2022.

    >>> from sympy import symbols
    >>> banked_bytes(*symbols("N b"))
    N*b
    """
    return banks * bank_bytes


@formula(
    glyph="P_d",
    dimension=POWER,
    source=DEEPFLOW,
    increasing="power_budget",
    decreasing="static_density stored_bytes",
)
def moving_power(power_budget: Any, static_density: Any, stored_bytes: Any) -> Any:
    """What leaking leaves of a memory's power, P_bud (1 - min(1, p_s C / P_bud)).

    Assumes: a memory that would leak more than its budget moves nothing.

    Source: Ardalani et al. 2022, P_bud - P_static; so written it provably rises with P_bud.

    >>> from sympy import symbols
    >>> moving_power(*symbols("P p C"))
    P*complement(Min(1, C*p/P))
    """
    return power_budget * complement(Min(1, static_density * stored_bytes / power_budget))


@formula(
    glyph=r"\beta_P",
    dimension=BANDWIDTH,
    source=DEEPFLOW,
    increasing="power_budget",
    decreasing="byte_energy",
    curvature="affine",
)
def powered_bandwidth(power_budget: Any, byte_energy: Any) -> Any:
    """Bandwidth that a power moves, P_bud / e_b.

    Assumes: a byte costs the same whatever the bandwidth.

    Source: Ardalani et al. 2022.

    >>> from sympy import symbols
    >>> powered_bandwidth(*symbols("P e"))
    P/e
    """
    return power_budget / byte_energy


@formula(
    glyph=r"\beta_2",
    dimension=BANDWIDTH,
    source=DEEPFLOW,
    increasing="cycle_bytes frequency power_budget",
    decreasing="byte_energy",
    curvature="concave",
)
def sram_bandwidth(power_budget: Any, byte_energy: Any, cycle_bytes: Any, frequency: Any) -> Any:
    """Bandwidth of an on-chip memory, min(P_bud / e_b, c_b f_clk): what its power moves, and what its wires carry.

    Assumes: the wires run at the cores' clock; P_bud is what leaking leaves.

    Source: Ardalani et al. 2022 for the power; the width times the clock is how vendors state it.

    >>> from sympy import symbols
    >>> sram_bandwidth(*symbols("P e c f"))
    Min(P/e, c*f)
    """
    return Min(powered_bandwidth(power_budget, byte_energy), cycle_bytes * frequency)


@formula(
    glyph=r"\ell",
    dimension=METRE,
    source=DEEPFLOW,
    increasing="die_area",
    curvature="affine",
)
def die_edges(die_area: Any) -> Any:
    """Length of the four edges of a square die, 4 sqrt(A_d).

    Assumes: the die is square.

    Source: Ardalani et al. 2022; of all rectangles of an area the square has the shortest edge.

    >>> from sympy import symbols
    >>> die_edges(symbols("A", positive=True))
    4*sqrt(A)
    """
    return 4 * sympy.sqrt(die_area)

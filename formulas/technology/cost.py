"""Cost of chips and of their use: wafers, yield, packages, hours, tokens."""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Atom, Max, Min, complement
from ..language.dimension import DOLLAR, ONE, SECOND
from ..language.formula import formula
from ..mathematics.fractions import E_INVERSE, fraction_power
from ..sources import ACTUARY, BARROSO, DE_VRIES, HENNESSY, MURPHY, STAPPER

PI = sympy.Float("3.1415926535897932384626433832795", 32)
"""The ratio of a circle, as a number: it has no dimension rule of its own."""


class clustered_part(Atom):  # noqa: N801
    """The part of dies without a defect where x are expected and defects cluster: (1 + x / alpha)^(-alpha).

    It falls with x, and falls from 1 to exp(-x) as alpha grows: the fewer clusters, the more dies are hit.

    >>> clustered_part(1, 1), clustered_part(3, 2)
    (1/2, 4/25)
    """

    nargs = 2
    operation = "clustered_part"
    directions = (-1, -1)
    curvature = None

    @staticmethod
    def plain(expected: Any, clustering: Any) -> Any:
        """The power of a fraction."""
        return fraction_power(1 / (1 + expected / clustering), clustering)

    @classmethod
    def value(cls, expected: Any, clustering: Any) -> Any:
        """The value at numbers."""
        return (1 + expected / clustering) ** (-clustering)

    def _tex(self, printer: Any) -> str:
        expected, clustering = map(printer._print, self.args)
        return rf"\left(1 + \frac{{{expected}}}{{{clustering}}}\right)^{{-{clustering}}}"


class triangular_part(Atom):  # noqa: N801
    """The part of dies without a defect where x are expected, the density varying as a triangle: ((1 - e^-x) / x)^2.

    It falls with x and is log-log concave.

    >>> triangular_part(0)
    1
    """

    nargs = 1
    operation = "triangular_part"
    directions = (-1,)
    curvature = "concave"

    @staticmethod
    def plain(expected: Any) -> Any:
        """The square of the mean of e^-t for t from 0 to x; below 1e-7, where it is 1 within 1e-7, that of 1e-7."""
        expected = Max(expected, sympy.Float("1e-7"))
        return ((1 - fraction_power(E_INVERSE, expected)) / expected) ** 2

    @classmethod
    def value(cls, expected: Any) -> Any:
        """The value at 0; elsewhere it is irrational."""
        return sympy.S.One if expected == 0 else None

    def _tex(self, printer: Any) -> str:
        expected = printer._print(self.args[0])
        return rf"\left(\frac{{1 - e^{{-{expected}}}}}{{{expected}}}\right)^{{2}}"


@formula(
    glyph="N_w",
    dimension=ONE,
    source=DE_VRIES,
    increasing="wafer_diameter",
    decreasing="die_area",
)
def dies_per_wafer(wafer_diameter: Any, die_area: Any) -> Any:
    """Whole dies of a round wafer, (pi d^2 / 4 A) (1 - min(1, sqrt(8 A) / d)).

    Assumes: square dies far smaller than the wafer; scribe lines and the edge are in A and d.

    Source: de Vries 2005; Hennessy and Patterson 2017 section 1.6: pi d^2 / 4 A - pi d / sqrt(2 A), factored.

    >>> round(dies_per_wafer(300, 100), 1)
    640.2
    """
    lost = sympy.sqrt(8 * die_area) / wafer_diameter
    return PI * wafer_diameter**2 / (4 * die_area) * complement(Min(1, lost))


@formula(
    glyph="Y_P",
    dimension=ONE,
    source=STAPPER,
    decreasing="defect_density die_area",
)
def poisson_yield(die_area: Any, defect_density: Any) -> Any:
    """Part of the dies without a defect where defects fall at random, exp(-A D_0).

    Assumes: no clusters; any defect kills.

    Source: Stapper et al. 1983, the Poisson model: the least of all yields at a mean density.

    >>> from sympy import symbols
    >>> poisson_yield(*symbols("A D"))
    fraction_power(0.36787944117144232159552377016146, A*D)
    """
    return fraction_power(E_INVERSE, die_area * defect_density)


@formula(
    glyph="Y_M",
    dimension=ONE,
    source=MURPHY,
    decreasing="defect_density die_area",
    curvature="concave",
)
def murphy_yield(die_area: Any, defect_density: Any) -> Any:
    """Part of the dies without a defect where the density varies as a triangle, ((1 - exp(-A D_0)) / (A D_0))^2.

    Assumes: densities of all wafers spread as a triangle from 0 to 2 D_0.

    Source: Murphy 1964.

    >>> from sympy import symbols
    >>> murphy_yield(*symbols("A D"))
    triangular_part(A*D)
    """
    return triangular_part(die_area * defect_density)


@formula(
    glyph="Y",
    dimension=ONE,
    source=STAPPER,
    decreasing="clustering defect_density die_area",
)
def clustered_yield(die_area: Any, defect_density: Any, clustering: Any) -> Any:
    """Part of the dies without a defect where defects cluster, (1 + A D_0 / alpha)^(-alpha).

    Assumes: densities spread as a gamma distribution of shape alpha.

    Source: Stapper et al. 1983, the negative binomial model.

    >>> from sympy import symbols
    >>> clustered_yield(*symbols("A D alpha"))
    clustered_part(A*D, alpha)
    """
    return clustered_part(die_area * defect_density, clustering)


@formula(
    glyph="C_y",
    dimension=DOLLAR,
    source=HENNESSY,
    increasing="wafer_price",
    decreasing="die_yield wafer_dies",
    curvature="affine",
)
def good_die_cost(wafer_price: Any, wafer_dies: Any, die_yield: Any) -> Any:
    """Cost of a die that works, C_w / (N_w Y).

    Assumes: dies that fail are worth nothing; the test of dies is in the wafer's price.

    Source: Hennessy and Patterson 2017 section 1.6.

    >>> from sympy import symbols
    >>> good_die_cost(*symbols("C N Y"))
    C/(N*Y)
    """
    return wafer_price / (wafer_dies * die_yield)


@formula(
    glyph="Y_b",
    dimension=ONE,
    source=ACTUARY,
    increasing="bond_yield",
    decreasing="bonds",
)
def assembly_yield(bond_yield: Any, bonds: Any) -> Any:
    """Part of the packages whose bonds all hold, y_b^N.

    Assumes: bonds hold or not independently.

    Source: Feng and Ma 2022.

    >>> from sympy import symbols
    >>> assembly_yield(*symbols("y N"))
    fraction_power(y, N)
    """
    return fraction_power(bond_yield, bonds)


@formula(
    glyph="C_m",
    dimension=DOLLAR,
    source=ACTUARY,
    increasing="die_price dies memory_price package_price stored_bytes test_price",
    decreasing="package_yield",
    curvature="convex",
)
def module_cost(
    dies: Any,
    die_price: Any,
    stored_bytes: Any,
    memory_price: Any,
    package_price: Any,
    test_price: Any,
    package_yield: Any,
) -> Any:
    """Cost of a packaged device, (N_d C_y + C c_m + C_p) / Y_b + C_t.

    Assumes: a bond that fails wastes all dies, stacks and the package; the last test is passed.

    Source: Feng and Ma 2022: raw chips, wasted chips and packages.

    >>> from sympy import symbols
    >>> module_cost(*symbols("N_d C_y C c C_p C_t Y"))
    C_t + (C*c + C_p + C_y*N_d)/Y
    """
    parts = dies * die_price + stored_bytes * memory_price + package_price
    return parts / package_yield + test_price


@formula(
    glyph="c_o",
    dimension=DOLLAR / SECOND,
    source=BARROSO,
    increasing="electricity_price facility_overhead power price",
    decreasing="lifetime",
    curvature="convex",
)
def owned_second_cost(price: Any, lifetime: Any, power: Any, facility_overhead: Any, electricity_price: Any) -> Any:
    """Cost of a second of an owned device, C_d / L_d + P_b pi c_e.

    Assumes: written off in a straight line and always in use; `power` is what it draws on the mean.

    Source: Barroso et al. 2018 chapter 6: capital and operating expense.

    >>> from sympy import symbols
    >>> owned_second_cost(*symbols("C L P pi c"))
    C/L + P*c*pi
    """
    return price / lifetime + power * facility_overhead * electricity_price


@formula(
    glyph="C_{use}",
    dimension=DOLLAR,
    source=BARROSO,
    increasing="busy_time devices second_price",
    curvature="affine",
)
def use_cost(devices: Any, busy_time: Any, second_price: Any) -> Any:
    """Cost of devices for a time, D T c_sec.

    Assumes: all are paid for while any works.

    Source: the product.

    >>> from sympy import symbols
    >>> use_cost(*symbols("D T c"))
    D*T*c
    """
    return devices * busy_time * second_price


@formula(
    glyph="c_t",
    dimension=DOLLAR,
    source=BARROSO,
    increasing="busy_time devices second_price",
    decreasing="produced_tokens",
    curvature="affine",
)
def token_cost(devices: Any, busy_time: Any, second_price: Any, produced_tokens: Any) -> Any:
    """Cost of a token, D T c_sec / N_t.

    Assumes: all tokens share the cost alike.

    Source: `use_cost` over tokens.

    >>> from sympy import symbols
    >>> token_cost(*symbols("D T c N"))
    D*T*c/N
    """
    return use_cost(devices, busy_time, second_price) / produced_tokens


@formula(
    glyph="C_r",
    dimension=DOLLAR,
    source=BARROSO,
    increasing="busy_time devices run_steps second_price",
    curvature="affine",
)
def training_run_cost(devices: Any, busy_time: Any, second_price: Any, run_steps: Any) -> Any:
    """Cost of a training run, N_r steps of D T c_sec each.

    Assumes: no restarts, evaluations or idle hours.

    Source: `use_cost` of all steps.

    >>> from sympy import symbols
    >>> training_run_cost(*symbols("D T c N"))
    D*N*T*c
    """
    return run_steps * use_cost(devices, busy_time, second_price)

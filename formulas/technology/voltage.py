"""Voltage and clock from a power budget: the dynamic power law of CMOS, solved.

A circuit switches at a clock f ~ (V - V_t)^2 / V and draws P ~ f V^2, so that P ~ V (V - V_t)^2. A power budget gives
the voltage as the root of a cubic, and the voltage the clock. In units of the threshold, v = V / V_t and k the power
level, the cubic is v (v - 1)^2 = k.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Atom, Max, Min
from ..language.dimension import ONE, SECOND, VOLT
from ..language.formula import formula
from ..sources import CARDANO, DEEPFLOW

TURN = sympy.Rational(4, 27)
"""The power level at v = 4/3, the least for which the cubic has one real root."""


class law_voltage(Atom):  # noqa: N801
    """The voltage, in thresholds, at which a circuit draws a power level k: the root of v (v - 1)^2 = max(k, 4/27).

    Cardano: with v = 2/3 + x the cubic is x^3 - x / 3 = k - 2/27, and x = c + 1 / (9 c) where
    c^3 = k/2 - 1/27 + sqrt(k^2/4 - k/27). Below k = 4/27 there are three real roots and no clock worth having: the
    voltage stays at 4/3 thresholds, which a margin of a third of the threshold already forbids. It is log-log convex:
    d ln k / d ln v = 1 + 2 v / (v - 1) falls with v.

    >>> law_voltage(2), law_voltage(sympy.Rational(4, 27))
    (2, 4/3)
    """

    nargs = 1
    operation = "law_voltage"
    directions = (1,)
    curvature = "convex"

    @staticmethod
    def plain(level: Any) -> Any:
        """Cardano's formula."""
        level = Max(level, TURN)
        root = sympy.sqrt(Max(0, level * (level / 4 - sympy.Rational(1, 27))))
        cube = (level / 2 - sympy.Rational(1, 27) + root) ** sympy.Rational(1, 3)
        return sympy.Rational(2, 3) + cube + 1 / (9 * cube)

    @classmethod
    def value(cls, level: Any) -> Any:
        """The value at a number, exact where it is rational."""
        v = sympy.Symbol("v", real=True)
        cubic = sympy.Poly(v * (v - 1) ** 2 - sympy.Max(level, TURN), v)
        exact = [root for root in sympy.roots(cubic, filter="Q") if root >= sympy.Rational(4, 3)]
        return exact[0] if exact else None

    def _tex(self, printer: Any) -> str:
        return rf"v_{{law}}\left({printer._print(self.args[0])}\right)"


class law_speed(Atom):  # noqa: N801
    """The clock, in units of its law, at a power level k and a voltage of at least `floor`: k / max(floor, v(k))^2.

    Power is clock times voltage squared, so the clock is the power level over the square of the voltage that is used.
    It rises with the power and is log-log concave in both: the smaller of k / floor^2 and k / v(k)^2, whose elasticity
    1 - 2 / (1 + 2 v / (v - 1)) falls from 1 to 1/3.

    >>> law_speed(2, 1), law_speed(2, 4)
    (1/2, 1/8)
    """

    nargs = 2
    operation = "law_speed"
    directions = (1, -1)
    curvature = "concave"

    @staticmethod
    def plain(level: Any, floor: Any) -> Any:
        """The quotient."""
        return level / Max(floor, law_voltage(level)) ** 2

    @classmethod
    def value(cls, level: Any, floor: Any) -> Any:
        """The value at numbers, exact where it is rational."""
        voltage = law_voltage.value(level)
        return None if voltage is None else level / max(floor, voltage) ** 2

    def _tex(self, printer: Any) -> str:
        level, floor = map(printer._print, self.args)
        return rf"s_{{law}}\left({level}, {floor}\right)"


@formula(
    glyph="k_P",
    dimension=ONE,
    source=DEEPFLOW,
    increasing="nominal_overdrive power_budget",
    decreasing="nominal_power threshold_voltage",
    curvature="convex",
)
def power_level(power_budget: Any, nominal_power: Any, nominal_overdrive: Any, threshold_voltage: Any) -> Any:
    """A power budget in the units of the law, V_0 (V_0 - V_t)^2 P_bud / (P_0 V_t^3), with V_0 = V_t + U_0.

    Assumes: P_0 is what all units draw at the nominal voltage V_0 and clock.

    Source: Ardalani et al. 2022: V (V - V_t)^2 = (P_bud / P_0) V_0 (V_0 - V_t)^2.

    >>> from sympy import symbols
    >>> power_level(*symbols("P P_0 U V_t"))
    P*U**2*(U/V_t**3 + V_t**(-2))/P_0
    """
    nominal = nominal_overdrive**2 * (threshold_voltage**-2 + nominal_overdrive / threshold_voltage**3)
    return power_budget / nominal_power * nominal


@formula(
    glyph="V_{op}",
    dimension=VOLT,
    source=CARDANO,
    increasing="margin_voltage nominal_overdrive power_budget",
    decreasing="nominal_power",
    curvature="convex",
)
def operating_voltage(
    power_budget: Any,
    nominal_power: Any,
    nominal_overdrive: Any,
    threshold_voltage: Any,
    margin_voltage: Any,
) -> Any:
    """The voltage that a power budget allows, max(V_t + V_m, V_t v(k)).

    Assumes: all units share one voltage; below V_t + V_m the clock gives way, not the voltage.

    Source: Ardalani et al. 2022, the root of their cubic; in closed form after Cardano 1545 (`law_voltage`).

    >>> from sympy import symbols
    >>> operating_voltage(*symbols("P P_0 U V_t V_m"))
    Max(V_t*law_voltage(P*U**2*(U/V_t**3 + V_t**(-2))/P_0), V_m + V_t)
    """
    level = power_level(power_budget, nominal_power, nominal_overdrive, threshold_voltage)
    return Max(threshold_voltage + margin_voltage, threshold_voltage * law_voltage(level))


@formula(
    glyph="f_{op}",
    dimension=ONE / SECOND,
    source=DEEPFLOW,
    increasing="nominal_frequency power_budget",
    decreasing="margin_voltage nominal_power",
)
def operating_frequency(
    power_budget: Any,
    nominal_power: Any,
    nominal_frequency: Any,
    nominal_overdrive: Any,
    threshold_voltage: Any,
    margin_voltage: Any,
) -> Any:
    """The clock that a power budget allows, f_0 (V_0 V_t / U_0^2) s(k, 1 + V_m / V_t) = f_0 (P_bud / P_0) (V_0 / V)^2.

    Assumes: as `operating_voltage`; power is dynamic, f V^2 a unit.

    Source: Ardalani et al. 2022: f = f_0 [(V - V_t)^2 / V] / [(V_0 - V_t)^2 / V_0], and below V_t + V_m the clock
    times (V / (V_t + V_m))^2; both are k / V^2 in units of the law.

    >>> from sympy import symbols
    >>> operating_frequency(*symbols("P P_0 f_0 U V_t V_m"))
    V_t*f_0*(U + V_t)*law_speed(P*U**2*(U/V_t**3 + V_t**(-2))/P_0, V_m/V_t + 1)/U**2
    """
    level = power_level(power_budget, nominal_power, nominal_overdrive, threshold_voltage)
    unit = threshold_voltage * (threshold_voltage + nominal_overdrive) / nominal_overdrive**2
    return nominal_frequency * unit * law_speed(level, 1 + margin_voltage / threshold_voltage)


@formula(
    glyph="f_c",
    dimension=ONE / SECOND,
    source=DEEPFLOW,
    increasing="frequency limit_frequency",
    curvature="concave",
)
def capped_frequency(frequency: Any, limit_frequency: Any) -> Any:
    """The clock of a part that power or the design limits, min(f_clk, f_m).

    Assumes: nothing else limits it.

    Source: Ardalani et al. 2022 keep DRAM below its highest voltage, that is a highest clock; a boost clock is another.

    >>> from sympy import symbols
    >>> capped_frequency(*symbols("f f_m"))
    Min(f, f_m)
    """
    return Min(frequency, limit_frequency)

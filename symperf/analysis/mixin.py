"""The exact questions as methods of a run; each imports what it needs when it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..common.numbers import plain_arguments

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun
    from .asymptotics import Asymptotics
    from .attribution import Attribution
    from .bounds import Bounds
    from .cross import Cross
    from .gains import Gains
    from .phase import Phase
    from .regimes import Regimes
    from .solution import Solution


class Analysis:
    """What every bound run tells about where its time comes from and how it would change."""

    @plain_arguments
    def regimes(
        self,
        symbol: str,
        low: float | None = None,
        high: float | None = None,
        of: str = "time",
        view: str | None = None,
        band: float = 0.1,
    ) -> Regimes:
        """The intervals of a symbol with what binds in each, and exact crossovers.

        Args:
            symbol: the symbol that varies; what the run sets from it moves with it.
            low: one end of the range, above 0; by default a sixteenth of the value now.
            high: the other, above `low`; by default 16 times the value now.
            of: the quantity: an output such as "time", "memory" or "cost", a term, or a folder of terms.
            view: of a whole number: "whole" tries every one that the run accepts, "smooth" leaves out tile and wave
                rounding; by default "whole" up to 4096 numbers.
            band: changes that matter less, a share of the quantity over a doubling of the symbol, are told as flicker;
                0 tells every change.

        Raises:
            InputError: an unknown symbol or quantity, with the nearest, or a range that is empty or reversed.
            symperf.analysis.Unreachable: the run accepts no whole number of the range.
        """
        from .regimes import regimes

        return regimes(cast("BaseRun", self), symbol, low, high, of, view, band)

    @plain_arguments
    def phase(
        self,
        x: str,
        x_range: tuple[float, float],
        y: str,
        y_range: tuple[float, float],
        of: str = "time",
        points: int = 65,
    ) -> Phase:
        """The bounding resource over two symbols, and the curves on which it changes.

        Args:
            x: the first symbol.
            x_range: its lowest and highest value.
            y: the second symbol.
            y_range: its lowest and highest value.
            of: the quantity.
            points: of the grid along each symbol, at most.

        Raises:
            InputError: an unknown symbol or quantity, or a range that is empty or reversed.
        """
        from .phase import phase

        return phase(cast("BaseRun", self), x, x_range, y, y_range, of, points)

    def attribution(self) -> Attribution:
        """Seconds by term and by resource: a matrix whose sums agree with `table` and with `shares`."""
        from .attribution import attribution

        return attribution(cast("BaseRun", self))

    @plain_arguments
    def gains(self, of: str = "time") -> Gains:
        """What to buy or tune next: exact gains from each resource and symbol at 10 % more, twice, and in the limit.

        Args:
            of: the quantity; rates and utilisations gain by growing, all others by shrinking.

        Raises:
            InputError: an unknown quantity, with the nearest, or free symbols.
        """
        from .gains import gains

        return gains(cast("BaseRun", self), of)

    @plain_arguments
    def solve(self, symbol: str, *, low: float | None = None, high: float | None = None, **targets: float) -> Solution:
        """The value of a symbol that meets targets: `run.solve("batch", time=0.02, memory=80e9)`.

        Args:
            symbol: what to solve for.
            low: the smallest value to consider; by default the smallest that a run accepts.
            high: the largest.
            targets: quantities by name and their targets; of a real symbol, one target is reached, several are met.

        Raises:
            InputError: an unknown symbol or quantity, or one that does not depend on the symbol.
            symperf.analysis.Unreachable: no value meets the targets; it says what the limit is.
        """
        from .solve import solve

        return solve(cast("BaseRun", self), symbol, low=low, high=high, **targets)

    @plain_arguments
    def cross(
        self,
        a: str,
        b: str,
        over: str,
        low: float | None = None,
        high: float | None = None,
        *,
        of: str = "time",
    ) -> Cross:
        """Where one thing passes another: `run.cross("plan: tp=8 pp=8", "plan: tp=4 pp=16", "batch")`.

        Args:
            a: a term, a folder of terms, a resource or a quantity; or a choice, such as "plan: tp=8 pp=8",
                "system: b200-sxm" or "precision=fp8", several with commas, or "base" for the run as it is.
            b: another of the same kind.
            over: the symbol; `a.NAME` or `b.NAME` where it varies on one side alone.
            low: where to begin; by default the smallest value that a run accepts.
            high: where to end; by default the largest, of a whole number 16 times its value now or 4096.
            of: the quantity in which two choices are compared.

        Raises:
            InputError: what cannot be compared, an unknown name, a choice that the rules refuse, or a range that is
                empty or reversed.
        """
        from .cross import cross

        return cross(cast("BaseRun", self), a, b, over, low, high, of=of)

    @plain_arguments
    def asymptotics(self, symbol: str, of: str = "time") -> Asymptotics:
        """The leading term of a quantity, and its exponent, as a symbol goes to zero and to infinity.

        Raises:
            InputError: an unknown symbol or quantity, or one that does not depend on the symbol.
        """
        from .asymptotics import asymptotics

        return asymptotics(cast("BaseRun", self), symbol, of)

    def bounds(self) -> Bounds:
        """The time with everything at once, as it is, and with one thing after another."""
        from .bounds import bounds

        return bounds(cast("BaseRun", self))

"""What a run can tell of itself in closed form: a base of `BoundRun`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..bound_run import BoundRun
    from .derivation import Derivation


class Derivable:
    """The closed form of any quantity of a run, whole and inside the regime that it is in."""

    def derive(
        self,
        of: str = "time",
        *,
        term: str | None = None,
        free: Iterable[str] = (),
        below: float = 0.01,
        fold: Iterable[str] | None = None,
    ) -> Derivation:
        """The closed form of a quantity as lines of one monomial each, and what they hold under.

        Args:
            of: "time", "memory", "tokens_per_s", "mfu", ...
            term: a path of the breakdown, or a folder of paths such as "layer/mlp"; for time and memory only.
            free: names of symbols that vary besides those free in the run. With any, all others are numbers.
            below: lines of a smaller share of the quantity are dropped from what is shown.
            fold: what is made a number: names of symbols, "formats", "efficiencies", "tiles", "all" or "none". By
                default "formats", and "all" where symbols are free.

        Raises:
            InputError: an unknown quantity, term or symbol, with the nearest, or a share that is none.
        """
        from .question import derive

        return derive(cast("BoundRun", self), of, term=term, free=free, below=below, fold=fold)

    def _repr_latex_(self) -> Any:
        return self.derive()._repr_latex_()

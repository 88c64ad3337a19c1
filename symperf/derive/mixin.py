"""What a run can tell of itself in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..evaluation.base_run import BaseRun
    from .cost_tree import CostTree
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

        return derive(cast("BaseRun", self), of, term=term, free=free, below=below, fold=fold)

    @property
    def time(self) -> CostTree:
        """The step time as a tree of named terms; `.expr` is the SymPy expression."""
        from .cost_tree import time_tree

        return time_tree(cast("BaseRun", self))

    @property
    def memory(self) -> CostTree:
        """The bytes on the fullest device as a tree of named terms."""
        from .cost_tree import memory_tree

        return memory_tree(cast("BaseRun", self))

    def latex(self) -> str:
        """The step time in LaTeX: an `align*` of named terms, and a table of symbols with values."""
        from .document import run_latex

        return run_latex(cast("BaseRun", self))

    def _repr_latex_(self) -> Any:
        return self.derive()._repr_latex_()

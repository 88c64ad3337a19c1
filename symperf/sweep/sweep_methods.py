"""The questions to a run that are many runs: `sweep` and `best`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd
    import xarray as xr

    from .sweep import Sweepable


class SweepMethods:
    """What `Run` offers over grids of values; nothing is imported before it is asked."""

    def sweep(
        self,
        *,
        where: Iterable[str] | Mapping[str, str] = (),
        outputs: Iterable[str] = ("time", "memory", "mfu"),
        derived: Mapping[str, str] | None = None,
        **axes: Any,
    ) -> xr.Dataset:
        """The run's quantities over a grid.

        Args:
            where: conditions such as "fits" or "tp * pp <= 64"; a point that fails one keeps its values.
            outputs: names of quantities, as for `value`.
            derived: expressions by symbol, such as `{"dp": "devices / (tp * pp)"}`; `dp="..."` says the same.
            axes: lists, ranges, arrays or `symperf.Zip`s, by symbol, plan field, "model" or "system".

        Returns:
            A dataset with a dimension for each axis; `reason` is 0 where a point is feasible, else says why not. Where
            a single run would refuse the plan, outputs are NaN; so is one that a point's structure does not have.

        Raises:
            InputError: an unknown name, an empty axis, a value out of range, a bad expression.
        """
        from .dataset import dataset
        from .sweep import Sweep, base_of

        return dataset(Sweep(base_of(cast("Sweepable", self)), axes, derived=derived, where=where, outputs=outputs))

    def best(
        self,
        *,
        minimize: str | None = None,
        maximize: str | None = None,
        where: Iterable[str] | Mapping[str, str] = (),
        top: int = 10,
        outputs: Iterable[str] = ("time", "memory", "mfu"),
        derived: Mapping[str, str] | None = None,
        **axes: Any,
    ) -> pd.DataFrame:
        """The best points of a grid, best first, without storing the rest; arguments as for `sweep`.

        Args:
            minimize: the quantity to make small; or
            maximize: the quantity to make large.
            where: conditions that the points meet.
            top: how many.
            outputs: quantities to tell beside it.
            derived: expressions by symbol.
            axes: by name.

        Returns:
            A row a point; `attrs` counts the points `considered`, `feasible` and `rejected` (by reason). A point at
            which the quantity does not exist is never among the best.

        Raises:
            InputError: as for `sweep`.
        """
        from .best import best
        from .sweep import base_of

        return best(
            base_of(cast("Sweepable", self)),
            axes,
            minimize=minimize,
            maximize=maximize,
            where=where,
            top=top,
            outputs=outputs,
            derived=derived,
        )

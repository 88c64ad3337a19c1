"""Sweeps as tables: an `xarray.Dataset` with units, glyphs and reasons in its attributes, or rows of a `DataFrame`."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.compiling import stop_compiling
from ..codegen.workers import default_threads
from ..common.errors import InputError
from ..common.extras import import_extra
from ..common.vocabulary import attributes
from .axes import CHOICES, label
from .chunks import block_shape, every
from .sweep import REASON, Sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import xarray as xr

    from .chunks import Block

    Array = np.ndarray[Any, Any]

CHUNK = 1_000_000


def dataset(sweep: Sweep) -> xr.Dataset:
    """The whole sweep in memory.

    Raises:
        InputError: it would not fit in memory, or xarray is not installed.
    """
    xarray = import_extra("xarray", "sweep", "sweep")
    wanted = bytes_of(sweep)
    free = _memory()
    if wanted > 0.8 * free:
        raise InputError(
            f"sweep: {sweep.points:,} points of {len(sweep.outputs)} outputs need {wanted / 1e9:,.1f} GB, and memory "
            f"has {free / 1e9:,.1f} GB; use run.best, or `symperf sweep` to write a file"
        )
    found: dict[str, Array] = {name: np.empty(sweep.shape) for name in sweep.outputs}
    found[REASON] = np.empty(sweep.shape, dtype=np.uint8)

    def fill(block: Block) -> None:
        for name, values in sweep.compute(block).items():
            found[name][block] = values

    with ThreadPoolExecutor(default_threads()) as pool:
        try:
            list(pool.map(fill, every(sweep.shape, block_shape(sweep.shape, CHUNK))))
        except BaseException:
            stop_compiling(pool)
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    dims = [axis.name for axis in sweep.axes]
    coordinates = {name: (dim, values, about) for name, dim, values, about in coordinates_of(sweep)}
    variables = {name: (dims, values, variable_attributes(sweep, name)) for name, values in found.items()}
    return xarray.Dataset(variables, coordinates, attributes_of(sweep))  # type: ignore[no-any-return]


def bytes_of(sweep: Sweep) -> int:
    """Bytes of the sweep's values."""
    return sweep.points * (8 * len(sweep.outputs) + 1)


def coordinates_of(sweep: Sweep) -> list[tuple[str, str, Array, dict[str, Any]]]:
    """Each coordinate: its name, its dimension, its values (numbers, booleans or text), its attributes."""
    found = []
    for axis in sweep.axes:
        for name in axis.members:
            about: dict[str, Any] = attributes(name)
            if name in CHOICES or name in axis.unset:
                about = {"long_name": name.replace("_", " ")}
            found.append((name, axis.name, coordinate_values(axis.labels(name)), about))
    return found


def coordinate_values(values: Any) -> Array:
    """The values of a coordinate as tables hold them: choices by their labels, the default as "default"."""
    if isinstance(values, np.ndarray):
        return values
    labels = [label(value) for value in values]
    if all(isinstance(value, bool) for value in labels) or all(isinstance(value, int) for value in labels):
        return np.array(labels)
    return np.array(["default" if value is None else str(value) for value in labels])


def variable_attributes(sweep: Sweep, name: str) -> dict[str, Any]:
    """The attributes of an output, or of the reasons: flags as the CF conventions have them."""
    if name != REASON:
        return attributes(name)
    return {
        "long_name": "why a point is not feasible",
        "flag_values": np.arange(len(sweep.reasons) + 1, dtype=np.uint8),
        "flag_meanings": " ".join(["feasible", *sweep.reasons]),
    }


def attributes_of(sweep: Sweep) -> dict[str, str]:
    """The attributes of the whole: what was held fixed."""
    from ..common.version import VERSION

    base = sweep.base
    members = {name for axis in sweep.axes for name in axis.members}
    fixed = {**base.plan, **base.work, **base.values}
    shown = [f"{k}={label(v)}" for k, v in fixed.items() if k not in members and k not in sweep.question.derived]
    found = {"title": "symperf sweep", "symperf_version": VERSION, "fixed": " ".join(shown)}
    for name, value in (("model", base.model), ("system", base.system)):
        if value is not None and name not in members:
            found[name] = value.name
    return found


def frame(sweep: Sweep, block: Block, found: dict[str, Array], at: Sequence[Array] | None = None) -> pd.DataFrame:
    """Computed points as rows: the axes, the outputs and the reason, which is empty where a point is feasible.

    Args:
        sweep: the sweep.
        block: what was computed.
        found: the values, of the block's shape, or of any length with `at`.
        at: for each axis the positions in the grid of each row; by default every point of the block in order.
    """
    pandas = import_extra("pandas", "sweep", "sweep")
    if at is None:
        mesh = np.meshgrid(*[np.arange(cut.start, cut.stop) for cut in block], indexing="ij")
        at = [positions.ravel() for positions in mesh]
    columns: dict[str, Any] = {}
    for axis, positions in zip(sweep.axes, at, strict=True):
        for name in axis.members:
            columns[name] = coordinate_values(axis.labels(name))[positions]
    columns |= {name: found[name].ravel() for name in sweep.outputs}
    if REASON in found:
        names = np.array(["", *sweep.reasons], dtype=object)
        columns[REASON] = names[found[REASON].ravel()]
    return pandas.DataFrame(columns)  # type: ignore[no-any-return]


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**63

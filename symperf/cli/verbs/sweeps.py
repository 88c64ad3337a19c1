"""`symperf sweep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import flags

if TYPE_CHECKING:
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verb."""
    sweep = verb(
        "sweep",
        "A sweep that a file describes, of any size, into a file; it can be stopped and resumed.",
        "symperf sweep study.toml -o result.zarr",
        "sweep",
    )
    sweep.add_argument("study", help="a .toml file with model, system, batch, sequence, [axes], ...")
    sweep.add_argument("-o", "--output", required=True, metavar="OUT", help=".zarr, .nc, .parquet or .csv")
    sweep.add_argument("--overwrite", action="store_true", help="replace a result, or an unfinished one")
    sweep.add_argument(
        "--resume", action="store_true", help="go on with an unfinished one; a finished one of the same study stays"
    )
    flags.plot(sweep, "its outputs along its longest axes")
    flags.dask(sweep)

"""`symperf measure` and `symperf calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import flags
from ..flags import number

if TYPE_CHECKING:
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verbs."""
    measure = verb(
        "measure",
        "Micro-benchmarks of this machine's GPU with PyTorch, in the columns that calibrate reads.",
        "symperf measure -o measured.csv --seconds 120",
        "measure",
    )
    measure.add_argument("-o", "--output", metavar="FILE", help="a .csv file (default: standard output)")
    measure.add_argument("--seconds", type=number, default=120.0, metavar="N", help="time to spend (default 120)")
    measure.add_argument(
        "--only", metavar="KINDS", help="launch, copy, elementwise, attention, step, collective, gemm; by commas"
    )
    calibrate = verb(
        "calibrate",
        "Fits the efficiencies and latencies of a system, or of a software's kernels on it, to measured times; "
        "needs symperf[calibrate].",
        "symperf calibrate measured.csv -s h100-sxm -o mine.toml",
        "calibrate",
    )
    calibrate.add_argument(
        "measured",
        nargs="+",
        help=".csv files in the columns of symperf measure, or of training.csv or inference.csv of symperf validate; "
        "or a folder of kernel tables as of symperf validate --kernels",
    )
    flags.system(calibrate)
    calibrate.add_argument(
        "-o", "--output", required=True, metavar="NEW.toml", help="the new system, or profile of software"
    )
    calibrate.add_argument(
        "--software",
        metavar="NAME",
        help="of a folder: whose rows are fitted, as the tables name it; its profile is written (default: the device's "
        "own constants, to rows of all software)",
    )
    calibrate.add_argument(
        "--stack", metavar="NAME", help="of a folder: the profile that is the base (default: the software's)"
    )
    calibrate.add_argument(
        "--fit", action="append", default=[], metavar="NAME", help="a symbol to fit (default: all that rows depend on)"
    )
    calibrate.add_argument(
        "--prior",
        action="append",
        default=[],
        metavar="NAME=WIDTH",
        help="standard deviation of ln(value) around the system's value; WIDTH alone is for all "
        "(default 0.3, of latencies and sizes 1)",
    )
    calibrate.add_argument("--loss", metavar="NAME", help="linear, soft-l1 (default), huber or cauchy")
    calibrate.add_argument("--noise", type=number, metavar="F", help="scatter of a measured time (default 0.05)")

"""`symperf calibrate FOLDER`: constants of kernels from tables of measured kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..common.outputs import write_file
from ..common.table import Table, show_lines
from ..systems.system_symbols import SYMBOLS
from ..systems.units import spell
from .output import console, write_json

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ..calibration.kernels.calibrate import Errors, Fitted, KernelCalibration


def run(options: argparse.Namespace, out: Path, folder: Path, told: str) -> int:
    """Fit, print what was found, and write the new profile or system."""
    from ..calibration.kernels.calibrate import calibrate_kernels
    from ..calibration.kernels.files import toml

    for flag in ("fit", "prior", "loss", "noise"):
        if getattr(options, flag) not in (None, []):
            raise InputError(
                f"calibrate: --{flag}: is for .csv files of measurements, not for a folder of kernel tables"
            )
    if len(options.measured) > 1:
        raise InputError(
            f"calibrate: found {quote(options.measured[1])} beside a folder of kernel tables, expected it alone"
        )
    if options.software is None and options.stack is not None:
        raise InputError("calibrate: --stack: is the base of a software's profile, expected --software beside it")
    if options.software == "":
        raise InputError("calibrate: --software: found '', expected a name of the framework column")
    software = options.software or ""
    found = calibrate_kernels(options.measured[0], options.system, software=software, stack=options.stack)
    write_file(out, toml(found, folder), told)
    if options.json:
        write_json(as_json(found) | {"output": str(out)})
    else:
        with console() as printed:
            _show(printed, found, out)
    return 0


def as_json(found: KernelCalibration) -> dict[str, Any]:
    """The outcome as plain dictionaries and lists."""
    return {
        "system": found.system.name,
        "software": found.software or None,
        "base": found.base,
        "folder": found.folder,
        "date": found.date,
        "constants": [
            {
                "name": name,
                "format": fitted.stage.precision or None,
                "stage": fitted.stage.name,
                "value": quantity.value,
                "low": quantity.low,
                "high": quantity.high,
            }
            for fitted in found.stages
            for name, quantity in fitted.constants.items()
        ],
        "stages": [
            {
                "name": fitted.stage.name,
                "rows": fitted.rows,
                "before": None if fitted.before is None else vars(fitted.before),
                "after": None if fitted.after is None else vars(fitted.after),
            }
            for fitted in found.stages
        ],
        "rows_left_out": {reason: count for reason, count in found.left_out.items() if count},
    }


def _show(printed: Any, found: KernelCalibration, out: Path) -> None:
    whose = f"{found.software} on {found.system.name}" if found.software else found.system.name
    count = sum(len(fitted.constants) for fitted in found.stages)
    printed.print(f"{out}: {found.base} with {count} constants of {whose}, fitted to {found.folder}\n")
    constants = Table(("stage", "constant", "fitted", "rows ask for"), left=("stage", "constant"))
    for fitted in found.stages:
        for name, quantity in fitted.constants.items():
            ends = (quantity.low, quantity.high)
            asked = " to ".join(_value(name, end) for end in ends if end is not None)
            constants.add_row(fitted.stage.name, name, _value(name, quantity.value), asked)
    printed.print(constants)
    printed.print("")
    kept = "shapes kept back"
    errors = Table(("stage", "fitted to", kept, "median before", "median", "mean", "bias"), left=("stage",))
    for fitted in found.stages:
        errors.add_row(fitted.stage.name, f"{fitted.rows:,}", *_errors(fitted))
    printed.print(errors)
    show_lines(printed, (f"{count:,} rows left out: {why}" for why, count in found.left_out.items() if count))


def _errors(fitted: Fitted) -> list[str]:
    before, after = fitted.before, fitted.after
    if before is None or after is None:
        return ["0", "", "", "", ""]
    return [f"{after.rows:,}", f"{before.median:.1%}", *_three(after)]


def _three(errors: Errors) -> list[str]:
    return [f"{errors.median:.1%}", f"{errors.mean:.1%}", f"{errors.bias:+.1%}"]


def _value(name: str, value: float) -> str:
    return spell(value, SYMBOLS[name].dimension)

"""`symperf calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..common.outputs import check_file, write_file
from ..common.table import Table, show_lines
from ..systems.system_symbols import SYMBOLS
from ..systems.units import spell
from .output import console, write_json

if TYPE_CHECKING:
    import argparse

    from ..calibration.result import Calibration, Symbol

TOLD = "calibrate: --output {}: cannot be written"


def run(options: argparse.Namespace) -> int:
    """Fit, print what was found, and write the new system."""
    out = Path(options.output)
    if out.suffix != ".toml":
        raise InputError(f"calibrate: --output: found {quote(options.output)}, expected a .toml file")
    if _there(out) and any(_same(out, other) for other in (options.system, *options.measured)):
        raise InputError(f"calibrate: --output: {out} is what is read; expected another file")
    check_file(out, TOLD)
    if "" in options.measured:
        raise InputError("calibrate: found '', expected a .csv file of measurements or a folder of kernel tables")
    if any(_is_folder(measured) for measured in options.measured):
        from .calibrate_kernels import run as run_kernels

        return run_kernels(options, out, _folder(out), TOLD)
    for flag in ("software", "stack"):
        if getattr(options, flag) is not None:
            raise InputError(
                f"calibrate: --{flag}: is for a folder of kernel tables, not for .csv files of measurements"
            )
    from ..calibration.calibrate import calibrate
    from ..calibration.fit import NOISE

    found = calibrate(
        options.measured,
        options.system,
        fit=[part for text in options.fit for part in text.split(",")],
        prior=options.prior,
        loss="soft-l1" if options.loss is None else options.loss,
        noise=NOISE if options.noise is None else options.noise,
    )
    write_file(out, found.toml(_folder(out)), TOLD)
    if options.json:
        write_json(found.as_json() | {"output": str(out)})
    else:
        with console() as printed:
            _show(printed, found, out)
    return 0


def _same(out: Path, other: str) -> bool:
    path = Path(other)
    return _there(path) and path.samefile(out)


def _folder(out: Path) -> Path:
    """Where the file will really lie; of a path that no file can have, which is told when it is written, anywhere."""
    try:
        return out.resolve().parent
    except (OSError, ValueError, RuntimeError):
        return Path()


def _is_folder(path: str) -> bool:
    """Whether a path is a folder; false of a path that no file can have."""
    try:
        return bool(path) and Path(path).is_dir()
    except (OSError, ValueError):
        return False


def _there(path: Path) -> bool:
    """Whether something is at a path; false of a path that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _show(printed: Any, found: Calibration, out: Path) -> None:
    fitted = sum(not symbol.why_held for symbol in found.symbols)
    printed.print(f"{out}: {found.base} with {fitted} values fitted to {found.used} rows of {found.file}\n")
    symbols = Table(("symbol", "before", "fitted", "error", "rows ask for", "rows"), left=("symbol",))
    for symbol in found.symbols:
        if not symbol.why_held:
            symbols.add_row(*_cells(symbol))
    printed.print(symbols)
    for why in dict.fromkeys(symbol.why_held for symbol in found.symbols if symbol.why_held):
        kept = ", ".join(f"{s.name} {_value(s.name, s.before)}" for s in found.symbols if s.why_held == why)
        show_lines(printed, [f"as before, since {why}: {kept}"])
    for parts, held in found.inseparable:
        if len(parts) > 1:
            direction = " ".join(f"{part:+.2f} ln({name})" for name, part in parts.items())
            show_lines(printed, [f"not determined by the rows: {direction}; {held} keeps its value"])
    printed.print("")
    first = "predicted / measured"
    kinds = Table((first, "rows", "before", "mean |error|", "median", "bias", "worst", "on line"), left=(first,))
    for kind in found.residuals:
        absolute = (kind.before, kind.mean_absolute, kind.median_absolute)
        signed = (f"{kind.mean:+.1%}", f"{kind.worst:+.1%}")
        line = f"{kind.worst_file}:{kind.worst_line}" if len(found.files) > 1 else str(kind.worst_line)
        kinds.add_row(kind.kind, str(kind.rows), *(f"{part:.1%}" for part in absolute), *signed, line)
    printed.print(kinds)
    show_lines(printed, (f"{count} rows left out: {why}" for why, count in found.left_out.items()))
    show_lines(printed, (f"warning: {warning}" for warning in found.warnings))


def _cells(symbol: Symbol) -> list[str]:
    name = symbol.name
    asked = (
        ""
        if symbol.low is None or symbol.high is None
        else f"{_value(name, symbol.low)} to {_value(name, symbol.high)}"
    )
    values = (_value(name, symbol.before), _value(name, symbol.value))
    return [name, *values, f"{symbol.error or 0.0:.1%}", asked, str(symbol.rows)]


def _value(name: str, value: float) -> str:
    return spell(value, SYMBOLS[name].dimension)

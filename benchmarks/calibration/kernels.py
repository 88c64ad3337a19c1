"""Constants of kernels for every device and software of `kernels/`, and what they leave on shapes kept back.

    python benchmarks/calibration/kernels.py                     # prints
    python benchmarks/calibration/kernels.py --write             # and writes them into symperf/catalogue
    python benchmarks/calibration/kernels.py --systems h100-sxm --software vLLM

A device's own constants go into its system file, a software's into `catalogue/kernels/PROFILE.toml`, with the medians
over devices under [on.any].
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symperf.calibration.kernels.calibrate import calibrate_kernels
from symperf.calibration.kernels.files import constant, tables
from symperf.common.errors import InputError
from symperf.infer.reached import ANY, read
from symperf.systems.system import CATALOGUE, System
from symperf.systems.system_symbols import Quantity
from symperf.validation.kernels.formats import STACKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symperf.calibration.kernels.calibrate import KernelCalibration
    from symperf.infer.reached import Reached

KERNELS = Path(__file__).parent / "kernels"
REACHED = CATALOGUE.parent / "kernels"
DEVICES = (
    "a100-80gb-sxm",
    "h100-sxm",
    "h200-sxm",
    "b200-sxm",
    "b300-sxm",
    "gb200-nvl72",
    "gb300-nvl72",
    "l40s",
    "rtx-pro-6000",
    "arc-pro-b60",
)
FEWEST = 3
"""Devices from which on a constant has a median that stands for others."""


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the catalogue")
    parser.add_argument("--systems", default=",".join(DEVICES), help="by commas")
    parser.add_argument("--software", default=",".join(["", *STACKS]), help="by commas; empty is the device itself")
    options = parser.parse_args()
    systems = [System.load(name) for name in options.systems.split(",")]
    for software in options.software.split(","):
        found = [each for system in systems if (each := _calibrate(system, software)) is not None]
        for each in found:
            _show(each)
        if options.write and software:
            _write_profile(STACKS[software], found)
        elif options.write:
            for each in found:
                _write_system(each)


def _calibrate(system: System, software: str) -> KernelCalibration | None:
    try:
        return calibrate_kernels(KERNELS, system, software=software)
    except InputError as error:
        print(error)
        return None


def _show(found: KernelCalibration) -> None:
    count = sum(len(fitted.constants) for fitted in found.stages)
    print(f"{found.system.name} {found.software or 'device'}: {count} constants")
    for fitted in found.stages:
        values = ", ".join(f"{name} {quantity.value:.3g}" for name, quantity in fitted.constants.items())
        print(f"  {fitted.stage.name}: {fitted.rows} rows: {values}")
        if fitted.before and fitted.after:
            b, a = fitted.before, fitted.after
            print(
                f"    kept back {a.rows}: median {b.median:.1%} -> {a.median:.1%}, mean {b.mean:.1%} -> {a.mean:.1%}, "
                f"bias {b.bias:+.1%} -> {a.bias:+.1%}"
            )


def _write_profile(profile: str, found: Sequence[KernelCalibration]) -> None:
    """All systems of a software, those that were not fitted now as they are, and what holds for any."""
    blocks = {each.system.name: "\n".join(tables(each)) for each in found}
    path = REACHED / f"{profile}.toml"
    if path.is_file():
        blocks = _blocks(path.read_text(encoding="utf-8")) | blocks
    blocks.pop(ANY, None)
    path.write_text("\n\n".join(blocks.values()) + "\n", encoding="utf-8")
    blocks[ANY] = "\n".join(_any(read(tomllib.loads(path.read_text(encoding="utf-8"))["on"], profile)))
    path.write_text("\n\n".join(blocks.values()) + "\n", encoding="utf-8")


def _blocks(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, re.split(r"\n\n(?=\[on\.[^.\]]+\])", text.strip())):
        name = re.match(r"\[on\.([^.\]]+)", part)
        assert name is not None
        found[name[1]] = part
    return found


def _any(known: Mapping[str, Reached]) -> list[str]:
    """Medians over the systems that were measured."""
    measured = [reached for name, reached in known.items() if name != ANY]
    lines = [f"[on.{ANY}]", *_medians([reached.constants for reached in measured])]
    for name in sorted({name for reached in measured for name in reached.formats}):
        medians = _medians([reached.formats[name] for reached in measured if name in reached.formats])
        lines += ["", f"[on.{ANY}.formats.{name}]", *medians] if medians else []
    return lines


def _medians(known: Sequence[Any]) -> list[str]:
    names = dict.fromkeys(name for constants in known for name in constants)
    lines = []
    for name in names:
        values = [constants[name].value for constants in known if name in constants]
        if len(values) >= FEWEST:
            middle, low, high = (float(f"{v:.3g}") for v in (np.median(values), min(values), max(values)))
            source = f"median, least and greatest of {len(values)} devices"
            lines.append(constant(name, Quantity(middle, source, min(low, middle), max(high, middle))))
    return lines


def _write_system(found: KernelCalibration) -> None:
    """Replace the tables of the device's constants in its file, or add them."""
    path = CATALOGUE / f"{found.system.name}.toml"
    text = path.read_text(encoding="utf-8")
    for name, quantity in found.constants.items():
        ends = "".join(
            f"\n{key} = {value!r}"
            for key, value in (("low", quantity.low), ("high", quantity.high))
            if value is not None
        )
        block = f'[{name}]\nvalue = {quantity.value!r}\nsource = "{quantity.source}"{ends}\n'
        old = re.compile(rf"^\[{name}\]\n(?:(?!\[).*\n?)*", re.MULTILINE)
        text = old.sub(lambda _, new=block: new + "\n", text) if old.search(text) else f"{text.rstrip()}\n\n{block}"
    path.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

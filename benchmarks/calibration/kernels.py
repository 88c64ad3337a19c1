"""Constants of kernels for every device and software of `kernels/`, and what they leave on shapes kept back.

    python benchmarks/calibration/kernels.py                     # prints
    python benchmarks/calibration/kernels.py --write             # and writes them into symperf/catalogue
    python benchmarks/calibration/kernels.py --systems h100-sxm --software vLLM
    python benchmarks/calibration/kernels.py --recurrent         # those of recurrent layers, for all devices at once
    python benchmarks/calibration/kernels.py --apart selected --write # those of attention to selected keys, apart

A device's own constants go into its system file, a software's into `catalogue/kernels/PROFILE.toml`, with the medians
over devices under [on.any]. The files of `LASTING` hold constants that whole steps and lasting loads were compared
with, at clocks that a single kernel does not fall to: what single kernels reach on them goes into every profile.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from symperf.calibration.kernels.calibrate import calibrate_anywhere, calibrate_kernels
from symperf.calibration.kernels.choose import OWN
from symperf.calibration.kernels.compressed_stages import COMPRESSED
from symperf.calibration.kernels.files import constant, tables
from symperf.calibration.kernels.selected_stages import SELECTED
from symperf.calibration.kernels.stages import RECURRENT, STAGES
from symperf.common.errors import InputError
from symperf.infer.reached import ANY
from symperf.infer.stack import load_known
from symperf.systems.kernel_constants import FAMILIES
from symperf.systems.system import CATALOGUE, System
from symperf.systems.system_symbols import Quantity
from symperf.validation.kernels.formats import STACKS

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from symperf.calibration.kernels.calibrate import KernelCalibration
    from symperf.calibration.kernels.stages import Stage

KERNELS = Path(__file__).parent / "kernels"
REACHED = CATALOGUE.parent / "kernels"
ORIGIN = "ai-dynamo/aiconfigurator @095f58a5"
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
LASTING = ("a100-80gb-sxm", "h100-sxm", "h200-sxm")
APART = {"l40s": ("domain", "crowding")}
"""Families that are no device's, but a machine's, which has a file of its own."""
APART_STAGES = {"selected": SELECTED, "compressed": COMPRESSED}
"""Attention to selected keys and to compressed entries, which few models have."""
OF_DEVICE = frozenset(name for stage in STAGES if stage.of_device for name in stage.constants)
OF_PAIRS = tuple(stage for stage in STAGES if stage not in RECURRENT)
"""What is fitted for each pair of device and software; recurrent layers have constants that hold on any device."""
ON_ANY = frozenset(name for stage in RECURRENT for name in stage.constants)
FEWEST = 2
"""Devices from which on a constant has a median that stands for others."""


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the catalogue")
    parser.add_argument("--systems", default=",".join(DEVICES), help="by commas")
    parser.add_argument("--software", default=",".join(["", *STACKS]), help="by commas; empty is the device itself")
    parser.add_argument("--recurrent", action="store_true", help="fit the constants of recurrent layers on any device")
    parser.add_argument("--apart", choices=sorted(APART_STAGES), help="constants of one kind of layers, in own files")
    options = parser.parse_args()
    if options.recurrent:
        _recurrent(options)
        return
    if options.apart:
        systems = [System.load(name) for name in options.systems.split(",")]
        _apart(options.apart, systems, write=options.write)
        return
    for software in options.software.split(","):
        systems = [System.load(name) for name in options.systems.split(",")]
        if options.write and software:
            _write_any(STACKS[software], _all(systems, software, None))
        found = _all(systems, software, OWN)
        for each in found:
            _show(each)
        if options.write and software:
            _write_profile(STACKS[software], found)
        elif options.write:
            for each in found:
                if each.system.name not in LASTING:
                    _write_system(each)
            _write_devices([each for each in found if each.system.name in LASTING])


def _recurrent(options: argparse.Namespace) -> None:
    """The constants of recurrent layers, which hold on any device, from the rows of all devices together."""
    systems = [System.load(name) for name in options.systems.split(",")]
    for software in filter(None, options.software.split(",")):
        found = calibrate_anywhere(KERNELS, systems, software, RECURRENT, origin=ORIGIN)
        _show(found)
        if options.write:
            path = REACHED / f"{STACKS[software]}.toml"
            first, *others = path.read_text(encoding="utf-8").split("\n\n", 1)
            kept = [line for line in first.splitlines() if line.split(" = ")[0] not in ON_ANY]
            given = {name: quantity for stage in RECURRENT for name, quantity in stage.given.items()}
            fitted = {name for each in found.stages for name in each.stage.constants}
            known = {name: quantity for name, quantity in given.items() if name in fitted} | found.constants
            kept += [constant(name, quantity) for name, quantity in known.items()]
            path.write_text("\n\n".join(["\n".join(kept), *others]), encoding="utf-8")
            load_known.cache_clear()


def _apart(part: str, systems: Sequence[System], *, write: bool) -> None:
    """Constants of one kind of layers, in files of their own, with the medians over devices."""
    for software, profile in STACKS.items():
        found = _all(systems, software, None, APART_STAGES[part])
        for each in found:
            _show(each)
        if write:
            name = f"{part}-{profile}"
            _put(name, {ANY: "\n".join([f"[on.{ANY}]", *_medians([each.constants for each in found], {})])})
            _write_profile(name, found)


def _all(
    systems: Sequence[System], software: str, most: int | None, stages: Sequence[Stage] = OF_PAIRS
) -> list[KernelCalibration]:
    return [each for system in systems if (each := _calibrate(system, software, most, stages)) is not None]


def _calibrate(system: System, software: str, most: int | None, stages: Sequence[Stage]) -> KernelCalibration | None:
    try:
        return calibrate_kernels(KERNELS, system, software=software, most=most, origin=ORIGIN, stages=stages)
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


def _write_any(profile: str, found: Sequence[KernelCalibration]) -> None:
    """What holds for any system: medians over those that were measured, and what stages give."""
    given = {name: quantity for stage in OF_PAIRS for name, quantity in stage.given.items()}
    lines = [f"[on.{ANY}]", *(constant(name, quantity) for name, quantity in given.items())]
    lines += _medians([each.constants for each in found], given)
    for name in sorted({name for each in found for name in each.formats}):
        medians = _medians([each.formats[name] for each in found if name in each.formats], {})
        lines += ["", f"[on.{ANY}.formats.{name}]", *medians] if medians else []
    old = (REACHED / f"{profile}.toml").read_text(encoding="utf-8").split("\n\n", 1)[0].splitlines()
    lines[1:1] = [line for line in old if line.split(" = ")[0] in ON_ANY]
    _put(profile, {ANY: "\n".join(lines)})


def _write_profile(profile: str, found: Sequence[KernelCalibration]) -> None:
    """The constants of each system that were fitted now; the other systems stay as they are."""
    _put(
        profile, {each.system.name: "\n".join(tables(each.system.name, each.constants, each.formats)) for each in found}
    )


def _write_devices(found: Sequence[KernelCalibration]) -> None:
    """What single kernels of the devices' own libraries reach where the systems' files are of lasting loads."""
    _put("devices", {each.system.name: "\n".join(tables(each.system.name, each.constants, {})) for each in found})


def _put(name: str, new: Mapping[str, str]) -> None:
    path = REACHED / f"{name}.toml"
    blocks = _blocks(path.read_text(encoding="utf-8")) if path.is_file() else {}
    blocks |= new
    path.write_text("\n\n".join(filter(None, blocks.values())) + "\n", encoding="utf-8")
    load_known.cache_clear()


def _blocks(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, re.split(r"\n\n(?=\[on\.[^.\]]+[.\]])(?!\[on\.[^\]]+\.formats)", text.strip())):
        name = re.match(r"\[on\.([^.\]]+)", part)
        assert name is not None
        found[name[1]] = part
    return found


def _medians(known: Sequence[Mapping[str, Quantity]], given: Container[str]) -> list[str]:
    names = [name for name in dict.fromkeys(name for each in known for name in each) if name not in given]
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
    apart = {name for family in APART.get(found.system.name, ()) for name in FAMILIES[family]}
    for name, quantity in found.constants.items():
        if name in apart:
            continue
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

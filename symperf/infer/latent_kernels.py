"""What kernels of latent attention a serving software has on which systems, where they differ from the usual ones."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from .group_reads import ANY
from .profile_table import table_of

if TYPE_CHECKING:
    from ..systems.system import System


BLOCKS: Final = "fp8-block"
"""The format of weights in 8 bits with a scale for each block."""


@dataclass(frozen=True)
class LatentKernels:
    """Systems on which each of these holds; None stands for any.

    Attributes:
        wide_absorption: the products that absorb projections are in 16 bits, whatever the others are in.
        whole_contexts: attention over latents leaves each context to one unit.
        widened_cache: latents of a narrower format are cast to that of activations before attention reads them.
        widened_blocks: products that absorb are in 16 bits where weights, widened once, have a scale for each block.
        source: where it is read.
    """

    wide_absorption: tuple[str, ...] | None = ()
    whole_contexts: tuple[str, ...] | None = ()
    widened_cache: tuple[str, ...] | None = ()
    widened_blocks: tuple[str, ...] | None = ()
    source: str = ""

    def on(self, system: System, precision: str = "") -> tuple[str, ...]:
        """The names of what holds on a system, or on one that it starts from, for attention in a format.

        >>> from symperf import System
        >>> LatentKernels(None, ("h100-sxm",)).on(System.load("a100-80gb-sxm"))
        ('wide_absorption',)
        >>> kernels = LatentKernels(widened_blocks=None)
        >>> kernels.on(System.load("h100-sxm"), "fp8"), kernels.on(System.load("h100-sxm"), "fp8-block")
        ((), ('wide_absorption',))
        """
        places = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "source"}
        found = [name for name, on in places.items() if on is None or any(each in on for each in system.lineage)]
        if "widened_blocks" in found:
            found.remove("widened_blocks")
            if precision == BLOCKS and "wide_absorption" not in found:
                found.insert(0, "wide_absorption")
        return tuple(found)


def read(table: object, label: str) -> LatentKernels:
    """The table `[latent]` of a stack's file.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    from ..systems.quantities import text_of

    keys = [field.name for field in fields(LatentKernels)]
    known = table_of(table, keys, f"{label}: latent")
    found = {key: _systems(known[key], f"{label}: latent.{key}") for key in keys if key != "source" and key in known}
    return LatentKernels(**found, source=text_of(known, "source", f"{label}: latent"))


def _systems(entry: Any, where: str) -> tuple[str, ...] | None:
    from ..systems.system import catalogue_names

    if entry == ANY:
        return None
    if not isinstance(entry, list) or not all(isinstance(name, str) for name in entry):
        raise InputError(f'{where}: found {quote(entry)}, expected a list of names of systems, or "{ANY}"')
    known = catalogue_names()
    for name in entry:
        if name not in known:
            raise InputError(f"{where}: unknown system {quote(name)}{nearest(name, known)}")
    return tuple(entry)

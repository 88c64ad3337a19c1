"""L2 caches of devices whose kernels were measured in a loop: what fits them is found there, and takes less time."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Final

from ...systems.units import BYTES, parse

CACHES: Final = Path(__file__).parents[2] / "catalogue" / "kernels" / "caches.toml"
FULL: Final = 0.75
"""Part of a cache up to which operands stay in it: it is shared by what else a kernel reads."""


@cache
def load() -> dict[str, tuple[float, float]]:
    """By device: bytes that stay in the cache, and the part of the time from memory that these take."""
    tables = tomllib.loads(CACHES.read_text(encoding="utf-8"))
    return {device: (FULL * parse(each["capacity"], BYTES), each["share"]) for device, each in tables.items()}

"""The device under measurement, and random data on it that its L2 cache does not hold."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, field
from typing import Any

TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8": "float8_e4m3fn"}
WIDTHS = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}
POOL_BYTES = 1 << 30
L2_BYTES = 64 << 20
"""Taken where PyTorch does not say the size of L2."""
ALIGNED = 256


class NoDeviceError(Exception):
    """There is nothing to measure: PyTorch or a device is missing."""


class NotMeasuredError(Exception):
    """One row cannot be measured here: it does not fit, or the library has no such kernel."""


@dataclass
class Bench:
    """PyTorch, one device, and the data that kernels read."""

    torch: Any
    name: str
    version: str
    capacity: int
    l2_bytes: int
    pools: dict[tuple[str, int], Any] = field(default_factory=dict)

    def dtype(self, name: str) -> Any:
        """PyTorch's own type of a format.

        Raises:
            NotMeasuredError: this PyTorch has none.
        """
        found = getattr(self.torch, TYPES[name], None)
        if found is None:
            raise NotMeasuredError(f"PyTorch {self.version} has no {TYPES[name]}")
        return found

    def rotation(self, size: int) -> int:
        """How many buffers of `size` bytes are taken in turns, so that L2 (four times over) does not hold them."""
        return max(1, math.ceil(4 * self.l2_bytes / max(size, ALIGNED)))

    def pool(self, dtype: str, slot: int) -> Any:
        """Random numbers in a row, made once for each format and slot; different slots do not share memory."""
        key = (dtype, slot)
        if key not in self.pools:
            count = min(POOL_BYTES, self.capacity // 16) // WIDTHS["bf16" if dtype == "fp8" else dtype]
            made = self.dtype("bf16" if dtype == "fp8" else dtype)
            numbers = self.torch.randn(count, dtype=made, device="cuda")
            self.pools[key] = numbers.to(self.dtype(dtype)) if dtype == "fp8" else numbers
        return self.pools[key]

    def views(self, dtype: str, slot: int, shape: tuple[int, ...], *, rotate: bool = True) -> list[Any]:
        """Tensors of one shape in the pool, one behind the other: so many that L2 does not hold them, or one.

        Raises:
            NotMeasuredError: the pool is smaller than one of them.
        """
        width = WIDTHS[dtype]
        count = math.prod(shape)
        step = math.ceil(count * width / ALIGNED) * ALIGNED // width
        there = min(POOL_BYTES, self.capacity // 16) // WIDTHS["bf16" if dtype == "fp8" else dtype]
        if step > there:
            raise NotMeasuredError(f"{count * width / 1e9:.1f} GB of {dtype} are more than the device has to spare")
        wanted = min(self.rotation(count * width) if rotate else 1, there // step)
        numbers = self.pool(dtype, slot)
        return [numbers[at * step : at * step + count].view(shape) for at in range(wanted)]

    def check_fits(self, size: float) -> None:
        """Refuse what would take more than four fifths of the free memory.

        Raises:
            NotMeasuredError: it is more.
        """
        free = self.torch.cuda.mem_get_info()[0]
        if size > 0.8 * free:
            raise NotMeasuredError(f"needs {size / 1e9:.1f} GB of {free / 1e9:.1f} GB free")

    def release(self) -> None:
        """Give the pools and PyTorch's own cache back."""
        self.pools.clear()
        self.torch.cuda.empty_cache()


def open_bench() -> Bench:
    """The first device that PyTorch sees.

    Raises:
        NoDeviceError: PyTorch is not installed, or sees no device.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        if getattr(error, "name", None) == "torch":
            raise NoDeviceError("needs PyTorch, which is not installed") from None
        raise NoDeviceError(f"PyTorch cannot be imported: {error}") from None
    if not torch.cuda.is_available():
        raise NoDeviceError(f"PyTorch {torch.__version__} sees no GPU")
    told = torch.cuda.get_device_properties(0)
    l2_bytes = getattr(told, "L2_cache_size", 0) or L2_BYTES
    return Bench(torch, str(told.name), str(torch.__version__), int(told.total_memory), int(l2_bytes))

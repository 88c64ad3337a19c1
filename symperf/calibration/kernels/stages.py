"""What is fitted to which rows, in the order in which it is: later stages stand on the constants of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...validation.kernels.rows import Part


@dataclass(frozen=True)
class Stage:
    """Constants that are fitted together, and the rows that tell them.

    Attributes:
        name: of the stage.
        constants: where the search for each starts.
        rows: tables, with the formats whose rows are taken; all where none is named.
        precision: the format whose constants they are; those of every format where it is empty.
        of_device: whether they are the device's, the same under every software.
        without: parts of the names of kernels whose rows are left out.
        software: whose rows are taken; of all where none is named.
        uncached: rows alone are taken whose bytes outgrow the L2 cache, where the system tells its size: collectors
            repeat a kernel, so that smaller ones may find their operands there.
    """

    name: str
    constants: Mapping[str, float]
    rows: Mapping[str, tuple[str, ...]]
    precision: str = ""
    of_device: bool = False
    without: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    uncached: bool = False

    def takes(self, table: str, part: Part) -> bool:
        """Whether the rows of a part of a table are this stage's."""
        if table not in self.rows:
            return False
        if self.software and part.group.software not in self.software:
            return False
        formats = self.rows[table]
        named = (part.kernel, part.group.operation)
        return (not formats or part.sort.format in formats) and not any(
            text in name for text in self.without for name in named
        )


RATES: Final = {"matrix_efficiency": 0.75, "memory_efficiency": 0.8, "ridge_efficiency": 0.7, "inner_ends": 100.0}
LATENCIES: Final = {"launch_latency": 3e-6, "split_latency": 3e-6, "inner_latency": 2.5e-9}
CAST: Final = {"cast_latency": 4e-6, "cast_passes": 2.0}
STAGES: Final = (
    Stage("products", RATES | LATENCIES, {"gemm": ("bfloat16",)}, of_device=True),
    Stage("large products", RATES, {"gemm": ("bfloat16",)}, of_device=True, uncached=True),
    Stage("short products", LATENCIES, {"gemm": ("bfloat16",)}, of_device=True),
    Stage("casts", {**CAST, "cast_ends": 300.0, "narrow_ends": 300.0}, {"gemm": ("fp8",)}),
    Stage("casts of blocks", {**CAST, "narrow_efficiency": 0.6}, {"gemm": ("fp8_block",)}, "fp8-block"),
    Stage(
        "casts to 4 bits", {**CAST, "narrow_efficiency": 0.6}, {"gemm": ("nvfp4",)}, "fp4", software=("vLLM", "SGLang")
    ),
    Stage(
        "casts to 4 bits, long loops",
        {**CAST, "narrow_efficiency": 0.6, "inner_latency": 2.5e-9},
        {"gemm": ("nvfp4",)},
        "fp4",
        software=("TensorRT-LLM",),
    ),
    Stage("starts under SmoothQuant", {"format_latency": 5e-6, "narrow_efficiency": 0.6}, {"gemm": ("sq",)}, "int8"),
    *(
        Stage(f"starts in {precision}", {"format_latency": 5e-6}, {"gemm": (table,)}, precision)
        for table, precision in (("int8_wo", "int8-weight"), ("int4_wo", "int4-weight"))
    ),
)

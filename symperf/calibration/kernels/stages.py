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
        commonest: of several kernels for one format only the one with most rows is taken: the software's usual one.
    """

    name: str
    constants: Mapping[str, float]
    rows: Mapping[str, tuple[str, ...]]
    precision: str = ""
    of_device: bool = False
    without: tuple[str, ...] = ()
    commonest: bool = False

    def takes(self, table: str, part: Part) -> bool:
        """Whether the rows of a part of a table are this stage's."""
        if table not in self.rows:
            return False
        formats = self.rows[table]
        named = (part.kernel, part.group.operation)
        return (not formats or part.sort.format in formats) and not any(
            text in name for text in self.without for name in named
        )


STAGES: Final = (
    Stage(
        "products",
        {
            "launch_latency": 3e-6,
            "matrix_efficiency": 0.75,
            "memory_efficiency": 0.8,
            "ridge_efficiency": 0.7,
            "split_latency": 2e-6,
        },
        {"gemm": ("bfloat16",)},
        of_device=True,
    ),
    *(
        Stage(table, {"narrow_efficiency": 0.6}, {"gemm": (table,)}, precision)
        for table, precision in (("fp8", "fp8"), ("nvfp4", "fp4"), ("int8_wo", "int8-weight"))
    ),
    Stage(
        "attention",
        {
            "prompt_latency": 1e-5,
            "prompt_efficiency": 0.8,
            "block_latency": 1.5e-6,
            "decode_latency": 8e-6,
            "decode_block_latency": 1e-6,
            "cache_efficiency": 0.8,
            "cache_cast_latency": 2e-6,
        },
        {"context_attention": (), "generation_attention": ()},
        without=("triton",),
        commonest=True,
    ),
    Stage(
        "latent",
        {"latent_latency": 8e-6, "latent_efficiency": 0.5},
        {"generation_mla": ("bfloat16/bfloat16",)},
        without=("vllm",),
    ),
)

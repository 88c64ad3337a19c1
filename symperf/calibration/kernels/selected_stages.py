"""What is fitted to rows of attention modules whose keys an indexer selects: constants of a software on a device.

They stand apart from those of `stages`: products, collectives and the rest are known when these are fitted. The rows
in 16 bits tell what the kernels of attention take; those in other formats tell how long a host launches a module.
"""

from __future__ import annotations

from typing import Final

from .stages import Stage

KERNELS: Final = {
    "index_latency": 2e-5,
    "index_efficiency": 0.3,
    "select_passes": 2.0,
    "selected_latency": 2e-5,
    "selected_efficiency": 0.3,
    "gather_efficiency": 3.0,
    "slot_share": 0.5,
}
OF_BLOCKS: Final = {f"block_{name}": start for name, start in KERNELS.items()}
_HALF: Final = ("bfloat16/bfloat16", "bfloat16/fp8")
SELECTED: Final = (
    Stage(
        "selection of keys",
        {**KERNELS, "module_latency": 3e-4, "index_module_latency": 1e-4},
        {"dsa_generation_module": _HALF, "dsa_context_module": _HALF},
        whole=True,
    ),
    *(
        Stage(
            f"modules in {table}",
            {"module_latency": 3e-4},
            {"dsa_context_module": tuple(f"{table}/{cache}" for cache in ("bfloat16", "fp8"))},
            precision,
        )
        for table, precision in (("fp8_block", "fp8-block"), ("nvfp4", "fp4"))
    ),
    Stage(
        "selection of blocks",
        {
            **{f"block_{name}": start for name, start in KERNELS.items()},
            "group_rows": 16.0,
            "block_module_latency": 1e-4,
        },
        {"msa_generation_module": (), "msa_context_module": ()},
        whole=True,
    ),
)
"""In the order in which they are fitted."""

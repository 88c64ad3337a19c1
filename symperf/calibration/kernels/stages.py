"""What is fitted to which rows, in the order in which it is: later stages stand on the constants of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...validation.kernels.formats import LeftOutError, system_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...systems.system import System
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
        hosted: whether its devices reach each other through the host alone; either where it is None.
        replaced: software and its kernels of which newer versions have others.
    """

    name: str
    constants: Mapping[str, float]
    rows: Mapping[str, tuple[str, ...]]
    precision: str = ""
    of_device: bool = False
    without: tuple[str, ...] = ()
    hosted: bool | None = None
    replaced: tuple[tuple[str, str], ...] = ()

    def takes(self, table: str, part: Part) -> bool:
        """Whether the rows of a part of a table are this stage's."""
        if table not in self.rows:
            return False
        system = part.sort.setting.system
        if (part.group.software, part.kernel) in self.replaced:
            return False
        if self.hosted is not None and (self.hosted != _is_hosted(system) or _is_of_another_server(part)):
            return False
        formats = self.rows[table]
        named = (part.kernel, part.group.operation)
        return (not formats or part.sort.format in formats) and not any(
            text in name for text in self.without for name in named
        )


def _is_hosted(system: System) -> bool:
    """Whether the links between devices are those to the host."""
    known = system.quantities
    host = known["host_bandwidth"].value if "host_bandwidth" in known else 0.0
    return "scale_up_bandwidth" in known and known["scale_up_bandwidth"].value <= host


def _is_of_another_server(part: Part) -> bool:
    """Whether the rows' links are those of a system that starts from this one, and is what their device stands for."""
    try:
        return part.sort.setting.system.name in system_of(part.group.device).lineage[1:]
    except LeftOutError:
        return False


DOMAIN: Final = {
    "domain_latency": 7e-6,
    "domain_hop_latency": 1e-6,
    "domain_piece_latency": 1e-5,
    "domain_efficiency": 0.75,
}
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
    Stage("collectives", DOMAIN, {"nccl": ()}, of_device=True, hosted=False),
    Stage("collectives", {**DOMAIN, "pair_crowding": 0.1}, {"nccl": ()}, of_device=True, hosted=True),
    Stage(
        "all-reduces",
        {"peer_latency": 5e-6, "peer_efficiency": 0.5},
        {"custom_allreduce": ()},
        without=("eager",),
        hosted=False,
    ),
    Stage(
        "scans",
        {"scan_latency": 2e-5, "chunk_latency": 2e-6, "scan_passes": 2.0},
        {"gdn": ()},
        without=("conv1d", "fused_recurrent"),
        replaced=(("vLLM", "chunk_gated_delta_rule"),),
    ),
)

"""What is fitted to which rows, in the order in which it is: later stages stand on the constants of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...systems.kernel_constants import is_hosted
from ...systems.limits import Quantity
from ...validation.kernels.experts import OTHER
from ...validation.kernels.formats import LeftOutError, system_of

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
        hosted: whether its devices reach each other through the host alone; either where it is None.
        replaced: software and its kernels of which newer versions have others.
        software: whose rows are taken; of all where none is named.
        uncached: rows alone are taken whose bytes outgrow the L2 cache, where the system tells its size: collectors
            repeat a kernel, so that smaller ones may find their operands there.
        commonest: of several kernels for one format only the one with most rows is taken: the software's usual one.
        given: what constants are where neither a row nor an earlier stage tells them.
        whole: its constants mean nothing without each other: those that no row tells stay where the search ends.
    """

    name: str
    constants: Mapping[str, float]
    rows: Mapping[str, tuple[str, ...]]
    precision: str = ""
    of_device: bool = False
    without: tuple[str, ...] = ()
    hosted: bool | None = None
    replaced: tuple[tuple[str, str], ...] = ()
    software: tuple[str, ...] = ()
    uncached: bool = False
    commonest: bool = False
    given: Mapping[str, Quantity] = field(default_factory=dict)
    whole: bool = False

    def takes(self, table: str, part: Part) -> bool:
        """Whether the rows of a part of a table are this stage's."""
        if table not in self.rows:
            return False
        system = part.sort.setting.system
        if (part.group.software, part.kernel) in self.replaced:
            return False
        if self.software and part.group.software not in self.software:
            return False
        if self.hosted is not None and (self.hosted != is_hosted(system.quantities) or _is_of_another_server(part)):
            return False
        formats = self.rows[table]
        named = (part.kernel, part.group.operation)
        return (not formats or part.sort.format in formats) and not any(
            text in name for text in self.without for name in named
        )


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
RATES: Final = {"matrix_efficiency": 0.75, "memory_efficiency": 0.8, "ridge_efficiency": 0.7, "inner_ends": 100.0}
LATENCIES: Final = {"launch_latency": 3e-6, "split_latency": 3e-6, "inner_latency": 2.5e-9}
CAST: Final = {"cast_latency": 4e-6, "cast_passes": 2.0}
MAPS: Final = {"expert_map_latency": 2e-5}
APART: Final = (OTHER, "nongated")
"""Kernels of experts that a software takes on request, and those of models without gates, which are few."""
_UPDATES: Final = {"update_latency": 4e-6, "update_passes": 1.0}
_CONVOLUTIONS: Final = {
    "convolution_latency": 5e-6,
    "convolution_passes": 1.1,
    "convolution_efficiency": 0.17,
    "sequence_latency": 5e-10,
}
_WINDOWS: Final = {"window_latency": 3e-6, "window_passes": 1.0, "window_efficiency": 0.05}


_NO_WORK: Final = Quantity(1.0, "no row tells it: memory binds in all")
_NO_BLOCKS: Final = Quantity(0.0, "no row tells it: blocks of these kernels take many channels of a sequence")


def _channelwise(constants: Mapping[str, float]) -> dict[str, float]:
    """The same of the kernels of Kimi Delta Attention."""
    return {f"channel_{name}": value for name, value in constants.items()}


RECURRENT: Final = (
    Stage("updates of states", _UPDATES, {"gdn": ()}, without=("conv1d", "chunk")),
    Stage(
        "convolutions",
        _CONVOLUTIONS,
        {"gdn": (), "mamba2": ()},
        without=("update", "recurrent", "chunk"),
        given={"sequence_latency": _NO_BLOCKS, "convolution_efficiency": _NO_WORK},
    ),
    Stage(
        "windows",
        _WINDOWS,
        {"gdn": (), "mamba2": ()},
        without=("_fn", "recurrent", "chunk"),
        given={"window_efficiency": _NO_WORK},
    ),
    Stage(
        "channelwise scans",
        _channelwise({"scan_latency": 3e-5, "chunk_latency": 4e-6, "scan_passes": 1.0})
        | {"channel_scan_efficiency": 0.2},
        {"kda": ()},
        without=("conv1d", "decode", "recurrent", "update", "with_fused_gate"),
    ),
    # Drafts under test are steps of kernels of their own.
    Stage("channelwise updates", _channelwise(_UPDATES), {"kda": ()}, without=("conv1d", "chunk", "flashkda", "_mtp_")),
    Stage(
        "channelwise convolutions",
        _channelwise(_CONVOLUTIONS),
        {"kda": ()},
        without=("update", "decode", "recurrent", "chunk", "flashkda"),
        given={"channel_sequence_latency": _NO_BLOCKS, "channel_convolution_efficiency": _NO_WORK},
    ),
    Stage(
        "channelwise windows",
        _channelwise(_WINDOWS),
        {"kda": ()},
        without=("_fn", "decode", "recurrent", "chunk", "flashkda", "gating"),
        given={"channel_window_efficiency": _NO_WORK},
    ),
)
"""Kernels of recurrent layers beside the scans of gated delta rules. Together they would be more constants than a
software has of its own on a device: those of any device hold on each."""
_WEIGHTS: Final = {
    "expert_memory_efficiency": Quantity(
        0.89,
        "median, 10th and 90th percentile of 21 pairs of device and software, each fitted with one of its own",
        0.68,
        0.97,
    )
}
_CROSSING: Final = "as on an H100, where kernels were measured between nodes; not measured here"
_ACROSS: Final = {
    "exchange_hop_latency": Quantity(1.4e-5, _CROSSING),
    "exchange_out_efficiency": Quantity(0.94, _CROSSING),
}
_BULK: Final = {
    "exchange_units": Quantity(20.0, "20 multiprocessors: DeepSeek-V3 report section 3.2.2; default of DeepEP's tests"),
    "bulk_hop_latency": Quantity(
        3.3e-5, "least times on 2, 4 and 8 nodes of 8 H100 with DeepEP, 58 to 140 us, over those on one, each doubling"
    ),
    "exchange_out_efficiency": Quantity(0.9, "DEEPEP-005 to 008: 43 to 45 GB/s of 50 leave a node on 4 and 8 nodes"),
}
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
    *RECURRENT,
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
    ),
    Stage("absorbed", {"absorb_latency": 2e-6}, {"mla_bmm": ("bfloat16",)}),
    Stage(
        "experts",
        {
            "expert_latency": 3e-5,
            "grouped_efficiency": 0.6,
            "expert_passes": 3.0,
            "choice_latency": 1e-9,
        },
        {"moe": ("bfloat16",)},
        without=APART,
        given=_WEIGHTS,
    ),
    Stage(
        "experts in fp8",
        {"grouped_efficiency": 0.4, "expert_latency": 3e-5, "expert_memory_efficiency": 0.5},
        {"moe": ("fp8",)},
        "fp8",
        without=APART,
        software=("vLLM",),
    ),
    *(
        Stage(f"experts in {table}", dict(starts), {"moe": (table,)}, precision, without=APART)
        for table, precision, starts in (
            ("fp8_block", "fp8-block", {"grouped_efficiency": 0.4, "expert_latency": 3e-5, "choice_latency": 1e-9}),
            ("nvfp4", "fp4", {"grouped_efficiency": 0.4, "expert_latency": 3e-5, "choice_latency": 1e-9}),
            (
                "w4a16_mxfp4",
                "mxfp4-weight",
                {"grouped_efficiency": 0.2, "expert_latency": 4e-5, "expert_memory_efficiency": 0.5, **MAPS},
            ),
            (
                "int4_wo",
                "int4-weight",
                {"grouped_efficiency": 0.2, "expert_latency": 4e-5, "choice_latency": 1e-8, **MAPS},
            ),
        )
    ),
    Stage(
        "direct exchanges",
        {
            "exchange_latency": 1e-5,
            "exchange_hop_latency": 1e-5,
            "exchange_efficiency": 0.5,
            "exchange_out_efficiency": 0.9,
        },
        {"wideep_deepep_ll": ()},
        given=_ACROSS,
    ),
    Stage(
        "bulk exchanges",
        {"bulk_exchange_latency": 3e-5, "exchange_unit_efficiency": 0.02},
        {"wideep_deepep_normal": (), "trtllm_alltoall": ()},
        without=(OTHER,),
        given=_BULK,
    ),
)

"""Where names meet numbers: the value and the provenance of every symbol that a run binds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..plans.plan import NUMBERS, STATE_BYTES
from ..plans.structure import SENT
from ..systems.runtime_memory import memory_values
from ..systems.software_symbols import SOFTWARE
from ..systems.system_symbols import Limits
from ..systems.units import BYTES, COUNT, FRACTION
from ..systems.widening import product_format
from .memory.state_values import STATE_DEFAULTS, STATE_LIMITS, defaults_of

if TYPE_CHECKING:
    from ..models.model import Model
    from ..operations.compiled import Bound
    from ..plans.plan import Plan
    from ..systems.system import System

LOW_PRECISIONS = ("fp8", "fp4")
"""Precisions of the products of linear layers alone."""
MEGATRON = "mixed-precision training with Adam, Rajbhandari et al. 2020 section 3.1; Korthikanti et al. 2022"
DOCUMENTS = ("document_length", "document_variation", "shard_variation")
"""Symbols of sequences that are packed with documents."""
CUTLASS = "CUTLASS, the usual threadblock tiles 256x128, 128x128 and 64x128"
UNALIGNED = (
    "calibrated: GPT-2 124M on A100 gains 25 % with a vocabulary of 50,304 for 50,257 (A. Karpathy on nanoGPT, 2023), "
    "GPT-2 in FP16 30 % (intel/torch-xpu-ops issue 1129); 1/3 in ml-explore/mlx issue 2712; up to 0.85 "
    "where the library or the compiler pads by itself (3 to 4 %: build-nanogpt, RobertRiachi/nanoPALM pull request 6)"
)
APPLE = "README of apple/ml-cross-entropy: Gemma 2 2B, 8192 tokens on an A100"
CUT_RATE = f"calibrated: {APPLE}, forward 46.4 ms, of which a product of the library takes 40.3"
CUT_BLOCKS = (
    f"calibrated: {APPLE}, backward 89.3 ms: the product again (46.4), and this part of two more; a trained model's "
    "probabilities; about 1 at the start of a training, or where filtering is off (cce_exact)"
)
TITAN_CHUNKS = "torchtitan, components/loss.py: ChunkedCELoss.Config.num_chunks = 8"
SENT_IN_16_BITS = "Megatron-Core sends no FP8 (core/transformer/moe/fused_a2a.py at 02ad939b)"
SENT_IN_FP8 = "DeepSeek-V3 sends FP8 (report section 3.3.3), 1.03125 B with DeepEP's FP32 scale for each 128 values"
TRAINED_INDEXER = (
    "indexers are trained in every step, the sparse stage of DeepSeek-V3.2 (report section 2.1); 0 where they are "
    "frozen, as GLM-5 has them in reinforcement learning"
)

DEFAULTS: dict[str, tuple[float, str]] = {
    **{name: (float(value), MEGATRON) for name, value in STATE_BYTES.items()},
    "statistic_bytes": (4.0, "softmax statistics and logits of the loss in FP32, as in Megatron-LM"),
    "dispatch_element_bytes": (2.0, f"as activations: {SENT_IN_16_BITS}; {SENT_IN_FP8}"),
    "combine_element_bytes": (
        2.0,
        "as activations: also DeepSeek-V3 combines in BF16 (report section 3.3.3)",
    ),
    "index_bytes": (8.0, "token indices are 64-bit integers in PyTorch"),
    "tile_long": (256.0, CUTLASS),
    "tile_wide": (128.0, CUTLASS),
    "tile_narrow": (64.0, CUTLASS),
    "alignment_efficiency": (0.36, UNALIGNED),
    "adapter_passes": (
        5.0,
        "scaled and added by kernels of their own: PEFT, tuners/lora/layer.py; 1 where the product does both (Unsloth)",
    ),
    "base_element_bytes": (0.5, "4 bits: NF4, Dettmers et al. 2023 section 3"),
    "base_block": (64.0, "a scale for each 64 values, Dettmers et al. 2023 section 3"),
    "base_scale_bytes": (
        1.015625,
        "8 bits, and 32 for each 256 of them: double quantization, Dettmers et al. 2023 section 3; 4 without",
    ),
    "loss_chunks": (8.0, TITAN_CHUNKS),
    "cut_efficiency": (0.868, CUT_RATE),
    "cut_kept": (0.435, CUT_BLOCKS),
    "state_bytes": (4.0, "recurrent states and decays in FP32, as mamba_ssm and flash-linear-attention keep them"),
    "index_training": (1.0, TRAINED_INDEXER),
    "token_imbalance": (1.0, "balanced routing assumed; set it to what your router reaches"),
    "workspace_bytes": (0.0, "none assumed; set it to what your framework and its libraries hold"),
    "host_latency": (0.0, "none assumed; set it to what your host needs for a launch (symperf measure)"),
    "host_collective_latency": (0.0, "none assumed; set it to what your host needs to call a collective"),
    "host_wait": (0.0, "the host runs ahead of the device: launches of CUDA return at once"),
    "routing_operations": (0.0, "none assumed; a profile of a software states them (--stack)"),
    "expert_operations": (0.0, "none assumed: one launch for all experts"),
    "expert_cast_operations": (0.0, "none assumed: one launch for all experts"),
    "exchange_overlap": (0.0, "transfers of experts run beside no other micro-batch"),
    "scatter_latency": (0.0, "tokens are sorted and summed by fused kernels, without atomic additions"),
    "separate_expert_kernels": (0.0, "products of experts add their biases, and their activation's kernel its limits"),
    **dict.fromkeys(("gated_passes", "gated_backward_passes"), (1.0, "one kernel that reads and writes once")),
    "loss_metric_bytes": (0.0, "no metrics of the logits are computed in a step"),
    "gradient_sum_bytes": (0.0, "the product of a gradient adds it: --gradient-accumulation-fusion of Megatron-LM"),
    "owned_tensors": (0.0, "ZeRO deals equal shards of all weights"),
    "gathered_tensors": (0.0, "ZeRO-3 gathers a layer in one buffer, from which its tensors are views, as FSDP does"),
    "sharded_operations": (0.0, "none assumed: ZeRO-3 gathers a layer at once, as FSDP does"),
    "piece_operations": (0.0, "none assumed: the pieces of all ranks lie in one buffer, as in FSDP"),
    "broadcast_piece_bytes": (
        4194304.0,
        "8 channels of 512 KiB (NCCL_BUFFSIZE over NCCL_STEPS): assumed, of 4 to 16, twice the rings of 4 adapters",
    ),
    "overhead_latency": (0.0, "none assumed; set it to what input, logging and synchronisation add to a step"),
    "jitter": (0.0, "none assumed; set it to the relative spread of your devices' times"),
    **dict.fromkeys(DOCUMENTS, (0.0, "one document fills a sequence; set by the lengths of documents")),
    **STATE_DEFAULTS,
}
"""Symbols that neither model, system nor plan binds: value and provenance."""

COUNT_OF_REALS = replace(FRACTION, name="factor", example="1.2")
_ELEMENT_BYTES = replace(BYTES, example="2 B")
_ELEMENT, _TILE = Limits(_ELEMENT_BYTES, 1 / 16, 1000), Limits(COUNT, 1, 1e6)
LIMITS: dict[str, Limits] = {
    **{name: _TILE if name.startswith("tile_") else _ELEMENT for name in DEFAULTS},
    "alignment_efficiency": Limits(FRACTION, 1e-2, 1.0),
    "loss_chunks": Limits(COUNT, 1, 1e6),
    "cut_efficiency": Limits(FRACTION, 1e-2, 1.0),
    "cut_kept": Limits(FRACTION, 1e-3, 1.0),
    "optimizer_bytes": Limits(_ELEMENT_BYTES, 1 / 16, 1000, zero=True),
    "index_training": Limits(FRACTION, 1e-9, 1.0, zero=True),
    "token_imbalance": Limits(COUNT_OF_REALS, 1, 1e3),
    "adapter_passes": Limits(COUNT_OF_REALS, 0.1, 100),
    "base_block": Limits(COUNT, 1, 1e6),
    "workspace_bytes": Limits(BYTES, 1, 1e15, zero=True),
    "document_length": Limits(COUNT_OF_REALS, 1, 1e9, zero=True),
    **dict.fromkeys(DOCUMENTS[1:], Limits(COUNT_OF_REALS, 1e-9, 1e6, zero=True)),
    **SOFTWARE,
    **STATE_LIMITS,
}
"""What values the symbols of `DEFAULTS` may take."""


def bind(
    model: Model,
    system: System,
    plan: Plan,
    batch: int,
    sequence: int,
    defaults: dict[str, float],
    encoder_sequence: int | None = None,
) -> Bound:
    """The value and provenance of every symbol, by name.

    Args:
        model: gives its sizes.
        system: gives rates, bandwidths, latencies and efficiencies.
        plan: gives degrees, micro-batch and overlaps.
        batch: sequences of the global batch.
        sequence: tokens of a sequence.
        defaults: values that replace those of `DEFAULTS`.
        encoder_sequence: tokens of the encoder's sequence before a decoder; by default as many as the decoder's.
    """
    bound: Bound = {name: (float(size), f"model {model.name}") for name, size in model.sizes.items()}
    bound["batch"] = (float(batch), "asked for")
    bound["sequence"] = (float(sequence), "asked for")
    if model.architecture.stacks == 2:
        asked = "asked for" if encoder_sequence else "as the decoder's sequence"
        bound["encoder_sequence"] = (float(encoder_sequence or sequence), asked)
    for name, field in NUMBERS.items():
        bound[field.symbol] = (plan.number(name), "plan")
    precision = precision_of(plan, system)
    rate = system.matrix_rate(precision)
    bound["matrix_rate"] = (rate.value, f"{precision}: {rate.source}")
    for name, quantity in system.quantities.items():
        bound[name] = (quantity.value, quantity.source)
    bound |= low_precision_rates(system, precision)
    state = defaults_of(plan.optimizer, precision_asked(plan, system), plan.base_precision)
    for name, (value, source) in (DEFAULTS | memory_values(system.runtime) | state).items():
        told = system.software.get(name)
        given = (value, source) if told is None else (told.value, told.source)
        bound[name] = (defaults[name], "set by the user") if name in defaults else given
    for name in SENT:
        if name not in defaults:
            bound[name] = (bound["activation_bytes"][0], bound[name][1])
    return bound


def base_values(base_precision: str) -> Bound:
    """What a frozen base that is stored in few bits binds."""
    found = DEFAULTS | defaults_of("adam", "bf16", base_precision)
    return {name: found[name] for name in ("base_element_bytes", "base_block", "base_scale_bytes")}


def low_precision_rates(system: System, precision: str) -> Bound:
    """The 16-bit rate of what does not run in a low precision, and the efficiency of what does; nothing for others.

    Raises:
        InputError: the device has no 16-bit rate.
    """
    if precision not in LOW_PRECISIONS:
        return {}
    half = system.matrix_rate("bf16" if "bf16" in system.matrix_rates else "fp16")
    efficiency = system.quantities.get(narrow_efficiency(system, precision)) or system.quantities["matrix_efficiency"]
    return {
        "attention_rate": (half.value, f"attention, head and routers run in 16 bits: {half.source}"),
        "fp8_efficiency": (efficiency.value, efficiency.source),
    }


def narrow_efficiency(system: System, precision: str) -> str:
    """The quantity of a system that products in a low precision attain; empty where it has none of that precision."""
    known = system.quantities.keys()
    if precision == "fp4" and "fp4_efficiency" in known:
        return "fp4_efficiency"
    return "fp8_efficiency" if "fp8_efficiency" in known and (precision == "fp8" or system.power_limited) else ""


def precision_of(plan: Plan, system: System) -> str:
    """The precision of the products: that asked for, or a wider one; 8 bits and fewer are trained where they run."""
    asked = precision_asked(plan, system)
    return asked if asked in LOW_PRECISIONS else product_format(system, asked)


def precision_asked(plan: Plan, system: System) -> str:
    """The plan's precision, or bf16, or fp16 on a device without bf16."""
    if plan.precision:
        return plan.precision
    return "bf16" if "bf16" in system.matrix_rates or "fp16" not in system.matrix_rates else "fp16"

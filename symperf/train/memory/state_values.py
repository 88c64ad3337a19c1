"""Default values of the symbols of training's state: by optimizer, by precision, and of offload and frameworks."""

from __future__ import annotations

from ...systems.runtime_memory import DEFAULT_RUNTIME, MEMORY_SYMBOLS, RUNTIMES
from ...systems.system_symbols import Limits
from ...systems.units import BYTES, COUNT, FRACTION

Values = dict[str, tuple[float, str]]

_NVFP4 = "4 bits, and a scale of 8 bits for each 16 values (NVIDIA 2025, arXiv 2509.25149 section 2)"
_LOSS = (
    "the gradient of the logits in 16 bits beside their probabilities in FP32, in whose place it is made: Megatron-LM, "
    "megatron/core/tensor_parallel/cross_entropy.py; PyTorch's cross_entropy 8, with the logits in 16 bits still held "
    "10, of logits split by loss_parallel 12"
)
STATE_DEFAULTS: Values = {
    "master_bytes": (4.0, "FP32 master weights, Micikevicius et al. 2017 section 3.1"),
    "moment_bytes": (4.0, "moments in FP32, as the optimizers' papers have them"),
    "block_scale_bytes": (4.0, "an FP32 scale for each block, Dettmers et al. 2022 section 2"),
    "optimizer_block": (2048.0, "blocks of 2,048 elements, Dettmers et al. 2022 section 2"),
    "newton_schulz_steps": (5.0, "5 iterations, Jordan et al. 2024; Megatron Core's default"),
    "newton_schulz_bytes": (2.0, "iterations in BF16, Jordan et al. 2024"),
    "product_input_bytes": (2.0, "products in 16 bits"),
    "weight_copies": (2.0, "by rows and by columns: Transformer Engine, handling transposes (Hopper, MXFP8, NVFP4)"),
    "cast_copies": (2.0, "by rows and by columns: Transformer Engine, handling transposes (Hopper, MXFP8, NVFP4)"),
    "amax_passes": (0.0, "none with delayed or block scales; set it to 1 for current scales of whole tensors"),
    "offloaded_activations": (1.0, "all, where activations are offloaded"),
    "offloaded_optimizer": (1.0, "all, where the optimizer is offloaded (ZeRO-Offload)"),
    "nvme_efficiency": (1.0, "data-sheet bandwidth assumed; set it to what your drives reach"),
    "offloaded_weights": (1.0, "all, where weights are offloaded (ZeRO-Infinity)"),
    "overlap_offload": (1.0, "transfers prefetched beside the work, Ren et al. 2021 section 4; a limit"),
    "host_efficiency": (1.0, "data-sheet bandwidth assumed; set it to what your host reaches"),
    "host_memory_efficiency": (1.0, "data-sheet bandwidth assumed; set it to what your host reaches"),
    **{name: (quantity.value, quantity.source) for name, quantity in RUNTIMES[DEFAULT_RUNTIME].items()},
    "loss_working_bytes": (2.0, _LOSS),
}
"""Value and provenance."""

_WIDE: Values = {
    "activation_bytes": (4.0, "all in 32 bits"),
    "weight_bytes": (4.0, "all in 32 bits"),
    "gradient_bytes": (4.0, "all in 32 bits"),
    "optimizer_bytes": (8.0, "two moments in 32 bits; the weights are their own master copy"),
    "master_bytes": (0.0, "the weights are their own master copy"),
}
_BY_PRECISION: dict[str, Values] = {
    "fp32": _WIDE,
    "tf32": _WIDE,
    "fp8": {"product_input_bytes": (1.0, "FP8; scales of tensors or of 128 values are small")},
    "fp4": {"product_input_bytes": (0.5625, _NVFP4)},
}
_BY_OPTIMIZER: dict[str, Values] = {
    "adam-8bit": {"moment_bytes": (1.0, "8-bit moments, Dettmers et al. 2022")},
    "adam-4bit": {
        "moment_bytes": (0.5, "4-bit moments, Li et al. 2023"),
        "optimizer_block": (128.0, "blocks of 128 elements, Li et al. 2023 section 3; torchao's AdamW4bit"),
    },
}
_BY_BASE: dict[str, Values] = {
    "int8": {
        "base_element_bytes": (1.0, "8 bits: LLM.int8(), Dettmers et al. 2022"),
        "base_block": (4096.0, "a scale for each row of the weight, of about 4,096 values: assumed, 1,024 to 16,384"),
        "base_scale_bytes": (4.0, "an FP32 scale for each row: bitsandbytes, Int8Params.SCB"),
    },
}
_ELEMENT = Limits(BYTES, 1 / 16, 1000)
_PART = Limits(FRACTION, 1e-6, 1.0, zero=True)
_KNOWN_LIMITS = {
    "master_bytes": Limits(BYTES, 1 / 16, 1000, zero=True),
    "optimizer_block": Limits(COUNT, 1, 1e9),
    "newton_schulz_steps": Limits(COUNT, 1, 100),
    "weight_copies": Limits(COUNT, 1, 8, zero=True),
    "cast_copies": Limits(COUNT, 1, 8),
    "amax_passes": Limits(COUNT, 1, 8, zero=True),
    "nvme_efficiency": Limits(FRACTION, 1e-4, 1.0),
    "host_efficiency": Limits(FRACTION, 1e-4, 1.0),
    "host_memory_efficiency": Limits(FRACTION, 1e-4, 1.0),
    **MEMORY_SYMBOLS,
}
STATE_LIMITS: dict[str, Limits] = {
    name: _KNOWN_LIMITS.get(name, _ELEMENT if name.endswith("_bytes") else _PART) for name in STATE_DEFAULTS
}
"""What values these symbols may take."""


def defaults_of(optimizer: str, precision: str, base_precision: str | None = None) -> Values:
    """The values that an optimizer, a precision and the format of a frozen base change.

    >>> defaults_of("adam-8bit", "fp8")["moment_bytes"][0], defaults_of("adam", "bf16")
    (1.0, {})
    """
    return _BY_OPTIMIZER.get(optimizer, {}) | _BY_PRECISION.get(precision, {}) | _BY_BASE.get(base_precision or "", {})

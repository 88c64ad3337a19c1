"""The value and the provenance of every symbol of an inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..common.errors import InputError
from ..plans.plan import NUMBERS
from ..plans.structure import SENT
from ..systems.kernel_constants import BY_FORMAT, INNER_LATENCY
from ..systems.system_symbols import MATRIX_RATE, Limits
from ..systems.units import BYTES, COUNT, FRACTION
from ..systems.widening import product_format
from ..train.binding import DEFAULTS, LIMITS, narrow_efficiency
from .formats import KV_BYTES, SIXTEEN_BITS, format_of, kv_format, sixteen_bits
from .graphs import GRAPH_LIMITS
from .memory_rule import MEMORY_LIMITS
from .stack import LIMITS as STACK_LIMITS
from .stored import StoredFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.model import Model
    from ..operations.compiled import Bound
    from ..plans.plan import Plan
    from ..systems.system import System
    from ..systems.system_symbols import Quantity
    from .stack import Stack

CHUNK: Final = 2048
"""Where a profile states no chunk: default of vLLM's `max_num_batched_tokens` with chunked prefill in 2024 (vLLM
documentation, Optimization and Tuning)."""
OWN_LIMIT: Final = "vLLM, custom_all_reduce.py: max_size is 8 MiB"
CUBLAS: Final = "measured: PyTorch 2.11 with cuBLAS 13 on an H200, benchmarks/calibration/README.md"
EXCHANGE_TOKENS: Final = (
    "SGLang, docs/references/environment_variables.md: default of SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
)
MMA: Final = "rows of the matrix instruction mma.m16n8k16, PTX ISA section 9.7"
HOST_RATE: Final = (
    "assumed: two sockets for eight devices, of 21.3 TFLOP/s each, which tuned AMX kernels for experts sustain on a "
    "Xeon (LMSYS, Accelerating Hybrid Inference in SGLang with KTransformers CPU Kernels, 2025-10-22); a device alone "
    "on its socket has all of one"
)
INDEX_IN_8_BITS: Final = (
    "one byte and a scale of 4 for each 128 features, whatever the cache: released code of DeepSeek-V3.2; vLLM, "
    "DeepseekV32IndexerCache; SGLang, index_k_with_scale"
)
INDEX_IN_16_BITS: Final = "as activations: vLLM, MiniMaxM3IndexerCache, default of indexer_kv_dtype"
_KEPT: Final = (
    "statistic_bytes",
    "index_bytes",
    "tile_long",
    "tile_wide",
    "tile_narrow",
    "alignment_efficiency",
    "token_imbalance",
    "state_bytes",
    "workspace_bytes",
)
OWN: Final[Mapping[str, tuple[float, str]]] = {
    **{name: DEFAULTS[name] for name in _KEPT},
    "fragmentation": (0.0, "none assumed: shapes of steps repeat; set it to the part that your allocator loses"),
    "context_bytes": (0.0, "the profile's, or none"),
    "collective_buffer_bytes": (0.0, "the profile's, or none"),
    "tile_thin": (16.0, MMA),
    "routing_skew": (0.01, "loads of experts are even; a run that states it has their power law"),
    "split_inner": (2048.0, CUBLAS),
    "exchange_tokens": (128.0, EXCHANGE_TOKENS),
    "own_limit_bytes": (8 * 2.0**20, OWN_LIMIT),
    "chunk": (float(CHUNK), "default of vLLM's max_num_batched_tokens with chunked prefill"),
    "step_tokens": (1.0, "no tokens are drafted"),
}
HOST: Final[Mapping[str, tuple[float, str]]] = {
    **{name: DEFAULTS[name] for name in ("offloaded_weights", "overlap_offload", "host_efficiency")},
    "host_memory_efficiency": DEFAULTS["host_memory_efficiency"],
    "offloaded_cache": (1.0, "all, where the cache is offloaded"),
    "offloaded_experts": (1.0, "all, where experts are offloaded"),
    "host_matrix_rate": (5.3e12, HOST_RATE),
}
"""What an inference that leaves something to its host binds."""
FORMAT_SYMBOLS: Final = (
    "activation_bytes",
    "weight_bytes",
    "operand_bytes",
    "kv_bytes",
    "table_bytes",
    "index_key_bytes",
    *SENT,
)
INFERENCE_LIMITS: Final[Mapping[str, Limits]] = {
    **{name: LIMITS[name] for name in (*_KEPT, "fragmentation")},
    "tile_thin": Limits(COUNT, 1, 1e6),
    "routing_skew": Limits(FRACTION, 1e-4, 1.0),
    "split_inner": Limits(COUNT, 1, 1e9),
    "exchange_tokens": Limits(COUNT, 1, 1e6),
    "own_limit_bytes": Limits(BYTES, 1.0, 1e12),
    **dict.fromkeys(FORMAT_SYMBOLS, LIMITS["activation_bytes"]),
    **{name: LIMITS[name] for name in ("offloaded_weights", "overlap_offload", "host_efficiency")},
    **dict.fromkeys(("offloaded_cache", "offloaded_experts"), LIMITS["offloaded_weights"]),
    "host_memory_efficiency": LIMITS["host_memory_efficiency"],
    "host_matrix_rate": MATRIX_RATE,
    "attention_rate": MATRIX_RATE,
    "score_rate": MATRIX_RATE,
    "index_rate": MATRIX_RATE,
    "half_efficiency": Limits(FRACTION, 1e-4, 1.0),
    "half_inner_latency": INNER_LATENCY,
    **STACK_LIMITS,
    **MEMORY_LIMITS,
    **GRAPH_LIMITS,
    "chunk": Limits(COUNT, 1, 1e9),
}
"""What values the symbols may take that neither model, system nor plan binds."""


@dataclass(frozen=True)
class Work:
    """What is asked of an inference: sequences, tokens of each prompt, tokens generated for each."""

    batch: int
    prompt: int
    generate: int


def bind(
    model: Model,
    system: System,
    plan: Plan,
    work: Work,
    stack: Stack,
    kv_precision: str | None,
    own: dict[str, float],
    stored: StoredFormat | None = None,
) -> Bound:
    """The value and provenance of every symbol, by name.

    Args:
        model: gives its sizes.
        system: gives rates, bandwidths, latencies and efficiencies.
        plan: gives degrees, micro-batch and precision.
        work: batch, prompt and generated tokens.
        stack: gives what the software adds.
        kv_precision: format of the cache.
        own: values that the user set.
        stored: what the checkpoint says of its classes of modules.

    Raises:
        InputError: an unknown format, or a rate that the device does not have.
    """
    bound: Bound = {name: (float(size), f"model {model.name}") for name, size in model.sizes.items()}
    for name in ("batch", "prompt", "generate"):
        bound[name] = (float(getattr(work, name)), "asked for")
    for name, field in NUMBERS.items():
        if field.inference in ("searched", "read"):
            bound[field.symbol] = (plan.number(name), "plan")
    for name, quantity in {**system.quantities, **stack.quantities}.items():
        bound[name] = (quantity.value, quantity.source)
    stored = StoredFormat(plan) if stored is None else stored
    precision, _, rate = format_of(plan, system)
    bound["half_efficiency"] = bound["matrix_efficiency"]
    if "inner_latency" in bound:
        bound.setdefault("half_inner_latency", bound["inner_latency"])
    bound |= products(system, plan, stored.weight)
    for number, other in enumerate(stored.others, start=2):
        made = products(other.system, other.plan, other.weight)
        bound |= {f"{name}_{number}": entry for name, entry in made.items()}
    half = sixteen_bits(system)
    wide = product_format(system, half)
    attention = system.matrix_rate(wide if wide in system.matrix_rates else rate)
    bound["attention_rate"] = (attention.value, f"attention runs in 16 bits: {attention.source}")
    sixteen = (2.0, "activations between products, tables and head stay in 16 bits")
    bound["activation_bytes"] = bound["table_bytes"] = sixteen
    cache = kv_format(kv_precision, precision)
    bound["kv_bytes"] = (KV_BYTES[cache], f"cache in {cache}")
    narrow_cache = KV_BYTES[cache] < sixteen[0]
    bound["cache_casts"] = (float(narrow_cache), f"cache in {cache}")
    bound.update(OWN)
    if plan.offload:
        bound.update(HOST)
    for name in HOST if not plan.offload else ():
        if name in own:
            raise InputError(f"{name}: means something for what the host keeps only, found none of it (offload)")
    if (tokens := stack.chunk.on(system)) is not None:
        bound["chunk"] = (float(tokens), stack.chunk.source)
    defaults = {**stack.memory.on(system, plan), **stack.graphs.on(system, plan)}
    bound.update({name: (each.value, each.source) for name, each in defaults.items()})
    bound.update(_indexer(model, system, bound["attention_rate"]))
    for name, value in own.items():
        bound[name] = (value, "set by the user")
    scored = stored.rate_of("attention", rate) == cache == "fp8"
    bound.setdefault("score_rate", bound[stored.symbol("matrix_rate", "attention") if scored else "attention_rate"])
    sent = dict.fromkeys(SENT, (bound["activation_bytes"][0], "as activations: the software states no other format"))
    sent_as = stored.precision_of("experts") or precision
    sent |= {name: (quantity.value, quantity.source) for name, quantity in stack.sent_in(sent_as).items()}
    bound.update({name: entry for name, entry in sent.items() if name not in own})
    return bound


def _indexer(model: Model, system: System, sixteen: tuple[float, str]) -> Bound:
    """Format and rate of an indexer's keys: beside latents 8 bits where the device multiplies them, else 16."""
    rate = product_format(system, "fp8")
    if any("block_index" in kind.traits for kind in model.architecture.kinds) or rate != "fp8":
        return {"index_key_bytes": (2.0, INDEX_IN_16_BITS), "index_rate": sixteen}
    found = system.matrix_rate(rate)
    return {"index_key_bytes": (1 + 4 / 128, INDEX_IN_8_BITS), "index_rate": (found.value, f"{rate}: {found.source}")}


def products(system: System, plan: Plan, weight: float | None) -> Bound:
    """What differs between formats of products: the symbols of `BY_FORMAT` that a format has on a system.

    Args:
        system: with what software reaches in the format.
        plan: whose precision is the format.
        weight: bytes of a weight as the checkpoint stores it; None: as the format has it.

    Raises:
        InputError: an unknown format, or a rate that the device does not have.
    """
    precision, found, rate = format_of(plan, system)
    bound = {name: (q.value, q.source) for name, q in system.quantities.items() if name in BY_FORMAT}
    bound["matrix_rate"] = (system.matrix_rate(rate).value, f"{rate}: {system.matrix_rate(rate).source}")
    chosen = bound["matrix_efficiency"][1].startswith("set by the user")
    own = "" if rate in SIXTEEN_BITS else narrow_efficiency(system, rate)
    own = "narrow_efficiency" if "narrow_efficiency" in system.quantities else own
    if own in system.quantities and not chosen:
        bound["matrix_efficiency"] = (system.quantities[own].value, system.quantities[own].source)
    stored = (found.weight, found.source) if weight is None else (weight, "as the checkpoint stores it, with scales")
    bound["weight_bytes"] = (float(stored[0]), f"{precision}: {stored[1]}")
    bound["operand_bytes"] = (float(found.operand), f"{precision}: {found.source}")
    return bound


def bound_from(quantities: dict[str, Quantity], bound: Bound, stored: StoredFormat) -> dict[str, Quantity]:
    """Quantities by the symbol that they are bound to: products in a format with an efficiency of its own have that."""
    found = dict(quantities)
    narrow = quantities.get("narrow_efficiency")
    if narrow is not None and bound["matrix_efficiency"] == bound["narrow_efficiency"]:
        found["matrix_efficiency"] = narrow
    for number, other in enumerate(stored.others, start=2):
        known = other.system.quantities
        own = {name: known[name] for name in BY_FORMAT & known.keys()}
        own["matrix_efficiency"] = known.get("narrow_efficiency", known["matrix_efficiency"])
        found |= {f"{name}_{number}": quantity for name, quantity in own.items()}
    return found

"""The structural choices that give a cost its form; everything else is a number bound to a symbol."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from ..common.frozen import HashOnce
from ..models.architecture import RECURRENT

if TYPE_CHECKING:
    from collections.abc import Container

    from ..models.configs import Architecture
    from ..systems.system import Links, System
    from .encoders import EncoderPart
    from .plan import Plan

Attention = Literal["eager", "flash"]
Recompute = Literal["none", "selective", "full"]
Schedule = Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-h2", "zero-bubble-2p", "dualpipe"]
Context = Literal["none", "ring", "all-to-all", "all-gather"]
Stages = Literal["even", "uneven", "given", "layout"]
COUNTED = {"none": (0, 0), "embedding": (1, 0), "loss": (0, 1), "both": (1, 1)}
"""Ends of a model that are dealt as a layer: what a plan calls them, and whether embedding and loss are."""
Optimizer = Literal["adam", "adam-8bit", "adam-4bit", "adafactor", "sgd-momentum", "muon"]
RankOrder = Literal["tp-cp-dp-pp", "tp-cp-pp-dp"]
AnyOrder = RankOrder | Literal["either"]
"""In a form for "either" order there are symbols for it, which a search gives values."""
EITHER_ORDER = ("pipeline_inside", "pipeline_outside")
"""Symbols of such a form: 1 where a whole pipeline lies inside a replica and 0 else, and the other way round."""
Loss = Literal["unfused", "fused", "chunked", "fused-linear", "cut"]
"""How the loss follows the head: kernels that each read logits in 32 bits; one that reads them in 16; that one chunk by
chunk, in a number of chunks that is given or that keeps a chunk's logits as small as the input; or no logits stored."""
EAGER_PARTS = ("norms", "rotary", "gated", "copies")
"""What of a layer may run operation by operation; of copies, norms read one of the stream in 32 bits."""
Products = Literal["half", "fp8", "fp4"]
"""Formats of the products of linear layers in training: 16 bits, or lower, with casts and copies."""
LISTED = tuple(mixer for mixer in RECURRENT if mixer not in ("matrix_memory", "wkv"))
MATRIX_MIXERS = ("attention", "local_attention", "latent_attention", "compressed_attention", "none", *LISTED)
"""Mixers whose matrices are listed one by one, for optimizers and casts that need them."""
OFFLOADS = ("activations", "gradients", "optimizer", "weights")
"""What a host keeps of a training step."""
NVME = ("optimizer", "weights")
"""What of a training step the host may keep on drives."""
HOSTED = ("weights", "cache", "experts")
"""What a host may keep of an inference, in the order in which it is written."""
ZERO_BUBBLE = ("zero-bubble", "zb-h2", "zero-bubble-2p")
STATED = ("host_latency", "host_collective_latency", "overhead_latency", "jitter")
"""Symbols that are 0 unless a run states them; only then the step has their terms."""
WAITED = "host_wait"
"""0 unless a run states it; only then passes wait for launches that do not run ahead."""
SCATTERED = "scatter_latency"
"""0 unless a run states it; only then tokens of experts are sorted and summed by atomic additions."""
SEPARATE = "separate_expert_kernels"
"""0 unless a run states it; only then biases and limits of experts are kernels of their own."""
GATED = ("gated_passes", "gated_backward_passes")
"""1 unless a run states them; only then gated activations take longer than their bytes."""
SUMMED = "gradient_sum_bytes"
"""0 unless a run states it; only then kernels of their own add gradients to the accumulated ones."""
METERED = "loss_metric_bytes"
"""0 unless a run states it; only then metrics are computed of the logits."""
OWNED = "owned_tensors"
"""0 unless a run states it; only then ZeRO-1 deals tensors as they are, and sums all gradients on every replica."""
GATHERED = "gathered_tensors"
"""0 unless a run states it; only then ZeRO-3 gathers tensors one by one, each piece by itself."""
HOOKED = "sharded_operations"
"""0 unless a run states it; only then ZeRO-3 gathers the weights of each expert by themselves."""
PAIRED = "exchange_overlap"
"""0 unless a run states it; only then transfers of experts run beside passes of other micro-batches."""
SENT = ("dispatch_element_bytes", "combine_element_bytes")
"""Formats of transfers of experts, there and back: that of activations unless a run states them."""
SPLIT = (*ZERO_BUBBLE, "dualpipe")
"""Schedules that take gradients of inputs and of weights apart."""


def sent_formats(stated: Container[str]) -> tuple[str, ...]:
    """The formats of transfers of experts among the names of values that a run states.

    >>> sent_formats({"dispatch_element_bytes": 1.0, "gradient_bytes": 2.0})
    ('dispatch_element_bytes',)
    """
    return tuple(name for name in SENT if name in stated)


def rank_order_of(plan: Plan, system: System) -> RankOrder:
    """The order of ranks in the form of the cost: that of the plan where there are two tiers, else the usual one."""
    return plan.rank_order if len(system.tiers) > 1 else "tp-cp-dp-pp"  # type: ignore[return-value]


@dataclass(frozen=True)
class Structure(HashOnce):
    """One form of a training step's cost. Equal structures share one compiled program.

    Attributes:
        architecture: of the model.
        attention: eager (scores stored) or flash.
        recompute: what the backward pass computes again.
        sequence_parallel: norms, dropouts and residuals are sharded over the tensor-parallel group.
        schedule: of the pipeline.
        zero: ZeRO stage, 0 to 3.
        dropout: whether dropouts run and keep masks.
        loss_scaling: whether gradients are unscaled, as FP16 needs.
        quantised: matrix products pay for whole tiles and waves.
        l2: the L2 cache is a level of the roofline.
        tiers: network tiers that the system describes: 0, 1 (scale-up) or 2 (and scale-out).
        in_switch: the switch of a scale-up domain can add.
        links: of a scale-up domain: to a "switch", or a "mesh" of one between each pair of its devices.
        power_limited: power bounds lasting products in 16 bits.
        context: how attention runs over a sequence in parts; "none" if sequences are whole.
        stages: "even" (all have as many layers), "uneven" (they differ by one), "given" first and last ones, or a
            "layout" of all.
        node_limited: the plan limits the scale-up domains in which a token's experts lie; copies are made inside.
        hybrid: state is sharded inside groups of replicas, and whole in each of them.
        optimizer: what updates the weights.
        products: format of the products of linear layers.
        some_layers: full recomputation is of a given number of layers of each stage only.
        offload: what the host keeps, some of `OFFLOADS`.
        overheads: the run states what launches by the host, other software or stragglers add.
        waits_for_launches: the run states how far its host runs ahead.
        scattered: the run states what an element takes that is added atomically to its place.
        separate_experts: the run states that biases and limits of experts are kernels of their own, and there are some.
        slow_gates: the run states how much longer than their bytes gated activations take.
        summed_apart: the run states what kernels move that add gradients to the accumulated ones.
        metered: the run states what metrics of the logits move.
        owned: tensors are dealt to replicas whole (ZeRO-1 of InternEvo).
        gathered_apart: tensors are gathered and reduced one by one, piece by piece (ZeRO-3 of DeepSpeed in 2021).
        hooked: ZeRO-3 gathers experts module by module (DeepSpeed with models of transformers).
        paired: the run states which part of the transfers of experts runs beside another micro-batch; passes are whole.
        rank_order: how ranks are numbered, innermost first; where there is one tier only, the first.
        sent: formats of transfers of experts that the run states, some of `SENT`.
        families: of kernels whose constants are known on the system, some of `kernel_constants.TRAINED`.
        misaligned: sizes that leave rows of matrices unaligned, whose products are slower.
        segments: of layers in order, each as the counts of its kinds, where there are several.
        counted: embedding and loss, 1 where it is dealt to stages as a layer.
        chunks: of a layout, layers of each segment by chunk by device.
        module_stage: of a layout, the device with the modules for multi-token prediction; 0 where it has none.
        frozen: classes of parameters that have no gradients, some of `freezing.CLASSES`.
        encoders: of images and sound, which the first stage passes.
        padded_vocabulary: the part of a device is a multiple of `vocab_multiple`.
        modules: of a layer that selective recomputation computes again, of `recompute_modules.MODULES`.
        updates_at_once: the optimizer runs inside the backward pass, and gives each gradient back at once.
        nvme: what of that which the host keeps lies on its drives, some of `NVME`.
        documents: sequences are packed with documents, and attention does not leave them.
        adapted: linear layers that have adapters, which alone are trained, some of `adapted_layers.LAYERS`.
        decomposed: adapters learn magnitudes apart from directions (DoRA).
        stored: frozen weights of linear layers are stored in few bits, and widened before each product.
        loss: how it follows the head.
        compiled: chains of element-wise kernels are one.
        fp32_residual: the plan has the residual stream in 32 bits.
        eager: what runs operation by operation, some of `EAGER_PARTS`.
    """

    architecture: Architecture
    attention: Attention
    recompute: Recompute
    sequence_parallel: bool
    schedule: Schedule
    zero: int
    dropout: bool
    loss_scaling: bool
    quantised: bool
    l2: bool
    tiers: int
    context: Context = "none"
    stages: Stages = "even"
    hybrid: bool = False
    node_limited: bool = False
    optimizer: Optimizer = "adam"
    products: Products = "half"
    some_layers: bool = False
    offload: tuple[str, ...] = ()
    overheads: bool = False
    waits_for_launches: bool = False
    scattered: bool = False
    separate_experts: bool = False
    slow_gates: bool = False
    summed_apart: bool = False
    metered: bool = False
    owned: bool = False
    gathered_apart: bool = False
    hooked: bool = False
    paired: bool = False
    rank_order: AnyOrder = "tp-cp-dp-pp"
    in_switch: bool = False
    links: Links = "switch"
    power_limited: bool = False
    sent: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    misaligned: tuple[str, ...] = ()
    segments: tuple[tuple[str, ...], ...] = ()
    frozen: tuple[str, ...] = ()
    encoders: tuple[EncoderPart, ...] = ()
    modules: tuple[str, ...] = ()
    updates_at_once: bool = False
    nvme: tuple[str, ...] = ()
    documents: bool = False
    padded_vocabulary: bool = False
    adapted: tuple[str, ...] = ()
    decomposed: bool = False
    stored: bool = False
    loss: Loss = "unfused"
    compiled: bool = False
    fp32_residual: bool = False
    eager: tuple[str, ...] = ()
    counted: tuple[int, int] = (0, 0)
    chunks: tuple[tuple[tuple[int, ...], ...], ...] = ()
    module_stage: int = 0

    __hash__ = HashOnce.__hash__

    @property
    def told_apart(self) -> bool:
        """Whether stages are priced and measured one by one: they have other kinds of layers, or not as many."""
        return bool(self.segments) or self.stages != "even" or any(self.counted)

    @property
    def wide_stream(self) -> bool:
        """Whether the residual stream is in 32 bits."""
        return self.fp32_residual or self.architecture.wide_stream

    @property
    def shards_gradients(self) -> bool:
        """Whether every backward pass reduces gradients into shards: ZeRO-2 and 3."""
        return self.zero > 1

    @property
    def shards_weights(self) -> bool:
        """Whether every pass gathers parameters: ZeRO-3."""
        return self.zero > 2

    @property
    def limits_domains(self) -> bool:
        """Whether a token's experts lie in a limited number of scale-up domains, by the plan or by their groups."""
        return self.node_limited or self.architecture.grouped_routing

    @property
    def splits(self) -> bool:
        """Whether gradients of inputs and of weights are passes of their own."""
        return self.schedule in SPLIT

    def key(self) -> str:
        """The structure as canonical text."""
        return json.dumps(asdict(self), sort_keys=True)

"""The structural choices of an inference."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

from ..common.errors import InputError
from ..plans.alignment import misaligned_sizes
from ..plans.structure import SENT, rank_order_of
from .formats import SIXTEEN_BITS, format_of
from .parallel_rules import replicas_of_experts
from .stored import StoredFormat

if TYPE_CHECKING:
    from collections.abc import Container

    from ..models.configs import Architecture
    from ..models.model import Model
    from ..plans.plan import Plan
    from ..plans.structure import Context, RankOrder
    from ..systems.system import Links, System
    from .graphs import Recorded
    from .memory_rule import Rule, Step
    from .stack import Stack


@dataclass(frozen=True)
class Fusion:
    """Which kernels the serving software has joined.

    Attributes:
        residual_norm: the residual addition and the norm after it are one kernel.
        rotary_cache: rotary positions and the append to the cache run inside the attention kernel.
        gate_up: gate and up projection of a gated MLP are one product.
        split_context: attention over the cache is split over units, with a kernel that adds the parts.
        fused_prefill: prefill's attention is one kernel that stores no scores.
        reduce_norm: in decoding, the sum over a group and the addition and norm after it are one kernel.
        latent_down: the projections down to compressed queries and to latents are one product.
        shared_beside: shared experts run on a stream of their own beside the routed ones.
        casts: kernels that write what they make in the format of the product after them, some of `CASTING`.
    """

    residual_norm: bool
    rotary_cache: bool
    gate_up: bool
    split_context: bool
    fused_prefill: bool
    reduce_norm: bool = False
    latent_down: bool = False
    shared_beside: bool = False
    casts: tuple[str, ...] = ()


CASTING = ("norm", "activation", "attention")
"""Kernels that may write the left factor of a product in its format."""


@dataclass(frozen=True)
class OtherFormat:
    """A format of a checkpoint beside that of most of its weights.

    Attributes:
        classes: of modules that are stored in it.
        mixed_rates: products that stay in 16 bits run at another rate than those in it.
        families: of kernels whose constants are known for it.
    """

    classes: tuple[str, ...]
    mixed_rates: bool
    families: tuple[str, ...]


OWN_RANKS = (2, 4, 6, 8)
"""Groups for which software has all-reduces of its own: vLLM, custom_all_reduce.py, _SUPPORTED_WORLD_SIZES."""


@dataclass(frozen=True)
class InferenceStructure:
    """One form of an inference's cost. Equal structures share one compiled program.

    Attributes:
        architecture: of the model.
        fusion: of the serving software.
        quantised: matrix products pay for whole tiles and waves.
        l2: the L2 cache is a level of the roofline.
        tiers: network tiers that the system describes: 0, 1 (scale-up) or 2 (and scale-out).
        in_switch: the switch of a scale-up domain can add.
        links: of a scale-up domain: to a "switch", or a "mesh" of one between each pair of its devices.
        power_limited: power bounds lasting products in 16 bits.
        experts_dealt: whole experts are dealt to devices, and tokens sent to them; else all have a part of each.
        experts_gathered: every device gathers the tokens of all that have other experts, or other parts of them.
        copied: experts have more slots than there are of them.
        mixed_rates: products that stay in 16 bits run at another rate than the others.
        read_apart: mixers whose keys the query heads of a group read in several passes, with the heads of a pass.
        called_collectives: collectives are calls of a library, which take at least its time.
        own_all_reduce: the software has a kernel of its own for all-reduces, and the system was measured with it.
        rank_order: how ranks are numbered, innermost first; where there is one tier only, the first.
        sent: formats of transfers of experts that the run or its software states, some of `structure.SENT`.
        families: of kernels whose constants are known on the system under the software.
        latent: what is particular to the software's kernels of latent attention, in a model that has it.
        misaligned: sizes that leave rows of matrices unaligned, whose products are slower; software pads vocabularies.
        kept: classes of modules whose weights a quantized checkpoint keeps in 16 bits.
        skewed: the run states how uneven the loads of experts are.
        others: formats of the checkpoint beside that of most of its weights.
        format: the place of the one that products are in: 1 is that of most weights, 2 the first of the others.
        narrow_head: the matrix of the head is stored below 16 bits.
        narrow_table: the table of tokens is stored below 16 bits, as a class "embedding".
        node_limited: the plan limits the scale-up domains in which a token's experts lie.
        dependent_starts: a recorded graph hides a part of the starts of a decode step's kernels.
        launched_prefill: the host launches the kernels of a pass with prompts one by one.
        graphs: which passes are recorded up to a size only; "" where size does not matter.
        segments: of layers in order, each as the counts of its kinds, where there are several.
        stages: "even", or "late" where stages do not divide the layers.
        context: how attention of prompts runs over parts of a sequence; "none" where sequences are whole.
        contexts_split: devices have parts of the caches of sequences, to which they attend together.
        offload: what the host keeps, some of `HOSTED`.
        prefixed: the first tokens of prompts are in the cache.
        adapted: linear layers that have adapters of requests, some of `adapter_slots.TARGETS`.
        step: what memory is reserved for: chunks, contexts or all prompts of a batch.
        memory_rule: what the part of a device's memory that software takes is a part of.
    """

    architecture: Architecture
    fusion: Fusion
    quantised: bool
    l2: bool
    tiers: int
    experts_dealt: bool = False
    experts_gathered: bool = False
    copied: bool = False
    mixed_rates: bool = False
    read_apart: tuple[tuple[str, int], ...] = ()
    called_collectives: bool = False
    own_all_reduce: bool = False
    in_switch: bool = False
    links: Links = "switch"
    power_limited: bool = False
    rank_order: RankOrder = "tp-cp-dp-pp"
    sent: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    latent: tuple[str, ...] = ()
    misaligned: tuple[str, ...] = ()
    skewed: bool = False
    kept: tuple[str, ...] = ()
    others: tuple[OtherFormat, ...] = ()
    format: int = 1
    narrow_head: bool = False
    narrow_table: bool = False
    node_limited: bool = False
    dependent_starts: bool = False
    launched_prefill: bool = False
    graphs: Recorded = ""
    segments: tuple[tuple[str, ...], ...] = ()
    stages: Literal["even", "late"] = "even"
    offload: tuple[str, ...] = ()
    adapted: tuple[str, ...] = ()
    prefixed: bool = False

    context: Context = "none"
    contexts_split: bool = False
    step: Step = "prompts"
    memory_rule: Rule = "total"

    sequence_parallel = False

    def of_class(self, name: str) -> InferenceStructure:
        """The structure of a class of modules, which is another one where the checkpoint has another format for it."""
        for number, other in enumerate(self.others, start=2):
            if name in other.classes:
                return replace(self, format=number, others=(), mixed_rates=other.mixed_rates, families=other.families)
        return self

    @property
    def limits_domains(self) -> bool:
        """Whether a token's experts lie in a limited number of scale-up domains."""
        return self.node_limited or self.architecture.grouped_routing

    @property
    def generates(self) -> bool:
        """Whether there is a decoder, which generates tokens; an encoder alone has one pass."""
        return not all(kind.encoder for kind in self.architecture.kinds)

    def key(self) -> str:
        """The structure as canonical text."""
        return json.dumps(asdict(self), sort_keys=True)


def structure_of(
    model: Model,
    system: System,
    plan: Plan,
    stack: Stack,
    stated: Container[str] = (),
    stored: StoredFormat | None = None,
) -> InferenceStructure:
    """The structural choices of a model on a system under a plan and a serving software.

    Args:
        model: what runs.
        system: what it runs on.
        plan: how it is laid out.
        stack: the serving software.
        stated: names of the symbols to which the run gives values.
        stored: what the checkpoint says of its classes of modules.
    """
    stored = StoredFormat(plan) if stored is None else stored
    precision, _, rate = format_of(plan, system)
    alone = replicas_of_experts(plan, model) == 1
    gathers = plan.expert_exchange == "gather" or (stack.exchange == "replicas" and alone)
    gathered = gathers and plan.ep * plan.effective_expert_tp > 1 and model.architecture.routed
    dealt = plan.ep > 1 and not gathered
    if plan.cp > 1 and not stack.fusion.fused_prefill:
        raise InputError(
            f"cp: found {plan.cp}, expected 1 under {stack.name}, which stores scores: parts of prompts are modelled "
            "for fused attention"
        )
    sent = [
        name for name in SENT if name in stated or name in stack.sent_in(stored.precision_of("experts") or precision)
    ]
    l2 = "l2" in system.levels and "l2_capacity" in system.quantities
    return InferenceStructure(
        architecture=model.architecture,
        fusion=fusion_of(stack, plan, stored.precision_of("mlp") or precision),
        quantised=system.quantised,
        l2=l2 and system.quantised,
        tiers=len(system.tiers),
        experts_dealt=dealt,
        experts_gathered=gathered,
        copied=plan.redundant_experts is not None,
        mixed_rates=rate not in SIXTEEN_BITS,
        read_apart=stack.group_reads.apart(model, plan.tp)
        if (l2 and system.quantised) or "decoding" in system.families
        else (),
        called_collectives=stack.called_collectives,
        own_all_reduce=stack.own_all_reduce and plan.tp in OWN_RANKS and "peer_latency" in system.quantities,
        in_switch=system.in_switch,
        links=system.links,
        power_limited=system.power_limited,
        rank_order=rank_order_of(plan, system),
        sent=tuple(sent) if dealt else (),
        families=system.families,
        latent=stack.latent.on(system, stored.precision_of("attention") or precision) if _has_latents(model) else (),
        misaligned=tuple(name for name in misaligned_sizes(model, system) if name != "vocab_size"),
        skewed=plan.ep > 1 and "routing_skew" in stated,
        kept=stored.kept,
        others=tuple(
            OtherFormat(other.classes, other.rate not in SIXTEEN_BITS, other.system.families) for other in stored.others
        ),
        narrow_head=stored.narrow_head,
        narrow_table=stored.narrow_table,
        node_limited=dealt and plan.node_limit is not None,
        dependent_starts="start_removal" in stated or stack.states("start_removal"),
        launched_prefill="host_latency" in stated or stack.states("host_latency"),
        graphs=stack.graphs.of or ("passes" if "recorded_tokens" in stated else ""),
        segments=model.segments,
        stages="late" if model.sizes["num_layers"] % plan.pp else "even",
        context=plan.cp_kind if plan.cp > 1 else "none",  # type: ignore[arg-type]
        contexts_split=plan.cp * plan.dcp > 1,
        offload=plan.offloads,
        # Encoders read their prompts whole.
        step="prompts" if any(kind.encoder for kind in model.architecture.kinds) else stack.memory.step,
        memory_rule=stack.memory.rule,
    )


def fusion_of(stack: Stack, plan: Plan, precision: str) -> Fusion:
    """The fusions of a software that hold under a plan, whose products are in a precision."""
    found = stack.fusion
    if found.reduce_norm and plan.tp not in OWN_RANKS:
        found = replace(found, reduce_norm=False)
    return found if precision in stack.cast_formats else replace(found, casts=())


def _has_latents(model: Model) -> bool:
    return any(kind.mixer == "latent_attention" for kind in model.architecture.kinds)

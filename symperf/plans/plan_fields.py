"""The fields of a plan: the one table of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from .adapted_layers import BASE_PRECISIONS, TARGETS
from .fields import plan_field, table_of
from .freezing import PARTS
from .offloaded_inputs import INPUTS
from .recompute_modules import MODULES
from .stage_layout import canonical
from .structure import (
    COUNTED,
    EAGER_PARTS,
    HOSTED,
    NVME,
    OFFLOADS,
    Attention,
    Context,
    Loss,
    Optimizer,
    RankOrder,
    Recompute,
    Schedule,
)

WIDE_PRECISIONS = ("fp32", "tf32")
"""Formats of products whose factors have 32 bits, in training alone."""
TRAINING_PRECISIONS = ("bf16", "fp16", "fp8", "fp4", *WIDE_PRECISIONS)
"""Formats of the products whose training state is described; fp8 and fp4 are those of linear layers only."""
PRECISIONS = (
    *TRAINING_PRECISIONS,
    *("fp8-block", "int8", "int8-weight", "int4-weight", "mxfp4-weight", "int4-fp8", "mxfp4-mxfp8"),
    *("nvfp4-weight", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k"),
    *("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs", "tq1_0", "tq2_0"),
    *("q2_k_s", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m", "iq2_m", "iq3_xs", "iq3_m"),
)
CONTEXT_KINDS = get_args(Context)[1:]
EXPERT_EXCHANGES = ("all-to-all", "gather")


@dataclass(frozen=True)
class PlanFields:
    """Parallel degrees, micro-batch, schedule, recomputation, sharding, precision and overlap; see `FIELDS`."""

    tp: int = plan_field(1, "degree", "tensor-parallel degree", layout=True, column=0, inference="searched")
    pp: int = plan_field(1, "degree", "pipeline stages", layout=True, column=1, inference="searched")
    dp: int = plan_field(1, "degree", "replicas", layout=True, column=3, inference="searched")
    vpp: int = plan_field(
        1,
        "degree",
        "virtual stages per device; above 1 the schedule is interleaved",
        form="above 1",
        column=6,
    )
    micro_batch: int | None = plan_field(
        None,
        "count",
        "sequences in a micro-batch; by default 1 in training, a replica's whole batch in inference",
        form="none",
        column=4,
        inference="searched",
        heading="mb",
    )
    recompute: str = plan_field(
        "none",
        "choice",
        "what the backward pass computes again: none, selective (the attention core) or full (every layer)",
        choices=get_args(Recompute),
        searched=True,
        metavar="MODE",
    )
    recompute_modules: str | None = plan_field(
        None,
        "list",
        "modules of a layer that the backward pass computes again, as Megatron-Core names them, or op (all but "
        "every second product and the core of attention, as torchtitan does); recompute selective alone is core_attn",
        choices=MODULES,
        metavar="LIST",
        heading="modules",
    )
    sequence_parallel: bool = plan_field(
        False,
        "flag",
        "shard norms, dropouts and residuals over the tensor-parallel group",
        searched=True,
        heading="sp",
    )
    zero: int = plan_field(
        0,
        "choice",
        "ZeRO stage, what is sharded over the replicas: 0 nothing, 1 the optimizer state, 2 also gradients, 3 also "
        "weights (as FSDP does)",
        choices=(0, 1, 2, 3),
        searched=True,
        metavar="STAGE",
    )
    schedule: str | None = plan_field(
        None,
        "choice",
        "schedule of the pipeline: gpipe, 1f1b, interleaved, zero-bubble (ZB-H1), zb-h2, zero-bubble-2p or dualpipe; "
        "by default what vpp asks for",
        choices=get_args(Schedule),
        searched=True,
    )
    precision: str | None = plan_field(
        None,
        "choice",
        "format of the matrix products: bf16, fp16, of those of linear layers fp8 or fp4; in training also fp32 or "
        "tf32 (all state in 32 bits); in inference also "
        "fp8-block (scales of blocks), int8, int4-fp8 or mxfp4-mxfp8 (weights in 4 bits, activations in 8), or of "
        "weights alone int8-weight, int4-weight, mxfp4-weight, nvfp4-weight or a file of GGUF (q4_k_m); by default "
        "what the checkpoint has",
        choices=PRECISIONS,
        training=TRAINING_PRECISIONS,
        inference="searched",
        remedy="; a base in 4 bits is frozen under adapters: --lora-rank R --base-precision nf4",
    )
    attention: str | None = plan_field(
        None,
        "choice",
        "eager or flash; by default eager for models with dropout, flash for the rest",
        choices=get_args(Attention),
        searched=True,
        inference="read",
        metavar="KIND",
    )
    dropout: bool | None = plan_field(None, "flag", "whether dropouts run; by default what the model's config says")
    overlap_tp: float = plan_field(
        1.0, "fraction", "part of the overlappable tensor-parallel traffic that hides in the backward pass"
    )
    overlap_dp: float = plan_field(
        0.0,
        "fraction",
        "part of the last backward pass (of every one from ZeRO-2 on) beside which gradients are reduced",
    )
    ep: int = plan_field(
        1,
        "degree",
        "expert-parallel degree: devices over which the experts of a layer are dealt",
        column=5,
        inference="searched",
    )
    expert_tp: int | None = plan_field(
        None,
        "count",
        "tensor-parallel degree inside an expert; by default 1 with ep above 1, else tp",
        unset="1 + (tp - 1) * max(2 - ep, 0)",
        inference="read",
    )
    overlap_gather: float = plan_field(
        1.0, "fraction", "part of the gathering of sharded parameters (ZeRO-3) that runs beside the layers"
    )
    cp: int = plan_field(
        1,
        "degree",
        "context-parallel degree: parts of a sequence",
        form="above 1",
        layout=True,
        column=2,
        inference="read",
    )
    cp_kind: str = plan_field(
        "ring",
        "choice",
        "how attention runs over parts of a sequence: ring, all-to-all (Ulysses; not in inference) or all-gather",
        choices=CONTEXT_KINDS,
        searched=True,
        inference="read",
        metavar="KIND",
        heading="cp kind",
    )
    uneven_stages: bool = plan_field(
        False,
        "flag",
        "stages need not have equal layers: they differ by one at most",
        searched=True,
        inference="refused",
        heading="uneven",
    )
    first_stage_layers: int | None = plan_field(
        None,
        "count",
        "layers of the first stage, with last_stage_layers; the others share the rest",
        inference="refused",
    )
    last_stage_layers: int | None = plan_field(
        None, "count", "layers of the last stage, with first_stage_layers", inference="refused"
    )
    account_for: str = plan_field(
        "none",
        "choice",
        "ends of the model that are dealt to stages as a layer: none, embedding, loss or both",
        choices=tuple(COUNTED),
        searched=True,
        inference="refused",
        metavar="ENDS",
        heading="account for",
    )
    layout: str | None = plan_field(
        None,
        "text",
        "what every stage has, in Megatron-LM's notation: E embedding, t layer, m multi-token prediction, L loss",
        inference="refused",
        metavar="LAYOUT",
        reader=canonical,
    )
    zero_shards: int | None = plan_field(
        None, "count", "hybrid sharding: replicas that share one copy of the state; by default all"
    )
    node_limit: int | None = plan_field(
        None,
        "count",
        "scale-up domains that may hold the experts of one token; by default those of its groups of experts, or all",
        inference="read",
    )
    overlap_ep: float = plan_field(
        1.0, "fraction", "part of the transfers of experts and stages that DualPipe runs beside the other pass"
    )
    overlap_pp: float = plan_field(
        0.0,
        "fraction",
        "part of the transfers between stages that runs beside passes under 1f1b, gpipe and interleaved",
    )
    overlap_parameters: float = plan_field(
        0.0,
        "fraction",
        "part of the gathering of updated parameters (ZeRO-1 and 2) that runs beside the first forward pass",
    )
    optimizer: str = plan_field(
        "adam",
        "choice",
        "what updates the weights: adam, adam-8bit, adam-4bit, adafactor, sgd-momentum or muon",
        choices=get_args(Optimizer),
    )
    recompute_layers: int | None = plan_field(
        None,
        "count",
        "layers of each stage that full recomputation computes again; by default all",
        symbol="num_recomputed_layers",
    )
    offload: str | None = plan_field(
        None,
        "list",
        "what the host keeps: activations, gradients, optimizer or weights, of activations also the inputs of parts "
        "alone (attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm, expert_fc1, moe_act), in inference weights, "
        "cache or experts (which it computes), or several with commas between",
        choices=(*OFFLOADS, *INPUTS, *(name for name in HOSTED if name not in OFFLOADS)),
        training=(*OFFLOADS, *INPUTS),
        inference="read",
        metavar="LIST",
    )
    nvme: str | None = plan_field(
        None,
        "list",
        "what of that which the host keeps lies on its drives: optimizer, weights or both with a comma between",
        choices=NVME,
        metavar="LIST",
    )
    optimizer_in_backward: bool = plan_field(
        False,
        "flag",
        "each weight is updated as soon as its gradient is there, which is given back at once; gradients are not "
        "clipped by their norm",
        heading="in backward",
    )
    freeze: str | None = plan_field(
        None,
        "list",
        "parts of the model that are not trained: embedding, layers (or attention, mlp, experts, router of them), "
        "norms, head, multi_token, language (all of these), vision, audio, projector, or several with commas between",
        choices=tuple(PARTS),
        metavar="LIST",
    )
    lora_rank: int | None = plan_field(
        None,
        "count",
        "rank of adapters that are trained while all else is frozen (LoRA); by default there are none",
        adapters=True,
    )
    lora_targets: str | None = plan_field(
        None,
        "list",
        "linear layers that have adapters, as in checkpoints: q, k, v, o, gate, up, down, q_a, q_b, kv_a, kv_b, in, "
        "out, or groups of them (attention, mlp, experts, all-linear), with commas between; by default all but those "
        "of routed experts",
        choices=tuple(TARGETS),
        suffix="_proj",
        adapters=True,
        metavar="LIST",
    )
    dora: bool = plan_field(
        False, "flag", "adapters learn the magnitudes of columns apart from their directions (DoRA)"
    )
    base_precision: str | None = plan_field(
        None,
        "choice",
        "format in which the frozen weights of linear layers are stored under adapters: nf4 (QLoRA) or int8; by "
        "default that of the products",
        choices=BASE_PRECISIONS,
        heading="base",
    )
    rank_order: str = plan_field(
        "tp-cp-dp-pp",
        "choice",
        "how ranks are numbered, innermost first: tp-cp-dp-pp, or tp-cp-pp-dp (a whole pipeline inside a replica, as "
        "Megatron-LM's --use-tp-pp-dp-mapping has it)",
        choices=get_args(RankOrder),
        searched=True,
        inference="read",
        metavar="ORDER",
    )
    loss: str = plan_field(
        "unfused",
        "choice",
        "how the loss follows the head: unfused (Megatron-LM's, logits in 32 bits), fused (one kernel, as of "
        "torch.compile or Transformer Engine), chunked (loss_chunks chunks of tokens, as torchtitan), fused-linear "
        "(Liger's) or cut (Cut Cross-Entropy, which stores no logits)",
        choices=get_args(Loss),
        metavar="KIND",
    )
    compiled: bool = plan_field(
        False,
        "flag",
        "a compiler joins chains of element-wise kernels (torch.compile): additions to the stream with norms behind "
        "them, norms of queries and keys with rotary positions",
    )
    eager: bool = plan_field(
        False,
        "flag",
        "norms, rotary positions and gated activations run operation by operation, as PyTorch does without a fused "
        "kernel, unless compiled joins them",
    )
    eager_parts: str | None = plan_field(
        None,
        "list",
        "what runs operation by operation where not all does: norms, rotary, gated, and copies of the stream in 32 "
        "bits that norms read (InternLM)",
        choices=EAGER_PARTS,
        metavar="LIST",
    )
    fp32_residual: bool = plan_field(
        False,
        "flag",
        "the residual stream is in 32 bits (Megatron-LM's --fp32-residual-connection, torch.autocast)",
    )
    vocab_multiple: int | None = plan_field(
        None,
        "count",
        "the vocabulary is padded so that each device's part of it is a multiple of this (Megatron-LM's "
        "--make-vocab-size-divisible-by); by default what the software does, else no more than tp divides it",
        form="value",
    )
    dcp: int = plan_field(
        1,
        "degree",
        "decode context parallelism: devices of a tensor-parallel group that share one copy of a sequence's cache",
        trained=False,
        inference="read",
    )
    redundant_experts: int | None = plan_field(
        None,
        "count",
        "copies of much chosen experts that a layer has beside each expert once; by default none",
        form="none",
        unset="0",
        trained=False,
        inference="read",
    )
    expert_exchange: str = plan_field(
        "all-to-all",
        "choice",
        "how tokens get to experts elsewhere: all-to-all, or gather (all tokens to all devices, and sums scattered)",
        choices=EXPERT_EXCHANGES,
        form="none",
        trained=False,
        inference="read",
        metavar="KIND",
    )


FIELDS = table_of(PlanFields)
"""Every field of a plan, by name."""
NUMBERS = {name: each for name, each in FIELDS.items() if each.numeric}
"""Those that are numbers."""
COLUMNS = tuple(name for _, name in sorted((e.column, name) for name, e in FIELDS.items() if e.column is not None))
"""Degrees that a search tries row by row, from the outermost."""


def attributes() -> str:
    """The fields as the `Attributes:` of a docstring, in its indentation."""
    lines = [f"        {each.name}: {each.sentence}." for each in FIELDS.values()]
    return "\n".join(["Attributes:", *lines])

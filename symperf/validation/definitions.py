"""What the columns of a row of training do not say: how its software runs.

`SOFTWARE` goes by the column `framework` and holds for a user's rows as well; what a document says of its rows is in
`documents.toml`. No number is fitted to a measurement; some places were looked up because a prediction was far from
one, and the page of accuracy lists them (`AFTER_ERRORS` in `docs/accuracy_evidence.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class TrainingFramework:
    """How a framework runs where a row does not say otherwise.

    Attributes:
        why: where it is read.
        plan: fields of the plan.
        values: of other symbols.
        sequence_parallel: it shards norms and residuals whenever tp is above 1.
        micro_batches: micro-batches that a replica's batch is split into where the micro-batch is not given: "stages"
            (as many as pipeline stages, of one chunk each) or "" (not known: the fastest that fits).
        looped_chunks: chunks of a stage where a row says that it is interleaved, and not in how many.
        batch_of_device: the column `micro_batch_seqs` counts sequences of a device, not of a replica.
        shards_all: without a word on sharding, state is sharded over all devices (of a slice).
        split_values: of other symbols where logits are split (tp above 1).
        staged_plan: fields of the plan of pipelines, whatever a row says of sharding.
        staged_values: of other symbols in pipelines.
        interleaved_plan: fields of the plan of pipelines with several chunks a stage.
        reported: what a figure of memory counts that does not say: "device" (all that a device holds), "allocator"
            (what PyTorch's allocator reserved) or "allocated".
        recompute: where a row does not say.
        dealt_experts_split: experts that are dealt are split over the tensor-parallel group too, unless a row says.
        stack: the profile of its kernels (`symperf.systems.software`); "" for the efficiencies of the system's file.
        deduplicated: tokens are sent once to a node for all their experts there, whatever the router does.
        adapted: fields of the plan where a row trains adapters; none where it is not known which.
        left_out: why its rows cannot be expressed.
    """

    why: str
    plan: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    values: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    sequence_parallel: bool = False
    micro_batches: str = ""
    looped_chunks: int = 1
    batch_of_device: bool = False
    shards_all: bool = False
    split_values: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    staged_plan: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    staged_values: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    interleaved_plan: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    reported: str = "device"
    recompute: str = ""
    dealt_experts_split: bool = False
    stack: str = ""
    deduplicated: bool = False
    adapted: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    left_out: str = ""


EAGER = {"attention": "eager", "dropout": True}
"""Megatron-LM, megatron/arguments.py of 2021 and 2022: attention and hidden dropout are 0.1 by default, and scores are
stored (flash attention came with --use-flash-attn in 2023)."""
OVERLAPPED_STAGES = {"overlap_pp": 1.0}
"""overlap_p2p_comm: set where a pipeline is interleaved, and only there."""
MEGATRON_CORE = {"zero": 1, "overlap_dp": 1.0, "overlap_parameters": 1.0, "attention": "flash"}
NEMO_ADAPTERS = {"lora_rank": 8, "lora_targets": "q,k,v", "zero": 0}
"""collections/llm/recipes/llama3_8b.py and scripts/performance: peft.dim = 8, target_modules = ["linear_qkv"], and no
distributed optimizer."""
FSDP = {"overlap_dp": 1.0, "overlap_gather": 1.0, "attention": "flash", "dropout": False}

PEFT_PLAN = {"attention": "flash", "dropout": False}
FSDP2_STATE = {"optimizer_bytes": 10, "fragmentation": 0}
"""FSDP2 keeps its sharded parameters in FP32 and gathers them in 16 bits: weights (2), master and moments (12) are 12
bytes in all."""
TITAN_MEMORY = (
    "components/metrics.py reports torch.cuda's reserved bytes; run_train.sh sets expandable_segments, which fragment "
    "nothing; the loss ran eagerly at the end of 2024 (components/loss.py: compiling it was turned off) and is "
    "compiled since, so that no tensor in FP32 is as long as the logits; in pipelines parameters stay gathered from "
    "the first micro-batch on and gradients are accumulated whole, in FP32 (parallelize_llama.py: no resharding after "
    "the forward pass), as under ZeRO-1, beside sharded gradients in FP32"
)

NEMO = TrainingFramework(
    "NeMo 2 recipes and docs/source/features/optimizations/communication_overlap.rst: sequence_parallel, the "
    "distributed optimizer, overlap_grad_reduce and overlap_param_gather; with several chunks a stage "
    "overlap_p2p_comm (lightning/pytorch/callbacks/megatron_comm_overlap.py); grad_reduce_in_fp32 is false in its "
    "mixed-precision plugins; Megatron-LM's arguments set expert_tensor_parallel_size to the tensor-parallel "
    "degree where it is none",
    MEGATRON_CORE,
    adapted=NEMO_ADAPTERS,
    dealt_experts_split=True,
    values={"gradient_bytes": 2},
    interleaved_plan=OVERLAPPED_STAGES,
    sequence_parallel=True,
    stack="transformer-engine",
)
NEMO_OF_FLASH_2 = replace(
    NEMO,
    why="as NeMo; before 24.04 its containers have FlashAttention-2: flash-attn 2.0.8 in NVIDIA's Dockerfile of MLPerf "
    "Training v3.1 (gpt3/implementations/pytorch); FlashAttention-3 is of July 2024 (arXiv 2407.08608)",
    stack="flash-attention-2",
)

SOFTWARE: Mapping[str, TrainingFramework] = {
    "NeMo": NEMO,
    **{f"NeMo {version}": NEMO_OF_FLASH_2 for version in ("23", "24.01", "24.02", "24.03")},
    "Megatron-Bridge": TrainingFramework(
        "Megatron-Bridge recipes: as NeMo's; experts are reached by DeepEP or HybridEP; "
        "training/comm_overlap.py at 0685ff5d: overlap_p2p_comm with several chunks a stage; "
        "scripts/performance/utils/overrides.py at 00538e26: cross_entropy_fusion_impl is te, and "
        "models/gpt_provider.py at 0254ddd4: cross_entropy_loss_fusion is on; grad_reduce_in_fp32 is false "
        "(set_*_common_configs of scripts/performance/configs; perf_recipes/_common.py at 007282ea)",
        {**MEGATRON_CORE, "loss": "fused"},
        values={"gradient_bytes": 2},
        interleaved_plan=OVERLAPPED_STAGES,
        sequence_parallel=True,
        stack="megatron-bridge-2026",
        deduplicated=True,
    ),
    "Megatron-Core": TrainingFramework(
        "Megatron-LM README: distributed optimizer, --overlap-grad-reduce, --overlap-param-gather, flash attention",
        MEGATRON_CORE,
        sequence_parallel=True,
        stack="transformer-engine",
    ),
    "llm-foundry": TrainingFramework(
        "llm-foundry: FSDP gathers ahead and reduces beside the backward pass; no dropout; attn_impl: triton with "
        "ALiBi, before PyTorch 2 (README: tables are to be updated with torch 2.0)",
        FSDP,
        stack="llm-foundry-2023",
    ),
    "torchtitan": TrainingFramework(
        "torchtitan: FSDP2; tensor parallelism with sequence parallelism, overlapped only as async TP; "
        "pipeline_parallel_microbatches is the pipeline-parallel degree unless it is set, and interleaved schedules "
        "have two stages a rank (generate_split_points: num_stages_per_rank); norms and MLPs by operations of PyTorch "
        "where it does not compile; context_parallel_rotate_method is allgather; PyTorch's "
        f"scaled_dot_product_attention, whose flash kernel is FlashAttention-2; {TITAN_MEMORY}",
        {**FSDP, "overlap_tp": 0.0, "eager": True, "cp_kind": "all-gather"},
        values={**FSDP2_STATE, "loss_working_bytes": 8},
        split_values={"loss_working_bytes": 12},
        staged_plan={"zero": 1},
        staged_values={"optimizer_bytes": 16},
        reported="allocator",
        sequence_parallel=True,
        micro_batches="stages",
        looped_chunks=2,
        stack="flash-attention-2",
    ),
    "torchtitan (torch.compile)": TrainingFramework(
        f"as torchtitan, of 2025 and 2026: {TITAN_MEMORY}",
        {**FSDP, "overlap_tp": 0.0, "loss": "fused"},
        values=FSDP2_STATE,
        reported="allocator",
        sequence_parallel=True,
        micro_batches="stages",
        stack="flash-attention-2",
    ),
    "ms-swift (Megatron)": TrainingFramework(
        "Megatron-SWIFT: Megatron-Core's distributed optimizer, gradients in FP32; until ms-swift 3.9 "
        "expert_tensor_parallel_size is none, which Megatron-Core takes as the tensor-parallel degree",
        MEGATRON_CORE,
        sequence_parallel=True,
        dealt_experts_split=True,
        stack="megatron-core-2026",
    ),
    "ms-swift (DeepSpeed)": TrainingFramework(
        "ms-swift's ds_config: buckets of 2e8 elements, two as overlap_comm is on; gradients in 16 bits; models "
        "of transformers, whose loss keeps the logits in 16 bits beside those in FP32 (loss/loss_utils.py); the "
        "script sets expandable_segments",
        {"overlap_dp": 1.0, "attention": "flash", "dropout": False, "eager": True},
        values={"gradient_bytes": 2, "loss_working_bytes": 10, "workspace_bytes": 8e8, "fragmentation": 0},
        stack="deepspeed-2025",
    ),
    "transformers": TrainingFramework(
        "models of transformers under PyTorch alone: nothing is sharded or overlapped unless a row says",
    ),
    "torchtune": TrainingFramework(
        "torchtune, recipes/configs/llama3_1: dtype bf16 of weights, gradients and moments (AdamW, no master weights); "
        "CEWithChunkedOutputLoss, in 8 chunks (modules/loss/ce_chunked_output_loss.py)",
        {**FSDP, "loss": "chunked"},
        values={"gradient_bytes": 2, "optimizer_bytes": 4},
        reported="allocator",  # training/memory.py, get_memory_stats: torch.cuda.max_memory_reserved at most
        stack="flash-attention-2",
    ),
    "transformers with PEFT": TrainingFramework(
        "QwenLM/Qwen, finetune/finetune_lora_single_gpu.sh: --bf16 without DeepSpeed, so that the loss runs under "
        "autocast: the logits, their shifted copy (2 bytes each), it in FP32 and log-probabilities (4 each) are there "
        "at once (modeling_qwen.py; PyTorch casts cross_entropy to FP32)",
        PEFT_PLAN,
        values={"loss_working_bytes": 8},
        stack="flash-attention-2",
    ),
    "transformers with PEFT (DeepSpeed)": TrainingFramework(
        "QwenLM/Qwen, finetune/finetune_qlora_single_gpu.sh: --fp16 under DeepSpeed: the loss has logits, their "
        "shifted copy and log-probabilities in 16 bits; finetune/ds_config_zero2.json: buckets of 2e8 elements, two as "
        "overlap_comm is on",
        PEFT_PLAN,
        values={"loss_working_bytes": 2, "workspace_bytes": 8e8, "gradient_bytes": 2},
        stack="flash-attention-2",
    ),
    "MaxText": TrainingFramework(
        "MaxText: by default parameters are sharded over a slice (ici_fsdp_parallelism = -1), data parallel over "
        "slices; per_device_batch_size counts all devices; remat_policy is full unless it is set; on GPUs the "
        "attention of Transformer Engine",
        {"zero": 3, **FSDP},
        recompute="full",
        stack="transformer-engine",
        sequence_parallel=True,
        batch_of_device=True,
        shards_all=True,
    ),
    "Paxml": TrainingFramework(
        "Paxml (JAX): sharded as MaxText; praxis keeps nothing of a repeated layer (checkpoint_policy is SAVE_NOTHING) "
        "unless it is told to; on GPUs the attention of Transformer Engine",
        {"zero": 3, **FSDP},
        recompute="full",
        stack="transformer-engine",
        sequence_parallel=True,
    ),
    "Megatron-DeepSpeed": TrainingFramework(
        "DeepSpeed, deepspeed/runtime/pipe/schedule.py: TrainSchedule is 1F1B with one chunk a stage, gradients are "
        "reduced after the last backward pass; its fork of Megatron-LM (megatron/mpu/layers.py at 1619965d) waits for "
        "every all-reduce of tensor parallelism, and has the kernels of 2021; PyTorch adds gradients in 16 bits "
        "(accumulate_grad.h)",
        {"vpp": 1, "overlap_dp": 0.0, "overlap_tp": 0.0, **EAGER},
        values={"gradient_sum_bytes": 6},
        stack="megatron-deepspeed",
    ),
    "Megatron-LM": TrainingFramework(
        "Megatron-LM before Megatron-Core (2021 and 2022), megatron/arguments.py; its documents say more",
        EAGER,
        stack="megatron-2021",
    ),
    "InternEvo": TrainingFramework(
        "InternEvo, configs/7B_sft.py: overlap_sync_grad, not overlap_sync_param; sequence_parallel false; "
        "use_flash_attn, whose version is 2.2.1 (requirements and doc/en/install.md); gradients in the format of "
        "training, added by PyTorch, summed by all-reduces; tensors, 5 matrices a layer beside small ones, have "
        "owners who broadcast them (solver/optimizer/hybrid_zero_optim.py); FlashAttention's loss (model/loss.py), and "
        "metrics of the logits in every micro-batch (model/metrics.py); norms read residual.float(), and "
        "silu(w1(x)) * w2(x) is two kernels (model/modeling_internlm.py, model/linear.py)",
        {
            "zero": 1,
            "overlap_dp": 1.0,
            "attention": "flash",
            "dropout": False,
            "loss": "fused",
            "eager_parts": "gated,copies",
        },
        values={"gradient_bytes": 2, "gradient_sum_bytes": 6, "owned_tensors": 5, "loss_metric_bytes": 18},
        stack="flash-attention-2",
    ),
    "DeepSpeed ZeRO-3": TrainingFramework(
        "DeepSpeed of 2021 with Megatron-LM's modules (arXiv 2104.04473, section 5.2); "
        "deepspeed/runtime/zero/constants.py of 2021: overlap_comm is false by default; partition_parameters.py of "
        "early 2021, _allgather_param: torch.cuda.synchronize before each gather, of one tensor, into a list of "
        "pieces; of a layer's tensors its four matrices are above param_persistence_threshold (1e5)",
        {"zero": 3, "overlap_dp": 0.0, "overlap_gather": 0.0, **EAGER},
        values={"gradient_bytes": 2, "gathered_tensors": 4},
        stack="megatron-2021",
    ),
    "lit-gpt": TrainingFramework(
        "Lightning Fabric FSDP; the rows say FlashAttention-2",
        {"zero": 3, **FSDP},
        shards_all=True,
        stack="flash-attention-2",
    ),
    "MegaScale": TrainingFramework(
        "arXiv 2402.15627, section 3.1",
        left_out="the software also changes the model (parallel block, sliding windows), which no column says",
    ),
    "HAI-LLM": TrainingFramework(
        "DeepSeek-V3 report (arXiv 2412.19437, section 3.2): DualPipe, ZeRO-1, transfers beside the other pass",
        {
            "zero": 1,
            "schedule": "dualpipe",
            "overlap_dp": 1.0,
            "overlap_ep": 1.0,
            "attention": "flash",
            "node_limit": 4,
        },
    ),
    "Meta in-house": TrainingFramework(
        "Llama 3 report (arXiv 2407.21783, section 3.3): sharded optimizer and gradients, kept weights; trained before "
        "FlashAttention-3 was published (arXiv 2407.08608)",
        {"zero": 1, "overlap_dp": 1.0, "attention": "flash", "cp_kind": "all-gather", "vpp": 8},
        sequence_parallel=True,
        stack="flash-attention-2",
    ),
}
"""By the beginning of the column `framework`."""


UNSAID = TrainingFramework("a row that names no software: as `symperf train` runs without a profile")


def software_of(framework: str) -> TrainingFramework:
    """How the software of a row runs.

    Raises:
        InputError: it is not declared.
    """
    if not framework:
        return UNSAID
    found = [name for name in SOFTWARE if framework.casefold().startswith(name.casefold())]
    if not found:
        near = nearest(framework, SOFTWARE) or ", expected one of those in docs/validation.md, or none"
        raise InputError(f"framework: found {quote(framework)}, which is not declared{near}")
    return SOFTWARE[max(found, key=len)]

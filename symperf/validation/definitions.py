"""What the columns of a row of training do not say: how its software runs, and what its source counts.

Two declared tables and nothing else stand between a row and its run. `SOFTWARE` goes by the column `framework` and
holds for a user's rows as well; `FAMILIES` goes by the family, and holds what its document says once for all rows.
Neither holds a number that was chosen to bring a prediction nearer to a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rows import TableRow

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
    reported: str = "device"
    recompute: str = ""
    dealt_experts_split: bool = False
    stack: str = ""
    deduplicated: bool = False
    adapted: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    left_out: str = ""


MEGATRON_CORE = {"zero": 1, "overlap_dp": 1.0, "overlap_parameters": 1.0, "attention": "flash"}
NEMO_ADAPTERS = {"lora_rank": 8, "lora_targets": "q,k,v", "zero": 0}
"""collections/llm/recipes/llama3_8b.py and scripts/performance: peft.dim = 8, target_modules = ["linear_qkv"], and no
distributed optimizer."""
FSDP = {"overlap_dp": 1.0, "overlap_gather": 1.0, "attention": "flash", "dropout": False}

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
COMPILED_LOSS = {"loss_working_bytes": 1 / 16}
"""Bytes of each logit: the least that the symbol may be, which stands for none."""

SOFTWARE: Mapping[str, TrainingFramework] = {
    "NeMo": TrainingFramework(
        "NeMo 2 recipes and docs/source/features/optimizations/communication_overlap.rst: sequence_parallel, the "
        "distributed optimizer, overlap_grad_reduce and overlap_param_gather; grad_reduce_in_fp32 is false in its "
        "mixed-precision plugins; Megatron-LM's arguments set expert_tensor_parallel_size to the tensor-parallel "
        "degree where it is none",
        MEGATRON_CORE,
        adapted=NEMO_ADAPTERS,
        dealt_experts_split=True,
        values={"gradient_bytes": 2},
        sequence_parallel=True,
        stack="transformer-engine",
    ),
    "Megatron-Bridge": TrainingFramework(
        "Megatron-Bridge recipes: as NeMo's; experts are reached by DeepEP or HybridEP",
        MEGATRON_CORE,
        sequence_parallel=True,
        stack="transformer-engine",
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
    "torchtune": TrainingFramework(
        "torchtune, recipes/configs/llama3_1: dtype bf16 of weights, gradients and moments (AdamW, no master weights); "
        "CEWithChunkedOutputLoss, in 8 chunks (modules/loss/ce_chunked_output_loss.py)",
        {**FSDP, "loss": "chunked"},
        values={"gradient_bytes": 2, "optimizer_bytes": 4},
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
        "every all-reduce of tensor parallelism, and has the kernels of 2021",
        {"vpp": 1, "overlap_dp": 0.0, "overlap_tp": 0.0},
        stack="megatron-deepspeed",
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


@dataclass(frozen=True)
class TrainingFamily:
    """What a document says of all its rows.

    Attributes:
        why: where.
        system: the part, where `hw_key` is empty.
        figures: of the network around it, as a system file has them.
        values: of other symbols.
        plan: fields of the plan.
        counted: what FLOPs a TFLOP/s or a utilisation counts: "model" (no recomputation, attention in full), "hardware"
            (with recomputation), "causal" (attention by half).
        tokens: in a global batch, where no column says.
        precision: of the columns `precision` that are empty.
        by_precision: values of other symbols by the exact text of the column `precision`.
        by_model: fields of the plan, and the micro-batch where no column gives it, by the column `model`.
        model_values: values of other symbols by the column `model`.
        stack: the profile of the kernels, by the document's date, where the framework's name says no version.
    """

    why: str
    system: str = ""
    figures: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    values: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    plan: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    counted: str = "model"
    tokens: int = 0
    precision: str = ""
    by_precision: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: NOTHING)
    by_model: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: NOTHING)
    model_values: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: NOTHING)
    stack: str = ""

    def of_model(self, row: TableRow) -> Mapping[str, Any]:
        """What the document says of the row's model."""
        return self.by_model.get(row.text("model"), NOTHING)


PLAIN = TrainingFamily("nothing is declared")
FAMILIES: Mapping[str, TrainingFamily] = {
    "SC21": TrainingFamily(
        "arXiv 2104.04473, table 1 and equation 3: full recomputation is counted; micro-batch, chunks and the kind of "
        "data parallelism (PyTorch's reduces beside the backward pass) are those of the authors' scripts, Megatron-LM "
        "examples/sc21/run_table_1.sh at 79a3bb6b; megatron/mpu/layers.py of 2021 (aed2f75e) waits for each "
        "all-reduce of tensor parallelism",
        plan={"overlap_tp": 0.0},
        counted="hardware",
        stack="megatron-2021",
        by_model={
            "GPT-1.7B": {"micro_batch": 16, "overlap_dp": 1.0},
            "GPT-3.6B": {"micro_batch": 16, "overlap_dp": 1.0},
            "GPT-7.5B": {"micro_batch": 16, "overlap_dp": 1.0},
            "GPT-18.4B": {"micro_batch": 8, "overlap_dp": 1.0},
            "GPT-39.1B": {"micro_batch": 4, "vpp": 1},
            "GPT-76.1B": {"micro_batch": 2, "vpp": 3},
            "GPT-145.6B": {"micro_batch": 2, "vpp": 2},
            "GPT-310.1B": {"micro_batch": 1, "vpp": 2},
            "GPT-529.6B": {"micro_batch": 1, "vpp": 3},
            "GPT-1008.0B": {"micro_batch": 1, "vpp": 1},
        },
    ),
    "KORTH": TrainingFamily("arXiv 2205.05198, table 5: Megatron-LM of 2022", stack="megatron-2021"),
    "KORTHLAYER": TrainingFamily("arXiv 2205.05198, table 4: Megatron-LM of 2022", stack="megatron-2021"),
    "KORTHMEM": TrainingFamily(
        "arXiv 2205.05198, table 3: three interleaved chunks for two of the models; the bars are the paper's own model",
        by_model={"GPT-175B": {"vpp": 3}, "GPT-530B": {"vpp": 3}},
        stack="megatron-2021",
    ),
    "DSAZURE": TrainingFamily("Megatron-DeepSpeed page: 96 B s l h^2 counts full recomputation", counted="hardware"),
    "FOUNDRY": TrainingFamily(
        "llm-foundry README: A100 rows have 1600 Gb/s a node of 8, H100 rows 3200 Gb/s",
        plan={"dropout": False},
        by_precision={"bf16": {"gradient_bytes": 2}},  # the mode PURE reduces gradients in 16 bits, DEFAULT (amp) in 32
    ),
    "MEGASCALE": TrainingFamily(
        "arXiv 2402.15627, of 2024 (FlashAttention-2): the part is called Ampere; the aggregate PFLOP/s and the MFU of "
        "its tables imply a peak of 312 TFLOP/s",
        system="A100-80GB-SXM4",
        plan={"attention": "flash"},
        stack="flash-attention-2",
    ),
    "LLAMA3": TrainingFamily(
        "arXiv 2407.21783, table 4: 16M tokens in a global batch; GPUs of 400 Gb/s; interleaved stages of one layer",
        tokens=16 * 2**20,
    ),
    "DSV3ISCA": TrainingFamily(
        "arXiv 2505.09343, table 4: tokens a day over steps a day give 15360 sequences of 4096 (DeepSeek-V3 report); "
        "tokens are dispatched in FP8 (section 3.3.3 of that report), a scale of 32 bits to 128 values (DeepEP)",
        tokens=15360 * 4096,
        by_precision={"fp8": {"dispatch_element_bytes": 1.03125}},
    ),
    "DGXC": TrainingFamily("DGX Cloud benchmarking recipes: no dropout", plan={"dropout": False}),
    "MBSKILL": TrainingFamily(
        "Megatron-Bridge, src/megatron/bridge/recipes/moonlight/moonlight_16b.py: moments and gradients in BF16; "
        "training/mixed_precision.py: parameters under FP8 current scaling are kept in FP8 alone, by rows and by "
        "columns (fp8_param_gather), which takes as much as one copy in 16 bits",
        by_precision={"FP8-CS": {"weight_copies": 0}},
        model_values={"Moonlight-16B-A3B": {"gradient_bytes": 2, "optimizer_bytes": 8}},
        stack="megatron-bridge-2026",
    ),
    "TITAN": TrainingFamily(
        "torchtitan's benchmarks/: every command compiles (--training.compile) but where a row says eager; the tables "
        "of June 2025 have the compiled loss",
        plan={"compiled": True},
        by_precision={"float8 linears + float8 all-gather (torch.compile)": COMPILED_LOSS},
    ),
    "MCOREH100": TrainingFamily("Megatron-LM README of core r0.8: dropout is off", plan={"dropout": False}),
    "MCOREMOE": TrainingFamily(
        "Megatron-Core MoE README: distributed optimizer, overlapped reduction", plan={"dropout": False}
    ),
    "VTRAINS": TrainingFamily(
        "vTrain's ground truth of one node (arXiv 2312.12391): eager attention, dropout; DeepSpeed sums gradients in "
        "the format of training in 16 bits (runtime/engine.py, communication_data_type)",
        plan={"attention": "eager", "dropout": True},
        values={"gradient_bytes": 2},
    ),
    "GPUREC": TrainingFamily("AI Hypercomputer recipes", plan={"dropout": False}),
}
"""By the family of a row."""


def software_of(framework: str) -> TrainingFramework:
    """How the software of a row runs; plain where it is not declared."""
    found = [name for name in SOFTWARE if framework.casefold().startswith(name.casefold())]
    return SOFTWARE[max(found, key=len)] if found else TrainingFramework("nothing is declared")


def family_of(name: str) -> TrainingFamily:
    """What is declared of a family; nothing of a user's own."""
    return FAMILIES.get(name, PLAIN)

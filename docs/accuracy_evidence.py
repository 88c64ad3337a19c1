"""The section of `docs/accuracy.md` on how independent its numbers are.

What was decided after errors on the rows had been seen is listed with its effect; products and collectives are compared
with calibration rows by the scripts that fit them, at the systems' own constants.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from pathlib import Path
from typing import Any

from symperf.systems.system import System
from symperf.validation import report as tables

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks" / "calibration"

AFTER_ERRORS = (
    (
        "generation of the attention kernels by software and date",
        "FOUNDRY 33 to 11 %",
        "llm-foundry's README of 2023 (attn_impl: triton); speeds of arXiv 2307.08691 and 2407.08608",
    ),
    (
        "the values of the profile `llm-foundry-2023`",
        "FOUNDRY, errors by sequence length",
        "looked for after these errors were seen; geometric middles of published ranges",
    ),
    (
        "gradients in 16 bits in NeMo",
        "DGXC memory 26 to 5 %",
        "`grad_reduce_in_fp32=False` in NeMo's mixed-precision plugins",
    ),
    (
        "experts split over the tensor-parallel group where NeMo rows do not say",
        "DGXC rows with experts: bias -22 to -7 %",
        "Megatron-LM's arguments: `expert_tensor_parallel_size` is the tensor-parallel degree where it is none",
    ),
    (
        "full recomputation where MaxText and Paxml rows do not say",
        "not noted",
        "MaxText's `remat_policy`; praxis: `checkpoint_policy` is `SAVE_NOTHING`",
    ),
    (
        "the chunks of eight rows of Nemotron-340B that print NA are those of the layout rule (12)",
        "not noted",
        "the releases of the same recipe before and after have 12 too",
    ),
    (
        "tokens sent once to a node (DeepEP) in Megatron-Bridge",
        "Qwen3: +68..106 to -17..+1 %",
        "Megatron-Bridge recipes; its rows name the dispatcher in part only",
    ),
    (
        "FlashAttention-2 for Llama 3",
        "LLAMA3 26 to 14 %, with the rule below",
        "by date only: trained before FlashAttention-3 was published",
    ),
    (
        "micro-batch and chunks that neither row nor software tells: the fastest that fit into memory",
        "MCOREH100 14.6 to 18.3 % with the next",
        "published results are of tuned layouts (arXiv 2104.04473 tuned both)",
    ),
    (
        "layouts of SC21 and the set narayanan from the authors' scripts; all-reduces of layers that nothing hides",
        "SC21 5.8 to 3.9 %, reference_training 2.5 to 2.4 %, MTNLG 24 to 21 %",
        "Megatron-LM's examples/sc21 and mpu/layers.py of 2021; looked for because of SC21's bias",
    ),
    (
        "updated parameters gathered beside the first forward pass in NeMo and Megatron-Core",
        "DGXC 8.9 to 9.4 %",
        "`--overlap-param-gather` in Megatron-LM's README; NeMo's page on communication overlap",
    ),
    (
        "eleven rows of MegaScale's own software left out",
        "not scored",
        "it changes the model, which no column says",
    ),
    (
        "the corner of the roofline (`ridge_efficiency`)",
        "TRTL 17.0 to 14.1 %, FTGPT 12.1 to 11.5 %, VLLMCI 5.9 to 8.6 %, NIM 5.6 to 6.8 %",
        "set by calibration rows: products of 128 or 256 rows took 24 to 31 % longer than their work or traffic",
    ),
    (
        "partial sums of products that are split along k, in training too (most of what the corner had stood for)",
        "TRTL 14.0 to 14.9 %, FTGPT 11.6 to 11.2 %, NIM 6.7 to 5.7 %",
        "no constant; calibration rows: held-out products of H100 11.9 to 10.7 %",
    ),
    (
        "vLLM's own all-reduce",
        "VLLMCI 6.1 to 3.4 %",
        "measured rows of that kernel alone (benchmarks/calibration/peer.csv)",
    ),
    (
        "partial results of ring attention are merged by kernels of their own",
        "DGXC 9.3 to 9.0 %",
        "no constant; Transformer Engine's context_parallel.py; looked for because of DGXC's bias",
    ),
    (
        "products under the power limit (`sustained_efficiency`), attention of Hopper by causal rows too",
        "DGXC 9.0 to 7.4 %, MCOREH100 18.3 to 14.1 %, LLAMA3 13.9 to 8.6 %, TITAN 47 to 35 %",
        "measured on an H200 (benchmarks/calibration/h200.csv); its memory_efficiency took VLLMCI from 3.6 to 10.1 %",
    ),
    (
        "the profile of llm-foundry slows products under the power limit as well",
        "FOUNDRY 10.5 to 8.0 %",
        "none of its own: its share was one of sustained products before the limit had a symbol",
    ),
    (
        "matrix_efficiency of the H100's chip from short products (0.835), chosen over that of long ones (0.74)",
        "products of the H200 8.2 to 6.8 % of 512 rows and more, by which it was chosen",
        "VIDUR rows of the H100, once power had a symbol of its own",
    ),
    (
        "sustained over best share of parts with a best shape only: 0.904 to 0.867",
        "in the rows above; MAXTEXT 9.8 to 13.4 % bias by the default that follows",
        "the H200's lasting products; computed while errors were seen",
    ),
    (
        "contexts are not split by TensorRT-LLM before v0.13 (they were taken to be); NIM has a profile of its own",
        "NIM 5.8 to 4.9 %",
        "TensorRT-LLM: plugin.py, gpt_attention.md, release notes of v0.13; looked for because of reference_inference",
    ),
    (
        "all-reduces of TensorRT-LLM v0.9 by kernels of its own (NCCL before); gate and up one product since v0.13",
        "TRTL 14.9 to 15.1 %, NIM 4.9 to 5.2 %, TRTT 11.4 % both ways",
        "plugin.py of v0.9.0, release notes of v0.13, found by a check of the profiles' sources; worse, and kept",
    ),
    (
        "latencies of small all-reduces by listings, the second kernel of split products, 115 us between engine calls",
        "reference_inference 4.0 to 3.4 %, worst -11.8 to -8.7 %, all three together; the first alone 5.9 %",
        "calibration rows; gptSession.cpp and the time of a call in another runtime, when the error's sign was known",
    ),
    (
        "`launch_latency` by the least log error of thin products, no longer the median of what they take beside bytes",
        "reference_inference 4.1 to 3.4 %, worst -11.5 to -8.7 % (H100 2.57 to 3.10 us)",
        "calibration rows of the H100 4.4 instead of 5.0 % off; both were tried on the scored rows",
    ),
    (
        "kernels for weights of 4 bits find a device's own experts where they are dealt (`expert_map_latency`)",
        "serving tpot of gpt-oss-120b on 8 H200, calibration rows: 32 to 14 %",
        "tables of kernels: vLLM's take 15 to 40 us longer with dealt experts; looked for because of these errors",
    ),
    (
        "rows of InferenceX's configurations with drafts are predicted with them; acceptance by calibration rows",
        "serving tpot of tensorrt-llm-1.3 14.8 to 11.7 %",
        "InferenceX pull requests 392, 620 and 642; a row with 128 in flight is in no other configuration",
    ),
    (
        "six rows of gpt-oss-120b whose 512 in flight are only the client's bound left out",
        "serving tpot 17.8 to 13.6 %",
        "benchmarks/gptoss_fp4_h100_docker.sh of InferenceX, December 2025: --max-concurrency 512",
    ),
    (
        "absorbed weights of block-scaled FP8 are multiplied in 16 bits by SGLang",
        "serving tpot of DeepSeek-R1 on B200, calibration rows of 4 in flight: 35 to 17 %",
        "deepseek_v2.py of SGLang: block_quant_dequant to bfloat16",
    ),
    (
        "replicas that share no experts exchange no tokens, however many there are",
        "two pools on GB300: 82 to 12 % (median)",
        "no constant; the profiles' own sources; a fault, found by these errors",
    ),
    (
        "Kimi-K2.5 on B200 is one tensor-parallel group, though its rows tell replicas",
        "its serving tpot 28 to 9 %",
        "benchmarks/single_node/kimik2.5_fp4_b200.sh has neither --data-parallel-size nor --enable-expert-parallel",
    ),
    (
        "BLOOM's prototypes by date: formats of gradients, stages as they were dealt, what its optimizer keeps",
        "BIGSCI 16.7 to 17.7 %, its memory 13.5 to 13.7 % with a rank of 0.96 for 0.66",
        "chronicles-prequel.md; DeepSpeed's bf16_optimizer.py",
    ),
    (
        "heads of a width that 8 does not divide are slow products of eager attention",
        "BIGSCI 17.7 to 17.3 %",
        "no constant of its own; NVIDIA's rule of 16 bytes, known from vocabularies",
    ),
    (
        "gradients that kernels of their own add (`gradient_sum_bytes`): DeepSpeed, InternEvo",
        "BIGSCI 17.3 to 15.0 %; calibration rows of vTrain 6.5 to 6.6 %",
        "PyTorch's accumulate_grad.h, DeepSpeed's bf16_optimizer.py; two pairs of rows differ in it alone, by 5 %",
    ),
    (
        "launches that wait for their kernels (`host_wait`) on 320 GPUs and more",
        "BIGSCI 15.0 to 12.6 %, rank of its layouts 0.67 to 0.86",
        "chronicles-prequel.md: CUDA_LAUNCH_BLOCKING=1; host_latency is that of vTrain's rows",
    ),
    (
        "InternEvo: FlashAttention of 2022, all-reduces under ZeRO-1, broadcasts of whole tensors that fill a chain",
        "INTERNEVO 24.2 to 11.9 %, rank of its layouts 0.54 to 0.88",
        "InternLM's documents of 2023; hybrid_zero_optim.py; NCCL's sources; 8 channels of a broadcast are assumed",
    ),
    (
        "InternEvo's copies for norms in 32 bits, norms computed again, gates in two kernels, metrics of the logits",
        "INTERNEVO 11.7 to 9.7 %; its memory 15.2 to 14.1 %",
        "modeling_internlm.py, linear.py, loss.py and metrics.py of InternLM; no constant",
    ),
    (
        "DeepSeek-V3 of DGXC: stages and recomputed modules as its launcher sets them",
        "DGXC on Blackwell 15.0 to 15.1 %, its mixtures 8.9 to 9.9 %",
        "deepseek_v3/pretraining/launch.sh; pretrain_deepseek_v3.py of NeMo",
    ),
    (
        "InternEvo's memory peaks in the update: gradients in FP32 and what foreach kernels of AdamW take beside",
        "INTERNEVO memory 38.9 to 15.2 %",
        "hybrid_zero_optim.py and fsdp_optimizer.py; PyTorch's documentation of AdamW (foreach: sizeof(params) more)",
    ),
    (
        "ZeRO-3 of 2021 gathers tensors one by one, piece by piece, and hides nothing",
        "SC21T2 66.9 to 33.0 %",
        "partition_parameters.py of DeepSpeed in early 2021, _allgather_param",
    ),
    (
        "FasterTransformer's GB are GiB in use of the device; CUDA's context of 2022 (1573 MiB), also in BLOOM's rows",
        "FTGPT memory 39.3 to 20.6 %, BIGSCI memory 13.7 to 11.7 %",
        "print_mem_usage of its cuda_utils.h; chronicles-prequel.md",
    ),
    (
        "zero bubble's peak of memory is what PyTorch had allocated",
        "ZEROBUB memory 17.9 to 4.9 %",
        "training.py of its repository reports memory by report_memory alone; which of its figures is not said",
    ),
    (
        "layouts compete on models of one shape and one release of a software alone, where measurements are 5 % apart",
        "rank of layouts 0.738 to 0.793 (102 and 92 rows); with what stands above 0.827 to 0.913 (105 and 92 rows)",
        "heads leave the number of parameters as it is; a release brings other kernels",
    ),
    (
        "lengths of INFX from 0 to twice the nominal (they were taken to be alike), and its weights in FP8 blocks",
        "INFX 101.6 to 76.0 %, bias +28.7 to -29.6 %",
        "InferenceX, benchmark_serving_random.py: --random-range-ratio is 1.0 by default; config.json of the model",
    ),
    (
        "rows of TRT20 are bursts of as many requests as their page says (an endless loop was taken)",
        "TRT20 19.6 to 16.7 %, with waves of bursts by the simulation (a fault of the formula that this showed)",
        "perf-overview.md of TensorRT-LLM v0.20, table of $num_requests",
    ),
    ("dropped again: the least recomputation that fits", "none", "no document"),
)
"""What was decided after errors had been seen; effect on the mean error; support."""

ALL_REDUCES = (
    ("A100", "a100-80gb-sxm"),
    ("H100", "h100-sxm"),
    ("H200", "h200-sxm"),
    ("B200", "b200-sxm"),
)
"""Parts of the script for collectives -> system."""
LEAST_BYTES = 1e6


def module(name: str) -> Any:
    """A script of the calibration, without what it prints."""
    sys.path.insert(0, str(FOLDER))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


def products() -> list[tuple[str, float]]:
    """Part and median error of products of models that its constants were not fitted to."""
    gemm = module("gemm")
    with contextlib.redirect_stdout(io.StringIO()):
        return [(part, gemm.held_out(part, gemm.memory_share(gemm.PARTS[part][5]))) for part in gemm.VIDUR]


def all_reduces() -> list[tuple[str, int, float]]:
    """Part, rows and mean error of all-reduces inside a node above 1 MB, with the constants of the system's file."""
    import numpy as np

    script, found = module("collectives"), []
    for part, name in ALL_REDUCES:
        system = System.load(name)
        attainable, half, latency = (
            system.value("scale_up_bandwidth") * system.value("scale_up_efficiency"),
            system.value("scale_up_half_bytes"),
            system.value("scale_up_latency"),
        )
        rows = np.hstack(list(script.PARTS[part][0].values()))
        rows = rows[:, rows[0] > LEAST_BYTES]
        form = script.FORM
        if part in script.IN_SWITCH:
            form = script.switched(system.value("switch_efficiency"))
        times = script.called(part, form, attainable, rows, half, latency)
        found.append((part, rows.shape[1], float(np.mean(np.abs(times / rows[2] - 1)))))
    return found


def own_all_reduces() -> list[tuple[str, int, float]]:
    """Part, rows and mean error of vLLM's own all-reduce on 4 ranks, of constants fitted to 2 and 8."""
    peer = module("peer")
    return [(part, int((peer.times(part)[1] == 4).sum()), peer.held_out(part)) for part in peer.LINKS]


def section() -> list[str]:
    """The lines of the section."""
    return [
        "## How independent these numbers are",
        "",
        "No constant was fitted to a row that is scored. But some were chosen when errors were seen",
        "([above](#measured-kernels-alone-or-chosen-constants)), and so were definitions (what a row means):",
        "",
        "| decided after errors were seen | effect on the mean error | support |",
        "|---|---|---|",
        *(f"| {tables.cell(what)} | {effect} | {support} |" for what, effect, support in AFTER_ERRORS),
        "",
        "How a software runs is read in the documents and sources that `symperf/validation/definitions.py` names. That",
        "PyTorch's `scaled_dot_product_attention` is FlashAttention-2, that FSDP and Paxml gather ahead in full, and",
        "which attention MaxText and Paxml use, is general knowledge of these programs, not read in a document of the",
        "rows. Effects were noted when each was decided; later changes of the physics have moved them.",
        "",
        *calibrated(),
    ]


def calibrated() -> list[str]:
    """The part on products and collectives."""
    lines = [
        "### Against calibration rows",
        "",
        "Products of models that the constants were not fitted to: median absolute error, as printed by",
        "`python benchmarks/calibration/gemm.py` (and held by test_calibration_gemm.py); those of the H200 by",
        "constants of the H100 and of other rows (`python benchmarks/calibration/h200.py`). All-reduces inside a",
        "node above 1 MB with the constants of the system's file: mean absolute error; the fit has seen these rows",
        "(`python benchmarks/calibration/collectives.py` prints log errors by size). Those of H200 and B200 were",
        "summed in the switch, those of A100 and H100 were not: none of them is faster than a ring. vLLM's own",
        "all-reduces: 4 ranks, 256 B to 4 MiB, constants fitted to 2 and 8 (`python benchmarks/calibration/peer.py`).",
        "",
        "| what | part | rows | error |",
        "|---|---|---:|---:|",
    ]
    lines += [f"| products | {part} |  | {error:.1%} |" for part, error in products()]
    rows, median, _ = module("h200").grid()
    lines += [f"| products | NVIDIA H200 | {rows} | {median:.1%} |"]
    lines += [f"| all-reduces | {part} | {rows} | {error:.1%} |" for part, rows, error in all_reduces()]
    return lines + [f"| vLLM's own | {part} | {rows} | {error:.1%} |" for part, rows, error in own_all_reduces()]

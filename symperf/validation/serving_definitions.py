"""What the columns of a row of `serving.csv` do not say: its checkpoint, its software's options, and its load.

Rows are of two kinds. Most are of InferenceX (until 2026 InferenceMAX, github.com/SemiAnalysisAI/InferenceX), whose
`benchmark_serving.py` sends 10 N requests, N in flight, with lengths that are even from 0.8 times the nominal to the
nominal one (`--random-range-ratio 0.8`, `--num-prompts CONC * 10`, `--request-rate inf`), to a server that a script of
each model starts. The others are of the authors of aiconfigurator, with lengths that are told as all alike.

No number here but `OUT_OF_STEP` was chosen to bring a prediction nearer to a measurement: each is in the script that is
named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rows import TableRow

MODELS: Final[Mapping[str, str]] = {
    "deepseek-ai/DeepSeek-R1": "deepseek-v3",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-v3",
    "nvidia/DeepSeek-V3.1-NVFP4": "deepseek-v3",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2.5",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "nvidia/Qwen3-32B-NVFP4": "qwen3-32b",
    "Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
    "Qwen/Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3.1-8b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "moonshotai/Kimi-K2.5": "kimi-k2.5",
    "zhipuai/GLM-5": "glm-5",
}
"""Column `model_path` -> name in the catalogue; a distillation or a later version of the same architecture counts."""
SYSTEMS: Final[Mapping[str, str]] = {
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm",
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
}
STACKS: Final[Mapping[str, str]] = {"vllm": "vllm-0.24", "sglang": "sglang-0.5", "trtllm": "tensorrt-llm-1.3"}
"""Column `backend` -> the profile; versions of 2025 and 2026 share one."""
BLOCKWISE: Final = ("deepseek-v3", "minimax-m2.5", "qwen3-235b-a22b", "qwen3.5-397b-a17b", "glm-5")
"""Models whose FP8 checkpoints have a scale for each block of 128 x 128 weights."""
ATTENTION_KEPT: Final = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "*self_attn*"]}
"""NVFP4 checkpoints by NVIDIA of models with experts: ModelOpt leaves attention in 16 bits (examples/deepseek)."""
NVFP4_KEPT: Final = ("deepseek-v3", "kimi-k2.5", "minimax-m2.5", "qwen3.5-397b-a17b", "glm-5")
AS_STORED: Final = ("gpt-oss-120b", "kimi-k2.5")
"""Models whose own checkpoints are of 4 bits: other columns say how their activations are called."""
PRECISIONS: Final[Mapping[str, str | None]] = {"fp8": "fp8", "fp4": "fp4", "bf16": None, "int4": None, "": None}
SPREAD: Final = (0.8, 10)
"""Of InferenceX: the shortest length over the nominal one, and requests for each in flight."""
ALIKE: Final = (1.0, 10)
OUT_OF_STEP: Final = 0.02
"""Spread of lengths that are told as alike, under software whose prompts join iterations that decode.

Chat templates and tokenizers make them differ by some tokens, and requests lose the step of the burst with which they
began. Of 0, 0.02 and 0.11 the least error of TTFT over the 49 calibration rows by aiconfigurator's authors under
TensorRT-LLM (median 41, 22 and 34 %). Under software that prefills first, requests end together and stay in step (36
rows: 16, 70 and 74 %).
"""
UTILIZATION: Final[Mapping[str, float]] = {"vllm": 0.9, "sglang": 0.85, "trtllm": 0.9}
"""Part of the memory that weights, cache and workspace take by default: vLLM gpu_memory_utilization, SGLang
mem_fraction_static (mostly between 0.8 and 0.9), TensorRT-LLM free_gpu_memory_fraction (0.9 of what is free)."""


@dataclass(frozen=True)
class Script:
    """Options that a script of InferenceX gives to a server, where they are not the software's defaults.

    Attributes:
        why: where they are read.
        backend: column of the rows that they hold for.
        models: names in the catalogue.
        systems: beginnings of the column `system`; none: all.
        precisions: column; none: all.
        versions: beginnings of the column `backend_version`; none: all.
        lengths: nominal prompt and generation; none: all.
        cache: format of the key-value cache.
        chunk: prompt tokens of an iteration; 0: the software's default.
        chunk_prompts: nominal prompts of an iteration, instead.
        polls: iterations for which a request waits in the mean before the scheduler looks for it, by concurrency from
            which on that holds.
        utilization: part of the memory; 0: the software's default.
        measured: a beginning of the day in the column `silicon_data_source`; none: any.
        drafts: tokens that the model's own head drafts for each step.
        one_group: the script starts one tensor-parallel group, whatever its configuration says of replicas and experts.
    """

    why: str
    backend: str
    models: tuple[str, ...]
    systems: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    lengths: tuple[int, int] | None = None
    cache: str | None = None
    chunk: int = 0
    chunk_prompts: int = 0
    polls: tuple[tuple[int, float], ...] = ()
    utilization: float = 0.0
    measured: str = ""
    drafts: int = 0
    one_group: bool = False

    def holds(self, row: TableRow, model: str) -> bool:
        """Whether a row's server was started by it."""
        lengths = (row.whole("isl"), row.whole("osl"))
        return (
            row.text("backend") == self.backend
            and model in self.models
            and _begins(row.text("system"), self.systems)
            and _begins(row.text("precision"), self.precisions)
            and _begins(row.text("backend_version"), self.versions)
            and self.lengths in (None, lengths)
            and f"measured={self.measured}" in f"{row.text('silicon_data_source')}; measured="
        )


def _begins(text: str, known: tuple[str, ...]) -> bool:
    return not known or text.startswith(known)


DRAFT_ACCEPTANCE: Final = 0.65
"""Part of the tokens of DeepSeek-R1's head that are accepted, once those before them are, on the random words of
InferenceX's prompts: by the 18 calibration rows with drafts (benchmarks/calibration/accepted_drafts.py)."""
RECEIVE: Final = ((0, 5.0), (16, 15.0))
"""SGLang's --scheduler-recv-interval of 10 below 16 requests in flight and 30 from there on: half of it in the mean."""
SCRIPTS: Final = (
    Script(
        "benchmarks/70b_fp8_h200_trt_slurm.sh: batch_wait_timeout_iters 20 for 1k in, 1k out; kv_cache_config dtype "
        "fp8",
        "trtllm",
        ("llama-3.1-70b",),
        lengths=(1024, 1024),
        cache="fp8",
        polls=((0, 20.0),),
    ),
    Script(
        "benchmarks/dsr1_fp8_h200_trt_mtp_slurm.sh: num_nextn_predict_layers 3, max_num_tokens of one prompt; its "
        "configuration came with pull request 392, whose run of 2026-01-14 the rows are of (1024 in, 8192 out at 128 "
        "in flight is in no other)",
        "trtllm",
        ("deepseek-v3",),
        systems=("h200",),
        versions=("1.1.0rc2",),
        cache="fp8",
        chunk_prompts=1,
        measured="2026-01-14",
        drafts=3,
    ),
    Script(
        "benchmarks/dsr1_fp4_b200_trt_mtp_slurm.sh: num_nextn_predict_layers 3, max_num_tokens of one prompt; came "
        "with pull request 392 (2026-01-14)",
        "trtllm",
        ("deepseek-v3",),
        systems=("b200",),
        versions=("1.1.0rc2",),
        cache="fp8",
        chunk_prompts=1,
        measured="2026-01-14",
        drafts=3,
    ),
    Script(
        "benchmarks/single_node/dsr1_fp4_b200_trt_mtp.sh: num_nextn_predict_layers 3; pull request 642 took it alone "
        "to 1.2.0rc6.post3, 620 the one without drafts to 1.2.0rc6.post2",
        "trtllm",
        ("deepseek-v3",),
        systems=("b200",),
        versions=("1.2.0rc6.post3",),
        cache="fp8",
        chunk_prompts=1,
        drafts=3,
    ),
    Script(
        "benchmarks/70b_fp8_h200_trt_slurm.sh, dsr1_fp8_h200_trt.sh, dsr1_fp4_b200_trt.sh: kv_cache_config dtype fp8",
        "trtllm",
        ("llama-3.1-70b", "deepseek-v3"),
        cache="fp8",
    ),
    Script(
        "benchmarks/70b_fp8_h100_slurm.sh, 70b_fp8_b200_docker.sh: kv-cache-dtype fp8, max-num-batched-tokens 8192",
        "vllm",
        ("llama-3.1-70b",),
        cache="fp8",
        chunk=8192,
    ),
    Script(
        "benchmarks/single_node/minimaxm2.5_fp8_b200.sh, _b300.sh, minimaxm2.5_fp4_b300.sh: kv-cache-dtype fp8, "
        "max-num-batched-tokens 2 ISL",
        "vllm",
        ("minimax-m2.5",),
        systems=("b200", "b300"),
        versions=("0.19",),
        cache="fp8",
        chunk_prompts=2,
    ),
    Script(
        "benchmarks/single_node/minimaxm2.5_fp8_b200.sh of early 2026: gpu-memory-utilization 0.95",
        "vllm",
        ("minimax-m2.5",),
        systems=("b200", "b300", "h200"),
        utilization=0.95,
    ),
    Script(
        "benchmarks/single_node/gptoss_fp4_b200.sh: kv-cache-dtype fp8, max-num-batched-tokens 8192",
        "vllm",
        ("gpt-oss-120b",),
        systems=("b200",),
        cache="fp8",
        chunk=8192,
    ),
    Script(
        "benchmarks/single_node/fixed_seq_len/kimik2.5_int4_h200.sh: gpu-memory-utilization 0.95",
        "vllm",
        ("kimi-k2.5",),
        systems=("h200",),
        utilization=0.95,
    ),
    Script(
        "benchmarks/single_node/kimik2.5_fp4_b200.sh: --tensor-parallel-size=$TP, neither --data-parallel-size nor "
        "--enable-expert-parallel",
        "vllm",
        ("kimi-k2.5",),
        systems=("b200",),
        precisions=("fp4",),
        one_group=True,
    ),
    Script(
        "benchmarks/single_node/dsr1_fp8_b200.sh: kv-cache-dtype fp8_e4m3, chunked-prefill-size 32768, "
        "scheduler-recv-interval 10 or 30, mem-fraction-static 0.82",
        "sglang",
        ("deepseek-v3",),
        precisions=("fp8",),
        cache="fp8",
        chunk=32768,
        polls=RECEIVE,
        utilization=0.82,
    ),
    Script(
        "benchmarks/single_node/dsr1_fp4_b200.sh: kv-cache-dtype fp8_e4m3, chunked-prefill-size 16384, "
        "scheduler-recv-interval 10 or 30, mem-fraction-static 0.85",
        "sglang",
        ("deepseek-v3",),
        precisions=("fp4",),
        cache="fp8",
        chunk=16384,
        polls=RECEIVE,
    ),
    Script(
        "benchmarks/single_node/glm5_fp4_b200.sh: kv-cache-dtype fp8_e4m3, chunked-prefill-size 32768, "
        "scheduler-recv-interval 10",
        "sglang",
        ("glm-5",),
        cache="fp8",
        chunk=32768,
        polls=((0, 5.0),),
    ),
    Script(
        "benchmarks/single_node/qwen3.5_fp8_h200.sh: kv-cache-dtype fp8_e4m3, chunked-prefill-size 16384, "
        "mem-fraction-static 0.8",
        "sglang",
        ("qwen3.5-397b-a17b",),
        systems=("h200",),
        cache="fp8",
        chunk=16384,
        utilization=0.8,
    ),
    Script(
        "benchmarks/single_node/qwen3.5_bf16_b300.sh: chunked-prefill-size 32768, scheduler-recv-interval 10 or 30",
        "sglang",
        ("qwen3.5-397b-a17b",),
        systems=("b",),
        precisions=("bf16",),
        chunk=32768,
        polls=RECEIVE,
        utilization=0.82,
    ),
    Script(
        "benchmarks/single_node/qwen3.5_fp4_b300.sh: kv-cache-dtype fp8_e4m3, chunked-prefill-size 32768, "
        "scheduler-recv-interval 10 or 30",
        "sglang",
        ("qwen3.5-397b-a17b",),
        systems=("b",),
        precisions=("fp4",),
        cache="fp8",
        chunk=32768,
        polls=RECEIVE,
        utilization=0.8,
    ),
    Script(
        "benchmarks/single_node/qwen3.5_fp8_b300.sh: kv-cache-dtype fp8_e4m3, chunked-prefill-size 16384, "
        "scheduler-recv-interval 10",
        "sglang",
        ("qwen3.5-397b-a17b",),
        systems=("b",),
        precisions=("fp8",),
        cache="fp8",
        chunk=16384,
        polls=((0, 5.0),),
        utilization=0.8,
    ),
)
"""The first that holds is a row's; of InferenceX's rows only."""


POOLS: Final = Script(
    "recipes of InferenceX's configurations of two pools, github.com/ishandhanani/srt-slurm (such as "
    "recipes/b200-fp4/8k1k/stp/low-latency-tp4-1p-tp8-1d.yaml @6951981c): kv-cache-dtype fp8_e4m3",
    "",
    (),
    cache="fp8",
)


@dataclass(frozen=True)
class Untold:
    """Rows that do not say how their server was asked.

    Attributes:
        reason: what they do not say.
        why: where that is read.
        backend: column.
        model: name in the catalogue.
        system: column.
        concurrency: column.
    """

    reason: str
    why: str
    backend: str
    model: str
    system: str
    concurrency: int

    def holds(self, row: TableRow, model: str) -> bool:
        """Whether a row is one of them."""
        told = (row.text("backend"), model, row.text("system"), row.whole("batch_size"))
        return told == (self.backend, self.model, self.system, self.concurrency)


UNTOLD: Final = (
    Untold(
        "its concurrency is a bound of the client; how many sequences the server ran is not said",
        "benchmarks/gptoss_fp4_h100_docker.sh of December 2025 (seen at ishandhanani/InferenceMAX @d22bf9ca): "
        "--max-num-seqs=$CONC and --num-prompts $(( $CONC * 10 )), but --max-concurrency 512, which is recorded",
        "vllm",
        "gpt-oss-120b",
        "h100_sxm",
        512,
    ),
)
PLAIN: Final = Script("the software's defaults", "", ())


def of_inferencex(row: TableRow) -> bool:
    """Whether a row was measured by InferenceX, by the table that it is from."""
    return "aic-auto-gap-analysis" not in row.text("silicon_data_source")


def script_of(row: TableRow, model: str) -> Script:
    """The options of a row's server."""
    if not of_inferencex(row):
        return PLAIN
    return next((script for script in SCRIPTS if script.holds(row, model)), PLAIN)


def known_as(row: TableRow, column: str, table: Mapping[str, Any]) -> Any:
    """What a cell stands for.

    Raises:
        InputError: it is none of those that are known.
    """
    text = row.text(column)
    if text not in table:
        raise InputError(f"{column}: found {quote(text)}, which nothing stands for")
    return table[text]

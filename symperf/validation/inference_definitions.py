"""What the columns of a row of inference do not say: which stack stands for its software, and what its clock covers.

`SOFTWARE` goes by the column `framework` and holds for a user's rows as well; what a document says of its rows is in
`documents.toml`. No number is fitted to a measurement; some places were looked up because a prediction was far from
one, and the page of accuracy lists them (`AFTER_ERRORS` in `docs/accuracy_evidence.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..common.errors import InputError, quote
from ..infer.scheduling import local_batch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rows import TableRow

NOTHING: Mapping[str, float | str] = {}
NO_TOKENS: Mapping[tuple[int, int], int] = {}


@dataclass(frozen=True)
class ServingFramework:
    """How a framework serves.

    Attributes:
        why: where it is read.
        stack: the profile that stands for it; "" where none does.
        prompt_batch: tokens of a prompt that pass the model at once; a longer prompt is cut, and its parts follow one
            another through the stages; 0: whole prompts.
        in_turns: sequences that do not fit together are served one after another, so that such a row is of no batch.
        chunk: prompt tokens that an iteration of continuous batching may hold; 0: the default.
        two_tables: the head's weights are a copy of their own where a model ties them to the embedding.
        stage_tokens: tokens, padding included, that a pipeline's micro-batch has at most; 0: micro-batches of the whole
            batch.
        held_bytes: what a figure of memory counts beside tensors.
        tokens: of a batch's sequences together, by batch and length, where the length of a row is only the longest.
    """

    why: str
    stack: str
    prompt_batch: int = 0
    in_turns: bool = False
    chunk: int = 0
    two_tables: bool = False
    stage_tokens: int = 0
    held_bytes: float = 0.0
    tokens: Mapping[tuple[int, int], int] = field(default_factory=lambda: NO_TOKENS)


CONTEXT_OF_2022 = (
    "1573 MiB on an A100 for CUDA's kernels, before modules were loaded when they are needed (CUDA 11.7): bigscience "
    "train/tr11-176B-ml/chronicles-prequel.md at 9e64edec, a tensor of one element and nvidia-smi"
)
BERT_TOKENS: Mapping[tuple[int, int], int] = {
    (1, 32): 11,
    (1, 128): 25,
    (1, 384): 340,
    (1, 1024): 549,
    (4, 32): 74,
    (4, 128): 290,
    (4, 384): 852,
    (4, 1024): 857,
    (32, 32): 354,
    (32, 128): 2104,
    (32, 384): 6575,
    (32, 1024): 15406,
    (128, 32): 1826,
    (128, 128): 7753,
    (128, 384): 23852,
    (128, 1024): 68464,
}
"""The program draws b s h numbers and then b lengths with glibc's random() after srand(0), modulo the length of the
request; replayed for h = 4096."""

_EARLY = ServingFramework(
    "as TensorRT-LLM; before v0.8 no kernel that is on by default shares reads among the query heads of a group",
    "tensorrt-llm-0.6",
)
_STATIC = ServingFramework(
    "TensorRT-LLM benchmarks/cpp/gptSessionBenchmark.cpp: static batches, timed from the prompts to the last token",
    "tensorrt-llm",
)
_ENGINES = ServingFramework(
    "TensorRT-LLM from v0.13, engines: the profile's own source", "tensorrt-llm-0.13", in_turns=True
)
_PYTORCH = ServingFramework(
    "TensorRT-LLM's PyTorch backend (tensorrt_llm/_torch), in v0.20 as in v1: the profile's own source",
    "tensorrt-llm-1.3",
    in_turns=True,
)
_VLLM = ServingFramework("vLLM benchmarks/benchmark_latency.py: one static batch", "vllm", in_turns=True)
VERSIONED = ("TensorRT-LLM", "vLLM")
"""Software whose versions are known one by one: one that is not is refused."""
SOFTWARE: Mapping[str, ServingFramework] = {
    **{f"TensorRT-LLM {version}": _EARLY for version in ("v0.5", "v0.6", "v0.7")},
    "TensorRT-LLM v0.8": _STATIC,
    "TensorRT-LLM v0.9": ServingFramework("as TensorRT-LLM; v0.9 sums by kernels of its own", "tensorrt-llm-0.9"),
    **{f"TensorRT-LLM v0.{version}": _ENGINES for version in range(13, 20)},
    **{f"TensorRT-LLM {version}": _PYTORCH for version in ("v0.20", "v0.21", "v1", "1")},
    "TensorRT-LLM": _STATIC,
    "FasterTransformer (Triton example)": ServingFramework(
        "FasterTransformer examples/cpp/bert/bert_triton_example.cc: lengths at random, padding removed",
        "fastertransformer",
        stage_tokens=1024,
        tokens=BERT_TOKENS,
    ),
    "FasterTransformer": ServingFramework(
        "FasterTransformer v5: static batches; getLocalBatchSize (utils/nccl_utils.cc) cuts them for a pipeline; "
        "ParallelGptWeight has pre_decoder_embedding_table and post_decoder_embedding.kernel; print_mem_usage "
        f"(utils/cuda_utils.h) tells what is in use of the device, with CUDA's context: {CONTEXT_OF_2022}",
        "fastertransformer",
        held_bytes=1573 * 2.0**20,
        two_tables=True,
        stage_tokens=1024,
    ),
    "vLLM": _VLLM,
    **{f"vLLM 0.{version}": _VLLM for version in (4, 5, 6, 7)},
    **{f"vLLM 0.{version}": replace(_VLLM, stack="vllm-0.9") for version in (8, 9, 10)},
    **{
        f"vLLM {version}": replace(_VLLM, stack="vllm-0.19")
        for version in (*(f"0.{n}" for n in range(14, 21)), "nightly (Feb 2026)")
    },
    **{f"vLLM 0.{version}": replace(_VLLM, stack="vllm-0.24") for version in range(21, 25)},
    "LMDeploy": ServingFramework(
        "lmdeploy benchmark/profile_generation.py: as many threads as the batch, each with one request at a time; "
        "max_prefill_token_num 8192, cache_max_entry_count 0.8 of the free memory (TurbomindEngineConfig)",
        "lmdeploy",
        in_turns=True,
        chunk=8192,
    ),
    "llama.cpp": ServingFramework(
        "llama.cpp llama-bench: micro-batches of 512 tokens (n_ubatch), which follow one another through the devices "
        "of a layer split since pull request 6017 (March 2024)",
        "llama-cpp",
        prompt_batch=512,
    ),
    "NVIDIA NIM": ServingFramework(
        "NIM for LLMs runs TensorRT-LLM: max_num_tokens 8192 of trtllm-build, kv_cache_free_gpu_mem_fraction 0.9; "
        "version 1.8.0 is of 2025; its engines are taken to have the defaults since v0.13",
        "tensorrt-llm-0.13",
        in_turns=True,
        chunk=8192,
    ),
    "Megatron": ServingFramework("Megatron-LM's own generation launches PyTorch's operators one by one", ""),
    "DeepSeek in-house": ServingFramework("DeepSeek's own serving system", ""),
}
"""By the beginning of the column `framework`."""
UNKNOWN = ServingFramework("a row that names no software: the commonest of 2023 and 2024", "tensorrt-llm")


METRICS: Mapping[str, str] = {
    **dict.fromkeys(
        ("first_token_latency", "prefill_latency", "mean_first_token_latency", "median_ttft", "ttft"), "prefill_s"
    ),
    **dict.fromkeys(
        ("time_per_output_token", "median_time_per_output_token", "inter_token_latency", "tpot"), "time_per_token_s"
    ),
    **dict.fromkeys(("request_latency", "mean_latency", "latency"), "time_s"),
    **dict.fromkeys(("output_throughput", "output_tokens_per_s_total", "tokens_per_s"), "tokens_per_s"),
    **dict.fromkeys(("output_throughput_per_gpu", "tokens_per_s_per_device"), "tokens_per_s_per_device"),
    "prompt_eval_speed": "prefill_s",
    "generation_speed": "time_per_token_s",
}
"""What each metric is in the keys of `symperf infer --json`; the last two are speeds of one sequence, told as times."""
SPEEDS = ("prompt_eval_speed", "generation_speed")
UNITS: Mapping[str, float] = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "tokens/s": 1.0,
    "tokens/s/GPU": 1.0,
}
"""Units, in SI."""


def software_of(row: TableRow) -> ServingFramework:
    """The software of a row.

    Raises:
        InputError: no stack stands for it, or for its version.
    """
    framework = row.text("framework")
    if not framework:
        return UNKNOWN
    matching = [name for name in SOFTWARE if framework.casefold().startswith(name.casefold())]
    matching = [name for name in matching if not (name[-1].isdigit() and framework[len(name) :][:1].isdigit())]
    if not matching:
        raise InputError(f"no stack stands for the software {quote(framework)}")
    name = max(matching, key=len)
    if name in VERSIONED and re.match(r"\s*v?\d", framework[len(name) :]):
        raise InputError(f"no stack stands for this version of the software: {quote(framework)}")
    if not SOFTWARE[name].stack:
        raise InputError(f"no stack stands for it: {SOFTWARE[name].why}")
    return SOFTWARE[name]


def micro_batch_of(software: ServingFramework, batch: int, length: int, stages: int) -> int | None:
    """Sequences of a micro-batch of a pipeline, as the software cuts a batch; None: all of them.

    >>> micro_batch_of(SOFTWARE["FasterTransformer"], 32, 128, 2)
    8
    """
    if stages == 1 or not software.stage_tokens:
        return None
    return local_batch(batch, length, stages, software.stage_tokens)

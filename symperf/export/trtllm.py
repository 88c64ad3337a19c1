"""Plans as flags of `trtllm-serve`, and as its configuration file."""

from __future__ import annotations

from typing import Final

from ..plans.rule import Rule
from .lines import flags as text
from .serving import joint, replica_by_replica, sixteen_bits, training_only, whole_context
from .sheet import ExportRequest, Option, Sheet

__all__ = ["CACHES", "OPTIONS", "RULES", "sheet", "start", "text"]

SITE: Final = "https://github.com/NVIDIA/TensorRT-LLM/blob/"
SERVE: Final = f"{SITE}00209af149e7774406881a37283dce303571eb11/tensorrt_llm/commands/serve.py"
"""The command line of trtllm-serve at the commit that the names were read in."""
PARALLEL: Final = f"{SITE}65b31db1b401d3752b8ebe7c29093cbfb6af04b7/docs/source/features/parallel-strategy.md"
CACHE: Final = f"{SITE}09d4c79ba941a5c2c62c878c3572c0dcc8b85efa/docs/source/features/quantization.md"
APART: Final = f"{SITE}c3c3d76e28c57ee23adc3458fc6aca87300c8c21/examples/disaggregated/README.md"
"""What documents keys of its configuration file."""

OPTIONS: Final[dict[str, Option]] = {
    "--tp_size": Option(int, SERVE),
    "--pp_size": Option(int, SERVE),
    "--ep_size": Option(int, SERVE),
    "--free_gpu_memory_fraction": Option(float, SERVE),
    "--max_batch_size": Option(int, SERVE),
    "--max_num_tokens": Option(int, SERVE),
    "--max_seq_len": Option(int, SERVE),
    "--enable_chunked_prefill": Option(bool, SERVE),
    "--config": Option(str, SERVE),
    "enable_attention_dp": Option(bool, PARALLEL),
    "kv_cache_config.dtype": Option(str, CACHE, ("fp8",)),
    "disable_overlap_scheduler": Option(bool, APART),
    "cache_transceiver_config.backend": Option(str, APART, ("DEFAULT", "UCX", "NIXL")),
    "cache_transceiver_config.max_tokens_in_buffer": Option(int, APART),
}
"""Those without dashes are keys of the file that `--config` names."""
CACHES: Final = {"bf16": "auto", "fp16": "auto", "fp8": "fp8"}
"""What it calls formats of the cache that are modelled."""
RULES: Final = (
    Rule(
        "trtllm_deals_experts_over_a_server",
        "ep == 1 or ep == tp or tp == 1 and ep == dp",
        "ep: found {ep}, expected 1, tp = {tp}, or dp = {dp} with tp = 1: TensorRT-LLM deals experts over the devices "
        "of a server, whose attention is split among them or is data-parallel",
    ),
)
"""What a plan must satisfy beside the rules of all plans, so that it runs it."""


def start(model: str) -> list[str]:
    """The command that the options follow."""
    return ["trtllm-serve", model]


def sheet(asked: ExportRequest) -> Sheet:
    """The settings."""
    made, plan = Sheet("trtllm", OPTIONS), asked.plan
    together = joint(asked) and plan.tp == 1
    made.put("--tp_size", plan.dp if together else plan.tp, "tp")
    made.put("--pp_size", plan.pp, "pp")
    if together:
        made.put("enable_attention_dp", True, "dp")
    elif plan.dp > 1:
        made.note("dp", f"start {plan.dp} servers, each on {plan.devices // plan.dp} devices; one has a single replica")
    _experts(made, asked, plan.dp if together else plan.tp)
    _served(made, asked)
    if asked.batch is not None:
        made.put("--max_batch_size", asked.batch // plan.dp)
    if asked.sequence is not None:
        made.put("--max_seq_len", asked.sequence)
    if plan.micro_batch is not None:
        made.note("micro_batch", f"{plan.micro_batch} in the plan; TensorRT-LLM fills its pipeline itself")
    if plan.attention is not None:
        made.note("attention", f"{plan.attention} in the plan; TensorRT-LLM chooses")
    if asked.precision is not None:
        made.note("precision", f"{asked.precision} in the plan; trtllm-serve takes the checkpoint's")
    replica_by_replica(made, asked, "TensorRT-LLM")
    whole_context(made, asked)
    training_only(made, asked)
    return made


def _experts(made: Sheet, asked: ExportRequest, width: int) -> None:
    plan = asked.plan
    if plan.ep > 1 and width % plan.ep == 0:
        made.put("--ep_size", plan.ep, "ep")
        if plan.effective_expert_tp != width // plan.ep:
            made.note(
                "expert_tp",
                f"{plan.effective_expert_tp} in the plan; TensorRT-LLM splits each expert over the tp / ep = "
                f"{width // plan.ep} devices left",
            )
        made.cover("expert_tp")
    elif plan.ep > 1:
        made.note("ep", f"{plan.ep} in the plan; TensorRT-LLM deals experts within tp = {width} devices")
        made.cover("expert_tp")
    elif plan.effective_expert_tp == plan.tp:
        made.cover("expert_tp")


def _served(made: Sheet, asked: ExportRequest) -> None:
    service = asked.service
    if service is None:
        return
    made.put("--max_batch_size", service.running)
    made.put("--max_num_tokens", service.budget)
    made.put("--max_seq_len", service.length)
    if service.utilization is not None:
        made.put("--free_gpu_memory_fraction", service.utilization)
    if service.role != "decode":
        made.put("--enable_chunked_prefill", True)
    if not sixteen_bits(made, service, CACHES, "TensorRT-LLM"):
        made.put("kv_cache_config.dtype", CACHES[str(service.kv_precision)])
    if service.role == "prefill":
        made.put("disable_overlap_scheduler", True)
    if service.role is not None:
        made.put("cache_transceiver_config.backend", "DEFAULT")
        made.put("cache_transceiver_config.max_tokens_in_buffer", service.prompt)
    if any(not name.startswith("--") for name in made.settings):
        made.put("--config", f"{service.role or 'server'}.yaml")

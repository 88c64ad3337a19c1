"""Plans as flags of `vllm serve`."""

from __future__ import annotations

import json
from typing import Final

from ..plans.rule import Rule
from .lines import flags as text
from .serving import apart, filled_by_itself, joint, numbers, sixteen_bits
from .sheet import ExportRequest, Option, Sheet

__all__ = ["CACHES", "OPTIONS", "RULES", "sheet", "start", "text"]

ARGUMENTS: Final = (
    "https://github.com/vllm-project/vllm/blob/4e75851159ca60f9478b96d53aa95f408fa50136/vllm/engine/arg_utils.py"
)
"""The engine arguments of vLLM at the commit that the names were read in."""
PARALLEL: Final = (
    "https://github.com/vllm-project/vllm/blob/840e7972c6ab74061696e81e17d8a74db2aefd7e/vllm/config/parallel.py"
)
"""What the values of some of them are."""

OPTIONS: Final[dict[str, Option]] = {
    "--tensor-parallel-size": Option(int, ARGUMENTS),
    "--pipeline-parallel-size": Option(int, ARGUMENTS),
    "--data-parallel-size": Option(int, ARGUMENTS),
    "--enable-expert-parallel": Option(bool, ARGUMENTS),
    "--dtype": Option(str, ARGUMENTS, ("auto", "half", "float16", "bfloat16", "float", "float32")),
    "--quantization": Option(str, ARGUMENTS, ("fp8",)),
    "--kv-cache-dtype": Option(str, ARGUMENTS, ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2")),
    "--gpu-memory-utilization": Option(float, ARGUMENTS),
    "--max-num-seqs": Option(int, ARGUMENTS),
    "--max-num-batched-tokens": Option(int, ARGUMENTS),
    "--max-model-len": Option(int, ARGUMENTS),
    "--kv-transfer-config": Option(str, ARGUMENTS),
    "--prefill-context-parallel-size": Option(int, ARGUMENTS),
    "--decode-context-parallel-size": Option(int, ARGUMENTS),
    "--enable-eplb": Option(bool, ARGUMENTS),
    "--eplb-config": Option(str, PARALLEL),
    "--all2all-backend": Option(
        str, PARALLEL, ("allgather_reducescatter", "deepep_high_throughput", "deepep_low_latency")
    ),
}
TYPES: Final = {"bf16": "bfloat16", "fp16": "float16"}
CACHES: Final = {"bf16": "auto", "fp16": "auto", "fp8": "fp8"}
"""What it calls formats of the cache; it has no other."""
RULES: Final = (
    Rule(
        "vllm_deals_experts_over_a_whole_server",
        "ep == 1 or ep == tp or ep == tp * dp",
        "ep: found {ep}, expected 1, tp = {tp}, or tp x dp = {tp} x {dp}: vLLM deals experts over a whole server",
    ),
)
"""What a plan must satisfy beside the rules of all plans, so that it runs it."""
ROLES: Final = {"prefill": "kv_producer", "decode": "kv_consumer"}


def start(model: str) -> list[str]:
    """The command that the options follow."""
    return ["vllm", "serve", model]


def sheet(asked: ExportRequest) -> Sheet:
    """The settings."""
    made, plan = Sheet("vllm", OPTIONS), asked.plan
    made.put("--tensor-parallel-size", plan.tp, "tp")
    made.put("--pipeline-parallel-size", plan.pp, "pp")
    if apart(asked):
        made.note("dp", f"start {plan.dp} such servers; in one, its replicas would divide the experts")
    else:
        made.put("--data-parallel-size", plan.dp, "dp")
    _experts(made, asked)
    numbers(made, asked, TYPES, "vLLM")
    _served(made, asked)
    if asked.batch is not None:
        made.put("--max-num-seqs", asked.batch // plan.dp)
    if asked.sequence is not None:
        made.put("--max-model-len", asked.sequence)
    filled_by_itself(made, asked, "vLLM", "a paged kernel")
    return made


def _experts(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.ep > 1:
        made.put("--enable-expert-parallel", True, "ep")
        over = plan.tp if apart(asked) else plan.tp * plan.dp
        if plan.ep != over:
            made.note("ep", f"{plan.ep} in the plan; vLLM deals experts over all tp x dp = {over} devices")
        if plan.effective_expert_tp > 1:
            made.note("expert_tp", f"{plan.effective_expert_tp} within an expert: vLLM deals experts whole")
        made.cover("expert_tp")
    elif plan.effective_expert_tp == plan.tp:
        made.cover("expert_tp")


def _served(made: Sheet, asked: ExportRequest) -> None:
    service, plan = asked.service, asked.plan
    if service is None:
        return
    if plan.cp > 1:
        made.put("--prefill-context-parallel-size", plan.cp, "cp", "cp_kind")
    if plan.dcp > 1:
        made.put("--decode-context-parallel-size", plan.dcp, "dcp")
    if plan.redundant_experts is not None:
        made.put("--enable-eplb", True, "redundant_experts")
        made.put("--eplb-config", json.dumps({"num_redundant_experts": plan.redundant_experts}, separators=(",", ":")))
    if joint(asked):
        made.put("--all2all-backend", _exchange(plan.expert_exchange, service.role), "expert_exchange", "expert_tp")
    if not sixteen_bits(made, service, CACHES, "vLLM"):
        made.put("--kv-cache-dtype", CACHES[str(service.kv_precision)])
    made.put("--max-model-len", service.length)
    if service.utilization is not None:
        made.put("--gpu-memory-utilization", service.utilization)
    made.put("--max-num-seqs", service.running)
    made.put("--max-num-batched-tokens", service.budget)
    if service.role is not None:
        transfer = {"kv_connector": "NixlConnector", "kv_role": ROLES[service.role]}
        made.put("--kv-transfer-config", json.dumps(transfer, separators=(",", ":")))


def _exchange(kind: str, role: str | None) -> str:
    if kind == "gather":
        return "allgather_reducescatter"
    return "deepep_high_throughput" if role == "prefill" else "deepep_low_latency"

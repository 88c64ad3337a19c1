"""Plans as flags of SGLang's server."""

from __future__ import annotations

from typing import Final

from ..plans.rule import Rule
from .lines import flags as text
from .serving import apart, filled_by_itself, joint, numbers, sixteen_bits
from .sheet import ExportRequest, Option, Sheet

__all__ = ["CACHES", "OPTIONS", "RULES", "sheet", "start", "text"]

FIELDS: Final = "https://github.com/sgl-project/sglang/blob/{}/python/sglang/srt/arg_groups/fields/{}.py"
PARALLEL: Final = FIELDS.format("00ac7105db02776e90962fc6bb311d20dffe87ae", "parallel")
SCHEDULE: Final = FIELDS.format("001b88623b1def14a6970a26626d17c7ee874e91", "schedule")
EXECUTION: Final = FIELDS.format("01d795f8aa711691052ae277055a67f23a123b0b", "exec_")
MODEL: Final = FIELDS.format("0116c6066d6ead4b97c0468f65e04cad47ca021e", "model")
DISAGGREGATED: Final = FIELDS.format("07a7b67cd1f3144f78f81d789f72408a77ea7455", "disagg")
"""The server arguments of SGLang at the commits that the names were read in."""

OPTIONS: Final[dict[str, Option]] = {
    "--tp-size": Option(int, PARALLEL),
    "--pp-size": Option(int, PARALLEL),
    "--dp-size": Option(int, PARALLEL),
    "--ep-size": Option(int, PARALLEL),
    "--dcp-size": Option(int, PARALLEL),
    "--moe-a2a-backend": Option(str, EXECUTION, ("none", "deepep")),
    "--ep-num-redundant-experts": Option(int, EXECUTION),
    "--enable-dp-attention": Option(bool, PARALLEL),
    "--enable-dp-lm-head": Option(bool, PARALLEL),
    "--moe-dense-tp-size": Option(int, PARALLEL),
    "--dtype": Option(str, MODEL, ("auto", "half", "float16", "bfloat16", "float", "float32")),
    "--quantization": Option(str, MODEL, ("fp8",)),
    "--kv-cache-dtype": Option(str, MODEL, ("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16")),
    "--context-length": Option(int, MODEL),
    "--mem-fraction-static": Option(float, SCHEDULE),
    "--max-running-requests": Option(int, SCHEDULE),
    "--chunked-prefill-size": Option(int, SCHEDULE),
    "--enable-mixed-chunk": Option(bool, SCHEDULE),
    "--disaggregation-mode": Option(str, DISAGGREGATED, ("null", "prefill", "decode")),
}
TYPES: Final = {"bf16": "bfloat16", "fp16": "float16"}
CACHES: Final = {"bf16": "auto", "fp16": "auto", "fp8": "fp8_e4m3"}
"""What it calls formats of the cache that are modelled."""
RULES: Final = (
    Rule(
        "sglang_deals_experts_over_a_replica_or_all",
        "ep == 1 or ep == tp or ep == tp * dp",
        "ep: found {ep}, expected 1, tp = {tp}, or tp x dp = {tp} x {dp}: SGLang deals experts over its tensor-"
        "parallel devices, which data-parallel attention divides",
    ),
)
"""What a plan must satisfy beside the rules of all plans, so that it runs it."""


def start(model: str) -> list[str]:
    """The command that the options follow."""
    return ["python3", "-m", "sglang.launch_server", "--model-path", model]


def sheet(asked: ExportRequest) -> Sheet:
    """The settings."""
    made, plan = Sheet("sglang", OPTIONS), asked.plan
    over = plan.dp if joint(asked) else 1
    made.put("--tp-size", plan.tp * over, "tp")
    made.put("--pp-size", plan.pp, "pp")
    if apart(asked):
        made.note("dp", f"start {plan.dp} such servers behind a router")
    elif plan.dp > 1:
        made.put("--dp-size", plan.dp, "dp")
    _experts(made, asked)
    numbers(made, asked, TYPES, "SGLang")
    _served(made, asked, over)
    if asked.batch is not None:
        made.put("--max-running-requests", asked.batch // plan.dp * over)
    if asked.sequence is not None:
        made.put("--context-length", asked.sequence)
    filled_by_itself(made, asked, "SGLang", "a backend")
    return made


def _experts(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.ep > 1:
        made.put("--ep-size", plan.ep, "ep")
        if plan.ep not in (plan.tp, plan.tp * plan.dp):
            made.note("ep", f"{plan.ep} in the plan; SGLang splits each expert over the other tensor-parallel devices")
        if plan.effective_expert_tp > 1:
            made.note("expert_tp", f"{plan.effective_expert_tp} within an expert, which the plan deals whole")
        made.cover("expert_tp")
    elif plan.effective_expert_tp == plan.tp:
        made.cover("expert_tp")
    if joint(asked):
        made.put("--moe-a2a-backend", "none" if plan.expert_exchange == "gather" else "deepep", "expert_exchange")
        made.cover("expert_tp")
        made.put("--enable-dp-attention", True)
        made.put("--enable-dp-lm-head", True)
        if plan.tp == 1:
            made.put("--moe-dense-tp-size", 1)
        else:
            made.note("tp", f"{plan.tp} in the plan; SGLang splits dense layers over all {plan.tp * plan.dp} devices")


def _served(made: Sheet, asked: ExportRequest, over: int) -> None:
    """Limits are those of all replicas that share attention, among which SGLang divides them."""
    service, plan = asked.service, asked.plan
    if service is None:
        return
    if plan.dcp > 1:
        made.put("--dcp-size", plan.dcp, "dcp")
    if plan.redundant_experts is not None:
        made.put("--ep-num-redundant-experts", plan.redundant_experts, "redundant_experts")
    if not sixteen_bits(made, service, CACHES, "SGLang"):
        made.put("--kv-cache-dtype", CACHES[str(service.kv_precision)])
    made.put("--context-length", service.length)
    if service.utilization is not None:
        made.put("--mem-fraction-static", service.utilization)
    made.put("--max-running-requests", service.sequences * over)
    if service.role != "decode":
        made.put("--chunked-prefill-size", service.chunk * over)
    if service.role is None:
        made.put("--enable-mixed-chunk", True)
    else:
        made.put("--disaggregation-mode", service.role)

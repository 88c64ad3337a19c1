"""Plans as flags of `vllm serve`."""

from __future__ import annotations

from typing import Final

from .lines import flags as text
from .serving import replica_by_replica, training_only, whole_context
from .sheet import ExportRequest, Option, Sheet

__all__ = ["OPTIONS", "sheet", "text"]

ARGUMENTS: Final = (
    "https://github.com/vllm-project/vllm/blob/99d7eb5d6a512cfcc5a2b104f24ebf2d6cda772b/vllm/engine/arg_utils.py"
)
"""The engine arguments of vLLM at the commit that the names were read in."""

OPTIONS: Final[dict[str, Option]] = {
    "--tensor-parallel-size": Option(int, ARGUMENTS),
    "--pipeline-parallel-size": Option(int, ARGUMENTS),
    "--data-parallel-size": Option(int, ARGUMENTS),
    "--enable-expert-parallel": Option(bool, ARGUMENTS),
    "--dtype": Option(str, ARGUMENTS, ("auto", "half", "float16", "bfloat16", "float", "float32")),
    "--quantization": Option(str, ARGUMENTS, ("fp8",)),
    "--max-num-seqs": Option(int, ARGUMENTS),
    "--max-model-len": Option(int, ARGUMENTS),
}
TYPES: Final = {"bf16": "bfloat16", "fp16": "float16"}


def sheet(asked: ExportRequest) -> Sheet:
    """The settings."""
    made, plan = Sheet("vllm", OPTIONS), asked.plan
    made.put("--tensor-parallel-size", plan.tp, "tp")
    made.put("--pipeline-parallel-size", plan.pp, "pp")
    made.put("--data-parallel-size", plan.dp, "dp")
    _experts(made, asked)
    _numbers(made, asked)
    if asked.batch is not None:
        made.put("--max-num-seqs", asked.batch // plan.dp)
    if asked.sequence is not None:
        made.put("--max-model-len", asked.sequence)
    if plan.micro_batch is not None:
        made.note("micro_batch", f"{plan.micro_batch} in the plan; vLLM fills its pipeline itself")
    if plan.attention is not None:
        made.note("attention", f"{plan.attention} in the plan; vLLM chooses a paged kernel")
    replica_by_replica(made, asked, "vLLM")
    whole_context(made, asked)
    training_only(made, asked)
    return made


def _experts(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.ep > 1:
        made.put("--enable-expert-parallel", True, "ep")
        if plan.ep != plan.tp * plan.dp:
            made.note("ep", f"{plan.ep} in the plan; vLLM deals experts over all tp x dp = {plan.tp * plan.dp} devices")
        if plan.effective_expert_tp > 1:
            made.note("expert_tp", f"{plan.effective_expert_tp} within an expert: vLLM deals experts whole")
        made.cover("expert_tp")
    elif plan.effective_expert_tp == plan.tp:
        made.cover("expert_tp")


def _numbers(made: Sheet, asked: ExportRequest) -> None:
    precision = asked.precision
    if precision is None:
        made.note("precision", "left open by the plan; vLLM takes the checkpoint's")
    elif precision in TYPES:
        made.put("--dtype", TYPES[precision], "precision")
    elif precision == "fp8":
        made.put("--quantization", "fp8", "precision")
    else:
        made.note("precision", f"{precision} is what a quantized checkpoint says; vLLM reads its configuration")

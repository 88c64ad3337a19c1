"""Plans as flags of `trtllm-serve`."""

from __future__ import annotations

from typing import Final

from .lines import flags as text
from .serving import replica_by_replica, training_only, whole_context
from .sheet import ExportRequest, Option, Sheet

__all__ = ["OPTIONS", "sheet", "text"]

SERVE: Final = "https://github.com/NVIDIA/TensorRT-LLM/blob/00209af149e7774406881a37283dce303571eb11/tensorrt_llm/commands/serve.py"
"""The command line of trtllm-serve at the commit that the names were read in."""

OPTIONS: Final[dict[str, Option]] = {
    "--tp_size": Option(int, SERVE),
    "--pp_size": Option(int, SERVE),
    "--ep_size": Option(int, SERVE),
    "--max_batch_size": Option(int, SERVE),
    "--max_seq_len": Option(int, SERVE),
}


def sheet(asked: ExportRequest) -> Sheet:
    """The settings."""
    made, plan = Sheet("trtllm", OPTIONS), asked.plan
    made.put("--tp_size", plan.tp, "tp")
    made.put("--pp_size", plan.pp, "pp")
    if plan.dp > 1:
        made.note("dp", f"start {plan.dp} servers, each on {plan.devices // plan.dp} devices; one has a single replica")
    _experts(made, asked)
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


def _experts(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.ep > 1 and plan.tp % plan.ep == 0:
        made.put("--ep_size", plan.ep, "ep")
        if plan.effective_expert_tp != plan.tp // plan.ep:
            made.note(
                "expert_tp",
                f"{plan.effective_expert_tp} in the plan; TensorRT-LLM splits each expert over the tp / ep = "
                f"{plan.tp // plan.ep} devices left",
            )
        made.cover("expert_tp")
    elif plan.ep > 1:
        made.note("ep", f"{plan.ep} in the plan; TensorRT-LLM deals experts within tp = {plan.tp} devices")
        made.cover("expert_tp")
    elif plan.effective_expert_tp == plan.tp:
        made.cover("expert_tp")

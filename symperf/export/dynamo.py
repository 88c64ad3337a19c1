"""Plans as a deployment of Dynamo: a frontend and workers of vLLM, SGLang or TensorRT-LLM, each with its replicas."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from . import sglang, trtllm, vllm
from .lines import arguments, nest_tables, yaml
from .serving import joint
from .sheet import ExportRequest, Option, Sheet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from ..plans.plan import Plan

SITE: Final = "https://github.com/ai-dynamo/dynamo/blob/"
VLLM: Final = f"{SITE}d195d280e13e5532510a1004ad8d8d06f2f8266a/components/src/dynamo/vllm/backend_args.py"
SGLANG: Final = f"{SITE}2ac51ddab1f8ec3715dc4e91b18b4dfbdbd9886f/examples/backends/sglang/deploy/v1beta1/disagg.yaml"
TRTLLM: Final = f"{SITE}0a6a115c6cd15ae95647e90c55be2ea06b36e66f/components/src/dynamo/trtllm/backend_args.py"
"""What documents the options of its workers."""
DEPLOYMENT: Final = f"{SITE}14a3b0d9132c9194daefae989364777c191ee559/examples/backends/vllm/deploy/v1beta1/disagg.yaml"
NODES: Final = (
    f"{SITE}04521f473b68375705a553f4082fac8254d71a2f/examples/backends/vllm/deploy/v1beta1/disagg-multinode.yaml"
)
"""What documents the keys of a deployment."""

OPTIONS: Final[dict[str, Option]] = {
    "vllm --disaggregation-mode": Option(str, VLLM, ("prefill", "decode")),
    "sglang --disaggregation-transfer-backend": Option(str, SGLANG, ("nixl",)),
    "trtllm --tensor-parallel-size": Option(int, TRTLLM),
    "trtllm --pipeline-parallel-size": Option(int, TRTLLM),
    "trtllm --expert-parallel-size": Option(int, TRTLLM),
    "trtllm --enable-attention-dp": Option(bool, TRTLLM),
    "trtllm --free-gpu-memory-fraction": Option(float, TRTLLM),
    "trtllm --max-batch-size": Option(int, TRTLLM),
    "trtllm --max-num-tokens": Option(int, TRTLLM),
    "trtllm --max-seq-len": Option(int, TRTLLM),
    "trtllm --override-engine-args": Option(str, TRTLLM),
    "trtllm --disaggregation-mode": Option(str, TRTLLM, ("prefill", "decode")),
    "replicas": Option(int, DEPLOYMENT),
    "type": Option(str, DEPLOYMENT, ("frontend", "worker", "prefill", "decode")),
    "nvidia.com/gpu": Option(str, DEPLOYMENT),
    "nodeCount": Option(int, NODES),
}
"""Its own options, behind the name of the worker; those of vLLM and SGLang are the servers' (`vllm`, `sglang`)."""
WORKERS: Final[Mapping[str, ModuleType]] = {"vllm": vllm, "sglang": sglang, "trtllm": trtllm}
MODELS: Final = {"vllm": "--model", "sglang": "--model-path", "trtllm": "--model"}
IMAGES: Final = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrtllm"}
RENAMED: Final = {
    "--tp_size": "--tensor-parallel-size",
    "--pp_size": "--pipeline-parallel-size",
    "--ep_size": "--expert-parallel-size",
    "enable_attention_dp": "--enable-attention-dp",
    "--max_batch_size": "--max-batch-size",
    "--free_gpu_memory_fraction": "--free-gpu-memory-fraction",
    "--max_num_tokens": "--max-num-tokens",
    "--max_seq_len": "--max-seq-len",
}
"""Options of trtllm-serve as Dynamo's worker calls them."""
ENGINE: Final = {"--enable_chunked_prefill": "enable_chunked_prefill"}


def worker(asked: ExportRequest, backend: str) -> Sheet:
    """The settings of a worker; replicas that share nothing are workers of their own."""
    one = asked if joint(asked) else replace(asked, plan=replace(asked.plan, dp=1))
    made: Sheet = WORKERS[backend].sheet(one).finish(one.plan)
    role = asked.service.role if asked.service is not None else None
    if backend == "trtllm":
        _translate(made)
    if role is not None and backend == "sglang":
        made.settings["--disaggregation-transfer-backend"] = "nixl"
    elif role is not None:
        made.settings["--disaggregation-mode"] = role
    if role is not None and backend == "vllm":
        made.settings["--kv-transfer-config"] = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"})
    return made


def _translate(made: Sheet) -> None:
    """Flags and keys of trtllm-serve as those of Dynamo's worker; what it has none for is said to the engine."""
    given, engine = dict(made.settings), dict[str, Any]()
    made.settings.clear()
    for name, value in given.items():
        if name in RENAMED:
            made.settings[RENAMED[name]] = value
        elif name != "--config":
            engine[ENGINE.get(name, name)] = value
    if engine:
        # The flag takes a dictionary as Python writes it.
        made.settings["--override-engine-args"] = repr(nest_tables(engine))


def source(backend: str, name: str) -> str:
    """The address that documents an option of a worker."""
    own = OPTIONS.get(f"{backend} {name}") or OPTIONS.get(name)
    found: Option = own or WORKERS[backend].OPTIONS[name]
    return found.source


def deployment(parts: Sequence[tuple[ExportRequest, Sheet]], backend: str, node: int) -> str:
    """A `DynamoGraphDeployment`: the frontend, and workers of each role.

    Args:
        parts: what each kind of worker runs, with its settings.
        backend: what the workers are.
        node: devices of a node.
    """
    image = f"nvcr.io/nvidia/ai-dynamo/{IMAGES[backend]}-runtime:1.3.1"
    components = [_component("Frontend", "frontend", 1, {"image": image, "name": "main"})]
    for asked, made in parts:
        service = asked.service
        assert service is not None
        devices = _devices(asked.plan, shared=joint(asked))
        nodes = math.ceil(devices / node)
        words = [MODELS[backend], service.model, *arguments(made.settings)]
        container = {
            "args": words,
            "command": ["python3", "-m", f"dynamo.{backend}"],
            "envFrom": [{"secretRef": {"name": "hf-token-secret"}}],
            "image": image,
            "name": "main",
            "resources": {"limits": {"nvidia.com/gpu": str(devices // nodes)}},
        }
        replicas = asked.plan.devices // devices
        role = service.role
        component = _component(role or backend, role or "worker", replicas, container)
        components.append(({"multinode": {"nodeCount": nodes}} if nodes > 1 else {}) | component)
    service = parts[0][0].service
    assert service is not None
    label = "".join(each if each.isalnum() else "-" for each in service.model.rpartition("/")[2].lower()).strip("-")
    return yaml(
        {
            "apiVersion": "nvidia.com/v1beta1",
            "kind": "DynamoGraphDeployment",
            "metadata": {"name": label},
            "spec": {"components": components},
        }
    )


def _devices(plan: Plan, *, shared: bool) -> int:
    """Of a worker."""
    return plan.devices if shared else plan.devices // plan.dp


def _component(name: str, kind: str, replicas: int, container: dict[str, Any]) -> dict[str, Any]:
    pod = {"spec": {"containers": [container]}}
    return {"name": name, "podTemplate": pod, "replicas": replicas, "type": kind}

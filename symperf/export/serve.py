"""Plans for inference as commands of servers, or as a deployment: one server, or one for each half of a request."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from . import dynamo
from .emit import FRAMEWORKS, Emission
from .lines import command, yaml
from .serving import apart, joint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..plans.rule import Rule
    from .sheet import ExportRequest, Sheet

SERVERS: Final = ("vllm", "sglang", "trtllm", "dynamo")
"""Frameworks that serve."""
STACKS: Final = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
"""What the names of their profiles begin with."""
NEWEST: Final = {"vllm": "vllm-0.24", "sglang": "sglang-0.5", "trtllm": "tensorrt-llm-1.3", "dynamo": "vllm-0.24"}
"""The profile of each that is meant where none is named."""
PORT: Final = 8000
PROXY: Final = {
    "vllm": "requests go through a proxy that has a prefill server run each prompt first",
    "sglang": "requests go through a router that sends each to a prefill server and a decode server",
}


def check_server(name: str) -> str:
    """The name of a framework that serves.

    Raises:
        InputError: one that trains, or an unknown one, with the nearest.
    """
    if name in FRAMEWORKS and name not in SERVERS:
        raise InputError(f"--emit: found {name}, which trains, expected {' or '.join(SERVERS)} with --prompt")
    if name not in SERVERS:
        raise InputError(f"--emit: found {quote(name)}, expected {' or '.join(SERVERS)}{nearest(name, SERVERS)}")
    return name


def backend_of(framework: str, stack: str) -> str:
    """What runs the model: the framework, or of Dynamo the workers that a profile stands for.

    Raises:
        InputError: the profile is of another software, so that its numbers would be, too.
    """
    found = next((name for name, begin in STACKS.items() if stack.startswith(begin)), None)
    if framework == "dynamo" and found is not None:
        return found
    if found != framework:
        expected = " or ".join(STACKS.values()) if framework == "dynamo" else STACKS[framework]
        raise InputError(f"--stack: found {stack} with --emit {framework}, expected a profile of {expected}")
    return framework


def limits_of(backend: str) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """What a server runs: rules that a plan must satisfy, and formats of the cache."""
    module = importlib.import_module(f".{FRAMEWORKS[backend]}", __package__)
    return module.RULES, tuple(module.CACHES)


def emit_service(framework: str, backend: str, parts: Sequence[ExportRequest], node: int = 8) -> Emission:
    """Plans as the commands that serve them.

    Args:
        framework: one of `SERVERS`.
        backend: what runs the model; of Dynamo its workers.
        parts: what a server runs; of two, one that prefills and one that decodes, each with its `Service`.
        node: devices of a node.
    """
    if framework == "dynamo":
        made = [(asked, dynamo.worker(asked, backend)) for asked in parts]
        sources = {name: dynamo.source(backend, name) for _, sheet in made for name in sheet.settings}
        sources |= {name: dynamo.OPTIONS[name].source for name in ("replicas", "type", "nvidia.com/gpu")}
        body = dynamo.deployment(made, backend, node)
        return _emission(framework, made, _comments(made) + body, sources)
    module = importlib.import_module(f".{FRAMEWORKS[framework]}", __package__)
    made = [(asked, module.sheet(asked).finish(asked.plan)) for asked in parts]
    sources = {name: module.OPTIONS[name].source for _, sheet in made for name in sheet.settings}
    text = ""
    for asked, sheet in made:
        service = asked.service
        assert service is not None
        if service.role is not None and framework != "trtllm":
            sheet.note("disaggregation", PROXY[framework])
        role = "" if service.role is None else f"# {service.role}\n"
        text += f"{role}{_comments([(asked, sheet)])}{command(module.start(service.model), sheet)}"
    if framework == "trtllm" and len(parts) > 1:
        text += _router(parts)
    return _emission(framework, made, text, sources)


def _emission(
    framework: str, made: Sequence[tuple[ExportRequest, Sheet]], text: str, sources: Mapping[str, str]
) -> Emission:
    settings: dict[str, Any] = {}
    for asked, sheet in made:
        role = None if asked.service is None else asked.service.role
        settings |= dict(sheet.settings) if role is None else {role: dict(sheet.settings)}
    notes = tuple(dict.fromkeys(note for _, sheet in made for note in sheet.notes))
    return Emission(framework, text, settings, notes, dict(sources))


def _comments(made: Sequence[tuple[ExportRequest, Sheet]]) -> str:
    notes = dict.fromkeys(note for _, sheet in made for note in sheet.notes)
    return "".join(f"# {name}: {text}\n" for name, text in notes)


def _router(parts: Sequence[ExportRequest]) -> str:
    """The file and the command of TensorRT-LLM's server in front of both kinds; each of its servers has a port."""
    servers: dict[str, Any] = {"hostname": "localhost", "port": PORT, "backend": "pytorch"}
    port = PORT
    for name, asked in zip(("context_servers", "generation_servers"), parts, strict=True):
        count = 1 if joint(asked) and not apart(asked) else asked.plan.dp
        ports = range(port + 1, port + 1 + count)
        port += count
        servers[name] = {"num_instances": count, "urls": [f"localhost:{each}" for each in ports]}
    told = "# a server in front of them; start each of the others with its --host and --port\n"
    file = f"cat > disaggregated.yaml <<'END'\n{yaml(servers)}END\n"
    return f"{told}{file}trtllm-serve disaggregated -c disaggregated.yaml\n"

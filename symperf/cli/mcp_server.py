"""The server that assistants speak to: the official SDK over standard input and output, and a process for each call."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

from ..common.errors import InputError
from ..common.extras import import_extra
from ..common.version import VERSION
from ..installation.packages import is_within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .mcp_tools import Tool

SDK = ">=2.3,<3"
"""Versions of the SDK whose handlers these are."""
APART: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
"""How a call is started: as the first of a group, which ends with it."""
PROGRAM = (sys.executable, "-P", "-m", "symperf")
"""What a call runs; -P: no module of the folder that it works in is imported."""
INSTRUCTIONS = """\
Closed-form predictions of the time, memory and bottlenecks of training, inference and serving of large language models.
Times are in seconds, sizes in bytes, rates per second, shares and errors fractions. Models and systems are names of the
catalogue (tool `list`) or paths. An error says where, what was found and what was expected."""


class Told(NamedTuple):
    """What a call is answered with.

    Attributes:
        data: the JSON object of the verb; None where it gave none.
        lines: what it said beside, or why it gave none.
    """

    data: dict[str, Any] | None
    lines: str


async def answer(tool: Tool, values: Mapping[str, Any], seconds: float) -> Told:
    """The answer of a tool, in a process of its own that ends with the call, or after so many seconds."""
    try:
        command = tool.command(values)
    except InputError as error:
        return Told(None, str(error))
    none, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*PROGRAM, *command, stdin=none, stdout=pipe, stderr=pipe, **APART)
    try:
        out, err = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        return Told(None, f"{tool.name}: no answer within {seconds:g} s; symperf mcp --seconds N allows more")
    finally:
        if process.returncode is None:
            _kill(process)
            await process.wait()
    try:
        data = json.loads(out)
    except ValueError:
        data = None
    lines = err.decode(errors="replace").strip()
    if not isinstance(data, dict):
        return Told(None, lines or f"{tool.name}: exit status {process.returncode} without an answer")
    return Told(data, lines)


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a call and all that it started: what compiles for it, or computes."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def server(tools: Mapping[str, Tool], seconds: float) -> Any:
    """The server with its tools.

    Raises:
        InputError: the SDK is not installed, or another version of it.
    """
    low = import_extra("mcp.server.lowlevel", "mcp", "mcp")
    types = import_extra("mcp.types", "mcp", "mcp")
    if not is_within(version := metadata.version("mcp"), SDK):
        raise InputError(f"mcp: found version {version} of mcp, expected {SDK}: pip install --upgrade 'symperf[mcp]'")

    async def list_tools(context: Any, params: Any) -> Any:  # noqa: ARG001
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.about,
                    input_schema=tool.input_schema(),
                    annotations=types.ToolAnnotations(read_only_hint=not tool.writes, open_world_hint=False),
                )
                for tool in tools.values()
            ]
        )

    async def call_tool(context: Any, params: Any) -> Any:  # noqa: ARG001
        if params.name not in tools:
            told = Told(None, f"unknown tool {params.name!r}, expected {' or '.join(tools)}")
        else:
            told = await answer(tools[params.name], params.arguments or {}, seconds)
        texts = [json.dumps(told.data)] if told.data is not None else []
        texts += [told.lines] if told.lines else []
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text) for text in texts],
            structured_content=told.data,
            is_error=told.data is None,
        )

    handlers = {"on_list_tools": list_tools, "on_call_tool": call_tool}
    return low.Server("symperf", version=VERSION, instructions=INSTRUCTIONS, **handlers)


def serve(tools: Mapping[str, Tool], seconds: float) -> None:
    """Answer on standard input and output until the other side closes them.

    Raises:
        InputError: the SDK is not installed, or another version of it.
    """
    made = server(tools, seconds)
    stdio = import_extra("mcp.server.stdio", "mcp", "mcp")

    async def run() -> None:
        async with stdio.stdio_server() as (read, write):
            await made.run(read, write, made.create_initialization_options())

    asyncio.run(run())

"""The verbs as tools of assistants: what they take, what a call runs, what may not be done; a session of the SDK."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
import time
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from symperf.cli import mcp_server
from symperf.cli.mcp_tools import LEFT_OUT, READS, WRITES, tools
from symperf.cli.mcp_tools import writes as may_write
from symperf.cli.parser import build, parse
from symperf.common.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

VERBS = build()[1]
EVERY = tools(write=True)
FILES = ("FILE", "FOLDER", "OUT", "NEW.toml")
"""What stands for a file in the help of a flag."""
INSPECT = {"model": "llama-2-7b", "sequence": 128}


def values_of_line(tool: Any, line: list[str]) -> dict[str, Any]:
    """The arguments of a tool that a command line gives."""
    options = parse(line)
    named = {}
    for action in VERBS[tool.name]._actions:
        long = next((flag for flag in action.option_strings if flag.startswith("--")), f"--{action.dest}")
        name = long[2:].replace("-", "_")
        if name in {each.name for each in tool.arguments} and (
            action.dest in options.given or not action.option_strings
        ):
            named[name] = getattr(options, action.dest)
    return named


@pytest.mark.parametrize("verb", sorted(set(EVERY) - {"cite"}))
def test_a_call_is_the_command_line_of_its_values(verb: str) -> None:
    """Of the example of its help: through JSON and back to a command line."""
    example = (VERBS[verb].epilog or "").rpartition("Example: symperf ")[2]
    tool = EVERY[verb]
    values = json.loads(json.dumps(values_of_line(tool, shlex.split(example))))
    again = parse(tool.command(values))
    assert again.json
    told, wanted = ({**vars(each), "json": 1, "given": 1, "run": 1} for each in (again, parse(shlex.split(example))))
    assert told == wanted


def test_every_option_that_names_a_file_is_known_to_read_or_to_write() -> None:
    """A new flag that writes cannot come among the arguments unseen."""
    for verb, parser in VERBS.items():
        for action in parser._actions:
            if action.metavar in FILES and action.option_strings and action.nargs != 0:
                assert (action.dest in WRITES) != (action.dest in READS), (verb, action.dest)
            if re.match("(write|draw)( |$)", action.help or "") and action.dest != "write":
                assert may_write(action), (verb, action.dest)


def test_nothing_is_written_unless_that_is_asked_for() -> None:
    served = tools()
    assert set(VERBS) - set(served) == {*LEFT_OUT, "explore", "sweep", "calibrate"}
    assert set(EVERY) - set(served) == {"explore", "sweep", "calibrate"}
    for tool in served.values():
        assert not tool.writes
        assert not {"output", "plot", "pdf", "timeline", "trace", "markdown", "dask", "json"} & {
            each.name for each in tool.arguments if tool.name != "serve"
        }
    assert "timeline" not in served["serve"].input_schema()["properties"]
    assert "trace" in served["serve"].input_schema()["properties"], "of requests, which is read"
    assert "csv" not in served["validate"].input_schema()["properties"]
    for tool in EVERY.values():
        assert not {"dask", "dask_tls"} & set(tool.input_schema()["properties"])


def test_what_a_tool_takes() -> None:
    schema = tools()["train"].input_schema()
    kinds = {name: told.get("type") for name, told in schema["properties"].items()}
    assert kinds["batch"] == "integer"
    assert kinds["overlap_dp"] == "number"
    assert kinds["sequence_parallel"] == "boolean"
    assert kinds["set"] == "array"
    assert schema["properties"]["zero"]["enum"] == [0, 1, 2, 3]
    assert "none" in schema["properties"]["recompute"]["enum"]
    assert "enum" not in schema["properties"]["system"], "it may be a path"
    derive = tools()["derive"].input_schema()
    assert derive["properties"]["what"]["enum"] == ["train", "infer", "serve"]
    assert {"what", "model", "system"} == set(derive["required"])


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("inspect", {"modle": "gpt2"}, "inspect: unknown argument 'modle'; did you mean model?"),
        ("inspect", {"model": "--check"}, "model: found '--check', expected a name or a path"),
        ("inspect", {"model": True}, "model: found true, expected"),
        ("inspect", {"model": {"a": 1}}, "model: found {'a': 1}, expected text or a number"),
        ("inspect", {"model": "gpt2", "check": "yes"}, "check: found 'yes', expected true or false"),
        ("inspect", {"model": "gpt2", "batch": [1]}, "batch: found [1], expected text or a number"),
    ],
)
def test_what_is_no_command_line_is_refused(name: str, values: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as refusal:
        tools()[name].command(values)
    assert words in str(refusal.value)


def test_a_value_is_never_a_flag() -> None:
    """However it begins: it stands behind the equals sign of its own."""
    command = tools()["train"].command(
        {"model": "gpt2", "system": "--json", "set": ["tp=2", "--pp=2"], "dropout": False}
    )
    assert command == ["train", "--json", "--system=--json", "--no-dropout", "--set=tp=2", "--set=--pp=2", "gpt2"]


def test_all_values_of_a_list_arrive() -> None:
    """Whether a flag takes several words at once or comes again."""
    for tool in EVERY.values():
        for each in tool.arguments:
            if each.flag and each.schema["type"] == "array":
                needed = {one.name: "1" for one in tool.arguments if one.required}
                found = parse(tool.command(needed | {each.name: ["x=1", "y=2"]}))
                assert list(getattr(found, each.flag[2:].replace("-", "_"))) == ["x=1", "y=2"], (tool.name, each.name)


def test_verbs_that_are_wanted(call: Callable[[list[str]], Any], refused: Callable[[list[str]], str]) -> None:
    data = json.loads(call(["mcp", "--json", "--verbs", "train, inspect"]).out)
    assert [tool["name"] for tool in data["tools"]] == ["train", "inspect"]
    assert "did you mean train?" in refused(["mcp", "--verbs", "trian"])
    assert "found 'sweep'" in refused(["mcp", "--verbs", "sweep"])
    assert "which --write allows" in refused(["mcp", "--verbs", "sweep"])
    assert "found 'measure'" in refused(["mcp", "--write", "--verbs", "measure"])
    assert "--seconds: found 0" in refused(["mcp", "--seconds", "0"])


def test_without_the_sdk_it_is_refused(refused: Callable[[list[str]], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    assert refused(["mcp"]) == "symperf: mcp: needs mcp, which is not installed: pip install 'symperf[mcp]'\n"


def ask(values: dict[str, Any], seconds: float = 60.0, name: str = "inspect") -> mcp_server.Told:
    return asyncio.run(mcp_server.answer(tools()[name], values, seconds))


def test_a_call_answers_as_the_command_line(call: Callable[[list[str]], Any]) -> None:
    told = ask(INSPECT)
    assert told.data == json.loads(call(["inspect", "llama-2-7b", "--sequence", "128", "--json"]).out)
    wrong = ask({"model": "llama-2-7"})
    assert wrong.data is None
    assert wrong.lines.startswith("symperf: ")
    assert "did you mean llama-2-7b" in wrong.lines
    assert ask({"modle": "x"}).lines.startswith("inspect: unknown argument")


def test_a_call_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "PROGRAM", (sys.executable, "-c", "import time; time.sleep(60)"))
    assert "no answer within 0.2 s" in ask(INSPECT, 0.2).lines
    monkeypatch.setattr(mcp_server, "PROGRAM", (sys.executable, "-c", "import sys; sys.exit(3)"))
    assert ask(INSPECT) == (None, "inspect: exit status 3 without an answer")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks the kernel about processes")
def test_what_a_call_started_ends_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler, for instance, which the killed process cannot end."""
    started = tmp_path / "started"
    code = "import pathlib, subprocess, sys; made = subprocess.Popen(['sleep', '60']); "
    code += f"pathlib.Path({str(started)!r}).write_text(str(made.pid)); made.wait()"
    monkeypatch.setattr(mcp_server, "PROGRAM", (sys.executable, "-c", code))
    assert "no answer within 2 s" in ask(INSPECT, 2.0).lines
    end = time.monotonic() + 20
    while is_running(int(started.read_text())) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_running(int(started.read_text()))


def is_running(number: int) -> bool:
    """Whether there is a process of this number that has not ended; one that nobody has asked about has."""
    try:
        status = Path(f"/proc/{number}/status").read_text(encoding="ascii")
    except OSError:
        return False
    return "State:\tZ" not in status


def stand_in(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Modules with the names of the SDK, whose types only keep what they are given."""

    def made(name: str, **kept: Any) -> None:
        module = ModuleType(name)
        vars(module).update(kept)
        monkeypatch.setitem(sys.modules, name, module)

    names = ("Tool", "ToolAnnotations", "ListToolsResult", "CallToolResult", "TextContent")
    made("mcp")
    made("mcp.server")
    made("mcp.types", **dict.fromkeys(names, SimpleNamespace))
    made("mcp.server.lowlevel", Server=lambda name, **kept: SimpleNamespace(name=name, **kept))
    there = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: version if name == "mcp" else there(name))


def test_the_server_by_a_stand_in_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "2.3.0")
    made = mcp_server.server(tools(["inspect", "list"]), 60.0)
    listed = asyncio.run(made.on_list_tools(None, None)).tools
    assert [tool.name for tool in listed] == ["inspect", "list"]
    assert listed[0].annotations.read_only_hint
    assert listed[0].input_schema["required"] == ["model"]

    def called(name: str, arguments: dict[str, Any] | None) -> Any:
        return asyncio.run(made.on_call_tool(None, SimpleNamespace(name=name, arguments=arguments)))

    right = called("inspect", INSPECT)
    assert not right.is_error
    assert json.loads(right.content[0].text) == right.structured_content
    assert right.structured_content["schema"] == "symperf/inspect/1"
    wrong = called("inspect", None)
    assert wrong.is_error
    assert wrong.structured_content is None
    assert "model" in wrong.content[0].text
    assert called("train", {}).content[0].text == "unknown tool 'train', expected inspect or list"


def test_another_version_of_the_sdk_is_refused(
    monkeypatch: pytest.MonkeyPatch, refused: Callable[[list[str]], str]
) -> None:
    stand_in(monkeypatch, "1.9.4")
    assert "found version 1.9.4 of mcp, expected >=2.3,<3" in refused(["mcp"])


def test_a_session_of_the_sdk() -> None:
    """The real client and server, over standard input and output."""
    mcp = pytest.importorskip("mcp")
    command = [*mcp_server.PROGRAM[1:], "mcp", "--verbs", "inspect"]

    async def session() -> tuple[Any, Any, Any]:
        parameters = mcp.StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with mcp.Client(parameters) as client:
            return (
                await client.list_tools(),
                await client.call_tool("inspect", INSPECT),
                await client.call_tool("inspect", {"model": "nothing"}),
            )

    listed, right, wrong = asyncio.run(session())
    assert [tool.name for tool in listed.tools] == ["inspect"]
    assert right.structured_content["parameters"]["total"] == 6738415616
    assert wrong.is_error
    assert "nothing" in wrong.content[0].text

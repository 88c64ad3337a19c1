"""The verbs as tools of assistants: what each takes as JSON Schema, and the command line that a call stands for."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..plans.plan_fields import FIELDS
from .completion_words import line, values_of, words
from .flags import number, numbers, whole
from .parser import build

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .parser import Parser

LEFT_OUT = ("cache", "completion", "mcp", "measure")
"""Verbs that answer no question: of the machine, and one that keeps its GPU busy for minutes."""
WRITES = ("csv", "html", "markdown", "md", "output", "pdf", "plot", "site", "tex", "timeline")
"""Options that write files, by name; a verb that needs one of them is no tool where nothing may be written."""
READS = ("data", "framework_file", "kernels", "lengths", "trace")
"""Options that read files."""
ELSEWHERE = ("dask", "dask_tls")
"""Options that have other machines compute."""
FORMS = ("bars", "c", "fragment", "help", "js", "json", "latex", "python", "unicode", "width")
"""Options of how an answer is printed: a tool answers with JSON."""
TYPES = {whole: "integer", number: "number"}


@dataclass(frozen=True)
class Argument:
    """A property of a tool, and the flag or the place of a command line that it is.

    Attributes:
        name: of the property.
        flag: its long spelling; empty of a place.
        schema: of its value.
        required: whether a call must have it.
        denied: the flag that says no, where there is one.
        valued: whether the flag takes a value.
    """

    name: str
    flag: str
    schema: Mapping[str, Any]
    required: bool
    denied: str = ""
    valued: bool = True

    def words(self, value: Any) -> list[str]:
        """The words of a command line that give it this value.

        Raises:
            InputError: no value that a command line has, or a name that would be taken for a flag.
        """
        if value is None:
            return []
        if isinstance(value, list) and self.schema.get("type") == "array":
            return [word for each in value for word in self.words(_scalar(self.name, each))]
        if isinstance(value, bool):
            if not self.flag or self.schema.get("type") not in ("boolean", ["integer", "boolean"]):
                raise InputError(f"{self.name}: found {json.dumps(value)}, expected {self.schema.get('type')}")
            return [self.flag] if value else [self.denied] if self.denied else []
        text = str(_scalar(self.name, value))
        if not self.valued:
            raise InputError(f"{self.name}: found {quote(value)}, expected true or false")
        if self.flag:
            return [f"{self.flag}={text}"]
        if text.startswith("-"):
            raise InputError(f"{self.name}: found {quote(text)}, expected a name or a path that does not begin with -")
        return [text]


def _scalar(name: str, value: Any) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{name}: found {quote(value)}, expected text or a number")
    return value


@dataclass(frozen=True)
class Tool:
    """A verb as a tool.

    Attributes:
        name: of the verb.
        about: what it does, and an example of its command line.
        arguments: in the order of the parser.
        writes: whether it can write files.
    """

    name: str
    about: str
    arguments: tuple[Argument, ...]
    writes: bool

    def input_schema(self) -> dict[str, Any]:
        """What a call takes, as JSON Schema."""
        return {
            "type": "object",
            "properties": {each.name: dict(each.schema) for each in self.arguments},
            "required": [each.name for each in self.arguments if each.required],
            "additionalProperties": False,
        }

    def to_dict(self) -> dict[str, Any]:
        """As plain data, in the names of the protocol."""
        return {"name": self.name, "description": self.about, "inputSchema": self.input_schema()}

    def command(self, values: Mapping[str, Any]) -> list[str]:
        """The command line of a call, without the program.

        Raises:
            InputError: an argument that the tool has not, or a value that is none of its.
        """
        known = {each.name: each for each in self.arguments}
        for name in values:
            if name not in known:
                raise InputError(f"{self.name}: unknown argument {quote(name)}{nearest(name, known)}")
        given = [(bool(each.flag), each.words(values.get(each.name))) for each in self.arguments]
        flags, places = ([word for flag, found in given if flag is kind for word in found] for kind in (True, False))
        return [self.name, "--json", *flags, *places]


def tools(verbs: Iterable[str] = (), *, write: bool = False) -> dict[str, Tool]:
    """The tools by name.

    Args:
        verbs: those that are wanted; all of them where none is named.
        write: whether they may write files.

    Raises:
        InputError: a verb that there is not, or that is no tool.
    """
    _, parsers = build()
    every = {verb: _tool(verb, parser, write=write) for verb, parser in parsers.items() if verb not in LEFT_OUT}
    found = {verb: tool for verb, tool in every.items() if tool is not None}
    for verb in (wanted := list(verbs)):
        if verb not in found:
            why = "; it writes files, which --write allows" if verb in every else nearest(verb, found)
            raise InputError(f"mcp: --verbs: found {quote(verb)}, expected {' or '.join(found)}{why}")
    return {verb: tool for verb, tool in found.items() if not wanted or verb in wanted}


def _tool(verb: str, parser: Parser, *, write: bool) -> Tool | None:
    """A verb as a tool; None where it needs to write and may not."""
    kept = [action for action in parser._actions if action.dest not in (*FORMS, *ELSEWHERE)]
    writing = [action for action in kept if writes(action)]
    if not write and any(action.required for action in writing):
        return None
    kept = [action for action in kept if write or action not in writing]
    example = (parser.epilog or "").rpartition("Example: ")[2]
    about = f"{parser.description} Command line: {example}"
    return Tool(verb, about, tuple(_argument(verb, action) for action in kept), bool(write and writing))


def writes(action: argparse.Action) -> bool:
    """Whether an option writes a file."""
    return bool(action.option_strings) and action.nargs != 0 and action.dest in WRITES


def _argument(verb: str, action: argparse.Action) -> Argument:
    long = [flag for flag in action.option_strings if flag.startswith("--")]
    flag = long[0] if long else ""
    name = (flag[2:] or action.dest).replace("-", "_")
    denied = next((each for each in long if each.startswith("--no-")), "")
    required = action.required and action.nargs != "?"
    schema = _schema(verb, action) | ({"description": told} if (told := line(action.help or "")) else {})
    return Argument(name, flag, schema, required, denied if denied != flag else "", action.nargs != 0)


def _schema(verb: str, action: argparse.Action) -> dict[str, Any]:
    """The type of a value, and the values that it may have where these are few."""
    if action.nargs == 0:
        return {"type": "boolean"}
    kind = next((name for read, name in TYPES.items() if action.type is read), "string")
    one: dict[str, Any] = {"type": ["number", "string"] if action.type is numbers else kind}
    listed, path = values_of(verb, action)
    field = FIELDS.get(listed)
    if listed and not path and (field is None or field.kind == "choice"):
        one["enum"] = list(field.choices) if field is not None else list(words().lists[listed])
    if isinstance(action, argparse._AppendAction) or action.nargs == "+":
        return {"type": "array", "items": one}
    return {"type": ["integer", "boolean"]} if action.nargs == "?" and action.option_strings else one

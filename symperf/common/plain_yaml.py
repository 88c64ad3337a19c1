"""Plain YAML: the part of it that configurations are written in, read without a package, and nothing else.

Read are mappings and lists by indentation or in brackets, quoted and plain scalars, blocks of text (`|` and `>`) and
comments. What is rarer (anchors, tags, several documents, keys that are no scalars) is refused with its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from .errors import InputError, quote

MOST_DEEP = 50
"""Levels of nesting; no configuration comes near it."""
WORDS: dict[str, Any] = {
    **dict.fromkeys(("null", "~", "")),
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*\.[0-9_]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_TEXT = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'"
_PLAIN = r"[^\s#&*!|>%@`\"'\[\]{},:?-](?:[^#:]|:(?=\S)|(?<!\s)#)*|-(?=\w)[^:]*"
_KEY = re.compile(rf"({_TEXT}|{_PLAIN})\s*:(?=\s|$)")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "0": "\0", "r": "\r"}


@dataclass(frozen=True)
class _Line:
    number: int
    indent: int
    text: str


def read_yaml(text: str, label: str) -> Any:
    r"""The data of a text.

    Raises:
        InputError: a line that is no plain YAML, or a key that comes twice.

    >>> read_yaml("a: 1\nb:\n- x\n- y: [1, 2.5, true]\n", "f")
    {'a': 1, 'b': ['x', {'y': [1, 2.5, True]}]}
    """
    return _Reader(text, label).document()


class _Reader:
    """Lines, taken one after another."""

    def __init__(self, text: str, label: str) -> None:
        self.label, self.raw, self.at = label, text.splitlines(), 0
        first = next((at for at, raw in enumerate(self.raw) if _uncommented(raw).strip()), None)
        if first is not None and self.raw[first].rstrip() == "---":
            self.raw[first] = ""

    def fail(self, number: int, found: str, expected: str) -> NoReturn:
        raise InputError(f"{self.label}: line {number}: found {quote(found)}, expected {expected}")

    def peek(self) -> _Line | None:
        """The next line that says something."""
        while self.at < len(self.raw):
            text = _uncommented(self.raw[self.at])
            if text.strip():
                indent = len(text) - len(text.lstrip(" "))
                if text.lstrip(" ").startswith("\t"):
                    self.fail(self.at + 1, text, "blanks as indentation")
                return _Line(self.at + 1, indent, text.strip())
            self.at += 1
        return None

    def document(self) -> Any:
        line = self.peek()
        if line is None:
            return None
        found = self.block(line.indent, 0)
        if (rest := self.peek()) is not None:
            self.fail(rest.number, rest.text, f"a line at the indentation of {line.indent} blanks")
        return found

    def block(self, indent: int, depth: int) -> Any:
        """The lines at an indentation, and what is deeper."""
        line = self.peek()
        assert line is not None
        if depth > MOST_DEEP:
            self.fail(line.number, line.text, f"at most {MOST_DEEP} levels")
        if line.text == "-" or line.text.startswith("- "):
            return self.items(indent, depth)
        if _KEY.match(line.text):
            return self.mapping(indent, depth)
        self.at += 1
        return self.value(line.text, line, indent, depth)

    def items(self, indent: int, depth: int) -> list[Any]:
        found = []
        while (line := self.peek()) is not None and line.indent == indent and (line.text + " ").startswith("- "):
            rest = line.text[1:].lstrip(" ")
            if rest and (_KEY.match(rest) or rest.startswith("- ")):  # a mapping that begins beside the dash
                inner = indent + len(line.text) - len(rest)
                self.raw[self.at] = " " * inner + rest
                found.append(self.block(inner, depth + 1))
            else:
                self.at += 1
                found.append(self.value(rest, line, indent, depth))
        return found

    def mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (line := self.peek()) is not None and line.indent == indent:
            match = _KEY.match(line.text)
            if match is None:
                if line.text.startswith("- "):
                    break
                self.fail(line.number, line.text, "KEY: VALUE")
            key = str(_quoted(match[1]) if match[1][0] in "\"'" else match[1].strip())
            if key in found:
                self.fail(line.number, key, "each key once")
            self.at += 1
            found[key] = self.value(line.text[match.end() :].strip(), line, indent, depth, key=True)
        if line is not None and line.indent > indent:
            self.fail(line.number, line.text, f"a line at the indentation of {indent} blanks")
        return found

    def value(self, text: str, line: _Line, indent: int, depth: int, *, key: bool = False) -> Any:
        """What stands beside a key or a dash, or below it."""
        if text and text[0] in "|>":
            return self.lines(indent, folded=text[0] == ">")
        if text:
            while text[0] in "[{" and not _closed(text):  # brackets over several lines
                if self.at >= len(self.raw):
                    self.fail(line.number, text, "the bracket to be closed")
                text += " " + _uncommented(self.raw[self.at]).strip()
                self.at += 1
            return _Flow(text, self, line.number).whole()
        below = self.peek()
        if below is None:
            return None
        listed = key and below.indent == indent and (below.text + " ").startswith("- ")
        return self.block(below.indent, depth + 1) if below.indent > indent or listed else None

    def lines(self, indent: int, *, folded: bool) -> str:
        """A block of text, which ends with a line of no more indentation."""
        found = []
        while self.at < len(self.raw):
            raw = self.raw[self.at]
            if raw.strip() and len(raw) - len(raw.lstrip(" ")) <= indent:
                break
            found.append(raw.strip())
            self.at += 1
        return (" " if folded else "\n").join(found).strip() + "\n"


class _Flow:
    """A scalar, or lists and mappings in brackets."""

    def __init__(self, text: str, reader: _Reader, number: int) -> None:
        self.text, self.reader, self.number, self.at = text, reader, number, 0

    def whole(self) -> Any:
        if self.text[0] not in "[{\"'":
            return self.scalar(self.text)
        found = self.node(0)
        if self.text[self.at :].strip():
            self.fail()
        return found

    def fail(self) -> NoReturn:
        self.reader.fail(self.number, self.text, "a value as JSON or plain YAML has it")

    def node(self, depth: int) -> Any:
        self.skip()
        if depth > MOST_DEEP or self.at >= len(self.text):
            self.fail()
        first = self.text[self.at]
        if first in "[{":
            self.at += 1
            return self.sequence(depth) if first == "[" else self.table(depth)
        if first in "\"'":
            match = re.compile(_TEXT).match(self.text, self.at)
            if match is None:
                self.fail()
            self.at = match.end()
            return _quoted(match[0])
        match = re.compile(r"(?:[^,\[\]{}:]|:(?!\s|$))*").match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.scalar(match[0].strip())

    def sequence(self, depth: int) -> list[Any]:
        found = []
        while not self.ends("]"):
            found.append(self.node(depth + 1))
            self.comma("]")
        return found

    def table(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.ends("}"):
            key = str(self.node(depth + 1))
            self.skip()
            if key in found or self.text[self.at : self.at + 1] != ":":
                self.fail()
            self.at += 1
            found[key] = self.node(depth + 1)
            self.comma("}")
        return found

    def skip(self) -> None:
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1

    def ends(self, close: str) -> bool:
        self.skip()
        if self.at >= len(self.text):
            self.fail()
        if self.text[self.at] != close:
            return False
        self.at += 1
        return True

    def comma(self, close: str) -> None:
        self.skip()
        after = self.text[self.at : self.at + 1]
        if after == ",":
            self.at += 1
        elif after != close:
            self.fail()

    def scalar(self, text: str) -> Any:
        if text and text[0] in "&*!%@`":
            self.reader.fail(self.number, text, "no anchors, aliases or tags of YAML")
        if text.lower() in WORDS:
            return WORDS[text.lower()]
        if _INTEGER.fullmatch(text):
            return int(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
        return text


def _uncommented(raw: str) -> str:
    """A line without its comment: from a `#` at its beginning or after a blank, outside of quotes."""
    mark = ""
    for at, each in enumerate(raw):
        if mark:
            mark = "" if each == mark else mark
        elif each in "\"'" and (at == 0 or raw[at - 1] in " [{,:-"):
            mark = each
        elif each == "#" and (at == 0 or raw[at - 1] in " \t"):
            return raw[:at].rstrip()
    return raw.rstrip()


def _closed(text: str) -> bool:
    """Whether as many brackets are closed as opened, outside of quotes."""
    bare = re.sub(_TEXT, "", text)
    return sum(bare.count(each) for each in "[{") <= sum(bare.count(each) for each in "]}")


def _quoted(text: str) -> str:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), text[1:-1])

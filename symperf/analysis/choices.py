"""Whole choices as text, relative to a run: "plan: tp=8 pp=8", "system: b200-sxm", or several with commas between.

A choice is parts with commas between. A part begins with what it chooses (`model:`, `system:`, `stack:` and a name or a
path, or `plan:`) or is settings at once; settings are NAME=VALUE with spaces between, and flags of a plan by their bare
name, with `no-` before one that is off. "base" is the run as it is.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..common.numbers import plain_value
from ..plans.plan_fields import FIELDS

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun

BASE = "base"
HEADS = ("plan", "system", "model", "stack")
"""What a part may begin with."""
LONGEST = 1000
"""Characters of a choice."""
EXPECTED = 'expected a choice such as "plan: tp=8 pp=8", "system: b200-sxm" or "precision=fp8"'
_HEAD = re.compile(r"\s*([A-Za-z]+)\s*:\s*(.*)", re.DOTALL)
_SETTING = re.compile(r"(?:^|(?<=\s))([A-Za-z_][\w-]*)\s*=\s*")


@dataclass(frozen=True)
class Choice:
    """What is changed about a run.

    Attributes:
        text: as it was written, with single spaces.
        model: name or path of another model.
        system: name or path of another system.
        values: of plan fields, work, options and symbols, by name.
    """

    text: str
    model: str | None = None
    system: str | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The text without what its parts begin with, as a sentence has it."""
        return re.sub(rf"\b({'|'.join(HEADS)}):\s*", "", self.text)

    def run(self, base: BaseRun, where: str) -> BaseRun:
        """The run with this choice.

        Raises:
            InputError: an unknown name, a value out of range, or what does not go together.
        """
        try:
            return base.swap(model=self.model, system=self.system, **self.values)
        except InputError as error:
            raise InputError(f"{where}: {quote(self.text)}: {error}") from None


def is_choice(text: str) -> bool:
    """Whether a text is a choice, and not the name of a term, a resource or a quantity."""
    if text.strip() == BASE or "=" in text:
        return True
    head = _HEAD.match(text)
    return head is not None or all(_flag(word) for word in text.replace(",", " ").split())


def parse_choice(text: str, where: str) -> Choice:
    """The choice that a text describes.

    Args:
        text: see the module.
        where: begins the error line.

    Raises:
        InputError: it is none: what was found and what was expected.

    >>> parse_choice("system: b200-sxm, plan: tp=8 sequence_parallel", "cross: a").values
    {'tp': 8, 'sequence_parallel': True}
    """
    if len(text) > LONGEST:
        raise InputError(f"{where}: a choice of {len(text)} characters, expected at most {LONGEST}")
    told = " ".join(text.split())
    if told == BASE:
        return Choice(told)
    found: dict[str, Any] = {}
    for part in _parts(text):
        for name, value in _part(part, told, where):
            if name in found:
                raise InputError(f"{where}: {name} is chosen twice in {quote(told)}")
            found[name] = value
    return Choice(told, found.pop("model", None), found.pop("system", None), found)


def _parts(text: str) -> list[str]:
    """The parts between commas; what follows one without a head, setting or flag belongs to a list before it."""
    parts: list[str] = []
    for piece in text.split(","):
        own = _HEAD.match(piece) or "=" in piece or not piece.strip() or all(map(_flag, piece.split()))
        if parts and not own:
            parts[-1] += f",{piece.strip()}"
        else:
            parts.append(piece)
    return parts


def _part(part: str, told: str, where: str) -> list[tuple[str, Any]]:
    head = _HEAD.match(part)
    if head is None or "=" in part[: head.start(2)]:
        return _settings(part, told, where)
    name, rest = head[1].lower(), head[2]
    if name not in HEADS:
        expected = " or ".join(f"{known}:" for known in HEADS)
        raise InputError(f"{where}: found {quote(head[1] + ':')}, expected {expected}{nearest(name, HEADS)}")
    if name == "plan":
        return _settings(rest, told, where)
    first = _SETTING.search(rest)
    chosen, more = (rest, "") if first is None else (rest[: first.start()], rest[first.start() :])
    if not chosen.strip():
        raise InputError(f"{where}: {name}: in {quote(told)} has no name, {EXPECTED}")
    return [(name, chosen.strip()), *(_settings(more, told, where) if more else [])]


def _settings(text: str, told: str, where: str) -> list[tuple[str, Any]]:
    """NAME=VALUE and bare flags, in order."""
    starts = list(_SETTING.finditer(text))
    leading = text[: starts[0].start()] if starts else text
    if not text.strip():
        raise InputError(f"{where}: found nothing between commas of {quote(told)}, {EXPECTED}")
    found = [_bare(word, told, where) for word in leading.split()]
    for start, after in itertools.zip_longest(starts, starts[1:]):
        words = text[start.end() : after.start() if after else None].split()
        flags = []
        while len(words) > 1 and _flag(words[-1]):
            flags.append(_bare(words.pop(), told, where))
        if not words:
            raise InputError(f"{where}: {start[1]} has no value in {quote(told)}, expected NAME=VALUE")
        name = start[1].replace("-", "_")
        found += [(name, _value(name, " ".join(words))), *reversed(flags)]
    return found


def _value(name: str, text: str) -> Any:
    """The value of a setting; "none" leaves a field open that may be."""
    field_ = FIELDS.get(name)
    if name in ("model", "system", "stack", "kv_precision"):
        return text
    if field_ is not None and field_.optional and text.lower() in ("none", "null"):
        return None
    return plain_value(text)


def _flag(word: str) -> tuple[str, bool] | None:
    name = word.replace("-", "_")
    on = not name.startswith("no_")
    name = name.removeprefix("no_")
    return (name, on) if name in FIELDS and FIELDS[name].kind == "flag" else None


def _bare(word: str, told: str, where: str) -> tuple[str, Any]:
    flag = _flag(word)
    if flag is None:
        hint = nearest(word.replace("-", "_"), FIELDS)
        raise InputError(
            f"{where}: found {quote(word)} in {quote(told)}, expected NAME=VALUE or a flag of a plan{hint}"
        )
    return flag

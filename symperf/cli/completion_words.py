"""What can stand where in a command line, read off the argument parsers: what completion offers in any shell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from textwrap import shorten
from typing import TYPE_CHECKING

from ..plans.plan_fields import FIELDS
from .parser import build
from .verbs.looks import LISTED
from .verbs.tools import SHELLS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from .parser import Parser

LONGEST_HELP = 72
FILES = ("FILE", "FOLDER", "OUT", "PATH", "NEW.toml")
"""What stands for a path in the help of a flag."""
PATHS = ("study", "measured", "technology")
"""Places of a command line that hold one."""
BY_NAME = {"model": "models", "draft": "models", "teacher": "models", "reward_model": "models", "system": "systems"}
"""Lists of the values that options of these names take; each may be a path as well."""
STACKS = {"train": "training_stacks", "infer": "serving_stacks", "serve": "serving_stacks"}
"""Of the verbs that take one kind of software alone."""
ASKED = ("train", "infer", "serve")
"""The kinds of runs that questions are about."""


@dataclass(frozen=True)
class Slot:
    """A flag, or a place for a word.

    Attributes:
        flags: its spellings; none of a place.
        name: of its value, for people; empty where it takes none.
        help: what it is, in one short line.
        listed: the list that its value is one of, if there is one.
        files: whether its value may be a path.
        optional: whether the value of a flag may be left out.
        many: whether a place takes any number of words.
    """

    flags: tuple[str, ...]
    name: str
    help: str
    listed: str = ""
    files: bool = False
    optional: bool = False
    many: bool = False


@dataclass(frozen=True)
class Words:
    """All that completion offers.

    Attributes:
        verbs: with what each does.
        slots: of each verb, flags and places.
        lists: of words by name.
    """

    verbs: Mapping[str, str]
    slots: Mapping[str, tuple[Slot, ...]]
    lists: Mapping[str, tuple[str, ...]]


def flags_of(slots: tuple[Slot, ...]) -> list[str]:
    """The spellings of all flags."""
    return [flag for slot in slots for flag in slot.flags]


def places_of(slots: tuple[Slot, ...]) -> list[Slot]:
    """The places for words, from the first."""
    return [slot for slot in slots if not slot.flags]


@cache
def words() -> Words:
    """All that completion offers, of the parsers and of the catalogues."""
    from ..infer import stack
    from ..models.model import catalogue_names as models
    from ..systems import software
    from ..systems.system import catalogue_names as systems

    _, parsers = build()
    serving, training = tuple(stack.names()), tuple(software.names())
    lists = {
        "verbs": tuple(parsers),
        "models": tuple(models()),
        "systems": tuple(systems()),
        "serving_stacks": serving,
        "training_stacks": training,
        "stacks": (*serving, *training),
        "runs": ASKED,
        "listed": LISTED,
        "shells": SHELLS,
    }
    lists |= {name: tuple(map(str, field.choices)) for name, field in FIELDS.items() if field.choices}
    slots = {verb: tuple(_slot(verb, action) for action in parser._actions) for verb, parser in parsers.items()}
    return Words({verb: _about(parser) for verb, parser in parsers.items()}, slots, lists)


def _about(parser: Parser) -> str:
    return line(parser.description or "")


def line(text: str) -> str:
    """The first clause of a text, short enough to stand beside others.

    >>> line("a catalogue name; or the path of a file"), line("100%% (default 1)")
    ('a catalogue name', '100% (default 1)')
    """
    clause = text.replace("%%", "%").partition("; ")[0].removesuffix(".")
    return shorten(clause, LONGEST_HELP, placeholder=" ...")


def _slot(verb: str, action: argparse.Action) -> Slot:
    listed, path = values_of(verb, action)
    flags = tuple(action.option_strings)
    takes = action.nargs != 0
    name = str(action.metavar or action.dest.rstrip("_").replace("_", "-")) if takes else ""
    optional = bool(flags) and action.nargs == "?"
    return Slot(flags, name, line(action.help or ""), listed, path, optional, action.nargs == "+")


def values_of(verb: str, action: argparse.Action) -> tuple[str, bool]:
    """The list of the values of an option or a place, and whether they may be paths."""
    if action.nargs == 0:
        return "", False
    if not action.option_strings and action.dest in _PLACES:
        return _PLACES[action.dest].get(verb, _PLACES[action.dest].get("", "")), False
    if action.dest == "stack":
        return STACKS.get(verb, "stacks"), True
    if action.dest in BY_NAME:
        return BY_NAME[action.dest], True
    field = FIELDS.get(action.dest)
    if field is not None and field.choices and (action.help or "").startswith(field.sentence):
        return field.name, False
    return "", action.metavar in FILES or action.dest in PATHS


_PLACES = {"what": {"list": "listed", "": "runs"}, "shell": {"": "shells"}, "name": {"cite": "verbs"}}
"""Lists of places by their name and verb; the empty verb is any other."""

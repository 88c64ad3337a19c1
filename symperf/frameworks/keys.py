"""A framework's configuration, taken key by key: each is read, costs nothing, or is refused by its name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from ..common.errors import InputError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", list: "a list"}
"""Kinds of values, for messages."""


class Keys:
    """The keys of a file.

    Args:
        framework: whose file it is.
        label: of the file, which begins every message.
        data: values by key; tables in tables have dots in their keys.
        ignore: keys that are read as if they were not there.
    """

    def __init__(self, framework: str, label: str, data: Mapping[str, Any], ignore: Iterable[str] = ()) -> None:
        self.framework, self.label = framework, label
        self.ignored: dict[str, str] = {}
        self.data: dict[str, Any] = {}
        self.known: list[str] = []
        self.read: dict[str, Any] = {}
        self.notes: list[str] = []
        wanted = set(ignore)
        for key, value in data.items():
            hit = next((each for each in wanted if key == each or key.startswith(f"{each}.")), None)
            if hit is None:
                self.data[key] = value
            else:
                self.ignored[key] = "as asked for (--ignore-key)"

    def fail(self, key: str, expected: str) -> NoReturn:
        """Refuse a value.

        Raises:
            InputError: always.
        """
        raise InputError(f"{self.label}: {key}: found {quote(self.data[key])}, expected {expected}")

    def take(self, key: str, kind: type, *others: str, choices: Iterable[Any] = (), least: float | None = None) -> Any:
        """The value of a key, or of another name of it; None where none is there, or says nothing.

        Raises:
            InputError: a value of another kind, or two names with different values.
        """
        self.known += (key, *others)
        there = [name for name in (key, *others) if self.data.get(name) is not None]
        found = [(name, self._check(name, kind, tuple(choices), least)) for name in there]
        if not found:
            return None
        (name, value), *rest = found
        for other, differing in rest:
            if differing != value:
                raise InputError(
                    f"{self.label}: {name} is {quote(value)} and {other} is {quote(differing)}, expected one"
                )
        self.read |= dict(found)
        return value

    def _check(self, key: str, kind: type, choices: tuple[Any, ...], least: float | None) -> Any:
        value = self.data[key]
        if kind is list and isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        right = isinstance(value, (int, float) if kind is float else kind)
        if not right or (isinstance(value, bool) and kind is not bool):
            self.fail(key, WORDS[kind])
        if choices and value not in choices:
            hint = nearest(value, map(str, choices)) if isinstance(value, str) else ""
            self.fail(key, f"{' or '.join(map(str, choices))}{hint}")
        if least is not None and value < least:
            self.fail(key, f"{WORDS[kind]}, {least:g} or more")
        return value

    def count(self, key: str, *others: str) -> int | None:
        """A whole number from 1, if there is one."""
        value = self.take(key, int, *others, least=1)
        return None if value is None else int(value)

    def flag(self, key: str, *others: str) -> bool:
        """Whether a switch is on."""
        return bool(self.take(key, bool, *others))

    def word(self, key: str, table: Mapping[str, Any], *others: str) -> Any:
        """What a word stands for, if there is one."""
        value = self.take(key, str, *others, choices=tuple(table))
        return None if value is None else table[value]

    def refuse(self, key: str, why: str, *, off: Iterable[Any] = (False, 0, "", "none", "None")) -> None:
        """Refuse what is known and not modelled, unless it is off.

        Raises:
            InputError: it is on.
        """
        self.known.append(key)
        value = self.data.get(key)
        if value is None or value in tuple(off) or value == [] or value == {}:
            self.data.pop(key, None)
            return
        raise InputError(
            f"{self.label}: {key}: found {quote(value)}, but {why}; --ignore-key {key.lstrip('-')} reads the file as "
            "if it were not there"
        )

    def note(self, text: str) -> None:
        """Say what was decided where the file leaves it open."""
        self.notes.append(text)

    def drop(self, key: str, why: str) -> None:
        """Say that a key is not read, and why."""
        self.known.append(key)
        if self.data.pop(key, None) is not None:
            self.ignored[key] = why

    def finish(self, without_cost: str) -> None:
        """Sort out the keys that nothing has taken.

        Args:
            without_cost: names of keys that cost nothing, with blanks between; an end of `*` stands for any ending.

        Raises:
            InputError: a key that is not known, with the nearest.
        """
        names = without_cost.split()
        pattern = re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in names) or "(?!)")
        for key, value in self.data.items():
            if key in self.read or value is None:
                continue
            if pattern.fullmatch(key):
                self.ignored[key] = "costs nothing in a step"
                continue
            known = [*self.known, *(name for name in names if "*" not in name)]
            hint = nearest(key, known) or nearest(key.rpartition(".")[2], known)
            raise InputError(
                f"{self.label}: unknown key {quote(key)} of {self.framework}, which could change the answer{hint}; "
                f"--ignore-key {key.lstrip('-')} reads the file as if it were not there"
            )


def flatten(data: Mapping[str, Any], depth: int = 9) -> dict[str, Any]:
    """Tables in tables as one, with dots in its keys.

    >>> flatten({"a": {"b": 1, "c": {"d": [2]}}, "e": {}})
    {'a.b': 1, 'a.c.d': [2], 'e': {}}
    """
    found: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict) and value and depth:
            found |= {f"{key}.{name}": each for name, each in flatten(value, depth - 1).items()}
        else:
            found[str(key)] = value
    return found

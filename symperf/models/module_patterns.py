"""Names of modules as checkpoints' files give them: whole names, parts, globs and regular expressions.

A user's text is matched, never evaluated: regular expressions are a subset without repeated groups, look-arounds and
references, with few repetitions, so that no text takes long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..common.errors import InputError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIXES = ("model.", "model.language_model.", "language_model.model.", "backbone.", "")
"""What stands before `layers.N` in files of language models, of those within others, and of state-space models."""
LONGEST = 200
MOST_REPEATS = 4
UNSAFE = re.compile(r"[)}][*+?{]|\(\?|\\[0-9bBAZ]|[*+?][*+?]|\{")
"""What a regular expression may not have: repeated groups, look-arounds, references, possessive or counted repeats."""


def matches_glob(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern in which `*` stands for anything.

    >>> matches_glob("mtp.*", "mtp.layers"), matches_glob("*a*b", "xaxc")
    (True, False)
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        if (found := text.find(part, at)) < 0:
            return False
        at = found + len(part)
    return text.endswith(rest[-1], at)


def without_prefix(name: str) -> str:
    """A module's name from its layers on: what stands before them differs from file to file.

    >>> without_prefix("model.language_model.layers.3.mlp.up_proj")
    'layers.3.mlp.up_proj'
    """
    first, found, rest = name.partition("layers.")
    return found + rest if found and (not first or first.endswith(".")) else name


def compile_regex(body: str, where: str) -> re.Pattern[str]:
    """A regular expression of a file.

    Raises:
        InputError: it is none, or might take long to match.
    """
    repeats = len(re.findall(r"(?<!\\)[*+?]", body))
    if len(body) > LONGEST or UNSAFE.search(body) or repeats > MOST_REPEATS:
        raise InputError(
            f"{where}: the pattern {quote(body)} might take long to match, expected at most {LONGEST} characters and "
            f"{MOST_REPEATS} repeats, and no repeated groups, look-arounds or references"
        )
    try:
        return re.compile(body)
    except re.error as error:
        raise InputError(f"{where}: the pattern {quote(body)} is no regular expression: {error}") from None


@dataclass(frozen=True)
class Names:
    """Some names of modules.

    Attributes:
        plain: parts of names, each a run of whole components: a module's name, or the end or beginning of several.
        globs: patterns with `*`.
        regexes: regular expressions, matched from the beginning of a name.
    """

    plain: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()
    regexes: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str], where: str) -> Names:
        """The names that texts give: regular expressions follow `re:`.

        Raises:
            InputError: a regular expression that is refused.
        """
        found = list(dict.fromkeys(texts))
        regexes = [compile_regex(text[3:], where) for text in found if text.startswith("re:")]
        others = [text for text in found if not text.startswith("re:")]
        globs = [text for text in others if "*" in text]
        plain = frozenset(without_prefix(text) for text in others if "*" not in text)
        return cls(plain, tuple(globs), tuple(regexes))

    @cached_property
    def _runs(self) -> dict[str, list[list[str]]]:
        """The plain ones by their first component, in components: files name thousands, and each module is asked."""
        found: dict[str, list[list[str]]] = {}
        for text in self.plain:
            run = text.split(".")
            found.setdefault(run[0], []).append(run)
        return found

    def __contains__(self, module: object) -> bool:
        """Whether a module, by its name from `layers.` on, is among them, whatever stands before it in the file."""
        name = str(module)
        parts = name.split(".")
        for i, part in enumerate(parts):
            if any(parts[i : i + len(run)] == run for run in self._runs.get(part, ())):
                return True
        whole = [f"{prefix}{name}" for prefix in PREFIXES]
        if any(matches_glob(glob, each) or matches_glob(f"{glob}.*", each) for glob in self.globs for each in whole):
            return True
        return any(regex.match(each) for regex in self.regexes for each in whole)

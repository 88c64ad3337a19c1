"""The options in a command line or a script of a shell.

Nothing is run: words are split, and names that the script itself sets to a text stand for that text.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..common.numbers import plain_value

if TYPE_CHECKING:
    from collections.abc import Container

_SET = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_NAME = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-([^}$]*))?\}|([A-Za-z_]\w*))")
_ENDS = (";", "&&", "||", "|", "&", ")", ">", ">>", "2>&1", "then", "fi", "do", "done")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*(=.*)?", re.DOTALL)


def shell_options(text: str, label: str, switches: Container[str], many: Container[str]) -> dict[str, Any]:
    r"""The values of the options in a text, by name; of a switch true.

    Args:
        text: a command, or a script.
        label: of its file.
        switches: options without a value, after which a word is no value of theirs.
        many: options with several values.

    Raises:
        InputError: quotes that are not closed, or an option with two different values.

    >>> shell_options("N=2; run --tp $N \\\n  --bf16 x.py --mods a b # c", "f", ("--bf16",), ("--mods",))
    {'--tp': 2, '--bf16': True, '--mods': ['a', 'b']}
    """
    found: dict[str, Any] = {}
    words = _words(text, label)
    for at, word in enumerate(words):
        if not _OPTION.fullmatch(word) or not word.startswith("--"):
            continue
        name, equals, beside = word.partition("=")
        values = [beside] if equals else []
        for each in words[at + 1 :]:
            if equals or _OPTION.fullmatch(each) or each in _ENDS:
                break
            values.append(each)
        value: Any = True
        if name not in switches and values:
            value = [plain_value(each) for each in values] if name in many else plain_value(values[0])
        if name in found and found[name] != value:
            raise InputError(f"{label}: {name}: found {quote(found[name])} and {quote(value)}, expected one of them")
        found[name] = value
    return found


def _words(text: str, label: str) -> list[str]:
    """The words of a script in order, names replaced, those inside of quoted lists of options among them."""
    names: dict[str, str] = {}

    def filled(word: str) -> str:
        def stand_in(match: re.Match[str]) -> str:
            return names.get(match[1] or match[3], match[2] if match[2] is not None else match[0])

        return _NAME.sub(stand_in, word)

    found: list[str] = []
    for word in _split(re.sub(r"\\\r?\n", " ", text), label):
        match = _SET.fullmatch(word)
        if match is None:
            full = filled(word)
            found += _split(full, label) if " " in full and "--" in full else [full]
        elif match[2].startswith("(") or "--" in match[2]:  # a list of options
            found += _split(filled(match[2].lstrip("(")), label)
        else:
            names[match[1]] = filled(match[2])
    return [word[:-1] if word.endswith(")") and word.count("(") < word.count(")") else word for word in found if word]


def _split(text: str, label: str) -> list[str]:
    reader = shlex.shlex(text, posix=True, punctuation_chars=";&|")
    reader.whitespace_split = True
    try:
        return list(reader)
    except ValueError as error:
        raise InputError(f"{label}: not a command line: {str(error).lower()}") from None

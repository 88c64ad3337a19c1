"""Completion in zsh: a call of `_arguments` for each verb."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .completion_words import Slot, Words

MAIN = r"""
_symperf() {{
    local curcontext=$curcontext state line
    local -a verbs
    verbs=(
{verbs}
    )
    _arguments -C '(-h --help)'{{-h,--help}}'[show this help message and exit]' '--version[show the version]' \
        '1:verb:->verb' '*::argument:->rest'
    case $state in
    verb) _describe verb verbs ;;
    rest)
        if [[ $words[1] == cite && CURRENT -gt 2 && -n ${{(M)verbs:#$words[2]:*}} ]]; then
            shift words
            (( CURRENT-- ))
        fi
        case $words[1] in
{cases}
        esac
        ;;
    esac
}}
if [[ $funcstack[1] == _symperf ]]; then
    _symperf "$@"
else
    compdef _symperf symperf
fi
"""


def zsh(words: Words) -> str:
    """The script for zsh."""
    verbs = "\n".join(f"        {shlex.quote(f'{verb}:{about}')}" for verb, about in words.verbs.items())
    cases = "\n".join(f"        {verb}) {_arguments(slots)} ;;" for verb, slots in words.slots.items())
    return (
        "#compdef symperf\n# Completion of symperf in zsh, made by: symperf completion zsh\n"
        + "".join(_function(name, each) for name, each in words.lists.items())
        + MAIN.format(verbs=verbs, cases=cases)
    )


def _function(name: str, words: tuple[str, ...]) -> str:
    """Functions that offer a list, alone and with files."""
    listed = shlex.quote(f"{name}:{name}:({' '.join(words)})")
    return (
        f"_symperf_{name}() {{ _alternative {listed} }}\n"
        f"_symperf_{name}_files() {{ _alternative {listed} 'files:file:_files' }}\n"
    )


def _arguments(slots: tuple[Slot, ...]) -> str:
    specs = [spec for slot in slots for spec in _specs(slot)]
    return " \\\n            ".join(["_arguments", *map(shlex.quote, specs)])


def _specs(slot: Slot) -> list[str]:
    """What `_arguments` is told of a flag or a place; flags may come again, as later ones override."""
    action = f"_symperf_{slot.listed}{'_files' * slot.files}" if slot.listed else "_files" if slot.files else " "
    value = f":{_escape(slot.name)}:{action}"
    if not slot.flags:
        return [f"*{value}" if slot.many else value]
    taken = "" if not slot.name else f":{value}" if slot.optional else value
    return [
        f"*{flag}{'=' if taken and flag.startswith('--') else ''}[{_escape(slot.help)}]{taken}" for flag in slot.flags
    ]


def _escape(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)

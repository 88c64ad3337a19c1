"""Completion in bash: tables of what can stand where, and one function that reads a command line by them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from .completion_words import flags_of, places_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .completion_words import Slot, Words

FUNCTION = r"""
_symperf() {
    local current=${COMP_WORDS[COMP_CWORD]} verb='' value='' word i place=0 reply
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == '=' ]]; then
            continue  # bash parts --flag=value
        elif [[ -n $value ]]; then
            value=''  # this was it
        elif [[ $word == -* ]]; then
            value=$(_symperf_value "$verb" "$word")
        elif [[ -z $verb ]]; then
            verb=$word
        elif [[ $verb == cite && $place == 0 && " $(_symperf_list verbs) " == *" $word "* ]]; then
            verb=$word
        else
            place=$((place + 1))
        fi
    done
    [[ $current == '=' ]] && current=''
    if [[ -z $value ]]; then
        if [[ $current == -* ]]; then
            value='flags'
        elif [[ -z $verb ]]; then
            value='verbs'
        else
            value=$(_symperf_place "$verb" "$place")
        fi
    fi
    if [[ $value == flags ]]; then
        reply=$(compgen -W "$(_symperf_flags "$verb")" -- "$current")
    else
        reply=$(compgen -W "$(_symperf_list "${value%+*}")" -- "$current")
    fi
    if [[ $value == *+files ]]; then
        compopt -o filenames 2>/dev/null
        reply+=$'\n'$(compgen -f -- "$current")
    fi
    while IFS= read -r word; do
        [[ -n $word ]] && COMPREPLY+=("$word")
    done <<<"$reply"
}
complete -F _symperf symperf
"""


def bash(words: Words) -> str:
    """The script for bash."""
    top = shlex.quote("--help --version")
    lists = {name: shlex.quote(" ".join(each)) for name, each in words.lists.items()}
    flags = {verb: shlex.quote(" ".join(flags_of(slots))) for verb, slots in words.slots.items()}
    return (
        "# Completion of symperf in bash, made by: symperf completion bash\n"
        + _table("_symperf_list", "$1", lists)
        + _table("_symperf_flags", "$1", {"''": top, **flags})
        + _table("_symperf_value", "$1 $2", _values(words))
        + _table("_symperf_place", "$1 $2", _places(words))
        + FUNCTION
    )


def _table(name: str, key: str, values: Mapping[str, str]) -> str:
    """A function that prints the value of a key."""
    rows = "".join(f"    {pattern}) echo {value} ;;\n" for pattern, value in values.items())
    return f'{name}() {{\n    case "{key}" in\n{rows}    esac\n}}\n'


def _kind(slot: Slot) -> str:
    """The list of a value, and whether it may be a file; text where it may be anything."""
    return shlex.quote((slot.listed or "text") + ("+files" if slot.files else ""))


def _values(words: Words) -> dict[str, str]:
    """Patterns of verb and flag that take a value -> its kind; a flag that is the same in every verb stands once."""
    kinds: dict[str, dict[str, str]] = {}
    for verb, slots in words.slots.items():
        for slot in slots:
            for flag in slot.flags:
                kinds.setdefault(flag, {})[verb] = _kind(slot) if slot.name and not slot.optional else ""
    found: dict[str, list[str]] = {}
    for flag, by_verb in kinds.items():
        same = len(set(by_verb.values())) == 1
        for verb, kind in [("*", next(iter(by_verb.values())))] if same else by_verb.items():
            if kind:
                found.setdefault(kind, []).append(_pattern(verb, flag))
    return {"|".join(patterns): kind for kind, patterns in found.items()}


def _places(words: Words) -> dict[str, str]:
    """Patterns of verb and place -> the kind of its word."""
    found: dict[str, list[str]] = {}
    for verb, slots in words.slots.items():
        for place, slot in enumerate(places_of(slots)):
            found.setdefault(_kind(slot), []).append(_pattern(verb, "*" if slot.many else str(place)))
    return {"|".join(patterns): kind for kind, patterns in found.items()}


def _pattern(first: str, second: str) -> str:
    """A pattern of `case` for two words with a blank between; a star is any word.

    >>> _pattern("*", "--tp"), _pattern("train", "0")
    ("*' --tp'", "'train 0'")
    """
    if first == "*":
        return f"*' {second}'"
    return f"'{first} '*" if second == "*" else f"'{first} {second}'"

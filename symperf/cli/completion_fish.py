"""Completion in fish: a line for each flag, of all verbs that have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .completion_words import places_of

if TYPE_CHECKING:
    from .completion_words import Slot, Words


def fish(words: Words) -> str:
    """The script for fish."""
    lists = "".join(
        f"        case {name}\n            printf '%s\\n' {' '.join(map(_quote, each))}\n"
        for name, each in words.lists.items()
    )
    lines = [
        "# Completion of symperf in fish, made by: symperf completion fish",
        f"function __symperf_list\n    switch $argv[1]\n{lists}    end\nend",
        "complete -c symperf -f",
        "complete -c symperf -n __fish_use_subcommand -l version -d 'show the version'",
    ]
    for verb, about in words.verbs.items():
        lines.append(f"complete -c symperf -n __fish_use_subcommand -a {verb} -d {_quote(about)}")
    for slot, verbs in _by_slot(words).items():
        lines.append(f"complete -c symperf -n '__fish_seen_subcommand_from {' '.join(verbs)}' {_told(slot)}")
    return "\n".join(lines) + "\n"


def _by_slot(words: Words) -> dict[Slot, list[str]]:
    """Flags, and places that are completed, with the verbs that have them."""
    found: dict[Slot, list[str]] = {}
    for verb, slots in words.slots.items():
        places = [place for place in places_of(slots) if place.listed or place.files]
        for slot in [*(slot for slot in slots if slot.flags), *places]:
            found.setdefault(slot, []).append(verb)
    return found


def _told(slot: Slot) -> str:
    """The options of `complete` for a flag or a place."""
    parts = [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in slot.flags]
    if slot.flags and slot.name and not slot.optional:
        parts.append("-r" if slot.files else "-x")
    if slot.files:
        parts.append("-F")
    if slot.listed:
        parts.append(f"-a '(__symperf_list {slot.listed})'")
    if slot.flags:
        parts.append(f"-d {_quote(slot.help)}")
    return " ".join(parts)


def _quote(text: str) -> str:
    r"""A word in single quotes, in which fish knows two escapes.

    >>> print(_quote("the model's own"))
    'the model\'s own'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

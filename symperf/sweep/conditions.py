"""What a sweep is asked, as the user writes it: conditions by name, and the names that expressions use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..common.errors import InputError, quote
from .axes import Zip

MOST = 100
"""Conditions, derived names, and symbols zipped along one axis."""
_WORDS = {"<=": "le", ">=": "ge", "==": "eq", "!=": "ne", "<": "lt", ">": "gt", "//": "over", "**": "to_the"}
_WORDS |= {"*": "times", "/": "over", "+": "plus", "-": "minus", "%": "mod"}


def zipped_names(given: Any) -> list[str]:
    """The names of what is zipped, in whatever form; of anything else, none."""
    if isinstance(given, Mapping) and isinstance(given.get("zip"), Mapping):
        return [str(name) for name in given["zip"]]
    return list(given.members) if isinstance(given, Zip) else []


def name_conditions(where: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Conditions by the name of the reason when they fail: words that CF attributes allow."""
    if isinstance(where, str):
        where = [where]
    if isinstance(where, Mapping):
        check_count("where", len(where), "conditions")
        for name in where:
            if not isinstance(name, str) or not name.isidentifier():
                raise InputError(f"where {quote(name)}: expected a plain name")
        return dict(where)
    if not isinstance(where, Iterable):
        raise InputError(f"where: found {quote(where)}, expected conditions as texts")
    found: dict[str, str] = {}
    where = list(where)
    check_count("where", len(where), "conditions")
    for text in where:
        if not isinstance(text, str):
            raise InputError(f"where: found {quote(text)}, expected an expression as text")
        slug = text
        for sign, word in _WORDS.items():
            slug = slug.replace(sign, f" {word} ")
        slug = "_".join("".join(c if (c.isascii() and c.isalnum()) or c == "_" else " " for c in slug).split())[:80]
        name = "does_not_fit" if slug == "fits" else f"not_{slug or 'met'}"
        found[name if name not in found else f"{name}_{len(found)}"] = text
    return found


def check_count(what: str, count: int, of: str, most: int = MOST) -> None:
    """Refuse a list that is longer than anyone writes: what is done with it may take time that grows faster.

    Raises:
        InputError: it is longer than `most`.
    """
    if count > most:
        raise InputError(f"{what}: found {count:,} {of}, expected at most {most}")


def words(texts: Iterable[Any]) -> set[str]:
    """Every name in some expressions, roughly: to tell names that are used from misspelt ones."""
    spaced = " ".join(t if isinstance(t, str) else "" for t in texts)
    return set("".join(c if c.isalnum() or c == "_" else " " for c in spaced).split())

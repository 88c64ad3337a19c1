"""The table of a serving software's profile: its file on top of its base's, with the constants that lie in a third."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..common.files import read_toml
from ..systems.profiles import locate

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


def profile_table(path: Path, catalogue: Path, known: Collection[str], seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The keys of a profile.

    A key of the file replaces that of the base; tables [on.SYSTEM] are taken together, system by system. `on` may be
    the path of a file with such tables, counted from the profile's folder, or a list of such paths.

    Args:
        path: of the profile.
        catalogue: the folder of the profiles that are known by name.
        known: keys that a profile may have, beside `base`.
        seen: the profiles that name this one as their base.

    Raises:
        InputError: a file that cannot be read, an unknown key with the nearest, or bases that go round.
    """
    label = path.name if path.parent == catalogue else str(path)
    table = read_toml(path, label)
    for key in table:
        if key not in known and key != "base":
            raise InputError(f"{label}: unknown key {quote(key)}{nearest(key, [*known, 'base'])}")
    table["on"] = _constants(table.get("on", {}), path, label)
    base = table.pop("base", None)
    if base is None:
        return table
    if not isinstance(base, str) or not base.strip():
        raise InputError(f"{label}: base: found {quote(base)}, expected the name of a profile, or the path of one")
    other = _base(base, path, catalogue, label)
    if other.resolve() in (*(each.resolve() for each in seen), path.resolve()):
        raise InputError(f"{label}: base: found a cycle through {other.name}, expected a chain that ends")
    below = profile_table(other, catalogue, known, (*seen, path))
    if "name" not in table:
        below["name"] = path.stem
    on = {**below["on"], **table["on"]} if isinstance(table["on"], dict) else table["on"]
    return {**below, **table, "on": on}


def table_of(table: object, known: Collection[str], where: str) -> dict[str, Any]:
    """A table of a profile whose keys are known.

    Raises:
        InputError: it is none, or has another key, with the nearest.
    """
    if not isinstance(table, dict):
        raise InputError(f"{where}: found {quote(table)}, expected a table of {', '.join(known)}")
    for key in table:
        if key not in known:
            raise InputError(f"{where}: unknown key {quote(key)}{nearest(key, known)}")
    return table


def _base(base: str, path: Path, catalogue: Path, label: str) -> Path:
    try:
        found = locate(base, catalogue)
    except InputError as error:
        raise InputError(f"{label}: base: {error}") from None
    found = found if found.parent == catalogue else path.parent / found
    if not found.is_file():
        raise InputError(f"{label}: base: no such file {found}, expected a profile's name or the path of a .toml file")
    return found


def _constants(entry: object, path: Path, label: str) -> object:
    """The tables [on.SYSTEM], or those of the files that a text or a list names, later ones on top of earlier ones."""
    entries = [entry] if isinstance(entry, str) else entry
    if not isinstance(entries, list) or not all(isinstance(each, str) for each in entries):
        return entry
    found: dict[str, Any] = {}
    for each in entries:
        for system, constants in _file(path.parent / each, f"{label}: on: {each}").items():
            known = found.get(system, {})
            formats = _joined(known.get("formats", {}), constants.get("formats", {}))
            found[system] = {**known, **constants, **({"formats": formats} if formats else {})}
    return found


def _joined(first: object, second: object) -> object:
    """Tables of formats, taken together format by format; what is no table is left to who reads it."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second or first
    tables = {**first, **second}
    both = [name for name in first if name in second]
    return tables | {
        n: {**first[n], **second[n]} for n in both if isinstance(first[n], dict) and isinstance(second[n], dict)
    }


def _file(path: Path, where: str) -> dict[str, dict[str, Any]]:
    table = read_toml(path, where)
    for key in table:
        if key != "on":
            raise InputError(f"{where}: unknown key {quote(key)}, expected tables [on.SYSTEM]")
    tables = table.get("on", {})
    for system, constants in tables.items() if isinstance(tables, dict) else [("on", tables)]:
        if not isinstance(constants, dict):
            raise InputError(f"{where}: {system}: found {quote(constants)}, expected a table")
    return dict(tables)

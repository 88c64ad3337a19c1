"""The text of a file as data, by its form."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..common.errors import InputError, quote
from ..common.files import check_data, parse_toml
from ..common.yaml_text import read_yaml
from ..models.config_files import without_repeats

OVERRIDE: Final = re.compile(r"[a-z_]+(\.[a-z_]+)+\s*=\s*\S.*|mixed_precision\s*=\s*\S+")
FORMS: Final = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".sh": "words"}


def parse_json(text: str, label: str) -> dict[str, Any]:
    """The object of a JSON text.

    Raises:
        InputError: no JSON, no object, or a key that comes twice.
    """
    try:
        found = json.loads(text, object_pairs_hook=without_repeats)
    except InputError as error:
        raise InputError(f"{label}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{label}: not valid JSON: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise InputError(f"{label}: found {quote(found)}, expected an object")
    check_data(found, label)
    return found


def parse_overrides(text: str, label: str) -> dict[str, Any]:
    """Lines `name=value`, values as YAML has them.

    Raises:
        InputError: a line that is none, a name that comes twice, or a value that is no YAML.
    """
    found: dict[str, Any] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip().removesuffix("\\").strip()
        if not line or line.startswith("#"):
            continue
        if not OVERRIDE.fullmatch(line):
            raise InputError(f"{label}: line {number}: found {quote(line)}, expected NAME=VALUE")
        name, _, value = (part.strip() for part in line.partition("="))
        if name in found:
            raise InputError(f"{label}: line {number}: {name} comes twice, expected it once")
        found[name] = read_yaml(value, f"{label}: line {number}")
    return found


def parse(text: str, label: str, ending: str) -> tuple[str, Any]:
    """The form of a text, "tables", "overrides" or "words", and what it holds.

    Raises:
        InputError: the text is not what its form promises.
    """
    form = FORMS.get(ending) or _form(text)
    if form == "json":
        return "tables", parse_json(text, label)
    if form == "toml":
        return "tables", parse_toml(text, label)
    if form == "yaml":
        found = read_yaml(text, label)
        if not isinstance(found, dict):
            raise InputError(f"{label}: found {quote(found)}, expected keys and values")
        check_data(found, label)
        return "tables", found
    return (form, parse_overrides(text, label)) if form == "overrides" else (form, text)


def _form(text: str) -> str:
    """What a text without a telling name is."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    if text.lstrip().startswith("{"):
        return "json"
    if lines and all(OVERRIDE.fullmatch(line.removesuffix("\\").strip()) for line in lines):
        return "overrides"
    if re.search(r"(^|\s)--[a-z]", text):
        return "words"
    if any(re.fullmatch(r"\[[\w.\"-]+\]", line) for line in lines):
        return "toml"
    return "yaml"

"""Files that are nearly right: told of another family, without a family, or with a language model told twice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Keys under which files have a language model's own object."""
CLASS = re.compile(r"(.*?)(For[A-Z]\w*|Model|LMHeadModel|PreTrainedModel)?$")
"""The name of a class: its family, and its head."""


def letters(name: str) -> str:
    """A name in small letters and digits, as kinds and classes are compared.

    >>> letters("XLM-RoBERTa")
    'xlmroberta'
    """
    return re.sub(r"[^a-z0-9]", "", name.lower())


def refuse_other_class(data: Mapping[str, Any], where: str, kind: str, known: Iterable[str]) -> None:
    """Refuse a file whose `architectures` names a class of another known family than its `model_type`.

    A name that contains the other is of a part or of a variation (`Gemma3ForCausalLM` of a `gemma3_text`).

    Raises:
        InputError: it does.
    """
    names = data.get("architectures")
    name = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    match = CLASS.match(name[:100])
    found, own = letters(match[1] if match else ""), letters(kind)
    other = next((each for each in known if letters(each) == found), None)
    if other is not None and found not in own and own not in found:
        raise InputError(
            f"{where}: model_type is {quote(kind)}, but architectures names {quote(name)}, expected model_type "
            f"{other!r}; --ignore-key architectures reads the file as it is"
        )


def missing_kind(data: Mapping[str, Any], where: str, supported: str) -> InputError:
    """The line of a file without `model_type`."""
    for key in NESTED:
        inner = data.get(key)
        if isinstance(inner, dict):
            own = inner.get("model_type")
            alone = f", or the object under {key} as a file of its own: it is a {quote(own)}" if own else ""
            return InputError(
                f"{where}: model_type is missing beside {key}, expected that of the whole file, such as 'llava'{alone}"
            )
    return InputError(f"{where}: model_type is missing, expected one of {supported}")

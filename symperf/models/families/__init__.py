"""The supported model families: what the keys of their Hugging Face configs mean, one table per family."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError, nearest, quote
from ..configs import Config, Family, Parsed
from ..description import describe
from ..quantization import read_quantization
from ..unsupported import NOT_YET
from .dense import DENSE
from .encoders import ENCODERS
from .experts import EXPERTS
from .hybrids import HYBRIDS
from .multimodal import MULTIMODAL, WRAPPED
from .recent import RECENT
from .recent_experts import RECENT_EXPERTS
from .recurrent import RECURRENT
from .sparse import SPARSE_FAMILIES

if TYPE_CHECKING:
    from collections.abc import Mapping

FAMILIES: dict[str, Family] = {
    **DENSE,
    **RECENT,
    **EXPERTS,
    **RECENT_EXPERTS,
    **RECURRENT,
    **HYBRIDS,
    **ENCODERS,
    **SPARSE_FAMILIES,
    **MULTIMODAL,
}


def parse(data: Mapping[str, Any], where: str) -> Parsed:
    """Read the object of a `config.json`.

    Args:
        data: The object.
        where: The name of the file, for messages.

    Raises:
        InputError: `model_type` is missing, unknown or not supported, or a value is not what it has to be.

    """
    supported = ", ".join([*FAMILIES, *WRAPPED])
    if "model_type" not in data:
        raise InputError(f"{where}: model_type is missing, expected one of {supported}")
    model_type = data["model_type"]
    if not isinstance(model_type, str):
        raise InputError(f"{where}: model_type is {quote(model_type)}, expected one of {supported}")
    if model_type in WRAPPED:
        return read_wrapped(data, where, model_type)
    if model_type not in FAMILIES:
        for kind, names in NOT_YET.items():
            if model_type in names.split():
                raise InputError(f"{where}: model_type {model_type!r}, {kind}, is not supported yet, only {supported}")
        raise InputError(
            f"{where}: unknown model_type {quote(model_type)}, expected one of {supported}"
            f"{nearest(model_type[:60], [*FAMILIES, *WRAPPED])}"
        )
    found = describe(Config(data, where), FAMILIES[model_type], model_type)
    return replace(found, quantization=read_quantization(data, where))


def read_wrapped(data: Mapping[str, Any], where: str, model_type: str) -> Parsed:
    """Read the language model of a config that wraps one of another family beside an encoder of images or sound.

    Raises:
        InputError: there is no object of a known family where the language model should be.

    """
    key = WRAPPED[model_type]
    outer = Config(data, where)
    if not outer.holds(key):
        raise InputError(f"{where}: {key} is missing, expected an object")
    inner = dict(outer.section(key).data)
    if inner.get("model_type") in WRAPPED:
        raise InputError(f"{where}: {key}: model_type is {quote(inner['model_type'])}, expected a language model")
    if "tie_word_embeddings" in data:
        inner.setdefault("tie_word_embeddings", data["tie_word_embeddings"])
    note = f"only the language model in {key} is counted, no image or audio encoder"
    found = parse(inner, f"{where}: {key}")
    stored = found.quantization or read_quantization(data, where)
    return replace(found, family=model_type, warnings=(note, *found.warnings), quantization=stored)

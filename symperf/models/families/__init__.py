"""The supported model families: what the keys of their Hugging Face configs mean, one table per family."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError, nearest, quote
from ..configs import Config, Family, Parsed
from ..description import describe, refuse_unknown_beside, with_outer_tie
from ..quantization import read_quantization
from ..unsupported import NOT_YET
from .dense import DENSE
from .encoders import ENCODERS
from .experts import EXPERTS
from .hybrids import HYBRIDS
from .matrix_states import MATRIX_STATES
from .multimodal import FLAT, MULTIMODAL, NESTED_DEFAULTS, WRAPPED
from .recent import RECENT
from .recent_encoders import RECENT_ENCODERS
from .recent_experts import RECENT_EXPERTS
from .recent_hybrids import RECENT_HYBRIDS
from .recurrent import RECURRENT
from .sparse import SPARSE_FAMILIES
from .towers import read_towers

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGE_MODEL_ALONE = "counted, no image or audio encoder"
"""How the warning ends that a file's encoders are left out."""

FAMILIES: dict[str, Family] = {
    **DENSE,
    **RECENT,
    **EXPERTS,
    **RECENT_EXPERTS,
    **RECURRENT,
    **HYBRIDS,
    **RECENT_HYBRIDS,
    **MATRIX_STATES,
    **ENCODERS,
    **SPARSE_FAMILIES,
    **RECENT_ENCODERS,
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
    config = Config(data, where)
    found = replace(describe(config, FAMILIES[model_type], model_type), quantization=read_quantization(data, where))
    return with_towers(config, model_type, found)


def with_towers(config: Config, model_type: str, found: Parsed) -> Parsed:
    """A language model with the encoders that stand beside it; the warning that there are none goes."""
    towers = read_towers(config, model_type, found)
    notes = [f"{tower.part}_config: {note}" for tower in towers for note in tower.encoder.warnings]
    if not towers:
        return found
    kept = [note for note in found.warnings if not note.endswith(LANGUAGE_MODEL_ALONE)]
    return replace(found, towers=towers, warnings=(*kept, *notes))


def read_wrapped(data: Mapping[str, Any], where: str, model_type: str) -> Parsed:
    """Read the language model of a config that wraps one of another family beside an encoder of images or sound.

    Raises:
        InputError: there is no object of a known family where the language model should be.

    """
    key = WRAPPED[model_type]
    outer = Config(data, where)
    place = f"{where}: {key}"
    if outer.holds(key):
        inner = dict(outer.section(key).data)
    elif model_type in FLAT:
        kept = {name: value for name, value in data.items() if name not in ("vision_config", key)}
        inner, place = {**kept, "model_type": FLAT[model_type]}, where
    else:
        raise InputError(f"{where}: {key} is missing, expected an object")
    if inner.get("model_type") in WRAPPED:
        raise InputError(f"{where}: {key}: model_type is {quote(inner['model_type'])}, expected a language model")
    if place != where:
        inner = dict(with_outer_tie(outer, Config(inner, place)))
        refuse_unknown_beside(outer)
    kind = inner.get("model_type")
    defaults = NESTED_DEFAULTS.get(kind, {}) if isinstance(kind, str) else {}
    taken = {name: value for name, value in defaults.items() if name not in inner}
    found = parse(inner | taken, place)
    notes = [f"only the language model in {key} is {LANGUAGE_MODEL_ALONE}"]
    if taken:
        told = ", ".join(f"{name} = {value}" for name, value in taken.items())
        notes.append(f"{key}: the class defaults of {kind} are taken: {told}")
    stored = found.quantization or read_quantization(data, where)
    found = replace(found, family=model_type, warnings=(*notes, *found.warnings), quantization=stored)
    return with_towers(outer, model_type, found)

"""The supported model families: what the keys of their Hugging Face configs mean, one table per family."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError, nearest, quote
from ..configs import Config, Family, Parsed
from ..description import describe, language_model_of, refuse_unknown_beside, with_outer_tie
from ..quantization import read_quantization
from ..unsupported import NOT_YET
from .dense import DENSE
from .encoders import ENCODERS
from .experts import EXPERTS
from .hybrids import HYBRIDS
from .matrix_states import MATRIX_STATES
from .multimodal import FLAT, MULTIMODAL, NESTED_DEFAULTS, SPEAKING, THINKERS, WRAPPED
from .near_misses import missing_kind, refuse_other_class
from .older import OLDER
from .own_heads import OWN_HEADS
from .paired import PAIRED, read_pair
from .recent import RECENT
from .recent_encoders import RECENT_ENCODERS
from .recent_experts import RECENT_EXPERTS
from .recent_hybrids import RECENT_HYBRIDS
from .recurrent import RECURRENT
from .side_blocks import SIDE_BLOCKS
from .sparse import SPARSE_FAMILIES
from .speech import SPEECH
from .towers import read_towers
from .two_towers import TWO_TOWERS, read_two_towers

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGE_MODEL_ALONE = "counted, no image or audio encoder"
"""How the warning ends that a file's encoders are left out."""

TOLD = 60
"""Names of families that a refusal lists; the nearest ones it tells beside."""

FAMILIES: dict[str, Family] = {
    **DENSE,
    **RECENT,
    **EXPERTS,
    **RECENT_EXPERTS,
    **RECURRENT,
    **HYBRIDS,
    **MATRIX_STATES,
    **RECENT_HYBRIDS,
    **ENCODERS,
    **SPARSE_FAMILIES,
    **RECENT_ENCODERS,
    **SPEECH,
    **OWN_HEADS,
    **OLDER,
    **SIDE_BLOCKS,
    **MULTIMODAL,
}

NO_CLASS = """
    bailing_moe bailing_moe_v2 deepseek deepseek_ref grok-1 internlm kimi_k2 mimo minimax_m3 minimax_m3_text
    nemotron-nas arctic baichuan chatglm deci internlm2 kimi_k3 minicpm minimax_m1 minimax_text_01 phi-msft qwen
    RefinedWeb RefinedWebModel internvl_chat rwkv7
"""
OWN_CODE = frozenset(NO_CLASS.split())
"""Kinds of models that transformers has no class for."""


def defaults_of(family: str) -> str:
    """Where the class defaults of a kind of models are from.

    >>> defaults_of("llama")
    'transformers 5.24'
    """
    return "the code of its checkpoints" if family in OWN_CODE else "transformers 5.24"


def parse(data: Mapping[str, Any], where: str) -> Parsed:
    """Read the object of a `config.json`.

    Args:
        data: The object.
        where: The name of the file, for messages.

    Raises:
        InputError: `model_type` is missing, unknown or not supported, or a value is not what it has to be.

    """
    known = [*FAMILIES, *WRAPPED, *THINKERS, *PAIRED, *TWO_TOWERS]
    supported = f"{', '.join(known[:TOLD])} and {len(known) - TOLD} others"
    if "model_type" not in data:
        raise missing_kind(data, where, supported)
    model_type = data["model_type"]
    if not isinstance(model_type, str):
        raise InputError(f"{where}: model_type is {quote(model_type)}, expected one of {supported}")
    if model_type in WRAPPED or (model_type in FAMILIES and model_type not in OWN_CODE):
        refuse_other_class(data, where, model_type, (*FAMILIES, *WRAPPED))
    if model_type in WRAPPED:
        return read_wrapped(data, where, model_type)
    if model_type in THINKERS:
        return read_thinker(data, where, model_type)
    if model_type in PAIRED:
        return read_pair(data, where, model_type)
    if model_type in TWO_TOWERS:
        return read_two_towers(data, where, model_type)
    if model_type not in FAMILIES:
        for kind, names in NOT_YET.items():
            if model_type in names.split():
                raise InputError(f"{where}: model_type {model_type!r}, {kind}, is not supported yet, only {supported}")
        raise InputError(
            f"{where}: unknown model_type {quote(model_type)}, expected one of {supported}"
            f"{nearest(model_type[:60], known)}"
        )
    config = Config(data, where)
    found = replace(describe(config, FAMILIES[model_type], model_type), quantization=read_quantization(data, where))
    found = with_towers(config, model_type, found)
    return replace(found, defaults=tuple(config.defaults().items()))


def read_thinker(data: Mapping[str, Any], where: str, model_type: str) -> Parsed:
    """Read what listens, sees and writes of a config that speaks too.

    Raises:
        InputError: there is no object of it.
    """
    outer, key = Config(data, where), THINKERS[model_type]
    if not outer.holds(key):
        raise InputError(f"{where}: {key} is missing, expected an object")
    inner = {**outer.section(key).data, "model_type": f"{model_type}_thinker"}
    outer.used |= set(SPEAKING)
    refuse_unknown_beside(outer, {})
    found = parse(inner, f"{where}: {key}")
    note = f"only the model in {key} is counted, not what speaks"
    return replace(
        found,
        family=model_type,
        warnings=(note, *found.warnings),
        quantization=found.quantization or read_quantization(data, where),
    )


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
    if outer.holds(key) or model_type not in FLAT:
        inner = dict(language_model_of(outer, key).data)
    else:
        kept = {name: value for name, value in data.items() if name not in ("vision_config", key)}
        inner, place = {**kept, "model_type": FLAT[model_type]}, where
    if inner.get("model_type") in WRAPPED:
        raise InputError(f"{where}: {key}: model_type is {quote(inner['model_type'])}, expected a language model")
    if place != where:
        inner = dict(with_outer_tie(outer, Config(inner, place)))
        refuse_unknown_beside(outer, inner)
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
    found = with_towers(outer, model_type, found)
    above = f"{key}." if place != where else ""
    inside: dict[str, object] = {f"{above}{name}": value for name, value in (*taken.items(), *found.defaults)}
    return replace(found, defaults=tuple((inside | outer.defaults()).items()))

"""Heads that draft tokens from the hidden states of another model: its own modules (MTP), or files of EAGLE.

Such a head is a `Model` of one layer whose `Architecture.draft_head` says what it reads; the tables of tokens are those
of the model that it drafts for. Sources: DeepSeek-AI 2024, V3, section 2.2; Li et al. 2024 (EAGLE) and 2025 (EAGLE-3);
vLLM, model_executor/models/deepseek_mtp.py @03356f8c, llama_eagle.py @00da9231 and llama_eagle3.py @00bd1493.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from ..common.errors import InputError, nearest, quote
from .architecture import DraftHead
from .config_files import find_config
from .model import Model, make_model

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from .architecture import Architecture, LayerKind

OWN_KEYS: Final = (
    "draft_vocab_size",
    "eagle_config",
    "eagle_aux_hidden_state_layer_ids",
    "norm_before_residual",
    "norm_before_fc",
    "target_hidden_size",
)
"""Keys of heads' files that no model has; what they say beside `draft_vocab_size` and `target_hidden_size` moves or
adds a norm."""
FILES: Final = tuple(name for name in get_args(DraftHead) if name.startswith("eagle"))
"""Heads that have files of their own."""
SPECULATIONS: Final = ("mtp", *FILES, "draft")
"""Ways to draft."""


def draft_of(model: Model, draft: Model | str | os.PathLike[str] | None, way: str | None = None) -> Model | None:
    """What drafts for a model: its own head, a head of a file, or another model; None where nothing is asked for.

    Args:
        model: that is drafted for.
        draft: a model, the name or path of one, or the path of a head's file.
        way: one of `SPECULATIONS`; by default what the file says.

    Raises:
        InputError: an unknown way, a model without the head that is asked for, or a file that is none.
    """
    if way is None and draft is None:
        return None
    if way is not None and way not in SPECULATIONS:
        raise InputError(
            f"speculate: found {quote(way)}, expected {' or '.join(SPECULATIONS)}{nearest(str(way), SPECULATIONS)}"
        )
    if way == "mtp":
        if draft is not None:
            raise InputError("draft: found a model beside speculate = mtp, expected none: the head is the model's own")
        return own_head(model)
    if draft is None:
        raise InputError(f"draft: missing, expected the file of a head or a model for speculate = {way}")
    if isinstance(draft, Model):
        return draft
    found = find_config(draft)
    kind = _kind_of(found.data) if way is None else way
    if kind not in FILES:
        return Model.load(draft)
    return _from_file(found.name, found.source, found.data, found.where, kind, model)


def own_head(model: Model) -> Model:
    """A model's module for multi-token prediction, as a model.

    Raises:
        InputError: it has none.
    """
    architecture = model.architecture
    if not architecture.multi_token_head:
        raise InputError(
            f"speculate: found mtp, but {model.name} has no layers for multi-token prediction; expected eagle or "
            "eagle3 with the file of a head, or draft with a model (draft)"
        )
    return _head(model, "mtp", f"{model.name} MTP", _module(architecture))


def _module(architecture: Architecture) -> LayerKind:
    """The layer of a module; it has no earlier layer whose selection of keys it could take."""
    kind = architecture.module_kind
    return replace(kind, traits=tuple("indexer" if trait == "reused_index" else trait for trait in kind.traits))


def _head(model: Model, what: DraftHead, name: str, kind: LayerKind, sizes: Mapping[str, int] | None = None) -> Model:
    """One layer of a kind with what stands before it, as a model."""
    one = replace(kind, count="num_layers")
    architecture = replace(model.architecture, kinds=(one,), multi_token_head=False, draft_head=what)
    found = dict(model.sizes if sizes is None else sizes) | {"num_layers": 1}
    return replace(model, name=name, architecture=architecture, sizes=found, layers=((0, 1),), towers=(), warnings=())


def _kind_of(data: Mapping[str, Any]) -> str:
    """What the file of a head says that it is; "draft" where it is a model."""
    named = str(data.get("speculators_model_type") or "") + "".join(map(str, data.get("architectures") or ()))
    if "eagle3" in named.lower() or any(key in data for key in OWN_KEYS):
        return "eagle3"
    return "eagle" if "eagle" in named.lower() else "draft"


def _from_file(name: str, source: str, data: Mapping[str, Any], where: str, kind: str, target: Model) -> Model:
    """The head of a file in the form of a `config.json`, or of the library speculators, which has that inside.

    Raises:
        InputError: no head of one layer, or one that is made for another width.
    """
    inner = data.get("transformer_layer_config")
    own = dict(data) | (inner if isinstance(inner, dict) else {})
    described = inner if isinstance(inner, dict) else {key: v for key, v in data.items() if key not in OWN_KEYS}
    head = make_model(name, source, described, where)
    if head.sizes["num_layers"] != 1 or head.architecture.kinds[0].mixer != "attention":
        raise InputError(f"{where}: found {head.sizes['num_layers']} layers, expected a head of one layer of attention")
    width, made_for = target.sizes["hidden_size"], own.get("target_hidden_size") or head.sizes["hidden_size"]
    if not made_for == head.sizes["hidden_size"] == width:
        found = made_for if made_for != width else head.sizes["hidden_size"]
        raise InputError(f"{where}: the head is made for {quote(found)} hidden features, but {target.name} has {width}")
    sizes, layer = dict(head.sizes), head.architecture.kinds[0]
    if kind == "eagle":
        # Its first layer has no norm before attention, and nothing follows the layer (llama_eagle.py).
        plain = replace(head, architecture=replace(head.architecture, final_norm=False))
        return _head(plain, "eagle", name, replace(layer, traits=(*layer.traits, "normalised_input")), sizes)
    vocabulary = own.get("draft_vocab_size") or sizes["vocab_size"]
    if not isinstance(vocabulary, int) or isinstance(vocabulary, bool) or not 0 < vocabulary <= sizes["vocab_size"]:
        raise InputError(f"{where}: draft_vocab_size is {quote(vocabulary)}, expected 1 to {sizes['vocab_size']}")
    sizes |= {"vocab_size": vocabulary}
    return _head(head, "eagle3", name, replace(layer, traits=(*layer.traits, "joined_embedding")), sizes)


def head_modules(draft: Model) -> int:
    """Modules of a head that have weights and a cache of their own; passes of EAGLE share one."""
    own = draft.sizes.get("num_multi_token_layers", 1) if draft.architecture.draft_head == "mtp" else 1
    return max(1, own)

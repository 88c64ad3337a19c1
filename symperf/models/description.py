"""What a config says, by the table of its family: structure, sizes, kinds of layers, and warnings."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from .architecture import Architecture, LayerKind, count_name
from .configs import Config, Family, Parsed, Sizes, optional
from .keys import BESIDE_THE_LANGUAGE_MODEL, refuse_unknown, without_cost
from .layouts import all_or_windowed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .configs import Runs

EXPERTS = "mixture-of-experts layers"
NOT_CARRIED = {
    "num_experts": ("num_experts", EXPERTS),
    "num_local_experts": ("num_experts", EXPERTS),
    "n_routed_experts": ("num_experts", EXPERTS),
    "moe_num_experts": ("num_experts", EXPERTS),
    "kv_lora_rank": ("kv_lora_rank", "latent attention layers"),
    "is_encoder_decoder": ("encoder", "encoders"),
    "add_cross_attention": ("", "cross-attention layers"),
    "block_configs": ("", "layers of different sizes"),
}
"""Keys that, when set, make another architecture of a known family that has not the size; and what they make."""

QUANTIZATION = frozenset(("quantization_config", "compression_config"))
"""Read by `symperf.models.quantization`."""

KEY_VALUE_HEADS = ("num_key_value_heads", "num_kv_heads", "attn_config")

CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")


def describe(config: Config, family: Family, model_type: str) -> Parsed:
    """Read a config by the table of its family.

    Raises:
        InputError: A key that the family needs is missing, or holds something else than the table expects.

    """
    inner = config
    notes = []
    if family.section:
        inner = language_model_of(config, family.section)
        inner.data = with_outer_tie(config, inner)
        notes.append(f"only the language model in {family.section} is counted, no image or audio encoder")
    _refuse_other_architectures(inner, family, model_type)

    sizes: Sizes = {}
    for name, rule in family.sizes.items():
        sizes[name] = rule(inner, sizes) if callable(rule) else rule
    a, a_kv = sizes["num_attention_heads"], sizes["num_key_value_heads"]
    if a and a % a_kv:
        default = "" if inner.data.keys() & KEY_VALUE_HEADS else f" taken where {KEY_VALUE_HEADS[0]} is missing"
        raise InputError(
            f"{inner.where}: the {a} attention heads are not a multiple of the {a_kv} key-value heads{default}"
        )
    if sizes.get("num_experts_per_token", 0) > sizes.get("num_experts", 0):
        raise InputError(
            f"{inner.where}: a token passes {sizes['num_experts_per_token']} of {sizes['num_experts']} experts"
        )
    sizes |= expert_groups(inner, family, sizes)
    inner.forget("n_group", "num_expert_group", "topk_group", "topk_method")  # they decide no count
    choices: dict[str, Any] = {name: rule(inner) if callable(rule) else rule for name, rule in family.layers.items()}

    lengths = [inner.integer(key) for key in CONTEXT if inner.holds(key)]
    context = lengths[0] if lengths else None
    window = family.window(inner)
    kinds, order = count_kinds((family.kinds or all_or_windowed)(inner, sizes, window is not None), sizes)
    if not any(kind.mixer in ("local_attention", "compressed_attention") for kind in kinds):
        window = None
    if window is not None:
        sizes["sliding_window"] = window
    caps = _soft_caps(inner, family)
    choices |= {
        "kinds": kinds,
        "latent_experts": sizes.get("moe_latent_size", 0) > 0,
        "grouped_routing": sizes.get("num_expert_groups", 0) > 0,
        "shared_experts": sizes.get("shared_expert_intermediate_size", 0) > 0,
        "attention_residuals": sizes.get("residual_block", 0) > 0,
        "scored_shared_experts": sizes.get("num_scored_experts", 0) > 0,
        "hyper_connections": sizes.get("num_streams", 0) > 0,
        "low_rank_residual": sizes.get("residual_rank", 0) > 0,
        "layer_inputs": sizes.get("layer_input_size", 0) > 0,
        "alternating_updates": sizes.get("num_update_streams", 0) > 0,
        "query_compression": sizes.get("q_lora_rank", 0) > 0,
        "multi_token_head": sizes.get("num_multi_token_layers", 0) > 0,
        "attention_soft_capping": "attn_logit_softcapping" in caps,
        "logit_soft_capping": bool({"final_logit_softcapping", "logits_soft_cap"} & set(caps)),
    }
    # Latent attention without positions has no rotary part in its keys, which formulas have a symbol for.
    kept = (*BASE_SIZES, *(("qk_rope_head_dim",) if sizes.get("kv_lora_rank") else ()))
    sizes = {name: size for name, size in sizes.items() if size or name in kept}
    architecture = Architecture(**choices)
    inner.used |= set(family.harmless)
    if inner is not config:
        refuse_unknown_beside(config, inner.data)
    notes += _warnings(inner, family, caps)
    return Parsed(model_type, architecture, sizes, order, context, window, tuple(notes))


def expert_groups(config: Config, family: Family, sizes: Sizes) -> Sizes:
    """Groups of experts, and of how many of them a token may choose; nothing where it may choose any expert.

    Raises:
        InputError: the groups are not alike, or a token chooses more than there are.

    """
    config.used |= {"n_group", "num_expert_group", "topk_group"}
    if config.text("topk_method", "noaux_tc", ("greedy", "group_limited_greedy", "noaux_tc")) == "greedy":
        return {}
    groups = optional("n_group", "num_expert_group", absent=family.groups[0], null=1)(config, sizes)
    absent = 1 if groups == 1 else family.groups[1] or None
    chosen = optional("topk_group", absent=absent, null=groups)(config, sizes)
    if chosen > groups:
        raise InputError(f"{config.where}: topk_group is {chosen}, expected at most the {groups} groups of experts")
    if chosen == groups or not sizes.get("num_experts"):
        return {}
    if sizes["num_experts"] % groups:
        raise InputError(f"{config.where}: the {sizes['num_experts']} experts do not form {groups} groups alike")
    return {"num_expert_groups": groups, "expert_groups_per_token": chosen}


BASE_SIZES = (
    "hidden_size",
    "num_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "position_rows",
)
"""Sizes that every model has, if only as 0."""


def count_kinds(runs: Runs, sizes: Sizes) -> tuple[tuple[LayerKind, ...], tuple[tuple[int, int], ...]]:
    """The kinds with the names of their counts, and the layers in order as runs of an index and a number.

    The counts go to the sizes where there are several kinds; of kinds that differ in sizes or traits alone all but the
    first have a number in the name of their count.
    """
    places = {kind: place for place, kind in enumerate(dict.fromkeys(kind for kind, _ in runs))}
    order = tuple((places[kind], count) for kind, count in runs)
    if len(places) == 1:
        return tuple(places), order
    counts = [sum(count for place, count in order if place == each) for each in range(len(places))]
    kinds, taken = [], set[str]()
    for kind, count in zip(places, counts, strict=True):
        mixers = "_".join((kind.mixer, *kind.beside))
        base = count_name(mixers, kind.ffn, encoder=kind.encoder, cross=kind.cross)
        names = (base if number == 1 else f"{base}_{number}" for number in itertools.count(1))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        sizes[name] = count
        kinds.append(replace(kind, count=name))
    return tuple(kinds), order


def language_model_of(config: Config, key: str) -> Config:
    """The language model's object.

    Raises:
        InputError: there is none, or it holds another one.
    """
    if not config.holds(key):
        flat = "; its keys stand at the top of the file" if "hidden_size" in config.data else ""
        raise InputError(f"{config.where}: {key} is missing, expected an object{flat}")
    inner = config.section(key)
    if isinstance(inner.data.get(key), dict):
        raise InputError(f"{inner.where}: holds another {key}, expected the language model's own keys")
    return inner


def with_outer_tie(outer: Config, inner: Config) -> dict[str, Any]:
    """The keys of a nested language model, with what the file around it says of tied embeddings.

    Raises:
        InputError: the two contradict each other.
    """
    key = "tie_word_embeddings"
    outer.used.add(key)
    if key not in outer.data:
        return dict(inner.data)
    if inner.data.get(key, outer.data[key]) != outer.data[key]:
        inner.fail(key, f"{str(outer.data[key]).lower()} as the file around it says")
    return dict(inner.data) | {key: outer.data[key]}


def refuse_unknown_beside(outer: Config, inner: Mapping[str, Any]) -> None:
    """Refuse unknown keys beside a nested language model, as within it; those that it has too have to agree.

    Raises:
        InputError: there is one.
    """
    outer.used |= QUANTIZATION
    if outer.data.get("is_encoder_decoder") is False:
        outer.used.add("is_encoder_decoder")
    for key, value in inner.items():
        if key not in outer.used and key not in BESIDE_THE_LANGUAGE_MODEL and not without_cost(key):
            outer.used.add(key)
            if outer.data.get(key, value) not in (value, None):
                outer.fail(key, f"{quote(value)} as the language model's own object says")
    refuse_unknown(outer, BESIDE_THE_LANGUAGE_MODEL)


def _refuse_other_architectures(config: Config, family: Family, model_type: str) -> None:
    for key, (size, what) in NOT_CARRIED.items():
        value = config.data.get(key)
        if size == "encoder" and "encoder" in family.traits:
            config.used |= {key, "num_hidden_layers"}
            continue
        if size in family.sizes or key in family.traits:
            continue
        config.used.add(key)
        if value is True or (value and value != 1):
            config.fail(key, f"no such key: {what} are not supported in {model_type!r} yet")
    for key, expected in (family.only or {}).items():
        config.used.add(key)
        absent = (family.absent or {}).get(key, expected)
        if key not in config.data and absent != expected:
            raise InputError(
                f"{config.where}: {key} is missing, for which the class takes {str(absent).lower()}, expected "
                f"{str(expected).lower()}: other values are not supported yet"
            )
        if config.data.get(key, expected) != expected:
            config.fail(key, f"{str(expected).lower()}: other values are not supported yet")


def _soft_caps(config: Config, family: Family) -> list[str]:
    keys = dict.fromkeys(("attn_logit_softcapping", "final_logit_softcapping"), "soft_capping" in family.traits)
    if "output_soft_capping" in family.traits:
        keys["logits_soft_cap"] = True
    config.used |= set(keys)
    return [key for key, absent in keys.items() if (config.data[key] is not None if key in config.data else absent)]


def _warnings(config: Config, family: Family, caps: list[str]) -> list[str]:
    """What a config says, one line each, that the cost does not carry."""
    notes = []
    if caps:
        notes.append(f"the elementwise work of soft-capping ({', '.join(caps)}) is left out")
    config.used |= QUANTIZATION
    config.used |= {"sliding_window", "layer_types"}
    refuse_unknown(config, family.harmless)
    for section in config.sections.values():
        refuse_unknown(section, ())
    return notes

"""How a Hugging Face config is read: checked access to its keys, and the rules that family tables are made of.

The tables themselves are in `symperf.families`. No text from a config is ever evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from symperf.errors import InputError, shown

LARGEST = 10**12
"""Sizes above this are refused: no tensor dimension, and no layer count, comes near it."""

Sizes = dict[str, int]


@dataclass(frozen=True)
class Architecture:
    """The structural choices of a decoder: what changes the form of its cost, and no size.

    Attributes:
        gated_mlp: The MLP has three matrices (SwiGLU, GeGLU) and not two.
        norm: The kind of every norm of hidden width.
        positions: How positions enter; only `learned` has parameters.
        tied_embeddings: The output projection is the token table.
        parallel_block: Attention and MLP read the same residual stream and are added together.
        block_norms: Norms of hidden width in a layer: 1, 2 or 4.
        norm_bias: These norms have a bias next to their scale.
        qkv_bias: The query, key and value projections have biases.
        attention_output_bias: The output projection of attention has a bias.
        mlp_bias: All matrices of the MLP have biases.
        head_bias: The output projection to the vocabulary has a bias.
        query_key_norm: Norms of queries and keys: one scale of head width for each (`per_head`), or a scale
            for every query and key channel (`full_width`).
        embedding_norm: A norm follows the token table (BLOOM).
        final_norm: A norm precedes the output projection.
        dropout: Training drops out: some dropout probability is above zero.

    """

    gated_mlp: bool
    norm: Literal["layer_norm", "rms_norm"]
    positions: Literal["learned", "rotary", "alibi", "none"]
    tied_embeddings: bool
    parallel_block: bool
    block_norms: int
    norm_bias: bool
    qkv_bias: bool
    attention_output_bias: bool
    mlp_bias: bool
    head_bias: bool
    query_key_norm: Literal["none", "per_head", "full_width"]
    embedding_norm: bool
    final_norm: bool
    dropout: bool


@dataclass(frozen=True)
class Parsed:
    """What a config says: the fields of `symperf.model.Model` that do not depend on where it was found."""

    family: str
    architecture: Architecture
    sizes: Sizes
    context: int | None
    sliding_window: int | None
    warnings: tuple[str, ...]


class Config:
    """A config read key by key: checks every value and remembers which keys have been used."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where
        self.used: set[str] = set()

    def fail(self, key: str, expected: str) -> NoReturn:
        """Raise the `InputError` for a key whose value is not what was expected."""
        raise InputError(f"{self.where}: {key} is {shown(self.data[key])}, expected {expected}")

    def integer(self, key: str, *, smallest: int = 1) -> int:
        """The value of a key that has to hold an integer in [`smallest`, `LARGEST`]."""
        self.used.add(key)
        value = self.data[key]
        if type(value) is not int or value < smallest:
            self.fail(key, "a positive integer" if smallest == 1 else f"an integer, {smallest} or more")
        if value > LARGEST:
            self.fail(key, f"at most {LARGEST:.0e}")
        return int(value)

    def flag(self, key: str, absent: bool) -> bool:
        """The value of a key that has to hold true or false."""
        self.used.add(key)
        value = self.data.get(key, absent)
        if not isinstance(value, bool):
            self.fail(key, "true or false")
        return value

    def probability(self, key: str, absent: float) -> float:
        """The value of a key that has to hold a number from 0 to 1; null is 0."""
        self.used.add(key)
        value = self.data.get(key, absent)
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.fail(key, "a probability from 0 to 1")
        return float(value)

    def text(self, key: str, absent: str, choices: tuple[str, ...]) -> str:
        """The value of a key that has to hold one of a few words."""
        self.used.add(key)
        value = self.data.get(key, absent)
        if value not in choices:
            self.fail(key, " or ".join(choices))
        return str(value)

    def holds(self, key: str) -> bool:
        """Whether the key is there and not null."""
        self.used.add(key)
        return self.data.get(key) is not None

    def section(self, key: str) -> Config:
        """The object under a key; an empty one where the key is absent or null."""
        if not self.holds(key):
            return Config({}, f"{self.where}: {key}")
        if not isinstance(self.data[key], dict):
            self.fail(key, "an object")
        return Config(self.data[key], f"{self.where}: {key}")


# The entries of the tables ------------------------------------------------------------------------------

Rule = Callable[[Config, Sizes], int]
"""A size that follows from the config and from the sizes found before it."""


def heads(_: Config, sizes: Sizes) -> int:
    """As many as there are attention heads."""
    return sizes["num_attention_heads"]


def hidden_by_heads(config: Config, sizes: Sizes) -> int:
    """The hidden size divided by the heads."""
    width, remainder = divmod(sizes["hidden_size"], sizes["num_attention_heads"])
    if remainder:
        raise InputError(
            f"{config.where}: the hidden size {sizes['hidden_size']} is not a multiple of the "
            f"{sizes['num_attention_heads']} attention heads, and no head_dim is given"
        )
    return width


def four_hidden(_: Config, sizes: Sizes) -> int:
    """Four times the hidden size."""
    return 4 * sizes["hidden_size"]


def required(*keys: str) -> Rule:
    """A size that the file has to give under one of the keys, the first one by preference."""
    return optional(*keys, absent=None)


def optional(*keys: str, absent: int | Rule | None, null: int | Rule | None = None, add: int = 0) -> Rule:
    """A size that may be left out.

    Args:
        keys: Names of the same size; a file may give several if they agree.
        absent: The value where no key is there; None where the size is required.
        null: The value where the key holds null; None where null is refused.
        add: Added to a value from the file (OPT has two more position rows than positions).

    """

    def rule(config: Config, sizes: Sizes) -> int:
        present = [key for key in keys if config.holds(key)]
        if not present:
            nulls = [key for key in keys if key in config.data]
            if nulls and null is None:
                config.fail(nulls[0], "a positive integer")
            fallback = null if nulls else absent
            if fallback is None:
                also = f" (or {', '.join(keys[1:])})" if keys[1:] else ""
                raise InputError(f"{config.where}: {keys[0]}{also} is missing, expected a positive integer")
            return fallback(config, sizes) if callable(fallback) else fallback
        value = config.integer(present[0])
        for key in present[1:]:
            if config.integer(key) != value:
                config.fail(key, f"{value} as {present[0]} says")
        return value + add

    return rule


def flag(key: str, absent: bool, *, yes: object = True, no: object = False) -> Callable[[Config], object]:
    """A structural choice that a boolean key decides."""
    return lambda config: yes if config.flag(key, absent) else no


def dropping(*keys: str, absent: float = 0.0) -> Callable[[Config], bool]:
    """Whether any of the dropout probabilities is above zero; `absent` is the class default of one left out."""

    def rule(config: Config) -> bool:
        values = [config.probability(key, absent) for key in keys]
        return max(values) > 0

    return rule


def tied(absent: bool) -> Callable[[Config], object]:
    """Whether the embeddings are tied; many files leave the key out and mean their class default."""
    return flag("tie_word_embeddings", absent)


def window(absent: int | None, *, switch: str | None = None) -> Callable[[Config], int | None]:
    """The attention window in tokens, if any: `switch` names a key that turns it on (Qwen)."""

    def rule(config: Config) -> int | None:
        on = config.flag(switch, False) if switch else True
        kinds = config.data.get("layer_types")
        config.used |= {"layer_types", "max_window_layers"}
        if isinstance(kinds, list) and "sliding_attention" not in kinds:
            on = False
        size = absent if "sliding_window" not in config.data else None
        if config.holds("sliding_window"):
            size = config.integer("sliding_window")
        return size if on else None

    return rule


@dataclass(frozen=True)
class Family:
    """How the configs of one `model_type` are read.

    Attributes:
        sizes: Our name of a size -> its rule, in the order in which rules may use earlier sizes.
        layers: Field of `Architecture` -> its value, or the function that finds it in the config.
        window: The attention window in tokens.
        only: Keys whose other values change the architecture in a way that is not carried.
        soft_capping: Logits are soft-capped where the keys are absent.
        section: The key whose object describes the language model (multimodal files).

    """

    sizes: Mapping[str, Rule | int]
    layers: Mapping[str, object]
    window: Callable[[Config], int | None] = lambda _: None
    only: Mapping[str, object] | None = None
    soft_capping: bool = False
    section: str | None = None


# What a config says ---------------------------------------------------------------------------------------

NOT_CARRIED = {
    "num_experts": "mixture-of-experts layers",
    "num_local_experts": "mixture-of-experts layers",
    "n_routed_experts": "mixture-of-experts layers",
    "moe_num_experts": "mixture-of-experts layers",
    "kv_lora_rank": "latent attention layers",
    "is_encoder_decoder": "encoders",
    "add_cross_attention": "cross-attention layers",
    "block_configs": "layers of different sizes",
}
"""Keys that, when set, make another architecture of a known family."""

CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")

KEYS_WITHOUT_COST = """
    activation activation_function apply_residual_connection_post_layernorm architectures
    attention_softmax_in_fp32 attn_config auto_map bias_dropout_fusion cache_implementation chunk_size_feed_forward
    clip_qkv dtype embedding_fraction gradient_checkpointing hidden_act hidden_activation
    id2label init_config init_device init_std initializer_range label2id layer_norm_eps layer_norm_epsilon layerdrop
    logit_scale logits_scaling masked_softmax_fusion max_window_layers mlp_type model_type n_special name norm_eps
    norm_epsilon norm_type offset_alibi original_max_position_embeddings partial_rotary_factor prefix
    predict_special_tokens pretraining_tp query_pre_attn_scalar rms_norm_eps rope_local_base_freq rope_parameters
    rope_scaling rope_theta rotary rotary_dim rotary_emb_base rotary_pct scale_attention_softmax_in_fp32
    scale_attn_weights scale_attn_by_inverse_layer_idx reorder_and_upcast_attn runner_max_sequence_length
    sliding_window_pattern _sliding_window_pattern sliding_window_size slow_but_exact skip_bias_add
    skip_bias_add_qkv task_specific_params tokenizer_class tokenizer_name torch_dtype transformers_version
    use_bidirectional_attention use_cache use_sliding_window verbose vision_config
"""
"""Published keys of the supported families that change neither parameters nor matrix products."""


def without_cost(key: str) -> bool:
    """Whether a key is known to say nothing about the cost, by name or by the habits of such files."""
    return (
        key in KEYS_WITHOUT_COST.split()
        or key.startswith(("_", "summary_"))
        or key.endswith(("_token_id", "_token_index", "_dropout", "_dropout_prob", "_pdrop"))
        or key == "dropout"
    )


def describe(config: Config, family: Family, model_type: str) -> Parsed:
    """Read a config by the table of its family.

    Raises:
        InputError: A key that the family needs is missing, or holds something else than the table expects.

    """
    inner = config
    notes = []
    if family.section:
        if not config.holds(family.section):
            raise InputError(f"{config.where}: {family.section} is missing, expected an object")
        inner = config.section(family.section)
        tie = "tie_word_embeddings"
        inner.data = {key: config.data[key] for key in (tie,) if key in config.data} | dict(inner.data)
        notes.append(f"only the language model in {family.section} is counted, no image or audio encoder")
    for key, what in NOT_CARRIED.items():
        value = inner.data.get(key)
        inner.used.add(key)
        if value is True or (value and value != 1):
            inner.fail(key, f"no such key: {what} are not supported in {model_type!r} yet")
    for key, value in (family.only or {}).items():
        inner.used.add(key)
        if inner.data.get(key, value) != value:
            inner.fail(key, f"{str(value).lower()}: other values are not supported yet")

    sizes: Sizes = {}
    for name, rule in family.sizes.items():
        sizes[name] = rule(inner, sizes) if callable(rule) else rule
    a, a_kv = sizes["num_attention_heads"], sizes["num_key_value_heads"]
    if a % a_kv:
        raise InputError(f"{inner.where}: the {a} attention heads are not a multiple of the {a_kv} key-value heads")
    choices: dict[str, Any] = {name: rule(inner) if callable(rule) else rule for name, rule in family.layers.items()}

    lengths = [inner.integer(key) for key in CONTEXT if inner.holds(key)]
    context = lengths[0] if lengths else None
    window = family.window(inner)
    notes += warnings_of(inner, family, window, context)
    return Parsed(model_type, Architecture(**choices), sizes, context, window, tuple(notes))


def warnings_of(config: Config, family: Family, window: int | None, context: int | None) -> list[str]:
    """What a config says, one line each, that the cost does not carry."""
    notes = []
    if window is not None and (context is None or window < context):
        notes.append(f"attention in windows of {window} tokens is costed as attention to the whole context")
    capped = [
        key
        for key in ("attn_logit_softcapping", "final_logit_softcapping")
        if (config.data[key] is not None if key in config.data else family.soft_capping)
    ]
    config.used |= {"attn_logit_softcapping", "final_logit_softcapping"}
    if capped:
        notes.append(f"the elementwise work of soft-capping ({', '.join(capped)}) is left out")
    if config.holds("quantization_config"):
        notes.append("the stored weights are quantized: the precision of the plan is used, not theirs")
    if config.holds("num_nextn_predict_layers"):
        notes.append("the layers for multi-token prediction are left out")
    config.used |= {"sliding_window", "layer_types"}
    unknown = [key for key in config.data if key not in config.used and not without_cost(key)]
    unknown = [key for key in unknown if config.data[key] is not None and config.data[key] is not False]
    if unknown:
        names = ", ".join(shown(key) for key in unknown[:8]) + (", ..." if len(unknown) > 8 else "")
        notes.append(f"keys with no known meaning for the cost are ignored: {names}")
    return notes

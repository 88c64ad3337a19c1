"""Encoders, and encoders with decoders: one table per family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import ACTIVATIONS, Config, Family, Sizes, dropping, flag, heads, hidden_by_heads, optional, require, tie
from .bases import GPT2_LAYERS, LLAMA_LAYERS, LLAMA_SIZES, NO_ATTENTION_BIAS

if TYPE_CHECKING:
    from ..configs import Kinds, Rule, Runs

BERT_SIZES: dict[str, Rule | int] = LLAMA_SIZES | {
    "num_key_value_heads": heads,
    "head_dim": hidden_by_heads,
    "position_rows": require("max_position_embeddings"),
}
BERT_LAYERS: dict[str, object] = GPT2_LAYERS | {
    "final_norm": False,
    "embedding_norm": True,
    "token_types": True,
    "head_bias": True,
    "dropout": dropping("hidden_dropout_prob", "attention_probs_dropout_prob", absent=0.1),
}


def bert_head(config: Config) -> str:
    """The head for masked tokens, where the file is of a model that has it."""
    names = config.data.get("architectures")
    masked = not isinstance(names, list) or any(
        str(name).endswith(("ForMaskedLM", "ForPreTraining", "LMHeadModel")) for name in names
    )
    return "transformed" if masked else "none"


def only_encoder(_: Config, sizes: Sizes, __: bool) -> Runs:
    """Layers that see all tokens."""
    return [(LayerKind("attention", "dense", encoder=True), sizes["num_layers"])]


def two_stacks(encoder: str, decoder: str, absent: int | None = None, *, both: bool = False) -> tuple[Rule, Kinds]:
    """Layers of both stacks from two keys; an absent one of the decoder is `absent`, or as many as the encoder has.

    Args:
        encoder: the key of its layers.
        decoder: the key of its layers.
        absent: layers of the decoder where its key is absent.
        both: neither may be.
    """

    def number(config: Config, sizes: Sizes) -> tuple[int, int]:
        first = require(encoder)(config, sizes)
        return first, optional(decoder, absent=None if both else absent or first, null=first)(config, sizes)

    def kinds(config: Config, sizes: Sizes, _: bool) -> Runs:
        first, second = number(config, sizes)
        return [
            (LayerKind("attention", "dense", encoder=True), first),
            (LayerKind("attention", "dense", cross=True), second),
        ]

    return lambda config, sizes: sum(number(config, sizes)), kinds


def same(key: str, other: str, absent: int | None = None) -> Rule:
    """A size of both stacks, which have to agree."""

    def rule(config: Config, sizes: Sizes) -> int:
        ours, theirs = (optional(name, absent=absent)(config, sizes) for name in (key, other))
        if ours != theirs:
            raise InputError(f"{config.where}: {key} is {ours} and {other} is {theirs}, expected the same in both")
        return ours

    return rule


def t5_gate(config: Config) -> bool:
    """Whether the MLP is gated (T5 v1.1, Flan-T5)."""
    config.used.add("feed_forward_proj")
    kind = config.data.get("feed_forward_proj", "relu")
    if not isinstance(kind, str):
        config.fail("feed_forward_proj", "a word such as relu or gated-gelu")
    config.used |= {"is_gated_act", "dense_act_fn"}
    return bool(kind.startswith("gated"))


def t5_activation(config: Config) -> str:
    """The function of the MLP, which stands behind `gated-` where there is a gate."""
    word = str(config.data.get("feed_forward_proj", "relu")).removeprefix("gated-")
    if word not in ACTIVATIONS:
        config.fail("feed_forward_proj", "a word such as relu or gated-gelu")
    return ACTIVATIONS[word]


def patch_sizes(side: int, *, class_token: bool = True, image: int = 224) -> dict[str, Rule | int]:
    """Patches of an image, values of a patch, and a row of positions for each and for the class.

    Args:
        side: pixels of a patch's side where the file does not say.
        class_token: a token of the class joins the patches.
        image: pixels of an image's side where the file does not say.
    """

    def patches(config: Config, _: Sizes) -> int:
        whole, patch = optional("image_size", absent=image)(config, {}), optional("patch_size", absent=side)(config, {})
        if whole < patch:
            raise InputError(f"{config.where}: image_size is {whole}, expected at least the patch_size {patch}")
        return (whole // patch) ** 2

    def features(config: Config, _: Sizes) -> int:
        patch, channels = optional("patch_size", absent=side), optional("num_channels", absent=3)
        return patch(config, {}) ** 2 * channels(config, {})

    return {
        "num_patches": patches,
        "patch_features": features,
        "position_rows": lambda config, sizes: patches(config, sizes) + class_token,
    }


def labels(config: Config, _: Sizes) -> int:
    """Classes: as many as are named, or `num_labels`."""
    if config.holds("num_labels"):
        return config.integer("num_labels")
    config.used.add("id2label")
    names = config.data.get("id2label")
    return len(names) if isinstance(names, dict) and names else 2


T5_LAYERS, T5_KINDS = two_stacks("num_layers", "num_decoder_layers")
BART_LAYERS, BART_KINDS = two_stacks("encoder_layers", "decoder_layers", 12)
T5 = Family(
    LLAMA_SIZES
    | {
        "hidden_size": require("d_model"),
        "num_layers": T5_LAYERS,
        "num_attention_heads": require("num_heads"),
        "num_key_value_heads": heads,
        "head_dim": require("d_kv"),
        "intermediate_size": require("d_ff"),
        "relative_rows": optional("relative_attention_num_buckets", absent=32),
    },
    LLAMA_LAYERS
    | NO_ATTENTION_BIAS
    | {
        "gated_mlp": t5_gate,
        "activation": t5_activation,
        "positions": "relative",
        "tied_embeddings": tie(True),
        "dropout": dropping("dropout_rate", absent=0.1),
    },
    kinds=T5_KINDS,
    traits=("encoder",),
)

ENCODERS: dict[str, Family] = {
    "bert": Family(
        BERT_SIZES | {"token_type_rows": optional("type_vocab_size", absent=2)},
        BERT_LAYERS | {"head": bert_head},
        kinds=only_encoder,
    ),
    "roberta": Family(
        BERT_SIZES | {"token_type_rows": optional("type_vocab_size", absent=2)},
        BERT_LAYERS | {"head": bert_head},
        kinds=only_encoder,
    ),
    "vit": Family(
        LLAMA_SIZES
        | {
            "num_key_value_heads": heads,
            "head_dim": hidden_by_heads,
            "vocab_size": 0,
            "num_labels": labels,
        }
        | patch_sizes(16),
        GPT2_LAYERS
        | {
            "tied_embeddings": False,
            "qkv_bias": flag("qkv_bias", True),
            "patches": True,
            "head": "labels",
            "dropout": dropping("hidden_dropout_prob", "attention_probs_dropout_prob"),
        },
        kinds=only_encoder,
    ),
    "t5": T5,
    "mt5": T5,
    "bart": Family(
        LLAMA_SIZES
        | {
            "hidden_size": require("d_model"),
            "num_layers": BART_LAYERS,
            "num_attention_heads": same("encoder_attention_heads", "decoder_attention_heads", 16),
            "num_key_value_heads": heads,
            "head_dim": hidden_by_heads,
            "intermediate_size": same("encoder_ffn_dim", "decoder_ffn_dim", 4096),
            "position_rows": optional("max_position_embeddings", absent=1026, add=2),
        },
        GPT2_LAYERS
        | {
            "final_norm": False,
            "embedding_norm": True,
            "dropout": dropping("dropout", "attention_dropout", "activation_dropout", absent=0.1),
        },
        kinds=BART_KINDS,
        only={"add_final_layer_norm": False},
        traits=("encoder",),
    ),
}
"""Families with encoders."""

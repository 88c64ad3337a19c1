"""Encoders, and encoders with decoders, as differences from BERT, ViT and BART: one table per family."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, activating, dropping, flag, heads, optional, require, tie, window
from ..layouts import in_runs
from .bases import GPT2_LAYERS, LLAMA_LAYERS, LLAMA_SIZES
from .encoders import BERT_LAYERS, BERT_SIZES, ENCODERS, bert_head, only_encoder, patch_sizes
from .tower_parts import BARE, RMS_LAYERS, with_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..configs import Rule, Runs

WORDS = ("full_attention", "sliding_attention")


def global_and_local(config: Config, sizes: Sizes, _: bool) -> Runs:
    """Layers of an encoder that see all tokens, every third by default, between those that see a window.

    Files of transformers 5 list the layers in `layer_types`. The first layer reads what the embeddings' norm gives.
    """
    layers = sizes["num_layers"]
    every = optional("global_attn_every_n_layers", absent=3)(config, sizes)
    words = config.words("layer_types", layers) or [WORDS[0 if i % every == 0 else 1] for i in range(layers)]
    for word in words:
        if word not in WORDS:
            config.fail("layer_types", " and ".join(WORDS))
    whole = LayerKind("attention", "dense", encoder=True)
    local = LayerKind("local_attention", "dense", encoder=True)
    first, *others = (whole if word == WORDS[0] else local for word in words)
    return in_runs([replace(first, traits=("normalised_input",)), *others])


def even_window(config: Config) -> int | None:
    """The window of both sides together, half of it on each.

    Raises:
        InputError: it is not even.
    """
    size = window(128, key="local_attention")(config)
    if size is not None and size % 2:
        config.fail("local_attention", "an even number of tokens, half of them on each side")
    return size


def swiglu_width(config: Config, sizes: Sizes) -> int:
    """Inner width of DINOv2: two thirds of the ratio's, up to a multiple of 8, where the MLP is gated."""
    inner = optional("mlp_ratio", absent=4)(config, sizes) * sizes["hidden_size"]
    return (inner * 2 // 3 + 7) // 8 * 8 if config.flag("use_swiglu_ffn", False) else inner


def sinusoidal(**sizes: Rule | int) -> Mapping[str, Rule | int]:
    """Sizes of BART with tables of positions of other heights."""
    return {**ENCODERS["bart"].sizes, **sizes}


BART_LAYERS = ENCODERS["bart"].layers
BART_KINDS = ENCODERS["bart"].kinds
FILES = ("num_hidden_layers", "add_bias_logits", "add_final_layer_norm", "normalize_embedding")
"""Keys of files of these families that their classes do not read."""


def between(layers: Mapping[str, object], *, sizes: Mapping[str, Rule | int], harmless: tuple[str, ...] = ()) -> Family:
    """A family of an encoder and a decoder like BART."""
    return Family(sizes, {**BART_LAYERS, **layers}, kinds=BART_KINDS, traits=("encoder",), harmless=(*FILES, *harmless))


def both_scores(config: Config, sizes: Sizes) -> int:
    """Vectors of relative positions on both sides of a token: buckets, or else positions.

    Raises:
        InputError: only one of contents and positions is scored with the other.
    """
    config.used.add("pos_att_type")
    kinds = config.data.get("pos_att_type")
    words = kinds.lower().split("|") if isinstance(kinds, str) else kinds
    if not isinstance(words, list) or sorted(str(word).strip() for word in words) != ["c2p", "p2c"]:
        if "pos_att_type" not in config.data:
            raise InputError(f"{config.where}: pos_att_type is missing, expected p2c|c2p")
        config.fail("pos_att_type", "p2c|c2p: other scores of positions are not supported yet")
    config.used |= {"max_relative_positions", "position_buckets"}
    for key in ("position_buckets", "max_relative_positions"):
        if config.data.get(key, -1) not in (-1, 0, None):
            return 2 * config.integer(key)
    return 2 * require("max_position_embeddings")(config, sizes)


def token_types(config: Config, _: Sizes) -> int:
    """Rows of the table of token types, which may be none."""
    if config.data.get("type_vocab_size", 0) == 0:
        config.used.add("type_vocab_size")
        return 0
    return config.integer("type_vocab_size")


VISION_SIZES = {**ENCODERS["vit"].sizes}
VISION_LAYERS: dict[str, object] = GPT2_LAYERS | {
    "tied_embeddings": False,
    "patches": True,
    "dropout": dropping("attention_dropout"),
}
POSITIONS = require("max_position_embeddings")
RECENT_ENCODERS: dict[str, Family] = {
    "xlm-roberta": ENCODERS["roberta"],
    "camembert": ENCODERS["roberta"],
    "distilbert": Family(
        BERT_SIZES
        | {
            "hidden_size": require("dim", "hidden_size"),
            "num_layers": require("n_layers", "num_hidden_layers"),
            "num_attention_heads": require("n_heads", "num_attention_heads"),
            "num_key_value_heads": heads,
            "intermediate_size": require("hidden_dim"),
        },
        BERT_LAYERS
        | {
            "token_types": False,
            "head": bert_head,
            "dropout": dropping("dropout", "attention_dropout", absent=0.1),
        },
        kinds=only_encoder,
        # Its table of sines is a parameter too, which is not trained.
        harmless=("sinusoidal_pos_embds", "tie_weights_"),
    ),
    "modernbert": Family(
        LLAMA_SIZES | {"num_key_value_heads": heads},
        LLAMA_LAYERS
        | {
            "norm": "layer_norm",
            "norm_bias": flag("norm_bias", False),
            "mlp_bias": flag("mlp_bias", False),
            "tied_embeddings": tie(True),
            "head": bert_head,
            "head_bias": flag("decoder_bias", True),
            "head_transform_bias": flag("classifier_bias", False),
            "embedding_norm": True,
            "activation": activating("gelu"),
            "dropout": dropping("attention_dropout", "embedding_dropout", "mlp_dropout"),
        },
        window=even_window,
        kinds=global_and_local,
        harmless=(
            *("global_rope_theta", "local_rope_theta", "classifier_activation", "classifier_pooling"),
            *("deterministic_flash_attn", "reference_compile", "repad_logits_with_grad"),
            *("sparse_prediction", "sparse_pred_ignore_index", "initializer_cutoff_factor"),
        ),
    ),
    "dinov2": Family(
        {**ENCODERS["vit"].sizes, **patch_sizes(14), "num_labels": 0, "intermediate_size": swiglu_width},
        GPT2_LAYERS
        | {
            "tied_embeddings": False,
            "gated_mlp": flag("use_swiglu_ffn", False),
            "qkv_bias": flag("qkv_bias", True),
            "patches": True,
            "layer_scale": True,
            "mask_token": flag("use_mask_token", True),
            "head": "none",
            "dropout": dropping("hidden_dropout_prob", "attention_probs_dropout_prob"),
        },
        kinds=only_encoder,
        harmless=(
            *("layerscale_value", "drop_path_rate", "apply_layernorm", "reshape_hidden_states", "out_features"),
            *("out_indices", "stage_names"),
        ),
    ),
    "deberta-v2": Family(
        BERT_SIZES | {"position_rows": 0, "token_type_rows": token_types, "relative_rows": both_scores},
        BERT_LAYERS
        | {
            "positions": "disentangled",
            "token_types": lambda config: token_types(config, {}) > 0,
            "head": bert_head,
        },
        kinds=only_encoder,
        only={"relative_attention": True, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
        | {"conv_kernel_size": 0, "position_biased_input": False},
        absent={"relative_attention": False, "share_att_key": False, "norm_rel_ebd": "none"}
        | {"position_biased_input": True},
        # Where there are buckets, positions in them count.
        harmless=(
            "max_relative_positions",
            "legacy",
            "pooler_hidden_act",
            "pooler_hidden_size",
            "pooler_dropout",
            "conv_act",
        ),
    ),
    "siglip_vision_model": Family(
        {**VISION_SIZES, **patch_sizes(16, class_token=False), "num_labels": 0},
        VISION_LAYERS
        | {
            "class_token": False,
            "head": flag("vision_use_head", True, yes="pooled", no="none"),
        },
        kinds=only_encoder,
        harmless=("projection_dim",),
    ),
    "clip_vision_model": Family(
        {**VISION_SIZES, **patch_sizes(32), "num_labels": 0},
        VISION_LAYERS | {"patch_bias": False, "embedding_norm": True, "head": "none"},
        kinds=only_encoder,
        harmless=("projection_dim",),
    ),
    "pixtral": Family(
        {**with_defaults(1024, 4096, 24, 16), **patch_sizes(16, class_token=False, image=1024)}
        | {"vocab_size": 0, "position_rows": 0, "num_labels": 0},
        RMS_LAYERS
        | BARE
        | {
            "tied_embeddings": False,
            "patches": True,
            "class_token": False,
            "patch_bias": False,
            "head": "none",
            "embedding_norm": True,
            "final_norm": False,
            "dropout": dropping("attention_dropout"),
        },
        kinds=only_encoder,
    ),
    "mbart": between({"final_norm": True}, sizes=sinusoidal()),
    "pegasus": between({"final_norm": True, "embedding_norm": False}, sizes=sinusoidal(position_rows=POSITIONS)),
    "marian": between(
        {"embedding_norm": False},
        sizes=sinusoidal(position_rows=POSITIONS, vocab_size=require("vocab_size", "decoder_vocab_size")),
        harmless=("share_encoder_decoder_embeddings",),
    ),
    # Sines are made anew, and are no parameters.
    "m2m_100": between(
        {"final_norm": True, "embedding_norm": False, "positions": "none", "activation": activating("relu")},
        sizes=sinusoidal(position_rows=0),
    ),
    "blenderbot": between({"final_norm": True, "embedding_norm": False}, sizes=sinusoidal(position_rows=POSITIONS)),
    "blenderbot-small": between({}, sizes=sinusoidal(position_rows=POSITIONS)),
}
"""Families of encoders that recombine known parts."""

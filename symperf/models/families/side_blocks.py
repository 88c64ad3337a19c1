"""Gemma-3n and Gemma-4: layers that share caches, and blocks beside attention and MLP. One table per family.

Defaults for absent keys are those of the config classes of transformers 5.24.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, optional, window
from ..layouts import all_but_every, in_runs, layer_range, windows, with_sizes
from .bases import GEMMA2_LAYERS, GEMMA2_SIZES
from .experts import GEMMA4, GLOBAL_HEADS, whole_or_none
from .recent_experts import each_layer

if TYPE_CHECKING:
    from ..architecture import FeedForward
    from ..configs import Runs
    from ..layouts import MixerRule


def shared_caches(config: Config, sizes: Sizes, windowed: bool) -> Runs:
    """The layers of Gemma-3n."""
    return sharing(config, sizes, windowed, windows(all_but_every(5)), absent=15)


def sharing(config: Config, sizes: Sizes, windowed: bool, rule: MixerRule, absent: int) -> Runs:
    """The last layers read the keys and values of the last layer before them that has the same kind of attention."""
    mixers = rule(config, sizes, windowed)
    if isinstance(mixers, str):
        mixers = [mixers for _ in layer_range(config, sizes)]
    key = "num_kv_shared_layers"
    shared = whole_or_none(key, absent=absent)(config, sizes)
    first = sizes["num_layers"] - shared
    if shared and (first < 1 or set(mixers[:first]) != set(mixers)):
        raise InputError(
            f"{config.where}: {key} is {shared}, expected layers of every kind among the {max(first, 0)} before them"
        )
    return in_runs(
        LayerKind(mixer, "dense", traits=("reused_keys",) if i >= first else ()) for i, mixer in enumerate(mixers)
    )


GEMMA3N = Family(
    GEMMA2_SIZES
    | {
        "num_attention_heads": optional("num_attention_heads", absent=8),
        "num_key_value_heads": optional("num_key_value_heads", absent=2),
        "intermediate_size": each_layer("intermediate_size", absent=16384),
        "vocab_size": optional("vocab_size", absent=262_400),
        "residual_rank": optional("laurel_rank", absent=64),
        "num_update_streams": optional("altup_num_inputs", absent=4),
        "layer_input_size": optional("hidden_size_per_layer_input", absent=256),
        "layer_input_rows": optional("vocab_size_per_layer_input", absent=262_144),
    },
    GEMMA2_LAYERS | {"query_key_norm": "per_head"},
    window=window(512),
    kinds=shared_caches,
    traits=("output_soft_capping",),
    # Zeros of an activation function are computed like other values; a scale has the width of the stream anyway.
    harmless=("activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip", "altup_correct_scale"),
)


def gemma4_layers(config: Config, sizes: Sizes, windowed: bool) -> Runs:
    """Full layers have heads of their own; the MLP of layers that read earlier caches may be twice as wide."""
    if config.flag("attention_k_eq_v", False) and whole_or_none("num_kv_shared_layers")(config, sizes):
        config.fail("attention_k_eq_v", "false where layers share caches: both are not supported yet")
    mixers = windows(lambda i, _, s: (i + 1) % 6 != 0 and i + 1 < s["num_layers"])
    ffn: FeedForward = "dense_experts" if sizes["num_experts"] else "dense"
    wide = config.flag("use_double_wide_mlp", False)
    found = []
    for kind, count in sharing(config, sizes, windowed, mixers, absent=0):
        own = tuple((size, name) for size, name in GLOBAL_HEADS.get(kind.mixer, ()) if name in sizes)
        each = replace(kind, ffn=ffn, own=own)
        double = {"intermediate_size": 2 * sizes["intermediate_size"]} if wide and kind.traits else {}
        found.append((with_sizes(each, double, sizes) if double else each, count))
    return found


GEMMA4_TEXT = replace(
    GEMMA4,
    sizes={
        **GEMMA4.sizes,
        "layer_input_size": whole_or_none("hidden_size_per_layer_input", absent=256),
        "layer_input_rows": lambda c, s: (
            optional("vocab_size_per_layer_input", absent=262_144)(c, s) if s["layer_input_size"] else 0
        ),
    },
    kinds=gemma4_layers,
    harmless=("vocab_size_per_layer_input",),
)

SIDE_BLOCKS: dict[str, Family] = {
    "gemma4_text": GEMMA4_TEXT,
    "gemma4": replace(GEMMA4_TEXT, section="text_config", only={"model_type": "gemma4_text"}),
    "gemma3n_text": GEMMA3N,
    "gemma3n": replace(GEMMA3N, section="text_config", only={"model_type": "gemma3n_text"}),
}
"""Families with blocks beside attention and MLP."""

"""The model that arguments of Megatron-LM describe, as the `config.json` of the nearest family that is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError

if TYPE_CHECKING:
    from .keys import Keys

MODEL: Final = (
    *("--num-layers", "--encoder-num-layers", "--hidden-size", "--num-attention-heads", "--num-query-groups"),
    *("--ffn-hidden-size", "--kv-channels", "--vocab-size", "--padded-vocab-size", "--max-position-embeddings"),
    *("--position-embedding-type", "--normalization", "--group-query-attention", "--swiglu", "--squared-relu"),
    *("--quick-geglu", "--disable-bias-linear", "--add-qkv-bias", "--untie-embeddings-and-output-weights"),
    *("--qk-layernorm", "--use-rotary-position-embeddings", "--multi-latent-attention", "--num-experts"),
    *("--moe-router-topk", "--moe-ffn-hidden-size", "--moe-shared-expert-intermediate-size", "--moe-layer-freq"),
    *("--q-lora-rank", "--kv-lora-rank", "--qk-head-dim", "--qk-pos-emb-head-dim", "--v-head-dim", "--window-size"),
    *(
        "--moe-router-num-groups",
        "--moe-router-group-topk",
        "--openai-gelu",
        "--no-position-embedding",
        "--mtp-num-layers",
    ),
    *("--hybrid-attention-ratio", "--hybrid-mlp-ratio", "--hybrid-override-pattern", "--mamba-state-dim"),
    *("--mamba-head-dim", "--mamba-num-groups", "--mamba-num-heads", "--is-hybrid-model", "--softmax-type"),
)
"""Options that describe the model."""
ONLY_NAMED: Final = (
    *("--multi-latent-attention", "--squared-relu", "--quick-geglu", "--moe-shared-expert-intermediate-size"),
    *("--window-size", "--moe-router-num-groups", "--moe-router-group-topk", "--hybrid-attention-ratio"),
    *("--hybrid-mlp-ratio", "--hybrid-override-pattern", "--is-hybrid-model", "--openai-gelu", "--softmax-type"),
    *("--q-lora-rank", "--kv-lora-rank", "--qk-head-dim", "--qk-pos-emb-head-dim", "--v-head-dim"),
    *("--mamba-state-dim", "--mamba-head-dim", "--mamba-num-groups", "--mamba-num-heads"),
)
"""Options of architectures that are not put together here."""
SIZES: Final = ("--hidden-size", "--num-attention-heads")


def config_of(keys: Keys, layers: int | None) -> dict[str, Any] | None:
    """The object of a `config.json`; None where the options describe no model.

    Raises:
        InputError: a part of the description is missing, or is of a family that is not put together here.
    """
    if layers is None and not any(name in keys.data for name in SIZES):
        return None
    for name in ONLY_NAMED:
        keys.refuse(name, "such a model is read from its config.json: name it before the options")
    hidden, heads = (keys.count(name) for name in SIZES)
    vocabulary = keys.count("--padded-vocab-size") or keys.count("--vocab-size")
    needed = {"--num-layers": layers, "--hidden-size": hidden, "--num-attention-heads": heads}
    for name, value in (needed | {"--vocab-size": vocabulary}).items():
        if value is None:
            raise InputError(f"{keys.label}: describes a model without {name}; add it, or name the model")
    assert hidden is not None
    assert heads is not None
    gated, biased = keys.flag("--swiglu"), not keys.flag("--disable-bias-linear")
    ffn = keys.count("--ffn-hidden-size") or (int(4 * hidden * 2 / 3 / 64) * 64 if gated else 4 * hidden)
    groups = keys.count("--num-query-groups")
    groups = (groups or 1) if keys.flag("--group-query-attention") else heads
    common = {
        "vocab_size": vocabulary,
        "tie_word_embeddings": not keys.flag("--untie-embeddings-and-output-weights"),
    }
    positions = keys.take("--position-embedding-type", str, choices=("learned_absolute", "rope", "none"))
    rotary = keys.flag("--use-rotary-position-embeddings") or positions == "rope"
    norm = keys.take("--normalization", str, choices=("LayerNorm", "RMSNorm")) or "LayerNorm"
    queries, each = keys.flag("--add-qkv-bias") or biased, keys.flag("--qk-layernorm")
    context, width = keys.count("--max-position-embeddings"), keys.count("--kv-channels")
    experts = keys.count("--num-experts")
    if gated and rotary and norm == "RMSNorm" and not biased:
        family = ("qwen3_moe" if experts else "qwen3") if each else "qwen2" if queries else "llama"
        found = common | {
            "model_type": family,
            "hidden_size": hidden,
            "intermediate_size": ffn,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": groups,
            "max_position_embeddings": context,
            "head_dim": width or hidden // heads,
        }
        return found | _experts(keys, found, experts, ffn) if experts else found
    if not (gated or rotary or each or experts) and norm == "LayerNorm" and biased and groups == heads:
        return common | {
            "model_type": "gpt2",
            "n_embd": hidden,
            "n_inner": ffn,
            "n_layer": layers,
            "n_head": heads,
            "n_positions": context or keys.count("--seq-length"),
        }
    raise InputError(
        f"{keys.label}: describes neither a GPT (LayerNorm, biases, learned positions, --swiglu not set) nor a Llama "
        "(RMSNorm, rope, --swiglu, --disable-bias-linear); name the model"
    )


def _experts(keys: Keys, found: dict[str, Any], experts: int, ffn: int) -> dict[str, Any]:
    """What a model of experts has beside a dense one."""
    width, best = keys.count("--moe-ffn-hidden-size") or ffn, keys.count("--moe-router-topk") or 2
    if keys.data.get("--moe-layer-freq") not in (None, 1, "1"):
        keys.fail("--moe-layer-freq", "1: other patterns of layers are read from a config.json; name the model")
    keys.take("--moe-layer-freq", int)
    if found["model_type"] == "qwen3_moe":
        return {"num_experts": experts, "num_experts_per_tok": best, "moe_intermediate_size": width}
    if found["model_type"] == "llama":
        same = {"model_type": "mixtral", "intermediate_size": width}
        return same | {"num_local_experts": experts, "num_experts_per_tok": best}
    raise InputError(f"{keys.label}: describes experts beside biases of queries, of which no family is put together")

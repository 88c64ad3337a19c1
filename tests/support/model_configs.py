"""The smallest model files of some families, and how a test loads one of its own."""

import json

from symperf.models.model import Model

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
FALCON = {"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 9}
MPT = {"model_type": "mpt", "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 9, "max_seq_len": 32}
OPT = {**LLAMA, "model_type": "opt", "ffn_dim": 256, "max_position_embeddings": 32}
del OPT["intermediate_size"]
_SMALL = {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 9}
MIXTRAL = {
    **LLAMA,
    "model_type": "mixtral",
    "num_key_value_heads": 2,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}
DEEPSEEK = {
    **_SMALL,
    "model_type": "deepseek_v3",
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 1,
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
}
LLAMA4 = {
    **LLAMA,
    "model_type": "llama4_text",
    "num_key_value_heads": 4,
    "intermediate_size_mlp": 256,
    "num_local_experts": 4,
    "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 2,
}
MAMBA2 = {
    "model_type": "mamba2",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "vocab_size": 9,
    "expand": 2,
    "num_heads": 4,
    "head_dim": 32,
    "state_size": 16,
    "n_groups": 1,
    "conv_kernel": 4,
    "chunk_size": 8,
}
JAMBA = {
    **_SMALL,
    "model_type": "jamba",
    "num_key_value_heads": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "attn_layer_period": 4,
    "attn_layer_offset": 1,
    "mamba_d_state": 8,
    "mamba_dt_rank": 5,
}
NEMOTRON_H = {
    **_SMALL,
    "model_type": "nemotron_h",
    "num_key_value_heads": 4,
    "hybrid_override_pattern": "M-*M",
    "mamba_num_heads": 4,
    "mamba_head_dim": 32,
    "ssm_state_size": 16,
    "n_groups": 2,
}
QWEN3_NEXT = {
    **_SMALL,
    "model_type": "qwen3_next",
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
T5 = {"model_type": "t5", "d_model": 64, "d_kv": 8, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 9}
VIT = {
    **{name: size for name, size in _SMALL.items() if name != "vocab_size"},
    "model_type": "vit",
    "id2label": {"0": "cat", "1": "dog", "2": "owl"},
}


def load_config(folder, config, ignore_keys=()):
    """The model of a configuration, or of a text that should be one."""
    path = folder / "tiny.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return Model.load(path, ignore_keys)

"""Sizes of a model. Names follow the keys of published configs, spelled out."""

from __future__ import annotations

from ..dimension import BYTE
from .entry import POSITIVE, ZERO_UP, add

hidden_size = add("model", "hidden_size", "h", "Width of the residual stream.")
num_layers = add("model", "num_layers", "L", "Transformer layers of the model.")
num_attention_heads = add("model", "num_attention_heads", "a", "Query heads of a layer.")
num_key_value_heads = add("model", "num_key_value_heads", "a_{kv}", "Key-value heads of a layer: a for MHA, 1 for MQA.")
head_dim = add("model", "head_dim", "d_h", "Width of one head.")
intermediate_size = add("model", "intermediate_size", "f", "Inner width of the MLP.")
vocab_size = add("model", "vocab_size", "V", "Rows of the token embedding.")
position_rows = add(
    "model", "position_rows", "P_{pos}", "Rows of the learned position table, 0 without one.", domain=ZERO_UP
)

encoder_position_rows = add(
    "model", "encoder_position_rows", "P_{enc}", "Rows of the encoder's position table, where they are another number."
)
mel_bins = add("model", "mel_bins", "n_{mel}", "Values of one spectrum of sound: its bands of frequency.")

# Attention of other kinds

sliding_window = add("model", "sliding_window", "w_a", "Keys that a query of a windowed layer sees, itself included.")
visible_pairs = add(
    "formal",
    "visible_pairs",
    "n_{vis}",
    "Pairs of a query and a key of one sequence that the mask leaves.",
    domain=POSITIVE,
)
global_head_dim = add("model", "global_head_dim", "d_g", "Width of a head in layers that see all keys, if another.")
num_global_key_value_heads = add(
    "model", "num_global_key_value_heads", "a_{g}", "Key-value heads in layers that see all keys, if another number."
)
q_lora_rank = add("model", "q_lora_rank", "r_q", "Width of the compressed queries of latent attention.")
kv_lora_rank = add("model", "kv_lora_rank", "r_{kv}", "Width of the compressed keys and values of latent attention.")
qk_nope_head_dim = add("model", "qk_nope_head_dim", "d_n", "Width of a latent-attention key without rotary position.")
qk_rope_head_dim = add("model", "qk_rope_head_dim", "d_r", "Width of the rotary part of a latent-attention key.")
v_head_dim = add("model", "v_head_dim", "d_v", "Width of a latent-attention value.")

index_num_heads = add("model", "index_num_heads", "a_x", "Heads of an indexer, which scores keys before attention.")
index_head_dim = add("model", "index_head_dim", "d_x", "Width of an indexer's head and of its one key.")
index_top_keys = add(
    "model", "index_top_keys", "k_x", "Keys or compressed entries that an indexer selects for a query."
)
index_top_blocks = add("model", "index_top_blocks", "k_b", "Blocks of keys that an indexer selects for a query.")
index_block_size = add("model", "index_block_size", "b_x", "Keys of a block that an indexer selects as one.")
distance_profiles = add("model", "distance_profiles", "n_{pr}", "Profiles of biases by distance that a head mixes.")
distance_extent = add("model", "distance_extent", "w_{pr}", "Distances up to which a profile has a bias for each.")
index_pool_size = add(
    "model", "index_pool_size", "b_{px}", "Keys that an indexer pools into one before it scores them."
)
compress_ratio = add("model", "compress_ratio", "m_c", "Tokens for each of which layers keep one compressed entry.")
output_groups = add("model", "output_groups", "g_o", "Groups of heads that an output projection compresses apart.")
output_lora_rank = add("model", "output_lora_rank", "r_o", "Width to which each of these groups is compressed.")
num_update_streams = add("model", "num_update_streams", "n_{au}", "Residual streams of alternating updates (AltUp).")
residual_rank = add("model", "residual_rank", "r_l", "Width of the low-rank residual beside attention (LAuReL).")
layer_input_size = add("model", "layer_input_size", "d_p", "Features that every layer gets of a token for itself.")
layer_input_rows = add("model", "layer_input_rows", "V_p", "Rows of the table of what each layer gets of a token.")
residual_block = add(
    "model", "residual_block", "B_r", "Layers whose additions to the residual stream are one source of a mixture."
)
mixture_sources = add("formal", "mixture_sources", "n_m", "Sources that a mixture of residuals reads.", domain=POSITIVE)
num_streams = add("model", "num_streams", "n_{hc}", "Residual streams that hyper-connections mix.")

# Experts

num_experts = add("model", "num_experts", "E", "Routed experts of a layer.")
num_expert_groups = add("model", "num_expert_groups", "n_{grp}", "Groups that the routed experts of a layer form.")
expert_groups_per_token = add(
    "model", "expert_groups_per_token", "k_{grp}", "Groups of experts from which a token may choose."
)
num_experts_per_token = add("model", "num_experts_per_token", "k_e", "Routed experts that a token passes.")
moe_latent_size = add(
    "model", "moe_latent_size", "h_{lat}", "Width of what routed experts read and give, where it is not the stream's."
)
expert_intermediate_size = add("model", "expert_intermediate_size", "f_e", "Inner width of a routed expert.")
expert_imbalance = add(
    "formal",
    "expert_imbalance",
    r"\chi",
    "Tokens of the fullest expert over the mean, 1 where balanced.",
    domain=POSITIVE,
)
num_scored_experts = add("model", "num_scored_experts", "E_{sh}", "Shared experts that the router scores too.")
shared_expert_intermediate_size = add(
    "model", "shared_expert_intermediate_size", "f_s", "Inner width of all shared experts of a layer together."
)

# State-space and linear-attention layers

ssm_state_size = add("model", "ssm_state_size", "n_s", "State of a channel of a state-space layer.")
ssm_num_heads = add("model", "ssm_num_heads", "a_s", "Heads of a Mamba-2 layer.")
ssm_head_dim = add("model", "ssm_head_dim", "d_s", "Channels of a Mamba-2 head.")
ssm_groups = add("model", "ssm_groups", "g_s", "Groups of heads that share B and C.")
ssm_inner_size = add("model", "ssm_inner_size", "h_s", "Channels of a Mamba-1 layer.")
ssm_time_step_rank = add("model", "ssm_time_step_rank", "r_s", "Width of the time step's projection in Mamba-1.")
ssm_chunk_size = add("model", "ssm_chunk_size", "c_s", "Tokens that a chunked scan takes as one block.")
conv_kernel = add("model", "conv_kernel", "k_c", "Taps of the causal convolution before a scan.")
linear_num_key_heads = add("model", "linear_num_key_heads", "a_{lk}", "Key heads of a linear-attention layer.")
linear_num_value_heads = add("model", "linear_num_value_heads", "a_{lv}", "Value heads of a linear-attention layer.")
linear_key_head_dim = add("model", "linear_key_head_dim", "d_{lk}", "Width of a linear-attention key.")
linear_value_head_dim = add("model", "linear_value_head_dim", "d_{lv}", "Width of a linear-attention value.")
num_shared_blocks = add("model", "num_shared_blocks", "N_B", "Blocks whose weights several layers share (Zamba2).")
adapter_rank = add("model", "adapter_rank", "r_{ad}", "Rank of the adapters of a shared block.")
lru_width = add("model", "lru_width", "h_r", "Channels of a gated linear recurrent unit.")
decay_rank = add("model", "decay_rank", "r_w", "Narrow width that decays pass through (RWKV-7).")
rate_rank = add("model", "rate_rank", "r_a", "Narrow width that in-context learning rates pass through (RWKV-7).")
value_rank = add("model", "value_rank", "r_v", "Narrow width of what values take from the first layer's (RWKV-7).")
gate_rank = add("model", "gate_rank", "r_g", "Narrow width that output gates pass through (RWKV-7).")
state_bytes = add("format", "state_bytes", "w_{st}", "Bytes of an element of a recurrent state.", BYTE, POSITIVE)

# Encoders

encoder_sequence = add("work", "encoder_sequence", "s_e", "Tokens in the encoder's sequence.")
relative_rows = add("model", "relative_rows", "P_r", "Relative positions told apart (T5, DeBERTa).", domain=ZERO_UP)
token_type_rows = add("model", "token_type_rows", "P_t", "Rows of the token-type table (BERT).", domain=ZERO_UP)
num_patches = add("model", "num_patches", "n_p", "Patches of an image.")
patch_features = add("model", "patch_features", "n_f", "Values of a patch: its pixels times their channels.")
num_labels = add("model", "num_labels", "n_l", "Classes of a classifier.")
num_multi_token_layers = add(
    "model", "num_multi_token_layers", "L_m", "Layers for multi-token prediction, beside the model's.", domain=ZERO_UP
)

# How many layers there are of each kind, in models of several kinds

_MIXERS = {
    "attention": ("att", "softmax attention over all keys"),
    "local_attention": ("win", "windowed attention"),
    "latent_attention": ("mla", "latent attention"),
    "compressed_attention": ("ca", "attention with one key that is the value"),
    "ssm": ("ssm", "a Mamba-2 mixer"),
    "ssm1": ("ssm1", "a Mamba-1 mixer"),
    "linear_attention": ("lin", "a gated delta rule"),
    "short_convolution": ("cvl", "a short convolution between two gates"),
    "gated_lru": ("lru", "a gated linear recurrent unit"),
    "lightning_attention": ("la", "lightning attention"),
    "attention_ssm": ("as", "softmax attention beside a Mamba-2 mixer"),
    "matrix_memory": ("mem", "a matrix memory"),
    "wkv": ("wkv", "a time mixing of RWKV-7"),
    "": ("", ""),
}
_FEED_FORWARDS = {
    "dense": ("mlp", "an MLP"),
    "experts": ("moe", "experts"),
    "dense_experts": ("both", "an MLP beside experts"),
    "": ("", ""),
}
for _mixer, (_short, _words) in _MIXERS.items():
    for _ffn, (_end, _more) in _FEED_FORWARDS.items():
        if _mixer or _ffn:
            _name = "_".join(part for part in (_mixer, _ffn) if part)
            _glyph = "+".join(part for part in (_short, _end) if part)
            _sentence = " and ".join(part for part in (_words, _more) if part)
            add("model", f"num_{_name}_layers", f"L_{{{_glyph}}}", f"Layers of {_sentence}.")
add("model", "num_encoder_layers", "L_{enc}", "Layers of the encoder.")
add("model", "num_decoder_layers", "L_{dec}", "Layers of the decoder, where there is an encoder too.")

"""Sizes of a model."""

from __future__ import annotations

from .entry import ZERO_UP, add

hidden_size = add("model", "hidden_size", "h", "Width of the residual stream.")
num_layers = add("model", "num_layers", "L", "Transformer layers of the model.")
num_attention_heads = add("model", "num_attention_heads", "a", "Query heads of a layer.")
num_key_value_heads = add("model", "num_key_value_heads", "a_{kv}", "Key-value heads of a layer: a for MHA, 1 for MQA.")
head_dim = add("model", "head_dim", "d_h", "Width of one head.")
intermediate_size = add("model", "intermediate_size", "f", "Inner width of the MLP.")
vocab_size = add("model", "vocab_size", "V", "Rows of the token embedding.")
position_rows = add("model", "position_rows", "P", "Rows of the learned position table, 0 without one.", domain=ZERO_UP)

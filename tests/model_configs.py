"""The smallest model files of some families, and how a test loads one of its own."""

import json

from symperf.model import Model

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


def load_config(folder, config):
    """The model of a configuration, or of a text that should be one."""
    path = folder / "tiny.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return Model.load(path)

"""What names and shapes of parameters tell: parts, layers and classes of modules."""

from __future__ import annotations

import pytest

from symperf.checking.modules import Modules, active_of, classes_of, layer_sizes, layers_of, part_of, parts_of

MIXTURE = {
    "model.embed_tokens.weight": (100, 8),
    "model.layers.0.self_attn.q_proj.weight": (8, 8),
    "model.layers.0.self_attn.q_proj.bias": (8,),
    "model.layers.0.mlp.gate_proj.weight": (16, 8),
    "model.layers.0.input_layernorm.weight": (8,),
    "model.layers.1.mixer.in_proj.weight": (32, 8),
    "model.layers.1.mixer.A_log": (4,),
    "model.layers.1.mixer.D": (4,),
    "model.layers.2.linear_attn.in_proj_qkv.weight": (24, 8),
    "model.layers.2.linear_attn.A_log": (4,),
    "model.layers.2.linear_attn.conv1d.weight": (24, 1, 4),
    "model.layers.2.mlp.experts.gate_up_proj": (4, 10, 8),
    "model.layers.2.mlp.experts.gate_up_proj_bias": (4, 10),
    "model.layers.2.mlp.gate.weight": (4, 8),
    "model.layers.2.mlp.shared_expert.up_proj.weight": (5, 8),
    "model.layers.2.mlp.shared_expert_gate.weight": (1, 8),
    "model.vision_tower.layers.0.mlp.fc1.weight": (7, 3),
    "model.multi_modal_projector.linear_1.weight": (8, 7),
    "lm_head.weight": (100, 8),
}
STACKS = {"model.layers": 3, "model.vision_tower.layers": 1}
MODULES = Modules(
    "Mixture",
    {"transformers": "5.24.0"},
    MIXTURE,
    STACKS,
    embeddings=("model.embed_tokens.weight",),
    head="lm_head.weight",
    experts=(4, 2),
)


def test_classes_of_modules_are_those_of_the_checkpoint() -> None:
    """Vectors, convolutions, biases of experts and the gate of a shared expert are among the others."""
    assert classes_of(MODULES) == {
        "embedding": 800,
        "lm_head": 800,
        "attention": 64,
        "dense_mlp": 128,
        "state_space": 256 + 4,
        "linear_attention": 192 + 4,
        "routed_experts": 320,
        "shared_experts": 40,
        "router": 32,
        "others": 8 + 8 + 4 + 96 + 40 + 8,
    }
    assert sum(classes_of(MODULES).values()) == parts_of(MODULES)["language"]


def test_a_projector_belongs_to_the_encoder_that_there_is() -> None:
    assert parts_of(MODULES)["vision"] == 21 + 56
    audio = Modules("A", {}, {"audio_tower.conv1.weight": (2, 2), "multi_modal_projector.linear.weight": (3, 2)})
    assert parts_of(audio) == {"audio": 4 + 6}
    assert part_of("model.language_model.layers.0.self_attn.q_proj.weight", audio) == "language"


def test_layers_are_those_of_the_language_model() -> None:
    """An encoder's before a decoder's; lists within layers, and those of towers, are none."""
    layers = layers_of(MODULES, 3)
    assert layers == [f"model.layers.{place}." for place in range(3)]
    assert layer_sizes(MODULES, layers) == [64 + 8 + 128 + 8, 256 + 8, 192 + 4 + 96 + 320 + 40 + 32 + 40 + 8]
    assert layers_of(MODULES, 4) is None
    stacks = {"encoder.block": 2, "encoder.block.0.layer": 2, "decoder.block": 1, "decoder.block.0.layer": 3}
    bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    t5 = Modules("T5", {}, {bias: (32, 8), "decoder.block.0.layer.2.DenseReluDense.wi.weight": (9, 9)}, stacks)
    layers = layers_of(t5, 3)
    assert layers == ["encoder.block.0.", "encoder.block.1.", "decoder.block.0."]
    assert layer_sizes(t5, layers) == [0, 0, 81]


def test_a_token_meets_the_experts_that_it_passes() -> None:
    """Half of their matrices and biases here."""
    assert active_of(MODULES) == parts_of(MODULES)["language"] - (320 + 40) // 2
    assert active_of(Modules("Dense", {}, MIXTURE)) is None


@pytest.mark.parametrize(("head", "tied"), [("a", True), ("b", False), (None, False)])
def test_a_head_is_tied_where_it_is_the_table(head: str | None, tied: bool) -> None:
    assert Modules("M", {}, {}, embeddings=("a",), head=head).tied is tied

"""Hybrids by the tables of their families: class defaults, other spellings, and faults that name their key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.models.model import make_model

MINIMAX_TEXT = {
    "model_type": "minimax_text_01",
    "hidden_size": 6144,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "head_dim": 128,
    "num_key_value_heads": 8,
    "intermediate_size": 9216,
    "num_local_experts": 32,
    "num_experts_per_tok": 2,
    "vocab_size": 200064,
    "attn_type_list": [int(layer % 8 == 7) for layer in range(80)],
    "shared_intermediate_size": 0,
    "postnorm": True,
    "layernorm_mlp_alpha": 3.5565588200778455,
    "rotary_dim": 64,
}
JAMBA_ONE = {
    "model_type": "jamba",
    "hidden_size": 2560,
    "num_hidden_layers": 28,
    "num_attention_heads": 20,
    "num_key_value_heads": 1,
    "intermediate_size": 8192,
    "vocab_size": 65536,
    "attn_layer_period": 14,
    "attn_layer_offset": 7,
    "mamba_dt_rank": 160,
    "num_experts": 1,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": True,
}


def golden(name: str, **change: Any) -> sf.Model:
    data = json.loads((GOLDEN_2026 / "configs" / f"{name}.json").read_text(encoding="utf-8"))
    return made({**data, **change})


def made(data: dict[str, Any]) -> sf.Model:
    return make_model("test", "test", {key: value for key, value in data.items() if value != "absent"}, "test.json")


def total(model: sf.Model) -> int:
    return int(sf.inspect(model)["parameters"]["total"])


@pytest.mark.parametrize("family", ["minimax_m1", "minimax_text_01"])
def test_minimax_01_has_the_size_that_its_paper_states(family: str) -> None:
    """456 billion parameters, of which a token meets 45.9 billion beside the tables (arXiv 2501.08313, abstract)."""
    found = sf.inspect(made({**MINIMAX_TEXT, "model_type": family}))
    assert found["parameters"]["total"] == 456_089_655_296
    assert found["parameters"]["active_per_token"] - found["parameters"]["embedding"] == 45_944_920_064
    assert {layer["kind"]: layer["count"] for layer in found["layers"]} == {
        "lightning attention + experts": 70,
        "attention + experts": 10,
    }
    assert found["kv_cache"]["state_bytes_per_sequence"] == 70 * 64 * 128**2 * 4


def test_one_expert_is_an_mlp_without_a_router() -> None:
    """Jamba-Reasoning-3B: no router anywhere; several experts have one in one layer of two."""
    one, two = made(JAMBA_ONE), made({**JAMBA_ONE, "num_experts": 2})
    assert [str(kind) for kind in one.architecture.kinds] == ["Mamba-1 + MLP", "attention + MLP"]
    assert not one.architecture.routed
    assert "num_experts" not in one.sizes
    assert total(two) - total(one) == 14 * (3 * 2560 * 8192 + 2 * 2560)
    assert total(one) == 3_029_337_472  # as PyTorch counts it, with 3,910,212,992 of two experts
    for plan in (sf.Plan(), sf.Plan(precision="fp8")):
        assert sf.training(one, "h100-sxm", plan, batch=8, sequence=128).value("time") > 0


@pytest.mark.parametrize("experts", [1, 16])
def test_the_offset_of_expert_layers_is_read_whatever_the_experts_are(experts: int) -> None:
    with pytest.raises(sf.InputError, match="expert_layer_offset is not below expert_layer_period 2"):
        made({**JAMBA_ONE, "num_experts": experts, "expert_layer_offset": 2})


def test_channels_of_mamba_are_not_an_expansion_in_falcon_h1() -> None:
    """A null `mamba_d_ssm` is; the norm at the gate is optional, and is none by default."""
    own, expanded = golden("falcon-h1-34b"), golden("falcon-h1-34b", mamba_d_ssm=None, mamba_d_head="auto")
    assert own.sizes["ssm_num_heads"] * own.sizes["ssm_head_dim"] == 4096
    assert expanded.sizes["ssm_num_heads"] * expanded.sizes["ssm_head_dim"] == 2 * 5120
    for plain in (golden("falcon-h1-34b", mamba_rms_norm=False), golden("falcon-h1-34b", mamba_rms_norm="absent")):
        assert total(own) - total(plain) == 72 * 4096


def test_linear_attention_of_olmo_hybrid_follows_the_attention() -> None:
    """Sizes that the file omits, or gives as null, are those of the class: heads, and widths of the hidden size."""
    own = golden("default-olmo_hybrid")
    keys = ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim")
    for value in ("absent", None):
        assert golden("default-olmo_hybrid", **dict.fromkeys(keys, value)).sizes == own.sizes
    assert golden("default-olmo_hybrid", layer_types="absent").architecture == own.architecture
    assert own.architecture.positions == "rotary"
    released = golden("default-olmo_hybrid", rope_parameters={"rope_theta": None, "rope_type": "default"})
    assert released.architecture.positions == "none"


VARIANTS: list[tuple[str, dict[str, Any], int]] = [
    ("default-olmo_hybrid", {"attention_bias": True, "num_key_value_heads": 10}, 7_273_645_728),
    ("default-recurrent_gemma", {"lru_width": 1280, "num_key_value_heads": 1, "attention_bias": True}, 1_721_043_456),
    ("default-zamba2", {"num_mem_blocks": 3, "adapter_rank": 64, "n_mamba_heads": 16}, 2_810_487_072),
    (
        "default-zamba2",
        {"mamba_ngroups": 2, "use_shared_attention_adapter": True, "num_mem_blocks": 2, "use_mem_rope": True},
        2_705_368_336,
    ),
    ("falcon-h1-34b", {"mamba_d_ssm": None, "mamba_d_head": "auto"}, 40_439_942_912),
    ("falcon-h1-34b", {"mamba_rms_norm": False, "mlp_bias": True, "attention_bias": True}, 33_646_313_216),
]


@pytest.mark.parametrize(("name", "change", "parameters"), VARIANTS)
def test_other_choices_have_the_parameters_of_pytorch(name: str, change: dict[str, Any], parameters: int) -> None:
    """Counted on modules of transformers 5.24 on the meta device."""
    assert total(golden(name, **change)) == parameters


def test_uses_of_shared_blocks_are_layers() -> None:
    """Each stands before the Mamba-2 layer that reads its result; by default in nine places of 54 layers."""
    own = golden("default-zamba2")
    assert [count for _, count in own.layers][:4] == [6, 1, 6, 1]
    assert (own.sizes["num_layers"], own.sizes["num_shared_blocks"]) == (54 + 9, 1)
    assert golden("default-zamba2", layers_block_type="absent") == own
    words = ["mamba"] * 2 + ["hybrid"]
    few = golden("default-zamba2", num_hidden_layers=3, layers_block_type=words, num_mem_blocks=2)
    assert (few.layers, few.sizes["num_shared_blocks"]) == (((0, 2), (1, 1), (0, 1)), 1)
    assert sum(row["parameters"] for row in sf.inspect(own)["checkpoint"]["classes"]) == total(own)


def test_blocks_of_recurrent_gemma_repeat() -> None:
    kinds = {str(k): golden("default-recurrent_gemma").sizes[k.count] for k in
             golden("default-recurrent_gemma").architecture.kinds}  # fmt: skip
    assert kinds == {"gated linear recurrent unit + MLP": 18, "sliding-window attention + MLP": 8}
    assert golden("default-recurrent_gemma", logits_soft_cap="absent").architecture.logit_soft_capping
    assert not golden("default-recurrent_gemma", logits_soft_cap=None).architecture.logit_soft_capping


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("falcon-h1-34b", {"mamba_d_ssm": 4000}),
        ("falcon-h1-34b", {"mamba_d_head": 64}),
        ("falcon-h1-34b", {"projectors_bias": True}),
        ("default-minimax", {"sliding_window": 4096}),
        ("default-minimax", {"layer_types": ["lightning"] * 32}),
        ("default-recurrent_gemma", {"block_types": ["recurrent", "mamba"]}),
        ("default-recurrent_gemma", {"block_types": []}),
        ("default-olmo_hybrid", {"layer_types": ["full_attention"]}),
        ("default-zamba2", {"add_bias_linear": True}),
        ("default-zamba2", {"layers_block_type": ["hybrid"]}),
        ("default-zamba2", {"layers_block_type": ["attention"] * 54}),
    ],
)
def test_faults_name_their_key(name: str, change: dict[str, Any]) -> None:
    with pytest.raises(sf.InputError, match=next(iter(change))):
        golden(name, **change)


@pytest.mark.parametrize(
    "change", [{"attn_type_list": "absent"}, {"attn_type_list": [0, 2] * 40}, {"attn_type_list": [0]},
               {"shared_intermediate_size": 4096}]
)  # fmt: skip
def test_faults_of_the_original_minimax_name_their_key(change: dict[str, Any]) -> None:
    with pytest.raises(sf.InputError, match=next(iter(change))):
        made({**MINIMAX_TEXT, **change})

"""Families whose layers are not all attention and MLP: which layer is of which kind, and published totals."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.model_configs import (
    DEEPSEEK,
    JAMBA,
    LLAMA,
    LLAMA4,
    MAMBA2,
    MIXTRAL,
    NEMOTRON_H,
    QWEN3_NEXT,
    T5,
    VIT,
    load_config,
)

import symperf as sf

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Loads a config that a test writes."""
    return partial(load_config, tmp_path)


def kinds(model: sf.Model) -> dict[str, int]:
    """Layers of each kind, in words."""
    return {str(kind): model.sizes[kind.count] for kind in model.architecture.kinds}


BERT = {**LLAMA, "model_type": "bert", "max_position_embeddings": 16}
QWEN_MOE = {
    **LLAMA,
    "model_type": "qwen3_moe",
    "num_hidden_layers": 6,
    "num_key_value_heads": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
GPT_OSS = {**MIXTRAL, "model_type": "gpt_oss", "num_hidden_layers": 3}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (MIXTRAL, {"attention + experts": 2}),
        (MIXTRAL | {"sliding_window": 8}, {"sliding-window attention + experts": 2}),
        (GPT_OSS, {"sliding-window attention + experts": 2, "attention + experts": 1}),
        (GPT_OSS | {"layer_types": ["full_attention"] * 3}, {"attention + experts": 3}),
        (DEEPSEEK, {"latent attention + MLP": 1, "latent attention + experts": 3}),
        (DEEPSEEK | {"first_k_dense_replace": 0, "moe_layer_freq": 2}, {
            "latent attention + experts": 2, "latent attention + MLP": 2,
        }),
        (DEEPSEEK | {"first_k_dense_replace": 9}, {"latent attention + MLP": 4}),
        (QWEN_MOE, {"attention + experts": 6}),
        (QWEN_MOE | {"decoder_sparse_step": 3}, {"attention + MLP": 4, "attention + experts": 2}),
        (QWEN_MOE | {"mlp_only_layers": [0, 5]}, {"attention + MLP": 2, "attention + experts": 4}),
        (LLAMA4 | {"num_hidden_layers": 8}, {
            "sliding-window attention + MLP": 4,
            "sliding-window attention + experts": 2,
            "attention + experts": 2,
        }),
        (LLAMA4 | {"attention_chunk_size": None}, {"attention + MLP": 1, "attention + experts": 1}),
        (LLAMA4 | {"no_rope_layers": [0, 1], "moe_layers": [0]}, {
            "attention + experts": 1, "sliding-window attention + MLP": 1,
        }),
        (MAMBA2, {"Mamba-2": 2}),
        (JAMBA, {"Mamba-1 + MLP": 2, "attention + experts": 1, "Mamba-1 + experts": 1}),
        (NEMOTRON_H, {"Mamba-2": 2, "MLP": 1, "attention": 1}),
        (QWEN3_NEXT, {"gated delta rule + experts": 3, "attention + experts": 1}),
        (T5, {"encoder: attention + MLP": 2, "attention + cross-attention + MLP": 2}),
        (T5 | {"num_decoder_layers": 5}, {"encoder: attention + MLP": 2, "attention + cross-attention + MLP": 5}),
        (BERT, {"encoder: attention + MLP": 2}),
        (VIT, {"encoder: attention + MLP": 4}),
    ],
    ids=lambda value: str(value.get("model_type", "")) if isinstance(value, dict) else "",
)  # fmt: skip
def test_layers_are_of_the_kinds_that_the_config_says(
    load: Any, config: dict[str, Any], expected: dict[str, int]
) -> None:
    """The kinds in the order of their first layer, and how many there are."""
    model = load(config)
    assert kinds(model) == expected
    assert list(kinds(model)) == list(expected)
    assert model.sizes["num_layers"] == sum(expected.values())
    assert not model.uniform_dense
    assert json.loads(json.dumps(sf.inspect(model))) == sf.inspect(model)


def test_one_kind_is_counted_by_num_layers_and_several_by_their_own_names(load: Any) -> None:
    """The names say mixer and what follows it."""
    assert load(MIXTRAL).architecture.kinds[0].count == "num_layers"
    names = [kind.count for kind in load(JAMBA).architecture.kinds]
    assert names == ["num_ssm1_dense_layers", "num_attention_experts_layers", "num_ssm1_experts_layers"]
    assert [kind.count for kind in load(T5).architecture.kinds] == ["num_encoder_layers", "num_decoder_layers"]


def test_structure_follows_the_keys(load: Any) -> None:
    """Yes or no features of the families with experts and latents."""
    assert load(DEEPSEEK).architecture.query_compression
    assert not load(DEEPSEEK | {"q_lora_rank": None}).architecture.query_compression
    assert load(DEEPSEEK).architecture.shared_experts
    assert not load(DEEPSEEK | {"n_shared_experts": 0}).architecture.shared_experts
    assert load(DEEPSEEK | {"n_shared_experts": 2}).sizes["shared_expert_intermediate_size"] == 32
    mtp = load(DEEPSEEK | {"num_nextn_predict_layers": 1})
    assert mtp.architecture.multi_token_head
    assert not any("multi-token" in text for text in mtp.warnings)
    assert mtp.sizes["num_multi_token_layers"] == 1
    assert not load(DEEPSEEK | {"num_nextn_predict_layers": 0}).architecture.multi_token_head
    assert load(GPT_OSS).architecture.attention_sinks
    assert load(LLAMA4).architecture.chunked_attention
    assert load(T5 | {"feed_forward_proj": "gated-gelu"}).architecture.gated_mlp
    assert not load(T5).architecture.gated_mlp
    gemma = sf.Model.load("gemma-2-9b").architecture
    assert gemma.attention_soft_capping
    assert gemma.logit_soft_capping
    assert not sf.Model.load("gemma-3-1b").architecture.logit_soft_capping


def test_a_bert_without_its_head_has_none(load: Any) -> None:
    """`architectures` decides; a bare encoder ends with its last layer."""
    masked, bare = load(BERT | {"architectures": ["BertForMaskedLM"]}), load(BERT | {"architectures": ["BertModel"]})
    assert (masked.architecture.head, bare.architecture.head) == ("transformed", "none")
    found = sf.inspect(bare, sequence=8)
    assert found["flops_forward"]["lm_head"] == 0
    h, vocab = 64, 100
    assert sf.inspect(masked)["parameters"]["total"] - found["parameters"]["total"] == h * h + h + 2 * h + vocab


@pytest.mark.parametrize("kind", ["llava", "mistral3", "qwen3_vl", "kimi_k25"])
def test_the_language_part_of_a_multimodal_config_loads_with_a_warning(load: Any, kind: str) -> None:
    """The vision encoder is left out, and that is said first."""
    inner = {"kimi_k25": DEEPSEEK, "qwen3_vl": {**LLAMA, "model_type": "qwen3_vl_text", "num_key_value_heads": 2}}
    text = inner.get(kind, LLAMA)
    model = load({"model_type": kind, "text_config": text})
    assert model.family == kind
    assert "text_config" in model.warnings[0]
    assert dict(model.sizes) == dict(load(text).sizes)
    assert load({"model_type": kind, "text_config": text, "tie_word_embeddings": True}).architecture.tied_embeddings


def test_keys_that_could_change_the_cost_are_refused(load: Any) -> None:
    """In every family, not only the dense ones."""
    for config in (MIXTRAL, DEEPSEEK, LLAMA4, MAMBA2, JAMBA, NEMOTRON_H, QWEN3_NEXT, T5, VIT, BERT):
        with pytest.raises(sf.InputError, match="key 'number_of_wings' means for the cost is not known"):
            load(config | {"number_of_wings": 3})


PUBLISHED = {
    "deepseek-v2": ("236", "21", "arXiv:2405.04434, abstract"),
    "deepseek-v2-lite": ("15.7", None, "arXiv:2405.04434, appendix B"),
    "moonlight-16b-a3b": ("16", "3", "arXiv:2502.16982, abstract"),
    "dbrx": ("132", "36", "https://github.com/databricks/dbrx"),
    "phi-3.5-moe": ("41.9", "6.6", "arXiv:2404.14219"),
    "jamba-1.5-large": ("398", "94", "arXiv:2408.12570, abstract"),
    "qwen1.5-moe-a2.7b": ("14.3", "2.7", "https://qwenlm.github.io/blog/qwen-moe/"),
    "qwen2-57b-a14b": ("57", "14", "arXiv:2407.10671, table 1"),
    "llama-4-maverick": ("400", "17", "https://github.com/meta-llama/llama-models"),
    "gpt-oss-120b": ("116.8", None, "arXiv:2508.10925, table 1"),
    "nemotron-h-8b": ("8.1", "8.1", "arXiv:2504.03624"),
    "nemotron-3-nano-30b-a3b": ("31.6", "3.6", "NVIDIA Nemotron 3 Nano, technical report"),
    "mamba2-2.7b": ("2.7", "2.7", "arXiv:2405.21060"),
    "mamba-2.8b": ("2.8", "2.8", "arXiv:2312.00752"),
    "mamba-1.4b": ("1.4", "1.4", "arXiv:2312.00752"),
    "t5-11b": ("11", "11", "arXiv:1910.10683, section 3.7"),
    "t5-3b": ("2.8", "2.8", "arXiv:1910.10683, section 3.7"),
    "roberta-large": ("0.355", "0.355", "arXiv:1907.11692, section 5"),
    "vit-large-p16-224": ("0.307", None, "arXiv:2010.11929, table 1"),
    "vit-huge-p14-224": ("0.632", "0.632", "arXiv:2010.11929, table 1"),
    "palm-540b": ("540.35", "540.35", "arXiv:2204.02311, table 1"),
    "bart-large": ("0.40", "0.40", "https://github.com/facebookresearch/fairseq/tree/main/examples/bart"),
}
"""Billions of parameters as published, in all and active in a token, and where."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_totals(name: str) -> None:
    """Sizes that were rebuilt from documents give the totals that these state: to their last digit, or within 2 %."""
    total, active, _ = PUBLISHED[name]
    found = sf.inspect(sf.Model.load(name))["parameters"]
    for text, count in ((total, found["total"]), (active, found["active_per_token"])):
        if text is not None:
            last_digit = 10.0 ** -len(text.partition(".")[2])
            assert abs(count / 1e9 - float(text)) <= max(last_digit / 2, 0.02 * float(text))


def test_active_parameters_of_gpt_oss_leave_the_input_table_out() -> None:
    """OpenAI's 5.13B has the output projection but not the table (arXiv:2508.10925, table 1)."""
    found = sf.inspect(sf.Model.load("gpt-oss-120b"))
    table = found["sizes"]["vocab_size"] * found["sizes"]["hidden_size"]
    assert f"{(found['parameters']['active_per_token'] - table) / 1e9:.2f}" == "5.13"

"""Families of encoders that recombine known parts: published sizes of checkpoints, and what their masks leave."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.kernels.windows import two_sided_pairs
from symperf.models.model import make_model

if TYPE_CHECKING:
    from pathlib import Path

BART = {
    "is_encoder_decoder": True,
    "vocab_size": 50264,
    "max_position_embeddings": 1024,
    "d_model": 1024,
    "encoder_layers": 12,
    "encoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_layers": 12,
    "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096,
}


def stacks(d_model: int, layers: tuple[int, int], heads: int, inner: int) -> dict[str, int]:
    """Sizes of an encoder and a decoder."""
    found = {"d_model": d_model, "encoder_layers": layers[0], "decoder_layers": layers[1]}
    for stack in ("encoder", "decoder"):
        found |= {f"{stack}_attention_heads": heads, f"{stack}_ffn_dim": inner}
    return found


PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "distilbert-base": (
        {
            "model_type": "distilbert",
            "dim": 768,
            "hidden_dim": 3072,
            "n_layers": 6,
            "n_heads": 12,
            "vocab_size": 30522,
            "max_position_embeddings": 512,
            "sinusoidal_pos_embds": False,
            "activation": "gelu",
        },
        66_985_530,
    ),
    "xlm-roberta-base": (
        {
            "model_type": "xlm-roberta",
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_attention_heads": 12,
            "num_hidden_layers": 12,
            "vocab_size": 250002,
            "max_position_embeddings": 514,
            "type_vocab_size": 1,
        },
        278_295_186,
    ),
    "mbart-large-cc25": (BART | {"model_type": "mbart", "vocab_size": 250027, "normalize_before": True}, 610_851_840),
    "pegasus-large": (
        BART
        | {"model_type": "pegasus", "vocab_size": 96103, "activation_function": "relu"}
        | stacks(1024, (16, 16), 16, 4096),
        570_797_056,
    ),
    "m2m100_418M": (BART | {"model_type": "m2m_100", "vocab_size": 128112}, 483_905_536),
    "nllb-200-distilled-600M": (BART | {"model_type": "m2m_100", "vocab_size": 256206}, 615_073_792),
    "opus-mt-en-de": (
        BART
        | {"model_type": "marian", "vocab_size": 58101, "decoder_vocab_size": 58101, "max_position_embeddings": 512}
        | stacks(512, (6, 6), 8, 2048),
        74_410_496,
    ),
    "blenderbot-400M-distill": (
        BART
        | {"model_type": "blenderbot", "vocab_size": 8008, "max_position_embeddings": 128}
        | stacks(1280, (2, 12), 32, 5120),
        364_802_560,
    ),
    "blenderbot_small-90M": (
        BART
        | {"model_type": "blenderbot-small", "vocab_size": 54944, "max_position_embeddings": 512}
        | stacks(512, (8, 8), 16, 2048),
        87_508_992,
    ),
}
"""Keys of a published file, and the parameters of its checkpoint, each tensor once."""


def load(tmp_path: Path, data: dict[str, Any]) -> sf.Model:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return sf.Model.load(path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(tmp_path: Path, name: str) -> None:
    data, total = PUBLISHED[name]
    assert sf.inspect(load(tmp_path, data))["parameters"]["total"] == total


def test_a_window_on_both_sides_counts_its_pairs() -> None:
    for sequence in range(1, 12):
        for half in range(1, 14):
            pairs = sum(abs(i - j) <= half for i in range(sequence) for j in range(sequence))
            assert two_sided_pairs(sequence, 2 * half) == pairs


MODERN = {
    "model_type": "modernbert",
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 2,
    "num_hidden_layers": 4,
    "max_position_embeddings": 8192,
}


def test_listed_layers_of_transformers_5_are_the_same_model(tmp_path: Path) -> None:
    words = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    listed = load(tmp_path, MODERN | {"layer_types": words})
    counted = load(tmp_path, MODERN)
    assert (listed.sizes, listed.layers, listed.architecture) == (counted.sizes, counted.layers, counted.architecture)
    assert counted.layers == ((0, 1), (1, 2), (2, 1))


def test_the_first_layer_of_modernbert_has_no_norm_of_its_own(tmp_path: Path) -> None:
    """It reads what the norm of the embeddings gives: one norm in all, in counts and in both kinds of runs."""
    model = load(tmp_path, MODERN)
    sizes = list(sf.inspect(model)["parameters_per_layer"].values())
    assert [sizes[1] - size for size in sizes] == [64, 0, 0]
    train = sf.training(model, "a100-80gb-sxm", sf.Plan(), batch=2, sequence=128)
    infer = sf.inference(model, "a100-80gb-sxm", sf.Plan(), batch=2, prompt=128, generate=1)
    for run, before in ((train, ""), (infer, "prefill/")):
        names = {row.name for row in run.table() if "norm" in row.name}
        assert any(name.startswith(f"{before}embedding/norm") for name in names)
        assert any(name.startswith(f"{before}layer/encoder_2/attention/norm") for name in names)
        assert not any(name.startswith(f"{before}layer/encoder/attention/norm") for name in names)


@pytest.mark.parametrize(
    ("key", "value"), [("local_attention", 127), ("hidden_activation", "gelo"), ("layer_types", [1])]
)
def test_bad_values_are_named(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(sf.InputError, match=key):
        load(tmp_path, MODERN | {key: value})


def test_positions_of_disentangled_attention_are_projected_once_and_scored_by_every_sequence() -> None:
    """DeBERTa-v3: products of 512 relative positions with queries and with keys, which PyTorch counts the same."""
    model = sf.Model.load(GOLDEN_2026 / "configs" / "deberta-v3-large.json")
    run = sf.inference(model, "h100-sxm", sf.Plan(), batch=4, prompt=128, generate=1)
    shapes = {row.name: (row.m, row.n, row.k) for row in run.operations()}
    assert shapes["layer/attention/relative/projections"] == (512, 2048, 1024)
    assert shapes["layer/attention/relative/content_to_position"] == (128, 512, 64)
    assert shapes["layer/attention/relative/position_to_content"] == (128, 512, 64)
    products = [row.name for row in run.operations() if row.m and not row.name.startswith("head")]
    executed = sum(run.value(f"term/prefill/{name}/flops") for name in products) * model.sizes["num_layers"]
    counted = sf.inspect(model, batch=4, sequence=128)["flops_forward"]
    assert executed == counted["total"] - counted["lm_head"] - counted["head_transform"]
    with pytest.raises(sf.InputError, match="whose gradients are not modelled yet"):
        sf.training(model, "h100-sxm", sf.Plan(), batch=4, sequence=128)


SMALL = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
TINY = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 64,
    "patch_size": 16,
}
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}


@pytest.mark.parametrize(
    ("kind", "sizes", "positions", "parameters", "flops"),
    [
        ("siglip_vision_model", SMALL, 196, 521_088, 193_775_616),
        ("siglip_vision_model", BASE, 196, 92_884_224, 35_416_584_192),
        ("clip_vision_model", SMALL, 50, 665_216, 67_309_568),
        ("clip_vision_model", BASE, 50, 87_456_000, 8_816_836_608),
        ("pixtral", TINY, 16, 143_680, 4_718_592),
    ],
)
def test_encoders_of_images_alone_are_those_that_torch_counts(
    kind: str, sizes: dict[str, int], positions: int, parameters: int, flops: int
) -> None:
    """SigLIP's has no token of the class, and a head of one query; transformers 5.24 and `FlopCounterMode`.

    Pixtral's has no token either, rotary positions, and a norm before its layers and none behind them.
    """
    model = make_model(kind, "test", {"model_type": kind, **sizes}, "config.json")
    found = sf.inspect(model, sequence=positions)
    assert (found["parameters"]["total"], found["flops_forward"]["total"]) == (parameters, flops)
    run = sf.inference(model, "h100-sxm", sf.Plan(), batch=2, prompt=positions, generate=1)
    layers = model.sizes["num_layers"]
    products = [row.name for row in run.operations() if row.m]
    executed = sum(run.value(f"term/prefill/{name}/flops") * (1 if name[0] in "eh" else layers) for name in products)
    assert executed == 2 * (flops - found["flops_forward"]["attention_scores"])
    with pytest.raises(sf.InputError, match=f"prompt: found 7, expected {positions}"):
        sf.inference(model, "h100-sxm", sf.Plan(), batch=2, prompt=7, generate=1)
    if kind == "siglip_vision_model":
        with pytest.raises(sf.InputError, match="a head that pools patches by attention"):
            sf.training(model, "h100-sxm", sf.Plan(), batch=2, sequence=positions)


def test_pixtral_s_class_defaults() -> None:
    """`PixtralVisionConfig()` of transformers 5.24: 4096 patches of an image of 1024 x 1024 pixels."""
    model = make_model("pixtral", "test", {"model_type": "pixtral"}, "config.json")
    assert sf.inspect(model)["parameters"]["total"] == 403_489_792
    assert model.sizes["num_patches"] == 4096

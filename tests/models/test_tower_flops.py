"""Products of small encoders of every kind of stem and projector, as PyTorch counts them on the modules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from symperf.models.configs import Config
from symperf.models.families.towers import read_towers
from symperf.models.model import encoder_of
from symperf.models.sounds import Sound
from symperf.models.towers import Image
from symperf.runs.inspection import inspect

WHISPER = {"encoder_layers": 2, "d_model": 128, "encoder_attention_heads": 4, "encoder_ffn_dim": 256}
CONFORMER = {
    "num_blocks": 2,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_attention_heads": 4,
    "ext_pw_out_channel": 128,
    "depthwise_separable_out_channel": 128,
    "nemo_conv_channels": 128,
}
INTERN = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
GLM = {"hidden_size": 128, "depth": 2, "num_heads": 4, "out_hidden_size": 256, "intermediate_size": 512}
IMAGE = Image(1, 448, 448)


@pytest.mark.parametrize(
    ("kind", "part", "keys", "item", "projected", "counted"),
    [
        ("internvl", "vision", INTERN, IMAGE, False, 1_767_375_872),
        ("glm4v", "vision", GLM, IMAGE, True, 2_355_101_696),
        ("qwen2_audio", "audio", WHISPER, Sound(1, 3000), False, 3_532_800_000),
        (
            "qwen3_omni_moe_thinker",
            "audio",
            {**WHISPER, "downsample_hidden_size": 32, "output_dim": 64},
            Sound(1, 800),
            True,
            247_726_080,
        ),
        # The module computes two results more, of its convolution's padding, and drops them.
        ("phi4_multimodal", "audio", CONFORMER, Sound(1, 800), False, 366_930_944 - 2 * 2 * 2 * (3 + 128) * 128),
    ],
    ids=["internvl", "glm4v", "qwen2-audio", "qwen3-omni", "phi4"],
)
def test_flops_of_a_pass(kind: str, part: str, keys: dict[str, Any], item: Any, projected: bool, counted: int) -> None:
    """`FlopCounterMode` over encoders of two layers of transformers 5.24; projectors where they are part of one."""
    config = Config({f"{part}_config": keys}, "config.json")
    language = SimpleNamespace(sizes={"hidden_size": 256}, kept=())
    (tower,) = read_towers(config, kind, language)  # type: ignore[arg-type]
    encoded = tower.grid.encode(item)
    model = encoder_of(SimpleNamespace(name="model", source="", kept=()), tower)  # type: ignore[arg-type]
    layers = inspect(model, batch=encoded.sequences, sequence=encoded.positions)["flops_forward"]["total"]
    rows = {"patches": encoded.patches, "tokens": encoded.tokens, "windows": encoded.windows}
    products = (*tower.stem, *(tower.projector if projected else ()))
    assert counted == layers + sum(
        2 * rows[each.rows] * each.times * each.copies * each.inputs * each.outputs for each in products
    )

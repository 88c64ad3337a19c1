"""Encoders of sound before a decoder of text: what they read, and passes of both stacks."""

from __future__ import annotations

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.language import symbols as sym
from symperf.train.memory.end_activations import spectra_kept

WHISPER = GOLDEN_2026 / "configs" / "whisper-large-v3.json"
MODEL = sf.Model.load(WHISPER)
SYSTEM = sf.System.load("h100-sxm")


def test_a_transcription_encodes_once_and_steps_over_the_sound() -> None:
    """Products of the prefill are those that PyTorch counts: the encoder, its keys and values, one step of the decoder.

    Steps then attend to all 1500 tokens of the sound, whose keys and values are cached once.
    """
    run = sf.inference(MODEL, SYSTEM, sf.Plan(), batch=3, prompt=1500, generate=5)
    rows = {(row.phase, row.name): row for row in run.operations()}
    read = {name: rows["prefill", f"embedding/convolution_{name}"] for name in (1, 2)}
    assert [(row.m, row.n, row.k) for row in read.values()] == [(9000, 1280, 384), (4500, 1280, 3840)]
    assert ("decode", "embedding/convolution_1") not in rows
    assert ("decode", "layer/encoder/attention/qkv") not in rows
    assert rows["decode", "layer/decoder/cross_attention/flash"].count == 4 * 32
    counted = sf.inspect(MODEL, batch=3, sequence=1, encoder_sequence=1500)
    assert run.value("prefill_flops") == counted["flops_forward"]["total"]
    memory = run.memory_terms()
    assert memory["kv_cache/cross"] >= 3 * 1500 * counted["kv_cache"]["cross_bytes_per_encoder_token"]


def test_a_step_trains_both_stacks() -> None:
    """The convolutions have gradients of their weights, and the second one of its input; keys have no bias."""
    plan = sf.Plan(micro_batch=2)
    run = sf.training(MODEL, SYSTEM, plan, batch=4, sequence=448, encoder_sequence=1500)
    rows = {row.name: row for row in run.table()}
    first, second = (f"encoder/embedding/convolution_{number}" for number in (1, 2))
    assert rows[f"{first}/backward_weight"].flops == rows[f"{first}/forward"].flops
    assert rows[f"{second}/backward_input"].flops == rows[f"{second}/forward"].flops == 2 * 2 * 2 * 1500 * 1280 * 3840
    assert f"{first}/backward_input" not in rows
    with pytest.raises(sf.InputError, match="encoder_sequence: found 448, expected 1500"):
        sf.training(MODEL, SYSTEM, plan, batch=4, sequence=448)


def test_convolutions_keep_what_their_modules_keep() -> None:
    """Spectra, and in- and outputs of both activation functions: 384,000 bytes in FP32, by PyTorch's hooks."""
    sizes = {sym.mel_bins: 80, sym.hidden_size: 64, sym.activation_bytes: 4}
    assert spectra_kept(2 * 100).subs(sizes) == 384_000


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (
            {"prompt": 1000, "generate": 9},
            "prompt: found 1000, expected 1500: the encoder of whisper",
        ),
        ({"prompt": 1500, "generate": 448}, "448 learned positions"),
    ],
)
def test_other_lengths_are_refused(lengths: dict[str, int], expected: str) -> None:
    with pytest.raises(sf.InputError, match=expected):
        sf.inference(MODEL, SYSTEM, sf.Plan(), batch=1, **lengths)

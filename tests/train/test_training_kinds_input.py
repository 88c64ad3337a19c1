"""Every architecture from the command line, and the sentence of each combination that is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.effort import some
from support.kind_cases import SYSTEM, train

import symperf as sf
from symperf.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

COMMANDS = {
    "jamba-1.5-mini": "--tp 4 --dp 2 --ep 8 --sequence-parallel --zero 1 --recompute full --batch 16 --sequence 4096",
    "mamba2-2.7b": "--dp 8 --zero 1 --batch 64 --sequence 2048",
    "bamba-9b": "--dp 8 --zero 3 --batch 64 --sequence 4096",
    "nemotron-h-8b": "--tp 8 --sequence-parallel --batch 16 --sequence 8192",
    "qwen3-next-80b-a3b": "--pp 4 --dp 8 --ep 8 --recompute full --batch 64 --sequence 4096",
    "bert-large": "--dp 8 --batch 256 --micro-batch 32 --sequence 512",
    "t5-3b": "--tp 2 --dp 4 --batch 64 --sequence 128 --encoder-sequence 512",
    "bart-large": "--dp 8 --batch 64 --sequence 512",
    "vit-large-p16-224": "--dp 8 --batch 1024 --micro-batch 64",
    "gemma-3-27b": "--tp 8 --sequence-parallel --batch 8 --sequence 8192",
    "gpt-oss-20b": "--ep 8 --dp 8 --recompute full --batch 64 --sequence 8192",
    "gemma-4-26b-a4b": "--tp 2 --dp 4 --ep 4 --sequence-parallel --recompute full --batch 8 --sequence 8192",
}


@pytest.mark.parametrize("name", some(COMMANDS))
def test_one_command_trains_every_kind(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its answer is complete, and its terms sum to the step."""
    assert main(["train", name, "-s", "h100-sxm", *COMMANDS[name].split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["mfu"] < 1
    assert sum(term["time_s"] for term in found["breakdown"]) == pytest.approx(found["time_s"], rel=1e-9)
    assert sum(found["shares"].values()) == pytest.approx(1, rel=1e-9)


def test_an_image_has_a_length_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --sequence it is that of its patches and the class token; texts need one."""
    command = ["train", "vit-base-p16-224", "-s", "h100-sxm", "--batch", "8", "--json"]
    times = []
    for more in ([], ["--sequence", "197"]):
        assert main([*command, *more]) == 0
        times.append(json.loads(capsys.readouterr().out)["time_s"])
    assert times[0] == times[1]
    assert main(["train", "gpt2", "-s", "h100-sxm", "--batch", "8"]) == 2
    assert "--sequence" in capsys.readouterr().err


REFUSED: list[tuple[str, Callable[[], Any], str]] = [
    (
        "groups of B and C",
        lambda: train("bamba-9b", tp=2),
        (
            "tp: 2 does not divide the groups of heads that share B and C (1) in the Mamba-2 layers of "
            "bamba-9b, which are dealt whole"
        ),
    ),
    (
        "channels of Mamba-1",
        lambda: train("mamba-130m", tp=5),
        "tp: 5 does not divide the 1536 channels of the Mamba-1 layers of mamba-130m",
    ),
    (
        "heads of Mamba-2",
        lambda: train("mamba2-130m", tp=16),
        "tp: 16 does not divide the 24 heads of the Mamba-2 layers of mamba2-130m",
    ),
    (
        "heads of linear attention",
        lambda: train("qwen3-next-80b-a3b", tp=32, sequence_parallel=True, values={"num_attention_heads": 32}),
        (
            "tp: 32 does not divide the 16 key heads and 32 value heads of the linear-attention layers of "
            "qwen3-next-80b-a3b"
        ),
    ),
    (
        "pipeline of two stacks",
        lambda: train("t5-base", pp=2),
        (
            "pp: t5-base has an encoder and a decoder, whose layers differ in cost and which a pipeline "
            "would have to split; expected pp = 1, found pp = 2"
        ),
    ),
    (
        "parts of two stacks",
        lambda: train("bart-large", cp=2, attention="flash"),
        (
            "cp: bart-large has an encoder and a decoder, and attention from parts of one sequence to parts "
            "of another is not modelled; expected cp = 1"
        ),
    ),
    (
        "parts of a recurrent sequence",
        lambda: train("nemotron-h-8b", cp=2),
        (
            "cp: nemotron-h-8b has layers with a recurrent state (ssm), whose tokens cannot be dealt to "
            "devices; expected cp = 1"
        ),
    ),
    (
        "flash with relative positions",
        lambda: train("t5-base", attention="flash"),
        (
            "attention: t5-base learns biases of relative positions, for which flash kernels have no "
            "gradient; expected eager"
        ),
    ),
    (
        "an encoder's sequence without one",
        lambda: train("gpt2", values={"encoder_sequence": 64}),
        (
            "encoder_sequence: found 64, but gpt2 has not both an encoder and a decoder; expected none, "
            "sequence is that of all its layers"
        ),
    ),
    (
        "an encoder's sequence alone",
        lambda: train("bert-base", values={"encoder_sequence": 64}),
        (
            "encoder_sequence: found 64, but bert-base has not both an encoder and a decoder; expected "
            "none, sequence is that of all its layers"
        ),
    ),
    (
        "more positions than learned",
        lambda: train("bart-large", values={"encoder_sequence": 2048}),
        "encoder_sequence: 2048 tokens, but bart-large has 1026 learned positions",
    ),
    (
        "shards of an encoder's sequence",
        lambda: train("t5-base", tp=4, sequence_parallel=True, values={"encoder_sequence": 510}),
        "sequence_parallel: encoder_sequence 510 is not divisible by tp = 4",
    ),
    (
        "an image of another length",
        lambda: sf.training(sf.Model.load("vit-base-p16-224"), SYSTEM, sf.Plan(), batch=8, sequence=196),
        "sequence: found 196, expected 197: vit-base-p16-224 makes 196 patches of an image, and a class token if any",
    ),
    (
        "no length",
        lambda: train("t5-base", values={"encoder_sequence": 0}),
        "encoder_sequence: found 0, expected a whole number from 1 to 1000000000",
    ),
]


@pytest.mark.parametrize(("ask", "line"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_refusal_has_its_own_sentence(ask: Callable[[], Any], line: str) -> None:
    """One line that says what was found and what would do."""
    with pytest.raises(sf.InputError) as caught:
        ask()
    assert str(caught.value) == line


# Sweeps -----------------------------------------------------------------------------------------------------


def test_a_sweep_finds_what_single_runs_find() -> None:
    """Over recurrent, encoder and windowed models alike, with the same refusals."""
    names = ["nemotron-h-8b", "bamba-9b", "t5-base", "gemma-3-1b", "mamba-130m"]
    found = train("gpt2").sweep(model=names, tp=[1, 2], sequence=[512, 1024], outputs=["time", "memory"])
    frame = found.to_dataframe().reset_index()
    assert len(frame) == len(names) * 4
    for row in frame.itertuples():
        try:
            run = train(row.model, sequence=row.sequence, tp=row.tp)
        except sf.InputError:
            assert np.isnan(row.time)
            continue
        assert row.time == pytest.approx(run.value("time"), rel=1e-12)
        assert row.memory == pytest.approx(run.value("memory"), rel=1e-12)


def test_the_encoders_sequence_is_an_axis_too() -> None:
    """And else it is as long as the decoder's, at every point."""
    run = train("t5-base")
    lengths = [128, 512, 1024]
    found = run.sweep(encoder_sequence=lengths, outputs="time").to_dataframe().reset_index()
    for row in found.itertuples():
        assert row.time == pytest.approx(run.bind(encoder_sequence=row.encoder_sequence).value("time"), rel=1e-12)
    both = run.sweep(sequence=lengths, outputs="time").to_dataframe().reset_index()
    for row in both.itertuples():
        assert row.time == pytest.approx(train("t5-base", sequence=row.sequence).value("time"), rel=1e-12)

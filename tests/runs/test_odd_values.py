"""Any symbol at 0, 1, -1, a half or a huge number: the run answers whole, or one line says what was expected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.effort import some

import symperf as sf
from symperf.cli import main

if TYPE_CHECKING:
    from symperf.runs.full_run import FullRun

MODELS = (
    "llama-3-8b",
    "deepseek-v3",
    "gpt3-1.3b",
    "mixtral-8x7b",
    "qwen3-next-80b-a3b",
    "mamba2-780m",
    "jamba-v0.1",
    "gemma-2-9b",
    "bert-base",
    "t5-large",
    "llama-4-scout",
    "gpt-oss-20b",
)
VALUES = ("0", "1", "-1", "0.5", "9007199254740992")
WORK = {
    "train": ("--batch", "8", "--sequence", "512"),
    "infer": ("--batch", "2", "--prompt", "64", "--generate", "4"),
}
KINDS = some([(kind, model) for model in MODELS for kind in WORK], 0.04)


def made(kind: str, model: str) -> FullRun:
    loaded, system = sf.Model.load(model), sf.System.load("h100-sxm")
    if kind == "train":
        return sf.training(loaded, system, sf.Plan(), batch=8, sequence=512)
    return sf.inference(loaded, system, sf.Plan(), batch=2, prompt=64, generate=4)


@pytest.mark.parametrize(("kind", "model"), KINDS)
def test_every_symbol_at_odd_values_answers_or_is_refused(
    kind: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback; what is answered is a number everywhere, and text says it too."""
    run = made(kind, model)
    names = sorted({*run.bound, *run.model.sizes})
    for name, value in some([(name, value) for name in names for value in VALUES], 0.04):
        command = [kind, model, "-s", "h100-sxm", *WORK[kind], "--set", f"{name}={value}"]
        status = main(command)
        told = capsys.readouterr()
        assert status in (0, 2), command
        if status:
            assert told.err.startswith("symperf: "), command
            assert told.err.count("\n") == 1, command
            continue
        assert "nan" not in told.out.lower().split(), command
        assert main([*command, "--json"]) == 0, command
        json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


@pytest.mark.parametrize("count", ["0", "1", "3"])
def test_modules_for_multi_token_prediction_may_be_none(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Terms that nothing executes are not in the table; the others are."""
    command = ["train", "deepseek-v3", "-s", "h100-sxm", "--dp", "8", "--ep", "8", "--batch", "8", "--sequence", "512"]
    assert main([*command, "--set", f"num_multi_token_layers={count}"]) == 0
    told = capsys.readouterr().out
    assert ("multi_token/projection" in told) == (count != "0")
    assert "layer/latent_attention_experts/" in told

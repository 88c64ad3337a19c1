"""What requests bring, in questions about an inference: adapters, cached prefixes, and images."""

from __future__ import annotations

import json
from typing import Any

import pytest

from symperf.cli import main

INFER = ["llama-3.2-1b", "-s", "h100-sxm", "--batch", "4", "--prompt", "512", "--generate", "16"]
SEEING = ["qwen2.5-vl-7b", "-s", "h100-sxm", "--batch", "1", "--prompt", "64", "--generate", "4"]


def _answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("more", [["--lora-rank", "16", "--lora-adapters", "4"], ["--prefix", "400"]])
def test_a_closed_form_has_the_value_of_the_run(capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    derived = _answer(capsys, "derive", "infer", *INFER, *more)
    assert derived["value"] == pytest.approx(_answer(capsys, "infer", *INFER, *more)["time_s"], rel=1e-9)
    assert derived["value"] != pytest.approx(_answer(capsys, "derive", "infer", *INFER)["value"], rel=1e-3)


def test_regimes_are_of_what_requests_bring(capsys: pytest.CaptureFixture[str]) -> None:
    over = ["--over", "memory_bandwidth", "--from", "1e12", "--to", "4e12"]
    text = _answer(capsys, "regimes", "infer", *INFER, "--lora-rank", "64", "--lora-adapters", "32", *over)
    plain = _answer(capsys, "regimes", "infer", *INFER, *over)
    assert text != plain


def test_adapters_are_part_of_an_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    base = [
        "derive",
        "serve",
        "llama-3.2-1b",
        "-s",
        "h100-sxm",
        "--prompt",
        "512",
        "--generate",
        "64",
        "--concurrency",
        "8",
    ]
    plain, adapted = _answer(capsys, *base), _answer(capsys, *base, "--lora-rank", "16")
    assert adapted["value"] > plain["value"]


def test_images_join_the_prompt_and_their_encoder_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["derive", "infer", *SEEING, "--images", "1x448x448", "--json"]) == 0
    written = capsys.readouterr()
    assert "the encoder is not in them" in written.err
    whole = _answer(capsys, "infer", *SEEING, "--images", "1x448x448")
    assert json.loads(written.out)["value"] == pytest.approx(whole["prefill_s"] + whole["decode_s"], rel=1e-9)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["infer", *INFER, "--lora-adapters", "4"], "lora_adapters: means something with adapters only"),
        (["infer", *INFER, "--prefix", "513"], "prefix: found 513"),
        (["infer", *INFER, "--images", "1x448x448"], "images"),
        (["infer", *INFER, "--lora-rank", "99999"], "lora_rank: found 99999"),
        (["serve", *INFER[:3], "--prompt", "512", "--generate", "16", "--prefix", "9"], "--prefix is of another kind"),
        (["train", *INFER[:3], "--batch", "4", "--sequence", "512", "--lora-adapters", "2"], "--lora-adapters is of"),
    ],
)
def test_what_does_not_go_together_is_one_line(capsys: pytest.CaptureFixture[str], words: list[str], text: str) -> None:
    assert main(["derive", *words]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1

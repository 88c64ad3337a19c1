"""What the kernels execute, beside the convention that counts every pair of tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part, some
from support.inference_cases import CASES
from support.inference_cases import make as inference
from support.kind_cases import train

import symperf as sf
from symperf.cli import main

TRAINED: dict[str, dict[str, Any]] = {
    "flash": {"model": "llama-2-7b", "tp": 2},
    "flash in 8 bits": {"model": "llama-2-7b", "precision": "fp8", "recompute": "full"},
    "latent attention and modules": {"model": "deepseek-v3", "ep": 4, "dp": 4},
    "chunks": {"model": "llama-4-scout", "tp": 2, "sequence_parallel": True},
    "windows": {"model": "mistral-7b-v0.1", "pp": 2},
    "recurrent": {"model": "mamba2-780m"},
    "some layers recomputed": {"model": "llama-2-7b", "recompute": "full", "recompute_layers": 8, "attention": "eager"},
    "rings": {"model": "llama-2-7b", "cp": 4},
    "muon": {"model": "llama-2-7b", "optimizer": "muon"},
}
EAGER = [
    ("gpt3-175b", {"tp": 8, "pp": 8, "recompute": "selective"}),
    ("gpt3-175b", {"tp": 8, "recompute": "full"}),
    ("gpt-22b", {"pp": 7, "uneven_stages": True}),
    ("gpt-22b", {"pp": 4, "schedule": "zero-bubble"}),
    ("gpt3-175b", {"pp": 4, "dp": 2, "schedule": "dualpipe"}),
    ("llama-2-7b", {"attention": "eager", "recompute": "full", "recompute_layers": 8}),
]
STEPS = some(TRAINED, 0.25)
PREFILLS = some(CASES, 0.08)


@part(0.08)
@given(st.sampled_from(STEPS), st.sampled_from([512, 4096, 65536, 2**20, 2**22]), st.sampled_from([8, 64]))
def test_a_step_never_executes_more_than_the_peak(name: str, sequence: int, batch: int) -> None:
    """However long sequences are, although MFU by the convention passes 1."""
    case = dict(TRAINED[name])
    found = train(case.pop("model"), sequence=sequence, batch=batch, **case).value("mfu_executed")
    assert 0 < found <= 1


@part(0.08)
@given(st.sampled_from(PREFILLS), st.sampled_from([1, 64, 4096, 2**17, 2**20]), st.sampled_from(["bf16", "fp8"]))
def test_a_prefill_never_executes_more_than_the_peak(name: str, prompt: int, precision: str) -> None:
    try:
        run = inference(name, prompt=prompt, generate=2, precision=precision)
    except sf.InputError:
        return
    assert 0 < run.value("prefill_mfu_executed") <= 1


@pytest.mark.parametrize(
    ("model", "plan"),
    some(EAGER, 0.3),
)
def test_where_kernels_compute_every_pair_the_convention_is_what_is_executed(model: str, plan: dict[str, Any]) -> None:
    """Eager attention stores all scores: counted from the operations, HFU is what equation 8 counts from sizes."""
    run = train(model, sequence=2048, batch=16, **plan)
    assert run.value("mfu_executed") == pytest.approx(run.value("hfu"), rel=1e-12)


def test_a_causal_kernel_executes_half_and_its_backward_pass_more() -> None:
    """Long sequences: forward half of the convention's 1, backward 5/2 of that half for its 2. So 7/12 of it."""
    run = train("llama-2-7b", sequence=2**24, batch=8)
    assert run.value("mfu_executed") / run.value("mfu") == pytest.approx(7 / 12, rel=0.002)
    prefill = inference("llama on h100", prompt=2**22, generate=2)
    assert prefill.value("prefill_mfu_executed") / prefill.value("prefill_mfu") == pytest.approx(1 / 2, rel=0.01)


def test_a_window_executes_its_width() -> None:
    """s w pairs of s^2: a prefill of 2^20 tokens with a window of 4096."""
    run = inference("windows", prompt=2**20, generate=2)
    assert run.value("prefill_mfu") > 1
    heads, width, layers = (run.model.sizes[name] for name in ("num_attention_heads", "head_dim", "num_layers"))
    hidden_pairs = 2**20 * (2**20 - 4096) + 4096 * 4095 / 2
    skipped = 4 * layers * heads * width * hidden_pairs
    peak = run.bound["matrix_rate"][0] * run.value("prefill")
    assert run.value("prefill_mfu_executed") == pytest.approx(run.value("prefill_mfu") - skipped / peak, rel=1e-9)


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_both_are_shown_where_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    """With a word on why; and what no device can reach has a warning."""
    of = ("llama-2-7b", "-s", "a100-80gb-sxm", "--dp", "8", "--batch", "8", "--recompute", "full")
    long = ask(capsys, "train", *of, "--sequence", "4194304")
    assert "a causal kernel executes half" in long
    assert "recomputation repeats work" in long
    assert "warning: HFU of 100.3 % is above 100 %" in long
    told = json.loads(ask(capsys, "train", *of, "--sequence", "4194304", "--json"))
    assert told["mfu_executed"] < told["mfu"] < 1 < told["hfu"]
    assert any("above 100 %" in text for text in told["warnings"])
    gpt = ("gpt3-175b", "-s", "a100-80gb-sxm", "--tp", "8", "--pp", "8", "--batch", "64", "--sequence", "2048")
    assert "executed" not in ask(capsys, "train", *gpt)
    prefill = ("mistral-7b", "-s", "h100-sxm", "--batch", "1", "--prompt", "131072", "--generate", "10")
    assert "kernels skip what windows and masks hide" in ask(capsys, "infer", *prefill)
    assert json.loads(ask(capsys, "infer", *prefill, "--json"))["prefill_mfu_executed"] < 1

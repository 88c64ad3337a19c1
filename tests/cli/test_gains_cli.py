"""`symperf gains` and `symperf limits` from the command line, of every kind of run."""

from __future__ import annotations

import json

import pytest
from support.effort import some

from symperf.cli import main

RUNS = {
    "train": ("llama-2-7b", "-s", "h100-sxm", "--dp", "8", "--batch", "8", "--sequence", "4096"),
    "infer": ("llama-2-7b", "-s", "h100-sxm", "--batch", "4", "--prompt", "512", "--generate", "32"),
    "serve": ("llama-2-7b", "-s", "h100-sxm", "--prompt", "512", "--generate", "32", "--concurrency", "16"),
}


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", some(RUNS, 0.7))
def test_gains_of_every_kind_of_run(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first line is a sentence; the object has the keys of the contract, the best first."""
    text = ask(capsys, "gains", kind, *RUNS[kind])
    assert " faster; nothing else gives more than " in text.splitlines()[0]
    told = json.loads(ask(capsys, "gains", kind, *RUNS[kind], "--json"), parse_constant=pytest.fail)
    assert all({"symbol", "plus_10_percent", "times_2", "limit"} <= gain.keys() for gain in told["gains"])
    assert [gain["times_2"] for gain in told["gains"]] == sorted((g["times_2"] for g in told["gains"]), reverse=True)
    assert {gain["resource"] for gain in told["gains"] if gain["symbol"] is None} >= {"compute", "memory", "launch"}
    assert r"\begin{document}" in ask(capsys, "gains", kind, *RUNS[kind], "--latex")


def test_gains_by_term_are_the_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    text = ask(capsys, "gains", "train", *RUNS["train"], "--by-term")
    assert "seconds by term and resource" in text
    told = json.loads(ask(capsys, "gains", "train", *RUNS["train"], "--by-term", "--json"))
    assert told["resources"]
    assert told["terms"][0]["seconds"].keys() == set(told["resources"])


@pytest.mark.parametrize(
    ("kind", "over"), some(zip(RUNS, ("sequence", "memory_bandwidth", "prompt"), strict=True), 0.7)
)
def test_limits_of_every_kind_of_run(kind: str, over: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("limits", kind, *RUNS[kind], "--over", over)
    text = ask(capsys, *words)
    assert text.startswith("With ")
    told = json.loads(ask(capsys, *words, "--json"), parse_constant=pytest.fail)
    assert {"leading_term", "exponent", "lower", "upper"} <= told.keys()
    assert told["lower"] <= told["value"] <= told["upper"]
    assert over in told["leading_term"] or told["exponent"] == 0
    assert r"\begin{document}" in ask(capsys, *words, "--latex")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("gains", "train", *RUNS["train"], "--of", "tim"), "gains: unknown quantity 'tim'; did you mean time"),
        (("gains", "train", *RUNS["train"], "--of", "zzz"), "gains: unknown quantity 'zzz'; known are time, "),
        (("gains", "train", *RUNS["train"], "--of", "parameters"), "depends on nothing that can be bought or tuned"),
        (("gains", "trian", *RUNS["train"]), "gains: found 'trian', expected train or infer or serve"),
        (("limits", "train", *RUNS["train"], "--over", "sequenc"), "no symbol 'sequenc'; did you mean sequence"),
        (("limits", "train", *RUNS["train"], "--over", "batch", "--of", "parameters"), "does not depend on batch"),
        (("limits", "train", *RUNS["train"]), "--over"),
        (("gains", "train", *RUNS["train"], "--plot", "gains.gif"), "expected a file that ends in .png"),
    ],
)
def test_bad_questions_are_one_line(words: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(words)) == 2
    told = capsys.readouterr()
    assert line in told.err
    assert told.err.count("\n") == 1
    assert not told.out

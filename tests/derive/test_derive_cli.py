"""`symperf derive` on the command line."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from symperf.cli import main

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = shlex.split("derive train gpt3-175b -s a100-80gb-sxm --tp 8 --pp 8 --batch 64 --sequence 2048")
INFER = shlex.split("derive infer llama-2-7b -s a100-80gb-sxm --batch 8 --prompt 200 --generate 100")
KEYS = shlex.split(
    "model system of term unit value free folded below lines dropped relations zero conditions definitions symbols "
    "time regimes"
)


def said(capsys: Any, *arguments: str) -> str:
    """What a command prints."""
    assert main(list(arguments)) == 0
    out = capsys.readouterr()
    assert out.err == ""
    return str(out.out)


@pytest.mark.parametrize("command", [TRAIN, INFER])
def test_text(command: list[str], capsys: Any) -> None:
    """Lines, regime and symbols in 120 columns; the whole form if asked for."""
    text = said(capsys, *command)
    assert text.startswith("T = ")
    assert "Holds while" in text
    assert "Symbols" in text
    assert max(map(len, text.splitlines())) <= 120
    assert "Whole closed form" in said(capsys, *command, "--whole")


@pytest.mark.parametrize("command", [TRAIN, INFER])
def test_json(command: list[str], capsys: Any) -> None:
    """Every key is there, and the lines are the quantity."""
    data = json.loads(said(capsys, *command, "--json", "--of", "tokens_per_s"))
    assert list(data) == [*KEYS, "schema", "constants_version"]
    assert data["time"]["of"] == "time"
    for each in (data, data["time"]):
        total = sum(line["value"] for line in each["lines"]) + each["dropped"]["value"]
        assert total == pytest.approx(each["value"], rel=1e-12)
    assert data["regimes"] is None


def test_conditions(capsys: Any) -> None:
    """What is zero is told near the top; the nearest conditions, or all; in JSON all, each with its text."""
    text = said(capsys, *TRAIN)
    assert text.index("Zero here: ") < text.index("Holds while") < text.index("more (--conditions all)")
    assert "gradients/reduce (d = 1)" in text
    for start in ("zero parts stay zero: ", "quotients stay whole: ", "roundings stay as they are here: "):
        assert start in text
    every = said(capsys, *TRAIN, "--conditions", "all")
    assert "more (--conditions all)" not in every
    data = json.loads(said(capsys, *TRAIN, "--json"))
    kinds = {condition["kind"] for condition in data["conditions"]}
    assert kinds == {"max", "min", "present", "vanishes", "divides", "rounding", "equals"}
    texts = [condition["text"] for condition in data["conditions"]]
    assert {"φ_t = 1", "d = 1", "f = 4 h", "w_x = 2 B", "t divides V"} <= set(texts)
    flat = " ".join(every.split())
    assert all(
        " ".join(text.split()) in flat
        for text, each in zip(texts, data["conditions"], strict=True)
        if each["kind"] in ("vanishes", "equals")
    )
    assert any("gradients/reduce (d = 1)" in row for row in data["zero"])


def test_a_term_that_is_zero(capsys: Any) -> None:
    """It is 0, with what makes it so; its whole form is what it is elsewhere."""
    bubble = [*(each if each != "8" else "1" for each in TRAIN), "--term", "pipeline/bubble"]
    text = said(capsys, *bubble)
    assert "Zero here: pipeline/bubble (p = 1)" in text
    assert "= 0" in said(capsys, *bubble, "--fragment")
    namespace: dict[str, Any] = {}
    exec(said(capsys, *bubble, "--python"), namespace)
    form = namespace["symperf_time_of_pipeline_bubble"]
    assert form() == 0
    assert form(pp=4) > 0


def test_all_else_is_a_number(capsys: Any) -> None:
    """With a free symbol the others are conditions in one row."""
    text = said(capsys, *TRAIN, "--free", "batch")
    assert "all else keeps its value: " in text
    assert "()" not in text


def test_spending(capsys: Any) -> None:
    """Energy and cost over the time, in their units; a system without a price is told in one line."""
    assert said(capsys, *TRAIN, "--of", "energy").startswith("energy = ")
    priced = [*TRAIN, "--set", "price_per_hour=2 USD/h", "--of"]
    cost = json.loads(said(capsys, *priced, "cost", "--json"))
    assert (cost["unit"], cost["time"]["of"]) == ("USD", "time")
    assert cost["value"] == pytest.approx(64 * 2 / 3600 * cost["time"]["value"])
    assert [symbol["value"] for symbol in cost["symbols"] if symbol["name"] == "price_per_hour"] == [2 / 3600]
    free = json.loads(said(capsys, *priced, "dollars", "--json", "--free", "batch"))
    assert free["value"] == pytest.approx(cost["value"], rel=1e-12)


def test_free_and_term(capsys: Any) -> None:
    """Names may be written like flags."""
    data = json.loads(said(capsys, *TRAIN, "--json", "--free", "micro-batch", "--term", "layer/mlp"))
    assert data["free"] == ["micro_batch"]
    assert data["term"] == "layer/mlp"
    assert {symbol["name"] for symbol in data["symbols"] if symbol["free"]} == {"micro_batch"}


def test_regimes(capsys: Any) -> None:
    """With --wrt the regimes along a symbol follow."""
    along = ("--wrt", "memory_bandwidth", "--from", "1e11", "--to", "1e13")
    assert "compute" in said(capsys, *TRAIN, *along).rpartition("Symbols")[2]
    data = json.loads(said(capsys, *TRAIN, *along, "--json"))
    assert data["regimes"]["symbol"] == "memory_bandwidth"
    assert len(data["regimes"]["intervals"]) > 1


@pytest.mark.parametrize(
    ("flag", "suffix", "beginning"),
    [
        ("--latex", ".tex", "\\documentclass[a4paper,fleqn]{article}"),
        ("--python", ".py", '"""time, in s'),
        ("--c", ".c", "/* time"),
        ("--js", ".mjs", "// Generated"),
        ("--unicode", ".txt", "T = "),
    ],
)
def test_formats_and_files(flag: str, suffix: str, beginning: str, tmp_path: Path, capsys: Any) -> None:
    """A file has what would be printed; its suffix says the format."""
    text = said(capsys, *TRAIN, flag)
    assert text.startswith(beginning)
    for more in ([], [flag]):
        file = tmp_path / f"form{suffix}"
        assert said(capsys, *TRAIN, *more, "-o", str(file)) == ""
        assert file.read_text(encoding="utf-8") == text
    assert said(capsys, *TRAIN, "--fragment").startswith(("\\begin", "\\begingroup"))


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ([*TRAIN, "--of", "tme"], "unknown quantity 'tme'"),
        ([*TRAIN, "-s", "h800-sxm", "--of", "cost"], "cost: system h800-sxm has no price; set price_per_hour"),
        ([*TRAIN, "--conditions", "some"], "--conditions"),
        ([*TRAIN, "--term", "layer/mpl"], "did you mean layer/mlp"),
        ([*TRAIN, "--free", "micro_bach"], "did you mean micro_batch"),
        ([*TRAIN, "--below", "2"], "below: found 2.0"),
        ([*TRAIN, "--wrt", "tpp"], "wrt: the run has no symbol 'tpp'"),
        ([*TRAIN, "--wrt", "tp", "--from", "4"], "--from and --to go together"),
        ([*TRAIN, "--from", "4", "--to", "5"], "need --wrt NAME"),
        ([*TRAIN, "--wrt", "memory_bandwidth", "--from", "2e12", "--to", "1e12"], "from 2e+12 to 1e+12"),
        ([*TRAIN, "--wrt", "memory_bandwidth", "--from", "2e12", "--to", "2e12"], "empty"),
        ([*TRAIN, "--of", "memory", "--wrt", "workspace_bytes"], "is 0 here, expected --from and --to"),
        ([*TRAIN, "--wrt", "tp", "--latex"], "--wrt prints text, without --latex"),
        ([*TRAIN, "--wrt", "tp", "--term", "layer"], "without --term"),
        ([*TRAIN, "--latex", "--python"], "not allowed with argument"),
        ([*TRAIN, "--json", "--c"], "--json prints one object, without --c"),
        ([*TRAIN, "-o", "form.doc"], "expected a name that ends in .tex"),
        ([*TRAIN, "-o", "no/such/folder/form.tex"], "cannot be written"),
        ([*TRAIN, "--fold", "format"], "did you mean formats"),
        ([*TRAIN, "--prompt", "3"], "derive train: --prompt is of another kind of run"),
        ([*INFER, "--sequence", "3"], "derive infer: --sequence is of another kind of run"),
        (["derive", "tran", *TRAIN[2:]], "expected train or infer or serve before the model; did you mean train"),
        (TRAIN[:-2], "derive train: --sequence is needed"),
        (INFER[:-2], "derive infer: --generate is needed"),
        ([*TRAIN, "--fre", "tp"], "unknown argument '--fre'"),
    ],
)
def test_bad_input(command: list[str], complaint: str, capsys: Any) -> None:
    """One clear line and exit status 2."""
    assert main(command) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert complaint in out.err
    assert out.err.count("\n") == 1


def test_a_prediction_imports_no_sympy() -> None:
    """The method on runs costs nothing until it is called."""
    code = (
        "import sys, symperf.runs.training_run, symperf.derive, symperf.cli.derive; assert 'sympy' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_a_condition_is_of_stands_below_its_last_branch(capsys: pytest.CaptureFixture[str]) -> None:
    """No further branch of a condition comes after the terms that it is of."""
    lines = said(capsys, *INFER, "--of", "time_per_token").splitlines()
    further = [k for k, line in enumerate(lines) if line.startswith("    and ≥")]
    assert further
    assert not [lines[k - 1] for k in further if re.search(r"^ {11}.* x\)$", lines[k - 1])]


def test_every_zero_is_told_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Products that a longer transfer hides are named, with why, as those that a switch hides."""
    plan = shlex.split("derive train llama-3.1-70b -s h100-sxm --tp 8 --pp 4 --dp 8 --sequence-parallel --batch 256")
    zeros = re.search(r"Zero here: (.*?)\n\S", said(capsys, *plan, "--sequence", "8192"), re.DOTALL)
    assert zeros is not None
    text = " ".join(zeros[1].split())
    assert "qkv/backward_input, layer/attention/qkv/backward_weight (shorter than what runs beside it)" in text
    assert all(each.endswith(")") for each in text.split("; "))


def test_no_condition_says_that_bytes_are_not_negative(capsys: Any) -> None:
    """The last stage's activations are 0 without a pipeline, which is a zero part and no branch."""
    command = "derive train gpt3-175b -s a100-80gb-sxm --batch 1 --sequence 1024 --of memory --term activations"
    text = said(capsys, *command.split(), "--conditions", "all")
    assert "[p > 1] = 0" in text
    assert not [line for line in text.splitlines() if "≥ 0" in line]


@pytest.mark.parametrize("stack", ["torchtitan-2026", "megatron-core-2026"])
def test_a_profile_of_training_chooses_for_every_verb_what_it_chooses_for_train(stack: str, capsys: Any) -> None:
    """The plan's fields that are not given; those that are given stay."""
    for more in ([], ["--zero", "0", "--loss", "unfused"]):
        asked = ["gpt2", "-s", "h100-sxm", "--dp", "8", "--batch", "64", "--sequence", "1024", "--stack", stack, *more]
        step = json.loads(said(capsys, "train", *asked, "--json"))["time_s"]
        assert json.loads(said(capsys, "derive", "train", *asked, "--json"))["value"] == pytest.approx(step, rel=1e-12)

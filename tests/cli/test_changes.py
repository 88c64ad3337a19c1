"""`symperf regimes` and `symperf phase` on the command line."""

from __future__ import annotations

import json
import math
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import some

from symperf.cli import main

if TYPE_CHECKING:
    from pathlib import Path

INFER = shlex.split("infer llama-2-7b -s a100-80gb-sxm --batch 8 --prompt 200 --generate 100")
TRAIN = shlex.split("train gpt3-175b -s a100-80gb-sxm --tp 8 --pp 8 --batch 64 --sequence 2048 --sequence-parallel")
SERVE = shlex.split("serve llama-2-7b -s a100-80gb-sxm --prompt 200 --generate 100")


def said(capsys: Any, *arguments: str) -> str:
    """What a command prints."""
    assert main(list(arguments)) == 0
    out = capsys.readouterr()
    assert out.err == ""
    return str(out.out)


@pytest.mark.parametrize(
    ("kind", "more"),
    some(
        [
            (INFER, "--over batch --from 1 --to 300 --of decode"),
            (INFER, "--over memory-bandwidth --from 0.5TB/s --to 10TB/s --of decode/layer/mlp/gate_up"),
            (INFER, "--over batch --from 1 --to 64 --of memory"),
            (TRAIN, "--over tp --from 1 --to 32"),
            (TRAIN, "--over memory_bandwidth --of mfu --all"),
            (SERVE, "--over concurrency --from 1 --to 200"),
        ]
    ),
)
def test_text_of_regimes(kind: list[str], more: str, capsys: Any) -> None:
    """One sentence with what binds first, then one row a stretch; no value is cut in a narrow window."""
    width = 60
    text = said(capsys, "regimes", *kind, *shlex.split(more), "--width", str(width))
    found = json.loads(said(capsys, "regimes", *kind, *shlex.split(more), "--json"))
    assert text.replace("\n", " ").startswith(found["sentence"])
    assert found["sentence"].endswith(".")
    assert found["intervals"][0]["bound"] in found["sentence"]
    assert max(map(len, text.splitlines())) <= width
    joined = "".join(text.split())
    for interval in found["intervals"]:
        for term in interval["terms"]:
            assert term["name"].partition("/")[0] in joined


def test_keys_of_regimes(capsys: Any) -> None:
    """Every key of the contract is there; intervals follow one another, and what was skipped is told."""
    found = json.loads(said(capsys, "regimes", *TRAIN, "--over", "tp", "--from", "1", "--to", "32", "--json"))
    assert {"intervals", "crossovers", "skipped"} <= set(found)
    for interval in found["intervals"]:
        assert {"low", "high", "bound", "terms"} <= set(interval)
    assert len(found["crossovers"]) == len(found["intervals"]) - 1
    for crossover, before, after in zip(found["crossovers"], found["intervals"], found["intervals"][1:], strict=False):
        assert {"at", "from", "to", "closed_form"} <= set(crossover)
        assert (crossover["from"], crossover["to"]) == (before["bound"], after["bound"])
        assert before["high"] < crossover["at"] == after["low"]
    skipped = {each["value"]: each["reason"] for each in found["skipped"]}
    assert skipped[1] == "sequence_parallel: needs tp above 1, found tp = 1"
    assert "does not divide the 96 attention heads" in skipped[5]
    assert {*skipped, 2, 4, 8, 16, 32} == set(range(1, 33))


def test_a_closed_form_is_the_crossover(capsys: Any) -> None:
    """The text in the JSON is an expression in the symbols' names: at the run's values it is the crossover."""
    import sympy

    import symperf as sf

    stack = "tensorrt-llm"  # which keeps products of gate and up apart
    more = shlex.split(
        "--over memory_bandwidth --from '500 GB/s' --to '10 TB/s' --of decode/layer/mlp/up --stack " + stack
    )
    (crossover,) = json.loads(said(capsys, "regimes", *INFER, *more, "--json"))["crossovers"]
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("a100-80gb-sxm")
    bound = sf.inference(model, system, sf.Plan(), batch=8, prompt=200, generate=100, stack=stack).bound
    rounded = {"ceil_div": lambda a, b: sympy.ceiling(a / b)}
    expr = sympy.sympify(crossover["closed_form"], locals=rounded)
    assert "memory_bandwidth" not in crossover["closed_form"]
    value = float(expr.subs({s: bound[s.name][0] for s in expr.free_symbols}))
    assert math.isclose(value, crossover["at"], rel_tol=1e-9)
    assert "β = " in said(capsys, "regimes", *INFER, *more)


def test_units_are_read(capsys: Any) -> None:
    for low, high in (("1 TB/s", "4 TB/s"), ("1e12", "4000 GB/s")):
        more = ["--over", "memory_bandwidth", "--from", low, "--to", high, "--json"]
        found = json.loads(said(capsys, "regimes", *TRAIN, *more))
        assert (found["low"], found["high"]) == (1e12, 4e12)


def test_text_of_phase(capsys: Any) -> None:
    """A sentence with the part of each region, a map of letters, and the boundaries."""
    more = shlex.split(
        "--over memory_bandwidth --from 1e11 --to 1e14 --and matrix_rate --and-from 1e13 --and-to 1e16 --points 9"
    )
    text, found = (said(capsys, "phase", *TRAIN, *more, *way) for way in ([], ["--json"]))
    told = json.loads(found)
    assert {"regions", "boundaries"} <= set(told)
    assert math.isclose(sum(region["part"] for region in told["regions"]), 1.0)
    for region in told["regions"]:
        assert region["bound"] in told["sentence"]
    assert text.replace("\n", " ").startswith(told["sentence"])
    rows = [line.split()[-1] for line in text.split("\n\n")[1].splitlines()[1:10]]
    letters = {"C": "compute", "M": "memory", "L": "l2"}
    assert [[letters[letter] for letter in row] for row in rows] == told["region"][::-1]


def test_a_map_says_what_is_refused(capsys: Any) -> None:
    more = shlex.split("--over tp --from 1 --to 12 --and pp --and-from 1 --and-to 12")
    text = said(capsys, "phase", *TRAIN, *more)
    told = json.loads(said(capsys, "phase", *TRAIN, *more, "--json"))
    assert told["x_values"] == [2, 4, 8]
    assert told["y_values"] == [1, 2, 3, 4, 6, 8, 12]
    assert {tuple(each["value"]) for each in told["skipped"]} >= {(1, 1), (3, 2), (8, 5)}
    assert "Skipped: " in text


@pytest.mark.parametrize("verb", ["regimes", "phase"])
def test_pictures_and_documents(verb: str, capsys: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    more = shlex.split("--over memory_bandwidth" + (" --and matrix_rate --points 5" if verb == "phase" else ""))
    target = tmp_path / "picture.svg"
    said(capsys, verb, *TRAIN, *more, "--plot", str(target))
    assert "memory_bandwidth" in target.read_text() or target.stat().st_size > 2000
    latex = said(capsys, verb, *TRAIN, *more, "--latex")
    assert latex.startswith("\\documentclass")
    assert latex.rstrip().endswith("\\end{document}")


@pytest.mark.parametrize(
    ("command", "status", "line"),
    [
        ("regimes {train} --over tpp", 2, "regimes: the run has no symbol 'tpp'; did you mean tp"),
        ("regimes {train} --over tp --of layer/mpl", 2, "unknown quantity 'layer/mpl'; did you mean layer/mlp"),
        ("regimes {train} --over tp --from 8 --to 2", 2, "the range from 8 to 2 is reversed, expected low below high"),
        ("regimes {train} --over tp --from 8 --to 8", 2, "the range from 8 to 8 is empty, expected low below high"),
        ("regimes {train} --over tp --from 1.5 --to 8", 2, "regimes: low is 1.5, but tp is a whole number"),
        (
            "regimes {train} --over tp --from 5 --to 7",
            1,
            "the run accepts no tp of 5 to 7: tp: 5 does not divide the 96",
        ),
        ("regimes {train} --over tp --from '5 GB' --to 7", 2, "regimes: --from of tp: found '5 GB'"),
        ("regimes {train} --over memory_bandwidth --from '5 GB' --to '7 TB/s'", 2, "expected a bandwidth such as"),
        ("regimes {train} --over matrix_efficiency --from 0.5 --to 3", 2, "matrix_efficiency from 0.5 to 3: "),
        ("regimes {train} --over memory_bandwidth --of memory", 2, "memory does not depend on memory_bandwidth"),
        ("regimes {train} -s h800-sxm --over memory_bandwidth --of cost", 2, "cost: system h800-sxm has no price"),
        ("regimes {train} --over scale_up_latency --band 1", 2, "band is 1.0, expected a share from 0 to below 1"),
        ("regimes {infer} --over batch --view exact", 2, "invalid choice: 'exact'"),
        ("regimes {serve} --over memory_bandwidth --of energy", 2, "energy: an iteration of serving has none"),
        ("phase {train} --over tp --and tp", 2, "phase: found 'tp' twice, expected two symbols"),
        ("phase {train} --over tp --and pp --from 1", 2, "phase: --from and --to go together"),
        ("phase {train} --over tp --and pp --points 1", 2, "phase: points is 1, expected a whole number from 2"),
        ("phase {train} --over tp", 2, "the following arguments are required: --and"),
    ],
)
def test_bad_questions_are_one_line(command: str, status: int, line: str, capsys: Any) -> None:
    parts = shlex.split(command)
    kinds = {"{train}": TRAIN, "{infer}": INFER, "{serve}": SERVE}
    assert main([word for part in parts for word in kinds.get(part, [part])]) == status
    out = capsys.readouterr()
    assert out.out == ""
    assert line in out.err
    assert out.err.count("\n") == 1

"""`symperf solve` and `symperf cross`: text, JSON, LaTeX and pictures, exit statuses, and one line of bad input."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import symperf as sf
from symperf.cli import main
from symperf.cli.parser import build

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = "train gpt3-175b -s a100-80gb-sxm --tp 8 --pp 8 --batch 64 --sequence 2048"
INFER = "infer llama-2-70b -s h100-sxm --tp 8 --batch 8 --prompt 1024 --generate 256"
SERVE = "serve llama-2-7b -s h100-sxm --prompt 512 --generate 128 --concurrency 16"


def asked(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    status = main(shlex.split(command))
    out = capsys.readouterr()
    return status, out.out, out.err


ANSWERS = {
    f'solve {INFER} --for batch --memory "80 GB"': "batch = 1133 is the largest that meets memory <= 80 GB.",
    f'solve {INFER} --for memory-bandwidth --of time_per_token="15 ms"': "brings time_per_token to 15 ms",
    f'solve {SERVE} --for concurrency --time "10 ms" --of "tokens_per_s=1 ktoken/s"': "is the largest that meets",
    f'cross {TRAIN} --a "plan: tp=8" --b "plan: tp=4 pp=16" --over batch --from 16 --to 256': "while batch <= ",
    f"cross {TRAIN} --a compute --b memory --over memory-bandwidth --to '4 TB/s'": "compute exceeds memory while",
    f'cross {INFER} --a "system: b200-sxm" --b base --over a.memory_bandwidth --from "1 TB/s"': "b200-sxm beats base",
    f'cross {SERVE} --a "stack: vllm" --b base --over concurrency --to 40 --of tokens_per_s': "beats",
}


@pytest.mark.parametrize("command", ANSWERS)
def test_answers_begin_with_their_sentence(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = asked(command, capsys)
    assert (status, err) == (0, "")
    assert ANSWERS[command] in out.splitlines()[0]


def test_json_has_the_keys_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = asked(f"solve {INFER} --for batch --memory 80e9 --json", capsys)
    found = json.loads(out)
    assert (found["value"], found["binding"], found["reachable"], found["limit"]) == (1133, "memory", True, None)
    run = sf.inference("llama-2-70b", "h100-sxm", sf.Plan(tp=8), batch=8, prompt=1024, generate=256)
    assert run.bind(batch=1133).value("memory") <= 80e9 < run.bind(batch=1134).value("memory")
    _, out, _ = asked(f"cross {TRAIN} --a compute --b memory --over memory_bandwidth --json", capsys)
    found = json.loads(out)
    assert {"at", "first", "then"} <= set(found["crossings"][0])
    assert found["always"] is None


def test_an_unreachable_target_is_no_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1, one line, and under --json the keys of the contract with the limit."""
    status, out, err = asked(f'solve {INFER} --for batch --memory "1 GB" --json', capsys)
    assert status == 1
    assert err.startswith(
        "symperf: memory = 1 GB is unreachable, the limit is 20.61 GB at batch = 1, the smallest considered\n"
    )
    found = json.loads(out)
    assert (found["value"], found["reachable"], found["binding"]) == (None, False, None)
    assert found["limit"] == pytest.approx(20.61e9, rel=1e-3)
    one = sf.inference("llama-2-70b", "h100-sxm", sf.Plan(tp=8), batch=1, prompt=1024, generate=256)
    assert found["limit"] == pytest.approx(one.value("memory"), rel=1e-12)
    status, out, err = asked(f'solve {INFER} --for batch --memory "1 GB"', capsys)
    assert (status, out, err.count("\n")) == (1, "", 1)


def test_files_of_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture, text = tmp_path / "a.svg", tmp_path / "a.tex"
    command = f"cross {TRAIN} --a compute --b memory --over memory_bandwidth --plot {picture} --latex -o {text}"
    assert asked(command, capsys) == (0, "", "")
    assert picture.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert text.read_text(encoding="utf-8").rstrip().endswith(r"\end{document}")
    assert asked(f"solve {INFER} --for batch --memory 80e9 --plot {tmp_path / 'b.png'}", capsys)[0] == 0
    assert (tmp_path / "b.png").stat().st_size > 5000


BAD = {
    f"solve {INFER} --for batch": "no target, expected --time T, --memory M or --of QUANTITY=VALUE",
    f"solve {INFER} --for bach --time 3": "the run has no symbol 'bach'; did you mean batch",
    f"solve {INFER} --for batch --time '3 GB'": "found '3 GB', whose unit GB is one of a size; expected a time",
    f"solve {INFER} --for batch --of time=3 --time 4": "time has two targets, expected one",
    f"solve {INFER} --for batch --of tmie=3": "unknown quantity 'tmie'; did you mean time",
    f"solve {INFER} --for batch --of time": "--of: found 'time', expected QUANTITY=VALUE",
    f"solve {INFER} --for batch --time 3 --low many": "--low of batch: found 'many'",
    f"cross {TRAIN} --a compute --b base --over batch": "expected two of one kind",
    f"cross {TRAIN} --a memory --b time --over batch": "memory is in B and time is in s, expected two of one unit",
    f"cross {TRAIN} --a compute --b memory --over bach": "the run has no symbol 'bach'; did you mean batch",
    f"cross {TRAIN} --a compute --b memory --over batch --from 9 --to 3": "the range from 9 to 3 is reversed",
    f"cross {TRAIN} --a compute --b memory --over memory_bandwidth --to '3 GB'": "whose unit GB is one of a size",
    f'cross {TRAIN} --a "plan: tp=7" --b base --over batch': "a: 'plan: tp=7': tp: 7 does not divide",
    f'cross {TRAIN} --a "plan: tp=4" --b base --over tp': "tp is set by 'tp=4'",
    f"cross {TRAIN} --a compute --b memory --over batch --json --latex": "--json prints one object, without --latex",
    f"cross {TRAIN} --a compute --b memory --over batch --plot a.gif": "expected a file that ends in .png, .pdf, .svg",
    "cross train gpt3-175b -s a100-80gb-sxm --a compute --b memory --over batch": "--batch is needed",
    "cross tain gpt3-175b -s a100-80gb-sxm --a compute --b memory --over batch": "did you mean train",
}


@pytest.mark.parametrize("command", BAD)
def test_bad_input_is_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = asked(command, capsys)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert BAD[command] in err


@pytest.mark.parametrize("verb", ["solve", "cross"])
def test_the_example_of_the_help_runs(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    epilog = build()[1][verb].epilog or ""
    status, out, err = asked(epilog.rpartition("Example: symperf ")[2], capsys)
    assert (status, err) == (0, "")
    assert out


@pytest.mark.parametrize("work", [TRAIN, INFER, SERVE])
def test_an_unknown_quantity_is_told_before_the_unit_of_its_target(
    work: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With nothing near, the line says what there is: on one line, without the paths of terms."""
    status, out, err = asked(f"solve {work} --for memory-bandwidth --of 'first_byte=500 ms'", capsys)
    assert (status, out) == (2, "")
    assert "unknown quantity 'first_byte'; known are time, " in err
    assert err.count("\n") == 1
    assert "/" not in err
    status, _, err = asked(f"solve {work} --for memory-bandwidth --of 'devices=500 ms'", capsys)
    assert (status, "unit" in err) == (2, True)


def test_answers_in_a_pipe_are_as_wide_as_those_of_other_verbs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    command = f"gains {TRAIN}"
    _, plain, _ = asked(command, capsys)
    assert plain == asked(f"{command} --width 120", capsys)[1] != asked(f"{command} --width 80", capsys)[1]
    monkeypatch.setenv("COLUMNS", "80")
    assert asked(command, capsys)[1] == asked(f"{command} --width 80", capsys)[1]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize(
    "command",
    [
        f"phase {TRAIN} --over matrix_rate --and memory_bandwidth",
        "limits train llama-3.1-70b -s h100-sxm --batch 256 --sequence 8192 --over sequence",
        f"gains {SERVE}",
    ],
)
def test_latex_of_wide_answers_stays_on_the_page(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Tables of long names and units, and symbols with the longest names."""
    _, out, _ = asked(f"{command} --latex", capsys)
    (tmp_path / "answer.tex").write_text(out, encoding="utf-8")
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "answer"], cwd=tmp_path, capture_output=True)
    log = (tmp_path / "answer.log").read_text(encoding="latin-1")
    assert done.returncode == 0
    assert not re.findall(r"Overfull|Underfull|Warning", log)


def test_limits_along_a_count_that_serving_is_asked_with(capsys: pytest.CaptureFixture[str]) -> None:
    """The run has no symbol of that name: its value now is that of the question."""
    status, out, _ = asked(f"limits {SERVE} --over concurrency --json", capsys)
    found = json.loads(out)
    first = json.loads(asked(f"limits {SERVE} --over memory-bandwidth --json", capsys)[1])
    assert status == 0
    assert found["value"] == pytest.approx(first["value"], rel=1e-12)
    assert found["lower"] <= found["value"] <= found["upper"]

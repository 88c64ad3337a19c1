"""Odd input and odd surroundings of the newer verbs and of the exact analysis: one clear line, never a traceback."""

from __future__ import annotations

import json
import math
import os
import stat
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
from support.paths import ONE_LAYER

import symperf as sf
from symperf.analysis import Unreachable
from symperf.analysis.symbols import domain_of
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.derive.conditions import readable

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
TRAIN = ["train", ONE_LAYER, "-s", "a100-80gb-sxm", "--batch", "8", "--sequence", "2048"]
INFER = ["infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--prompt", "20", "--generate", "9"]
NAMES = [
    "a$b_%#&{}^~\\",
    "\\end{document}",
    "a\nb\n\nc",
    "漢字é∑",
    "\u202eabc",
    "\x1b]0;owned\x07",
    "\x1b[2Jgone",
    '"""\nimport os',
    '*"; evil();',
    "${x}`",
    "</script>",
]


@pytest.fixture(scope="module")
def answer():
    return sf.inference(
        sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(), batch=1, prompt=100, generate=9
    )


@pytest.fixture(scope="module")
def step():
    return sf.training(sf.Model.load(ONE_LAYER), sf.System.load("a100-80gb-sxm"), sf.Plan(tp=8), batch=8, sequence=2048)


def told(capsys, argv):
    """The one line that a refused command line is answered with."""
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("symperf: ")
    assert captured.err.count("\n") == 1
    return captured.err


# --- the command line as a whole


def test_question_without_an_answer_has_exit_status_1(monkeypatch, capsys):
    def unanswered(_):
        raise Unreachable("time = 1 is unreachable, the limit is 2 at tp = 8", 2.0, 8.0)

    monkeypatch.setattr("symperf.cli.infer.run", unanswered)
    assert main(INFER) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "symperf: time = 1 is unreachable, the limit is 2 at tp = 8\n")


def test_answer_beyond_json_is_told_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr("symperf.report.inference.as_json", lambda *_: {"time_s": math.inf})
    assert "--json" in told(capsys, [*INFER, "--json"])


def test_missing_required_package_is_told_in_one_line(capsys, monkeypatch):
    def missing(_):
        raise ModuleNotFoundError("No module named 'rich'", name="rich")

    monkeypatch.setattr("symperf.cli.infer.run", missing)
    assert "needs rich" in told(capsys, INFER)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
@pytest.mark.parametrize("columns", [1, 4, 20])
def test_narrow_terminals(columns):
    controller, terminal = os.openpty()
    command = [sys.executable, "-m", "symperf", "formulas", "ring_all_reduce_time"]
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environment) as done:
        os.close(terminal)
        found = b""
        try:
            while piece := os.read(controller, 65536):
                found += piece
        except OSError:  # the other end is closed
            pass
    os.close(controller)
    assert done.returncode == 0
    assert b"Traceback" not in found


# --- names that land in documents and on terminals


@pytest.fixture(params=NAMES, ids=ascii)
def named(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = "./" + request.param.replace("/", "∕")
    Path(folder).mkdir()
    Path(folder, "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    return folder


def test_hostile_names_in_latex_are_text(named, capsys):
    assert main(["derive", "train", named, *TRAIN[2:], "--term", "optimizer/adam", "--latex"]) == 0
    document = capsys.readouterr().out
    title = next(line for line in document.splitlines() if line.startswith(r"\section*"))
    assert title.endswith("}")  # on one line, however many the name has
    assert document.count(r"\end{document}") == 1
    assert all(c in "\n" or (c.isprintable() and ord(c) < 0x180) for c in document)
    assert "$b_" not in document


def test_hostile_names_do_not_steer_the_terminal(named, capsys):
    for verb in (["train", named, *TRAIN[2:]], ["infer", named, *INFER[2:]], ["inspect", named]):
        assert main(verb) == 0
        out = capsys.readouterr().out
        assert all(c == "\n" or c.isprintable() for c in out), verb[0]


# --- files that are written


@pytest.mark.parametrize("argv", [["derive", *TRAIN, "--latex", "-o"], ["formulas", "ring_all_reduce_time", "--md"]])
def test_files_are_written_whole_or_not_at_all(argv, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").write_text("before")
    (tmp_path / "old").chmod(0o640)
    (tmp_path / "link").symlink_to("old")
    (tmp_path / "loop").symlink_to("loop")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("symperf.common.outputs.put_file", full)
        assert "No space left" in told(capsys, [*argv, "old"])
    assert (tmp_path / "old").read_text() == "before"
    assert main([*argv, "link"]) == 0
    capsys.readouterr()
    assert (tmp_path / "link").is_symlink()
    assert len((tmp_path / "old").read_text()) > 100
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o640
    for path in ("loop", "no/such/folder", ".", "n\0l"):
        assert "writ" in told(capsys, [*argv, path])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "loop", "old"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    from symperf.common.outputs import write_file

    old = tmp_path / "old"
    old.write_text("before")

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_file(old, "after", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert old.read_text() == "before"


# --- derivations


def test_sums_that_stay_whole_are_in_brackets(answer):
    derivation = answer.derive(free=["generate"], below=0)
    text = derivation.unicode(200)
    assert "· (G − 1)" in text
    assert "· G − 1" not in text
    assert r"\cdot G - 1" not in derivation.latex()


def test_conditions_that_always_hold_are_not_shown(answer):
    shown = readable(answer.derive(free=["generate"]).conditions)
    assert all(math.isfinite(c.margin) or any(b.expr.free_symbols for b in (c.active, *c.others)) for c in shown)
    assert "inf x" not in answer.derive(free=["generate"]).unicode()
    assert "≥ −23" not in answer.derive(free=["generate"]).unicode()


def test_regimes_of_a_phase(capsys):
    assert main(["derive", *INFER, "--of", "decode", "--wrt", "memory_bandwidth"]) == 0
    assert "decode along memory_bandwidth" in capsys.readouterr().out


@pytest.mark.parametrize("odd", [None, 3, 1.5, ["time"], {}, b"time"], ids=repr)
def test_names_of_other_types(odd, answer):
    for question in (
        lambda: answer.regimes("memory_bandwidth", 1e9, 1e12, of=odd),
        lambda: answer.asymptotics("memory_bandwidth", of=odd),
        lambda: answer.asymptotics(odd),
        lambda: answer.derive(odd),
        lambda: answer.derive(free=[odd]),
        lambda: answer.derive(fold=[odd]),
        lambda: answer.attribution().grouped(odd if odd != 3 else 0),
    ):
        with pytest.raises(InputError, match=r"found|is|expected"):
            question()
    if odd is not None:
        with pytest.raises(InputError):
            answer.derive(term=odd)


# --- exact analysis far from any machine


@pytest.mark.parametrize("symbol", ["memory_bandwidth", "launch_latency", "matrix_efficiency", "batch", "tile_long"])
def test_every_crossover_has_a_closed_form_or_none(symbol, answer):
    if symbol == "tile_long":  # the default's kernels are told by their shapes, these by their tiles
        answer = answer.swap(stack="tensorrt-llm")
    now = answer.bound[symbol][0]
    for low, high in ((now / 100, now * 100), (1, 64)):
        if symbol in ("batch", "tile_long"):
            low, high = 1, max(64, round(high))
        limits = domain_of(symbol)
        low, high = max(low, limits.low), min(high, limits.high)
        if low >= high:  # a run takes no such values
            continue
        for crossover in answer.regimes(symbol, low, high).crossovers:
            crossover.closed_form()


def test_crossovers_of_a_step_have_closed_forms_or_none(step):
    for symbol, low, high in (("tile_long", 32, 513), ("tp", 1, 1e300)):
        for crossover in step.regimes(symbol, low, high).crossovers:
            crossover.closed_form()


@pytest.mark.parametrize("symbol", ["memory_bandwidth", "matrix_efficiency", "launch_latency", "batch", "generate"])
@pytest.mark.parametrize("ends", [(1e-300, 1e300), (5e-324, 1e-320), (1e300, 1.7e308)])
def test_ranges_at_the_end_of_numbers(symbol, ends, answer):
    low, high = ends if symbol not in ("batch", "generate") else (1, ends[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = answer.regimes(symbol, low, high)
        except InputError:
            return
        json.dumps(found.to_dict(), allow_nan=False)
        for regime in found.intervals:
            assert not regime.shares or math.isclose(math.fsum(regime.shares.values()), 1, rel_tol=1e-6)
        assert all(a.high <= b.low for a, b in pairwise(found.intervals))


@pytest.mark.parametrize("value", [10**400, True, "a", None, math.nan, math.inf, -1, 0])
def test_numbers_that_are_none(value, answer):
    ranges = (
        lambda: answer.regimes("memory_bandwidth", value, 1e12),
        lambda: answer.regimes("memory_bandwidth", 1e9, value),
    )
    for question in (
        *(ranges if value is not None else ()),  # None is the range around the value now
        lambda: answer.phase("memory_bandwidth", (value, 1e12), "matrix_rate", (1e12, 1e15)),
        lambda: answer.solve("memory_bandwidth", time=value),
    ):
        with pytest.raises(InputError):
            question()


@pytest.mark.parametrize(("symbol", "expected"), [("tp", 32), ("pp", 32), ("dp", 1), ("num_key_value_heads", 32)])
def test_the_largest_degree_that_a_run_accepts(symbol, expected, answer):
    assert answer.solve(symbol, time=1e30).value == expected


def test_the_limit_of_what_is_unreachable_is_a_number(answer):
    for target in (1e-30, answer.value("time") / 2):
        with pytest.raises(Unreachable) as caught:
            answer.solve("attention_rate", time=target)
        assert caught.value.limit is not None
        assert math.isfinite(caught.value.limit)
        assert "nan" not in str(caught.value)

"""Bars stand in terminals alone: what a pipe gets is what it got without them."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from typing import Any

import pytest

import symperf as sf
from symperf.cli import main
from symperf.report.bars import LEAST, MOST, REST, bar, terms
from symperf.report.training import merge_rows

TRAIN = ["train", "gpt-22b", "-s", "a100-80gb-sxm", "--tp", "8", "--batch", "8", "--sequence", "2048"]
DOES_NOT_FIT = ["train", "gpt-22b", "-s", "a100-80gb-sxm", "--batch", "8", "--sequence", "2048"]


class Terminal(io.TextIOWrapper):
    """What a program takes for a terminal."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, write_through=True)

    def isatty(self) -> bool:
        return True


def shown(arguments: list[str], encoding: str = "utf-8", width: int = 120) -> str:
    """What a terminal shows, without styles."""
    terminal = Terminal(encoding)
    with contextlib.redirect_stdout(terminal):
        assert main([*arguments, "--width", str(width)]) == 0
    return re.sub("\x1b\\[[0-9;]*m", "", terminal.bytes.getvalue().decode(encoding))


def test_a_terminal_has_bars_below_what_a_pipe_gets(call: Any) -> None:
    piped, seen = call(TRAIN).out, shown(TRAIN)
    assert "█" not in piped
    assert seen.startswith(piped)
    bars = seen.removeprefix(piped).splitlines()
    assert 3 <= len([line for line in bars if line]) <= MOST + 2
    assert re.match(r"layer/mlp/(up|down) +█+[▏▎▍▌▋▊▉]? +\d\d\.\d % compute$", bars[1])
    assert sum("█" * 40 in line for line in bars[:-1]) == 1, "the longest"
    assert re.match(r"memory +█+[▏▎▍▌▋▊▉]? +\d\d\.\d % of 79\.15 GiB$", bars[-1])
    assert shown([*TRAIN, "--no-bars"]) == piped
    assert call([*TRAIN, "--no-bars"]).out == piped
    assert shown([*TRAIN, "--json"]) == call([*TRAIN, "--json"]).out


def test_a_pipe_of_another_process_has_no_bars(call: Any) -> None:
    """Whatever its terminal is, and although colours are wanted."""
    environment = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "symperf", *TRAIN], capture_output=True, check=True, env=os.environ | environment
    )
    text = re.sub("\x1b\\[[0-9;]*m", "", done.stdout.decode())
    assert text == call(TRAIN).out


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_bar_is_wider_than_the_terminal(width: int, call: Any) -> None:
    """Where there is no room there are none."""
    piped = call([*TRAIN, "--width", str(width)]).out
    seen = shown(TRAIN, width=width)
    assert seen.startswith(piped)
    bars = seen.removeprefix(piped).splitlines()
    assert bool(bars) == (width > 40)
    assert all(len(line) <= width for line in bars)


def test_an_encoding_without_blocks_has_signs() -> None:
    seen = shown(TRAIN, "ascii")
    assert "\\u2588" not in seen
    assert re.search(r"^layer/mlp/\w+ +#{20,40} ", seen, re.MULTILINE)


def test_what_does_not_fit_fills_the_bar() -> None:
    assert re.search(r"^memory +█{40} +\d{3}\.\d % of ", shown(DOES_NOT_FIT), re.MULTILINE)


def test_shares_of_bars_sum_to_one() -> None:
    run = sf.training(sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm"), sf.Plan(tp=8), batch=8, sequence=2048)
    found = terms(merge_rows(run.table()))
    assert sum(share for _, share, _ in found) == pytest.approx(1, abs=LEAST / 10)
    shares = [share for name, share, _ in found if name != REST]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) <= MOST


def test_a_bar_is_its_part() -> None:
    assert [len(bar(part / 16, 2)) for part in range(17)] == [0, *[1] * 8, *[2] * 8]
    assert bar(1, 40) == "█" * 40
    assert bar(0, 40) == bar(0, 40, blocks=False) == ""


OTHERS = {
    "infer": ["infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "1", "--prompt", "100", "--generate", "20"],
    "serve": ["serve", "llama-2-7b", "-s", "h100-sxm", "--prompt", "512", "--generate", "64", "--tpot", "0.05"],
    "inspect": ["inspect", "llama-2-7b", "--sequence", "128"],
}


@pytest.mark.parametrize("verb", OTHERS)
def test_other_verbs_have_bars_in_a_terminal_alone(verb: str, call: Any) -> None:
    piped, seen = call(OTHERS[verb]).out, shown(OTHERS[verb])
    assert "█" not in piped
    assert seen.startswith(piped)
    assert sum("█" * 30 in line for line in seen.removeprefix(piped).splitlines()) >= 1
    assert shown([*OTHERS[verb], "--no-bars"]) == piped


def test_a_search_has_bars_of_its_best_plan() -> None:
    words = ["search", "llama-2-7b", "-s", "h100-sxm", "--devices", "8", "--batch", "32", "--sequence", "1024"]
    for name in ("recompute=none", "zero=1", "schedule=1f1b", "tp=1", "pp=1"):
        words += ["--require", name]
    seen = shown(words).splitlines()
    assert re.match(r"compute +█{40} +\d\d\.\d % of the time$", seen[-seen[::-1].index("")])
    assert re.match(r"memory +█+[▏▎▍▌▋▊▉]? +\d\d\.\d % of 79\.18 GiB$", seen[-1])

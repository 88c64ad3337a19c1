"""Recorded requests: what is read, what is refused, and what they measure beside the closed form of their means."""

from __future__ import annotations

import itertools
import json
import random
import statistics
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.cli import main
from symperf.serve.simulator import Request, Source, simulate
from symperf.serve.trace import Trace, read_trace

if TYPE_CHECKING:
    from pathlib import Path

BASE = ["serve", "llama-2-7b", "-s", "a100-80gb-sxm", "--stack", "vllm"]


def write(path: Path, requests: list[dict[str, Any]]) -> str:
    file = path / "requests.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in requests), encoding="utf-8")
    return str(file)


def draw(count: int, rate: float, seed: int = 1) -> list[dict[str, Any]]:
    """Requests that arrive at random, of lengths that spread widely."""
    source, clock, found = random.Random(seed), 5.0, []
    for _ in range(count):
        clock += source.expovariate(rate)
        found.append({"arrival": clock, "input": source.randint(100, 3000), "output": source.randint(1, 300)})
    return found


@pytest.fixture(scope="module", name="requests")
def _requests() -> list[dict[str, Any]]:
    return draw(700, 2.5)


def test_means_are_those_of_the_lines(requests: list[dict[str, Any]], tmp_path: Path) -> None:
    trace = Trace.load(write(tmp_path, requests))
    mix = trace.mix(2048)
    inputs, outputs = ([each[name] for each in requests] for name in ("input", "output"))
    assert trace.count == len(requests)
    assert trace.rate == pytest.approx((len(requests) - 1) / (requests[-1]["arrival"] - requests[0]["arrival"]))
    assert trace.prompt_tokens == mix.tokens
    assert mix.tokens == pytest.approx(statistics.fmean(inputs))
    assert mix.chunks == pytest.approx(statistics.fmean(-(-each // 2048) for each in inputs))
    assert trace.generates.deviation == pytest.approx(statistics.pstdev(outputs))
    assert trace.longest == max(each["input"] + each["output"] for each in requests)


def test_a_trace_is_near_the_closed_form_of_its_means(
    requests: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, requests)
    assert main([*BASE, "--trace", path, "--json"]) == 0
    out, error = capsys.readouterr()
    found = json.loads(out)
    trace = found["trace"]
    assert error == ""
    assert trace["requests"] == len(requests)
    assert trace["ttft_s"]["mean"] == pytest.approx(found["ttft_s"], rel=0.15)
    assert trace["tpot_s"]["mean"] == pytest.approx(found["tpot_s"], rel=0.05)
    assert trace["e2e_s"]["mean"] == pytest.approx(found["e2e_s"], rel=0.05)
    assert trace["ttft_s"]["p50"] < trace["ttft_s"]["p90"] < trace["ttft_s"]["p99"]
    total = sum(each["output"] for each in requests)
    assert trace["output_tokens_per_s"] == pytest.approx(total / trace["duration_s"])
    path = write(tmp_path, requests[:20])
    assert main([*BASE, "--trace", path, "--ttft", "1e-3"]) == 1
    text = capsys.readouterr().out
    assert "event by event" in text
    assert "the trace misses its target of ttft" in text


def test_requests_alike_at_long_intervals_are_requests_alone(tmp_path: Path) -> None:
    alone = [{"arrival": 100.0 * k, "input": 700, "output": 50} for k in range(4)]
    found = sf.serving("llama-2-7b", "a100-80gb-sxm", stack="vllm", trace=write(tmp_path, alone))
    plain = sf.serving("llama-2-7b", "a100-80gb-sxm", stack="vllm", prompt=700, generate=50)
    point = plain.point(0.0)
    assert found.replayed is not None
    assert found.replayed.ttft_s["mean"] == pytest.approx(point.ttft_s, rel=1e-9)
    assert found.replayed.tpot_s is not None
    assert found.replayed.tpot_s["mean"] == pytest.approx(point.tpot_s, rel=1e-3)


def test_times_follow_the_lengths_of_each_request(tmp_path: Path) -> None:
    """Long and short requests apart from one another take what they take alone, not what the mean of them does."""
    both = [{"arrival": 200.0 * k, "input": (200, 1800)[k % 2], "output": 40} for k in range(4)]
    found = sf.serving("llama-2-7b", "a100-80gb-sxm", stack="vllm", trace=write(tmp_path, both)).replayed
    points = [
        sf.serving("llama-2-7b", "a100-80gb-sxm", stack="vllm", prompt=length, generate=40).point(0.0)
        for length in (200, 1800)
    ]
    assert found is not None
    assert found.ttft_s["mean"] == pytest.approx(statistics.fmean(each.ttft_s for each in points), rel=0.02)
    assert found.ttft_s["p99"] == pytest.approx(points[1].ttft_s, rel=0.03)
    assert found.tpot_s is not None
    assert found.tpot_s["mean"] == pytest.approx(statistics.fmean(each.tpot_s for each in points), rel=0.01)


def test_requests_at_once_are_a_burst(tmp_path: Path) -> None:
    path = write(tmp_path, [{"arrival": 3.0, "input": 900, "output": 64}] * 12)
    found = sf.serving("llama-2-7b", "a100-80gb-sxm", stack="vllm", trace=path)
    assert found.replayed is not None
    assert found.replayed.rate is None
    assert found.answer is not None
    assert found.replayed.ttft_s["mean"] == pytest.approx(found.answer.ttft_s, rel=0.05)
    assert found.loop is not None
    assert found.replayed.duration_s == pytest.approx(found.loop[1].duration_s, rel=0.05)


def test_replicas_take_requests_in_turn(tmp_path: Path) -> None:
    path = write(tmp_path, [{"arrival": 0.0, "input": 900, "output": 64}] * 8)
    two = sf.serving("llama-2-7b", "a100-80gb-sxm", sf.Plan(dp=2), stack="vllm", trace=path).replayed
    half = sf.serving(
        "llama-2-7b",
        "a100-80gb-sxm",
        stack="vllm",
        trace=write(tmp_path, [{"arrival": 0, "input": 900, "output": 64}] * 4),
    ).replayed
    assert two is not None
    assert half is not None
    assert two.ttft_s == pytest.approx(half.ttft_s)
    assert two.output_tokens_per_s == pytest.approx(2 * half.output_tokens_per_s)


LINE = '{"arrival": 1, "input": 5, "output": 6}'
BAD = {
    "out of order": (f'{LINE}\n{{"arrival": 0.5, "input": 5, "output": 6}}', "line 2: found arrival 0.5 after 1"),
    "negative": ('{"arrival": -1, "input": 5, "output": 6}', "line 1: arrival: found -1, expected seconds, 0 or more"),
    "no number": ('{"arrival": NaN, "input": 5, "output": 6}', "line 1: arrival: found nan"),
    "text": ('{"arrival": "1", "input": 5, "output": 6}', "line 1: arrival: found '1'"),
    "no token": (f'{LINE}\n\n{{"arrival": 1, "input": 0, "output": 6}}', "line 3: input: found 0, expected a whole"),
    "part of a token": ('{"arrival": 1, "input": 1, "output": 2.5}', "line 1: output: found 2.5, expected a whole"),
    "true": ('{"arrival": 1, "input": true, "output": 2}', "line 1: input: found True"),
    "unknown key": (
        '{"arrival": 1, "inputs": 1, "output": 2}',
        "line 1: found the key 'inputs', expected arrival",
    ),
    "missing key": ('{"arrival": 1, "input": 1}', "line 1: output is missing"),
    "twice": ('{"arrival": 1, "arrival": 1, "input": 1, "output": 2}', "line 1: arrival comes twice"),
    "list": ("[1, 2, 3]", "line 1: found '[1, 2, 3]', expected {"),
    "number": ("3", "line 1: found '3', expected {"),
    "empty object": ("{}", "line 1: found '{}', expected {"),
    "no JSON": (f"{LINE}\nhello", "line 2: not valid JSON"),
    "no text": ("\udcff", "line 1: not valid JSON"),
    "deep": ("[" * 999, "line 1: not valid JSON"),
    "long": (" " * 2000, "line 1: is longer than 1000 bytes"),
    "digits": ('{"arrival": 1, "input": ' + "9" * 900 + ', "output": 1}', "line 1: input: found 9"),
    "empty": ("", "is empty, expected lines of"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_trace_is_one_clear_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, expected = BAD[name]
    file = tmp_path / "bad.jsonl"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main([*BASE, "--trace", str(file)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert expected in error
    assert len(error) < 400


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--load", "3"], "load: found together with a trace"),
        (["--concurrency", "3"], "concurrency: found together with a trace"),
        (["--prompt", "3"], "prompt: found together with a trace"),
        (["--set", "generate=3"], "generate: found together with a trace"),
        (["--prefix", "3"], "prefix: found together with a trace"),
        (["--turns", "3"], "turns: found together with a trace"),
        (["--pp", "2"], "pp: a trace is replayed without it"),
        (["--chunk", "0"], "chunk: found 0"),
    ],
)
def test_what_a_trace_has_of_its_own_is_not_said_again(
    more: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, [{"arrival": 0, "input": 5, "output": 6}])
    assert main([*BASE, "--trace", path, *more]) == 2
    assert expected in capsys.readouterr().err


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BASE, "--trace", str(tmp_path)]) == 2
    assert "is a folder, expected a file of JSON lines" in capsys.readouterr().err
    assert main([*BASE, "--trace", str(tmp_path / "none")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main([*BASE]) == 2
    assert "prompt: missing, expected tokens of each request, or a trace" in capsys.readouterr().err
    assert main([*BASE, "--prompt", "5"]) == 2
    assert "generate: missing" in capsys.readouterr().err


def test_an_interrupted_replay_ends_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("symperf.serve.replay.simulate", interrupt)
    path = write(tmp_path, [{"arrival": 0, "input": 5, "output": 6}])
    assert main([*BASE, "--trace", path]) == 130
    out, error = capsys.readouterr()
    assert (out, error) == ("", "symperf: interrupted\n")


def test_a_trace_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    """A bad line far behind is met when it is reached, not before."""
    file = tmp_path / "late.jsonl"
    file.write_text(f"{LINE}\n{LINE}\nno", encoding="utf-8")
    assert len(list(itertools.islice(read_trace(file), 2))) == 2
    with pytest.raises(sf.InputError, match="line 3"):
        list(read_trace(file))


def test_a_simulation_conserves_requests_and_tokens() -> None:
    from support.serving_cases import affine

    source = random.Random(5)
    requests = [Request(0.2 * k, source.randint(1, 400), source.randint(1, 60)) for k in range(300)]
    total = sum(each.generate for each in requests)
    engine = affine(400, 30, 1, 2, limit=7)
    found = simulate(engine, Source(iter(requests)))
    assert (found.count, found.tokens, found.waiting_at_end) == (300, total, 0)
    assert min(found.first_tokens) >= engine.times.base
    assert found.decoding <= 7
    assert found.later_tokens == total - 300

"""What fits: one truth of infer and serve, whatever batch is asked, by the rule of each software."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.infer.memory_rule import DEFAULTS, RULES, read_memory
from symperf.infer.room import LONGEST, Room, longest_context
from symperf.infer.stack import Stack, names
from symperf.runs.shortage import shortage

GIB = 2.0**30
ROOM = Room(
    weights=30.0,
    runtime=2.0,
    reserved=8.0,
    prompt=0.0,
    sequence=1.5,
    slots=32.0,
    block=16.0,
    capacity=100.0,
    utilization=0.9,
    rule="total",
)
PLACES: list[tuple[str, str, dict[str, Any]]] = [
    ("llama-3.1-8b", "h100-sxm", {}),
    ("llama-2-70b", "a100-80gb-sxm", {"tp": 4}),
    ("mixtral-8x7b", "h100-sxm", {"tp": 2, "dp": 2}),
]
STACKS = ("vllm", "vllm-0.9", "vllm-0.24", "sglang-0.5", "tensorrt-llm", "tensorrt-llm-1.3")
lengths = st.integers(1, 16_000)


def _run(place: int = 0, **asked: Any) -> Any:
    model, system, plan = PLACES[place]
    given = {"batch": plan.get("dp", 1), "prompt": 1000, "generate": 100, "stack": "vllm"} | asked
    return sf.inference(model, system, sf.Plan(**plan), **given)


def test_the_rules_share_out_memory_by_hand() -> None:
    assert ROOM.budget() == pytest.approx(0.9 * 100 - 40)
    assert replace(ROOM, rule="free").budget() == pytest.approx(0.9 * (100 - 40))
    assert replace(ROOM, rule="static").budget() == pytest.approx(0.9 * (100 - 2) - 30)
    crowded = replace(ROOM, rule="static", reserved=20.0)
    assert crowded.budget() == pytest.approx(100 - 52), "a step finds room in what weights and cache leave"
    assert ROOM.sequences == 33
    assert replace(ROOM, prompt=1.0).sequences == 20
    assert replace(ROOM, weights=90.0).sequences == 0
    assert (ROOM.kv_blocks, ROOM.kv_tokens) == (66, 1056)
    assert ROOM.concurrency == pytest.approx(33)
    assert sum(ROOM.parts().values()) == pytest.approx(100)


@given(place=st.sampled_from(range(len(PLACES))), stack=st.sampled_from(STACKS), prompt=lengths, generate=lengths)
@part(0.15)
def test_both_verbs_fit_as_many_whatever_batch_is_asked(place: int, stack: str, prompt: int, generate: int) -> None:
    """The number fits and one more does not; more tokens never fit more."""
    run = _run(place, stack=stack, prompt=prompt, generate=generate)
    count, replicas = run.fitting_sequences(), run.plan.dp
    model, system, plan = PLACES[place]
    served = sf.serving(model, system, sf.Plan(**plan), prompt=prompt, generate=generate, stack=stack)
    assert served.room(0).sequences == count
    assert served.longest_context() == run.longest_context()
    for batch in (1, 7, count, count + 1):
        if batch:
            other = _run(place, stack=stack, prompt=prompt, generate=generate, batch=batch * replicas)
            assert other.fitting_sequences() == count
            assert (other.needed_alone() <= other.value("capacity_bytes")) == (batch <= count)
    assert _run(place, stack=stack, prompt=prompt + 500, generate=generate).fitting_sequences() <= count
    assert _run(place, stack=stack, prompt=prompt, generate=generate + 500).fitting_sequences() <= count


@pytest.mark.parametrize("stack", ["vllm-0.24", "tensorrt-llm"])
def test_the_longest_context_fits_and_a_token_more_does_not(stack: str) -> None:
    run = _run(stack=stack)
    for sequences in (1, 3):
        found = run.longest_context(sequences)
        assert run.bind(prompt=found - 100).room().fits(sequences)
        assert not run.bind(prompt=found - 99).room().fits(sequences)
    assert run.longest_context(3) < run.longest_context(1)


def test_a_state_that_never_grows_fits_any_length() -> None:
    run = sf.inference("mamba2-2.7b", "h100-sxm", sf.Plan(), batch=1, prompt=100, generate=10, stack="vllm-0.24")
    room = run.room()
    assert (room.kv_tokens, room.kv_blocks, room.concurrency) == (None, None, None)
    assert room.sequences > 100
    assert run.longest_context() is None
    assert longest_context(lambda prompt: replace(ROOM, sequence=float(prompt)), 1, 0) == 50
    assert longest_context(lambda prompt: replace(ROOM, sequence=1e3 * prompt), 1, 0) == 0
    assert LONGEST > 50


def test_software_that_takes_contexts_whole_reserves_for_them() -> None:
    """A longer context leaves less to the cache, until it is cut into chunks."""
    tokens = [_run(prompt=length - 100).room().kv_tokens for length in (1000, 20_000, 32_768, 33_000)]
    assert tokens[0] > tokens[1] > tokens[2]
    assert tokens[3] == pytest.approx(tokens[0], rel=1e-3)


def test_an_encoder_fits_by_its_activations() -> None:
    run = sf.inference("bert-large", "h100-sxm", sf.Plan(), batch=8, prompt=256, generate=1, stack="vllm")
    count = run.fitting_sequences()
    assert run.bind(batch=count).fits
    assert not run.bind(batch=count + 1).fits


def test_a_million_tokens_fit_where_chunks_are_prefilled() -> None:
    """Memory is that of a chunk, not of the batch's prompts."""
    asked = {"prompt": 1_000_000, "generate": 100, "stack": "vllm-0.24"}
    run = sf.inference("llama-4-scout", "h100-sxm", sf.Plan(tp=8), batch=4, **asked)
    assert run.fits
    assert run.fitting_sequences() >= 7
    whole = sf.inference("llama-4-scout", "h100-sxm", sf.Plan(tp=8), batch=4, **asked | {"stack": "tensorrt-llm"})
    assert whole.fitting_sequences() < run.fitting_sequences()


def test_profiles_say_how_they_share_out_memory() -> None:
    """Every profile has a rule with a source; on one device nothing is exchanged, and large ones reserve more."""
    h100, a100, l40s = (sf.System.load(name) for name in ("h100-sxm", "a100-80gb-sxm", "l40s"))
    for name in names():
        rule = Stack.load(name).memory
        assert rule.source, name
        found = rule.on(h100, sf.Plan())
        assert set(found) == set(DEFAULTS)
        assert found["collective_buffer_bytes"].value == 0
    vllm = Stack.load("vllm-0.24").memory
    assert [vllm.on(each, sf.Plan())["max_num_seqs"].value for each in (h100, a100, l40s)] == [1024, 256, 256]
    buffers = [vllm.on(each, sf.Plan(tp=2))["collective_buffer_bytes"].value / GIB for each in (h100, l40s)]
    assert buffers == [pytest.approx(2.0), pytest.approx(0.39)]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (3, "p.toml: memory: found 3, expected a table of rule, step"),
        ({"rul": "total"}, "memory: unknown key 'rul'; did you mean rule"),
        ({"rule": "half"}, "memory.rule: found 'half', expected total or free or static"),
        ({"step": "all"}, "memory.step: found 'all', expected chunks or contexts or prompts"),
        ({"small": "l4"}, "memory.small: found 'l4', expected a list of names of systems"),
        ({"memory_utilization": 1.2}, "memory: memory_utilization: found 1.2"),
        ({"large": {"max_num_seq": 2}}, "memory.large: unknown key 'max_num_seq'; did you mean max_num_seqs"),
        ({"graph_bytes": "x"}, "memory: graph_bytes: "),
    ],
)
def test_a_table_of_memory_is_checked(table: object, text: str) -> None:
    with pytest.raises(InputError) as error:
        read_memory(table, "p.toml")
    assert text in str(error.value)


def test_what_would_make_it_fit_does() -> None:
    """Each change that is named, alone, makes the sequences fit; of degrees and parts no smaller one does."""
    run = sf.inference("llama-2-70b", "h100-sxm", sf.Plan(tp=2), batch=1, prompt=4000, generate=96, stack="vllm-0.24")
    sequences = run.fitting_sequences() + 2
    found = shortage(run, run.room(), sequences)
    assert found.missing > 0
    assert sum(found.parts.values()) == pytest.approx(found.needed)
    assert found.largest[0] == "weights"
    changes = dict(change.split(" = ") for change in found.changes)
    assert set(changes) == {"memory_utilization", "tp", "kv_precision", "precision"}
    for name, text in changes.items():
        value = float(text) if name == "memory_utilization" else int(text) if name == "tp" else text
        assert run.bind(**{name: value}).room().fits(sequences), name
    assert not run.bind(memory_utilization=float(changes["memory_utilization"]) - 0.01).room().fits(sequences)


def _answer(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    assert main([*arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out)


ASKED = ("llama-3.1-8b", "-s", "rtx-3090", "--prompt", "19000", "--generate", "1000", "--stack", "vllm-0.9")
KEYS = (
    "kv_tokens",
    "kv_blocks",
    "concurrency",
    "longest_context",
    "memory_parts",
    "memory_utilization",
    "model_context",
)


def test_the_command_line_says_what_vllm_prints(capsys: pytest.CaptureFixture[str]) -> None:
    served = _answer(capsys, "serve", *ASKED, "--chunk", "20000")
    alone = _answer(capsys, "infer", *ASKED, "--batch", "1", "--set", "chunk=20000")
    assert {key: served[key] for key in KEYS} == {key: alone[key] for key in KEYS}
    assert served["concurrency_limit"] == alone["sequences_that_fit"] == 1
    assert served["concurrency"] == pytest.approx(1.55, abs=0.01)
    assert served["longest_context"] == served["kv_tokens"]
    more = _answer(capsys, "serve", *ASKED, "--chunk", "20000", "--memory-utilization", "0.95", "--longest", "2")
    assert more["kv_tokens"] - served["kv_tokens"] == pytest.approx(0.05 * 23.6 * GIB / 131072, rel=0.01)
    assert more["longest_context"] == more["kv_tokens"] // 32 * 16
    few = _answer(capsys, "serve", *ASKED, "--chunk", "20000", "--max-num-seqs", "8")
    assert few["kv_tokens"] >= served["kv_tokens"], "logits of fewer sequences"
    over = _answer(capsys, "serve", *ASKED, "--memory-utilization", "0.5", "--set", "memory_utilization=0.9")
    assert over["memory_utilization"] == 0.9


def test_tables_say_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *ASKED, "--longest", "2"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "continuous batching" in out
    assert "tokens in 2," in out
    assert "tokens each of 2 sequences" in out
    assert main(["infer", "llama-2-70b", "-s", "h100-sxm", "--batch", "1", "--prompt", "9", "--generate", "9"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "does not fit: needs" in out
    assert "most is weights, 128.48 GiB; would fit with tp = 2 or precision = fp8" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--memory-utilization", "1.5"), "memory_utilization: found 1.5"),
        (("--memory-utilization", "0"), "memory_utilization: found 0"),
        (("--memory-utilization", "much"), "found 'much', expected a number"),
        (("--longest", "0"), "longest: found 0"),
        (("--set", "memory_utilisation=0.9"), "did you mean memory_utilization"),
    ],
)
@pytest.mark.parametrize("verb", ["infer", "serve"])
def test_bad_input(capsys: pytest.CaptureFixture[str], verb: str, arguments: tuple[str, ...], text: str) -> None:
    batch = ("--batch", "1") if verb == "infer" else ()
    try:
        status = main([verb, *ASKED, *batch, *arguments])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    assert status == 2
    assert text in captured.err
    assert "Traceback" not in captured.err


def test_training_takes_no_part_of_memory(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["regimes", "train", "gpt-1.3b", "-s", "h100-sxm", "--batch", "8", "--sequence", "64", "--over", "batch"]
    assert main([*asked, "--from", "1", "--to", "2", "--memory-utilization", "0.9"]) == 2
    assert "--memory-utilization is of another kind of run" in capsys.readouterr().err


def test_every_rule_is_of_a_profile() -> None:
    assert {Stack.load(name).memory.rule for name in names()} == set(RULES)

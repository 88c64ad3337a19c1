"""Sequences that a software runs at once unless it is told: each profile's default, and what serving makes of it."""

from __future__ import annotations

from typing import Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.infer.running import RunningLimit, read_running
from symperf.infer.stack import Stack, names

EIGHT = ("llama-3.1-8b", "h100-sxm", sf.Plan())


def _serving(stack: str, **how: Any) -> Any:
    return sf.serving(*EIGHT, **{"prompt": 128, "generate": 128, "stack": stack, **how})


def test_every_profile_says_how_many_sequences_run_or_why_it_says_none() -> None:
    for name in names():
        found = Stack.load(name).running
        assert found.source, name
        assert found.sequences is not None or name in {
            *("none", "fastertransformer", "tensorrt-llm", "tensorrt-llm-0.6", "tensorrt-llm-0.9")
        }


@pytest.mark.parametrize(
    ("stack", "most"),
    [
        ("vllm", 256),
        ("vllm-0.24", 1024),
        ("tensorrt-llm-1.3", 2048),
        ("sglang-0.5", 2048),
        ("lmdeploy", 128),
        ("llama-cpp", 1),
        ("none", None),
    ],
)
def test_serving_runs_no_more_than_the_software_does(stack: str, most: int | None) -> None:
    serving = _serving(stack)
    held = serving.held(0)
    assert serving.most_running(0) == most
    assert serving.limit(0) == (held if most is None else min(held, most))
    assert serving.steady.engine.limited_by == ("max_num_seqs" if most is not None and most < held else "kv_cache")


def test_a_number_that_is_asked_for_wins_and_none_lifts_the_limit() -> None:
    assert _serving("vllm-0.24", max_num_seqs=64).limit(0) == 64
    lifted = _serving("vllm-0.24", max_num_seqs=0)
    assert lifted.limit(0) == lifted.held(0) > 1024


def test_a_saturated_iteration_decodes_no_more_sequences_than_run() -> None:
    run = _serving("lmdeploy", chunk=8192).iteration()
    assert run.bound["decoding"] == (128.0, "as many as lmdeploy runs: 128 sequences of a replica")


def test_sglang_runs_more_where_the_cache_holds_more_contexts() -> None:
    """512 for each of them, at least 2048 and at most 4096 (_resolve_max_num_reqs)."""
    rule = Stack.load("sglang-0.5").running
    assert [rule.most(256, tokens, 131_072) for tokens in (100_000, 600_000, 2_000_000)] == [2048, 2343, 4096]
    assert rule.most(256, None, 131_072) == rule.most(256, 600_000, None) == 2048


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (3, "p.toml: running: found 3, expected a table of sequences"),
        ({"sequence": 2}, "running: unknown key 'sequence'; did you mean sequences"),
        ({"sequences": 0}, 'running.sequences: found 0, expected a whole number of at least 1, or "reserved"'),
        ({"sequences": "all"}, "running.sequences: found 'all'"),
        ({"sequences": 1, "at_most": True}, "running.at_most: found True"),
        ({"of_context": 512}, "running.of_context: found without sequences"),
    ],
)
def test_a_table_of_running_sequences_is_checked(table: object, text: str) -> None:
    with pytest.raises(InputError) as error:
        read_running(table, "p.toml")
    assert text in str(error.value)


def test_no_table_is_no_limit() -> None:
    assert read_running({}, "p.toml") == RunningLimit()


@pytest.mark.parametrize("most", [None, 64, 0])
def test_an_iteration_as_a_run_has_the_limit_that_is_asked(most: int | None) -> None:
    """What the algebra is asked about is what is served: its sequences are at most those that run at once."""
    serving = sf.serving("llama-3.1-8b", "h100-sxm", prompt=512, generate=512, max_num_seqs=most)
    found = serving.iteration()
    assert found.most_running() == {None: 1024, 64: 64, 0: None}[most]
    assert found.bound["decoding"][0] <= serving.limit(0)
    assert most != 64 or found.bound["decoding"][0] == 64

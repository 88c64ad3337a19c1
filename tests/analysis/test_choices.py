"""Choices as text: what they mean, what is refused, and that no text does anything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.analysis_cases import made
from support.effort import part

from symperf.analysis.choices import is_choice, parse_choice
from symperf.common.errors import InputError
from symperf.plans.plan_fields import FIELDS

MEANT: dict[str, dict[str, Any]] = {
    "plan: tp=8 pp=8": {"tp": 8, "pp": 8},
    "tp = 8,pp=8": {"tp": 8, "pp": 8},
    "PLAN: tp=8 sequence_parallel": {"tp": 8, "sequence_parallel": True},
    "sequence-parallel": {"sequence_parallel": True},
    "no-sequence-parallel tp=2": {"sequence_parallel": False, "tp": 2},
    "precision=fp8 kv_precision=fp8": {"precision": "fp8", "kv_precision": "fp8"},
    "offload=weights,optimizer, tp=2": {"offload": "weights,optimizer", "tp": 2},
    "memory_bandwidth=4 TB/s launch-latency = 3 us": {"memory_bandwidth": "4 TB/s", "launch_latency": "3 us"},
    "micro_batch=none recompute=none": {"micro_batch": None, "recompute": "none"},
    "stack: vllm": {"stack": "vllm"},
    "overlap_tp=0.5 uneven_stages": {"overlap_tp": 0.5, "uneven_stages": True},
    "base": {},
}
REFUSED = {
    "systm: x": "found 'systm:', expected plan: or system: or model: or stack:; did you mean system?",
    "plan: tp": "found 'tp' in 'plan: tp', expected NAME=VALUE or a flag of a plan; did you mean tp",
    "plan: sequence_paralel tp=3": "did you mean sequence_parallel",
    "tp= pp=3": "tp has no value in 'tp= pp=3', expected NAME=VALUE",
    "tp=8 tp=9": "tp is chosen twice",
    "system: a, system: b": "system is chosen twice",
    ",": "found nothing between commas",
    "system: , tp=3": "system: in .* has no name",
    "tp=" + "1" * 2000: "a choice of 2003 characters, expected at most 1000",
}


def test_what_choices_mean() -> None:
    for text, values in MEANT.items():
        assert is_choice(text), text
        assert parse_choice(text, "cross: a").values == values, text
    whole = parse_choice("system: b200-sxm tp=4, model: llama-2-7b", "cross: a")
    assert (whole.system, whole.model, whole.values) == ("b200-sxm", "llama-2-7b", {"tp": 4})
    assert whole.label == "b200-sxm tp=4, llama-2-7b"


def test_names_of_terms_and_quantities_are_no_choices() -> None:
    for text in ("time", "layer/mlp", "compute", "tokens_per_s", "gradients/reduce"):
        assert not is_choice(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_choice_is_told_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match=f"^cross: a: .*{REFUSED[text]}") as error:
        parse_choice(text, "cross: a")
    assert "\n" not in str(error.value)


@given(st.lists(st.sampled_from(["plan:", "system:", "tp", "=", "8", ",", " ", "no-", "sequence_parallel", "é", "'"])))
@part(1.0)
def test_any_text_is_a_choice_or_bad_input(words: list[str]) -> None:
    text = "".join(words)
    try:
        found = parse_choice(text, "cross: a")
    except InputError:
        return
    assert set(found.values) <= {*FIELDS, "stack", "tp", "plan"} | {name.replace("-", "_") for name in found.values}


def test_a_choice_gives_the_run_that_is_built_anew() -> None:
    """Of another system, software and plan: every bound value and the time are the same."""
    import symperf as sf

    base = made("llama")
    chosen = parse_choice("system: a100-80gb-sxm, stack: flash-attention-2, plan: tp=4 zero=2", "a").run(base, "a")
    plan = sf.Plan(tp=4, pp=4, dp=16, zero=2, overlap_dp=0.7, overlap_tp=0.4)
    new = sf.training("llama-2-70b", "a100-80gb-sxm", plan, batch=512, sequence=2048, stack="flash-attention-2")
    assert {n: v for n, (v, _) in chosen.bound.items()} == {n: v for n, (v, _) in new.bound.items()}
    assert chosen.value("time") == new.value("time")
    other = chosen.bind(batch=1024).swap(system="h100-sxm")
    assert other.question["stack"] == "flash-attention-2"
    assert chosen.swap(stack=None).value("time") < chosen.swap(stack="flash-attention-1").value("time")


def test_what_the_rules_refuse_names_the_choice() -> None:
    with pytest.raises(InputError, match=r"^cross: a: 'plan: tp=7': tp: 7 does not divide"):
        parse_choice("plan: tp=7", "cross: a").run(made("gpt"), "cross: a")
    with pytest.raises(InputError, match=r"^cross: a: 'system: b200': system: no system 'b200'.*did you mean"):
        parse_choice("system: b200", "cross: a").run(made("gpt"), "cross: a")

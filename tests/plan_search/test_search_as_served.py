"""A search tells of a plan what `serve` tells: under every profile, with drafted tokens, limits and parts of memory."""

from __future__ import annotations

from typing import Any

import pytest
from support.effort import some

import symperf as sf
from symperf.common.errors import InputError
from symperf.infer.stack import names
from symperf.models.draft_heads import draft_of
from symperf.plan_search.inference.search import InferenceAnswer, answer_inference
from symperf.plan_search.inference.space import DRAFTED

ASKED: dict[str, Any] = {"prompt": 700, "generate": 96, "ttft": 2.0, "tpot": 0.03}
TOLD = ("ttft_s", "tpot_s", "output_tokens_per_s", "concurrency")
SMALL = sf.Model.load("llama-3.2-1b")
H100 = sf.System.load("h100-sxm")


def _search(model: sf.Model = SMALL, devices: int = 1, **how: Any) -> InferenceAnswer:
    require = {"kv_precision": ["bf16"], "precision": ["bf16"], "chunk": [2048], **how.pop("require", {})}
    return answer_inference(model, H100, devices=devices, require=require, **{**ASKED, **how})


def _same(answer: InferenceAnswer, **how: Any) -> None:
    """The best plan of a search has the numbers that `serve` has for its fields."""
    best = answer.winner
    plan = sf.Plan(**{name: best.fields[name] for name in sf.Plan.names() if name in best.fields})
    served = {"chunk": best.fields["chunk"], "kv_precision": best.fields["kv_precision"]}
    serving = sf.serving(answer.questions[0].model, H100, plan, **ASKED, **served, **how)
    assert serving.largest is not None
    assert best.measures["requests_per_s"] == pytest.approx(serving.largest.load * plan.dp, rel=1e-9)
    assert best.measures["limit"] == serving.largest.limit
    if serving.answer is not None:
        for name in TOLD:
            assert best.measures[name] == pytest.approx(getattr(serving.answer, name), rel=1e-9), name


@pytest.mark.parametrize("stack", some(names()))
def test_a_plan_of_a_search_is_served_so_under_every_profile(stack: str) -> None:
    """SGLang prefills in iterations of their own, llama.cpp has four slots, and so on: a search knows it all."""
    _same(_search(stack=stack), stack=stack)


@pytest.mark.parametrize("options", [{"max_num_seqs": 12}, {"memory_utilization": 0.07}])
def test_options_of_a_server_are_fields(options: dict[str, Any]) -> None:
    answer = _search(require={name: [value] for name, value in options.items()})
    _same(answer, **options)
    assert answer.winner.nested()["max_num_seqs"] == options.get("max_num_seqs")
    assert answer.winner.measures["requests_per_s"] < _search().winner.measures["requests_per_s"]


def test_more_sequences_and_more_memory_serve_no_less() -> None:
    found = _search(require={"max_num_seqs": [4, 8, 0], "memory_utilization": [0.3, 0.9]}, top=6)
    loads = {
        (each.fields["max_num_seqs"], each.fields["memory_utilization"]): each.measures["requests_per_s"]
        for each in found.records
    }
    assert loads[4, 0.9] < loads[8, 0.9] <= loads[0, 0.9]
    assert loads[0, 0.3] <= loads[0, 0.9]
    assert len(found.records) == 6


def test_lengths_of_drafts_are_tried_and_none_beside_them() -> None:
    """Each as `serve` has it; a draft as large as its model costs more than it saves, and none is best."""
    draft = {"draft": draft_of(SMALL, "llama-3.2-1b"), "stack": "vllm-0.24"}
    answer = _search(acceptance=0.7, top=6, **draft)
    assert {each.fields["draft_length"] for each in answer.records} <= set(DRAFTED)
    assert answer.winner.fields["draft_length"] == 0
    drafted = _search(acceptance=0.7, require={"draft_length": [2]}, **draft)
    _same(drafted, draft="llama-3.2-1b", acceptance=0.7, draft_length=2)


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"require": {"draft_length": [2]}}, "draft_length: means something with a draft model only"),
        ({"acceptance": 0.5}, "acceptance: means something with a draft model only"),
        ({"draft": SMALL}, "acceptance: missing"),
        ({"draft": SMALL, "acceptance": 1.5}, "acceptance: found 1.5"),
        ({"draft": SMALL, "acceptance": 0.5, "by": "joules"}, "by: joules are not told of drafted tokens"),
        ({"draft": SMALL, "acceptance": 0.5, "disaggregate": True}, "disaggregate: found together with drafted"),
        ({"require": {"memory_utilization": [1.5]}}, "memory_utilization: found 1.5"),
        ({"require": {"max_num_seqs": [-1]}}, "max_num_seqs: found -1"),
    ],
)
def test_questions_that_no_plan_answers_are_refused(how: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as error:
        _search(**how)
    assert text in str(error.value)


OWNED = {
    "price": 30000.0,
    "lifetime": 4 * 365 * 86400.0,
    "electricity_price": 3e-8,
    "facility_overhead": 1.3,
    "power": 700,
}


def test_drafted_tokens_on_owned_devices_have_no_dollars() -> None:
    """These pay for electricity, and joules are not told of drafted tokens; hours that are rented are as long."""
    asked: dict[str, Any] = {"acceptance": 0.7, "stack": "vllm-0.24", "require": {"draft_length": [2]}, "top": 1}
    asked["draft"] = draft_of(SMALL, "llama-3.2-1b")
    assert _search(**asked).winner.measures["cost_per_million_output_tokens"] > 0
    assert _search(**asked, values=OWNED).winner.measures["cost_per_million_output_tokens"] is None
    with pytest.raises(InputError, match="by: joules are not told of drafted tokens"):
        _search(**asked, values=OWNED, by="cost")

"""The Pareto front of a search for inference, dollars and joules of its plans, and the command of each by itself."""

from __future__ import annotations

import itertools
import json
import math
import random
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import cases

import symperf as sf
from symperf.common.errors import InputError
from symperf.plan_search.inference.front import AXES
from symperf.plan_search.inference.load import LoadPlan
from symperf.plan_search.inference.pools import Pair
from symperf.plan_search.inference.search import answer_search
from symperf.plan_search.inference.space import InferenceQuestion
from symperf.plan_search.tally import not_dominated
from symperf.serve.closed import ClosedLoop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SYSTEM = "h100-sxm"
FEW: dict[str, Any] = {"chunk": [512], "precision": ["fp8"], "kv_precision": ["bf16"]}
ASKED: dict[str, Any] = {"devices": 2, "prompt": 512, "generate": 64}
CLOSE = 1e-9


def known() -> tuple[sf.Model, sf.System]:
    return sf.Model.load("llama-2-7b"), sf.System.load(SYSTEM)


def dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether a is as good everywhere and better somewhere; less is better."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=40))
def test_the_front_is_what_no_point_dominates(values: list[tuple[float, ...]]) -> None:
    """Each distinct point that nothing dominates is there once, and no other."""
    found = not_dominated(values, tuple)
    want = {each for each in values if not any(dominates(other, each) for other in values)}
    assert len(found) == len(want)
    assert set(found) == want
    assert found == sorted(found)


def test_a_front_of_batches_is_that_of_all_plans() -> None:
    """Every batch and plan that fits is a point, and those of the front are the ones that `symperf infer` gives."""
    model, system = known()
    axes = ("throughput", "latency", "joules")
    formats = {"precision": "fp8", "kv_precision": "bf16"}
    found = answer_search(model, system, **ASKED, batch=[1, 8], require=formats, pareto=True, axes=axes)
    assert found.front is not None
    assert found.front.points == found.feasible == len(found.plans)

    def costs(plan: Any) -> tuple[float, ...]:
        return -plan.rate / 2, plan.time, plan.run.energy().per_token

    want = {costs(a) for a in found.plans if not any(dominates(costs(b), costs(a)) for b in found.plans)}
    told = [tuple(each.measures[AXES[name].measure] for name in axes) for each in found.front.records]
    assert len(told) == len(want)
    for (rate, time, joules), cost in zip(told, sorted(want), strict=True):
        assert all(math.isclose(a, b, rel_tol=CLOSE) for a, b in zip((-rate, time, joules), cost, strict=True))


def test_a_front_of_loads_has_the_numbers_of_serve() -> None:
    """Each point is a plan with requests in flight as `symperf serve` answers it; nothing tried dominates it."""
    model, system = known()
    found = answer_search(model, system, **ASKED, ttft=0.05, require=FEW, pareto=True, disaggregate=True)
    assert found.front is not None
    records = found.front.records
    seen = [(each.measures["output_tokens_per_s_per_device"], each.measures["interactivity"]) for each in records]
    assert seen == sorted(seen, key=lambda each: (-each[0], each[1]))
    for each in records:
        assert each.measures["ttft_s"] <= 0.05 * (1 + CLOSE)
        if not isinstance(each.plan, LoadPlan):
            continue
        flying = round(each.measures["concurrency"])
        how = {"prompt": 512, "generate": 64, "chunk": 512, "concurrency": flying}
        alone = sf.serving(model, system, each.plan.serving.plan, kv_precision="bf16", **how)
        assert alone.answer is not None
        assert alone.answer.tpot_s is not None
        assert math.isclose(1 / alone.answer.tpot_s, each.measures["interactivity"], rel_tol=CLOSE)
        assert math.isclose(alone.answer.load, each.measures["requests_per_s"], rel_tol=CLOSE)
    singles = [plan for plan in found.plans if isinstance(plan, LoadPlan)]
    for plan, flying in itertools.product(singles, [1, 4, 16, 64]):
        state = ClosedLoop(plan.steady, flying).state()
        if flying > plan.steady.engine.limit or state.first_token > 0.05:
            continue
        rate, user = state.load * plan.replicas * ASKED["generate"] / 2, 1 / state.iteration
        assert any(a >= rate * (1 - CLOSE) and b >= user * (1 - CLOSE) for a, b in seen)
    assert any(isinstance(each.plan, Pair) for each in records)


def test_dollars_and_joules_follow_from_rates() -> None:
    """Dollars are device hours over tokens; joules those of a batch, or of a load with static power as long."""
    model, system = known()
    found = answer_search(model, system, **ASKED, tpot=0.02, require=FEW, by="joules", top=50)
    joules = [each.measures["joules_per_output_token"] for each in found.records]
    assert joules == sorted(joules)
    price = found.questions[0].base.cost().device_hour
    watts = system.quantities["static_power"].value
    for each in found.records:
        rate = each.measures["output_tokens_per_s"]
        dollars = price * ASKED["devices"] / 3600 / rate * 1e6
        assert math.isclose(each.measures["cost_per_million_output_tokens"], dollars, rel_tol=CLOSE)
        ratio = ASKED["generate"] / ASKED["prompt"]
        assert math.isclose(each.measures["cost_per_million_input_tokens"], dollars * ratio, rel_tol=CLOSE)
        assert each.measures["joules_per_output_token"] > watts * ASKED["devices"] / rate
    cheapest = answer_search(model, system, **ASKED, tpot=0.02, require=FEW, by="cost")
    fastest = answer_search(model, system, **ASKED, tpot=0.02, require=FEW)
    assert [each.fields for each in cheapest.records] == [each.fields for each in fastest.records]
    batch = answer_search(model, system, **ASKED, batch=8, by="joules", require={"precision": "fp8"}, top=1).records[0]
    one = sf.inference(
        model,
        system,
        sf.Plan(**{name: batch.fields[name] for name in ("tp", "pp", "dp", "micro_batch", "precision")}),
        batch=8,
        prompt=512,
        generate=64,
        kv_precision=batch.fields["kv_precision"],
    )
    assert math.isclose(batch.measures["joules_per_output_token"], one.energy().per_token, rel_tol=CLOSE)


@pytest.mark.parametrize(
    ("name", "without", "told"),
    [("cost", ("price_per_hour", "price"), "has no price"), ("joules", ("power", "_energy"), "gives neither")],
)
def test_a_system_that_tells_no_price_or_power_is_refused(name: str, without: tuple[str, ...], told: str) -> None:
    """In one line, as an order and as an axis."""
    model, system = known()
    kept = {key: value for key, value in system.quantities.items() if not key.endswith(without)}
    bare = type(system)(**{**vars(system), "quantities": kept, "name": "bare"})
    for how in ({"by": name}, {"pareto": True, "axes": ["throughput", name]}):
        with pytest.raises(InputError, match=told):
            answer_search(model, bare, **ASKED, tpot=0.02, require=FEW, **how)


SEARCH = ["search", "llama-2-7b", "-s", SYSTEM, "--devices", "2", "--prompt", "512", "--generate", "64"]
SEARCH += ["--require", "chunk=512", "--require", "precision=fp8"]


def test_the_command_line_draws_and_lists_the_front(call: Callable[[Any], Any], tmp_path: Path) -> None:
    file = tmp_path / "front.svg"
    code, out, err = call([*SEARCH, "--pareto", "--json", "--plot", str(file)])
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["axes"] == ["throughput", "interactivity"]
    users = [each["interactivity"] for each in told["pareto"]]
    assert users == sorted(users)
    assert file.read_text(encoding="utf-8").startswith("<?xml")
    code, out, err = call([*SEARCH, "--pareto", "--csv"])
    assert (code, err, len(out.splitlines())) == (0, "", 1 + len(users))
    code, out, err = call([*SEARCH, "--pareto", "--axes", "interactivity,cost"])
    assert (code, err) == (0, "")
    assert "token/s/user" in out
    assert "USD/Mtoken" in out


@pytest.mark.parametrize("seed", range(cases(10, 0.3)))
def test_the_command_of_a_plan_gives_its_numbers(call: Callable[[Any], Any], seed: int) -> None:
    """What a search tells of a plan, of the best and of one of the front, `symperf serve` or `infer` tells as well."""
    draw = random.Random(seed)
    more = draw.choice([["--batch", "4"], ["--tpot", "0.03"], ["--tpot", "0.05", "--ttft", "0.3"]])
    more = more + draw.choice([[], ["--set", "memory_bandwidth=3e12"], ["--max-memory", "40 GB"], ["--max-tp", "1"]])
    words = [*(SEARCH[:-4] if "--batch" in more else SEARCH), *more, "--pareto", "--top", "2", "--json"]
    code, out, _ = call(words)
    assert code == 0
    told = json.loads(out)
    for each in (told["plans"][-1], draw.choice(told["pareto"])):
        command = shlex.split(each["command"])
        code, out, _ = call([*command[1:], "--json"])
        assert code == 0
        alone = json.loads(out)
        if command[1] == "infer":
            pairs = [(alone["time_s"], each["time_s"]), (alone["prefill_s"], each["ttft_s"])]
            pairs += [(alone["memory_bytes"]["total"], each["memory_bytes"])]
        else:
            load = alone["load"] if "--concurrency" in command else alone["largest_load"]
            pairs = [(load, each["requests_per_s"])]
            if each["ttft_s"] is not None:
                pairs += [(alone["ttft_s"], each["ttft_s"]), (alone["tpot_s"], each["tpot_s"])]
        assert all(math.isclose(a, b, rel_tol=CLOSE) for a, b in pairs)


def test_fields_that_are_not_tried_can_be_opened() -> None:
    """Parts of a prompt count as devices; what is not asked for keeps its default, and training has its own fields."""
    model, system = known()
    question = InferenceQuestion(model, system, 4, 512, 64, required={"cp": (1, 2), "attention": ("flash",)})
    plans = [(fields, question.plan(fields)) for fields in question.choices()]
    assert {plan.devices for _, plan in plans} == {4}
    assert {plan.cp for _, plan in plans} == {1, 2}
    assert all(fields["attention"] == plan.attention == "flash" for fields, plan in plans)
    assert len({tuple(fields.items()) for fields, _ in plans}) == len(plans)
    with pytest.raises(InputError, match="no choice 'zero'"):
        answer_search(model, system, **ASKED, tpot=0.05, require={"zero": 1})

"""A search for inference finds what trying every plan finds, and says why the others are not among its plans."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import some

import symperf as sf
from symperf.analysis import Unreachable
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.plan_search.inference.pools import Pair
from symperf.plan_search.inference.search import answer_inference, answer_search
from symperf.serve import pools as own
from symperf.serve.limits import Targets, largest_load
from symperf.serve.steady import Steady

if TYPE_CHECKING:
    from symperf.serve.serving import Serving

SYSTEM = "h100-sxm"
CLOSE = 1e-9
KEYS = ("tp", "pp", "dp", "ep", "precision", "kv_precision", "chunk")


def same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=CLOSE)


def divisors(n: int) -> list[int]:
    return [k for k in range(1, n + 1) if n % k == 0]


def problem(seed: int) -> tuple[str, dict[str, Any]]:
    """A random question, small enough to try everything."""
    draw = random.Random(seed)
    model = draw.choice(["llama-2-7b", "llama-2-7b", "mixtral-8x7b"])
    asked: dict[str, Any] = {
        "devices": draw.choice([2, 3, 4]),
        "prompt": draw.choice([100, 512, 1500]),
        "generate": draw.choice([2, 16, 64]),
        "ttft": draw.choice([None, 0.06, 0.2, 1.0]),
        "tpot": draw.choice([0.008, 0.02, 0.05, 0.2]),
        "require": {"chunk": draw.sample([256, 512, 2048], 2), "kv_precision": ["bf16", "fp8"][: draw.choice([1, 2])]},
    }
    if draw.random() < 0.5:
        asked["require"]["precision"] = ["bf16"]
    return model, asked


def every_plan(model: sf.Model, asked: dict[str, Any], devices: int) -> list[dict[str, Any]]:
    ep = divisors(model.sizes["num_experts"]) if "num_experts" in model.sizes else [1]
    require = asked["require"]
    choices = (ep, require.get("precision", ["bf16", "fp8"]), require["kv_precision"], require["chunk"])
    return [
        dict(zip(KEYS, (*layout, *rest), strict=True))
        for layout in itertools.product(divisors(devices), repeat=3)
        if math.prod(layout) == devices
        for rest in itertools.product(*choices)
    ]


def served(model: sf.Model, system: sf.System, asked: dict[str, Any], plan: dict[str, Any]) -> Serving:
    return sf.serving(
        model,
        system,
        sf.Plan(**{name: plan[name] for name in ("tp", "pp", "dp", "ep", "precision")}),
        kv_precision=plan["kv_precision"],
        chunk=plan["chunk"],
        **{name: asked[name] for name in ("prompt", "generate", "ttft", "tpot")},
    )


@pytest.mark.parametrize("seed", some(range(6)))
def test_the_largest_loads_are_those_of_trying_every_plan(seed: int) -> None:
    """The same plans, in the same order, and the same counts; the loads are those of `symperf serve`."""
    name, asked = problem(seed)
    model, system = sf.Model.load(name), sf.System.load(SYSTEM)
    counts: dict[str, int] = {}
    loads: list[tuple[float, dict[str, Any]]] = []
    plans = every_plan(model, asked, asked["devices"])
    for plan in plans:
        try:
            serving = served(model, system, asked, plan)
        except InputError:
            why = "illegal"
        else:
            largest = serving.largest
            why = "does_not_fit" if largest is None else f"{largest.limit}_out_of_reach" if not largest.load else ""
            if largest is not None and largest.load:
                loads.append((largest.load * plan["dp"], plan))
        counts[why] = counts.get(why, 0) + 1
    found = answer_search(model, system, top=5, **asked)
    assert (found.survey.considered, found.feasible) == (len(plans), len(loads))
    reasons = ("does_not_fit", "ttft_out_of_reach", "tpot_out_of_reach")
    assert {n: found.rejected.get(n, 0) for n in reasons} == {n: counts.get(n, 0) for n in reasons}
    assert found.survey.considered == found.feasible + sum(found.rejected.values())
    loads.sort(key=lambda each: -each[0])
    assert len(found.records) == min(5, len(loads))
    for record, (load, _) in zip(found.records, loads, strict=False):
        assert same(record.measures["requests_per_s"], load)
        assert any(same(each, load) and record.fields == plan for each, plan in loads)
    if loads:
        for field, other in found.alternatives:
            rest = [load for load, plan in loads if plan[field] != found.winner.fields[field]]
            assert same(other.measures["requests_per_s"], max(rest))


def pools_of(model: sf.Model, system: sf.System, asked: dict[str, Any], devices: int) -> list[Serving]:
    found = []
    for plan in every_plan(model, asked, devices):
        try:
            serving = served(model, system, asked, plan)
        except InputError:
            continue
        found += [serving] if serving.fits else []
    return found


def pair_load(first: Serving, second: Serving, asked: dict[str, Any]) -> float:
    """What two pools serve; 0 where a limit is out of reach."""
    assert first.steady is not None
    assert second.steady is not None
    only = Steady(dataclasses.replace(first.steady.engine, generate=1, steps=0.0))
    prefill = largest_load(only, Targets(ttft=asked["ttft"]), 0.0).load
    transfer = max(first.transfer_s or 0.0, second.transfer_s or 0.0)
    engine = second.steady.engine
    most = own._most_decoding(engine, asked["tpot"] - transfer / (engine.generate - 1))
    if prefill is None or most is None:
        return 0.0
    return min(prefill * first.plan.dp, own._decode_load(engine, most) * second.plan.dp)


@pytest.mark.parametrize("seed", [1, 4])
def test_pools_are_the_best_of_all_pairs_of_plans(seed: int) -> None:
    _, asked = problem(seed)
    asked |= {"devices": 3, "ttft": 0.3, "tpot": 0.05}
    model, system = sf.Model.load("llama-2-7b"), sf.System.load(SYSTEM)
    best: dict[tuple[Any, ...], float] = {}
    for devices in (1, 2):
        for first, second in itertools.product(
            pools_of(model, system, asked, devices), pools_of(model, system, asked, 3 - devices)
        ):
            formats = (first.plan.precision, first.run.kv_precision)
            if formats == (second.plan.precision, second.run.kv_precision):
                key = (devices, *formats)
                best[key] = max(best.get(key, 0.0), pair_load(first, second, asked))
    found = answer_search(model, system, disaggregate=True, top=100, **asked)
    pairs = [record for record in found.records if record.pools]
    loads = sorted((load for load in best.values() if load), reverse=True)
    assert len(pairs) == len(loads)
    assert all(same(a.measures["requests_per_s"], b) for a, b in zip(pairs, loads, strict=True))
    for record in pairs:
        assert record.measures["ttft_s"] <= asked["ttft"] * (1 + CLOSE)
        assert record.measures["tpot_s"] <= asked["tpot"] * (1 + CLOSE)
        assert record.pools["prefill"]["devices"] + record.pools["decode"]["devices"] == 3
        assert math.isclose(sum(record.shares().values()), 1, rel_tol=1e-6)


def test_pools_of_equal_instances_are_those_of_serve() -> None:
    """With one plan for both pools the answer is the `disaggregation` of `symperf serve`."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load(SYSTEM)
    asked = {"prompt": 512, "generate": 64, "ttft": 0.3, "tpot": 0.05}
    one = {"tp": 1, "pp": 1, "precision": "bf16", "kv_precision": "bf16", "chunk": 512}
    found = answer_search(model, system, devices=6, disaggregate=True, require=one, **asked)
    record = next(each for each in found.records if each.pools)
    serving = sf.serving(model, system, sf.Plan(dp=6), chunk=512, **asked)
    assert serving.pools is not None
    assert same(record.measures["requests_per_s"], serving.pools.load or 0.0)
    assert record.pools["decode"]["dp"] == serving.pools.decode_instances
    assert isinstance(record.plan, Pair)
    assert same(record.measures["tpot_s"], serving.pools.tpot_s or 0.0)
    assert same(record.measures["ttft_s"], serving.pools.ttft_s or 0.0)


@pytest.mark.parametrize(("batch", "by"), [((4,), "latency"), ((4, 8), "throughput")])
@pytest.mark.parametrize("limit", [None, 0.015])
def test_static_batches_are_those_of_trying_every_plan(batch: tuple[int, ...], by: str, limit: float | None) -> None:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load(SYSTEM)
    runs = []
    considered = 0
    for tp, pp, dp in itertools.product([1, 2, 4], repeat=3):
        every = sorted({part for each in batch for part in divisors(each)})
        for precision, kv, size, micro in itertools.product(["bf16", "fp8"], ["bf16", "fp8"], batch, every):
            if tp * pp * dp != 4:
                continue
            considered += 1
            plan = sf.Plan(tp=tp, pp=pp, dp=dp, precision=precision, micro_batch=micro)
            try:
                run = sf.inference(model, system, plan, batch=size, prompt=300, generate=20, kv_precision=kv)
            except InputError:
                continue
            if run.fits and (limit is None or run.value("time_per_token") <= limit):
                runs.append(run.value("time") if by == "latency" else -run.value("tokens_per_s"))
    found = answer_search(
        model, system, devices=4, prompt=300, generate=20, batch=batch, by=by, tpot=limit, top=len(runs)
    )
    assert (found.survey.considered, found.feasible) == (considered, len(runs))
    key, sign = ("time_s", 1) if by == "latency" else ("output_tokens_per_s", -1)
    assert all(same(sign * r.measures[key], each) for r, each in zip(found.records, sorted(runs), strict=True))


def test_several_numbers_of_devices_are_ranked_for_each_device() -> None:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load(SYSTEM)
    asked: dict[str, Any] = {"prompt": 512, "generate": 64, "tpot": 0.02, "chunk": 512, "precision": "fp8"}
    table = sf.search_inference(model, system, devices=[1, 2, 4], top=50, **asked)
    assert set(table["devices"]) == {1, 2, 4}
    assert list(table["output_tokens_per_s_per_device"]) == sorted(table["output_tokens_per_s_per_device"])[::-1]
    assert math.isclose(sum(table.attrs["shares"].values()), 1, rel_tol=1e-6)


def test_less_memory_means_fewer_plans() -> None:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load(SYSTEM)
    asked: dict[str, Any] = {"devices": 2, "prompt": 512, "generate": 64, "tpot": 0.05}
    free, tight = (answer_search(model, system, max_memory=m, **asked) for m in (None, "8 GB"))
    assert tight.rejected["does_not_fit"] > free.rejected.get("does_not_fit", 0)
    assert all(record.measures["memory_bytes"] <= 8e9 * (1 + CLOSE) for record in tight.records)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"ttft": 1e-5, "tpot": 1.0}, ["least TTFT of a request alone is", "the limit 1e-05 s"]),
        ({"tpot": 1e-6}, ["least TPOT of a request alone is"]),
        ({"batch": 4, "ttft": 1e-5}, ["least TTFT of the batch is"]),
        ({"tpot": 1.0, "max_memory": "2 GB"}, ["fits in no plan", "least memory"]),
    ],
)
def test_what_is_out_of_reach_is_told_with_what_is_nearest(asked: dict[str, Any], words: list[str]) -> None:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load(SYSTEM)
    with pytest.raises(Unreachable) as error:
        answer_inference(model, system, devices=2, prompt=512, generate=64, **asked)
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)


def test_an_interrupted_search_has_the_best_of_what_was_seen() -> None:
    def stop(done: int, total: int) -> None:
        assert total
        if done == 6:
            raise KeyboardInterrupt

    model, system = sf.Model.load("llama-2-7b"), sf.System.load(SYSTEM)
    asked: dict[str, Any] = {"devices": 2, "prompt": 512, "generate": 64}
    for question in ({"tpot": 0.05}, {"batch": 2}):
        found = answer_search(model, system, progress=stop, **asked, **question)
        assert not found.whole
        assert found.survey.considered == 6
        assert found.records


COMMAND = ["search", "llama-2-7b", "-s", SYSTEM, "--devices", "2", "--prompt", "512", "--generate", "64"]


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ([], 2, "neither a batch nor a limit"),
        (["--tpot", "-1"], 2, "tpot: found -1.0"),
        (["--tpot", "0.05", "--by", "latency"], 2, "latency needs a batch"),
        (["--tpot", "0.05", "--by", "speed"], 2, "by: found 'speed'"),
        (["--tpot", "0.05", "--by", "tokens-per-dollar", "-s", "h800-sxm"], 2, "price_per_hour"),
        (["--tpot", "0.05", "--sequence", "4"], 2, "--sequence with --prompt"),
        (["--tpot", "0.05", "--explain", "tq=2"], 2, "no choice 'tq' in a search for inference"),
        (["--tpot", "0.05", "--axes", "cost,ttft"], 2, "axes: are those of a Pareto front"),
        (["--tpot", "0.05", "--plot", "front.png"], 2, "--plot without --pareto"),
        (["--pareto", "--plot", "front.gif"], 2, "ends in .png"),
        (["--pareto", "--axes", "throughput,intractivity"], 2, "did you mean interactivity"),
        (["--pareto", "--axes", "cost"], 2, "expected two or more"),
        (["--tpot", "0.05", "--emit", "vlm"], 2, "did you mean vllm"),
        (["--tpot", "0.05", "--emit", "megatron"], 2, "found megatron, which trains"),
        (["--tpot", "0.05", "--emit", "vllm", "--stack", "sglang-0.5"], 2, "expected a profile of vllm"),
        (["--tpot", "0.05", "--emit", "vllm", "--csv"], 2, "--csv and --emit"),
        (["--tpot", "0.05", "--require", "zero=1"], 2, "no choice 'zero'"),
        (["--tpot", "0.05", "--require", "tp=3"], 2, "contradict each other"),
        (["--tpot", "0.05", "--require", "tp=2", "--max-tp", "1"], 2, "tp = 2, and max_tp = 1"),
        (["--tpot", "0.05", "--require", "micro_batch=2"], 2, "micro_batch means something with a batch"),
        (["--tpot", "0.05", "--require", "precision=fp5"], 2, "precision: found 'fp5'"),
        (["--tpot", "0.05", "--require", "kv_precision=fp5"], 2, "kv_precision: found 'fp5'"),
        (["--batch", "4", "--max-chunk", "512"], 2, "chunk means something for the largest load"),
        (["--batch", "4", "--disaggregate"], 2, "disaggregate: is of requests that arrive at random"),
        (["--tpot", "0.05", "--json", "--csv"], 2, "expected one of them"),
        (["--tpot", "0.05", "--stack", "vlm"], 2, "stack: found 'vlm'"),
        (["--tpot", "0.0000001"], 1, "the least TPOT"),
    ],
)
def test_bad_questions_are_told_in_one_line(
    more: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND, *more]) == status
    out, error = capsys.readouterr()
    assert not out
    assert words in error
    assert error.count("\n") == 1


def test_flags_of_one_kind_of_search_do_not_go_with_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND[:6], "--batch", "4", "--sequence", "16", "--ttft", "1"]) == 2
    assert "--ttft without --prompt" in capsys.readouterr().err
    assert main(COMMAND[:6]) == 2
    assert "required: --batch, --sequence" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--tpot", "0.05", "--disaggregate", "--require", "chunk=512"], ["--batch", "4"]])
def test_the_command_line_prints_a_table_json_and_csv(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    few = [*COMMAND, *more, "--top", "4", "--require", "precision=fp8", "--set", "price_per_hour=2.5 USD/h"]
    assert main([*few, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["considered"] == found["feasible"] + sum(found["rejected"].values())
    assert math.isclose(sum(found["shares"].values()), 1, rel_tol=1e-6)
    assert len(found["plans"]) == 4
    assert main([*few, "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert {"tp", "chunk", "ttft_s", "tokens_per_dollar", "prefill_tp"} <= set(lines[0].split(","))
    assert main(few) == 0
    out = capsys.readouterr().out
    assert "feasible; in" in out
    assert "due to" in out

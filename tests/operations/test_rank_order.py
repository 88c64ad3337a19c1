"""The order of ranks: where the groups of each order lie, where it changes nothing, and what it refuses."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import value
from support.effort import some
from support.points import directions, structure

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.common.symbolic import replace_symbols
from symperf.export.emit import emit
from symperf.formulas.language.symbols import SYMBOLS
from symperf.operations import groups
from symperf.plan_search.search import answer_search
from symperf.plans.plan import Plan
from symperf.plans.structure import EITHER_ORDER
from symperf.train.inputs import structure_of

USUAL, INSIDE = "tp-cp-dp-pp", "tp-cp-pp-dp"
SIZE = 8
MODELS = {"dense": "gpt-6.7b", "tied": "gpt2", "experts": "olmoe-1b-7b"}


def run(model: str, batch: int = 64, sequence: int = 1024, system: str = "h100-sxm", **fields: Any) -> sf.Run:
    more = {name: fields.pop(name) for name in list(fields) if name not in Plan.names()}
    fields = {"attention": "flash"} | fields
    return sf.training(
        sf.Model.load(model), sf.System.load(system), Plan(**fields), batch=batch, sequence=sequence, **more
    )


def numbered(order: str, degrees: dict[str, int]) -> dict[tuple[int, ...], int]:
    """The rank of every place (tp, cp, dp, pp), by counting places in the order, innermost first."""
    names = order.split("-")
    found: dict[tuple[int, ...], int] = {}
    for place in itertools.product(*(range(degrees[name]) for name in reversed(names))):
        at = dict(zip(reversed(names), place, strict=True))
        found[tuple(at[name] for name in ("tp", "cp", "dp", "pp"))] = len(found)
    return found


def members(order: str, degrees: dict[str, int], free: tuple[str, ...]) -> list[int]:
    """The ranks that differ from rank 0 in some coordinates only."""
    names = ("tp", "cp", "dp", "pp")
    places = numbered(order, degrees).items()
    return sorted(rank for at, rank in places if all(at[k] == 0 or names[k] in free for k in range(4)))


def lie(group: groups.Group, numbers: dict[str, int], size: int) -> tuple[float, float]:
    """Ranks of a group in one domain, and domains, by the closed forms."""
    return tuple(value(form, scale_up_size=size, **numbers) for form in (group.inner, group.outer))  # type: ignore[return-value]


def counted(ranks: list[int], size: int) -> tuple[int, int]:
    domains = Counter(rank // size for rank in ranks)
    return max(domains.values()), len(domains)


@pytest.mark.parametrize("schedule", ["1f1b", "dualpipe"])
@pytest.mark.parametrize("context", ["none", "ring"])
def test_one_form_of_both_orders(schedule: str, context: str) -> None:
    """A form for either order, at 1 and 0 or 0 and 1, has the groups of the form of each."""
    form = dataclasses.replace(run("olmoe-1b-7b").structure, context=context, schedule=schedule)
    either = dataclasses.replace(form, rank_order="either")
    for order, chosen in ((USUAL, (0, 1)), (INSIDE, (1, 0))):
        names = (sympy.Symbol(name, integer=True, nonnegative=True) for name in EITHER_ORDER)
        values = {name: sympy.Integer(number) for name, number in zip(names, chosen, strict=True)}
        one = dataclasses.replace(form, rank_order=order)
        for group in (groups.pipeline_group, groups.replica_group, groups.expert_replica_group):
            asked = replace_symbols(group(either), values)
            for at in itertools.product([1, 2, 8], [1, 4], [2, 8], [1, 2], [1, 4]):
                numbers = dict(zip(("tp", "cp", "dp", "pp", "ep"), at, strict=True)) | {"expert_tp": 1}
                assert lie(asked, numbers, SIZE) == lie(group(one), numbers, SIZE)


def test_ranks_by_hand() -> None:
    """16 devices, tp = 2, dp = 2, pp = 4: the groups that Megatron-LM's documentation lists, and those of its flag."""
    degrees = {"tp": 2, "cp": 1, "dp": 2, "pp": 4}
    assert members(USUAL, degrees, ("dp",)) == [0, 2]
    assert members(USUAL, degrees, ("pp",)) == [0, 4, 8, 12]
    assert members(INSIDE, degrees, ("pp",)) == [0, 2, 4, 6]
    assert members(INSIDE, degrees, ("dp",)) == [0, 8]
    for order, stride, apart in ((USUAL, 4, 2), (INSIDE, 2, 8)):
        form = run("gpt-6.7b", tp=2, dp=2, pp=4, rank_order=order).structure
        assert value(groups.pipeline_group(form).stride, **degrees) == stride
        assert value(groups.tied_stride(form, 3), **degrees) == 3 * stride
        assert value(groups.replica_group(form).stride, **degrees) == apart


powers = st.integers(0, 4).map(lambda exponent: 2**exponent)


@given(powers, powers, powers, powers, powers, st.sampled_from([USUAL, INSIDE]))
def test_groups_lie_where_their_ranks_are(tp: int, cp: int, dp: int, pp: int, size: int, order: str) -> None:
    """The closed forms count the ranks in the fullest domain and the domains, as counting every rank does."""
    degrees = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
    fields: dict[str, Any] = {"tp": 2, "cp": 2, "dp": 2, "pp": 2, "attention": "flash", "rank_order": order}
    form = structure_of(sf.Model.load("gpt-6.7b"), sf.System.load("h100-sxm"), Plan(**fields))
    for group, free in (
        (groups.replica_group(form), ("cp", "dp")),
        (groups.pipeline_group(form), ("pp",)),
        (groups.context_group(), ("cp",)),
    ):
        assert lie(group, degrees, size) == counted(members(order, degrees, free), size)


@given(powers, powers, powers, powers, powers, powers, powers, powers)
def test_shards_and_experts_lie_where_their_ranks_are(
    tp: int, cp: int, dp: int, pp: int, ep: int, expert_tp: int, shards: int, size: int
) -> None:
    """With a pipeline inside a replica: shards of hybrid sharding, replicas of experts, and shards of those."""
    numbers = {"tp": tp, "cp": cp, "dp": dp, "pp": pp, "ep": ep, "expert_tp": expert_tp, "zero_shards": shards}
    dealt, stage = ep * expert_tp, tp * cp
    if stage % dealt and (pp > 1 or dealt % stage or (stage * dp) % dealt):
        return
    fields: dict[str, Any] = {"tp": 2, "cp": 2, "dp": 8, "pp": 2, "ep": 2, "sequence_parallel": True}
    plan = Plan(**fields, zero=1, zero_shards=2, rank_order=INSIDE)
    form = structure_of(sf.Model.load("olmoe-1b-7b"), sf.System.load("h100-sxm"), plan)
    every = [rank + stage * pp * run for run in range(dp) for rank in range(stage)]  # those of the first stage
    dense = [rank for rank in every if rank % tp == 0]
    experts = [rank for k, rank in enumerate(every) if k % dealt == 0]
    for group, ranks, inside in (
        (groups.replica_group(form), dense, cp),
        (groups.expert_replica_group(form), experts, max(1, stage // dealt)),
    ):
        assert lie(group, numbers, size) == counted(ranks, size)
        if shards % inside or len(ranks) % shards:
            continue
        shared, same = group.split(groups.zero_shards)
        assert value(shared.ranks, **numbers) == shards
        assert lie(shared, numbers, size) == counted(ranks[:shards], size)
        assert lie(same, numbers, size) == counted(ranks[::shards], size)


ALIKE = {
    "one stage": {"dp": 16, "zero": 1},
    "one replica": {"pp": 16},
    "one domain": {"tp": 2, "pp": 2, "dp": 2},
    "tensor fills a domain": {"tp": 8, "pp": 2, "dp": 4, "sequence_parallel": True, "zero": 1},
    "tensor and context fill a domain": {"tp": 4, "cp": 2, "pp": 2, "dp": 4},
    "two stages and replicas of whole domains": {"tp": 8, "cp": 2, "pp": 2, "dp": 2, "zero": 3},
}


@pytest.mark.parametrize("name", some(ALIKE))
def test_where_the_order_changes_nothing(name: str) -> None:
    """The same time of every term, to the last places."""
    usual, inside = (run("gpt-6.7b", **ALIKE[name], rank_order=order) for order in (USUAL, INSIDE))
    assert inside.value("time") == pytest.approx(usual.value("time"), rel=1e-12)
    assert [row.name for row in inside.table()] == [row.name for row in usual.table()]
    for a, b in zip(inside.table(), usual.table(), strict=True):
        assert a.time_s == pytest.approx(b.time_s, rel=1e-9, abs=1e-15)


OTHERS: dict[str, dict[str, Any]] = {
    "dense": {"model": "gpt-6.7b", "tp": 2, "pp": 4, "dp": 8, "zero": 1},
    "hybrid": {"model": "gpt-6.7b", "tp": 2, "cp": 2, "pp": 2, "dp": 8, "zero": 3, "zero_shards": 4},
    "tied": {"model": "gpt2", "pp": 2, "dp": 16},
    "experts": {"model": "olmoe-1b-7b", "tp": 2, "ep": 2, "pp": 2, "dp": 8, "sequence_parallel": True, "zero": 1},
    "dualpipe": {"model": "gpt-6.7b", "pp": 4, "dp": 8, "schedule": "dualpipe"},
}


@pytest.mark.parametrize("name", some(OTHERS))
def test_only_transfers_change(name: str) -> None:
    """No byte that a device holds, no FLOP, and no time but that of pipeline, gradients and parameters."""
    usual, inside = (run(**OTHERS[name], rank_order=order) for order in (USUAL, INSIDE))
    assert inside.value("memory") == usual.value("memory")
    assert inside.value("model_flops") == usual.value("model_flops")
    assert inside.value("time") != usual.value("time")
    own = {row.name: row for row in usual.table()}
    for row in inside.table():
        if not row.name.startswith(("pipeline", "gradients", "parameters")) and row.bound:
            assert (row.flops, row.bytes) == (own[row.name].flops, own[row.name].bytes)


@pytest.mark.parametrize("model", ["gpt3-175b", "gemma-2-9b"])
@pytest.mark.parametrize("zero", [0, 3])
def test_the_fold_proves_the_same(model: str, zero: int) -> None:
    """The step is proved to fall with every rate and to rise with every latency, as with the usual order."""
    usual = structure(model, zero=zero, context="ring", attention="flash", dropout=False)
    ways = [directions(dataclasses.replace(usual, rank_order=order)) for order in (USUAL, INSIDE)]
    for name, entry in SYMBOLS.items():
        if entry.resource:
            assert ways[0].get(name) == ways[1].get(name)
    assert ways[1]["scale_out_bandwidth"] == ways[1]["scale_up_bandwidth"] == -1
    assert ways[1]["scale_out_latency"] == 1


def test_a_pipeline_inside_a_domain_sends_over_scale_up() -> None:
    """tp 2 x pp 4 fill a domain: a send is n / BW + a hop and a start; usually replicas lie between stages."""
    plan: dict[str, Any] = {"tp": 2, "pp": 4, "dp": 8, "sequence_parallel": True}
    micro, hidden, sequence = 1, 4096, 1024
    message = 2 * micro * sequence * hidden / 2  # bf16, a tp-th
    between = ("scale_out_bandwidth", "scale_out_efficiency", "scale_out_latency")
    inside = ("scale_up_bandwidth", "domain_efficiency", "domain_hop_latency")
    for order, names in ((USUAL, between), (INSIDE, inside)):
        made = run("gpt-6.7b", **plan, rank_order=order, sequence=sequence)
        bandwidth, efficiency, latency = (made.bound[name][0] for name in names)
        assert made.value("pipeline/send/forward") == pytest.approx(
            message / (bandwidth * efficiency) + latency + made.bound["launch_latency"][0], rel=1e-12
        )


def test_each_order_can_win() -> None:
    """Little gradient and long sequences on a slow network want stages as neighbours; large gradients want replicas."""
    slow = {"scale_out_bandwidth": 1e9}
    sends: dict[str, Any] = {"batch": 512, "sequence": 2048, "tp": 1, "pp": 8, "dp": 2, "zero": 0, **slow}
    sums: dict[str, Any] = {"batch": 16, "sequence": 128, "tp": 1, "pp": 2, "dp": 8, "zero": 0}
    for plan, better in ((sends, INSIDE), (sums, USUAL)):
        times = {order: run("gpt-6.7b", **plan, rank_order=order).value("time") for order in (USUAL, INSIDE)}
        assert min(times, key=times.__getitem__) == better


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"rank_order": "tp-pp-dp"}, "rank_order: found 'tp-pp-dp', expected tp-cp-dp-pp or tp-cp-pp-dp; did you mean"),
    ({"rank_order": None}, "rank_order: found None, expected tp-cp-dp-pp or tp-cp-pp-dp"),
    ({"rank_order": 3}, "rank_order: found 3, expected tp-cp-dp-pp or tp-cp-pp-dp"),
    (
        {"model": "olmoe-1b-7b", "tp": 2, "pp": 2, "dp": 8, "ep": 8, "sequence_parallel": True},
        "rank_order: with tp-cp-pp-dp the devices of an expert's layer are those of one stage, and ep x expert_tp = 8",
    ),
    (
        {"cp": 4, "pp": 2, "dp": 4, "zero": 1, "zero_shards": 2},
        "rank_order: with tp-cp-pp-dp the ranks of one stage share the state first, and zero_shards = 2 is no multiple",
    ),
    (
        {"cp": 3, "pp": 2, "dp": 4, "sequence": 1536},
        "rank_order: with tp-cp-pp-dp the tp x cp = 1 x 3 ranks of a stage",
    ),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_what_is_refused(fields: dict[str, Any], message: str) -> None:
    """One line that names the field, what was found, and what is expected."""
    with pytest.raises(InputError) as error:
        run(**{"model": "gpt-6.7b", "rank_order": INSIDE, **fields})
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_one_tier_has_no_order() -> None:
    """Where there is one tier only, both orders are one structure."""
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("mi325x")
    assert len(system.tiers) == 1
    usual, inside = (structure_of(model, system, Plan(pp=2, rank_order=order)) for order in (USUAL, INSIDE))
    assert usual == inside


def search(*orders: str, pp: list[int]) -> Any:
    """A small search on a slow network, of both orders or of some."""
    model, system = sf.Model.load("gpt2"), sf.System.load("h100-sxm")
    values = {"scale_up_size": 4, "scale_out_bandwidth": 2e9}
    require: dict[str, Any] = {"zero": [0, 1], "recompute": ["none"], "attention": ["flash"], "schedule": ["1f1b"]}
    require |= {"pp": pp, "dp": [4], **({"rank_order": orders} if orders else {})}
    return answer_search(model, system, devices=16, batch=16, sequence=512, require=require, values=values, top=1)


def test_a_search_tries_both_orders() -> None:
    """The best of both is the better of the two; what changes nothing is counted, and never tried."""
    both, usual, inside = (search(*orders, pp=[1, 4]) for orders in ((), (USUAL,), (INSIDE,)))
    assert both.considered == usual.considered + inside.considered
    assert both.legal == usual.legal + inside.legal - both.rejected["rank_order_changes_nothing"]
    assert "rank_order_changes_nothing" not in inside.rejected | usual.rejected
    times = [search(order, pp=[4]).records[0]["time_s"] for order in (USUAL, INSIDE)]
    assert times[0] != times[1]
    found = search(pp=[4]).records[0]
    assert found["time_s"] == pytest.approx(min(times), rel=1e-12)
    assert found["rank_order"] == (USUAL, INSIDE)[times.index(min(times))]


def test_a_sweep_has_the_order_as_an_axis() -> None:
    """Every point is what a single run gives."""
    replicas = [1, 2, 8]
    table = run("gpt-6.7b", tp=2, pp=4).sweep(rank_order=[USUAL, INSIDE], dp=replicas)
    for order, dp in itertools.product((USUAL, INSIDE), replicas):
        alone = run("gpt-6.7b", tp=2, pp=4, dp=dp, rank_order=order).value("time")
        assert float(table.time.sel(rank_order=order, dp=dp)) == pytest.approx(alone, rel=1e-12)


def test_inference_places_its_pipeline() -> None:
    """Two stages of tp = 4 are neighbours in one domain, or two replicas apart."""
    plan: dict[str, Any] = {"tp": 4, "pp": 2, "dp": 2}
    model, system = sf.Model.load("llama-2-70b"), sf.System.load("h100-sxm")
    usual, inside = (
        sf.inference(model, system, Plan(**plan, rank_order=order), batch=16, prompt=512, generate=16)
        for order in (USUAL, INSIDE)
    )
    assert inside.shares()["scale_out"] == 0
    assert usual.shares()["scale_out"] > 0
    assert inside.value("memory") == usual.value("memory")


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The flag, the plan of a search in JSON, and one line for a wrong order."""
    words = ["train", "gpt-6.7b", "-s", "h100-sxm", "--pp", "4", "--dp", "8", "--batch", "64", "--sequence", "1024"]
    times = []
    for order in (USUAL, INSIDE):
        assert main([*words, "--rank-order", order, "--json"]) == 0
        times.append(json.loads(capsys.readouterr().out)["time_s"])
    assert times[0] != times[1]
    assert main([*words, "--rank-order", "tp-dp-pp"]) == 2
    assert capsys.readouterr().err.startswith("symperf: rank_order: found 'tp-dp-pp', expected tp-cp-dp-pp or")


def test_frameworks() -> None:
    """Megatron-LM's flag and its translation, what DeepSpeed needs, and what servers do by themselves."""
    plan = Plan(tp=2, pp=4, dp=8, zero=1, rank_order=INSIDE)
    assert emit(plan, "megatron").settings["--use-tp-pp-dp-mapping"] is True
    assert emit(plan, "megatron-bridge").settings["dist.use_tp_pp_dp_mapping"] is True
    assert "--use-tp-pp-dp-mapping" not in emit(Plan(tp=2, pp=4, dp=8), "megatron").settings
    assert "rank_order" in dict(emit(Plan(pp=4, dp=8, zero=3, rank_order=INSIDE), "megatron-bridge").notes)
    experts = Plan(tp=2, pp=2, dp=8, sequence_parallel=True, ep=1, cp=2, rank_order=INSIDE)
    assert "rank_order" in dict(emit(experts, "megatron", model=sf.Model.load("olmoe-1b-7b")).notes)
    for framework in ("deepspeed", "torchtitan"):
        assert "rank_order" in dict(emit(plan, framework).notes)
        assert "rank_order" not in dict(emit(Plan(pp=4, dp=8), framework).notes)
    for framework in ("vllm", "trtllm"):
        assert "rank_order" not in dict(emit(plan, framework).notes)
        assert "rank_order" in dict(emit(Plan(pp=4, dp=8), framework).notes)

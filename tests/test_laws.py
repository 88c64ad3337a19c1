"""Laws of a training step: proved by the fold where it can, and checked at thousands of points at once."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from points import ARCHITECTURES, REGIMES, STRUCTURES, Batch, Values, directions, points, structure
from strategies import seeds, structures

import symperf as sf
from symperf.build import step_time
from symperf.codegen.interpret import adjoints, arrays, run
from symperf.codegen.lower import lower
from symperf.compiled import compiled
from symperf.footprint import footprint
from symperf.formulas.discipline import judge
from symperf.formulas.symbols import SYMBOLS, strip_units
from symperf.schedule import Idle, Op, closed_form, terms, time_of
from symperf.step import BUBBLE, TrainingStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.structure import Structure

regimes = st.sampled_from(sorted(REGIMES))
some = st.sampled_from(sorted(STRUCTURES))
few = settings(max_examples=max(8, settings.default.max_examples // 5))
"""An example is thousands of points."""
each_structure = pytest.mark.parametrize("name", STRUCTURES)
RESOURCES = {name for name, entry in SYMBOLS.items() if entry.resource is not None}


def _points(name: str, seed: int, regime: str = "even", **how: Any) -> Batch:
    return points(seed, regime, interleaved=STRUCTURES[name].schedule == "interleaved", **how)


def _values(name: str, seed: int, regime: str = "even", **changes: Any) -> Values:
    return Values(STRUCTURES[name], _points(name, seed, regime) | changes)


def _relative(excess: Any, size: Any) -> float:
    return float(np.max(excess / size, initial=0.0))


# What the fold proves ----------------------------------------------------------------------------------------

NETWORKS = ((True, True), (True, False), (False, False))


def _against(ways: dict[Any, int]) -> set[str]:
    """Rates and latencies in which something is not proved to fall and to rise."""
    return {
        str(symbol)
        for symbol, way in ways.items()
        if str(symbol) in RESOURCES and way != (1 if str(symbol).endswith("_latency") else -1)
    }


@cache
def _term_against(time: Any) -> set[str]:
    return _against(judge(time).directions)


def _composed_against(of: Structure) -> set[str]:
    """The same of a step, from its parts: it rises with the time of each term, and each term moves as it should."""
    tree = TrainingStep(of).tree()

    def stand_in(leaf: Op | Idle) -> Any:
        return (
            sympy.Symbol(leaf.path, positive=True)
            if isinstance(leaf, Op)
            else leaf.count * time_of(leaf.child, stand_in)
        )

    ways = {str(symbol): way for symbol, way in judge(time_of(tree, stand_in)).directions.items()}
    assert not RESOURCES & set(ways)
    wrong: set[str] = set()
    for path, leaf in terms(tree).items():
        if isinstance(leaf, Op):
            wrong |= _term_against(leaf.time) if ways[path] == 1 else {path}
    return wrong


@pytest.mark.parametrize("tiers", [0, 1, 2])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("attention", ["eager", "flash"])
def test_the_step_is_proved_monotone_in_every_resource(attention: Any, recompute: Any, tiers: int) -> None:
    """Whatever the structural choices, a faster part never costs time and a longer latency never saves it."""
    schedules = ("1f1b", "interleaved")  # gpipe takes the time of 1f1b, see the next test
    choices = itertools.product((False, True), schedules, (0, 1), (False, True), NETWORKS)
    for sequence_parallel, schedule, zero, dropout, (quantised, l2) in choices:
        of = structure(
            attention=attention,
            recompute=recompute,
            sequence_parallel=sequence_parallel,
            schedule=schedule,
            zero=zero,
            dropout=dropout,
            quantised=quantised,
            l2=l2,
            tiers=tiers,
        )
        assert not _composed_against(of), of


@given(structures)
def test_any_architecture_is_proved_monotone_in_every_resource(of: Structure) -> None:
    """The same for random architectures and choices, of the whole closed form."""
    ways = judge(closed_form(TrainingStep(of).tree())).directions
    assert {"matrix_rate", "memory_bandwidth", "launch_latency"} <= set(map(str, ways))
    assert not _against(ways)
    assert not _composed_against(of)


@few
@given(structures)
def test_gpipe_takes_the_time_of_1f1b(of: Structure) -> None:
    """They differ in memory alone."""
    gpipe, one = (dataclasses.replace(of, schedule=schedule) for schedule in ("gpipe", "1f1b"))
    assert closed_form(TrainingStep(gpipe).tree()) == closed_form(TrainingStep(one).tree())


@pytest.mark.parametrize("model", ARCHITECTURES)
def test_the_step_is_proved_to_grow_with_the_model(model: str) -> None:
    """More layers, width, words, sequences or tokens never save time, for every architecture."""
    ways = directions(structure(model))
    sizes = {"num_layers", "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads", "head_dim"}
    for name in (sizes | {"batch", "sequence", "num_key_value_heads"}) & set(ways):
        assert ways[name] == 1, name
    assert sizes <= set(ways)


@given(structures)
def test_memory_is_proved_to_grow_with_the_model(of: Structure) -> None:
    """Every term of the memory never falls with a size of the model, the tokens or the bytes of a format."""
    grows = ("hidden_size", "num_layers", "intermediate_size", "vocab_size", "num_attention_heads", "head_dim")
    grows += ("num_key_value_heads", "sequence", "batch")
    grows += tuple(name for name, entry in SYMBOLS.items() if entry.group == "format")
    for path, expr in footprint(of).items():
        ways = {str(symbol): way for symbol, way in judge(expr).directions.items()}
        assert all(ways.get(name, 1) == 1 for name in grows), path


# ... and what holds in numbers -------------------------------------------------------------------------------


@given(some, seeds, regimes, st.floats(0.01, 100))
@few
def test_time_is_homogeneous(name: str, seed: int, regime: str, factor: float) -> None:
    """A machine s times as fast in everything, latencies included, takes 1/s of the time."""
    batch = _points(name, seed, regime)
    quick = {n: batch[n] / factor if n.endswith("_latency") else batch[n] * factor for n in RESOURCES & set(batch)}
    slow, fast = Values(STRUCTURES[name], batch), Values(STRUCTURES[name], batch | quick)
    assert np.allclose(fast["time"] * factor, slow["time"], rtol=1e-12, atol=0)
    assert np.array_equal(fast["memory"], slow["memory"])
    for path in slow.operations():
        assert np.allclose(fast[path] * factor, slow[path], rtol=1e-12, atol=0), path


@given(some, seeds, st.floats(0.01, 100))
@few
def test_memory_is_homogeneous(name: str, seed: int, factor: float) -> None:
    """Memory is proportional to the bytes of the formats and of the workspace."""
    batch = _points(name, seed)
    formats = [n for n, entry in SYMBOLS.items() if entry.group == "format" or n == "workspace_bytes"]
    wide = {n: batch[n] * factor for n in formats}
    one, two = Values(STRUCTURES[name], batch), Values(STRUCTURES[name], batch | wide)
    assert np.allclose(two["memory"], one["memory"] * factor, rtol=1e-12, atol=0)


@each_structure
def test_shares_of_resources_sum_to_one(name: str) -> None:
    """Euler's theorem at 100,000 points over all structures and regimes: each share is in [0, 1], the sum is 1."""
    checked = 0
    for seed, regime in enumerate(REGIMES):
        values = Values(STRUCTURES[name], _points(name, seed, regime, size=2048))
        program, slopes = values.compiled.program, values.slopes()
        total: Any = 0.0
        shares: dict[str, Any] = {}
        for symbol, resource in values.compiled.resources.items():
            at = program.inputs[symbol]
            if at in slopes:
                sign = 1 if symbol.endswith("_latency") else -1
                part = sign * slopes[at] * values.all[at] / values["time"]
                assert np.all(part >= 0), symbol
                shares[resource] = shares.get(resource, 0.0) + part
        for resource, share in shares.items():
            assert np.all(share <= 1 + 1e-12), resource
            total = total + share
        assert np.max(np.abs(total - 1)) < 1e-12, regime
        checked += np.size(total)
    assert checked * len(STRUCTURES) > 100_000


@given(some, seeds, regimes, st.data())
@few
def test_time_moves_as_proved(name: str, seed: int, regime: str, data: Any) -> None:
    """What the fold proves of a symbol holds in numbers, at every point."""
    ways = {n: way for n, way in directions(STRUCTURES[name]).items() if way and n != "flop"}
    symbol = data.draw(st.sampled_from(sorted(ways)), label="symbol")
    batch = _points(name, seed, regime)
    old = batch[symbol]
    random = np.random.default_rng(seed)
    if SYMBOLS[symbol].domain == "integer >= 1":
        new = old + np.ceil(old * 10.0 ** random.uniform(-3, 1, old.shape))
    else:
        new = old * (1 + 10.0 ** random.uniform(-3, 1, old.shape)) + (old == 0) * random.random(old.shape)
    before, after = Values(STRUCTURES[name], batch), Values(STRUCTURES[name], batch | {symbol: new})
    against = (before["time"] - after["time"]) * ways[symbol]
    assert _relative(against, before["time"]) < 1e-12


PRODUCTS = ("qkv", "attention/output", "mlp/up", "mlp/down", "core/scores", "core/context", "flash")


TRANSFERS = {"gather", "reduce", "send", "tied"}


def _is_transfer(path: str) -> bool:
    return not path.startswith("optimizer/") and not TRANSFERS.isdisjoint(path.replace("_", "/").split("/"))


def _is_product(path: str) -> bool:
    named = path.startswith("layer/") and any(part in path for part in PRODUCTS)
    return named and not _is_transfer(path) and "bias" not in path


@given(some, seeds, regimes)
@few
def test_time_is_above_the_work_bound(name: str, seed: int, regime: str) -> None:
    """No step beats its executed products, or (eager) its model FLOPs, at the peak of all devices."""
    values = _values(name, seed, regime)
    batch = values.batch
    products = sum(
        values[f"term/{path}/count"] * values[f"term/{path}/flops"] for path in values.operations(_is_product)
    )
    assert _relative(products / batch["matrix_rate"] - values["time"], values["time"]) < 1e-12
    if STRUCTURES[name].attention == "eager":
        bound = values["model_flops"] / (values["devices"] * batch["matrix_rate"])
        assert _relative(bound - values["time"], values["time"]) < 1e-12
        assert np.all(values["mfu"] <= 1 + 1e-12)
        assert np.all(values["hfu"] <= 1 + 1e-12)
    assert np.all(values["hfu"] >= values["mfu"] * (1 - 1e-15))


@given(some, seeds, regimes)
@few
def test_operations_are_above_their_bounds(name: str, seed: int, regime: str) -> None:
    """No kernel beats its compulsory bytes at the peak of the memory, its FLOPs at the peak rate, or its launch."""
    values = _values(name, seed, regime)
    batch = values.batch
    fastest = np.maximum(batch["matrix_rate"], batch["vector_rate"])
    for path in values.operations(lambda path: not _is_transfer(path)):
        time = values[path]
        moved = values[f"term/{path}/bytes"] / batch["memory_bandwidth"]
        work = values[f"term/{path}/flops"] / fastest
        bound = np.maximum(moved, work) + batch["launch_latency"]
        assert _relative(bound - time, time) < 1e-12, path


@pytest.mark.parametrize("tiers", [1, 2])
@given(seeds, regimes, st.booleans())
@few
def test_collectives_are_above_their_bounds(tiers: int, seed: int, regime: str, sharded: bool) -> None:
    """No collective of q ranks beats (q - 1)/q of its bytes over all of a device's links, twice for an all-reduce."""
    of = structure(sequence_parallel=sharded, tiers=tiers, zero=int(sharded))
    values = Values(of, points(seed, regime))
    batch = values.batch
    link = batch["scale_up_bandwidth"]
    if tiers == 2:
        link = link + batch["scale_out_bandwidth"]
    for path in values.operations(lambda path: "/gather/" in path or "/reduce/" in path):
        if path.startswith("pipeline/"):
            continue
        once = "/gather/" in path or sharded
        share = (1 if once else 2) * (batch["tp"] - 1) / batch["tp"]
        bound = share * values[f"term/{path}/message"] / link
        assert np.all(values[path] >= bound * (1 - 1e-12)), path
        assert np.all((values[path] == 0) == (batch["tp"] == 1)), path


@given(seeds, regimes)
@few
def test_rounding_up_never_saves_time(seed: int, regime: str) -> None:
    """Whole tiles and waves cost at least as much as smooth products; an L2 cache as a level costs at least none."""
    batch = points(seed, regime)
    whole, flat, smooth = (
        Values(structure(quantised=quantised, l2=l2), batch)
        for quantised, l2 in ((True, True), (True, False), (False, False))
    )
    for path in ["time", *whole.operations()]:
        size = whole[path]
        assert np.all(whole[path] >= flat[path] - 1e-12 * size), path
        assert np.all(flat[path] >= smooth[path] - 1e-12 * size), path


# Conservation ------------------------------------------------------------------------------------------------


def _layer_flops(values: Values, keep: Callable[[str], bool]) -> Any:
    paths = values.operations(keep)
    return values["devices"] * sum(values[f"term/{p}/count"] * values[f"term/{p}/flops"] for p in paths)


@given(seeds, st.sampled_from(["none", "selective", "full"]), st.sampled_from(["gpt3-175b", "llama-2-7b", "falcon-7b"]))
@few
def test_work_is_conserved(seed: int, recompute: Any, model: str) -> None:
    """Split over any degrees that divide it, the work of the layers is the model's, recomputation included."""
    split = Values(structure(model, recompute=recompute), points(seed))
    whole = split.batch | {name: np.ones_like(split.batch[name]) for name in ("tp", "pp", "dp", "vpp")}
    alone = Values(structure(model, recompute=recompute), whole)
    assert np.allclose(_layer_flops(split, _is_product), _layer_flops(alone, _is_product), rtol=1e-12)
    b = split.batch
    head = 6 * b["batch"] * b["sequence"] * b["hidden_size"] * b["vocab_size"]
    assert np.allclose(_layer_flops(split, _is_product), split["hardware_flops"] - head, rtol=1e-11)


def _of_a_layer(path: str) -> bool:
    return path.startswith("layer/")


@given(seeds)
@few
def test_element_wise_work_is_conserved_under_sequence_parallelism(seed: int) -> None:
    """With sequence parallelism nothing is done twice; without it norms, dropouts and residuals are."""
    of = structure(sequence_parallel=True)
    split = Values(of, points(seed))
    alone = Values(of, split.batch | {name: np.ones_like(split.batch["tp"]) for name in ("tp", "pp", "dp")})
    assert np.allclose(_layer_flops(split, _of_a_layer), _layer_flops(alone, _of_a_layer), rtol=1e-12)
    replicated = Values(structure(), split.batch)
    excess = _layer_flops(replicated, _of_a_layer) - _layer_flops(alone, _of_a_layer)
    assert np.all((excess > 0) == (split.batch["tp"] > 1))


@given(st.sampled_from(sorted(ARCHITECTURES)), seeds)
def test_parameters_are_conserved(model: str, seed: int) -> None:
    """The shards of the layers' weights add up to the whole, and to one more copy a shard of what is replicated."""
    a = ARCHITECTURES[model]
    of = structure(model)
    b = points(seed)
    values, whole = _memory(of, b), _memory(of, b | {"tp": np.ones(4096), "pp": np.ones(4096)})["weights/layers"]
    norms = a.block_norms * b["hidden_size"] * (2 if a.norm_bias else 1)
    if a.query_key_norm == "per_head":
        norms = norms + 2 * b["head_dim"]
    biases = b["hidden_size"] * (a.attention_output_bias + a.mlp_bias)
    replicated = (b["tp"] - 1) * b["num_layers"] * (norms + biases) * b["weight_bytes"]
    shards = b["tp"] * b["pp"] * values["weights/layers"]
    assert np.allclose(shards, whole + replicated, rtol=1e-12)
    assert np.allclose(values["gradients/layers"] / b["gradient_bytes"], values["weights/layers"] / b["weight_bytes"])


# Limits ------------------------------------------------------------------------------------------------------


@given(some, seeds, regimes)
@few
def test_alone_nothing_is_sent(name: str, seed: int, regime: str) -> None:
    """On one device every collective and transfer takes no time, and there is no bubble."""
    one = np.ones(4096)
    values = _values(name, seed, regime, tp=one, pp=one, dp=one, vpp=one)
    for path in values.operations(_is_transfer):
        assert np.all(values[path] == 0), path
    assert np.all(values[BUBBLE] == 0)
    network = [n for n in values.compiled.program.inputs if n.startswith(("scale_up_b", "scale_out_b"))]
    slow = Values(STRUCTURES[name], values.batch | {n: values.batch[n] / 1e3 for n in network})
    assert np.array_equal(slow["time"], values["time"])


def test_transfers_are_recognised() -> None:
    """The test above sees every operation that sends anything, and no other."""
    for of in STRUCTURES.values():
        values = Values(of, points(0, size=64))
        sends = {path for path in values.operations() if np.any(values[f"term/{path}/message"] > 0)}
        assert sends == set(values.operations(_is_transfer))


@given(some, seeds, regimes)
@few
def test_one_stage_has_no_bubble(name: str, seed: int, regime: str) -> None:
    """Without a pipeline no device waits, and nothing goes from stage to stage."""
    one = np.ones(4096)
    values = _values(name, seed, regime, pp=one, vpp=one)
    assert np.all(values[BUBBLE] == 0)
    for path in values.operations(lambda path: path.startswith("pipeline/")):
        assert np.all(values[path] == 0), path


@given(seeds, regimes, st.integers(2, 9))
@few
def test_the_bubble_shrinks(seed: int, regime: str, factor: int) -> None:
    """Its share falls with more micro-batches and, interleaved, with more virtual stages; never below zero."""
    name = "gpt, interleaved, selective, sharded"
    values = _values(name, seed, regime)
    b = values.batch
    share = values[BUBBLE] / values["time"]
    assert np.all((share > 0) == (b["pp"] > 1))
    more = _values(name, seed, regime, batch=b["batch"] * factor)
    assert np.all(more[BUBBLE] / more["time"] <= share)
    finer = _values(name, seed, regime, vpp=b["vpp"] * factor, num_layers=b["num_layers"])
    assert np.all(finer[BUBBLE] / finer["time"] <= share * (1 + 1e-12))
    many = _values(name, seed, regime, batch=b["batch"] * 10**9)
    assert np.all(many[BUBBLE] / many["time"] < 1e-6)


@few
@given(seeds, regimes)
def test_zero_shares_the_update(seed: int, regime: str) -> None:
    """With ZeRO each replica updates its part of the parameters, and then gathers the others'."""
    batch = points(seed, regime)
    whole, shared = Values(structure(zero=0), batch), Values(structure(zero=1), batch)
    for path in ("optimizer/adam", "optimizer/clip"):
        for what in ("flops", "bytes"):
            name = f"term/{path}/{what}"
            assert np.allclose(shared[name] * batch["dp"], whole[name], rtol=1e-12)
        assert np.all(shared[path] <= whole[path] * (1 + 1e-12))
    assert np.all((shared["parameters/gather"] > 0) == (batch["dp"] > 1))


@pytest.mark.parametrize(
    ("path", "degree", "stride"),
    [
        ("layer/mlp/reduce/forward", "tp", ()),
        ("gradients/reduce", "dp", ("tp",)),
        ("pipeline/send/forward", "pp", ("tp", "dp")),
    ],
)
@pytest.mark.parametrize("inside", [True, False])
@few
@given(seeds)
def test_groups_lie_where_their_ranks_are(
    path: str, degree: str, stride: tuple[str, ...], inside: bool, seed: int
) -> None:
    """Ranks are numbered by tensor, data, pipeline: a group inside a domain sends nothing out of it, others do."""
    batch = points(seed)
    batch[degree] = np.maximum(batch[degree], 2)
    below = np.prod([batch[name] for name in stride], axis=0)
    batch["scale_up_size"] = below * batch[degree] if inside else np.ones(4096) * below
    for figure, part in (("bandwidth", 0.01), ("efficiency", 1), ("latency", 1), ("half_bytes", 1)):
        batch[f"scale_out_{figure}"] = batch[f"scale_up_{figure}"] * part
    before = Values(structure(), batch)[path]
    after = Values(structure(), batch | {"scale_out_bandwidth": batch["scale_out_bandwidth"] / 100})[path]
    assert np.all((after == before) if inside else (after > before))


# Memory ------------------------------------------------------------------------------------------------------


@given(st.sampled_from(sorted(ARCHITECTURES)), seeds, structures)
def test_zero_never_needs_more_memory(model: str, seed: int, other: Structure) -> None:
    """Sharding the optimizer's state saves memory, and all of it by the number of replicas."""
    batch = points(seed, size=256)
    plain, sharded = (dataclasses.replace(other, architecture=ARCHITECTURES[model], zero=zero) for zero in (0, 1))
    before, after = _memory(plain, batch), _memory(sharded, batch)
    assert np.all(after["total"] <= before["total"] * (1 + 1e-15))
    for part in ("optimizer/layers", "optimizer/ends"):
        assert np.allclose(after[part] * batch["dp"], before[part], rtol=1e-12)
    assert np.array_equal(after["activations"], before["activations"])


def _memory(of: Structure, batch: Batch) -> dict[str, Any]:
    """The terms of the memory, without building the step."""
    terms = footprint(of)
    program = lower([], terms | {"total": sympy.Add(*terms.values())})
    values = run(program, batch, arrays())
    return {name: np.broadcast_to(values[at], batch["tp"].shape) for name, at in program.outputs.items()}


@given(st.sampled_from(sorted(ARCHITECTURES)), seeds, structures)
def test_recomputation_saves_memory(model: str, seed: int, other: Structure) -> None:
    """Selective never keeps more than none, and full never more than selective."""
    batch = points(seed, size=256)
    none, selective, full = (
        _memory(dataclasses.replace(other, architecture=ARCHITECTURES[model], recompute=mode), batch)["activations"]
        for mode in ("none", "selective", "full")
    )
    assert np.all(selective <= none)
    assert np.all(full <= selective)


@given(seeds, structures)
def test_fewer_in_flight_need_less_memory(seed: int, other: Structure) -> None:
    """GPipe holds every micro-batch, 1F1B at most the stages, interleaving a little more than 1F1B."""
    batch = points(seed, size=256, interleaved=True)
    gpipe, one, interleaved = (
        _memory(dataclasses.replace(other, schedule=schedule), batch)["total"]
        for schedule in ("gpipe", "1f1b", "interleaved")
    )
    assert np.all(one <= interleaved * (1 + 1e-15))
    assert np.all(interleaved <= gpipe * (1 + 1e-15))


# Overlap, attribution and size -------------------------------------------------------------------------------


@given(some, seeds, regimes)
@few
def test_overlap_saves_at_most_what_it_hides(name: str, seed: int, regime: str) -> None:
    """T(all hidden) <= T <= T(nothing hidden), and hiding saves no more than half: two things at once, not three."""
    zeros, ones = np.zeros(4096), np.ones(4096)
    serial = _values(name, seed, regime, overlap_tp=zeros, overlap_dp=zeros)["time"]
    hidden = _values(name, seed, regime, overlap_tp=ones, overlap_dp=ones)["time"]
    actual = _values(name, seed, regime)["time"]
    assert np.all(hidden <= actual * (1 + 1e-12))
    assert np.all(actual <= serial * (1 + 1e-12))
    assert np.all(serial <= 2 * hidden * (1 + 1e-12))


@given(some, seeds, regimes)
@few
def test_terms_sum_to_the_step(name: str, seed: int, regime: str) -> None:
    """Time times derivative of each term adds up to the step time, at every point."""
    values = Values(STRUCTURES[name], _points(name, seed, regime, size=512))
    program = values.compiled.program
    idle = {program.lets[term.path] for term in values.compiled.terms if term.idle}
    slopes = adjoints(program, values.all, program.outputs["time"], arrays(), stop=idle)
    total = sum(values.all[program.lets[t.path]] * slopes.get(program.lets[t.path], 0.0) for t in values.compiled.terms)
    assert np.max(np.abs(total / values["time"] - 1)) < 1e-12


def _run(model: str, batch: int, **plan: Any) -> sf.Run:
    return sf.training(
        sf.Model.load(model), sf.System.load("a100-80gb-sxm"), sf.Plan(**plan), batch=batch, sequence=1024
    )


CASES = [
    ("gpt3-175b", 64, {"tp": 8, "pp": 8, "vpp": 3, "recompute": "selective", "sequence_parallel": True}),
    ("gpt-22b", 4, {"tp": 8, "micro_batch": 4}),
    ("llama-2-70b", 512, {"tp": 8, "pp": 4, "dp": 16, "zero": 1, "overlap_dp": 1.0}),
    ("gemma-2-9b", 32, {"dp": 8, "recompute": "full"}),
    ("falcon-7b", 1, {}),
]


@pytest.mark.parametrize(("model", "batch", "plan"), CASES, ids=[case[0] for case in CASES])
def test_the_table_adds_up(model: str, batch: int, plan: dict[str, Any]) -> None:
    """The seconds of the breakdown are the step time to 1e-12, its shares sum to 1, its terms are the step's."""
    run = _run(model, batch, **plan)
    table = run.table()
    assert sum(row.time_s for row in table) == pytest.approx(run.value("time"), rel=1e-12)
    assert sum(row.share for row in table) == pytest.approx(1, rel=1e-12)
    assert all(row.time_s >= 0 and row.each_s >= 0 for row in table)
    assert sum(run.shares().values()) == pytest.approx(1, rel=1e-12)


def test_the_size_of_the_form_does_not_depend_on_sizes() -> None:
    """Layers, micro-batches and devices are numbers: one structure has one program, and one closed form."""
    plan = {"tp": 8, "pp": 8, "recompute": "full"}
    small, large = _run("gpt3-175b", 64, **plan), _run("gpt-530b", 35 * 4096, **(plan | {"pp": 35, "dp": 64}))
    assert small.structure == large.structure
    assert small.compiled is large.compiled
    assert small.time.expr == large.time.expr
    assert step_time(small.structure) is step_time(large.structure)
    assert len(small.compiled.program) < 2000
    assert sympy.count_ops(strip_units(step_time(small.structure))) < 20_000


@each_structure
def test_a_step_has_one_program(name: str) -> None:
    """Equal structures give the same object, unequal ones another."""
    of = STRUCTURES[name]
    assert compiled(of) is compiled(dataclasses.replace(of))
    assert compiled(of) is not compiled(dataclasses.replace(of, zero=1 - of.zero))

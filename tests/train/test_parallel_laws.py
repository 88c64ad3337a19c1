"""Laws of every way to be parallel: shares, proofs, identities at degree 1, conservation, order of the bubbles."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support import effort
from support.law_cases import RESOURCES, few, memory_of, relative
from support.parallel_cases import PARALLEL, parallel, parallel_points
from support.points import REGIMES, Batch, Values
from support.strategies import seeds

from symperf.codegen.interpret import adjoints, arrays
from symperf.formulas.language.discipline import judge
from symperf.formulas.parallel import context_parallel as con
from symperf.operations.schedule import Idle, Op, terms, time_of
from symperf.train.step.step import TrainingStep

some = st.sampled_from(sorted(PARALLEL))
regimes = st.sampled_from(sorted(REGIMES))
WAYS = ("ring", "all-to-all", "all-gather")


def ones(batch: Batch, *names: str) -> Batch:
    return batch | {name: np.ones_like(batch["tp"]) for name in names}


def same(of: Any, other: Any, batch: Batch, tolerance: float = 1e-12) -> None:
    first, second = Values(of, batch), Values(other, batch)
    assert np.allclose(first["time"], second["time"], rtol=tolerance)
    assert np.allclose(first["memory"], second["memory"], rtol=tolerance)


@pytest.mark.parametrize(("name", "regime"), effort.some(itertools.product(PARALLEL, REGIMES), 0.4))
def test_shares_of_resources_sum_to_one(name: str, regime: str) -> None:
    values = Values(PARALLEL[name], parallel_points(1, regime))
    program, slopes = values.compiled.program, values.slopes()
    total: Any = 0.0
    for symbol in values.compiled.resources:
        at = program.inputs[symbol]
        if at in slopes:
            sign = 1 if symbol.endswith("_latency") else -1
            part = sign * slopes[at] * values.all[at] / values["time"]
            assert np.all(part >= -1e-15), symbol
            total = total + part
    assert np.max(np.abs(total - 1)) < 1e-12


@given(some, seeds, regimes)
@few
def test_terms_sum_to_the_step(name: str, seed: int, regime: str) -> None:
    values = Values(PARALLEL[name], parallel_points(seed, regime, 256))
    program = values.compiled.program
    idle = {program.lets[term.path] for term in values.compiled.terms if term.idle}
    slopes = adjoints(program, values.all, program.outputs["time"], arrays(), stop=idle)
    total = sum(values.all[program.lets[t.path]] * slopes.get(program.lets[t.path], 0.0) for t in values.compiled.terms)
    assert np.max(np.abs(total / values["time"] - 1)) < 1e-12


@pytest.mark.parametrize("name", effort.some(PARALLEL))
def test_the_step_is_proved_monotone_in_every_resource(name: str) -> None:
    """The step rises with the time of each term, and each term falls with rates and rises with latencies."""
    tree = TrainingStep(PARALLEL[name]).tree()

    def stand_in(leaf: Op | Idle) -> Any:
        return (
            sympy.Symbol(leaf.path, positive=True)
            if isinstance(leaf, Op)
            else leaf.count * time_of(leaf.child, stand_in)
        )

    ways = {str(symbol): way for symbol, way in judge(time_of(tree, stand_in)).directions.items()}
    for path, leaf in terms(tree).items():
        if not isinstance(leaf, Op) or leaf.time == 0:
            continue
        assert ways[path] == 1, path
        for symbol, way in judge(leaf.time).directions.items():
            if str(symbol) in RESOURCES:
                assert way == (1 if str(symbol).endswith("_latency") else -1), (path, symbol)


@given(st.sampled_from(WAYS), st.sampled_from(["llama-2-7b", "deepseek-v3", "mixtral-8x7b"]), seeds)
@few
def test_one_part_is_a_whole_sequence(way: str, model: str, seed: int) -> None:
    """At c = 1 context parallelism is gone: time and memory are those of the plain structure."""
    batch = ones(parallel_points(seed, size=256), "cp")
    same(parallel(model, context=way), parallel(model), batch)


@pytest.mark.parametrize("way", WAYS)
def test_one_part_sends_nothing(way: str) -> None:
    values = Values(parallel(context=way), ones(parallel_points(3), "cp"))
    sent = [path for path in values.operations() if "/context/" in path or "/ring/" in path]
    assert sent
    assert all(not np.any(values[path]) for path in sent)


@given(seeds, regimes)
@few
def test_the_ring_takes_the_time_of_its_formula(seed: int, regime: str) -> None:
    """The tree's core is `ring_attention_time` and, backward, `ring_attention_backward_time`; merging aside."""
    of = parallel(context="ring")
    ((core,),) = TrainingStep(of).decoder.mixers
    batch = parallel_points(seed, regime, 128)
    values = Values(of, batch)

    def leaf(op: Any) -> Any:
        return sympy.S.Zero if "/merge/" in op.path else sympy.Symbol(op.path, positive=True)

    names = {p: sympy.Symbol(p, positive=True) for p in values.operations() if "flash" in p or "/ring/" in p}
    cp = sympy.Symbol("cp", positive=True)
    f = [names[f"layer/attention/{x}"] for x in ("flash/forward", "ring/forward")]
    b = [names[f"layer/attention/{x}"] for x in ("flash/backward", "ring/backward", "ring/backward_gradients")]
    wanted = con.ring_attention_time(*f, 1, cp), con.ring_attention_backward_time(*b, 1, cp)
    built = time_of(core.core_forward("forward"), leaf), time_of(core.core_backward(), leaf)
    assert built[0] == wanted[0]
    for parts in (1, 2, 3, 8):
        assert sympy.expand(built[1].subs(cp, parts) - wanted[1].subs(cp, parts)) == 0


@pytest.mark.parametrize("model", ["llama-2-7b", "mixtral-8x7b", "deepseek-v3"])
def test_a_ring_merges_what_its_steps_found(model: str) -> None:
    """Bytes of all kernels are those of `merged_partials_bytes`: of results forward, of three gradients backward."""
    of = parallel(model, context="ring")
    batch = parallel_points(5, size=256)
    values = Values(of, batch)
    heads, key_heads, tokens = batch["num_attention_heads"], batch["num_key_value_heads"], batch["micro_batch"]
    tokens = tokens * batch["sequence"] / batch["cp"]
    heads, key_heads = heads / batch["tp"], np.ceil(key_heads / batch["tp"])
    if model == "deepseek-v3":
        wide = batch["qk_nope_head_dim"] + batch["qk_rope_head_dim"]
        narrow = batch["v_head_dim"]
        each = {"results": heads * narrow, "queries": heads * wide, "keys": heads * (wide + narrow)}
    else:
        own = heads * batch["head_dim"]
        each = {"results": own, "queries": own, "keys": 2 * key_heads * batch["head_dim"]}
    for name, width in each.items():
        phase = "forward" if name == "results" else "backward"
        kinds = "first", "further"
        paths = [next(p for p in values.operations() if p.endswith(f"merge/{name}/{kind}/{phase}")) for kind in kinds]
        calls = (batch["cp"] > 1), batch["cp"] - 1
        found = sum(count * values[f"term/{path}/bytes"] for count, path in zip(calls, paths, strict=True))
        columns = tokens, width, batch["activation_bytes"], batch["cp"]
        wanted = [float(con.merged_partials_bytes(*row)) for row in zip(*columns, strict=True)]
        assert np.allclose(found, wanted, rtol=1e-12), name


@given(
    seeds,
    st.sampled_from(["none", "ring", "all-to-all", "all-gather"]),
    st.sampled_from(["llama-2-7b", "mixtral-8x7b"]),
)
@few
def test_work_does_not_depend_on_the_degrees(seed: int, way: Any, model: str) -> None:
    """FLOPs of the products of all layers over all devices, whatever tp, pp, dp, cp and ep are.

    The router is replicated: not with sequence parallelism, which gives each device its own tokens. What a ring's
    steps found is merged, which is work that one part does not have.
    """
    of = parallel(model, context=way, sequence_parallel=True)
    batch = parallel_points(seed, size=512) | {"token_imbalance": np.ones(512)}

    def work(at: Batch) -> Any:
        values = Values(of, at)
        paths = [p for p in values.operations() if p.startswith("layer/") and "/merge/" not in p]
        return values["devices"] * sum(values[f"term/{p}/count"] * values[f"term/{p}/flops"] for p in paths)

    assert np.allclose(work(batch), work(ones(batch, "tp", "pp", "dp", "cp", "ep")), rtol=1e-11)


@given(seeds, st.sampled_from(["zero-bubble", "zb-h2", "zero-bubble-2p", "dualpipe"]))
@few
def test_split_schedules_do_the_same_work(seed: int, schedule: Any) -> None:
    """A backward pass taken apart has the same FLOPs on a device as a whole one."""
    batch = parallel_points(seed, size=256)

    def work(of: Any) -> Any:
        values = Values(of, batch)
        paths = [p for p in values.operations() if p.startswith("layer/")]
        return sum(values[f"term/{p}/count"] * values[f"term/{p}/flops"] for p in paths)

    assert np.allclose(work(parallel(schedule=schedule)), work(parallel()), rtol=1e-12)


@given(seeds, regimes)
@few
def test_bubbles_are_ordered(seed: int, regime: str) -> None:
    """ZB-2p is at most ZB-H2, ZB-H1 and 1F1B, in this order; the work itself is the floor of all."""
    batch = ones(parallel_points(seed, regime, 512), "tp", "dp")
    plain, h1, h2, p2 = (
        Values(parallel(schedule=name), batch)["time"] for name in ("1f1b", "zero-bubble", "zb-h2", "zero-bubble-2p")
    )
    bare = Values(parallel(), batch)
    floor = plain - bare["pipeline/bubble"]
    for shorter, longer in ((floor, p2), (p2, h2), (h2, h1), (h1, plain)):
        assert relative(shorter - longer, longer) < 1e-12


@given(seeds)
@few
def test_on_one_stage_nothing_is_split(seed: int) -> None:
    """With p = 1 and t = 1 a zero-bubble schedule takes the time of 1F1B."""
    batch = ones(parallel_points(seed, size=256), "tp", "pp") | {"overlap_dp": np.zeros(256)}
    for schedule in ("zero-bubble", "zb-h2", "zero-bubble-2p"):
        first, second = Values(parallel(schedule=schedule), batch), Values(parallel(), batch)
        assert np.allclose(first["time"], second["time"], rtol=1e-12)


@given(seeds)
@few
def test_dual_pipe_hides_transfers(seed: int) -> None:
    """The more of the transfers may hide, the shorter a step; two copies of a stage's weights are held."""
    of = parallel("deepseek-v3", schedule="dualpipe")
    batch = parallel_points(seed, size=256)
    hidden, shown = (Values(of, batch | {"overlap_ep": np.full(256, x)})["time"] for x in (1.0, 0.0))
    assert np.all(hidden <= shown * (1 + 1e-12))
    two, one = memory_of(of, batch), memory_of(dataclasses.replace(of, schedule="1f1b"), batch)
    for name in ("weights/layers", "gradients/experts", "optimizer/layers"):
        assert np.allclose(two[name], 2 * one[name], rtol=1e-12)


def holds_less(apart: Values, alike: Values) -> None:
    """Equal stages take the fuller end of the model and the most activations as if one stage had both."""
    assert np.all(apart["memory"] <= alike["memory"] * (1 + 1e-12))
    assert np.all(apart["memory"] > alike["memory"] - alike["memory/activations"] - ends_held(alike))


def ends_held(of: Values) -> Any:
    """Bytes of the tables at both ends, their gradients and their state."""
    names = [name for name in of.compiled.program.outputs if name.startswith("memory/") and name.endswith("/ends")]
    return sum(of[name] for name in names)


@given(seeds, st.sampled_from(["llama-2-7b", "gpt-oss-20b"]), st.sampled_from([0, 1, 3]))
@few
def test_even_layers_make_uneven_stages_even(seed: int, model: str, zero: int) -> None:
    """Where p divides L, unequal stages are equal ones, of which the form takes the slower end for every micro-batch.

    Told apart they are faster where the embedding is the slower end, by no more than it takes.
    """
    batch = parallel_points(seed, size=256)
    uneven, even = Values(parallel(model, stages="uneven", zero=zero), batch), Values(parallel(model, zero=zero), batch)
    holds_less(uneven, even)
    embedding = sum(even[path] for path in even.operations() if path.startswith("embedding/"))
    assert np.all(uneven["time"] <= even["time"] * (1 + 1e-12))
    assert np.all(
        uneven["time"] >= (even["time"] - even["term/embedding/lookup/forward/count"] * embedding) * (1 - 1e-9)
    )


@given(seeds)
@few
def test_given_stages_of_the_mean_are_even(seed: int) -> None:
    batch = parallel_points(seed, size=256)
    mean = batch["num_layers"] / batch["pp"]
    batch |= {"first_stage_layers": mean, "last_stage_layers": mean}
    given_ones, even = Values(parallel(stages="given"), batch), Values(parallel(), batch)
    assert np.allclose(given_ones["time"], Values(parallel(stages="uneven"), batch)["time"], rtol=1e-12)
    holds_less(given_ones, even)
    free = batch | {"vocab_size": np.ones(256), "index_bytes": np.full(256, 1e-9)}
    assert np.all(Values(parallel(stages="given"), free)["time"] <= Values(parallel(), free)["time"] * (1 + 1e-12))


@given(seeds, st.integers(2, 16))
@few
def test_uneven_stages_hold_the_ceiling(seed: int, more: int) -> None:
    """A model with more layers than p divides takes no more than with the next multiple, and no less than without them.

    Of layers its fullest stage has as many as any, or fewer, where the model's ends make the last stage the fullest.
    """
    batch = parallel_points(seed, size=256)
    layers = batch["num_layers"] + np.minimum(more, batch["pp"] - 1)
    of = parallel(stages="uneven")
    ceiling = Values(parallel(), batch | {"num_layers": batch["num_layers"] + batch["pp"]})
    found = Values(of, batch | {"num_layers": layers})
    fewer, held = Values(parallel(), batch)["memory/weights/layers"], found["memory/weights/layers"]
    assert np.all((fewer * (1 - 1e-12) <= held) & (held <= ceiling["memory/weights/layers"] * (1 + 1e-12)))
    holds_less(found, ceiling)
    assert np.all(found["time"] <= ceiling["time"] * (1 + 1e-12))
    assert np.all(found["time"] >= Values(parallel(), batch)["time"] * (1 - 1e-12))


@given(seeds, st.sampled_from([1, 3]))
@few
def test_one_shard_group_is_full_sharding(seed: int, zero: int) -> None:
    batch = parallel_points(seed, size=256)
    same(parallel(zero=zero, hybrid=True), parallel(zero=zero), batch | {"zero_shards": batch["dp"]})


@given(seeds)
@few
def test_smaller_shard_groups_hold_more_and_gather_less(seed: int) -> None:
    batch = parallel_points(seed, size=256)
    of = parallel(zero=3, hybrid=True)
    small, large = (batch | {"zero_shards": n} for n in (np.maximum(1, batch["dp"] / 2), batch["dp"]))
    less, more = Values(of, small), Values(of, large)
    assert np.all(less["parameters/gather/forward"] <= more["parameters/gather/forward"] * (1 + 1e-12))
    assert np.all(less["memory/weights/layers"] >= more["memory/weights/layers"])


@given(seeds, st.sampled_from(["llama-2-7b", "mixtral-8x7b"]))
@few
def test_sharded_memory_tends_to_what_is_not_state(seed: int, model: str) -> None:
    """As d grows ZeRO-3's state vanishes: activations, and what is gathered, stay."""
    batch = parallel_points(seed, size=128)
    terms_of = memory_of(parallel(model, zero=3), batch | {"dp": np.full(128, 1e12)})
    rest = sum(value for name, value in terms_of.items() if name.startswith(("activations", "workspace")))
    assert np.allclose(terms_of["total"], rest, rtol=1e-5)


@given(seeds, st.sampled_from(WAYS))
@few
def test_activations_are_in_parts(seed: int, way: Any) -> None:
    """Saved activations of a sequence over c devices are a c-th of a whole one's."""
    batch = parallel_points(seed, size=256)
    parts = memory_of(parallel(context=way), batch)["activations"]
    whole = memory_of(parallel(), batch)["activations"]
    assert np.allclose(parts * batch["cp"], whole, rtol=1e-12)


@given(seeds, regimes)
@few
def test_a_limit_on_domains_never_slows_a_dispatch(seed: int, regime: str) -> None:
    """The fewer domains hold a token's experts, the shorter the transfers; both tiers work at once."""
    batch = parallel_points(seed, regime, 256)
    of = PARALLEL["node-limited"]
    one, two = (Values(of, batch | {"node_limit": np.full(256, x)})["time"] for x in (1.0, 4.0))
    assert np.all(one <= two * (1 + 1e-12))

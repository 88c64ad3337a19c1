"""Closed forms of papers for sharding, experts, parts of sequences and stages: a step has the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from support.parallel_cases import parallel, parallel_points

from symperf.codegen.interpret import arrays, run
from symperf.codegen.lower import lower
from symperf.formulas.kernels import optimizers
from symperf.formulas.language import symbols as sym
from symperf.formulas.language.symbols import cp, gradient_bytes, strip_units, weight_bytes
from symperf.formulas.parallel import context_parallel as con
from symperf.formulas.parallel import expert_parallel as dealt
from symperf.formulas.parallel import pipeline as pipe
from symperf.formulas.parallel import sharding
from symperf.operations.groups import context_group, expert_group, shard_groups
from symperf.operations.schedule import Idle, Op, executions, terms, time_of
from symperf.train.layers.context import key_value_bytes
from symperf.train.memory import device_counts
from symperf.train.memory.device_share import fullest_share
from symperf.train.memory.state_memory import state_terms
from symperf.train.step.optimizer_step import Update
from symperf.train.step.step import TrainingStep

if TYPE_CHECKING:
    from support.points import Batch

    from symperf.plans.structure import Structure

SIZE = 256
STATES = (
    lambda parameters, _: sharding.replicated_state_memory(parameters),
    sharding.zero_1_memory,
    sharding.zero_2_memory,
    sharding.zero_3_memory,
)
"""Bytes of the whole state, by ZeRO stage."""


def at(batch: Batch, *forms: Any) -> list[Any]:
    """The values of closed forms at a batch of points."""
    program = lower([], {str(k): strip_units(sympy.sympify(form)) for k, form in enumerate(forms)})
    found = run(program, {name: batch[name] for name in program.inputs}, arrays())
    return [np.broadcast_to(found[program.outputs[str(k)]], SIZE) for k in range(len(forms))]


def equal(found: Any, expected: Any, batch: Batch) -> None:
    """Two closed forms have one value at every point."""
    np.testing.assert_allclose(*at(batch, found, expected), rtol=1e-11)


def instant(seed: int, **changes: Any) -> Batch:
    """Points whose kernels start in no time, with some values the same at all of them."""
    batch = parallel_points(seed, size=SIZE)
    fixed = {"launch_latency": 0.0} | changes
    return batch | {name: np.broadcast_to(np.asarray(value, dtype=float), SIZE) for name, value in fixed.items()}


def operations(structure: Structure) -> dict[str, Op]:
    return {path: op for path, op in terms(TrainingStep(structure).tree()).items() if isinstance(op, Op)}


@pytest.mark.parametrize("stage", range(4))
def test_the_state_is_that_of_the_zero_paper(stage: int) -> None:
    """Weights, gradients and optimizer state of a dense model: the published bytes of each ZeRO stage."""
    structure = parallel(zero=stage)
    share = fullest_share(structure)
    shards = shard_groups(structure)[0].ranks
    composed = sympy.Add(*state_terms(structure, share).values())
    equal(composed, STATES[stage](share.whole[0], shards), instant(stage))


@pytest.mark.parametrize(
    ("stage", "published"), [(1, sharding.zero_2_traffic_bytes), (3, sharding.zero_3_traffic_bytes)]
)
def test_the_traffic_is_that_of_the_zero_paper(stage: int, published: Any) -> None:
    """Bytes that a device sends: in a step under ZeRO-1, for each micro-batch under ZeRO-3."""
    structure = parallel(zero=stage)
    step = TrainingStep(structure)
    tree, shards = step.tree(), shard_groups(structure)[0].ranks
    count = executions(tree)
    sent = sum(
        count[path] * op.demand.message_bytes
        for path, op in terms(tree).items()
        if isinstance(op, Op) and (path.startswith("parameters/gather") or path == "gradients/reduce")
    )
    passes = step.micro_batches if stage == 3 else 1
    equal(sent * (shards - 1) / shards / passes, published(step.trained_parameters, shards), instant(stage))


@pytest.mark.parametrize(("inner", "outer"), [(1, 1), (1, 8), (4, 1), (4, 2), (8, 16)])
def test_hybrid_sharding_is_that_of_the_fsdp_paper(inner: int, outer: int) -> None:
    """State shared inside domains: gathers stay inside, gradients are scattered inside and summed between."""
    structure = parallel(zero=3, hybrid=True)
    step, found = TrainingStep(structure), operations(structure)
    alone = dict.fromkeys(("tp", "cp", "pp"), 1)
    batch = instant(inner, **alone, dp=inner * outer, zero_shards=inner, scale_up_size=inner)
    gradients, weights = step.trained_parameters * gradient_bytes, step.trained_parameters * weight_bytes
    between = found["gradients/reduce_between"]
    reduced = found["gradients/reduce"].time + between.time
    equal(reduced, sharding.hybrid_reduction_time(gradients, inner, outer), batch)
    equal(found["parameters/gather/forward"].time, sharding.hybrid_gather_time(weights, inner), batch)
    sent = 2 * between.demand.message_bytes * sympy.Rational(outer - 1, outer)
    equal(sent, sharding.hybrid_between_bytes(step.trained_parameters, inner, outer), batch)


def test_experts_on_a_device_are_those_of_their_formulas() -> None:
    """Parameters and FLOPs of gated routed experts without biases, and the time of a dispatch."""
    structure = parallel("mixtral-8x7b", sequence_parallel=True)
    (kind,) = structure.architecture.kinds
    inner = sym.expert_intermediate_size
    count = (sym.num_experts, sym.hidden_size, inner, sym.ep, sym.expert_tp)
    batch = instant(1)
    equal(device_counts.expert_parameters(structure.architecture, kind), dealt.device_expert_parameters(*count), batch)
    step, found = TrainingStep(structure), operations(structure)
    tokens = step.decoder.shapes.stream_tokens
    routed = (tokens, sym.num_experts_per_token, sym.hidden_size)
    flops = sum(found[f"layer/experts/{name}/forward"].demand.flops for name in ("up", "down"))
    equal(flops, dealt.device_expert_flops(*routed, inner, sym.token_imbalance), batch)
    group = expert_group()
    sent = (*routed, sym.activation_bytes, sym.token_imbalance, group.inner, group.outer)
    equal(found["layer/experts/dispatch/forward"].time, dealt.dispatch_time(*sent), batch)


def core_of(way: Any) -> Any:
    """The attention core of a step whose sequences are in parts."""
    ((core,),) = TrainingStep(parallel(context=way)).decoder.mixers
    return core


def test_a_ring_passes_the_bytes_of_its_formulas() -> None:
    """Keys and values forward; with their gradients, which go home, backward."""
    core, batch = core_of("ring"), instant(2)
    part = key_value_bytes(core.shapes, core.kind)
    published = {
        core.core_forward("forward"): con.ring_attention_bytes(part, cp),
        core.core_backward(): con.ring_attention_backward_bytes(part, cp),
    }
    for tree, expected in published.items():
        count = executions(tree)
        equal(sum(count[path] * op.demand.message_bytes for path, op in terms(tree).items()), expected, batch)


def test_dealt_heads_take_the_bytes_and_the_time_of_their_formulas() -> None:
    """Four all-to-alls on either side of the attention."""
    core, batch, group = core_of("all-to-all"), instant(3), context_group()
    sizes = (core.shapes.tokens, core.shapes.heads, core.shapes.head_dim, sym.activation_bytes)
    queries = con.query_part_bytes(*sizes)
    keys = con.dealt_key_value_bytes(sizes[0], core.shapes.key_value_heads, *sizes[2:], cp)
    for tree in (core.core_forward("forward"), core.core_backward()):
        moved = [op for path, op in terms(tree).items() if "/context/" in path]
        assert len(moved) == 4
        equal(sum(op.time for op in moved), con.ulysses_time(queries, keys, group.inner, group.outer), batch)
        sent = sum(op.demand.message_bytes for op in moved) * (cp - 1) / cp
        equal(sent, con.ulysses_bytes(queries, keys, cp), batch)


def test_gathered_keys_take_the_time_of_their_formulas() -> None:
    """In one domain exactly; over several never more, as tiers of a library's collectives work at once."""
    core, group = core_of("all-gather"), context_group()
    part = key_value_bytes(core.shapes, core.kind)
    forward, backward = terms(core.core_forward("forward")), terms(core.core_backward())
    (gather,) = (op for path, op in forward.items() if "/context/gather" in path)
    (scatter,) = (op for path, op in backward.items() if "/context/scatter" in path)
    for op, published in ((gather, con.gathered_key_value_time), (scatter, con.scattered_key_value_time)):
        expected = published(part, group.inner, group.outer)
        equal(op.time, expected, instant(4, scale_up_size=4096))
        found, most = at(instant(4), op.time, expected)
        assert np.all(found <= most * (1 + 1e-12))
        assert np.any(found < most * (1 - 1e-3))


def test_muon_iterates_with_the_flops_of_its_formula() -> None:
    """The three products of an iteration, of one matrix, as often as it is iterated."""
    structure = parallel(optimizer="muon")
    update = Update(TrainingStep(structure))
    found = terms(update.muon())
    for _, matrix in update.layers.matrices:
        products = (found[f"optimizer/muon/{matrix.name}/{name}"] for name in ("gram", "square", "product"))
        flops = sym.newton_schulz_steps * sum(op.demand.flops for op in products)
        batch = instant(5, newton_schulz_steps=5)
        equal(flops, optimizers.newton_schulz_flops(matrix.rows, matrix.columns), batch)


@pytest.mark.parametrize(("layers", "stages"), [(126, 16), (128, 16), (7, 4), (5, 1)])
def test_uneven_stages_take_the_time_of_their_formula(layers: int, stages: int) -> None:
    """Layers that the stages do not divide, with both ends, but without transfers, replicas and optimizer.

    The formula has every stage wait for the fullest in each micro-batch: where others have fewer layers, it is a bound,
    and the step has what the devices do one after another (as the runs event by event of unequal schedules).
    """
    step = TrainingStep(parallel(stages="uneven"))
    apart = ("pipeline/send", "pipeline/gather", "gradients/", "optimizer/", "parameters/")

    def leaf(node: Op | Idle) -> Any:
        if isinstance(node, Idle):
            return node.count * time_of(node.child, leaf)
        return sympy.S.Zero if node.path.startswith(apart) else sympy.Rational(sum(map(ord, node.path)) % 97 + 1, 7)

    micro_batches = 3 * stages
    numbers = {sym.num_layers: layers, sym.pp: stages, sym.vpp: 1, sym.batch: micro_batches}
    numbers |= dict.fromkeys(step.micro_batches.free_symbols - {sym.batch}, 1)

    def value(node: Any) -> Any:
        found = sympy.sympify(time_of(node, leaf)).xreplace(numbers)
        return found.xreplace(dict.fromkeys(found.free_symbols, sympy.S.Half))

    layer = value(step.forward) + value(step.backward)
    first, last = (value(end) for end in step.both_ends())
    expected = pipe.uneven_layers_time(layer * stages / layers, first, last, layers, micro_batches, stages)
    found, fullest = value(step.tree()), pipe.fullest_stage_layers(layers, stages) * layer * stages / layers
    assert (found == expected) == (layers % stages == 0)
    assert micro_batches * (fullest + first) <= found <= expected

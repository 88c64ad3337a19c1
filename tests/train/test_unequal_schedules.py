"""A step's pipeline against an event-by-event run of its schedule, with the times of the stages that a model has."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
import sympy

import symperf as sf
from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.formulas.language.symbols import strip_units
from symperf.operations.schedule import Op, part, time_of
from symperf.timeline import simulator as sim
from symperf.train.memory.device_share import dealing_of
from symperf.train.step.passes import of_weights, pair_passes
from symperf.train.step.step import TrainingStep
from symperf.train.step.unequal_stages import paced_by_deciding_stages, split_unequal_stages

if TYPE_CHECKING:
    from symperf.operations.schedule import Node

BATCH, REPLICAS = 1024, 16
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "1f1b": ("deepseek-v2-lite", {"pp": 4, "uneven_stages": True}),
    "1f1b, few": ("deepseek-v3", {"pp": 6, "uneven_stages": True, "micro_batch": 16}),
    "1f1b, given": ("deepseek-v3", {"pp": 6, "first_stage_layers": 7, "last_stage_layers": 6}),
    "zero-bubble": ("deepseek-v3", {"pp": 6, "uneven_stages": True}),
    "zb-h2": ("deepseek-v2-lite", {"pp": 4, "uneven_stages": True}),
    "dense": ("llama-2-7b", {"pp": 5, "uneven_stages": True, "schedule": "zero-bubble", "ep": 1}),
    "dualpipe": ("deepseek-v3", {"pp": 8, "uneven_stages": True}),
    "dualpipe, few": ("deepseek-v3", {"pp": 4, "uneven_stages": True, "micro_batch": 8}),
}
ORDERS = {"1f1b": sim.one_f_one_b, "zero-bubble": sim.zero_bubble_h1, "zb-h2": sim.zero_bubble_h2}


def pipeline(name: str) -> tuple[float, float, int]:
    """The time of a plan's pipeline, that of the schedule's run with the times of all stages, and its micro-batches."""
    model, plan = PLANS[name]
    plan = {"schedule": name.partition(",")[0], **plan}
    laid = sf.Plan(**{"dp": REPLICAS, "ep": REPLICAS, **plan})
    made = sf.training(sf.Model.load(model), sf.System.load("h100-sxm"), laid, batch=BATCH, sequence=4096)
    step, p = TrainingStep(made.structure), laid.pp
    dual = laid.schedule == "dualpipe"
    scheduled = split_unequal_stages(step) if step.structure.splits else paced_by_deciding_stages(step)
    wanted: dict[Any, Node] = {"pipeline": scheduled}
    dealing = dealing_of(step.structure).one_way
    passes = [step.passes_of(functools.partial(dealing.on_stage, number=sympy.Integer(i + 1))) for i in range(p)]
    for i, (forward, backward) in enumerate(passes):
        wanted["F", i], wanted["D", i] = forward, backward
        wanted["B", i] = part(backward, lambda op: not of_weights(op))
        wanted["W", i] = part(backward, of_weights)
        if dual:
            wanted["FD", i] = pair_passes(forward, passes[p - 1 - i][1])
    for at, (forward, backward) in zip((0, p - 1), step.end_passes().values(), strict=True):
        wanted["end", "F", at], wanted["end", "D", at] = forward, backward
        wanted["end", "W", at] = part(backward, of_weights)
    times = values(made, wanted)

    def cost(item: sim.Item) -> float:
        kinds = [task.kind for task in sorted(item, key=lambda task: task.kind != "F")]
        stages = [task.stage for task in sorted(item, key=lambda task: task.kind != "F")]
        ends = sum(end_of(times, kind, stage) for kind, stage in zip(kinds, stages, strict=True))
        return times["".join(kinds), stages[0]] + ends

    m = BATCH // (REPLICAS * (laid.micro_batch or 1))
    if dual:
        return times["pipeline"], sim.simulate(sim.dual_pipe(m, p), cost).makespan, m
    order = sim.simulate(ORDERS[laid.schedule or "1f1b"](m, p), cost)
    if laid.schedule == "1f1b":
        # The first micro-batch is priced apart.
        times["pipeline"] += sum(times[phase, i] for phase in "FD" for i in range(p))
    return times["pipeline"], order.period if laid.schedule == "zb-h2" else order.makespan, m


def end_of(times: dict[Any, float], kind: str, stage: int) -> float:
    """What an end of the model adds to a pass of its stage."""
    if ("end", "F", stage) not in times:
        return 0
    if kind == "B":
        return times["end", "D", stage] - times["end", "W", stage]
    return times["end", kind, stage]


def values(made: sf.Run, wanted: dict[Any, Node]) -> dict[Any, float]:
    """The times of nodes, by the closed forms of their operations."""
    stand_ins: dict[Op, Any] = {}

    def stand_in(leaf: Any) -> Any:
        return stand_ins.setdefault(leaf, sympy.Symbol(f"op{len(stand_ins)}", nonnegative=True))

    forms = {f"at{k}": strip_units(time_of(node, stand_in)) for k, node in enumerate(wanted.values())}
    definitions = [(symbol, strip_units(op.time)) for op, symbol in stand_ins.items()]
    program = lower(definitions, forms)
    bound = {name: value for name, (value, _) in made.bound.items()}
    found = run(program, {name: bound[name] for name in program.inputs}, floats())
    return {name: float(found[program.outputs[f"at{k}"]]) for k, name in enumerate(wanted)}


@pytest.mark.parametrize("name", PLANS)
def test_the_pipeline_takes_the_time_of_its_schedule(name: str) -> None:
    """Within 2 %, and never longer but where all stages at the pace of the slowest are taken."""
    closed, simulated, m = pipeline(name)
    assert m >= 4
    assert closed == pytest.approx(simulated, rel=0.02)

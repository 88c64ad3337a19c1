"""A step's pipeline against an event-by-event run of its schedule, with the times of the stages that a model has."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from support.effort import some

import symperf as sf
from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.formulas.language.symbols import strip_units
from symperf.operations.schedule import Op, part, sequence, time_of
from symperf.timeline import simulator as sim
from symperf.train.memory.device_share import dealing_of
from symperf.train.step.passes import of_weights, pair_passes
from symperf.train.step.step import TrainingStep
from symperf.train.step.unequal_stages import split_unequal_stages
from symperf.train.step.unequal_whole import paced_by_deciding_stages

if TYPE_CHECKING:
    from symperf.operations.schedule import Node

BATCH, REPLICAS = 1024, 16
LAYOUTS = {
    "405b": "E|(t|)*30L",
    "kinds": "Ettt|(tt|)*10t*4L",
    "modules": "Ettt|t*9|t*10|t*10|t*10|t*10|t*9mL",
    "modules apart": "Et*11|t*13|t*13|t*14|t*10m|L",
    "modules in chunks": "Et*5|(t*6|)*9ttm|L",
}
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "1f1b": ("deepseek-v2-lite", {"pp": 4, "uneven_stages": True}),
    "1f1b, few": ("deepseek-v3", {"pp": 6, "uneven_stages": True, "micro_batch": 16}),
    "1f1b, given": ("deepseek-v3", {"pp": 6, "first_stage_layers": 7, "last_stage_layers": 6}),
    "1f1b, dense": ("llama-2-7b", {"pp": 5, "uneven_stages": True, "ep": 1}),
    "1f1b, counted": ("llama-2-7b", {"pp": 3, "account_for": "loss", "ep": 1}),
    "1f1b, apart": ("deepseek-v3", {"pp": 6, "layout": LAYOUTS["modules apart"]}),
    "gpipe, hidden": ("llama-2-7b", {"pp": 5, "uneven_stages": True, "ep": 1, "overlap_pp": 1.0}),
    "gpipe, dense": ("llama-2-7b", {"pp": 5, "uneven_stages": True, "ep": 1}),
    "gpipe, given": ("deepseek-v3", {"pp": 6, "first_stage_layers": 7, "last_stage_layers": 6}),
    "interleaved": ("deepseek-v2", {"pp": 4, "vpp": 5}),
    "interleaved, counted": ("llama-2-7b", {"pp": 2, "vpp": 17, "account_for": "both", "ep": 1}),
    "1f1b, uneven and counted": ("deepseek-v3", {"pp": 8, "uneven_stages": True, "account_for": "both"}),
    "gpipe, uneven and counted": ("llama-2-7b", {"pp": 5, "uneven_stages": True, "account_for": "loss", "ep": 1}),
    "zero-bubble, uneven and counted": ("deepseek-v3", {"pp": 6, "uneven_stages": True, "account_for": "embedding"}),
    "dualpipe, uneven and counted": ("deepseek-v3", {"pp": 6, "uneven_stages": True, "account_for": "both"}),
    "interleaved, uneven": ("llama-2-7b", {"pp": 4, "vpp": 3, "uneven_stages": True, "ep": 1}),
    "interleaved, uneven and kinds": ("deepseek-v3", {"pp": 4, "vpp": 5, "uneven_stages": True}),
    "interleaved, uneven and counted": (
        "llama-2-7b",
        {"pp": 4, "vpp": 5, "uneven_stages": True, "account_for": "both", "ep": 1},
    ),
    "interleaved, uneven and empty": ("llama-2-7b-30", {"pp": 8, "vpp": 4, "uneven_stages": True, "ep": 1}),
    "interleaved, few": ("llama-2-7b", {"pp": 2, "vpp": 17, "account_for": "both", "ep": 1, "micro_batch": 32}),
    "interleaved, hidden": ("llama-2-7b", {"pp": 2, "vpp": 17, "account_for": "both", "ep": 1, "overlap_pp": 0.75}),
    "interleaved, given": (
        "llama-2-7b",
        {"pp": 4, "vpp": 2, "first_stage_layers": 6, "last_stage_layers": 6, "ep": 1},
    ),
    "interleaved, layout": ("llama-2-7b-30", {"pp": 8, "layout": LAYOUTS["405b"], "ep": 1}),
    "interleaved, kinds": ("deepseek-v2-lite", {"pp": 4, "layout": LAYOUTS["kinds"]}),
    "interleaved, apart": ("deepseek-v3", {"pp": 4, "layout": LAYOUTS["modules in chunks"]}),
    "zero-bubble": ("deepseek-v3", {"pp": 6, "uneven_stages": True}),
    "zero-bubble, given": ("deepseek-v3", {"pp": 6, "first_stage_layers": 7, "last_stage_layers": 6}),
    "zero-bubble, apart": ("deepseek-v3", {"pp": 6, "layout": LAYOUTS["modules apart"]}),
    "zb-h2": ("deepseek-v2-lite", {"pp": 4, "uneven_stages": True}),
    "zb-h2, counted": ("llama-2-7b", {"pp": 3, "account_for": "loss", "ep": 1}),
    "zero-bubble, dense": ("llama-2-7b", {"pp": 5, "uneven_stages": True, "ep": 1}),
    "dualpipe": ("deepseek-v3", {"pp": 8, "uneven_stages": True}),
    "dualpipe, few": ("deepseek-v3", {"pp": 4, "uneven_stages": True, "micro_batch": 8}),
    "dualpipe, counted": ("llama-2-7b", {"pp": 2, "account_for": "both", "ep": 1}),
}
ORDERS = {
    "1f1b": sim.one_f_one_b,
    "gpipe": sim.gpipe,
    "zero-bubble": sim.zero_bubble_h1,
    "zb-h2": sim.zero_bubble_h2,
    "dualpipe": sim.dual_pipe,
}


def asked(name: str) -> tuple[sf.Run, sf.Plan]:
    """The step of a plan, and the plan."""
    model, plan = PLANS[name]
    made = sf.Model.load(model.removesuffix("-30"))
    values = {"num_layers": 30} if model.endswith("-30") else {}
    laid = sf.Plan(**{"dp": REPLICAS, "ep": REPLICAS, "schedule": name.partition(",")[0], **plan})
    run_of = sf.training(made, sf.System.load("h100-sxm"), laid, batch=BATCH, sequence=4096, **values)
    return run_of, laid


def pipeline(name: str) -> tuple[float, float, int]:
    """The time of a plan's pipeline, that of the schedule's run with the times of all stages, and its micro-batches."""
    made, laid = asked(name)
    step, p, v = TrainingStep(made.structure), laid.pp, laid.vpp
    dual, whole = laid.schedule == "dualpipe", not made.structure.splits
    wanted: dict[Any, Node] = {"pipeline": split_unequal_stages(step) if not whole else paced_by_deciding_stages(step)}
    if whole:
        wanted["rest"] = sequence(step.forward, step.backward, step.waiting())
    shown = 1 - sympy.nsimplify(laid.overlap_pp)
    passes = [step.passes_of(layers_of, shown) for layers_of in stages_of(step, p, v)]
    wanted["send"] = step.transfer("forward")
    for i, (forward, backward) in enumerate(passes):
        wanted["F", i], wanted["D", i] = forward, backward
        wanted["B", i] = part(backward, lambda op: not of_weights(op))
        wanted["W", i] = part(backward, of_weights)
        if dual:
            wanted["FD", i] = pair_passes(forward, passes[p - 1 - i][1])
    places = {"first": 0, "modules": p * (v - 1) + made.structure.module_stage - 1, "last": p * v - 1}
    for end, (forward, backward) in step.end_passes().items():
        at = places[end]
        wanted[end, "F", at], wanted[end, "D", at] = forward, backward
        wanted[end, "W", at] = part(backward, of_weights)
    times = values(made, wanted)

    def cost(item: sim.Item) -> float:
        kinds = [task.kind for task in sorted(item, key=lambda task: task.kind != "F")]
        stages = [task.stage for task in sorted(item, key=lambda task: task.kind != "F")]
        ends = sum(end_of(times, kind, stage) for kind, stage in zip(kinds, stages, strict=True))
        return times["".join(kinds), stages[0]] + ends

    m = BATCH // (REPLICAS * (laid.micro_batch or 1))
    order = sim.interleaved(m, p, v) if laid.schedule == "interleaved" else ORDERS[str(laid.schedule)](m, p)
    found = sim.simulate(order, cost, times["send"] * laid.overlap_pp)
    closed = times["pipeline"] + times.get("rest", 0.0)
    return closed, found.period if laid.schedule == "zb-h2" else found.makespan, m


def stages_of(step: TrainingStep, p: int, v: int) -> list[Any]:
    """How many layers each stage has of which the model has a count, in the order of the model."""
    dealing = dealing_of(step.structure)
    if v == 1:
        one_way = dealing.one_way
        return [functools.partial(one_way.on_stage, number=sympy.Integer(i + 1)) for i in range(p)]
    return [functools.partial(dealing.on_chunk, place=place, shape=(p, v)) for place in range(p * v)]


def end_of(times: dict[Any, float], kind: str, stage: int) -> float:
    """What the ends of the model, and modules on a stage of their own, add to a pass of a stage."""
    found = 0.0
    for end in ("first", "modules", "last"):
        if (end, "F", stage) in times:
            weights = times[end, "W", stage]
            found += times[end, "D", stage] - weights if kind == "B" else times[end, kind, stage]
    return found


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


@pytest.mark.parametrize("name", some(PLANS, 0.5))
def test_the_pipeline_takes_the_time_of_its_schedule(name: str) -> None:
    """Within 2 %, whichever stages have the ends of the model, its kinds of layers and its modules."""
    closed, simulated, m = pipeline(name)
    assert m >= 2
    assert closed == pytest.approx(simulated, rel=0.02)

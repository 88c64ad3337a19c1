"""A search for a framework finds what it runs, and what is written, read back, is the same step."""

from __future__ import annotations

import json
import random
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import cases, some

import symperf as sf
from symperf.common.errors import InputError
from symperf.export.bridge_adapters import MODULES, targets_of
from symperf.export.emit import emit
from symperf.export.limits import training_limits
from symperf.plan_search.search import answer_search
from symperf.plans.plan import FIELDS, Plan
from symperf.plans.stage_layout import stages_of
from symperf.plans.validity import run_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from symperf.runs.training_run import Run

FRAMEWORKS = ("megatron", "megatron-bridge", "torchtitan", "deepspeed")
ENDINGS = {"deepspeed": "json", "torchtitan": "toml"}
MODELS = ("gpt-6.7b", "llama-2-7b", "mixtral-8x7b", "deepseek-v2-lite")
BATCH, SEQUENCE = 48, 2048


def same(one: Run, other: Run) -> bool:
    """Whether two runs have the same numbers: the same form and values, or else the same time and memory."""
    values = [{name: value for name, (value, _) in run.bound.items() if name not in idle(run)} for run in (one, other)]
    if one.structure == other.structure and values[0] == values[1]:
        return True
    return all(one.value(name) == pytest.approx(other.value(name), rel=1e-12) for name in ("time", "memory"))


def idle(run: Run) -> set[str]:
    """Overlaps that mean nothing in a step."""
    zero = run.plan.zero
    return {name for name, stages in OVERLAPS.items() if zero not in stages} | (
        {"overlap_tp"} if run.plan.tp == 1 else set()
    )


OVERLAPS = {"overlap_parameters": (1, 2), "overlap_gather": (3,)}


def read_back(folder: Path, framework: str, text: str, plan: Plan, layers: int) -> tuple[Plan, int | None]:
    path = folder / f"plan.{ENDINGS.get(framework, 'txt')}"
    path.write_text(text, encoding="utf-8")
    return sf.read_framework(path, model=True).plan(layers, devices=plan.devices)


def drawn(framework: str, model: sf.Model, system: sf.System, dice: random.Random) -> Plan | None:
    """A plan of random fields that the framework runs; None where the fields drawn are no such plan."""
    limits = training_limits(framework, model)
    two = {"tp": 3, "pp": 3, "dp": 4, "cp": 2, "ep": 3, "vpp": 2, "micro_batch": 2, "zero_shards": 3}
    fields: dict[str, Any] = {}
    for name, field in FIELDS.items():
        if name in limits.several:
            parts = [part for part in limits.several[name] if dice.random() < 0.2]
            choices: tuple[Any, ...] = (None, ",".join(parts) or None)
        elif name in limits.values:
            choices = limits.values[name]
        elif name in two:
            choices = tuple(2**k for k in range(two[name])) + ((None,) if field.optional else ())
        elif field.kind == "flag":
            choices = (False, True)
        elif field.searched:
            choices = field.choices
        else:
            choices = (field.default,)
        fields[name] = dice.choice(choices)
    replicas = fields["dp"] * fields["cp"]
    if fields["pp"] == 1:
        fields["schedule"] = "1f1b"
    if fields["schedule"] != "interleaved":
        fields["vpp"] = 1
    if not fields["zero"] or not 1 < (fields["zero_shards"] or 1) < replicas:
        fields["zero_shards"] = None
    if (fields["zero"] and replicas == 1) or (
        fields["uneven_stages"] and model.sizes["num_layers"] % fields["pp"] == 0
    ):
        return None  # another plan is the same
    try:
        plan = Plan(**fields)
        limits.refuse(fields, parts=plan.cp > 1)
        sf.training(model, system, plan, batch=BATCH, sequence=SEQUENCE)
    except InputError:
        return None
    values = run_values(plan, model.name, model.sizes, system, (BATCH, SEQUENCE))
    return plan if all(rule.holds(values) for rule in limits.rules) else None


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_is_written_is_read_back_as_the_same_step(tmp_path: Path, framework: str) -> None:
    dice, system, seen = random.Random(framework), sf.System.load("h100-sxm"), 0
    models = [sf.Model.load(name) for name in MODELS]
    while seen < cases(75, 0.16):
        model = dice.choice(models)
        plan = drawn(framework, model, system, dice)
        if plan is None:
            continue
        seen += 1
        text = emit(plan, framework, model=model, system=system, batch=BATCH, sequence=SEQUENCE).text
        found, batch = read_back(tmp_path, framework, text, plan, model.sizes["num_layers"])
        assert batch == BATCH
        runs = [sf.training(model, system, each, batch=BATCH, sequence=SEQUENCE) for each in (plan, found)]
        assert same(*runs), (plan, found, text)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_plan_of_a_search_for_a_framework_is_what_it_runs(tmp_path: Path, framework: str) -> None:
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
    limits = training_limits(framework, model)
    few: dict[str, Any] = {"recompute": ["none"], "cp": [1], "attention": ["flash"], "zero": [0, 1, 2]}
    few["schedule"] = ["1f1b", "interleaved", "zero-bubble"]
    few = {name: [each for each in values if each in limits.values.get(name, values)] for name, values in few.items()}
    few = {name: values for name, values in few.items() if name != "attention" or values}
    found = answer_search(
        model, system, devices=16, batch=32, sequence=1024, require=few, software=limits, top=cases(40, 0.2)
    )
    assert found.considered == found.feasible + sum(found.rejected.values())
    for record in found.records:
        plan = Plan(**{name: record[name] for name in Plan.names()})
        text = emit(plan, framework, model=model, system=system, batch=32, sequence=1024).text
        again, batch = read_back(tmp_path, framework, text, plan, model.sizes["num_layers"])
        assert batch == 32
        mine, other = (sf.training(model, system, each, batch=32, sequence=1024) for each in (plan, again))
        assert same(mine, other), (plan, again)
        if record is found.records[0]:
            assert record["time_s"] == pytest.approx(other.value("time"), rel=1e-9)


def test_the_layout_has_the_modules_for_multi_token_prediction() -> None:
    model = sf.Model.load("deepseek-v3")
    text = emit(Plan(pp=16, uneven_stages=True), "megatron", model=model).settings["--pipeline-model-parallel-layout"]
    stages = stages_of(str(text))  # `*` and parentheses as Megatron-LM unrolls them
    assert (stages[0], stages[-1]) == ("Etttt", "tttmL")
    assert "".join(stages).count("t") == 61


ASKED = ["search", "gpt-6.7b", "-s", "a100-80gb-sxm", "--devices", "16", "--batch", "32", "--sequence", "1024"]


@pytest.mark.parametrize(
    ("framework", "asked", "told"),
    [
        ("megatron", "schedule=zero-bubble", "which megatron does not run; expected 1f1b or interleaved"),
        ("torchtitan", "zero=1", "found 1, which torchtitan does not run; expected 2 or 3"),
        ("deepspeed", "pp=2", "found 2, which deepspeed does not run; expected 1"),
        ("megatron", "overlap_dp=0,1", "found 2 values, expected one with --emit megatron"),
        ("megatron-bridge", "cp-kind=all-to-all", "expected ring"),
    ],
)
def test_what_a_framework_does_not_run_is_refused(
    call: Callable[[Any], Any], framework: str, asked: str, told: str
) -> None:
    code, out, err = call([*ASKED, "--require", asked, "--emit", framework])
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert told in err


@pytest.mark.parametrize("framework", some(FRAMEWORKS, 0.25))
def test_the_command_line_writes_what_it_promises(tmp_path: Path, call: Callable[[Any], Any], framework: str) -> None:
    """`search --emit F`, its command and `train --from` have the same time, under the profile of F."""
    more = ["--require", "recompute=none", "--require", "cp=1", "--require", "schedule=1f1b", "--require", "tp=2"]
    more += ["--require", f"zero={3 if framework == 'torchtitan' else 1}", "--require", "pp=1"]
    code, out, err = call([*ASKED, *more, "--emit", framework, "--json"])
    assert (code, err) == (0, "")
    told = json.loads(out)
    path = tmp_path / f"plan.{ENDINGS.get(framework, 'txt')}"
    path.write_text(told["emitted"]["text"], encoding="utf-8")
    words = ["train", "gpt-6.7b", "-s", "a100-80gb-sxm", "--from", str(path), "--devices", "16", "--sequence", "1024"]
    for asked in (words, shlex.split(told["plans"][0]["command"])[1:]):
        code, out, err = call([*asked, "--json"])
        assert (code, err) == (0, "")
        assert json.loads(out)["time_s"] == pytest.approx(told["plans"][0]["time_s"], rel=1e-9)


def test_a_profile_changes_a_search_as_it_changes_a_run() -> None:
    """Times of a host, shares of efficiencies: what `train --stack` gives for each plan listed."""
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
    few: dict[str, Any] = {"recompute": ["none"], "cp": [1], "attention": ["eager"], "zero": [1], "schedule": ["1f1b"]}
    few |= {"sequence_parallel": [True], "uneven_stages": [False]}
    work: dict[str, Any] = {"batch": 32, "sequence": 1024, "stack": "megatron-deepspeed"}
    found = answer_search(model, system, devices=16, require=few, top=3, **work)
    for record in found.records:
        plan = Plan(**{name: record[name] for name in Plan.names()})
        run = sf.training(model, system, plan, **work)
        assert record["time_s"] == pytest.approx(run.value("time"), rel=1e-9)
        assert record["memory_bytes"] == pytest.approx(run.needed_bytes, rel=1e-9)


@pytest.mark.parametrize("modules", [["linear_fc1"], ["linear_fc1", "linear_qkv"], ["linear_fc1", "linear_fc2"]])
@pytest.mark.parametrize("name", ["llama-2-7b", "gpt-6.7b"])
def test_modules_of_an_mlp_are_read_with_and_without_a_gate(tmp_path: Path, name: str, modules: list[str]) -> None:
    """Megatron Bridge's first product of an MLP holds the gate of a model that has one."""
    model, system = sf.Model.load(name), sf.System.load("h100-sxm")
    targets = targets_of(modules)
    plan = Plan(lora_rank=8, lora_targets=targets)
    text = emit(plan, "megatron-bridge", model=model, system=system, batch=BATCH, sequence=SEQUENCE).text
    assert all(module in text for module in modules)
    found, _ = read_back(tmp_path, "megatron-bridge", text, plan, model.sizes["num_layers"])
    assert found.lora_targets == plan.lora_targets
    run = sf.training(model, system, found, batch=BATCH, sequence=SEQUENCE)
    gate = model.architecture.gated_mlp
    layers = [layer for module in modules for layer in MODULES[module] if gate or layer != "gate"]
    same = run.bind(lora_targets=",".join(layers))
    assert run.value("time") == same.value("time")
    assert run.value("memory") == same.value("memory")


@pytest.mark.parametrize(
    ("framework", "name", "runs", "other"),
    [
        ("megatron", "offload", "attn_norm,core_attn", "weights"),
        ("megatron", "recompute_modules", "core_attn,mlp", "op"),
        ("megatron-bridge", "recompute_modules", "layernorm", "op"),
        ("deepspeed", "offload", "optimizer,weights", "attn_norm"),
    ],
)
def test_a_search_takes_what_is_written(framework: str, name: str, runs: str, other: str) -> None:
    """Of values that list several parts every list, and no part that is only noted."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    limits = training_limits(framework, model)
    limits.check({name: (None, runs)})
    with pytest.raises(InputError, match="does not run; expected"):
        limits.check({name: (other,)})
    for value, noted in ((runs, False), (other, True)):
        more = {"zero": 3} if framework == "deepspeed" else {"zero": 1, "recompute": "selective"}
        plan = Plan(**{name: value, **more}, dp=8)
        told = emit(plan, framework, model=model, system=system, batch=BATCH, sequence=SEQUENCE)
        assert any(f"{framework}: {name}: " in line for line in told.warnings) == noted

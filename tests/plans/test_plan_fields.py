"""The table of plan fields: each is swept as it is run, and has a flag and a line in the documentation."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.effort import some

import symperf as sf
from symperf.cli import main
from symperf.cli.parser import build
from symperf.common.errors import InputError
from symperf.plans.plan import FIELDS, NUMBERS
from symperf.plans.validity import CHOICE_RULES, IMPOSSIBLE, RULES, reason_of
from symperf.sweep.axes import Zip
from symperf.sweep.study import load
from symperf.sweep.sweep import REASON, Sweep, base_of

if TYPE_CHECKING:
    from symperf.plans.fields import Field
    from symperf.runs.training_run import Run

OUTPUTS = ("time", "memory", "mfu")
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "dense": ("gpt2", {"tp": 2, "pp": 2, "dp": 4, "zero": 1, "attention": "flash", "sequence_parallel": True}),
    "ends": ("gpt2", {"pp": 4, "recompute": "full", "first_stage_layers": 2, "last_stage_layers": 2}),
    "experts": ("mixtral-8x7b", {"tp": 2, "dp": 8, "ep": 4, "zero": 1, "sequence_parallel": True}),
    "adapters": ("gpt2", {"dp": 2, "lora_rank": 4}),
    "dualpipe": ("mixtral-8x7b", {"pp": 2, "dp": 8, "ep": 8, "schedule": "dualpipe"}),
    "drives": ("gpt2", {"dp": 64, "offload": "weights", "nvme_bandwidth": 3e9}),
}
"""Runs in which, together, each field has several legal values."""
every_field = pytest.mark.parametrize("field", FIELDS.values(), ids=list(FIELDS))


def run_of(name: str) -> Run:
    model, given = RUNS[name]
    plan = sf.Plan(**{field: value for field, value in given.items() if field in FIELDS})
    values = {name: value for name, value in given.items() if name not in FIELDS}
    return sf.training(sf.Model.load(model), sf.System.load("h100-sxm"), plan, batch=64, sequence=768, **values)


def some_values(field: Field) -> list[Any]:
    """Values that the field takes, whether a run takes them or not."""
    if field.kind == "fraction":
        return [0.0, 0.25, 1.0]
    found: list[Any] = [None] if field.optional else []
    if field.whole:
        return [*found, 1, 2, 3, 4, 8]
    if field.name == "lora_targets":  # a few of many names, as each has a form of its own
        return [*found, "q", "gate", "attention", "all-linear"]
    if field.kind == "flag":
        return [*found, False, True]
    if field.kind == "text":
        return [*found, "Et*6|t*6L", "Et*3|t*3|t*4|ttL"]
    return [*found, *(field.training or field.choices)]


def bound(run: Run, **values: Any) -> Run | InputError:
    """The run at some values, or why there is none."""
    try:
        return run.bind(**values)
    except InputError as error:
        return error


@pytest.mark.parametrize(
    ("field", "name"),
    [pytest.param(FIELDS[f], n, id=f"{f}-{n}") for f, n in some(itertools.product(FIELDS, RUNS), 0.4)],
)
def test_a_swept_field_is_a_run_at_each_value(field: Field, name: str) -> None:
    """The same numbers bit for bit; where the run refuses the value, the name of the rule that it broke."""
    run, values = run_of(name), some_values(field)
    sweep = Sweep(base_of(run), {field.name: values}, outputs=OUTPUTS)
    found = sweep.compute((slice(0, len(values)),))
    for k, value in enumerate(values):
        point = {output: float(found[output][k]) for output in OUTPUTS}
        reason = ["", *sweep.reasons][found[REASON][k]]
        expected = bound(run, **{field.name: value})
        if isinstance(expected, InputError):
            assert reason == reason_of(expected), (value, str(expected))
            assert all(math.isnan(number) for number in point.values())
        else:
            assert reason == "", value
            assert point == {output: expected.value(output) for output in OUTPUTS}, value


@pytest.mark.parametrize(
    ("plan", "axes"),
    [
        ({}, {"layout": [None, "Et*6|t*6L", "Et*3|t*3|t*3|t*3L", "Et*3|tL"], "pp": [1, 2, 3, 4]}),
        ({"pp": 2, "layout": "Et*3|t*3|t*3|t*3L"}, {"vpp": [1, 2, 4], "dp": [1, 3]}),
    ],
)
def test_a_sweep_deals_a_layout_as_a_run_does(plan: dict[str, Any], axes: dict[str, Any]) -> None:
    """How many devices it is dealt to decides the form, and how many stages a device has."""
    run = sf.training("gpt2", "h100-sxm", sf.Plan(**plan), batch=4, sequence=512)
    sweep = Sweep(base_of(run), axes, outputs=OUTPUTS)
    found = sweep.compute(tuple(slice(0, len(values)) for values in axes.values()))
    for at in itertools.product(*(range(len(values)) for values in axes.values())):
        single = bound(run, **{name: values[k] for (name, values), k in zip(axes.items(), at, strict=True)})
        reason = ["", *sweep.reasons][found[REASON][at]]
        assert reason == (reason_of(single) if isinstance(single, InputError) else "")
        if not isinstance(single, InputError):
            assert {o: float(found[o][at]) for o in OUTPUTS} == {o: single.value(o) for o in OUTPUTS}
    with pytest.raises(InputError, match="derived pp: how a layout is dealt changes the closed form"):
        run.sweep(layout=["Et*6|t*6L"], devices=[2, 4], pp="devices", outputs=["time"])


@every_field
def test_every_field_has_several_values_that_run(field: Field) -> None:
    """Else the test above would say nothing of it; what refuses others has a name, unless the system lacks a rate."""
    answers = [[bound(run_of(name), **{field.name: value}) for value in some_values(field)] for name in RUNS]
    assert max(sum(not isinstance(answer, InputError) for answer in each) for each in answers) >= 2
    for answer in (answer for each in answers for answer in each):
        assert not isinstance(answer, InputError) or reason_of(answer) != IMPOSSIBLE or "matrix_rate" in str(answer)


def test_numbers_share_a_cell() -> None:
    """A form has one program, however many values there are: none for a number that is open, above 1 or given."""
    run = run_of("experts")
    forms = {
        "tp": ([1, 2, 4, 8], 1),
        "micro_batch": ([None, 1, 2], 1),
        "overlap_gather": ([0.0, 0.5, 1.0], 1),
        "ep": ([1, 2, 4, 8], 1),
        "vpp": ([1, 2, 4, 8], 2),
        "cp": ([1, 2, 4], 2),
        "zero_shards": ([1, 2, 4], 1),
        "node_limit": ([None, 1, 2, 4], 2),
        "recompute_layers": ([None, 1, 2, 4], 2),
    }
    for name, (values, cells) in forms.items():
        sweep = Sweep(base_of(run), {name: values}, outputs=OUTPUTS)
        assert len(sweep._groups[0]) == cells, name


@pytest.mark.parametrize("expert_tp", [None, 1, 2])
def test_what_is_left_open_follows_from_the_others(expert_tp: int | None) -> None:
    """The tensor-parallel degree inside an expert is that of the run at every point, whatever varies or is derived."""
    run = run_of("experts").bind(expert_tp=expert_tp)
    sweep = Sweep(base_of(run), {"tp": [1, 2, 4], "ep": [1, 2, 8], "sets": [8, 16], "dp": "sets / tp"}, outputs=OUTPUTS)
    found = sweep.compute(tuple(slice(0, n) for n in sweep.shape))
    some = 0
    for at in np.ndindex(*sweep.shape):
        tp, ep, sets = (int(next(iter(a.members.values()))[k]) for a, k in zip(sweep.axes, at, strict=True))
        expected = bound(run, tp=tp, ep=ep, dp=sets // tp)
        reason = ["", *sweep.reasons][found[REASON][at]]
        if isinstance(expected, InputError):
            assert reason == reason_of(expected)
            continue
        some += 1
        assert reason == ""
        assert {output: float(found[output][at]) for output in OUTPUTS} == {o: expected.value(o) for o in OUTPUTS}
    assert some > 3


def test_open_values_are_told_apart() -> None:
    """`None` stands on an axis, zipped or not, and in tables as "default"; the best points have it too."""
    pytest.importorskip("xarray")
    run = run_of("experts")
    data = run.sweep(shape=Zip(expert_tp=[None, 2, None], ep=[1, 4, 4]), outputs=["time"])
    assert data.expert_tp.values.tolist() == ["default", "2", "default"]
    points = [run.bind(expert_tp=None, ep=1), run.bind(expert_tp=2, ep=4), run.bind(expert_tp=None, ep=4)]
    assert data.time.values.tolist() == [point.value("time") for point in points]
    table = run.best(node_limit=[1, None, 2], minimize="time", outputs=["memory"], top=3)
    assert sorted(table.node_limit) == ["1", "2", "default"]
    assert run.sweep(node_limit=[1, 2]).node_limit.values.tolist() == [1, 2]


STUDY = """
model = "mixtral-8x7b"
system = "h100-sxm"
batch = 64
sequence = 768
outputs = ["time"]

[plan]
tp = 2
dp = 8
zero = 1
sequence_parallel = true
expert_tp = "none"

[axes]
ep = [1, 2, 4]
zero_shards = ["none", 1, 2]
cp_kind = ["ring", "all-gather"]
overlap_parameters = { from = 0, to = 1, count = 3 }
"""


def test_a_study_sweeps_plan_fields(tmp_path: Path) -> None:
    """Files have no None: they say "none"."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    sweep = load(path).sweep
    found = sweep.compute(tuple(slice(0, n) for n in sweep.shape))
    run = run_of("experts")
    for place, values in (((0, 0), {"ep": 1, "zero_shards": None}), ((1, 2), {"ep": 2, "zero_shards": 2})):
        expected = run.bind(**values, cp_kind="all-gather", overlap_parameters=0.5)
        assert found["time"][(*place, 1, 1)] == expected.value("time")
    path.write_text(STUDY.replace('"none"\n', '"some"\n'), encoding="utf-8")
    with pytest.raises(InputError, match="plan: expert_tp: found 'some', expected a whole number"):
        load(path)


def test_an_axis_is_refused_as_a_plan_is() -> None:
    """One line that names the axis; a derived value may not choose the closed form."""
    run = run_of("experts")
    for axes, message in (
        ({"zero_shards": [0, 2]}, "axis zero_shards: found 0, expected a whole number from 1"),
        ({"zero_shards": [None, None]}, "axis zero_shards: None comes twice"),
        ({"node_limit": ["two"]}, "axis node_limit: found 'two', expected a whole number"),
        (
            {"cp_kind": ["rings"]},
            "axis cp_kind: found 'rings', expected ring or .*; did you mean ring",
        ),
        ({"overlap_ep": [2]}, "axis overlap_ep: found 2, expected a fraction from 0 to 1"),
        ({"precision": ["bf16", "int8"]}, "axis precision: found 'int8', expected bf16 or fp16 or fp8 or fp4"),
        ({"tp": [1, 2], "cp": "tp"}, "derived cp: whether it is above 1 changes the closed form"),
        (
            {"dp": [8, 16], "a": "expert_tp * 2", "tp": "dp / 8", "where": ["a > 1"]},
            "derived a: reads expert_tp, which follows from tp, which comes after it",
        ),
    ):
        with pytest.raises(InputError, match=message):
            run.sweep(**axes)  # type: ignore[arg-type]


@every_field
@pytest.mark.parametrize("value", ["x", "", [1], {}, 1.5, -1, math.nan, np.array([1, 2]), b"1"], ids=repr)
def test_odd_values_are_one_line_that_names_the_field(field: Field, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{field.name}: found .*, expected .*$"):
        sf.Plan(**{field.name: value})


@every_field
def test_every_field_has_a_flag(field: Field) -> None:
    """With its sentence, its default and its values: each value of the flag is a value of the field."""
    _, verbs = build()
    for verb in ("train", "infer", "serve", "allocate"):
        if field.adapters and verb in ("infer", "serve"):  # adapters of requests have flags of their own
            continue
        (action,) = (each for each in verbs[verb]._actions if each.dest == field.name)
        assert action.default == field.default
        assert str(action.help).startswith(field.sentence)
        assert f"--{field.name.replace('_', '-')}" in action.option_strings
    for value in some_values(field):
        if value is not None and not isinstance(value, bool):
            text = [*["x", "-s", "y", "--batch", "1"], f"--{field.name.replace('_', '-')}", str(value)]
            assert getattr(verbs["train"].parse_args(text), field.name) == value


@every_field
def test_every_field_is_documented(field: Field) -> None:
    """In the docstring of a plan, and with its values in the page on sweeps."""
    assert f"{field.name}: {field.sentence}." in str(sf.Plan.__doc__)
    page = Path(__file__).parents[2] / "docs" / "sweeps.md"
    assert f"| `{field.name}` | {field.values} | {field.cells} |" in page.read_text(encoding="utf-8").splitlines()


def test_rules_read_every_whole_number_of_a_plan_and_have_names_of_their_own() -> None:
    read = set().union(*(rule.tree.names() for rule in RULES))
    limits = {"node_limit", "vocab_multiple"}  # any limit runs, and a table of words is padded to any multiple
    served = {name for name, field in NUMBERS.items() if not field.trained}  # `infer.parallel_rules` has theirs
    assert {name for name, field in NUMBERS.items() if field.whole} - read == limits | served
    names = [rule.name for rule in (*CHOICE_RULES, *RULES)]
    assert len(set(names)) == len(names)
    assert IMPOSSIBLE not in names


def test_a_search_counts_choices_by_rule(capsys: pytest.CaptureFixture[str]) -> None:
    """What does not go together has the name of its rule, as in a sweep."""
    line = ["search", "gpt2", "-s", "h100-sxm", "--devices", "8", "--batch", "16", "--sequence", "512", "--json"]
    assert main([*line, "--require", "zero=0,2", "--require", "schedule=1f1b,zero-bubble"]) == 0
    rejected = json.loads(capsys.readouterr().out)["rejected"]
    assert rejected["schedule_needs_whole_gradients_and_weights"] > 0
    assert IMPOSSIBLE not in rejected


OPEN = [name for name, field in FIELDS.items() if field.form == "given" and field.unset == "1"]


@pytest.mark.parametrize("name", OPEN)
def test_an_expression_reads_no_field_that_is_left_open(name: str) -> None:
    """Open it means all replicas, layers or domains, and no number: a comparison with one would answer in silence."""
    run = run_of(next(iter(RUNS)))
    for axes in ({"zero": [1]}, {name: [None, 2]}):
        with pytest.raises(InputError, match=f"^{name}: is left open, and an expression reads it"):
            run.sweep(where=[f"{name} == 2"], outputs="time", **axes)
    assert len(OPEN) > 3


def test_numbers_beyond_floats_and_names_that_are_words_of_the_language_are_refused() -> None:
    """One line each."""
    with pytest.raises(InputError, match="overlap_tp: found 1000"):
        sf.Plan(overlap_tp=10**400)
    run = run_of(next(iter(RUNS)))
    for axes in ({"if": [1, 2], "tp": "if"}, {"lambda": [1, 2], "tp": "lambda"}):
        with pytest.raises(InputError, match="expected a plain name"):
            run.sweep(outputs="time", **axes)
    with pytest.raises(InputError, match="where: found None"):
        run.sweep(tp=[1, 2], where=None)
    with pytest.raises(InputError, match=r"found '\\xa0' at column 3"):
        run.sweep(tp=[1, 2], where=["tp\xa0+dp>1"])

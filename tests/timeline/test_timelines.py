"""Timelines: what they draw takes the time that is predicted, and viewers can show it."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import some

import symperf as sf
from symperf.common.errors import InputError
from symperf.timeline import training
from symperf.timeline.inference import inference_timeline
from symperf.timeline.serving import serving_timeline
from symperf.timeline.slices import Drawn, Piece, Template, cut, template
from symperf.timeline.training import training_timeline

if TYPE_CHECKING:
    from pathlib import Path

    from symperf.timeline.chrome import Timeline

NANO = 1.1e-9
"""Seconds to which times in a file are kept."""
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "1f1b": ("llama-2-7b", {"pp": 4, "tp": 2, "dp": 2, "zero": 1}),
    "gpipe": ("llama-2-7b", {"pp": 4, "tp": 2, "dp": 2, "schedule": "gpipe", "recompute": "full"}),
    "interleaved": ("llama-2-7b", {"pp": 4, "dp": 4, "vpp": 2, "schedule": "interleaved"}),
    "zero-bubble": ("llama-2-7b", {"pp": 4, "dp": 4, "schedule": "zero-bubble", "zero": 1}),
    "zb-h2": ("llama-2-7b", {"pp": 4, "dp": 4, "schedule": "zb-h2"}),
    "zero-bubble-2p": ("llama-2-7b", {"pp": 4, "dp": 4, "schedule": "zero-bubble-2p"}),
    "dualpipe": ("llama-2-7b", {"pp": 4, "dp": 4, "schedule": "dualpipe"}),
    "sharded": ("llama-2-7b", {"dp": 8, "zero": 3}),
    "sharded, updated by the host": ("llama-2-7b", {"dp": 8, "zero": 3, "offload": "optimizer"}),
    "gradients of the host": ("llama-2-7b", {"dp": 8, "zero": 1, "offload": "gradients,optimizer"}),
    "uneven experts": ("deepseek-v2-lite", {"pp": 4, "dp": 4, "ep": 4, "uneven_stages": True}),
    "ring in fp8": ("llama-2-7b", {"pp": 2, "cp": 4, "dp": 2, "precision": "fp8", "offload": "optimizer"}),
}
SKEWED = ("zb-h2", "zero-bubble-2p")


def slices_of(timeline: Timeline) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The slices of a file in whole nanoseconds, and what it says of itself."""
    data = json.loads("".join(timeline.text()))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in data["traceEvents"] if e["name"] == "thread_name"}
    found = []
    for event in data["traceEvents"]:
        assert {"name", "ph", "ts", "pid", "tid"} <= set(event)
        assert event["ph"] in "XM"
        if event["ph"] == "X":
            start, duration = (round(event[key] * 1000) for key in ("ts", "dur"))
            assert start >= 0 < duration
            found.append(event | {"start": start, "end": start + duration, "track": names[event["pid"], event["tid"]]})
    assert {e["pid"] for e in data["traceEvents"] if e["name"] == "process_name"} == {e["pid"] for e in found}
    return found, data["otherData"]


def assert_nested(slices: list[dict[str, Any]]) -> None:
    """On each thread a slice lies inside of another or behind it, as Perfetto requires."""
    threads: dict[Any, list[dict[str, Any]]] = {}
    for each in slices:
        threads.setdefault((each["pid"], each["tid"]), []).append(each)
    for thread in threads.values():
        outer: list[int] = []
        for each in sorted(thread, key=lambda one: (one["start"], -one["end"])):
            while outer and outer[-1] <= each["start"]:
                outer.pop()
            assert not outer or each["end"] <= outer[-1], each
            outer.append(each["end"])


@cache
def step(name: str) -> sf.Run:
    """A step of few layers."""
    model, plan = PLANS[name]
    sizes = {"num_layers": 8} if model == "llama-2-7b" else {}
    return sf.training(model, "h100-sxm", sf.Plan(**plan), batch=32, sequence=4096, **sizes)


@pytest.mark.parametrize("name", some(PLANS, 0.5))
def test_a_step_ends_when_it_is_predicted_to(name: str) -> None:
    """The last slice of a trace; without a barrier each stage's own step. And no slices cross."""
    run = step(name)
    slices, about = slices_of(training_timeline(run))
    assert_nested(slices)
    whole = [each for each in slices if each["track"] == "step"]
    assert len(whole) == run.plan.pp
    for each in whole:
        assert (each["end"] - each["start"]) / 1e9 == pytest.approx(run.value("time"), abs=NANO)
        own = [one["end"] for one in slices if one["pid"] == each["pid"] and one["track"] == "compute"]
        assert max(own) == each["end"]
    if name not in SKEWED:
        assert max(each["end"] for each in slices) / 1e9 == pytest.approx(run.value("time"), abs=NANO)
    assert about["step_s"] == run.value("time")
    assert 0.97 < about["drawn_scale"] <= 1
    assert about["waited_for_closed_form_s"] < 0.06 * run.value("time")


@pytest.mark.parametrize("name", ["1f1b", "sharded", "uneven experts"])
def test_the_slices_of_a_pass_fill_it(name: str) -> None:
    """What its operations cover on any thread, told apart by time alone, is the pass."""
    slices, _ = slices_of(training_timeline(step(name)))
    passes = [each for each in slices if each["name"].startswith(("forward ", "backward "))]
    assert len(passes) == 2 * len({each["args"]["micro_batch"][0] for each in passes}) * step(name).plan.pp
    operations = [each for each in slices if "formula" in each.get("args", {})]
    for one in passes[:2] + passes[-2:]:
        inside = [
            e for e in operations if e["pid"] == one["pid"] and e["end"] > one["start"] and e["start"] < one["end"]
        ]
        reached = one["start"]
        for each in sorted(inside, key=lambda one: one["start"]):
            assert each["start"] <= reached + 2 * len(inside)
            reached = max(reached, each["end"])
        assert reached >= one["end"] - 2 * len(inside)


def test_slices_tell_what_the_breakdown_tells() -> None:
    """Executions, FLOPs and bytes of an operation summed over a stage's step, and what bounds it."""
    run = step("gpipe")
    slices, _ = slices_of(training_timeline(run))
    rows = {row.name: row for row in run.table()}
    for name in ("layer/mlp/up/forward", "layer/attention/flash/backward", "layer/attention/output/reduce/forward"):
        if name not in rows:
            continue
        own = [each["args"] for each in slices if each["name"] == name and each["pid"] == 1]
        assert sum(each["executions"] for each in own) == pytest.approx(rows[name].count)
        assert sum(each["flops"] for each in own) == pytest.approx(rows[name].flops)
        moved = sum(each["memory_bytes"] + each["message_bytes"] for each in own)
        assert moved == pytest.approx(rows[name].bytes)
        assert {each["bound"] for each in own} == {rows[name].bound}
        assert own[0]["seconds_each"] == pytest.approx(rows[name].each_s)
    up = next(each["args"] for each in slices if each["name"] == "layer/mlp/up/forward")
    assert "tiled_matmul_time" in up["formula"]


def test_the_host_has_a_thread_of_its_own() -> None:
    """Its launches and calls begin with the work that waits for them, and no kernel has to leave its thread."""
    model, plan = PLANS["interleaved"]
    slow = {"host_latency": 1e-4, "host_collective_latency": 1e-4}
    run = sf.training(
        model, "h100-sxm", sf.Plan(**plan | {"tp": 2, "dp": 2}), batch=32, sequence=4096, num_layers=8, **slow
    )
    slices, _ = slices_of(training_timeline(run))
    assert_nested(slices)
    tracks = {each["track"] for each in slices}
    assert {"host launches", "compute", "tensor"} <= tracks
    assert "compute 2" not in tracks
    assert {each["track"] for each in slices if each["name"].startswith("host/")} == {"host launches"}


def test_passes_run_in_the_order_of_the_data() -> None:
    """A forward pass begins after that of the stage before, a backward pass after that of the stage behind."""
    slices, _ = slices_of(training_timeline(step("1f1b")))
    at = {(each["name"], each["pid"]): each for each in slices if " " in each["name"]}
    for k in range(1, 5):
        for stage in range(3):
            assert at[f"forward {k}", stage]["end"] <= at[f"forward {k}", stage + 1]["start"]
            assert at[f"backward {k}", stage + 1]["end"] <= at[f"backward {k}", stage]["start"]


def test_many_slices_are_joined_and_too_many_passes_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers first, then operations; the step stays as long."""
    run = step("1f1b")
    for limits, detail in ((("MOST_LAYERED",), "operations"), (("MOST_LAYERED", "MOST_SLICES"), "passes")):
        with monkeypatch.context() as patch:
            for name in limits:
                patch.setattr(training, name, 10)
            slices, about = slices_of(training_timeline(run))
            assert about["detail"] == detail
            assert_nested(slices)
            assert max(each["end"] for each in slices) / 1e9 == pytest.approx(run.value("time"), abs=NANO)
    monkeypatch.setattr(training, "MOST_PASSES", 10)
    with pytest.raises(InputError, match=r"timeline: found 16 micro-batches on 4 stages, expected 10 passes"):
        training_timeline(run)


@pytest.mark.parametrize(
    ("model", "plan"),
    [("llama-2-7b", {"tp": 2}), ("llama-2-7b", {"pp": 2, "dp": 2}), ("deepseek-v2-lite", {"pp": 3, "ep": 1})],
)
def test_an_inference_ends_when_it_is_predicted_to(model: str, plan: dict[str, Any]) -> None:
    """Prefill and every decode step, also where stages have other layers."""
    run = sf.inference(model, "h100-sxm", sf.Plan(**plan), batch=6, prompt=200, generate=6)
    slices, about = slices_of(inference_timeline(run))
    assert_nested(slices)
    assert max(each["end"] for each in slices) / 1e9 == pytest.approx(run.value("time"), abs=NANO)
    assert about["prefill_s"] == run.value("prefill")
    steps = {each["args"]["step"] for each in slices if each["name"] == "decode"}
    assert steps == set(range(1, 6))
    prefills = [each for each in slices if each["name"] == "prefill"]
    assert max(each["end"] for each in prefills) / 1e9 <= run.value("prefill") + NANO
    if plan == {"tp": 2}:
        taken = sum(each["end"] - each["start"] for each in slices if each["name"] == "decode")
        assert taken / 1e9 == pytest.approx(run.value("decode"), rel=1e-6)


def test_an_iteration_of_serving_takes_its_time() -> None:
    """One that decodes and one that prefills too, at the load of the answer."""
    request = {"prompt": 512, "generate": 64}
    served = sf.serving("llama-2-7b", "h100-sxm", sf.Plan(pp=2), load=2.0, **request)
    slices, about = slices_of(serving_timeline(served))
    assert_nested(slices)
    whole = (about["decode_s"] + about["mixed_s"]) * 1e9
    assert max(each["end"] for each in slices) == pytest.approx(whole, abs=2)
    state = served.answer.state
    assert state is not None
    assert about["decode_s"] == pytest.approx(state.decode, rel=0.05)
    overloaded = sf.serving("llama-2-7b", "h100-sxm", sf.Plan(pp=2), load=1e6, **request)
    with pytest.raises(InputError, match="no steady state"):
        serving_timeline(overloaded)


def test_the_command_line_writes_a_whole_file_or_none(call: Any, refused: Any, tmp_path: Path) -> None:
    """In place of what was there, under both names of the flag; and what cannot be written is refused at once."""
    train = ["train", "llama-2-7b", "-s", "h100-sxm", "--batch", "2", "--sequence", "512"]
    path = tmp_path / "step.json"
    path.write_text("old", encoding="utf-8")
    for flag in ("--trace", "--timeline"):
        assert call([*train, flag, str(path)]).code == 0
        assert json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    infer = ["infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "1", "--prompt", "64", "--generate", "2"]
    assert call([*infer, "--trace", str(path), "--json"]).code == 0
    assert json.loads(path.read_text(encoding="utf-8"))["otherData"]["decode_s"] > 0
    assert [each.name for each in tmp_path.iterdir()] == ["step.json"]
    assert "--timeline" in refused([*train, "--trace", str(tmp_path / "none" / "step.json")])
    serve = ["serve", "llama-2-7b", "-s", "h100-sxm", "--prompt", "512", "--generate", "64"]
    assert call([*serve, "--load", "2", "--timeline", str(path)]).code == 0
    assert json.loads(path.read_text(encoding="utf-8"))["otherData"]["mixed_s"] > 0
    over = call([*serve, "--load", "1e6", "--timeline", str(path)])
    assert (over.code, over.err.count("\n")) == (1, 1)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.sampled_from("ab")), max_size=12), st.integers(0, 95)
)
def test_slices_never_cross_and_lose_nothing(spans: list[tuple[int, int, str]], at: int) -> None:
    """What would cross another on its track gets a track beside; a cut keeps the lengths."""
    from symperf.timeline.slices import Slice

    drawn = Drawn.__new__(Drawn)
    drawn.slices = [Slice(a * 1e-6, (a + b) * 1e-6, track, "x") for a, b, track in spans]
    drawn.end = 100e-6
    made = template("pass", drawn)
    assert sum(each.end - each.start for each in made.pieces) == sum(1000 * b for _, b, _ in spans)
    events = [{"pid": 0, "tid": each.track, "start": each.start, "end": each.end} for each in made.pieces]
    assert_nested(events)
    before, behind = cut(made, 1000 * at)
    assert before.duration + behind.duration == made.duration
    parts = [each for half in (before, behind) for each in half.pieces]
    assert sum(each.end - each.start for each in parts) == sum(each.end - each.start for each in made.pieces)


def test_a_template_is_in_whole_nanoseconds() -> None:
    """So that a pass and what is inside of it end at the same moment."""
    piece = Piece(0, 10, "compute", "x", None, 1.0)
    assert cut(Template("p", 10, (piece,)), 4) == (
        Template("p", 4, (piece._replace(end=4),)),
        Template("p", 6, (piece._replace(end=6),)),
    )

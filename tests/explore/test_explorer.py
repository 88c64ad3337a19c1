"""The explorer: what its page holds, and that its JavaScript gives Python's numbers and refusals."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support.explored import MODEL, SYSTEM, check_answer, data, draw, of_command, run_or_refusal
from support.tools import tool

import symperf as sf
from symperf.cli.explore import name_systems
from symperf.common.errors import InputError
from symperf.explore import inference
from symperf.explore import serving as serving_of_pages
from symperf.explore.explorer import Explorer, parse_book, parse_varied
from symperf.explore.page import STATIC, page
from symperf.explore.passes import pass_program
from symperf.explore.training import VARIED
from symperf.runs.training_run import Run
from symperf.systems.system import catalogue_names
from symperf.timeline.training import training_timeline
from symperf.train.compile import compile_step
from symperf.train.memory.memory_tables import stage_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANY = 15
"""Settings of each kind of run; the browser is asked for more."""
SCRIPT = """
import { readFileSync } from "node:fs";
import { answer, readKinds, startOf } from "./model.js";
import { commandLine, pythonCode } from "./state.js";
const kinds = readKinds(JSON.parse(readFileSync("data.json", "utf8")));
const found = JSON.parse(readFileSync("asked.json", "utf8")).map(({ kind, choices, numbers }) => {
  const config = { kind, choices: { ...startOf(kinds[kind]).choices, ...choices }, numbers };
  const told = answer(kinds[kind], config);
  if (told.reason) return { reason: told.reason };
  const { need } = told.memory;
  return { time: told.value("time"), need, joules: told.joules, dollars: told.dollars, shares: told.shares,
    command: commandLine(kinds[kind], config), python: pythonCode(kinds[kind], config),
    rows: told.rows.map(({ path, seconds, bound, flops }) => [path, seconds, bound, flops]) };
});
console.log(JSON.stringify(found));
"""


def _node(folder: Path, script: str, data: dict[str, Any]) -> Any:
    """What a script prints that has the page's modules and some data beside it."""
    for path in STATIC.glob("*.js"):
        shutil.copy(path, folder)
    texts = {"package.json": '{"type": "module"}', "test.js": script}
    for name, text in (texts | {f"{name}.json": json.dumps(each) for name, each in data.items()}).items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [tool("node", "nodejs"), "test.js"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_javascript_gives_the_numbers_and_the_refusals_of_python(tmp_path: Path) -> None:
    """At settings drawn at random: time, memory, joules, dollars, shares and the breakdown, or the same line."""
    rng, known = random.Random(26), data()
    asked = [(kind, draw(kind, rng)) for _ in range(MANY) for kind in known["kinds"]]
    answers = _node(tmp_path, SCRIPT, {"data": known, "asked": [each for _, each in asked]})
    answered = 0
    for (kind, each), found in zip(asked, answers, strict=True):
        run, refusal = run_or_refusal(kind, each)
        assert found.get("reason") == refusal, each
        if run is None:
            continue
        answered += 1
        check_answer(found, run, "need")
        assert of_command(found["command"]).value("time") == run.value("time")
        assert compile(found["python"], "python", "exec")
        for name, share in run.shares().items():
            assert found["shares"].get(name, 0.0) == pytest.approx(share, abs=1e-12)
        for row, (path, seconds, bound, flops) in zip(run.table(), found["rows"], strict=True):
            assert path == row.name
            assert seconds == pytest.approx(row.time_s, rel=1e-9, abs=1e-12 * run.value("time"))
            assert bound == row.bound
            assert flops * row.count == pytest.approx(row.flops, rel=1e-12)
    assert answered >= MANY / 2


GRID = """
import { readFileSync } from "node:fs";
import { answer, inputsOf, readKinds, startOf } from "./model.js";
import { axisValues, placesMovedBy } from "./phase.js";
import { forward, gridSource, part } from "./tape.js";
const kinds = readKinds(JSON.parse(readFileSync("data.json", "utf8")));
let worst = 0;
for (const kind of Object.values(kinds)) {
  const config = startOf(kind), found = inputsOf(kind, config), { outputs } = kind.structures[found.structure];
  const named = (name) => kind.numbers.find((number) => number.name === name);
  for (const pair of [["memory_bandwidth", "matrix_rate"], ["batch", "launch_latency"], ["dp", "vector_rate"]]) {
    const [x, y] = pair.map(named), [xs, ys] = [axisValues({ ...x, high: x.low * 9 }, 5), axisValues(y, 7)];
    const tape = part(kind.tape, [outputs.get("time")]), values = forward(tape, found.values);
    const places = [x, y].map((number) => new Set(placesMovedBy(kind, config, number)));
    const [times] = (0, eval)(gridSource(tape, values, ...places, [tape.place[outputs.get("time")]]))(xs, ys);
    for (let k = 0; k < times.length; k += 1) {
      const numbers = { [x.name]: xs[k % 5], [y.name]: ys[Math.floor(k / 5)] };
      const told = answer(kind, { ...config, numbers }, { terms: false });
      if (!told.reason) worst = Math.max(worst, Math.abs(times[k] / told.value("time") - 1));
    }
  }
}
console.log(worst);
"""


def test_a_map_is_the_points_that_it_is_made_of(tmp_path: Path) -> None:
    """The source that is written for a grid gives the times of single points."""
    assert _node(tmp_path, GRID, {"data": data()}) < 1e-12


STATE = """
import { readFileSync } from "node:fs";
import { answer, readKinds } from "./model.js";
import { State, valueOf } from "./state.js";
const kinds = readKinds(JSON.parse(readFileSync("data.json", "utf8")));
const made = (address) => { const state = new State(kinds, () => {}); state.read(address); return state; };
const bandwidth = ({ kind, config }) => [valueOf(kind, config, "memory_bandwidth"), answer(kind, config).value("time")];
const state = made("a=infer"), name = "memory_bandwidth";
const found = { first: bandwidth(state) };
state.choose("system", kinds.infer.choices[1].values[1]);
found.second = bandwidth(state);
state.move(name, found.first[0]);
found.moved = bandwidth(state);
found.linked = bandwidth(made(state.address()));
state.move(name, found.second[0]);
found.back = Object.keys(state.config.numbers);
const two = made("a=infer&b=infer&b.batch=16&slot=b");
found.two = valueOf(two.kind, two.config, "batch");
two.read("a=infer&a.batch=32");
found.one = [two.now.b, valueOf(two.kind, two.config, "batch")];
console.log(JSON.stringify(found));
"""


def test_a_page_is_in_the_state_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure also has the value of the first system, by a slider and by a link; back at its own it is not moved."""
    monkeypatch.setattr(inference, "DEGREES", dict.fromkeys(inference.DEGREES, (1,)))
    systems = [sf.System.load(name) for name in (SYSTEM, "h200-sxm")]
    explorer = Explorer([sf.Model.load(MODEL)], systems, sf.Plan(), kinds=("infer",))
    found = _node(tmp_path, STATE, {"data": explorer.data()})
    own = [system.quantities["memory_bandwidth"].value for system in systems]
    assert own[0] != own[1]
    assert [found[each][0] for each in ("first", "second", "moved", "linked")] == [own[0], own[1], own[0], own[0]]
    assert found["second"][1] < found["moved"][1] == found["linked"][1]
    assert found["back"] == []
    assert found["two"] == 16
    assert found["one"] == [None, 32], "a link of one configuration ends a comparison"


STAGES = """
import { readFileSync } from "node:fs";
import { answer, readKinds, startOf } from "./model.js";
import { stagesOf, timelineOf } from "./stages.js";
const kinds = readKinds(JSON.parse(readFileSync("data.json", "utf8")));
console.log(JSON.stringify(JSON.parse(readFileSync("asked.json", "utf8")).map(({ kind, choices, numbers }) => {
  const config = { kind, choices: { ...startOf(kinds[kind]).choices, ...choices }, numbers };
  const told = answer(kinds[kind], config), stages = stagesOf(kinds[kind], told);
  return { stages, line: timelineOf(kinds[kind], config, told, stages) };
})));
"""


def test_stages_and_the_timeline_are_those_of_python(tmp_path: Path) -> None:
    """Bytes of each stage, and the start and the length of every pass, to the nanosecond."""
    train, _ = data()["kinds"]
    starts = {choice["name"]: choice["start"] for choice in train["choices"]}
    asked = [
        {"kind": "train", "choices": {**starts, **chosen}, "numbers": {"tp": 2, "dp": 2, "batch": 24, **numbers}}
        for chosen, numbers in (
            ({}, {"pp": 4}),
            ({"sequence_parallel": True}, {"pp": 1, "overlap_dp": 1}),
            ({"schedule": "interleaved"}, {"pp": 4, "vpp": 2}),
            ({"schedule": "zero-bubble"}, {"pp": 4, "launch_latency": 2e-5}),
        )
    ]
    for each, found in zip(asked, _node(tmp_path, STAGES, {"data": data(), "asked": asked}), strict=True):
        run, _ = run_or_refusal(train, each)
        assert isinstance(run, Run)
        for told, row in zip(found["stages"], run.stage_memory(), strict=True):
            assert {name: told[f"stage/{name}"] for name in row} == pytest.approx(row, rel=1e-12)
        events = json.loads("".join(training_timeline(run).text()))["traceEvents"]
        for stage, items in enumerate(found["line"]["devices"]):
            passes = [
                (event["ts"] / 1e6, event["dur"] / 1e6, event["args"]["micro_batch"])
                for event in events
                if event["ph"] == "X" and event["pid"] == stage and "micro_batch" in event.get("args", {})
            ]
            assert [[item["batch"] + 1] for item in items] == [each for _, _, each in passes]
            drawn = [number for start, length, _ in passes for number in (start, length)]
            assert [number for item in items for number in (item["start"], item["seconds"])] == pytest.approx(
                drawn, abs=1e-7 * len(passes)
            )


def test_points_of_serving_are_those_of_serving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is the answer for its load; where nothing fits the reason is told."""
    monkeypatch.setattr(serving_of_pages, "PARTS", (0.1, 0.8))
    model, system, plan = sf.Model.load(MODEL), sf.System.load(SYSTEM), sf.Plan(tp=2)
    found = serving_of_pages.serve_points(model, system, plan, (512, 128), {})
    for load, *point in found["points"]:
        answer = sf.serving(model, system, plan, prompt=512, generate=128, load=load).answer
        assert answer is not None
        assert point == pytest.approx(
            [answer.ttft_s, answer.tpot_s, answer.output_tokens_per_s_per_device, answer.concurrency], rel=1e-9
        )
    large = sf.Model.load("llama-3.1-405b")
    assert "fits in memory" in serving_of_pages.serve_points(large, system, sf.Plan(), (512, 128), {})["reason"]


def test_answers_and_parts_of_memory_tell_their_equations() -> None:
    """Times and every part of memory have an equation or formulas; the book is at an address of the web or a folder."""
    known = data()
    for kind in known["kinds"]:
        for structure in kind["structures"]:
            names = {known["texts"][at] for at in structure["answers"][::3]}
            parts = {known["texts"][at] for at in structure["outputs"][::2] if known["texts"][at].startswith("memory/")}
            assert parts | {"time", "tokens_per_s"} <= names
            for equation, calls in zip(structure["answers"][1::3], structure["answers"][2::3], strict=True):
                assert known["equations"][equation] or kind["calls"][calls]
    assert parse_book("docs/book") == "docs/book/"
    with pytest.raises(InputError, match="--book: found 'javascript:alert"):
        parse_book("javascript:alert(1)")


def test_structures_share_their_instructions() -> None:
    """Six structures of a step have fewer instructions than three and a half of them would have apart."""
    train, _ = data()["kinds"]
    assert len(train["structures"]) == 6
    one = Run(sf.Model.load(MODEL), sf.System.load(SYSTEM), sf.Plan(), batch=1, sequence=1).structure
    alone = len(compile_step(one).program) + len(stage_program(one)) + len(pass_program(one))
    assert len(train["pool"]["operations"]) < 3.5 * alone


def test_a_page_is_small_and_names_no_network() -> None:
    """Under 3 MB with a policy that allows the page's own scripts alone; addresses are of namespaces and a notice."""
    text = page(data())
    assert len(text.encode()) < 3_000_000
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;; script-src &#x27;sha256-")
    assert "unsafe-eval" not in policy[1]
    assert "connect-src" not in policy[1]
    assert not re.search(r"""(?:src|href)=["'](?!data:,|#)""", text.partition("<script type")[0])
    outside = re.sub(r'<script type="application/json" id="data">.*?</script>', "", text)  # sources are told there
    assert set(re.findall(r"https?://[\w./-]+", outside)) <= {
        "http://www.w3.org/1998/Math/MathML",
        "https://github.com/leeoniya/uPlot",
    }


def test_every_operation_tells_its_formulas() -> None:
    """Each operation of each structure has formulas, and each of them an equation and a source."""
    known = data()
    for kind in known["kinds"]:
        for structure in kind["structures"]:
            paths, marks, calls = (structure["terms"][k::4] for k in (0, 2, 3))
            for path, mark, at in zip(paths, marks, calls, strict=True):
                # What a software takes beside its kernels is a figure of its profile.
                assert kind["calls"][at] or mark == 1 or known["texts"][path].endswith("/software")
    for told in known["formulas"].values():
        assert told["source"]
        assert told.get("math") or told.get("lines")


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    """What a folder is called ends no element and begins none."""
    evil = "x\"'><img src=q onerror=alert(1)>&lt;!--"
    folder = tmp_path / evil
    folder.mkdir()
    config = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 128, "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": False, "architectures": ["LlamaForCausalLM"],
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    hostile = {**data(), "models": [sf.Model.load(folder).name, "</script><script>alert(1)</script>"]}
    text = page(hostile)
    assert "<img" not in text
    assert "alert(1)</script>" not in text
    assert text.count("<script") == 4


def test_values_of_a_field_can_be_fewer() -> None:
    """`--vary` offers some values of a field; what is none of them, or no field, is refused with what would do."""
    assert parse_varied(["recompute=full", "sequence-parallel=true"]) == {
        **VARIED,
        "recompute": ("full",),
        "sequence_parallel": (True,),
    }
    for setting, line in {
        "zero=7": "--vary zero: found '7', expected some of 0, 1, 2, 3",
        "recompute=some": "--vary recompute: found 'some', expected some of none, selective, full",
        "tp=2": "--vary: found 'tp=2', expected NAME=VALUE,... of recompute, sequence_parallel, zero, schedule, ",
        "zero": "--vary: found 'zero', expected NAME=VALUE,... of recompute, sequence_parallel, zero, schedule, ",
    }.items():
        with pytest.raises(InputError) as found:
            parse_varied([setting])
        assert str(found.value).startswith(line)


def test_no_sequences_are_refused(refused: Callable[[list[str]], str], tmp_path: Path) -> None:
    """Not taken for the number that is asked for where none is."""
    line = ["explore", MODEL, "-s", SYSTEM, "--only", "infer", "--sequences", "0", "-o", str(tmp_path / "page.html")]
    assert "batch: found 0" in refused(line)


def test_a_model_named_twice_is_refused() -> None:
    """The choices of a page have names of their own."""
    model = sf.Model.load(MODEL)
    with pytest.raises(InputError, match="the model 'llama-2-7b' is named twice"):
        Explorer([model, model], [sf.System.load(SYSTEM)], sf.Plan()).data()


def test_all_systems_are_those_of_the_catalogue() -> None:
    """Each once, those that are named beside it first."""
    found = name_systems(["h200-sxm", "all", "own.toml"])
    assert found[:2] == ["h200-sxm", "own.toml"]
    assert sorted(found[2:]) == [name for name in catalogue_names() if name != "h200-sxm"]
    assert name_systems(["h200-sxm"]) == ["h200-sxm"]

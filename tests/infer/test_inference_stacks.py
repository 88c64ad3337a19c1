"""What software does to attention over a cache and to collectives: laws, and numbers worked out independently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inference_cases import answers
from support.oracle import evaluate

import symperf as sf
from symperf.formulas.kernels import thin_matmul as thin
from symperf.formulas.kernels import tiles
from symperf.formulas.language.symbols import SYMBOLS
from symperf.infer import stack as stacks
from symperf.infer.group_reads import GroupReads
from symperf.infer.profile_table import profile_table
from symperf.infer.stack import Stack
from symperf.validation.inference_definitions import SOFTWARE

if TYPE_CHECKING:
    from pathlib import Path

MASKED, XQA = "tensorrt-llm-0.6", "tensorrt-llm"
"""Software with a pass for each query head, and with one for a group of 8 with heads of 128."""
SPLITTING = """
base = "tensorrt-llm-0.13"
[group_reads]
groups = [8]
head_sizes = [128]
source = "as before kernels were compiled for any group"
"""
"""Software that splits contexts where it pays, with a pass for each query head of other groups."""


def run_of(model: str, system: str, stack: str, *, tp: int = 1, **how: Any) -> Any:
    work: dict[str, Any] = {"batch": 64, "prompt": 512, "generate": 33} | how
    plan = sf.Plan(tp=tp, precision=work.pop("precision", None))
    return sf.inference(sf.Model.load(model), sf.System.load(system), plan, stack=stack, **work)


def seconds(run: Any, name: str, phase: str = "decode") -> float:
    """Seconds of all calls of an operation in a phase."""
    (found,) = [op for op in run.operations() if (op.name, op.phase) == (name, phase)]
    return float(found.time_s)


# --- which query heads share a pass


@pytest.mark.parametrize(
    ("reads", "group", "head_size", "together"),
    [
        (GroupReads(), 29, 64, 29),
        (GroupReads(()), 8, 128, 1),
        (GroupReads((8,), (128,)), 8, 128, 8),
        (GroupReads((8,), (128,)), 8, 64, 1),
        (GroupReads((8,), (128,)), 16, 128, 1),
        (GroupReads((2, 4), (128,), cut=True), 8, 128, 4),
        (GroupReads((2, 4), (128,), cut=True), 6, 128, 2),
        (GroupReads((2, 4), (128,), cut=True), 7, 128, 1),
        (GroupReads((2, 4), (128,), cut=True), 8, 64, 1),
    ],
)
def test_query_heads_of_a_pass(reads: GroupReads, group: int, head_size: int, together: int) -> None:
    assert reads.together(group, head_size) == together


@pytest.mark.parametrize(
    ("model", "stack", "tp", "apart"),
    [
        ("llama-2-7b", MASKED, 1, ()),  # one query head for each key-value head
        ("llama-2-70b", XQA, 1, ()),
        ("llama-2-70b", MASKED, 1, (("num_layers", 1),)),
        ("llama-2-70b", "lmdeploy", 1, (("num_layers", 4),)),
        ("llama-2-70b", XQA, 16, (("num_layers", 1),)),  # keys are copied: 4 query heads a device
        ("falcon-180b", XQA, 4, (("num_layers", 1),)),  # groups of 29
        ("mistral-7b-v0.1", XQA, 1, (("num_layers", 1),)),
        ("llama-2-70b", "vllm", 1, ()),
        ("llama-2-70b", "none", 1, ()),
        ("deepseek-v2-lite", MASKED, 1, ()),  # latents have one pass
    ],
)
def test_which_layers_read_their_keys_several_times(model: str, stack: str, tp: int, apart: Any) -> None:
    assert Stack.load(stack).group_reads.apart(sf.Model.load(model), tp) == apart
    run = run_of(model, "a100-80gb-sxm", stack, tp=tp, batch=1, prompt=8, generate=2)
    assert run.structure.read_apart == apart


def test_kinds_of_layers_with_other_heads_are_judged_by_theirs() -> None:
    model = sf.Model.load("gemma-4-26b-a4b")
    sizes = model.sizes
    local = sizes["num_attention_heads"] // sizes["num_key_value_heads"]
    wide = sizes["num_attention_heads"] // sizes["num_global_key_value_heads"]
    assert local != wide
    assert GroupReads((local,)).apart(model, 1) == (("num_attention_dense_experts_layers", 1),)
    assert GroupReads((wide,)).apart(model, 1) == (("num_local_attention_dense_experts_layers", 1),)


# --- what it costs


@pytest.mark.parametrize(("system", "share"), [("a100-80gb-sxm", 0.429), ("h100-sxm", 0.32), ("h200-sxm", 0.32)])
def test_reads_of_each_query_head_pass_l2(system: str, share: float) -> None:
    run = run_of("llama-3.1-8b", system, MASKED, batch=256)
    values = {name: value for name, (value, _) in run.bound.items()}
    assert values["reread_efficiency"] == share
    key = 2 * 256 * 8 * 128 * 2.0
    bandwidth = values["memory_bandwidth"] * values["memory_efficiency"]
    own = 2 * 256 * 32 * 128 * 2.0 / bandwidth
    each = max(key / bandwidth, 4 * key / (values["l2_bandwidth"] * share))
    start = values["launch_latency"] + values["gap_latency"]
    wanted = 32 * sum(own + context * each + start for context in range(513, 513 + 32))
    assert seconds(run, "layer/attention/flash") == pytest.approx(wanted, rel=1e-9)
    assert run.shares()["l2"] > 0.05


@pytest.mark.parametrize("stack", [pytest.param(SPLITTING, id="splitting"), MASKED, "llama-cpp"])
@pytest.mark.parametrize("batch", [1, 3, 16])
def test_few_sequences_are_the_faster_of_whole_and_split_contexts(stack: str, batch: int, tmp_path: Path) -> None:
    """Fewer key-value heads than units: one of n units brings a whole context, and 4 query heads read it."""
    (profile := tmp_path / "splitting.toml").write_text(SPLITTING, encoding="utf-8")
    named = str(profile) if stack == SPLITTING else stack
    run = run_of("llama-3.1-8b", "a100-80gb-sxm", named, batch=batch, prompt=3000, generate=200)
    v = {name: value for name, (value, _) in run.bound.items()}
    memory, l2 = v["memory_bandwidth"] * v["memory_efficiency"], v["l2_bandwidth"] * v["reread_efficiency"]
    splits = max(1.0, 108 / (batch * 8))
    key, own = 2 * batch * 8 * 128 * 2.0, 2 * batch * 32 * 128 * 2.0
    removed = v["graph_removal"] if batch <= v.get("recorded_tokens", batch) else 0.0
    start = v["launch_latency"] + v["gap_latency"] * (1 - removed)
    work = 4 * batch * 32 * 128 / (v["attention_rate"] * v["attention_efficiency"])
    partial = max(batch, 108 / 8) * 32 * 129 * v["statistic_bytes"]
    written = batch * 32 * 128 * 2.0
    combine = (
        max((partial + written) / memory, 2 * batch * 32 * 128 / (v["vector_rate"] * v["vector_efficiency"])) + start
    )
    wanted = 0.0
    for context in range(3001, 3001 + 199):
        slow = splits * own / memory + context * max(splits * key / memory, max(splits, 4) * key / l2)
        whole = max(splits * context * work, slow)
        parts = (own + partial) / memory + context * max(key / memory, 4 * key / l2)
        split = max(context * work, parts) + combine
        wanted += 32 * ((min(whole, split) if stack == SPLITTING else whole) + start)
    assert seconds(run, "layer/attention/flash") == pytest.approx(wanted, rel=1e-9)


@given(
    st.sampled_from(["a100-80gb-sxm", "h100-sxm", "h200-sxm", "v100-32gb-sxm"]),
    st.sampled_from([MASKED, "fastertransformer", "llama-cpp"]),
    st.sampled_from([1, 2, 16, 256]),
)
def test_more_query_heads_in_a_group_are_never_faster(system: str, stack: str, batch: int) -> None:
    run = run_of("llama-2-70b", system, stack, batch=batch, precision="fp16")
    heads = 8.0 * np.arange(2, 33)
    for output in ("decode", "time", "time_per_token"):
        assert np.all(np.diff(answers(run, num_attention_heads=heads)[output]) > 0)
    shared = run_of("llama-2-70b", system, "none", batch=batch, precision="fp16")
    reread = answers(run, reread_efficiency=np.array([0.1, 0.3, 0.9, 1.0]))["decode"]
    assert np.all(np.diff(np.broadcast_to(reread, (4,))) <= 0)
    assert seconds(run, "layer/attention/flash") >= seconds(shared, "layer/attention/flash")


@given(st.sampled_from([1, 4, 64, 256]), st.sampled_from(["a100-80gb-sxm", "h200-sxm"]), st.sampled_from([1, 2, 8]))
def test_how_keys_are_read_is_no_matter_where_one_pass_serves_the_group(batch: int, system: str, tp: int) -> None:
    run = run_of("llama-2-70b", system, XQA, batch=batch, tp=tp)
    assert "reread_efficiency" not in run.compiled.program.inputs
    masked = run_of("llama-2-70b", system, MASKED, batch=batch, tp=tp)
    assert masked.value("decode") >= run.value("decode")
    assert masked.value("prefill") == run.value("prefill")
    for stack in (XQA, MASKED):  # every query head has keys of its own
        assert run_of("llama-2-7b", system, stack, batch=batch, tp=tp).value("time") == pytest.approx(
            run_of("llama-2-7b", system, XQA, batch=batch, tp=tp).value("time"), rel=1e-12
        )


@pytest.mark.parametrize("system", ["rtx-4090", "tpu-v5e", "mi300x"])
def test_without_an_l2_nothing_is_charged(system: str) -> None:
    run = run_of("llama-2-70b", system, MASKED, batch=8)
    assert run.structure.read_apart == ()
    assert run.value("time") == run_of("llama-2-70b", system, XQA, batch=8).value("time")


# --- collectives of a library


def test_a_collective_takes_at_least_what_its_library_needs() -> None:
    run = run_of("gpt3-175b", "a100-80gb-sxm", "fastertransformer", tp=8, batch=1, prompt=128, generate=9)
    least, _ = run.bound["collective_latency"]
    assert least == 44e-6
    free = run_of(
        "gpt3-175b",
        "a100-80gb-sxm",
        "fastertransformer",
        tp=8,
        batch=1,
        prompt=128,
        generate=9,
        collective_latency=0.0,
    )
    for phase, count in (("prefill", 96), ("decode", 96 * 8)):
        for name in ("layer/attention/reduce", "layer/mlp/reduce"):
            wanted = max(seconds(free, name, phase), count * least)
            assert seconds(run, name, phase) == pytest.approx(wanted, rel=1e-12)
    assert seconds(run, "layer/mlp/reduce") > seconds(free, "layer/mlp/reduce")
    assert sum(run.shares().values()) == pytest.approx(1, rel=1e-12)
    assert run.shares()["scale_up"] > free.shares()["scale_up"]


@given(st.sampled_from(["fastertransformer", XQA, "lmdeploy"]), st.sampled_from([1, 2, 8]), st.sampled_from([1, 64]))
def test_no_least_time_changes_nothing_and_one_device_calls_none(stack: str, tp: int, batch: int) -> None:
    run = run_of("llama-2-7b", "a100-80gb-sxm", stack, tp=tp, batch=batch, collective_latency=0.0)
    found = answers(run, collective_latency=np.array([0.0, 1e-9, 1e-5, 1e-4, 1e-3]))["time"]
    found = np.broadcast_to(found, (5,))
    assert found[0] == pytest.approx(run.value("time"), rel=1e-12)
    assert found[1] == pytest.approx(found[0], rel=1e-12)
    assert np.all(np.diff(found) >= 0)
    assert (found[-1] > found[0]) == (tp > 1 and stack != XQA)
    assert ("collective_latency" in run.compiled.program.inputs) == (stack != XQA)
    messages = [op for op in run.operations() if op.name.endswith("reduce")]
    assert all(op.time_s > 0 for op in messages) == (tp > 1)


# --- products whose weights are narrower


@given(*(st.integers(1, 4096),) * 3, st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([1.0, 2.0]))
def test_l2_bytes_are_those_of_each_factor(rows: int, columns: int, inner: int, right: float, left: float) -> None:
    found = float(tiles.matmul_l2_bytes(rows, columns, inner, 1, left, right, 64, 128))
    assert found == inner * (right * columns * -(-rows // 64) + left * rows * -(-columns // 128))


@given(st.sampled_from([1, 16, 100, 300, 2048]), st.sampled_from([0.25, 0.5, 1.0]))
def test_narrower_weights_are_never_slower_and_pass_l2_as_they_are_stored(rows: int, narrow: float) -> None:
    bound = run_of("llama-2-7b", "a100-80gb-sxm", "none").bound
    values = {SYMBOLS[name].symbol: value for name, (value, _) in bound.items() if name in SYMBOLS}
    values |= {SYMBOLS["flop"].symbol: 1, SYMBOLS["l2_bandwidth"].symbol: 1e11}

    def time(right: float) -> float:
        form = thin.thin_matmul_time(rows, 4096, 4096, 1, 2.0, right, 1.0)
        return float(evaluate(form, values))

    assert time(narrow) < time(2.0)


# --- the files


def test_every_profile_says_where_its_kernels_are_read() -> None:
    assert {"lmdeploy", "llama-cpp", MASKED} <= set(stacks.names())
    for name in stacks.names():
        stack = Stack.load(name)
        assert stack.group_reads.source
        table = profile_table(stacks.CATALOGUE / f"{name}.toml", stacks.CATALOGUE, stacks.KEYS)  # with its base's
        assert {"called", "source"} <= table["collectives"].keys()
        assert set(stack.quantities) == set(stacks.LIMITS)
        assert all(quantity.source for quantity in stack.quantities.values())


def test_a_profile_that_says_nothing_shares_reads_and_calls_no_library(tmp_path: Path) -> None:
    text = (stacks.CATALOGUE / "fastertransformer.toml").read_text(encoding="utf-8")
    tables = [table for table in text.split("\n\n") if not table.startswith(("[group_reads]", "[collectives]"))]
    path = tmp_path / "old.toml"
    path.write_text("\n\n".join(tables), encoding="utf-8")
    stack = Stack.load(path)
    assert stack.group_reads == GroupReads()
    assert not stack.called_collectives


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("groups = [8]", "groups = 8", "group_reads.groups: found 8, expected a list of whole numbers"),
        ("groups = [8]", "groups = [0]", "group_reads.groups: found [0]"),
        ("groups = [8]", "groups = [8.0]", "group_reads.groups: found [8.0]"),
        ("groups = [8]", "groups = [true]", "group_reads.groups: found [True]"),
        ("groups = [8]", 'groups = "all"', "group_reads.groups: found 'all'"),
        ("head_sizes = [128]", "head_size = [128]", "unknown key 'head_size'; did you mean head_sizes?"),
        ("groups = [8]", "groups = [8]\ncut = 1", "group_reads.cut: found 1, expected true or false"),
        ("[group_reads]", "[group_read]", "unknown key 'group_read'; did you mean group_reads"),
        ("called = false", "called = 0", "collectives.called: found 0, expected true or false"),
        ("called = false", "caled = false", "collectives: unknown key 'caled'; did you mean called?"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, before: str, after: str, says: str) -> None:
    text = (stacks.CATALOGUE / f"{XQA}.toml").read_text(encoding="utf-8")
    assert before in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(sf.InputError) as error:
        Stack.load(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("framework", "stack"),
    [
        ("TensorRT-LLM v0.5.0", MASKED),
        ("TensorRT-LLM v0.7.1", MASKED),
        ("TensorRT-LLM v0.8.0", XQA),
        ("TensorRT-LLM v0.9.0", "tensorrt-llm-0.9"),
        ("TensorRT-LLM", XQA),
    ],
)
def test_versions_of_a_framework_have_their_own_profile(framework: str, stack: str) -> None:
    found = next(each for name, each in SOFTWARE.items() if framework.startswith(name))
    assert found.stack == stack

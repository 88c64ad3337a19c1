"""Rows of servers with requests in flight: what each column means, and what is left out with which reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from symperf.serve.pools_in_flight import pools_in_flight
from symperf.validation import serving
from symperf.validation.case import Case, LeftOut
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.score import predict_case
from symperf.validation.serving_definitions import MODELS, OUT_OF_STEP, SCRIPTS, STACKS, SYSTEMS

if TYPE_CHECKING:
    from symperf.validation.serving import ServedRow

ROW = {
    "use": "test",
    "id": "mine_tp2_ep1_1",
    "silicon_data_source": "2026-04-06.csv",
    "backend": "vllm",
    "backend_version": "0.18.0",
    "model_path": "meta-llama/Llama-3.1-70B",
    "system": "h100_sxm",
    "precision": "fp8",
    "mode": "agg",
    "isl": "1024",
    "osl": "1024",
    "batch_size": "16",
    "tp_size": "2",
    "moe_ep_size": "0",
    "silicon_ttft_ms": "100",
    "silicon_tpot_ms": "20",
}


def row(**cells: str) -> TableRow:
    return TableRow("serving.csv", 2, ROW | cells)


def asked(**cells: str) -> ServedRow:
    return serving.asked_of(row(**cells))


def test_lengths_and_requests_are_those_of_the_benchmark() -> None:
    """InferenceX draws lengths from 0.8 times the nominal ones to these, and sends 10 requests for each in flight.

    Others tell lengths as alike: these lose step a little where prompts join iterations that decode, else they keep it.
    """
    found = asked()
    assert (found.prompt, found.generate, found.requests) == (922, 922, 160)
    assert found.prompt * (1 + found.ratio) == pytest.approx(1024, abs=1)
    for software, version, ratio in (("vllm", "0.18.0", OUT_OF_STEP), ("sglang", "0.5.5", 0.0)):
        source = f"aic-auto-gap-analysis/data/h100_sxm/{software}/x.csv"
        alike = asked(silicon_data_source=source, backend=software, backend_version=version)
        assert (alike.prompt, alike.generate, alike.ratio) == (1024, 1024, ratio)


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ({}, "fp8"),
        ({"model_path": "MiniMaxAI/MiniMax-M2.5"}, "fp8-block"),
        ({"model_path": "openai/gpt-oss-120b", "precision": "fp4"}, None),
        ({"model_path": "deepseek-ai/DeepSeek-R1", "precision": "fp4", "system": "b200_sxm"}, None),
        ({"precision": "fp4", "system": "b200_sxm"}, "fp4"),
        ({"model_path": "Qwen/Qwen3-32B", "precision": ""}, None),
        ({"model_path": "Qwen/Qwen3.5-397B-A17B", "precision": "bf16"}, "bf16"),
    ],
)
def test_formats_are_those_of_the_checkpoint(cells: dict[str, str], wanted: str | None) -> None:
    assert asked(**cells).precision == wanted


def test_attention_of_an_nvfp4_checkpoint_has_16_bits() -> None:
    cells = {"model_path": "deepseek-ai/DeepSeek-R1", "precision": "fp4", "system": "b200_sxm", "tp_size": "8"}
    found = serving.serving_of(asked(**cells)).run.stored
    assert "attention" in found.kept
    assert found.plan.precision == "fp4"


@pytest.mark.parametrize(
    ("cells", "degrees"),
    [
        ({}, (2, 1)),
        ({"id": "r1_tp8_ep8_4", "tp_size": "64", "moe_ep_size": "8"}, (8, 8)),
        ({"id": "r1_tp4_0_ep4_1_3", "tp_size": "4", "moe_ep_size": "4"}, (4, 4)),
    ],
)
def test_degrees_are_those_that_the_server_was_given(cells: dict[str, str], degrees: tuple[int, int]) -> None:
    found = asked(**cells)
    assert (found.tp, found.ep) == degrees


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"use": "calibration"}, "use = calibration"),
        ({"mode": "disagg"}, "how many instances"),
        ({"mode": "disagg", "prefill_num_workers": "1", "decode_num_workers": "2", "batch_size": ""}, "in flight"),
        ({"tp_size": "36"}, "several engines"),
        ({"tp_size": "8", "attention_dp_size": "4"}, "expected devices told twice"),
        ({"batch_size": ""}, "requests in flight"),
        ({"model_path": "openai/gpt-oss-120b", "precision": "fp4", "batch_size": "512"}, "a bound of the client"),
        ({"model_path": "a/b"}, "model_path: found 'a/b'"),
        ({"backend": "tgi"}, "backend: found 'tgi'"),
        ({"system": "l40s"}, "system: found 'l40s'"),
        ({"precision": "fp6"}, "precision: found 'fp6'"),
    ],
)
def test_what_cannot_be_read_is_left_out_with_its_reason(cells: dict[str, str], reason: str) -> None:
    found = serving.express(row(**cells))
    assert [item.source for item in found] == list(serving.SOURCES.values())
    assert all(isinstance(item, LeftOut) and reason in item.reason for item in found)


def test_a_row_is_two_cases_that_are_predicted() -> None:
    found = serving.express(row(model_path="meta-llama/Llama-3.1-8B-Instruct", tp_size="1", id="x_tp1_ep1_1"))
    assert [item.quantity for item in found if isinstance(item, Case)] == ["prefill_s", "time_per_token_s"]
    first, later = (predict_case(item) for item in found if isinstance(item, Case))
    assert not isinstance(first, LeftOut)
    assert not isinstance(later, LeftOut)
    assert first.measured == pytest.approx(0.1)
    assert 0.5e-3 < later.predicted < first.predicted < 10
    assert first.low is not None
    assert first.low < first.predicted


def test_a_poll_is_a_wait_before_the_first_token_only() -> None:
    """TensorRT-LLM's batch_wait_timeout_iters of 20 for 1k in and 1k out, and of none for other lengths."""
    cells = {"backend": "trtllm", "system": "h200_sxm"}
    told = asked(**cells)
    assert told.script.polls == ((0, 20.0),)
    assert asked(**cells, osl="8192").script.polls == ()
    run, (first, later) = serving.loop_of(told), serving.times_of(told)
    assert first == pytest.approx(run.first_token + 20 * later)


def test_rows_of_a_configuration_with_drafts_are_predicted_with_them() -> None:
    """Those of the day on which InferenceX's configuration with drafts came; the same server without is another row."""
    cells = {"backend": "trtllm", "backend_version": "1.1.0rc2.post2", "model_path": "deepseek-ai/DeepSeek-R1"}
    cells |= {"system": "h200_sxm", "tp_size": "8", "moe_ep_size": "8", "id": "r1_tp8_ep8_1"}
    drafting = asked(**cells, silicon_data_source="2026-04-06.csv; measured=2026-01-14")
    plain = asked(**cells, silicon_data_source="2026-04-06.csv; measured=2026-01-28")
    assert (drafting.script.drafts, plain.script.drafts) == (3, 0)
    run, later = serving.loop_of(drafting), serving.times_of(drafting)[1]
    assert later == pytest.approx(run.state.iteration / (1 + 0.65 + 0.65**2 + 0.65**3))
    assert run.state.iteration > serving.times_of(plain)[1] > later


def test_replicas_of_attention_are_as_many_as_there_are_devices() -> None:
    """InferenceX's tp and dp-attn true: its scripts start as many replicas as there are devices, each with all heads.

    The rows tell the devices twice, and the requests in flight of one replica; others' rows are taken by their words.
    """
    cells = {"model_path": "MiniMaxAI/MiniMax-M2.5", "attention_dp_size": "4", "tp_size": "4", "moe_ep_size": "16"}
    cells |= {"system": "b300_sxm", "precision": "fp4", "backend_version": "0.19.0", "batch_size": "16"}
    found = asked(**cells, silicon_data_source="db-dump; concurrency=64; measured=2026-04-21")
    assert (found.tp, found.replicas, found.ep, found.concurrency) == (1, 4, 4, 64)
    assert serving.serving_of(found).lockstep_ranks == 4
    other = asked(**cells, silicon_data_source="aic-auto-gap-analysis/data/x.csv")
    assert (other.tp, other.replicas, other.ep, other.concurrency) == (4, 4, 16, 64)
    group = asked(**cells | {"model_path": "moonshotai/Kimi-K2.5", "system": "b200_sxm"})
    assert (group.tp, group.replicas, group.ep, group.concurrency) == (4, 1, 1, 64)


def test_two_pools_have_as_many_instances_as_workers() -> None:
    """Little's law holds over both pools, and a second instance that decodes makes later tokens faster."""
    cells = {"mode": "disagg", "backend": "sglang", "batch_size": "", "tp_size": "", "moe_ep_size": "", "id": "x"}
    cells |= {"model_path": "Qwen/Qwen3-32B", "silicon_data_source": "db-dump; concurrency=32", "osl": "256"}
    cells |= {"prefill_num_workers": "1", "prefill_tp_size": "1", "decode_num_workers": "1", "decode_tp_size": "2"}
    one, two = asked(**cells), asked(**cells | {"decode_num_workers": "2"})
    assert one.prefill == serving.Layout(1, 1, 1)
    assert (one.tp, one.replicas, two.replicas, one.concurrency) == (2, 1, 2, 32)
    pools = serving.pools_of(one)
    found = pools_in_flight(pools, 32)
    assert found is not None
    assert found.load * (found.first_token + (one.generate - 1) * found.token) == pytest.approx(32, rel=1e-3)
    assert serving.times_of(two)[1] < serving.times_of(one)[1]
    cases = serving.express(row(**cells))
    assert all(isinstance(item, Case) for item in cases)


def test_every_row_that_comes_with_symperf_is_read() -> None:
    rows = read(PACKAGED / "serving.csv", serving.COLUMNS)
    assert len(rows) == 1848
    assert Counter(one.text("use") for one in rows) == {"test": 1294, "calibration": 554}
    assert {one.text("model_path") for one in rows} == set(MODELS)
    assert {one.text("system") for one in rows} == set(SYSTEMS)
    assert {one.text("backend") for one in rows} == set(STACKS)
    assert all(len(serving.express(one)) == 2 for one in rows)


def test_every_script_starts_the_server_of_a_row() -> None:
    rows = read(PACKAGED / "serving.csv", serving.COLUMNS)
    assert {serving.known.script_of(one, MODELS[one.text("model_path")]) for one in rows} >= set(SCRIPTS)

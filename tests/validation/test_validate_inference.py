"""Rows of inference: what they are taken to mean, what is left out and why, and what is refused."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from symperf import Model, Plan, System, inference, serving
from symperf.common.errors import InputError
from symperf.validation import inference as expressed
from symperf.validation import inference_memory, tables
from symperf.validation.case import Case, LeftOut
from symperf.validation.documents import filled
from symperf.validation.inference_definitions import BERT_TOKENS, METRICS, SOFTWARE, micro_batch_of, software_of
from symperf.validation.inference_formats import GGUF, Q4_K, Q4_K_M_SIX, Q6_K
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.score import cases, predict_case

if TYPE_CHECKING:
    from symperf.serve.serving import Serving

ROW = {
    "id": "MINE-1",
    "model": "llama-2-7b",
    "hw_key": "a100-80gb-sxm",
    "tp": "1",
    "precision": "fp16",
    "batch_size": "4",
    "input_len_tokens": "128",
    "output_len_tokens": "16",
    "metric": "request_latency",
    "value": "250",
    "unit": "ms",
    "framework": "TensorRT-LLM v0.9.0",
}


def row(**cells: str) -> TableRow:
    return TableRow("inference.csv", 2, ROW | cells)


def case(**cells: str) -> Case:
    (found,) = expressed.express(row(**cells))
    assert isinstance(found, Case)
    return found


def value(found: Case) -> float:
    return found.read(found.run())


def run(**work: Any) -> Any:
    work = {"batch": 4, "prompt": 128, "generate": 16} | work
    plan = Plan(precision="fp16", tp=work.pop("tp", 1))
    return inference(Model.load("llama-2-7b"), System.load("a100-80gb-sxm"), plan, stack="tensorrt-llm-0.9", **work)


@pytest.mark.parametrize(
    ("cells", "quantity", "measured", "wanted"),
    [
        ({}, "time_s", 0.25, "time"),
        ({"metric": "latency", "unit": "s", "value": "0.5"}, "time_s", 0.5, "time"),
        ({"metric": "first_token_latency"}, "prefill_s", 0.25, "prefill"),
        ({"metric": "inter_token_latency", "unit": "us", "value": "9000"}, "time_per_token_s", 0.009, "time_per_token"),
        ({"metric": "output_throughput", "unit": "tokens/s"}, "tokens_per_s", 250, "tokens_per_s"),
        (
            {"metric": "output_throughput_per_gpu", "unit": "tokens/s/GPU"},
            "tokens_per_s_per_device",
            250,
            "tokens_per_s_per_device",
        ),
    ],
)
def test_each_metric_is_one_value_of_the_run(
    cells: dict[str, str], quantity: str, measured: float, wanted: str
) -> None:
    found = case(**cells)
    assert found.quantity == quantity
    assert found.measured == pytest.approx(measured)
    assert value(found) == pytest.approx(run().value(wanted), rel=1e-12)


def test_a_rate_of_all_devices_is_the_rate_of_one_times_tp() -> None:
    unit = {"tp": "2", "unit": "tokens/s"}
    total = value(case(metric="output_throughput", **unit))
    each = value(case(metric="output_throughput_per_gpu", **unit))
    assert total == pytest.approx(2 * each)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"metric": "joules"}, "metric 'joules' is not predicted"),
        ({"unit": "furlongs"}, "unit 'furlongs' is not known"),
        ({"unit": "tokens/s"}, "is not in tokens/s"),
        ({"metric": "output_throughput"}, "is not in ms"),
        ({"value": ""}, "gives no number"),
        ({"input_len_tokens": ""}, "length of the prompts"),
        ({"batch_size": ""}, "neither the batch"),
        ({"framework": "Megatron"}, "no stack stands for it"),
        ({"framework": "My own engine"}, "no stack stands for the software 'My own engine'"),
        ({"note": "an outlier"}, "outlier"),
        ({"note": "unit header says total, while it is not", "tp": "2"}, "totals in one table"),
    ],
)
def test_what_cannot_be_predicted_says_why(cells: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        expressed.express(row(**cells))


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"hw_key": "abacus"}, "abacus"),
        ({"hw_key": ""}, "names no hw_key"),
        ({"precision": "int3"}, "int3"),
        ({"tp": "3"}, "3"),
    ],
)
def test_a_run_that_is_impossible_is_left_out(cells: dict[str, str], words: str) -> None:
    found = predict_case(case(**cells))
    assert isinstance(found, LeftOut)
    assert words in found.reason


def test_software_that_serves_in_turns_is_no_batch_where_it_does_not_fit() -> None:
    many = {"batch_size": "4096", "input_len_tokens": "2048"}
    left = predict_case(case(framework="LMDeploy TurboMind v0.2.0", **many))
    assert isinstance(left, LeftOut)
    assert "in turns" in left.reason


def test_a_row_without_software_has_the_default() -> None:
    assert value(case(framework="")) == value(case())
    assert software_of(row(framework="FasterTransformer")).stack == "fastertransformer"


# --- llama.cpp


def use_more_bits(layer: int, layers: int) -> bool:
    """llama.cpp's choice of the layers whose values and second product keep six bits."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


@pytest.mark.parametrize(("hidden", "inner", "groups", "layers"), [(4096, 14336, 1024, 32), (8192, 28672, 1024, 80)])
def test_share_of_six_bits_in_q4_k_m(hidden: int, inner: int, groups: int, layers: int) -> None:
    every = 2 * hidden * hidden + 2 * hidden * groups + 3 * hidden * inner
    more = sum(use_more_bits(layer, layers) for layer in range(layers)) * (hidden * groups + hidden * inner)
    assert more / (layers * every) == pytest.approx(Q4_K_M_SIX, abs=0.003)


def test_bytes_of_ggml_blocks() -> None:
    assert Q4_K * 8 == 4.5
    assert Q6_K * 8 == 6.5625
    assert 4.5 < GGUF["q4_k_m"]["weight_bytes"] * 8 < 5


LLAMA = {"framework": "llama.cpp", "model": "llama-3-8b", "hw_key": "rtx-4090", "batch_size": "1", "unit": "tokens/s"}


def test_speeds_of_one_sequence_are_times() -> None:
    generated = case(**LLAMA, metric="generation_speed", input_len_tokens="", output_len_tokens="64", value="50")
    assert (generated.quantity, generated.measured) == ("time_per_token_s", 0.02)
    read_ = case(**LLAMA, metric="prompt_eval_speed", input_len_tokens="1024", output_len_tokens="", value="4096")
    assert (read_.quantity, read_.measured) == ("prefill_s", 0.25)


def test_parts_of_a_prompt_follow_one_another_through_the_devices() -> None:
    asked = LLAMA | {
        "metric": "prompt_eval_speed",
        "input_len_tokens": "1024",
        "output_len_tokens": "",
        "value": "4096",
    }
    one, two = value(case(**asked)), value(case(**asked, pp="2"))
    assert two / one == pytest.approx(3 / 4, abs=0.05)


def test_layers_split_over_devices_bring_decoding_nothing() -> None:
    asked = LLAMA | {"metric": "generation_speed", "input_len_tokens": "", "output_len_tokens": "64", "value": "50"}
    one, two = value(case(**asked)), value(case(**asked, pp="2"))
    assert one < two < 1.05 * one


# --- FasterTransformer


@pytest.mark.parametrize(
    ("batch", "length", "stages", "wanted"), [(8, 128, 1, None), (8, 128, 2, 4), (32, 384, 2, 2), (1, 4096, 2, 1)]
)
def test_micro_batches_of_its_pipelines(batch: int, length: int, stages: int, wanted: int | None) -> None:
    assert micro_batch_of(SOFTWARE["FasterTransformer"], batch, length, stages) == wanted


def test_random_lengths_are_about_half_of_the_longest() -> None:
    for (batch, longest), tokens in BERT_TOKENS.items():
        assert 0 < tokens < batch * longest
        if batch == 128:
            assert tokens / batch == pytest.approx(longest / 2, rel=0.12)


def test_an_encoder_is_timed_without_its_ends() -> None:
    cells = {"model": "bert-base", "framework": "FasterTransformer (PyTorch op)", "output_len_tokens": "0"}
    cells |= {"metric": "latency", "phase": "encoder_forward"}
    found = case(**cells)
    assert 0.3 * found.run().value("prefill") < value(found) < found.run().value("prefill")
    with pytest.raises(InputError, match="learned positions"):
        case(**cells | {"phase": "", "input_len_tokens": "1024"}).run()
    assert value(case(**cells | {"input_len_tokens": "1024"})) > value(found)


def test_elements_of_32_bits_move_twice_the_bytes() -> None:
    cells = {"model": "bert-base", "framework": "FasterTransformer (PyTorch op)", "output_len_tokens": "0"}
    cells |= {"metric": "latency", "phase": "encoder_forward"}
    half, wide = (case(**cells, precision=name).run() for name in ("fp16", "tf32"))
    assert wide.value("memory/weights/layers") == 2 * half.value("memory/weights/layers")
    assert wide.bound["matrix_rate"][0] == System.load("a100-80gb-sxm").matrix_rate("tf32").value


# --- memory


def test_fastertransformer_tells_gib_that_are_in_use_of_the_device() -> None:
    """print_mem_usage divides by 1024^3 and calls it GB; three models have 1.2 GB beside what is counted, all alike."""
    rows = [row for row in read(PACKAGED / "memory.csv", tables.columns_of("memory.csv")) if row.family == "FTGPT"]
    found = {row.id: inference_memory.express(filled(row))[0] for row in rows if row.id in ("FTGPT-001", "FTGPT-029")}
    assert found["FTGPT-001"].measured == 15.55 * 2**30
    left = [case.measured - case.read(case.run()) for case in found.values()]
    assert left == pytest.approx([1.2e9, 1.2e9], rel=0.1)


def test_memory_of_an_inference_has_its_lengths_in_the_note() -> None:
    cells = {"id": "MINE-1", "model": "gpt-6.7b", "hw_key": "a100-80gb-sxm", "value": "15.5", "unit": "GB"}
    cells |= {"micro_batch_seqs": "2", "precision": "fp16", "framework": "FasterTransformer", "task": "inference"}
    (found,) = inference_memory.express(
        TableRow("memory.csv", 2, cells | {"note": "input 128 output 8 tokens, batch 2"})
    )
    assert isinstance(found, Case)
    assert (found.source, found.quantity, found.measured) == ("MINE memory", "memory_bytes", 15.5e9)
    assert found.run().value("memory") == value(found)
    for change in ({"note": ""}, {"unit": "acres"}, {"value": ""}, {"note": "outlier: input 1 output 1"}):
        with pytest.raises(InputError):
            inference_memory.express(TableRow("memory.csv", 2, cells | {"note": "input 1 output 8"} | change))


# --- requests in flight


@pytest.fixture(scope="module")
def server() -> Serving:
    model, system = Model.load("llama-2-7b"), System.load("a100-80gb-sxm")
    return serving(
        model, system, Plan(precision="fp16"), prompt=1024, generate=128, stack="tensorrt-llm-0.9", concurrency=8
    )


def test_a_row_with_requests_in_flight_is_the_server_s_own_loop(server: Serving) -> None:
    cells = {"framework": "TensorRT-LLM v0.9.0", "batch_size": "", "concurrency": "8", "input_len_tokens": "1024"}
    cells |= {"output_len_tokens": "128", "metric": "output_tokens_per_s_total", "unit": "tokens/s"}
    assert server.loop is not None
    answer = server.loop[0]
    assert value(case(**cells)) == pytest.approx(answer.output_tokens_per_s)
    assert value(case(**cells | {"metric": "ttft", "unit": "ms"})) == pytest.approx(answer.ttft_s)
    assert value(case(**cells | {"metric": "tpot", "unit": "ms"})) == pytest.approx(answer.tpot_s)


def test_a_run_of_few_requests_waits_longer_for_its_first_tokens() -> None:
    """It begins with a burst, whose prompts wait behind one another."""
    cells = {"framework": "TensorRT-LLM v0.9.0", "batch_size": "", "concurrency": "8", "input_len_tokens": "1024"}
    cells |= {"output_len_tokens": "128", "metric": "ttft", "unit": "ms"}
    assert value(case(**cells, requests="16")) > value(case(**cells))


def test_lengths_that_spread_are_those_of_the_server() -> None:
    """Row and `symperf serve` alike; the document of INFX says the spread, and the checkpoint's blocks."""
    cells = {"framework": "TensorRT-LLM v0.9.0", "batch_size": "", "concurrency": "8", "input_len_tokens": "1024"}
    cells |= {"output_len_tokens": "128", "metric": "ttft", "unit": "ms", "requests": "80"}
    model, system = Model.load("llama-2-7b"), System.load("a100-80gb-sxm")
    asked = {"prompt": 1024, "generate": 128, "concurrency": 8, "requests": 80, "stack": "tensorrt-llm-0.9"}
    spread: dict[str, Any] = {"prompt_spread": 0.5, "generate_spread": 0.5}
    wide = serving(model, system, Plan(precision="fp16"), **asked, **spread).loop
    assert wide is not None
    assert value(case(**cells, length_spread="0.5")) == pytest.approx(wide[0].ttft_s)
    assert value(case(**cells, length_spread="0.5")) != pytest.approx(value(case(**cells)), rel=1e-3)
    for bad in ({"length_spread": "1.5"}, {"length_spread": "0.5", "concurrency": "", "batch_size": "8"}):
        with pytest.raises(InputError, match="length_spread"):
            case(**cells | bad)
    said = filled(row(id="INFX-105", precision="", concurrency="16"))
    assert (said.text("length_spread"), said.text("precision")) == ("0.99", "fp8-block")


def test_requests_that_are_queued_at_once_are_a_burst() -> None:
    """TRT20: as many as its document says of the lengths; fewer in flight serve less."""
    cells = {"id": "TRT20-001", "framework": "TensorRT-LLM v0.20", "batch_size": "", "input_len_tokens": "1000"}
    cells |= {"output_len_tokens": "1000", "metric": "output_throughput", "unit": "tokens/s"}
    (found,) = expressed.express(filled(row(**cells)))
    assert isinstance(found, Case)
    model, system = Model.load("llama-2-7b"), System.load("a100-80gb-sxm")
    work = {"prompt": 1000, "generate": 1000, "burst": 3000, "stack": "tensorrt-llm-1.3", "kv_precision": "fp8"}
    burst = serving(model, system, Plan(precision="fp16"), **work).loop
    assert burst is not None
    assert value(found) == pytest.approx(burst[0].output_tokens_per_s)
    mine = cells | {"id": "MINE-1", "kv_dtype": "fp8"}
    assert value(found) > 1.1 * value(case(**mine, concurrency="8"))


def test_a_row_that_set_a_constant_is_told_apart() -> None:
    assert case(use="test").source == "MINE"
    assert case(use="calibration").source == "MINE (calibration)"


# --- the published rows


@pytest.fixture(scope="module")
def published() -> list[Case | LeftOut]:
    path = PACKAGED / "inference.csv"
    return [found for each in read(path, tables.columns_of(path.name)) for found in cases(each)]


def test_few_published_rows_are_left_out_before_they_run(published: list[Case | LeftOut]) -> None:
    left = Counter(item.source for item in published if isinstance(item, LeftOut))
    assert len(published) == 1721
    told = {"TRTT": 8, "FTGPT": 13, "LMDEPLOY": 4, "LLAMACPP": 2, "DSV3SYS": 2}
    assert left == told | {"MLPINF": 341, "GAUDI": 28}
    reasons = {item.reason for item in published if isinstance(item, LeftOut)}
    assert len(reasons) == 7


def test_every_published_metric_and_software_is_declared(published: list[Case | LeftOut]) -> None:
    assert {item.quantity for item in published if isinstance(item, Case)} <= set(METRICS.values())
    assert all(software.why for software in SOFTWARE.values())


def test_requests_in_flight_agree_with_what_was_published(published: list[Case | LeftOut]) -> None:
    scored = [predict_case(item) for item in published if item.source == "NIM" and isinstance(item, Case)]
    errors = [abs(item.error) for item in scored if not isinstance(item, LeftOut)]
    assert len(errors) == 27
    assert sum(errors) / len(errors) < 0.12


def test_cases_are_told_apart(published: list[Case | LeftOut]) -> None:
    names = [item.case for item in published]
    assert len(set(names)) == len(names)
    assert all(dataclasses.is_dataclass(item) for item in published)

"""Formats that a device does not multiply: served by the stated rule, told in the run's warnings, never refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.infer.formats import FORMATS
from symperf.models.gguf import FILES, mean_bytes
from symperf.systems.system import catalogue_names
from symperf.systems.system_symbols import PRECISIONS
from symperf.systems.widening import WIDER, product_format, widening

if TYPE_CHECKING:
    from symperf.systems.system import System

WIDTH = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "fp6": 0.75, "fp4": 0.5, "int4": 0.5}


def part(*precisions: str) -> System:
    rates = {name: f"{rate} TFLOP/s" for rate, name in enumerate(precisions, start=2)}
    return sf.System.from_table(
        {"name": "part", "matrix_rate": rates, "memory_bandwidth": "300 GB/s", "memory_capacity": "256 GiB"}
    )


def ask(system: System, **how: object) -> sf.InferenceRun:
    plan = sf.Plan(**how)  # type: ignore[arg-type]
    return sf.inference(sf.Model.load("llama-2-7b"), system, plan, batch=1, prompt=8, generate=4)


def test_nothing_is_narrowed() -> None:
    assert set(WIDER) == set(PRECISIONS) - {"fp32"}
    for narrow, others in WIDER.items():
        assert all(WIDTH[wider] >= WIDTH[narrow] for wider in others), narrow


@pytest.mark.parametrize("precision", FORMATS)
def test_a_part_with_fp32_only_serves_every_format(precision: str) -> None:
    """Weights keep the bytes of their format, or of classes in a file; products run at the only rate, as is told."""
    run = ask(part("fp32"), precision=precision)
    assert run.bound["matrix_rate"][0] == run.bound["attention_rate"][0] == 2e12
    kept = {value for name, (value, _) in run.bound.items() if name.startswith("weight_bytes")}
    stored = mean_bytes(precision, run.model).values() if precision in FILES else ()
    assert kept == ({size for size, _ in stored} or {FORMATS[precision].weight})
    assert run.bound["operand_bytes"][0] == 2
    (told,) = (warning for warning in run.warnings if "matrix_rate" in warning)
    assert "part has no matrix_rate in" in told
    assert told.endswith("products run at the rate of fp32")


def test_eight_bits_without_a_rate_are_weight_only() -> None:
    """FP8 on an A100 is INT8 weights alone, byte for byte and rate for rate."""
    system = sf.System.load("a100-80gb-sxm")
    wide, alone = ask(system, precision="fp8"), ask(system, precision="int8-weight")
    for name in ("matrix_rate", "matrix_efficiency", "weight_bytes", "operand_bytes", "attention_rate"):
        assert wide.bound[name][0] == alone.bound[name][0], name
    assert wide.value("time") == alone.value("time")
    assert any("in fp8" in warning for warning in wide.warnings)
    assert not any("matrix_rate" in warning for warning in (*alone.warnings, *ask(system).warnings))


@pytest.mark.parametrize("name", catalogue_names())
def test_every_device_of_the_catalogue_serves_every_format(name: str) -> None:
    system = sf.System.load(name)
    for each in FORMATS.values():
        wide = product_format(system, each.rate or "bf16")
        assert wide in system.matrix_rates, each
        assert bool(widening(system, each.rate or "bf16")) == (wide != (each.rate or "bf16"))


def test_what_no_format_is_wide_enough_for_is_refused() -> None:
    with pytest.raises(InputError, match=r"system part: no matrix_rate for precision 'bf16'; it has int8"):
        ask(part("int8"))


def test_training_in_16_bits_widens_and_in_8_does_not() -> None:
    """Mixed precision runs on a part with FP32 only; FP8 training needs units for it (Transformer Engine refuses)."""
    model = sf.Model.load("gpt2")
    run = sf.training(model, part("fp32"), sf.Plan(), batch=1, sequence=64)
    assert run.bound["matrix_rate"][0] == 2e12
    assert any("products run at the rate of fp32" in warning for warning in run.warnings)
    with pytest.raises(InputError, match="no matrix_rate for precision 'fp8'"):
        sf.training(model, part("fp32"), sf.Plan(precision="fp8"), batch=1, sequence=64)


def test_a_rate_that_is_set_is_that_of_the_products() -> None:
    system = sf.System.load("a100-80gb-sxm")
    run = ask(system, precision="fp8").bind(matrix_rate=1e15)
    assert run.bound["matrix_rate"][0] == 1e15

"""A residual stream in 32 bits: bytes of real arrays, of a step, what stages send, and a file of Megatron-LM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import symperf as sf
from symperf.formulas.kernels import wide_stream

if TYPE_CHECKING:
    from pathlib import Path

ELEMENTS = 64 * 128
HALF, SINGLE = np.zeros(ELEMENTS, np.float16), np.zeros(ELEMENTS, np.float32)


@pytest.mark.parametrize(
    ("formula", "arrays"),
    [
        (wide_stream.wide_residual_norm_bytes, (SINGLE, HALF, SINGLE, HALF)),
        (wide_stream.wide_residual_norm_backward_bytes, (HALF, SINGLE, SINGLE, SINGLE, HALF, HALF, SINGLE)),
        (wide_stream.wide_norm_bytes, (SINGLE, HALF)),
        (wide_stream.wide_residual_bytes, (SINGLE, HALF, SINGLE)),
    ],
)
def test_bytes_are_those_of_what_is_read_and_written(formula: Any, arrays: tuple[Any, ...]) -> None:
    assert float(formula(ELEMENTS, 2, 4)) == sum(array.nbytes for array in arrays)


def step(model: str = "llama-2-7b", **plan: Any) -> sf.Run:
    return sf.training(model, "h100-sxm", sf.Plan(attention="flash", **plan), batch=4, sequence=2048)


def moved(run: sf.Run) -> dict[str, float]:
    return {row.name: row.bytes for row in run.table()}


@pytest.mark.parametrize("compiled", [False, True])
def test_norms_and_additions_alone_move_more(compiled: bool) -> None:
    """Of a layer; and the norm before the head."""
    plain, whole = (moved(step(compiled=compiled, fp32_residual=fp32)) for fp32 in (False, True))
    names = {name for name, size in whole.items() if size != pytest.approx(plain[name])}
    names -= {name for name in whole if name.startswith("pipeline/")}  # of one stage, which sends nothing
    assert names == {name for name in whole if "/norm/" in name or "/residual/" in name}
    n = 4 * 2048 * 4096 * 32
    addition = whole["layer/mlp/residual/forward"]
    assert addition == pytest.approx(n * (2 * 2 + 2 * 4 if compiled else 2 + 2 * 4))
    assert whole["layer/mlp/residual/backward"] == pytest.approx(n * (3 * 2 + 4 * 4 if compiled else 2 + 2 * 4))


@pytest.mark.parametrize("compiled", [False, True])
def test_dropout_adds_its_mask_alone(compiled: bool) -> None:
    """The sum has the stream's format beside it too; a branch's gradient is a tensor of its own anyway."""
    plain, dropped = (moved(step(compiled=compiled, fp32_residual=True, dropout=drops)) for drops in (False, True))
    masks = 4 * 2048 * 4096 * 32
    for phase in ("forward", "backward") if compiled else ("forward",):
        name = f"layer/mlp/residual/{phase}"
        assert dropped[name] - plain[name] == pytest.approx(masks)


def test_a_stage_sends_it_and_a_layer_keeps_it() -> None:
    plain, whole = (step(pp=2, fp32_residual=fp32) for fp32 in (False, True))
    assert moved(whole)["pipeline/send/forward"] == pytest.approx(2 * moved(plain)["pipeline/send/forward"])
    assert whole.value("saved_activations") > plain.value("saved_activations")


def test_a_model_whose_stream_is_wide_already_is_as_it_was() -> None:
    assert step("mamba-1.4b", fp32_residual=True).value("time") == step("mamba-1.4b").value("time")


def test_megatron_says_it(tmp_path: Path) -> None:
    """Its option is read, and written."""
    path = tmp_path / "run.sh"
    options = "--tensor-model-parallel-size 2 --micro-batch-size 1 --bf16 --seq-length 2048 --global-batch-size 8"
    path.write_text(f"torchrun --nproc-per-node 4 pretrain_gpt.py {options} --fp32-residual-connection\n")
    settings = sf.read_framework(path)
    plan, batch = settings.plan(32, devices=4)
    assert (plan.fp32_residual, plan.tp, batch) == (True, 2, 8)

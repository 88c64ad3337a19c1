"""Steps computed again from the sources, with arithmetic of the test's own."""

from __future__ import annotations

import pytest

import symperf as sf

H100 = sf.System.load("h100-sxm")


def optimizer_state(run: sf.Run) -> float:
    """Bytes of the optimizer's state on one device."""
    return sum(size for name, size in run.memory_terms().items() if name.startswith("optimizer/"))


def test_the_convolution_of_mamba_2_runs_once_more_in_its_backward_pass() -> None:
    """What is not kept is computed again: mamba_ssm, MambaSplitConv1dScanCombinedFn.backward, "Recompute x, B, C"."""
    run = sf.training(sf.Model.load("mamba2-2.7b"), H100, sf.Plan(micro_batch=8, dp=8), batch=64, sequence=2048)
    tokens, channels, taps = 8 * 2048, 80 * 64 + 2 * 128, 4
    path = "layer/ssm/convolution"
    for phase in ("forward", "again"):
        assert run.value(f"term/{path}/{phase}/flops") == 2 * tokens * channels * taps
        assert run.value(f"term/{path}/{phase}/bytes") == 2 * tokens * channels * 2 + channels * taps * 2
    share = {row.name: row.share for row in run.table()}
    assert share[f"{path}/again"] == pytest.approx(share[f"{path}/forward"], rel=1e-12)


@pytest.mark.parametrize(("pp", "layers"), [(1, 32), (2, 16)])
def test_adafactor_keeps_statistics_of_both_ends_of_a_single_stage(pp: int, layers: int) -> None:
    """Shazeer and Stern 2018: a sum for each row and column of a matrix, every element of a vector; FP32 masters."""
    run = sf.training(sf.Model.load("llama-2-7b"), H100, sf.Plan(pp=pp, optimizer="adafactor"), batch=8, sequence=128)
    matrices = 4 * (4096 + 4096) + 3 * (4096 + 11008)
    table, norm = 32000 + 4096, 4096
    layer = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * norm
    ends = 2 * 32000 * 4096 + norm if pp == 1 else 32000 * 4096 + norm
    factors = layers * (matrices + 2 * norm) + norm + (2 * table if pp == 1 else table)
    assert optimizer_state(run) == 4 * (layers * layer + ends) + 4 * factors


def test_adafactor_counts_a_tied_table_once_on_a_single_stage() -> None:
    """Gemma-2B: 256,000 tokens of width 2048, tied; one table, and one norm, beside its layers."""
    run = sf.training(sf.Model.load("gemma-2b"), H100, sf.Plan(optimizer="adafactor"), batch=1, sequence=128)
    layer = 2 * (2048 + 2048) + 2 * (256 + 2048) + 3 * (2048 + 16384) + 2 * 2048
    factors = 18 * layer + 256000 + 2048 + 2048
    assert optimizer_state(run) == 4 * (run.value("parameters") + factors)


def test_a_module_of_deepseek_v3_adds_its_flops() -> None:
    """A projection of two streams, a layer with experts and the head, over all tokens; backward twice the forward."""

    def flops(modules: int) -> float:
        plan = sf.Plan(dp=8, ep=8)
        run = sf.training(
            sf.Model.load("deepseek-v3"), H100, plan, batch=8, sequence=4096, num_multi_token_layers=modules
        )
        return run.value("model_flops")

    h, heads, tokens = 7168, 128, 8 * 4096
    attention = h * 1536 + 1536 * heads * 192 + h * 576 + 512 * heads * 256 + heads * 128 * h
    layer = 2 * attention + 2 * 4096 * heads * (192 + 128) + 2 * h * 256 + 9 * 2 * 3 * h * 2048
    expected = 3 * tokens * (layer + 2 * 2 * h * h + 2 * 129280 * h)
    assert flops(1) - flops(0) == pytest.approx(expected, rel=1e-9)

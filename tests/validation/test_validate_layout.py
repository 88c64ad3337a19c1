"""What a row of training leaves open, the kernels of its software, and the interval of its prediction."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.validation_cases import TRAINING

from symperf.common.errors import InputError
from symperf.plans.plan import Plan
from symperf.systems.software import Software
from symperf.systems.system import System
from symperf.validation.case import Case, Scored
from symperf.validation.documents import filled
from symperf.validation.layout import choices_of, divisors, layout_of, recompute_of
from symperf.validation.models import model_of
from symperf.validation.rows import TableRow
from symperf.validation.runs import fastest, run_of, stack_of
from symperf.validation.score import coverage, predict_case, widening
from symperf.validation.spread import RATES, responses, spread_of
from symperf.validation.training import express

if TYPE_CHECKING:
    from symperf.runs.training_run import Run


def _row(**cells: str) -> TableRow:
    return TableRow("training.csv", 2, TRAINING | cells)


PIPELINE = {"model": "gpt-22b", "num_devices": "64", "tp": "8", "pp": "4", "vpp": "", "dp": "2"}
OPEN = PIPELINE | {"global_batch_seqs": "16", "micro_batch_seqs": "", "recompute": "full"}


def _layout(row: TableRow) -> tuple[Plan, ...]:
    return layout_of(row, model_of(row)).choices


# --- what a row does not say


def test_a_row_that_says_both_leaves_nothing_open() -> None:
    assert _layout(_row()) == ()
    assert _layout(_row(**OPEN | {"vpp": "1", "micro_batch_seqs": "2"})) == ()


def test_every_micro_batch_and_every_number_of_chunks_is_a_choice() -> None:
    row = _row(**OPEN)
    layers = model_of(row).sizes["num_layers"]
    found = {(plan.micro_batch, plan.vpp) for plan in _layout(row)}
    assert found == {(micro, vpp) for micro in (1, 2, 4, 8) for vpp in divisors(layers // 4)}


@pytest.mark.parametrize(
    ("cells", "micros", "one_chunk"),
    [
        ({"vpp": "1"}, {1, 2, 4, 8}, True),
        ({"micro_batch_seqs": "2"}, {2}, False),
        ({"grad_accum": "4"}, {2}, False),
        ({"pp": "1", "num_devices": "16"}, {1, 2, 4, 8}, True),
    ],
)
def test_what_other_columns_say_is_no_choice(cells: dict[str, str], micros: set[int], one_chunk: bool) -> None:
    found = _layout(_row(**OPEN | cells))
    assert {plan.micro_batch for plan in found} == micros
    assert ({plan.vpp for plan in found} == {1}) == one_chunk


def test_a_software_that_says_how_it_splits_leaves_nothing_open() -> None:
    assert _layout(_row(**OPEN, framework="torchtitan (FSDP2)", sharding="FSDP")) == ()


def test_words_of_a_row_say_how_torchtitan_ran() -> None:
    titan = {"framework": "torchtitan (FSDP2)", "sharding": "FSDP"}
    plain = layout_of(row := _row(**titan), model_of(row)).plan
    assert plain.eager
    assert not plain.compiled
    assert layout_of(_row(**titan, precision="bf16 (torch.compile)"), model_of(row)).plan.compiled
    assert layout_of(_row(**titan | {"framework": "torchtitan (torch.compile)"}), model_of(row)).plan.compiled
    titan |= {"id": "TITAN-1"}
    assert layout_of(_row(**titan), model_of(row)).plan.compiled
    assert not layout_of(_row(**titan, precision="bf16 (eager)"), model_of(row)).plan.compiled


@pytest.mark.parametrize(
    ("cells", "chunks"),
    [
        ({}, 1),
        ({"note": "Interleaved 1F1B"}, 2),
        ({"note": "interleaved 1F1B", "vpp": "3"}, 3),
        ({"note": "interleaved 1F1B", "pp": "1", "num_devices": "16"}, 1),
    ],
)
def test_interleaved_stages_of_torchtitan_have_two_chunks(cells: dict[str, str], chunks: int) -> None:
    row = _row(**OPEN | {"framework": "torchtitan (FSDP2)", "sharding": "FSDP"} | cells)
    assert layout_of(row, model_of(row)).plan.vpp == chunks


def test_a_part_under_a_limit_that_is_not_told_has_no_time() -> None:
    cells = {"id": "TITAN-33", "hardware": "B200 (power limited)", "primary_metric": "tokens_per_s_per_device"}
    with pytest.raises(InputError, match="power limit"):
        express(_row(**cells))
    assert run_of(_row(**cells | {"primary_metric": ""}), memory_only=True).value("memory") > 0


def test_memory_alone_takes_one_sequence() -> None:
    row = _row(**OPEN)
    layout = layout_of(row, model_of(row), memory_only=True)
    assert (layout.choices, layout.plan.micro_batch, layout.plan.vpp) == ((), 1, 1)


def test_stages_that_are_not_equal_are_not_interleaved() -> None:
    plan = Plan(pp=5, dp=1)
    assert {choice.vpp for choice in choices_of(plan, 10, 48, open_micro=True, open_chunks=True)} == {1}
    assert choices_of(plan, 10, 48, open_micro=False, open_chunks=True) == ()


def test_the_fastest_that_fits_is_taken() -> None:
    row = _row(**OPEN)
    chosen = run_of(row)
    others = [run for plan in _layout(row) if (run := _tried(chosen, plan)) is not None]
    assert len(others) > 4
    assert chosen.fits
    assert chosen.value("time") == min(run.value("time") for run in others if run.fits)
    assert chosen.value("time") < _tried(chosen, dataclasses.replace(chosen.plan, micro_batch=1, vpp=1)).value("time")  # type: ignore[union-attr]


def test_what_takes_the_least_memory_is_taken_where_nothing_fits() -> None:
    chosen = run_of(_row(**OPEN | {"model": "gpt-1008b", "recompute": "none"}))
    assert not chosen.fits
    others = [run for plan in _layout(_row(**OPEN | {"model": "gpt-1008b"})) if (run := _tried(chosen, plan))]
    assert chosen.value("memory") <= min(run.bind(recompute="none").value("memory") for run in others)


def test_a_row_without_a_possible_plan_says_why() -> None:
    def refuse(_: Plan) -> Run:
        raise InputError("not so")

    with pytest.raises(InputError, match="not so"):
        fastest(refuse, [Plan()])
    with pytest.raises(InputError, match="no plan"):
        fastest(refuse, [])


def _tried(run: Run, plan: Plan) -> Run | None:
    try:
        return run.bind(micro_batch=plan.micro_batch, vpp=plan.vpp)
    except InputError:
        return None


# --- kernels of the software

HOPPER = {"hw_key": "h100-sxm", "sharding": "FSDP", "num_devices": "8", "tp": "1", "pp": "1", "dp": "8"}
HOPPER |= {"global_batch_seqs": "8", "micro_batch_seqs": "1"}


@pytest.mark.parametrize(
    ("framework", "stack"),
    [
        ("llm-foundry/Composer FSDP, FlashAttention", "llm-foundry-2023"),
        ("torchtitan (FSDP2)", "flash-attention-2"),
        ("NeMo 24.09", "transformer-engine"),
        ("MaxText (JAX)", "transformer-engine"),
        ("", ""),
        ("NeMo 24.03.01", "flash-attention-2"),
        ("MegaTron-LM", "megatron-2021"),
    ],
)
def test_the_kernels_of_a_row_are_the_profile_of_its_software(framework: str, stack: str) -> None:
    row = _row(**HOPPER, framework=framework)
    assert stack_of(row) == stack
    plain = System.load("h100-sxm")
    wanted = Software.load(stack).on(plain) if stack else plain
    assert run_of(row).system.quantities == wanted.quantities


def test_the_kernels_of_a_family_are_those_of_its_date() -> None:
    assert stack_of(_row(family="SC21", framework="Megatron-LM")) == "megatron-2021"
    assert stack_of(_row(family="MEGASCALE", framework="Megatron-LM")) == "flash-attention-2"


def test_older_kernels_are_slower() -> None:
    old, new = (run_of(_row(**HOPPER, framework=name)) for name in ("llm-foundry", "lit-gpt"))
    assert old.value("time") > new.value("time")


# --- intervals


@pytest.mark.parametrize("cells", [{}, OPEN, HOPPER | {"framework": "llm-foundry"}])
def test_the_interval_is_that_of_the_run(cells: dict[str, str]) -> None:
    run = run_of(_row(**cells))
    found, spread = run.interval("time"), spread_of(run, "time_s", 1.0)
    assert spread is not None
    assert spread.low == pytest.approx(found.low / found.value, rel=1e-12)
    assert spread.high == pytest.approx(found.high / found.value, rel=1e-12)
    assert spread.low < 1 < spread.high
    for cause, steps in found.causes.items():
        assert spread.causes[cause] == pytest.approx(steps, abs=1e-12)


def test_a_rate_is_as_uncertain_as_the_time_the_other_way_round() -> None:
    run = run_of(_row())
    time, layer = spread_of(run, "time_s", 2.0), spread_of(run, "layer_time_s", 2.0)
    assert time is not None
    assert layer == time
    for rate in RATES:
        found = spread_of(run, rate, 2.0)
        assert found is not None
        assert (found.low, found.high) == pytest.approx((4 / time.high, 4 / time.low))
    assert spread_of(run, "memory_bytes", 2.0) is None


def test_micro_batch_and_chunks_of_the_scripts_close_the_choice() -> None:
    """Narayanan et al. 2021, the authors' scripts: 76.1B has micro-batches of 2 and three chunks a stage."""
    cells = {"id": "SC21-006", "model": "GPT-76.1B", "num_devices": "1024", "pp": "4", "dp": "32"}
    row = filled(_row(**cells, micro_batch_seqs="", global_batch_seqs="1792"))
    layout = layout_of(row, model_of(row))
    assert (layout.plan.micro_batch, layout.plan.vpp, layout.plan.overlap_tp) == (2, 3, 0.0)
    assert layout.choices == ()


def test_what_is_set_by_hand_has_no_spread() -> None:
    run = run_of(_row())
    fixed = run.bind(**{name: run.bound[name][0] for name in run.system.quantities})
    moved, _ = responses(fixed, "time")
    assert moved == {}


def test_a_prediction_has_its_ends_and_a_family_its_coverage() -> None:
    (case,) = express(_row())
    assert isinstance(case, Case)
    found = predict_case(case)
    assert isinstance(found, Scored)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.predicted < found.high
    assert found.covered == (found.low <= found.measured <= found.high)


def test_coverage_counts_rows_with_an_interval() -> None:
    rows = [Scored("A", "a", "time_s", 1.0, 1.1, low=low, high=high) for low, high in ((0.9, 1.2), (1.05, 1.2))]
    assert coverage(rows) == 0.5
    assert coverage([*rows, Scored("A", "b", "memory_bytes", 1.0, 1.1)]) == 0.5
    assert coverage([Scored("A", "b", "memory_bytes", 1.0, 1.1)]) is None


@given(st.lists(st.floats(0.3, 3.0), min_size=1, max_size=30), st.floats(1.01, 2.0), st.floats(1.01, 2.0))
def test_intervals_widened_as_told_hold_the_part_that_they_are_meant_to(
    measured: list[float], up: float, down: float
) -> None:
    rows = [Scored("A", "a", "time_s", m, 1.0, low=1 / down, high=up) for m in measured]
    factor = widening(rows)
    assert factor is not None

    def held(times: float) -> float:
        return coverage([dataclasses.replace(row, low=down**-times, high=up**times) for row in rows]) or 0.0

    assert held(factor * (1 + 1e-9)) >= 0.9
    assert held(factor * (1 - 1e-9)) < 0.9 or factor == 0
    assert widening([*rows, Scored("A", "b", "memory_bytes", 1.0, 1.1)]) == factor


def test_no_factor_widens_a_point() -> None:
    point = Scored("A", "a", "time_s", 2.0, 1.0, low=1.0, high=1.0)
    assert widening([point]) is None
    assert widening([dataclasses.replace(point, measured=1.0)]) == 0
    assert widening([]) is None


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", "none"),
        ("none (config)", "none"),
        ("None stated (fits without full recompute)", "none"),
        ("baseline (TP, no recompute)", "none"),
        ("off", "none"),
        ("sequence parallelism only", "none"),
        ("minimal", "none"),
        ("Full recompute", "full"),
        ("selective recompute + sequence parallelism", "selective"),
        ("selective op", "op"),
        ("selective: mlp, moe", "modules"),
    ],
)
def test_texts_of_recomputation(text: str, mode: str) -> None:
    assert recompute_of(text) == mode

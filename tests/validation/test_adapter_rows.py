"""Rows of measured fine-tuning: which adapters they train, and how near the predictions are."""

from __future__ import annotations

from statistics import mean

import pytest

from symperf.common.errors import InputError
from symperf.validation import memory, training
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.tables import columns_of


def rows_of(table: str, family: str) -> list[TableRow]:
    found = read(PACKAGED / table, columns_of(table))
    return [row for row in found if row.family == family and "lora" in row.text("task")]


def test_steps_of_nemo_with_adapters_are_met() -> None:
    """DGX Cloud recipes: packed sequences, of which attention sees less than the whole."""
    errors = []
    for row in rows_of("training.csv", "DGXC"):
        (case,) = training.express(row)
        run = case.run()
        assert run.structure.adapted == ("q", "k", "v")
        assert run.plan.zero == 0
        errors.append(case.read(run) / case.measured - 1)
    assert len(errors) == 12
    assert mean(map(abs, errors)) < 0.15


@pytest.mark.parametrize(("family", "rows"), [("QWENLORA", 18), ("TUNE", 3)])
def test_rows_of_memory_say_their_adapters(family: str, rows: int) -> None:
    found = rows_of("adapters.csv", family)
    assert len(found) == rows
    for row in found[:: max(rows // 3, 1)]:
        (case,) = memory.express(row)
        run = case.run()
        assert run.plan.lora_rank == int(row.text("lora_rank"))
        assert run.structure.stored == bool(row.text("base_precision"))
        assert case.source == f"{family} memory"


def test_memory_of_torchtune_is_met() -> None:
    """Its loss holds one chunk of logits in 32 bits, weights, gradients and moments have 16."""
    cases = [memory.express(row)[0] for row in rows_of("adapters.csv", "TUNE")]
    for case in cases:
        assert case.read(case.run()) == pytest.approx(case.measured, rel=0.12), case.name


def test_of_two_rows_the_base_in_4_bits_saves_what_it_should() -> None:
    """Qwen-14B with 512 tokens: 35.1 GB with 16 bits, 18.4 GB with 4, which has DeepSpeed's buckets beside.

    The latter's kernels widen all weights of a layer, which stay until its backward pass; those here one product's.
    """
    by_id = {row.id: memory.express(row)[0] for row in rows_of("adapters.csv", "QWENLORA")}
    wide, narrow = by_id["QWENLORA-007"], by_id["QWENLORA-016"]
    runs = [case.run() for case in (wide, narrow)]
    assert wide.read(runs[0]) == pytest.approx(wide.measured, rel=0.03)
    assert narrow.read(runs[1]) == pytest.approx(narrow.measured, rel=0.15)
    held = [run.memory_terms()["weights/layers"] for run in runs]
    linear = 40 * (4 * 5120**2 + 3 * 5120 * 13696)
    assert held[0] - held[1] == pytest.approx(linear * (2 - 4.127 / 8), rel=1e-3)


def test_a_row_that_does_not_say_its_adapters_is_left_out() -> None:
    cells = {"id": "X-1", "model": "llama-2-7b", "hw_key": "H100-80GB-SXM5", "seq_len_tokens": "512", "task": "lora"}
    cells |= {"num_devices": "1", "micro_batch_seqs": "1", "grad_accum": "1", "step_time_s": "1", "tp": "1", "pp": "1"}
    (case,) = training.express(TableRow("training.csv", 2, cells))
    with pytest.raises(InputError, match="the row does not say which adapters are trained"):
        case.run()
    told = TableRow("training.csv", 2, cells | {"lora_rank": "8", "lora_targets": "q,v", "base_precision": "nf4"})
    run = training.express(told)[0].run()
    assert (run.plan.lora_rank, run.plan.lora_targets, run.plan.base_precision) == (8, "q,v", "nf4")

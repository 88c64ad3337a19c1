"""Published measurements beside predictions: rows into cases, errors by family, what is left out."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import pytest
from support.validation_cases import TRAINING, folder

from symperf.common.errors import InputError
from symperf.systems.software import names
from symperf.validation import tables
from symperf.validation.case import Case, LeftOut, Scored
from symperf.validation.definitions import SOFTWARE
from symperf.validation.documents import documents, filled
from symperf.validation.models import from_dimensions, model_of
from symperf.validation.report import as_csv, as_json, markdown, worst
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.score import Report, expressed_rows, predict_case, rank_correlation, select, summaries, validate
from symperf.validation.training import run_of

if TYPE_CHECKING:
    from pathlib import Path

KEYS_OF_SOURCES = {"name", "rows", "mape", "max_error", "rank_correlation", "coverage"}
KEYS_OF_ROWS = {"source", "case", "quantity", "measured", "predicted", "error"}


@pytest.fixture(scope="module")
def korthikanti() -> Report:
    return validate(["KORTH", "KORTHLAYER", "reference_training"])


def _row(**cells: str) -> TableRow:
    return TableRow("training.csv", 2, TRAINING | cells)


def test_every_packaged_row_only_scores_and_names_its_source() -> None:
    """But those that set constants of profiles: they say so, and are told apart or left out of scores for it."""
    uses = {
        "serving.csv": {"test", "calibration"},
        "steps.csv": {"calibration"},
        "training.csv": {"test", "calibration"},
    }
    for name in tables.TABLES:
        rows = [filled(row) for row in read(PACKAGED / name, tables.columns_of(name))]
        served = name == "serving.csv"
        assert {row.text("use") for row in rows} == uses.get(name, {"test"})
        assert all(row.text("silicon_data_source" if served else "source") for row in rows)


def test_at_least_1500_rows_are_expressed() -> None:
    expressed = expressed_rows(None)
    assert sum(isinstance(item, Case) for item in expressed) >= 1500
    assert all(item.reason for item in expressed if isinstance(item, LeftOut))


def test_every_row_of_foundry_is_expressed_and_most_of_dgxc() -> None:
    found = collections.Counter(
        (item.source, isinstance(item, Case)) for item in expressed_rows(None) if item.source in ("FOUNDRY", "DGXC")
    )
    assert found["FOUNDRY", True] == 216
    assert found["FOUNDRY", False] == 0
    assert found["DGXC", True] >= 270


def test_the_reference_rows_of_training_are_within_6_percent(korthikanti: Report) -> None:
    errors = [row.error for row in korthikanti.scored if row.source == "reference_training"]
    assert len(errors) == 11
    assert sum(map(abs, errors)) / 11 <= 0.03
    assert max(map(abs, errors)) <= 0.06


def test_the_json_has_the_keys_of_the_contract(korthikanti: Report) -> None:
    found = as_json(korthikanti)
    assert set(found) >= {"sources", "rows"}
    assert all(set(source) >= KEYS_OF_SOURCES for source in found["sources"])
    assert all(set(row) == KEYS_OF_ROWS for row in found["rows"])
    for source in found["sources"]:
        errors = [abs(row["error"]) for row in found["rows"] if row["source"] == source["name"]]
        assert source["rows"] == len(errors)
        assert source["mape"] == pytest.approx(sum(errors) / len(errors))
        assert source["max_error"] == pytest.approx(max(errors))


def test_an_error_is_predicted_over_measured_less_one() -> None:
    assert Scored("A", "a", "time_s", 2.0, 1.5).error == -0.25


def test_three_times_too_low_is_as_bad_as_three_times_too_high() -> None:
    rows = [Scored("A", str(i), "time_s", 3.0, value) for i, value in enumerate((3.3, 1.0, 8.9))]
    assert [row.predicted for row in worst(Report(rows, []), 2)] == [1.0, 8.9]


def test_rank_correlation_is_spearmans() -> None:
    rows = [Scored("A", str(i), "time_s", m, p) for i, (m, p) in enumerate(((1, 2), (2, 9), (3, 10), (4, 5)))]
    assert rank_correlation(rows) == pytest.approx(0.4)
    assert rank_correlation(rows[:2]) is None
    assert rank_correlation([Scored("A", str(i), "time_s", 1.0, float(i + 1)) for i in range(4)]) is None


def test_a_family_without_a_scored_row_has_no_errors() -> None:
    found = summaries(Report([], [LeftOut("A", "a", "why"), LeftOut("A", "b", "why")]))
    assert [(one.rows, one.mape, one.left_out) for one in found] == [(0, None, {"why": 2})]


def test_sources_are_selected_in_any_case_and_memory_with_them() -> None:
    items = [LeftOut(name, name, "why") for name in ("TITAN", "TITAN memory", "TITANOLD")]
    assert [item.source for item in select(items, ["titan"])] == ["TITAN", "TITAN memory"]
    with pytest.raises(InputError, match="did you mean titan"):
        select(items, ["TITN"])


def test_a_row_of_the_paper_is_the_run_of_the_same_plan() -> None:
    run = run_of(_row(recompute="selective + sequence parallelism"))
    assert (run.plan.recompute, run.plan.sequence_parallel, run.plan.tp) == ("selective", True, 8)
    assert run_of(_row()).value("time") == pytest.approx(1.42, rel=0.05)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"sharding": "FSDP FULL_SHARD"}, {"zero": 3, "zero_shards": None}),
        ({"sharding": "FSDP SHARD_GRAD_OP"}, {"zero": 2}),
        ({"sharding": "ZeRO-1"}, {"zero": 1}),
        ({"sharding": "FSDP group 16 x DP 4"}, {"zero": 3, "zero_shards": 16}),
        ({"sharding": "FSDP 64"}, {"zero": 3, "zero_shards": None}),
    ],
)
def test_sharding_is_read_from_its_text(cells: dict[str, str], expected: dict[str, object]) -> None:
    more = {"num_devices": "64", "tp": "1", "dp": "64", "micro_batch_seqs": "1", "global_batch_seqs": "64"}
    plan = run_of(_row(**(more | cells))).plan
    assert {name: getattr(plan, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"num_devices": "16"}, "not the number of devices"),
        ({"global_batch_seqs": "6"}, "not the global batch"),
        ({"global_batch_seqs": "", "micro_batch_seqs": ""}, "no global batch"),
        ({"tp": "", "pp": "", "dp": ""}, "no parallel degrees"),
        ({"seq_len_tokens": ""}, "no sequence length"),
        ({"model": "nobody-13b"}, "unknown model"),
        ({"hw_key": ""}, "names no hw_key"),
        ({"hw_key": "a101"}, "no system 'a101'"),
        ({"precision": "bf15"}, "precision: found 'bf15'"),
        ({"precision": "bf16 or fp8"}, "two precisions"),
        ({"recompute": "selective: mpl"}, "did you mean mlp"),
    ],
)
def test_what_cannot_be_expressed_says_why(cells: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        run_of(_row(**cells))


def test_interleaved_stages_that_are_not_equal_have_the_ends_dealt_as_layers() -> None:
    """126 layers, the embedding and the loss are 128, two for each of 64 virtual stages: the layers of the model."""
    more = {"model": "llama-3.1-405b", "num_devices": "512", "tp": "8", "pp": "8", "vpp": "8", "dp": "8"}
    run = run_of(_row(**more, micro_batch_seqs="1", global_batch_seqs="256", recompute="none"))
    assert (run.model.sizes["num_layers"], run.plan.vpp, run.plan.account_for) == (126, 8, "both")


def test_dimensions_describe_a_model_and_replace_those_of_the_catalogue() -> None:
    wide = from_dimensions({"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn": 172, "vocab": 100})
    assert (wide.family, wide.architecture.gated_mlp, wide.sizes["head_dim"]) == ("llama", True, 16)
    assert from_dimensions({"layers": 2, "hidden": 64, "heads": 4, "vocab": 100}).family == "gpt2"
    changed = model_of(_row(vocab="50304", seq_len_tokens="8192"))
    assert changed.sizes["vocab_size"] == 50304
    assert changed.sizes["position_rows"] == 8192
    with pytest.raises(InputError, match="do not divide"):
        model_of(_row(heads="7"))


def test_every_declared_definition_says_where_it_is_read() -> None:
    said = [document for document, _ in documents().values()]
    assert all(entry.why for entry in SOFTWARE.values())
    assert all(entry.source for entry in said)
    assert all(entry.stack in ("", *names()) for entry in [*SOFTWARE.values(), *said])


def test_a_measurement_above_the_peak_is_left_out(tmp_path: Path) -> None:
    found = validate(folder=folder(tmp_path, [TRAINING | {"step_time_s": "0.2"}]))
    assert not found.scored
    assert "times the peak rate" in found.left_out[0].reason


def test_milliseconds_for_seconds_are_left_out(tmp_path: Path) -> None:
    found = validate(folder=folder(tmp_path, [TRAINING | {"step_time_s": "1420"}]))
    assert "is its unit right?" in found.left_out[0].reason


def test_rows_that_contradict_each_other_are_counted(tmp_path: Path) -> None:
    found = validate(folder=folder(tmp_path, [TRAINING, TRAINING | {"id": "MINE-2", "step_time_s": "2.84"}]))
    assert (len(found.scored), len(found.left_out)) == (1, 1)
    assert "another row describes the same" in found.left_out[0].reason


def test_rates_and_times_of_one_step_agree(tmp_path: Path) -> None:
    rate = {"step_time_s": "", "tokens_per_s": str(4 * 2048 / 1.42)}
    rows = [TRAINING | {"tokens_per_s": ""}, TRAINING | {"id": "MINE-2"} | rate]
    time, tokens = validate(folder=folder(tmp_path, rows)).scored
    assert (time.quantity, tokens.quantity) == ("time_s", "tokens_per_s")
    assert 1 + time.error == pytest.approx(1 / (1 + tokens.error))


def test_reports_name_every_row(korthikanti: Report) -> None:
    assert len(as_csv(korthikanti.scored).splitlines()) == 1 + len(korthikanti.scored)
    assert "| KORTH | 9 |" in markdown(korthikanti, 3)


def test_a_prediction_that_fails_is_left_out_with_its_sentence() -> None:
    def fails(_: object) -> float:
        raise InputError("not today")

    case = Case("A", "a", "time_s", 1.0, lambda: run_of(_row()), fails)
    found = predict_case(case)
    assert isinstance(found, LeftOut)
    assert found.reason == "not today"

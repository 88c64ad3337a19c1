"""What rows do not say: the table of documents, software by version, kinds of sharding, and how FLOPs are counted."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from support.validation_cases import TRAINING

from symperf.common.errors import InputError
from symperf.plans.plan import Plan
from symperf.systems.software import names
from symperf.validation import tables
from symperf.validation.case import Case, LeftOut
from symperf.validation.definitions import SOFTWARE, software_of
from symperf.validation.documents import Document, document_of, documents, filled
from symperf.validation.flop_counts import CONVENTIONS, convention_of
from symperf.validation.inference_definitions import software_of as serving_software_of
from symperf.validation.layout import layout_of, sharding_of
from symperf.validation.models import model_of
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.runs import run_of
from symperf.validation.score import cases

if TYPE_CHECKING:
    from collections.abc import Iterable

TRAINED = ("training.csv", "memory.csv", "steps.csv")
SECOND = {
    "training.csv": {"MBRIDGE": 160, "MLPERF": 94, "BIGSCI": 66, "ZEROBUB": 36, "INTERNEVO": 20, "MLPERFT": 14}
    | {"NEMOLONG": 13, "SC21T2": 8},
    "inference.csv": {"MLPINF": 341, "INFX": 144, "TRT20": 86, "GAUDI": 28, "VULTR": 27},
    "memory.csv": {"BIGSCI": 42, "INTERNEVO": 12, "ZEROBUB": 12},
    "steps.csv": {"VTRAINS": 540},
}
SCATTERED = {"dp": "64", "num_devices": "64", "tp": "1", "micro_batch_seqs": "1", "global_batch_seqs": "64"}


def _row(**cells: str) -> TableRow:
    return TableRow("training.csv", 2, TRAINING | cells)


def _packaged(*names: str) -> Iterable[TableRow]:
    for name in names:
        yield from read(PACKAGED / name, tables.columns_of(name))


# --- the table


def test_every_row_of_the_second_set_is_there() -> None:
    for name, wanted in SECOND.items():
        found = Counter(row.family for row in _packaged(name))
        assert {family: found[family] for family in wanted} == wanted


def test_stages_of_bloom_are_dealt_as_deepspeed_dealt_them() -> None:
    """Each end of the model has the place of a layer from 28 February on; 78 layers had left one to the last stage."""
    laid: dict[tuple[int, int, str], Plan] = {}
    for row in _packaged("training.csv"):
        if row.family == "BIGSCI" and all(row.text(name) for name in ("layers", "heads")):
            plan = layout_of(filled(row), model_of(filled(row))).plan
            laid[(row.whole("layers") or 0, plan.pp, str(plan.precision))] = plan
    ends = {key for key, plan in laid.items() if plan.account_for == "both"}
    assert ends == {(106, 12, "fp16"), (106, 12, "bf16"), (100, 6, "bf16"), (94, 12, "bf16"), (70, 12, "bf16")}
    given = [(plan.first_stage_layers, plan.last_stage_layers) for key, plan in laid.items() if key[:2] == (78, 12)]
    assert given == [(7, 1)]
    assert not any(plan.uneven_stages for plan in laid.values())


def test_gradients_of_bloom_are_in_the_formats_that_its_software_kept() -> None:
    """FP16 sums in 16 bits; the optimizer for BF16 keeps 16 bits beside 32, which memory alone counts."""
    found: set[tuple[str, str, float]] = set()
    for name in ("training.csv", "memory.csv"):
        for row in _packaged(name):
            if row.family == "BIGSCI" and row.text("precision").startswith(("fp16", "bf16 (BF16")):
                value = (
                    run_of(filled(row), memory_only=name == "memory.csv").bound["gradient_bytes"][0]
                    if row.text("heads")
                    else 0
                )
                found.add((name, row.text("precision")[:4], value))
    assert {each for each in found if each[2]} == {
        ("training.csv", "fp16", 2.0),
        ("training.csv", "bf16", 4.0),
        ("memory.csv", "fp16", 2.0),
        ("memory.csv", "bf16", 6.0),
    }


def test_what_a_document_says_can_be_read_by_name() -> None:
    fields = {field.name for field in dataclasses.fields(Plan)}
    columns = {name for table in tables.TABLES for name in _columns(table)}
    for family, (said, parts) in documents().items():
        assert said.source, family
        for each in (said, *(part.said for part in parts)):
            assert set(each.plan) <= fields, family
            assert {*each.columns, *each.instead} <= columns, family
            assert each.stack in ("", *names()), family
            assert each.flops in ("", *CONVENTIONS), family
        assert all(set(part.where) <= columns for part in parts), family


def _columns(table: str) -> set[str]:
    found = tables.columns_of(table)
    return {*found.required, *found.optional}


def test_every_document_has_rows_and_every_part_matches_some() -> None:
    rows = list(_packaged(*TRAINED, "inference.csv"))
    families = {row.family for row in rows}
    for family, (_, parts) in documents().items():
        assert family in families
        for part in parts:
            assert any(part.matches(row) for row in rows if row.family == family), (family, part.where)


def test_a_row_with_what_its_document_says_has_the_same_document() -> None:
    """Cells that are filled or read otherwise change nothing of what else is said."""
    for row in _packaged(*TRAINED, "inference.csv"):
        whole = filled(row)
        assert filled(whole).cells == whole.cells
        before, after = document_of(row), document_of(whole)
        for name in ("plan", "values", "network", "stack", "flops", "batch_tokens", "left_out"):
            assert getattr(after, name) == getattr(before, name), row.id


def test_every_place_that_a_row_follows_from_is_told() -> None:
    """A part that says no place leaves that of its document; one that does stands behind it."""
    for row in _packaged(*TRAINED, "inference.csv"):
        said, parts = documents().get(row.family, (Document(), ()))
        places = [said.source, *(part.said.source for part in parts if part.matches(row))]
        assert document_of(row).source == "; ".join(filter(None, places)), row.id


def test_a_user_s_row_has_no_document() -> None:
    row = _row(id="MINE-1")
    assert filled(row) is row
    assert document_of(row) == document_of(_row(id="YOURS-1"))


def test_a_cell_that_is_given_is_not_filled() -> None:
    cells = {"id": "SC21-009", "model": "GPT-529.6B", "micro_batch_seqs": "4", "vpp": ""}
    whole = filled(_row(**cells))
    assert (whole.text("micro_batch_seqs"), whole.text("vpp")) == ("4", "3")


# --- software


def test_no_packaged_row_is_left_out_for_its_software() -> None:
    for row in _packaged(*TRAINED):
        for item in cases(row):
            assert isinstance(item, Case) or "which is not declared" not in item.reason, row.id


def test_a_framework_that_is_not_declared_is_refused() -> None:
    with pytest.raises(InputError, match="'My own', which is not declared"):
        run_of(_row(framework="My own"))
    with pytest.raises(InputError, match="did you mean torchtune"):
        software_of("torchtun")
    assert software_of("").stack == ""


def test_the_guide_names_every_framework() -> None:
    text = (PACKAGED.parents[2] / "docs" / "validation.md").read_text(encoding="utf-8")
    assert not [name for name in SOFTWARE if f"`{name}`" not in text]


@pytest.mark.parametrize(
    ("framework", "stack"),
    [
        ("NeMo 23.09", "flash-attention-2"),
        ("NeMo 24.03.01", "flash-attention-2"),
        ("NeMo 24.09", "transformer-engine"),
        ("NeMo (recipe v25.04.02)", "transformer-engine"),
    ],
)
def test_nemo_has_the_attention_of_its_version(framework: str, stack: str) -> None:
    assert software_of(framework).stack == stack


@pytest.mark.parametrize(
    ("framework", "stack"),
    [
        ("TensorRT-LLM v1.2.0rc1", "tensorrt-llm-1.3"),
        ("TensorRT-LLM 1.3.0", "tensorrt-llm-1.3"),
        ("TensorRT-LLM v0.20 (PyTorch backend)", "tensorrt-llm-1.3"),
        ("TensorRT-LLM v0.17", "tensorrt-llm-0.13"),
        ("TensorRT-LLM v0.8.0", "tensorrt-llm"),
        ("TensorRT-LLM", "tensorrt-llm"),
        ("vLLM 0.16.0", "vllm-0.19"),
        ("vLLM 0.9.0", "vllm-0.9"),
        ("vLLM (CI performance job)", "vllm"),
    ],
)
def test_servers_have_the_profile_of_their_version(framework: str, stack: str) -> None:
    assert serving_software_of(TableRow("inference.csv", 2, {"framework": framework})).stack == stack


@pytest.mark.parametrize(
    "framework",
    ["TensorRT-LLM v2.0", "TensorRT-LLM v0.11", "TensorRT-LLM 10.8", "vLLM 0.3.1", "vLLM 0.40", "vLLM v9"],
)
def test_a_version_without_a_profile_is_refused(framework: str) -> None:
    with pytest.raises(InputError, match="this version of the software"):
        serving_software_of(TableRow("inference.csv", 2, {"framework": framework}))


def test_the_software_of_a_submission_is_looked_up() -> None:
    found = {filled(row).text("framework") for row in _packaged("training.csv") if row.family == "MLPERF"}
    assert found == {f"NeMo {version}" for version in ("23.04", "23.09", "24.04", "24.09", "25.04", "25.09")}


@pytest.mark.parametrize("framework", ["Megatron-LM", "Megatron-DeepSpeed"])
def test_dimensions_have_the_dropout_and_the_attention_of_their_framework(framework: str) -> None:
    """A model that columns describe says nothing of dropout, and without it attention would be flash."""
    cells = {"model": "", "layers": "24", "hidden": "2048", "heads": "16", "vocab": "51200", "framework": framework}
    plan = run_of(_row(**cells, id="MINE-1", tp="2", dp="4", global_batch_seqs="16")).plan
    assert (plan.attention, plan.dropout) == ("eager", True)


def test_transfers_between_stages_hide_where_nemo_interleaves() -> None:
    cells = {"pp": "4", "tp": "2", "dp": "8", "num_devices": "64", "global_batch_seqs": "64", "framework": "NeMo 24.09"}
    hidden = {vpp: run_of(_row(**cells, vpp=vpp, micro_batch_seqs="1")).plan.overlap_pp for vpp in ("1", "2")}
    assert hidden == {"1": 0.0, "2": 1.0}
    row = _row(**cells, vpp="", micro_batch_seqs="1")
    assert {(plan.vpp > 1, plan.overlap_pp) for plan in layout_of(row, model_of(row)).choices} == {
        (False, 0),
        (True, 1),
    }


def test_layers_whose_activations_the_host_keeps_are_weighed_by_their_number() -> None:
    """Megatron-Bridge's FSDP rows: 40 of 80 layers, so that the step is the mean of both kinds."""
    cells = {"model": "llama-2-7b", "hw_key": "h100-sxm", "num_devices": "8", "tp": "1", "dp": "8", "sharding": "FSDP"}
    cells |= {"micro_batch_seqs": "1", "global_batch_seqs": "8", "recompute": "none", "framework": "torchtitan"}

    def seconds(count: str) -> float:
        (found,) = cases(_row(**cells, offloaded_layers=count))
        assert isinstance(found, Case)
        return found.read(found.run())

    none, quarter, every = map(seconds, ("", "8", "32"))
    assert every > 1.01 * none
    assert quarter == pytest.approx(0.75 * none + 0.25 * every)
    row = _row(**cells, offloaded_layers="33")
    with pytest.raises(InputError, match="found 33, expected at most the 32 layers"):
        layout_of(row, model_of(row))


# --- sharding


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Megatron distributed optimizer (DDP)", {"zero": 1}),
        ("DDP", {"zero": 0}),
        ("FSDP2", {"zero": 3}),
        ("FULL_SHARD", {"zero": 3}),
        ("FSDP SHARD_GRAD_OP", {"zero": 2}),
        ("ZeRO-3, no model parallelism", {"zero": 3}),
        ("ZeRO-1 over all DP ranks", {"zero": 1}),
        ("ZeRO-1 group 8", {"zero": 1, "zero_shards": 8}),
        ("FSDP group 16 x DP 4", {"zero": 3, "zero_shards": 16}),
        ("", {}),
    ],
)
def test_a_text_says_what_is_sharded(text: str, found: dict[str, int]) -> None:
    assert sharding_of(_row(sharding=text), software_of(""), {"dp": 64, "cp": 1}) == found


@pytest.mark.parametrize("text", ["sharded", "model-parallel size (TP*PP) 96", "yes", "ZeRO"])
def test_a_text_that_is_not_known_is_refused_with_it(text: str) -> None:
    with pytest.raises(InputError, match="sharding: found"):
        run_of(_row(**SCATTERED, sharding=text))


def test_every_packaged_text_of_sharding_is_known() -> None:
    reasons = [item for row in _packaged(*TRAINED) for item in cases(row) if isinstance(item, LeftOut)]
    assert not [item.case for item in reasons if item.reason.startswith("sharding:")]


# --- FLOPs


@pytest.mark.parametrize(
    ("text", "family", "convention"),
    [
        ("model FLOPs without recompute (Megatron-Bridge flop counter)", "MINE", "model"),
        ("model FLOPs without recompute; causal attention halved; embedding excluded", "MINE", "causal"),
        ("model FLOPs (NVIDIA DGX-C formula), attention causal-halved; MFU", "MINE", "causal"),
        ("model FLOPs (NVIDIA DGX-C formula), attention not causal-halved; MFU", "MINE", "model"),
        ("MaxText counter, no recompute; before PR 1988 causal attention was not halved", "MINE", "model"),
        ("hardware FLOPs: 96*B*l*s*h^2; attention not causal-halved", "MINE", "hardware"),
        ("Megatron formula incl. full recompute (factor 4/3)", "MINE", "hardware"),
        ("", "MINE", "model"),
        ("", "SC21", "hardware"),
        ("model FLOPs", "SC21", "model"),
    ],
)
def test_a_row_says_how_its_flops_are_counted(text: str, family: str, convention: str) -> None:
    assert convention_of(_row(id=f"{family}-1", tflops_definition=text)) == convention


def test_flops_that_are_counted_otherwise_are_refused_where_they_are_compared() -> None:
    cells = {"tflops_definition": "as the vendor counts", "tflops_per_device": "150"}
    (found,) = cases(_row(**cells, step_time_s=""))
    assert isinstance(found, LeftOut)
    assert "tflops_definition: found 'as the vendor counts'" in found.reason
    assert isinstance(cases(_row(**cells))[0], Case)


def test_recomputation_counts_where_a_row_says_so() -> None:
    """The full recomputation of the paper's 22B model: one more forward pass, so 4/3 of what is counted without."""
    cells = {"step_time_s": "", "tflops_per_device": "150"}
    texts = ("model FLOPs", "hardware FLOPs")
    values = []
    for text in texts:
        (found,) = cases(_row(**cells, tflops_definition=text))
        assert isinstance(found, Case)
        values.append(found.read(found.run()))
    assert values[1] / values[0] == pytest.approx(4 / 3, rel=0.03)

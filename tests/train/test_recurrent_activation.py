"""Saved activations of the mixers of 2025 and 2026 against their training kernels: within 2 %, and to the last byte.

`benchmarks/saved_activations.py` counts what the modules and kernels of flash-linear-attention, mamba-ssm,
mlstm_kernels and transformers hand to `save_for_backward`. A row is of a mixer with the input that it reads, or of a
whole layer. What a row's module keeps in addition, and the formula leaves out, is named in its last column.

Left out, since no public code trains them as the formulas say: attention to selected keys, whose indexer transformers
runs without gradients and whose scores it stores, and lightning attention.
"""

from __future__ import annotations

import csv
from functools import lru_cache

import pytest
from support.forms import number
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.language.symbols import hidden_size
from symperf.formulas.memory.saved_activations import input_kept_bytes
from symperf.models.own_sizes import of_kind
from symperf.operations.shapes import Shapes
from symperf.train.memory.saved_activations import _core_kept, _mixer_kept, layer_activations

ROWS = list(csv.DictReader((GOLDEN_2026 / "activation.csv").read_text(encoding="utf-8").splitlines()))
PREDICTED_WITHIN = 0.02
VIEWS = ("Qwen3NextAttention with fused norms",)
"""Modules whose layouts keep tensors that no kernel needs; the first golden set has more of them."""


@lru_cache
def run_of(name: str, tokens: int) -> sf.Run:
    """One sequence on one device, with a flash kernel."""
    system = sf.System.load("h100-sxm")
    return sf.training(sf.Model.load(name), system, sf.Plan(micro_batch=1), batch=1, sequence=tokens)


def predicted(row: dict[str, str]) -> float:
    """Bytes of a token that the formula counts for a row."""
    tokens = int(row["tokens"])
    run = run_of(row["model"], tokens)
    kind, structure = run.model.architecture.kinds[int(row["kind"])], run.structure
    if row["part"] == "layer":
        return number(run, layer_activations(structure, kind)) / tokens
    shapes = Shapes.of(structure, kind)
    kept = _mixer_kept(structure, kind, shapes) + input_kept_bytes(shapes.tokens, hidden_size)
    if kind.mixer == "attention":
        kept += _core_kept(structure, shapes, shapes.length)
    return number(run, of_kind(kept, kind)) / tokens


def ids(row: dict[str, str]) -> str:
    return f"{row['model']} {row['module']}"


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_a_mixer_keeps_what_its_kernels_keep(row: dict[str, str]) -> None:
    assert predicted(row) + float(row["more_per_token"]) == float(row["bytes_per_token"])


@pytest.mark.parametrize("row", [row for row in ROWS if row["module"] not in VIEWS], ids=ids)
def test_the_formula_alone_is_within_two_per_cent(row: dict[str, str]) -> None:
    assert predicted(row) == pytest.approx(float(row["bytes_per_token"]), rel=PREDICTED_WITHIN)

"""Layers with sizes of their own: the formulas of the model, in other symbols."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sympy

import symperf as sf
from symperf.common.symbolic import replace_symbols
from symperf.formulas.language.symbols import SYMBOLS, head_dim, intermediate_size, tp
from symperf.formulas.language.symbols.entry import BY_FORMAT
from symperf.models import layer_counts
from symperf.models.architecture import UNIFORM, LayerKind
from symperf.models.description import count_kinds
from symperf.models.layouts import in_runs, with_sizes
from symperf.models.own_sizes import of_kind
from symperf.systems import kernel_constants

WIDE = LayerKind(
    "attention", "dense", "num_attention_dense_layers_2", own=(("intermediate_size", "intermediate_size_2"),)
)


def test_every_size_of_a_model_has_numbered_ones() -> None:
    entry = SYMBOLS["intermediate_size_12"]
    assert entry is SYMBOLS["intermediate_size_12"]
    assert (entry.name, entry.glyph, entry.group) == ("intermediate_size_12", "f_{12}", "model")
    assert entry.symbol.is_positive
    assert entry.sentence.endswith("the 12th such size.")
    assert "intermediate_size_12" not in list(SYMBOLS)


@pytest.mark.parametrize(
    "name", ["intermediate_size_1", "intermediate_size_02", "memory_bandwidth_2", "nothing_2", "x"]
)
def test_nothing_else_has(name: str) -> None:
    assert SYMBOLS.find(name) is None
    with pytest.raises(KeyError):
        SYMBOLS[name]


def test_what_formats_of_a_checkpoint_differ_in_has_numbered_ones() -> None:
    """The vocabulary, which imports nothing of the systems, names what they do; and no other symbol but sizes has."""
    assert BY_FORMAT == kernel_constants.BY_FORMAT
    assert SYMBOLS["matrix_rate_2"].sentence.endswith("in the 2nd format of the checkpoint.")
    numbered = {name for name in SYMBOLS if SYMBOLS.find(f"{name}_2") is not None}
    assert numbered == BY_FORMAT | {name for name, entry in SYMBOLS.items() if entry.group == "model"}


def test_a_kind_is_counted_in_its_own_sizes() -> None:
    architecture = sf.Model.load("llama-2-7b").architecture
    plain, own = (layer_counts.layer_parameters(architecture, kind) for kind in (UNIFORM, WIDE))
    assert own == plain.xreplace({intermediate_size: SYMBOLS["intermediate_size_2"].symbol}) != plain


def test_whatever_holds_expressions_is_told_in_them() -> None:
    two = SYMBOLS["intermediate_size_2"].symbol
    value: dict[str, Any] = {"a": [intermediate_size, (intermediate_size / tp, "text")], "b": head_dim}
    assert of_kind(value, WIDE) == {"a": [two, (two / tp, "text")], "b": head_dim}
    assert of_kind(value, UNIFORM) is value
    assert replace_symbols((sympy.S.One, None), {head_dim: tp}) == (sympy.S.One, None)


def test_layers_of_many_widths_have_one_kind_each_and_stay_in_order() -> None:
    sizes = {"intermediate_size": 10, "head_dim": 4}
    plain = LayerKind("attention", "dense")
    widths = (10, 20, 20, 10, 30, 20)
    runs = in_runs(with_sizes(plain, {"intermediate_size": width}, sizes) for width in widths)
    kinds, order = count_kinds(runs, sizes)
    assert order == ((0, 1), (1, 2), (0, 1), (2, 1), (1, 1))
    assert [kind.label for kind in kinds] == ["attention_dense", "attention_dense_2", "attention_dense_3"]
    assert [sizes[kind.count] for kind in kinds] == [2, 3, 1]
    assert [sizes[kind.size("intermediate_size")] for kind in kinds] == [10, 20, 30]
    assert str(kinds[1]) == "attention + MLP, sizes 2"
    assert replace(kinds[1], own=(), count="num_layers") == plain


@pytest.mark.parametrize("name", ["gemma-4-26b-a4b", "llama-4-scout", "t5-large", "jamba-v0.1", "llama-2-7b"])
def test_the_order_of_layers_adds_up_to_their_counts(name: str) -> None:
    model = sf.Model.load(name)
    found = [sum(count for place, count in model.layers if place == i) for i in range(len(model.architecture.kinds))]
    assert found == [model.sizes[kind.count] for kind in model.architecture.kinds]
    assert all(one != other for (one, _), (other, _) in zip(model.layers, model.layers[1:], strict=False))

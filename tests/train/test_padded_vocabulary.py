"""Vocabularies that are padded to a multiple on each device, as Megatron-LM pads them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.formulas.memory.parameters import padded_vocabulary_share

WORK: dict[str, Any] = {"batch": 32, "sequence": 1024}


@cache
def gpt2(multiple: int | None = None, tp: int = 1, **values: Any) -> sf.Run:
    plan = sf.Plan(tp=tp, attention="flash", dropout=False, vocab_multiple=multiple)
    return sf.training("gpt2", "a100-80gb-sxm", plan, **WORK, **values)


@given(st.integers(1, 300_000), st.integers(1, 512), st.integers(1, 16))
def test_rows_are_those_of_megatron(vocabulary: int, multiple: int, tp: int) -> None:
    """Its loop counts up from the vocabulary until the multiple times the tensor-parallel size divides it."""
    padded = vocabulary + -vocabulary % (multiple * tp)
    assert padded_vocabulary_share(vocabulary, multiple, tp) * tp == padded


@pytest.mark.parametrize("tp", [1, 4])
def test_a_padded_vocabulary_is_one_of_that_size(tp: int) -> None:
    """Time and memory of 50257 tokens padded to 128 rows a device are those of the padded vocabulary."""
    padded, whole = gpt2(128, tp), gpt2(None, tp, vocab_size=50257 + -50257 % (128 * tp))
    for name in ("time", "memory"):
        assert padded.value(name) == pytest.approx(whole.value(name), rel=1e-12)
    assert padded.memory_alone() == padded.value("memory") > gpt2(None, tp).value("memory")
    assert padded.value("model_flops") == gpt2(None, tp).value("model_flops")


def test_alignment_is_what_it_brings() -> None:
    """An aligned multiple makes the head fast, another one does not; and no warning is left."""
    plain, aligned, odd = gpt2(), gpt2(64), gpt2(100)
    assert gpt2(1).value("time") == plain.value("time")
    assert not gpt2(1, vocab_size=50304).structure.misaligned
    assert aligned.value("time") < 0.9 * plain.value("time") < odd.value("time")
    assert [any("aligned" in each for each in run.warnings) for run in (plain, aligned, odd)] == [True, False, True]


def test_a_profile_has_a_default_which_a_plan_overrides() -> None:
    """Megatron-LM's 128."""
    assert sf.Plan.under("megatron-core-2026", tp=2).vocab_multiple == 128
    assert sf.Plan.under("megatron-2021", vocab_multiple=64).vocab_multiple == 64
    assert sf.Plan.under("torchtitan-2026").vocab_multiple is None


def test_a_sweep_pads_as_a_run() -> None:
    """Over multiples, and over degrees with one."""
    swept = gpt2().sweep(vocab_multiple=[None, 64, 100])["time"].values
    assert list(swept) == pytest.approx([gpt2(each).value("time") for each in (None, 64, 100)])
    assert list(gpt2(128).sweep(tp=[1, 4])["time"].values) == pytest.approx(
        [gpt2(128, t).value("time") for t in (1, 4)]
    )


@pytest.mark.parametrize("value", ["0", "-8", "x", "1.5", "nan"])
def test_multiples_that_are_none_are_refused(refused: Any, value: str) -> None:
    """One line."""
    told = refused(
        ["train", "gpt2", "-s", "a100-80gb-sxm", "--batch", "8", "--sequence", "64", "--vocab-multiple", value]
    )
    assert "vocab" in told


def test_the_width_of_a_head_is_a_side_of_the_products_of_eager_attention_alone() -> None:
    """Queries of 12 elements are not aligned to 16 bytes: the products of one head are slower, those of all are not."""

    def run(attention: str, width: int) -> sf.Run:
        plan = sf.Plan(attention=attention, dropout=False)
        sizes = {"num_attention_heads": 768 // width, "num_key_value_heads": 768 // width, "head_dim": width}
        return sf.training("gpt2", "a100-80gb-sxm", plan, **WORK, vocab_size=50304, **sizes)

    def times(found: sf.Run) -> dict[str, float]:
        return {row.name: row.time_s for row in found.table()}

    odd, even = run("eager", 12), run("eager", 16)
    assert (odd.structure.misaligned, even.structure.misaligned) == (("head_dim",), ())
    aligned = times(odd.bind(alignment_efficiency=1.0))
    slower = {name for name, seconds in times(odd).items() if seconds > aligned[name] * (1 + 1e-9)}
    assert slower
    assert all("/core/" in name for name in slower)
    assert run("flash", 12).structure.misaligned == ()
    assert [any("aligned" in each for each in found.warnings) for found in (odd, even)] == [True, False]

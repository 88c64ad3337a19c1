"""Sequences that are packed with documents: sums over their lengths, laws, replicas that wait, and bad input."""

from __future__ import annotations

import bisect
import dataclasses
import json
import math
import random
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.formulas.kernels.documents import (
    attention_variation,
    packed_pairs,
    token_document_length,
    uneven_share,
)
from symperf.formulas.kernels.windows import causal_pairs, window_pairs
from symperf.formulas.language.symbols import document_length, sequence, sliding_window
from symperf.operations.schedule import Op, terms
from symperf.train.document_lengths import Documents, pack, read_lengths, uniform
from symperf.train.step.step import TrainingStep

if TYPE_CHECKING:
    from pathlib import Path

S = 4096
TRAIN = ["train", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--sequence", str(S)]
laws = st.dictionaries(st.integers(1, 64), st.integers(1, 20), min_size=1, max_size=12)


@cache
def step(**values: Any) -> sf.Run:
    plan = {name: values.pop(name) for name in ("dp", "pp", "cp", "tp", "attention") if name in values}
    work = {"batch": values.pop("batch", 16), "sequence": values.pop("sequence", S)}
    return sf.training(values.pop("model", "llama-2-7b"), "h100-sxm", sf.Plan(**plan), **work, **values)


@given(laws)
def test_moments_are_those_of_the_formulas(law: dict[int, int]) -> None:
    """`token_document_length` and `attention_variation` of the sums over documents."""
    found, number = Documents(law, 64), sum(law.values())
    mean = Fraction(sum(n * length for length, n in law.items()), number)
    squared = Fraction(sum(n * length**2 for length, n in law.items()), number)
    assert found.token_length == pytest.approx(float(token_document_length(mean, squared)))
    ratio = squared / mean + 1
    excess = sum(n * (length * (length + 1) - ratio * length) ** 2 for length, n in law.items()) / number
    assert found.squared_excess == pytest.approx(float(excess), abs=1e-9)
    tokens = found.useful_share * 64
    expected = attention_variation(found.squared_excess, found.token_length, found.mean, tokens)
    assert found.variation == pytest.approx(float(expected))
    assert mean <= squared / mean <= max(law)


@given(laws, st.integers(1, 70))
def test_pairs_are_those_of_the_documents(law: dict[int, int], window: int) -> None:
    """Causal ones exactly, those of a window at most, exactly where documents are alike."""
    tokens = sum(n * length for length, n in law.items())
    length = Fraction(sum(n * length**2 for length, n in law.items()), tokens)
    causal = sum(n * Fraction(length * (length + 1), 2) for length, n in law.items())
    assert packed_pairs(tokens, length, causal_pairs(length)) == causal
    seen = sum(n * Fraction(str(window_pairs(length, window))) for length, n in law.items())
    closed = Fraction(str(packed_pairs(tokens, length, window_pairs(length, window))))
    assert closed >= seen
    assert closed == seen or len(law) > 1


@given(laws, st.integers(64, 200))
def test_packing_is_best_fit_one_by_one(law: dict[int, int], sequence: int) -> None:
    """Against the plain algorithm; so the padding is at most that of sequences that are half empty."""
    free: list[int] = []
    for length in sorted((length for length, n in law.items() for _ in range(n)), reverse=True):
        at = bisect.bisect_left(free, length)
        bisect.insort(free, (free.pop(at) if at < len(free) else sequence) - length)
    assert pack(law, sequence) == len(free)
    assert 0.5 < Documents(law, sequence).useful_share <= 1 + 1e-9


def test_a_step_with_documents_is_the_one_without_where_each_fills_a_sequence() -> None:
    """And shorter ones make it faster, down to no attention between tokens; tokens a second say the same."""
    times = [step(document_length=float(length)).value("time") for length in (1, 64, S)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(step().value("time"), rel=1e-12)
    flash = "layer/attention/flash/forward"
    assert step(document_length=1.0).value(f"term/{flash}/flops") == pytest.approx(
        step().value(f"term/{flash}/flops") * 2 / (S + 1)
    )


def test_model_flops_count_every_pair_of_a_document() -> None:
    """4 b s l_doc h a layer forward, three times that with gradients."""
    whole, short = step(), step(document_length=512.0)
    pairs = 3 * 4 * 16 * S * (S - 512) * 4096 * 32
    assert whole.value("model_flops") - short.value("model_flops") == pytest.approx(pairs, rel=1e-9)
    assert short.value("mfu") < whole.value("mfu")


@pytest.mark.parametrize("model", ["gemma-2-9b", "deepseek-v2-lite", "bamba-9b"])
def test_other_mixers_know_documents(model: str) -> None:
    """Windows, latent attention, and attention between recurrences: as without where a document fills a sequence."""
    plain = step(model=model).structure
    known = terms(TrainingStep(plain).forward)
    found = terms(TrainingStep(dataclasses.replace(plain, documents=True)).forward)
    kernels = [path for path in known if "/flash/" in path]
    assert kernels
    for path in kernels:
        one, other = known[path], found[path]
        assert isinstance(one, Op)
        assert isinstance(other, Op)
        assert other.demand.flops.has(document_length)
        difference = other.demand.flops.xreplace({document_length: sequence}) - one.demand.flops
        assert difference.xreplace({sliding_window: sympy.Integer(100), sequence: sympy.Integer(S)}).expand() == 0


def attention_of(draw: random.Random, sequences: int, sequence: int) -> list[float]:
    """Pairs of sequences filled in the order in which documents come."""
    found, tokens, pairs = [], 0, 0.0
    while len(found) < sequences:
        length = draw.randint(200, 3800)
        if tokens + length > sequence:
            found.append(pairs)
            tokens, pairs = 0, 0.0
        tokens, pairs = tokens + length, pairs + length * (length + 1) / 2
    return found


def test_replicas_wait_for_the_one_with_the_most_attention() -> None:
    """Drawn documents wait for 0.4 to 1.1 of the closed form: a bound of the mean, 0.48 of which two replicas reach."""
    draw, sequence, each = random.Random(0), 32768, 4
    documents = Documents(uniform(2000, 0.9, sequence), sequence)
    for replicas in (2, 8, 32):
        steps = 40
        work = attention_of(draw, steps * replicas * each, sequence)
        excess = []
        for k in range(steps):
            own = [sum(work[(k * replicas + r) * each :][:each]) for r in range(replicas)]
            excess.append(max(own) / (sum(own) / replicas) - 1)
        bound = float(uneven_share(documents.variation, each, replicas))
        assert 0.4 * bound < sum(excess) / steps < 1.1 * bound


def test_the_slowest_devices_make_a_step_longer() -> None:
    """With replicas, stages and parts of sequences; never by more than one document in each sequence would."""
    shape: dict[str, Any] = {"dp": 4, "pp": 2, "cp": 2, "batch": 32, "sequence": 32768, "document_length": 8000.0}
    alike = step(**shape).value("time")
    uneven = step(**shape, document_variation=0.3).value("time")
    assert alike < uneven < step(**shape, document_variation=0.3, shard_variation=0.3).value("time")
    most = step(**shape, document_variation=1e5, shard_variation=1e5).value("time")
    assert most < step(**shape | {"document_length": 32768.0}).value("time") * 3
    alone = {"document_length": 1000.0, "batch": 1}
    assert step(**alone, document_variation=0.5).value("time") == step(**alone).value("time")


def test_padded_documents_take_the_time_of_whole_sequences(call: Any, tmp_path: Path) -> None:
    """What is useful of it is less; packed, the same documents take fewer steps."""
    path = tmp_path / "lengths.txt"
    path.write_text("512,30\n1024\n\n2048,4\n", encoding="utf-8")
    assert read_lengths(path, S) == {512: 30, 1024: 1, 2048: 4}

    def told(*more: str) -> Any:
        done = call([*TRAIN, *more, "--json"])
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)

    whole, packed = told(), told("--lengths", str(path))
    padded = told("--lengths", str(path), "--no-packing")
    assert whole["documents"] is None
    assert padded["time_s"] == whole["time_s"] > packed["time_s"]
    mean = (30 * 512 + 1024 + 4 * 2048) / 35
    assert padded["documents"]["useful_share"] == pytest.approx(mean / S)
    assert padded["documents"]["documents_per_step"] == 8
    assert packed["documents"]["mean_length"] == pytest.approx(mean)
    assert packed["documents"]["documents_per_step"] == pytest.approx(8 * S / mean, rel=0.02)
    law = told("--length-mean", "1000", "--length-spread", "0.5")["documents"]
    assert law["token_length"] == pytest.approx(1000 * (1 + 0.25 / 3), rel=1e-3)
    assert "no padding" in call([*TRAIN, "--lengths", str(path)]).out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("512\nabc\n", "line 2: found 'abc', expected tokens of a document, 1 to the 4096"),
        ("-5\n", "line 1: found '-5'"),
        ("0", "line 1: found '0'"),
        ("nan\n", "line 1: found 'nan'"),
        ("inf", "line 1: found 'inf'"),
        ("1.5", "line 1: found '1.5'"),
        ("1,2,3", "line 1: found '1,2,3'"),
        ("10,0", "line 1: found '10,0'"),
        ("4097", "line 1: found a document of 4097 tokens, expected at most the 4096 of a sequence"),
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("9" * 500, "line 1: is longer than 200 bytes"),
        ("\udcff", "line 1: found"),
    ],
)
def test_lengths_that_are_none_are_refused(refused: Any, tmp_path: Path, text: str, says: str) -> None:
    """Which line, what was found, what was expected."""
    path = tmp_path / "lengths.txt"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert says in refused([*TRAIN, "--lengths", str(path)])


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--lengths", "none.txt"], "no such file"),
        (["--lengths", "."], "is a folder"),
        (["--lengths", "a\0b"], "lengths"),
        (["--length-mean", "nan"], "length_mean: found nan"),
        (["--length-mean", "0"], "length_mean: found 0"),
        (["--length-mean", "5000"], "length_mean: found 5000, expected 1 to the 4096"),
        (["--length-mean", "3000", "--length-spread", "0.5"], "documents of up to 4500 tokens"),
        (["--length-mean", "30", "--length-spread", "1"], "length_spread: found 1"),
        (["--length-spread", "0.5"], "--length-mean only"),
        (["--no-packing"], "found neither"),
        (["--shard-documents"], "found neither"),
        (["--lengths", "x", "--length-mean", "5"], "expected one of them"),
        (["--set", "document_length=5000"], "document_length: found 5000, expected at most the 4096"),
        (["--set", "document_variation=0.5"], "with document_length only"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(refused: Any, flags: list[str], says: str) -> None:
    """One line that says which."""
    assert says in refused([*TRAIN, *flags])


@pytest.mark.parametrize("model", ["t5-base", "deepseek-v4-flash", "vit-base-p16-224"])
def test_models_whose_documents_are_not_known_are_refused(model: str) -> None:
    """Encoders before decoders, selected keys, images."""
    with pytest.raises(sf.InputError, match="document_length"):
        sf.training(model, "h100-sxm", sf.Plan(), batch=8, sequence=197, document_length=50.0)


def test_eager_attention_computes_every_pair() -> None:
    """So that documents save nothing, which is told."""
    eager = {"attention": "eager", "batch": 1, "sequence": 512}
    run = step(**eager, document_length=64.0)
    assert run.value("time") == step(**eager).value("time")
    assert any("eager attention" in each for each in run.warnings)


def test_a_law_of_many_lengths_is_drawn_evenly() -> None:
    """Its moments stay those of a uniform law."""
    law = uniform(500_000, 0.9, 1_000_000)
    assert len(law) <= 65_536
    found = Documents(law, 1_000_000)
    assert found.mean == pytest.approx(500_000, rel=1e-3)
    assert found.token_length == pytest.approx(500_000 * (1 + 0.81 / 3), rel=1e-3)
    assert math.isfinite(found.variation)

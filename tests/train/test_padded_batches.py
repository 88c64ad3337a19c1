"""Documents padded to the longest of their micro-batch: enumeration of all draws, laws, the verb, and bad input."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.train.document_lengths import uniform
from symperf.train.padded_batches import PaddedBatches

if TYPE_CHECKING:
    from pathlib import Path

S = 4096
TRAIN = ["train", "llama-2-7b", "-s", "h100-sxm", "--dp", "4", "--micro-batch", "2", "--batch", "32"]
WHOLE = [*TRAIN, "--sequence", str(S)]
laws = st.dictionaries(st.integers(1, 64), st.integers(1, 20), min_size=1, max_size=3)
few = st.integers(1, 3)


def enumerated(law: dict[int, int], micro: int, number: int, replicas: int) -> tuple[Fraction, Fraction]:
    """Means of the widest of a micro-batch, and of the largest sum of a replica, over every draw of documents."""
    documents = sum(law.values())
    widths: dict[int, Fraction] = {}
    for draw in itertools.product(law.items(), repeat=micro):
        part = Fraction(math.prod(count for _, count in draw), documents**micro)
        width = max(length for length, _ in draw)
        widths[width] = widths.get(width, Fraction(0)) + part
    sums: dict[int, Fraction] = {}
    for drawn in itertools.product(widths.items(), repeat=number):
        total = sum(width for width, _ in drawn)
        sums[total] = sums.get(total, Fraction(0)) + math.prod((part for _, part in drawn), start=Fraction(1))
    slowest = sum(
        max(total for total, _ in each) * math.prod((part for _, part in each), start=Fraction(1))
        for each in itertools.product(sums.items(), repeat=replicas)
    )
    return sum((width * part for width, part in widths.items()), Fraction(0)), Fraction(slowest) / number


@given(laws, few, few, few)
def test_widths_are_those_of_every_draw(law: dict[int, int], micro: int, number: int, replicas: int) -> None:
    """The mean width of a micro-batch, and of the replica that the step waits for."""
    found = PaddedBatches(law, 64, micro_batch=micro, micro_batches=number, replicas=replicas)
    mean, slowest = enumerated(law, micro, number, replicas)
    assert found.mean_width == pytest.approx(float(mean), rel=1e-12)
    assert found.slowest_width == pytest.approx(float(slowest), rel=1e-9)
    assert found.useful_share == pytest.approx(float(found.mean / mean))


def test_more_micro_batches_than_sums_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the slowest has above the mean is as if all were, and of as many as a batch may have it needs no room."""

    def above(number: int) -> float:
        found = PaddedBatches({32: 1, 64: 1}, 64, micro_batches=number, replicas=4)
        return found.slowest_width - found.mean_width

    every = above(4096)
    monkeypatch.setattr("symperf.train.padded_batches.MOST_SUMS", 512)
    assert above(4096) == pytest.approx(every, rel=0.01)
    assert above(10**9) == pytest.approx(every * math.sqrt(4096 / 10**9), rel=0.01)


@given(laws, st.integers(1, 64), st.integers(1, 64), st.integers(1, 4096))
def test_widths_are_between_the_mean_and_the_longest(law: dict[int, int], micro: int, number: int, d: int) -> None:
    """More documents a micro-batch, and more replicas, are wider; more micro-batches are more alike."""

    def width(**more: int) -> float:
        sizes: dict[str, Any] = {"micro_batch": micro, "micro_batches": number, "replicas": d} | more
        return dataclasses.replace(PaddedBatches(law, 64), **sizes).slowest_width

    slack = 1e-9
    assert PaddedBatches(law, 64).mean <= width() + slack
    assert width() <= max(law) + slack
    assert width(micro_batch=1) <= width() + slack
    assert width() <= width(replicas=2 * d) + slack
    assert width(micro_batches=2 * number) <= width() + slack


def test_a_uniform_law_has_the_mean_of_its_order_statistic() -> None:
    """(1 - r) + 2 r b / (b + 1) times the mean, of a law that is continuous."""
    law = uniform(20_000, 0.5, 40_000)
    for micro in (1, 2, 8):
        expected = 20_000 * (0.5 + micro / (micro + 1))
        assert PaddedBatches(law, 40_000, micro_batch=micro).mean_width == pytest.approx(expected, rel=1e-4)


def test_long_documents_lie_on_a_grid() -> None:
    """Widths that are dealt to a grid keep their mean, and the slowest of replicas is that of single tokens nearly."""
    law = {1: 5, 1000: 4, 40_961: 1}
    found = PaddedBatches(law, 65_536, micro_batch=2, micro_batches=3, replicas=3)
    assert found.slowest_width == pytest.approx(float(enumerated(law, 2, 3, 3)[1]), rel=1e-3)


def test_a_step_is_as_wide_as_its_longest_documents(call: Any, tmp_path: Path) -> None:
    """Its time is that of sequences of this width; it says what is padding, and what the longest needs."""
    path = tmp_path / "lengths.txt"
    path.write_text("512,30\n1024\n\n2048,4\n", encoding="utf-8")

    def told(*more: str) -> Any:
        done = call([*WHOLE, "--lengths", str(path), *more, "--json"])
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)

    padded, fixed = told("--pad-to-longest"), told("--no-packing")
    found = padded["documents"]
    law = PaddedBatches({512: 30, 1024: 1, 2048: 4}, S, micro_batch=2, micro_batches=4, replicas=4)
    assert (found["packed"], found["documents_per_step"]) == (False, 32)
    assert found["mean_width"] == pytest.approx(law.mean_width)
    assert found["useful_share"] == pytest.approx(law.mean / law.mean_width)
    plan = sf.Plan(dp=4, micro_batch=2)
    run = sf.training("llama-2-7b", "h100-sxm", plan, batch=32, sequence=round(law.slowest_width))
    assert padded["time_s"] == pytest.approx(run.value("time"))
    assert padded["time_s"] < fixed["time_s"]
    assert found["useful_tokens_per_s"] == pytest.approx(32 * law.mean / run.value("time"))
    assert 0 < found["waited_s"] < padded["time_s"]
    longest = sf.training("llama-2-7b", "h100-sxm", plan, batch=32, sequence=2048)
    assert found["longest_reserved_bytes"] == pytest.approx(longest.value("reserved"))
    assert found["longest_fits"] is longest.fits
    shown = call([*WHOLE, "--lengths", str(path), "--pad-to-longest"]).out
    assert "padding to the longest of its micro-batch" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--pad-to-longest"], "--pad-to-longest means something with --lengths or --length-mean only, found neither"),
        (["--length-mean", "500", "--pad-to-longest", "--packing"], "two ways of padding, expected one of them"),
        (["--length-mean", "500", "--pad-to-longest", "--shard-documents"], "found --pad-to-longest"),
        (["--length-mean", "500", "--pad-to-longest", "--method", "dpo"], "not modelled for --method dpo"),
        (["--length-mean", "500", "--pad-to-longest", "--batch", "30"], "batch"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(refused: Any, flags: list[str], says: str) -> None:
    """One line that says which."""
    assert says in refused([*WHOLE, *flags])

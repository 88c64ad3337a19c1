"""Two registered formulas against each other, and what else the textbooks' questions ask with."""

from __future__ import annotations

import json
import math

import pytest

import symperf as sf
from symperf.cli import main

A, B = "ring_all_reduce_time", "tree_all_reduce_time"
RING = {"ranks": 8, "link_bandwidth": "100 GB/s", "link_latency": "5 us", "half_bytes": 0}


def test_a_ring_passes_a_tree_where_the_derivation_says() -> None:
    """n = q (q - 1 - log2 q) alpha BW, as a number and in symbols; along each symbol the same point."""
    found = sf.cross_formulas(A, B, "message_bytes", **RING)
    size = 8 * (8 - 1 - 3) * 5e-6 * 100e9
    assert found.crossings == (pytest.approx(size, rel=1e-12),)
    assert found.smaller == ("tree_all_reduce_time", "ring_all_reduce_time")
    form = found.closed_forms[0]
    at = {"ranks": 8.0, "link_bandwidth": 1e11, "link_latency": 5e-6, "half_bytes": 0.0}
    assert float(form.evalf(subs={each: at[each.name] for each in form.free_symbols})) == pytest.approx(size, rel=1e-12)
    values = {**RING, "message_bytes": size}
    del values["link_latency"]
    other = sf.cross_formulas(A, B, "link_latency", **values)
    assert other.crossings == (pytest.approx(5e-6, rel=1e-12),)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["always"] is None
    assert told["exact"]
    assert "16 MB" in found.sentence
    found.plot()


def test_a_formula_may_always_be_the_smaller() -> None:
    values = {"ranks": 8, "link_bandwidth": 1e11}
    less, more = "all_reduce_lower_bound_time", "ring_all_reduce_time"
    found = sf.cross_formulas(more, less, "message_bytes", 1, **values | {"link_latency": 5e-6, "half_bytes": 0})
    assert found.to_dict()["always"] == less
    assert found.sentence == f"{less} is less than {more} at every message_bytes."


OVER_RANKS = (A, "--against", B, "--over", "ranks")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["ring_all_reduce_tim", "--against", B, "--over", "ranks"], "did you mean ring_all_reduce_time"),
        (OVER_RANKS, "needs a value of half_bytes"),
        ([A, "--against", B], "--over a symbol"),
        (["--against", B, "--over", "ranks"], "--against needs a formula's name"),
        ([A, "--against", A, "--over", "ranks"], "expected two formulas"),
        ([*OVER_RANKS, "--set", "link_latency=5 GB"], "link_latency: found '5 GB'"),
        ([*OVER_RANKS, "--low", "8", "--high", "2"], "the range from 8 to 2"),
    ],
)
def test_bad_comparisons_are_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formulas", *words]) == 2
    told = capsys.readouterr()
    assert line in told.err
    assert told.err.count("\n") == 1
    assert not told.out


def test_folders_add_up_in_seconds_flops_and_bytes() -> None:
    """A sum is the sum of the values of its parts; FLOPs are those of the breakdown, shares those of the time."""
    run = sf.training("llama-2-7b", "h100-sxm", sf.Plan(dp=8), batch=8, sequence=512)
    parts = ("layer/mlp", "layer/attention/qkv", "optimizer/adam")
    assert run.value(" + ".join(parts)) == pytest.approx(
        run.value(parts[0]) + run.value(parts[1]) + run.value(parts[2]), rel=1e-12
    )
    rows = [row for row in run.table() if row.name.startswith("layer/mlp/")]
    assert run.value("flops/layer/mlp") == pytest.approx(math.fsum(row.flops for row in rows), rel=1e-12)
    assert run.asymptotics("sequence", "flops/layer/mlp").main.exponent == 1
    gpt = sf.training("gpt-22b", "a100-80gb-sxm", sf.Plan(tp=4, pp=4), batch=16, sequence=512)
    found = gpt.solve("batch", **{"share of pipeline/bubble": 0.1})
    row = next(row for row in gpt.bind(batch=int(found.value)).table() if row.name == "pipeline/bubble")
    assert row.share <= 0.1
    with pytest.raises(sf.InputError, match="expected the share of"):
        gpt.solve("batch", **{"share of bubble": 0.1})

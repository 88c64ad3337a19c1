"""All-reduces of a serving software's own: goldens, laws, the constants against measurements, and what uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calibration_scripts import script
from support.oracle import evaluate

import symperf as sf
from symperf.formulas import collectives as c
from symperf.formulas.language.symbols import SYMBOLS
from symperf.infer.stack import CATALOGUE, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BYTES, RANKS = st.floats(1, 1e9), st.sampled_from([1, 2, 4, 8])
LINK, START, LIMIT = 300e9 * 0.67, 5e-6, 2**23


@pytest.fixture(scope="module")
def peer() -> Iterator[Any]:
    """The script that fits the constants."""
    with script("peer") as found:
        yield found


def system() -> dict[Any, float]:
    values = {
        "scale_up_bandwidth": 300e9,
        "peer_efficiency": 0.67,
        "peer_latency": START,
        "own_limit_bytes": LIMIT,
    }
    return {SYMBOLS[name].symbol: value for name, value in values.items()}


@pytest.mark.parametrize(
    ("size", "ranks", "seconds"),
    [
        (0, 8, START),
        (8192, 8, START + 7 * 8192 / LINK),
        (2**20, 2, START + 2**20 / LINK),
        (2**22, 8, 2 * START + 2 * 7 / 8 * 2**22 / LINK),
        (2**22, 1, 0),
    ],
)
def test_one_shot_or_two(size: int, ranks: int, seconds: float) -> None:
    """Whole buffers of small messages, parts of large ones; two ranks read one buffer either way."""
    assert float(evaluate(c.peer_all_reduce_time(size, ranks), system())) == pytest.approx(seconds, rel=1e-12)


@given(st.sampled_from([4, 8]))
def test_two_shots_win_from_their_crossover_on(ranks: int) -> None:
    """(q - 1) n / BW = alpha + 2 (q - 1)/q n / BW at n = alpha BW q / ((q - 1) (q - 2))."""
    crossover = START * LINK * ranks / ((ranks - 1) * (ranks - 2))
    one, two = (
        [float(form(size, ranks, LINK, START)) for size in (0.99 * crossover, crossover, 1.01 * crossover)]
        for form in (c.one_shot_all_reduce_time, c.two_shot_all_reduce_time)
    )
    assert one[0] < two[0]
    assert one[1] == pytest.approx(two[1], rel=1e-12)
    assert one[2] > two[2]


@given(BYTES, RANKS, st.floats(1e-7, 1e-2), st.sampled_from([1, 2]))
def test_software_leaves_to_the_library_what_that_does_faster(
    size: float, ranks: int, library: float, domains: int
) -> None:
    found = float(evaluate(c.own_all_reduce_time(library, size, ranks, domains), system()))
    own = float(evaluate(c.peer_all_reduce_time(size, ranks), system()))
    assert found == pytest.approx(min(library, own) if domains == 1 and size <= LIMIT else library, rel=1e-12)


@pytest.mark.parametrize("part", ["A100-80GB-SXM4", "H100-80GB-SXM5", "H200-SXM5", "B200-SXM", "B300-SXM"])
def test_constants_are_those_of_the_fit_and_hold_for_ranks_that_were_not_fitted(peer: Any, part: str) -> None:
    found = sf.System.load(part).quantities
    latency, efficiency = peer.fit(part, peer.times(part))
    assert found["peer_latency"].value == pytest.approx(latency, rel=0.01)
    assert found["peer_efficiency"].value == pytest.approx(efficiency, rel=0.01)
    assert found["peer_latency"].low < latency < found["peer_latency"].high
    assert found["peer_efficiency"].low < efficiency < found["peer_efficiency"].high
    assert peer.held_out(part) <= 0.10


def step(stack: str, tp: int, system: str = "h100-sxm", **how: float) -> Any:
    plan = sf.Plan(tp=tp)
    return sf.inference("llama-2-7b", system, plan, batch=4, prompt=128, generate=17, stack=stack, **how)


@pytest.mark.parametrize(
    ("system", "tp", "own"),
    [
        ("h100-sxm", 8, True),
        ("gb200-nvl72", 8, True),
        ("gb200-nvl72", 16, False),
        ("mi300x", 8, False),
        ("l40s", 4, False),
        ("rtx-4090", 2, False),
    ],
)
def test_only_measured_systems_and_the_software_s_groups_have_a_kernel(system: str, tp: int, own: bool) -> None:
    run = step("vllm", tp, system)
    assert run.structure.own_all_reduce is own
    assert ("peer_latency" in run.compiled.program.inputs) is own


def test_larger_messages_are_the_library_s() -> None:
    """A prefill of 4 x 512 tokens of 4096 features sums 16 MiB: the kernel's if the limit is no less."""
    asked: dict[str, Any] = {"batch": 4, "prompt": 512, "generate": 1, "stack": "vllm"}
    made = [
        sf.inference("llama-2-7b", "a100-80gb-sxm", sf.Plan(tp=2), **asked, own_limit_bytes=limit)
        for limit in (2.0**24 - 1, 2.0**24, 1.0)
    ]
    below, at, none = (
        next(op.time_s for op in run.operations() if (op.name, op.phase) == ("layer/mlp/reduce", "prefill"))
        for run in made
    )
    assert below == none
    assert at < below


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_only_all_reduces_of_software_with_a_kernel_of_its_own_change(tp: int, tmp_path: Path) -> None:
    text = (CATALOGUE / "vllm.toml").read_text(encoding="utf-8")
    path = tmp_path / "library.toml"
    path.write_text(text.replace("own_all_reduce = true", "own_all_reduce = false"), encoding="utf-8")
    own, library = step("vllm", tp), step(str(path), tp)
    for mine, theirs in zip(own.operations(), library.operations(), strict=True):
        if mine.name.endswith("/reduce"):
            assert mine.time_s < theirs.time_s if mine.phase == "decode" else mine.time_s <= theirs.time_s
        else:
            assert mine.time_s == theirs.time_s
    assert "peer_latency" not in library.compiled.program.inputs
    slow = step("vllm", tp, peer_latency=1e-2)
    assert slow.value("time") == pytest.approx(library.value("time"), rel=1e-12)


def test_a_group_of_one_sums_nothing() -> None:
    assert step("vllm", 1).value("time") == step("vllm", 1, peer_latency=1e-3).value("time")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("own_all_reduce = true", "own_all_reduce = 1", "collectives.own_all_reduce: found 1, expected true or false"),
        ("own_all_reduce = true", "own_allreduce = true", "unknown key 'own_allreduce'; did you mean own_all_reduce?"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, before: str, after: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((CATALOGUE / "vllm.toml").read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    with pytest.raises(sf.InputError) as error:
        Stack.load(path)
    assert says in str(error.value)

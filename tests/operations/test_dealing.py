"""Layers dealt to stages in order: closed forms against dealing them one by one, and the stages that decide."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import pytest
import sympy

from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.formulas.language.symbols import SYMBOLS, num_layers
from symperf.models.model import Model
from symperf.models.segments import segments
from symperf.operations.dealing import Dealing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from symperf.codegen.program import Program

KINDS = ("num_attention_dense_layers", "num_attention_experts_layers", "num_ssm_layers")
FORMS = [
    ("even", "1f1b"),
    ("even", "gpipe"),
    ("uneven", "1f1b"),
    ("late", "1f1b"),
    ("given", "1f1b"),
    ("even", "interleaved"),
    ("even", "dualpipe"),
    ("uneven", "dualpipe"),
]


def deal(kinds: Sequence[str], sizes: Sequence[int], schedule: str, p: int) -> list[list[float]]:
    """How many layers of each kind every stage has, dealt one by one; of two stages of a device the mean.

    Args:
        kinds: of the layers in order.
        sizes: layers of each chunk, in order; chunk j is on device j mod p.
        schedule: of the pipeline.
        p: stages.
    """
    held: list[list[str]] = [[] for _ in range(p)]
    at = 0
    for chunk, size in enumerate(sizes):
        held[chunk % p] += kinds[at : at + size]
        at += size
    assert at == len(kinds)
    if schedule == "dualpipe":
        return [[(held[i].count(k) + held[p - 1 - i].count(k)) / 2 for k in KINDS] for i in range(p)]
    return [[float(stage.count(k)) for k in KINDS] for stage in held]


@functools.cache
def program(stages: str, schedule: str, kinds: int) -> Program:
    """Layers of each kind on stage i, and the numbers of the stages that decide."""
    dealing = Dealing(tuple((name,) for name in KINDS[:kinds]), stages, schedule)
    outputs = {name: sympy.sympify(dealing.layers_of(SYMBOLS[name].symbol)) for name in KINDS[:kinds]}
    outputs["num_layers"] = sympy.sympify(dealing.layers_of(num_layers))
    return lower([], outputs | {f"at{k}": sympy.sympify(number) for k, number in enumerate(dealing.deciding)})


def plans(stages: str, schedule: str) -> Iterator[tuple[list[int], dict[str, float]]]:
    """Small pipelines of a form: the sizes of the chunks, and the symbols of the plan."""
    if stages == "given":
        for first, middle, last, p in itertools.product((1, 2, 3), (1, 2), (1, 3), (2, 3, 4)):
            sizes = [first, *[middle] * (p - 2), last]
            yield sizes, {"pp": p, "vpp": 1, "first_stage_layers": first, "last_stage_layers": last}
    elif stages in ("uneven", "late"):
        for layers, p in itertools.product(range(3, 12), (1, 2, 3, 4)):
            if p <= layers and not (schedule == "dualpipe" and p % 2):
                more, least = layers % p, layers // p
                sizes = [least + 1] * more + [least] * (p - more)
                yield late(layers, p) if stages == "late" else sizes, {"pp": p, "vpp": 1}
    else:
        for size, p, v in itertools.product((1, 2, 3), (1, 2, 3, 4), (2, 3) if schedule == "interleaved" else (1,)):
            if not (schedule == "dualpipe" and p % 2) and size * p * v > 2:
                yield [size] * (p * v), {"pp": p, "vpp": v}


def late(layers: int, p: int) -> list[int]:
    """Layers of each stage as vLLM deals them: one more for stages from the last but one backwards."""
    sizes = [layers // p] * p
    for k in range(2, layers % p + 2):
        sizes[-k] += 1
    return sizes


def cases(stages: str, schedule: str, kinds: int) -> Iterator[tuple[list[list[float]], dict[str, float]]]:
    """What every stage holds, and the symbols, of each small pipeline and each place where kinds change."""
    for sizes, values in plans(stages, schedule):
        layers = sum(sizes)
        for ends in itertools.combinations(range(1, layers), kinds - 1):
            counts = [b - a for a, b in itertools.pairwise([0, *ends, layers])]
            order = [name for name, count in zip(KINDS, counts, strict=False) for _ in range(count)]
            symbols = {name: float(count) for name, count in zip(KINDS, counts, strict=False)}
            yield deal(order, sizes, schedule, int(values["pp"])), {"num_layers": float(layers), **symbols, **values}


@pytest.mark.parametrize("kinds", [2, 3])
@pytest.mark.parametrize(("stages", "schedule"), FORMS)
def test_stages_hold_what_is_dealt_to_them(stages: str, schedule: str, kinds: int) -> None:
    """Each kind on each stage; and some stage that decides has as much of each as any, and no fewer micro-batches.

    Stages that are dealt late are those of an inference, whose sequences are on all of them.
    """
    made = program(stages, schedule, kinds)
    seen = 0
    for held, values in cases(stages, schedule, kinds):
        numbers: set[float] = set()
        for number, wanted in enumerate(held, 1):
            values["stage_number"] = float(number)
            inputs = {name: float(values[name]) for name in made.inputs}
            found = run(made, inputs, floats())
            by_name: dict[str, Any] = {name: found[at] for name, at in made.outputs.items()}
            assert [by_name[name] for name in KINDS[:kinds]] == pytest.approx(wanted[:kinds], abs=1e-9), values
            assert by_name["num_layers"] == pytest.approx(sum(wanted), abs=1e-9), values
            numbers = {by_name[name] for name in by_name if name.startswith("at")}
            seen += 1
        assert all(1 <= number <= len(held) and number % 1 == 0 for number in numbers), values
        for number, wanted in enumerate(held, 1):
            above = [
                deciding
                for deciding in numbers
                if (deciding <= number or schedule == "dualpipe" or stages == "late")
                and all(a >= b for a, b in zip(held[int(deciding) - 1], wanted, strict=True))
            ]
            assert above, (values, number, numbers, held)
    assert seen > 50


@pytest.mark.parametrize(
    ("runs", "wanted"),
    [
        ([(0, 32)], ((0,),)),
        ([(0, 3), (1, 58)], ((0,), (1,))),
        ([(0, 1), (1, 1)] * 12, ((0, 1),)),
        ([(0, 1), (1, 2), (2, 1), (1, 2), (2, 1)], ((0,), (1, 2))),
        ([(0, 1), (1, 1), (0, 1), (2, 4)], ((0, 1), (2,))),
    ],
)
def test_kinds_that_interleave_are_one_segment(runs: Any, wanted: Any) -> None:
    assert segments(runs) == wanted


def test_segments_of_models() -> None:
    """Dense first layers are a segment; kinds that alternate are none, nor are an encoder and a decoder."""
    assert [len(names) for names in Model.load("deepseek-v3").segments] == [1, 1]
    assert all(not Model.load(name).segments for name in ("llama-2-7b", "gpt-oss-20b", "jamba-1.5-large", "t5-11b"))

"""Study: how the bottleneck of training and inference walks from compute to memory to interconnect to latency.

Run: python docs/studies/run.py walk
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from study import Row, Study, Tables, as_read
from technology_points import MEMORIES, NETWORKS, NODES, Point, l2_rows, ladder
from walk_page import blocks, draw_nodes, draw_walk
from walking import Question, crossings, floors, greedy, limits, path, row_of, rows

from symperf import Model, Plan, System, inference, training

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["TITLE", "blocks", "study"]

TITLE = "how the bottleneck walks from compute to memory to interconnect"
MODEL = "gpt3-175b"
SYSTEMS = ("a100-80gb-sxm", "h100-sxm")
FACTORS = tuple(2 ** (step / 4) for step in range(25))
"""Points of a leg of the walk, 1 to 64."""
COARSE_FACTORS = (1.0, 8.0, 64.0)
TRAINED = Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True, precision="bf16")
"""The plan of Korthikanti et al. 2022 for GPT-3 on 64 devices."""
RULES = ("share", "gain")
NAMES = ("training", "prefill", "decode", "decode 16")


def questions(system: str, names: Iterable[str] = NAMES, **values: float) -> list[Question]:
    """What is asked of GPT-3 175B with eight-way tensor parallelism on a system.

    Args:
        system: name in the catalogue.
        names: of the questions, of `NAMES`.
        values: other values of symbols.

    Training: 64 sequences of 2048 tokens on 64 devices. Inference in 16 bits on 8 devices without software's gaps: the
    prompt of 1848 tokens, and a token of the 200 generated after it, of one sequence and of 16.
    """
    model, on = Model.load(MODEL), System.load(system)

    def inferred(batch: int) -> Any:
        plan = Plan(tp=8, precision="fp16")
        return inference(model, on, plan, batch=batch, prompt=1848, generate=200, stack="none", **values)

    made = {
        "training": lambda: Question("training", training(model, on, TRAINED, batch=64, sequence=2048, **values)),
        "prefill": lambda: Question("prefill", inferred(1), "prefill"),
        "decode": lambda: Question("decode", inferred(1), "time_per_token"),
        "decode 16": lambda: Question("decode 16", inferred(16), "time_per_token"),
    }
    return [made[name]() for name in names]


def walk(asked: Iterable[Question], system: str, factors: Sequence[float] = FACTORS) -> list[Row]:
    """Points of the walk: a row each with the time, what binds, and the share of each resource."""
    return rows(asked, lambda question: path(question, factors), system=system)


def paths(asked: Iterable[Question], system: str) -> list[Row]:
    """Greedy paths by both rules, a row a doubling."""
    return [row for rule in RULES for row in rows(asked, lambda q, rule=rule: greedy(q, rule), system=system)]


def nodes(asked: Iterable[Question], points: Iterable[Point]) -> list[Row]:
    """A row a question and point of technology: names and rates, time, what binds, shares."""
    places = list(points)
    found = []
    for question in asked:
        for place in places:
            at = Question(question.name, question.run.bind(**place.values()), question.of)
            found.append({"question": question.name} | place.row() | row_of(at))
    return found


def corners(
    asked: Iterable[Question],
    memories: Sequence[str] = (MEMORIES[0], MEMORIES[-1]),
    networks: Sequence[tuple[str, str]] = (NETWORKS[0], NETWORKS[-1]),
) -> list[Row]:
    """What all nodes together bring, by memory and network: compute against time, first node over last."""
    found = []
    for question in asked:
        for memory in memories:
            for network in networks:
                ends = nodes([question], [Point(node, memory, network) for node in (NODES[0], NODES[-1])])
                row: Row = {name: ends[0][name] for name in ("question", "memory", "network")}
                row |= {"compute": ends[1]["matrix_rate"] / ends[0]["matrix_rate"]}
                row |= {"speed_up": ends[0]["time_s"] / ends[1]["time_s"]}
                found.append(row | {"first_bound": ends[0]["bound"], "last_bound": ends[1]["bound"]})
    return found


def tables(coarse: bool) -> Tables:
    """All rows of the study; of the coarse one a part of them."""
    names = ("training", "decode 16") if coarse else NAMES
    systems = SYSTEMS[:1] if coarse else SYSTEMS
    factors = COARSE_FACTORS if coarse else FACTORS
    found: Tables = {name: [] for name in ("walk", "crossings", "greedy", "limits", "floors")}
    for system in systems:
        asked = questions(system, names)
        found["walk"] += walk(asked, system, factors)
        found["crossings"] += rows(asked, crossings, system=system)
        found["greedy"] += paths(asked, system)
        found["limits"] += rows(asked, limits, system=system)
        found["floors"] += rows(asked, floors, system=system)
    base = questions(SYSTEMS[0], names)
    found["cache"] = l2_rows()
    found["nodes"] = nodes(base, ladder()[:: 4 if coarse else 1])
    found["corners"] = corners(base, MEMORIES[:1], NETWORKS[:1]) if coarse else corners(base)
    return found


def study(coarse: bool) -> Study:
    """The study; with `coarse` two questions on one system, with few points."""
    found = tables(coarse)
    figures = {"walk": lambda figure: draw_walk(figure, found["walk"], SYSTEMS[0])}
    figures["nodes"] = lambda figure: draw_nodes(figure, found["nodes"])
    return Study(found, {} if coarse else blocks(as_read(found)), figures)

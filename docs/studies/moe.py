"""Study: the same questions for a mixture of experts like DeepSeek-V3, and where its all-to-all binds.

Run: python docs/studies/run.py moe
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import memory as memory_study
from moe_page import blocks, draw_share, draw_walk
from speedup_factors import QUANTITIES, chain, mixed, shapley, spread, subsets
from study import Row, Study, Tables, as_read
from technology_points import NODES, Point
from walking import Question, crossings, greedy, limits, path, row_of, rows

from symperf import Model, Plan, System, inference, training
from symperf.codegen.interpret import adjoints, floats
from symperf.codegen.interpret import run as evaluate
from symperf.systems.memories import Memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from symperf.analysis.regimes import Regimes
    from symperf.evaluation.base_run import BaseRun

__all__ = ["TITLE", "blocks", "study"]

TITLE = "memory, bottlenecks, technology and inference of a mixture of experts like DeepSeek-V3"
MODEL = "deepseek-v3"
SYSTEM = "h800-sxm"
BASE: dict[str, Any] = {"pp": 16, "dp": 128, "ep": 64, "node_limit": 4, "uneven_stages": True, "zero": 1}
"""DeepSeek-V3 report (arXiv 2412.19437), sections 3.1 and 3.2, on 2048 H800."""
WORK = {"batch": 15360, "sequence": 4096, "num_multi_token_layers": 0}
"""The report's global batch and sequence, of the main model alone."""
PRECISIONS = ("bf16", "fp8")
SENT = {"fp8": {"dispatch_element_bytes": 1.03125}}
"""FP8 with an FP32 scale for each 128 values is sent to experts, BF16 comes back: report, section 3.3.3, and DeepEP."""
SCHEDULES = ("1f1b", "zero-bubble", "dualpipe")
NAMES = ("training bf16", "training fp8", "prefill", "decode")
SERVED = ("h800-sxm", "h200-sxm", "b200-sxm")
FIRST = "a100-80gb-sxm"
FASTER = ("h800-sxm", "h200-sxm", "b200-sxm", "gb200-nvl72")
"""What A100 is compared with."""
GROUPS = ("precision", *QUANTITIES)
"""Groups of a system's quantities, in the order of the path; the plan stays the published one."""
FACTORS = tuple(2 ** (step / 4) for step in range(25))
COARSE_FACTORS = (1.0, 8.0, 64.0)
MEMORIES = ("hbm2e", "hbm3e", "hbm4", "hbm6")
NETWORKS = tuple(itertools.product(("nvlink3", "nvlink4", "nvlink5"), ("hdr", "ndr", "xdr")))
LATENCY_MEMORIES = ("hbm2e", "hbm3", "hbm3e", "hbm4", "hbm4e", "hbm6")
SLOWEST = 1e9
"""Bytes a second from which on a bandwidth is sought."""
WIDEST = 1e5
TRANSFERS = ("/dispatch", "/combine")
"""What the paths of the all-to-all transfers of experts hold."""


@dataclass(frozen=True)
class Served:
    """An inference: what is asked, how it is laid out, and what is done.

    Attributes:
        of: the output that is the time.
        plan: fields of the plan.
        work: batch over all devices, prompt, tokens generated.
    """

    of: str
    plan: dict[str, Any]
    work: dict[str, int]


PREFILL = Served("prefill", {"dp": 32, "ep": 32}, {"batch": 128, "prompt": 4096, "generate": 2})
"""Groups of 32 devices, as DeepSeek serves prompts (open-infra-index, day 6), four prompts a device."""
DECODE = Served("time_per_token", {"dp": 128, "ep": 128}, {"batch": 128 * 24, "prompt": 4096, "generate": 256})
"""Groups of 128, the power of two next to DeepSeek's 144 with copies of experts; 24 sequences a device."""


def trained(precision: str, system: System | None = None, schedule: str = "dualpipe", recompute: str = "full") -> Any:
    """The training step of DeepSeek-V3 under its published plan."""
    plan = Plan(**BASE, schedule=schedule, recompute=recompute, precision=precision)
    return training(Model.load(MODEL), system or System.load(SYSTEM), plan, **WORK, **SENT.get(precision, {}))


def served(what: Served, system: str = SYSTEM, **values: float) -> Any:
    """An inference in FP8 on one device group, without software's gaps."""
    plan, values = Plan(**what.plan, precision="fp8"), SENT["fp8"] | values
    return inference(Model.load(MODEL), System.load(system), plan, **what.work, stack="none", **values)


def questions(names: Iterable[str] = NAMES) -> list[Question]:
    """The questions of the walk, on H800."""
    made = {
        "training bf16": lambda: Question("training bf16", trained("bf16")),
        "training fp8": lambda: Question("training fp8", trained("fp8")),
        "prefill": lambda: Question("prefill", served(PREFILL), "prefill"),
        "decode": lambda: Question("decode", served(DECODE), "time_per_token"),
    }
    return [made[name]() for name in names]


def responsible(run: BaseRun, words: Sequence[str], below: str = "") -> float:
    """Seconds of a training step that terms are responsible for, whose paths begin with `below` and hold a word.

    A term's seconds are its time times the derivative of the step time by it, as in `run.table()`.
    """
    program = run.compiled.program
    values = evaluate(program, {name: value for name, (value, _) in run.bound.items()}, floats())
    idle = {program.lets[term.path] for term in run.compiled.terms if term.idle}
    slopes = adjoints(program, values, program.outputs["time"], floats(), stop=idle)
    places = [program.lets[t.path] for t in run.compiled.terms if t.path.startswith(below) and _holds(t.path, words)]
    return math.fsum(values[place] * slopes.get(place, 0.0) for place in places)


def _holds(path_of_term: str, words: Sequence[str]) -> bool:
    return any(word in path_of_term for word in words)


def schedules(
    names: Sequence[str] = SCHEDULES,
    precisions: Sequence[str] = PRECISIONS,
    recompute: Sequence[str] = ("none", "full"),
) -> list[Row]:
    """One row a schedule, precision and recomputation: time, memory, and who is responsible.

    `ratio` is the work of the layers over their all-to-all, in seconds for which each is responsible: of a schedule
    without overlap, computation to communication.
    """
    found = []
    for name, precision, again in itertools.product(names, precisions, recompute):
        run = trained(precision, schedule=name, recompute=again)
        transfers, layers = responsible(run, TRANSFERS, "layer/"), responsible(run, ("",), "layer/")
        row: Row = {"schedule": name, "precision": precision, "recompute": again, "time_s": run.value("time")}
        row |= {"memory_GB": run.value("memory") / 1e9, "fits": run.fits, "all_to_all_s": transfers}
        row |= {"all_to_all": transfers / run.value("time"), "ratio": (layers - transfers) / transfers}
        found.append(row | {f"share_{name}": share for name, share in Question("", run).shares().items()})
    return found


def speedup(devices: Iterable[str] = FASTER) -> list[Row]:
    """One row a device and group: its factor in the speed-up from A100 in BF16 to the device in FP8, with one plan.

    As in the study of the speed-up: a factor along the path, the mean over all orders of the groups, and their range.
    Along the path and in the mean they multiply to the total.
    """
    found = []
    first = System.load(FIRST)
    for device in devices:
        second = System.load(device)
        corners = {taken: trained(_precision(taken), mixed(first, second, taken, "fp8")) for taken in subsets(GROUPS)}
        times = {taken: run.value("time") for taken, run in corners.items()}
        start, end = times[frozenset()], times[frozenset(GROUPS)]
        path_of, mean, ends = chain(times, GROUPS), shapley(times, GROUPS), spread(times, GROUPS)
        for group in GROUPS:
            row: Row = {"device": device, "group": group, "path": path_of[group], "mean": mean[group]}
            row |= {"least": ends[group][0], "largest": ends[group][1], "total": start / end}
            found.append(row | {"first_s": start, "time_s": end, "fits": corners[frozenset(GROUPS)].fits})
    return found


def _precision(taken: frozenset[str]) -> str:
    return "fp8" if "precision" in taken else "bf16"


# --- technology


def system_at(point: Point) -> System:
    """H800 with the logic, memory and networks of a point; FP8 at twice the rate of 16 bits."""
    values = point.values()
    system = System.load(SYSTEM).with_values(values, "bf16")
    return system.with_values({"matrix_rate": 2 * values["matrix_rate"]}, "fp8")


def grid(points: Iterable[Point], precisions: Sequence[str] = PRECISIONS) -> list[Row]:
    """A row a point and precision: step time, what binds, and the part that the all-to-all is responsible for."""
    found = []
    for precision, point in itertools.product(precisions, list(points)):
        run = trained(precision, system_at(point))
        row: Row = {"precision": precision} | point.row() | row_of(Question("", run))
        found.append(row | {"all_to_all": responsible(run, TRANSFERS) / row["time_s"]})
    return found


def needed(nodes: Iterable[str] = NODES, precisions: Sequence[str] = PRECISIONS) -> list[Row]:
    """The scale-out bandwidth from which on networks no longer have the largest share, exactly, by node.

    With HBM3e and NVLink 4. Where networks bind on several stretches, the end of the last.
    """
    found = []
    for precision, node in itertools.product(precisions, list(nodes)):
        point = Point(node, "hbm3e", ("nvlink4", "ndr"))
        run = trained(precision, system_at(point)).bind(scale_out_bandwidth=SLOWEST)
        stretch = Question("", run).along(("scale_out",), WIDEST)
        row: Row = {"precision": precision, "node": node, "matrix_rate": point.values()["matrix_rate"]}
        found.append(row | _freed(stretch[0] if stretch else None))
    return found


def _freed(regimes: Regimes | None) -> Row:
    """Where the last stretch ends on which networks bind, and what binds after it; nothing where none does."""
    row: Row = {"scale_out_bandwidth": None, "after": None, "view": regimes.view if regimes else None}
    stretches = regimes.bounds() if regimes else []
    for (_, end, before), (_, _, after) in itertools.pairwise(stretches):
        if before == "network":
            row |= {"scale_out_bandwidth": end, "after": after}
    return row


# --- inference


def bounds(systems: Iterable[str] = SERVED) -> list[Row]:
    """One row an operation of a layer with experts, and of the head: shape, time of one execution, bound."""
    found = []
    for system, (phase, what) in itertools.product(systems, (("prefill", PREFILL), ("decode", DECODE))):
        for op in served(what, system).operations():
            asked = op.name.startswith(("layer/latent_attention_experts/", "head/"))
            if op.phase == phase and asked and op.time_s > 0 and (op.n or _holds(op.name, (*TRANSFERS, "/flash"))):
                name = op.name.removeprefix("layer/latent_attention_experts/")
                row: Row = {"system": system, "phase": phase, "operation": name, "m": op.m, "n": op.n, "k": op.k}
                found.append(row | {"each_us": 1e6 * op.time_s / op.count, "bound": op.bound or ""})
    return found


def latency(names: Iterable[str] = LATENCY_MEMORIES) -> list[Row]:
    """One row a memory technology: prefill and a token of decoding, what binds, and the share of memory."""
    found = []
    for name in names:
        bandwidth = Memory.load(name).device_bandwidth
        row: Row = {"memory": name, "memory_bandwidth": bandwidth}
        for label, what in (("prefill", PREFILL), ("token", DECODE)):
            question = Question(label, served(what, memory_bandwidth=bandwidth), what.of)
            row |= {f"{label}_s": question.seconds, f"{label}_bound": question.bound}
            row[f"{label}_memory"] = question.shares()["memory"]
        found.append(row)
    return found


# --- the study


def tables(coarse: bool) -> Tables:
    """All rows of the study; of the coarse one a part of them."""
    asked = questions(NAMES[1::2] if coarse else NAMES)
    points = [Point(*each) for each in itertools.product(NODES, MEMORIES, NETWORKS)]
    chosen = PRECISIONS[1:] if coarse else PRECISIONS
    return {
        "memory": memory_study.memory([memory_study.DEEPSEEK], [("flash", False)]),
        "schedules": schedules(("dualpipe",), chosen, ("full",)) if coarse else schedules(),
        "speedup": speedup(FASTER[:1]) if coarse else speedup(),
        "walk": rows(asked, lambda q: path(q, COARSE_FACTORS if coarse else FACTORS), system=SYSTEM),
        "crossings": rows(asked, crossings, system=SYSTEM),
        "greedy": rows(asked, lambda q: greedy(q, "share"), system=SYSTEM),
        "limits": rows(asked, limits, system=SYSTEM),
        "grid": grid(points[:: 50 if coarse else 1], chosen),
        "needed": needed(NODES[::3], chosen) if coarse else needed(),
        "bounds": bounds(SERVED[:1]) if coarse else bounds(),
        "latency": latency(LATENCY_MEMORIES[::3]) if coarse else latency(),
    }


def study(coarse: bool) -> Study:
    """The study; with `coarse` some of the questions and points."""
    found = tables(coarse)
    figures = {"walk": lambda figure: draw_walk(figure, found["walk"], SYSTEM)}
    figures["grid"] = lambda figure: draw_share(figure, found["grid"])
    return Study(found, {} if coarse else blocks(as_read(found)), figures)

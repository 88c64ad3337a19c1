"""How much faster training is from A100 to GB200, as factors that multiply to the whole speed-up exactly.

Run: python docs/studies/run.py speedup [--check]

`speedup_factors.py` takes a speed-up apart, `speedup_page.py` writes the tables of the page.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))
from speedup_factors import GROUPS, HALF, Work, best, chain, corners, held, mixed, shapley, spread
from speedup_page import blocks, draw
from study import Study

from symperf import InputError, System

if TYPE_CHECKING:
    from collections.abc import Callable

    from speedup_factors import Corner, Step, Times
    from study import Row, Tables

TITLE = "the speed-up of training from A100 to GB200, and what it is due to"
FIRST = "a100-80gb-sxm"
DEVICES = {"h100-sxm": ("fp8",), "h200-sxm": ("fp8",), "b200-sxm": ("fp8", "fp4"), "gb200-nvl72": ("fp8", "fp4")}
"""What A100 is compared with, and the formats below 16 bits of its products in which training is described; the last is
the one in which the speed-up is taken apart."""
WORKS = (
    Work("gpt3-175b", 64, 64, 2048),
    Work("gpt3-175b", 1024, 1536, 2048),
    Work("gpt-1t", 1024, 1536, 2048),
)
NOTHING: Corner = frozenset()
EVERYTHING: Corner = frozenset(GROUPS)
USUAL: Row = {"schedule": ("1f1b", "interleaved")}
EARLIER: Row = {**USUAL, "recompute": "full", "attention": "eager", "zero": (0, 1), "cp": 1}
"""Plans as Megatron-LM had them before selective recomputation and flash attention."""
SCORES = Path(__file__).resolve().parents[1] / "accuracy" / "rows.csv"
BLACKWELL = {"B200": "B200(-SXM)?", "GB200": "GB200", "B300": "B300(-SXM)?", "GB300": "GB300"}
"""Devices of Blackwell, and how the text of a published row names them."""
SLOWER = ("time_s", "layer_time_s")
FASTER = ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "tflops_per_device", "mfu")
"""Keys of what rises and what falls with the time of a training step."""
LARGER = 4
"""How many times the batch grows where it does."""
LEVELS = ("without L2", "with L2")
LADDER = (
    "its rates, A100's plan",
    "its best plan",
    "fp8",
    "fp4",
    f"batch x {LARGER}",
    "one scale-up domain",
    "A100 recomputes all, scores stored",
    "it attains its data sheet",
    "both attain their data sheets",
)
"""Assumptions that are added one after another."""


def own(name: str, precision: str = HALF) -> System:
    """A system of the catalogue with what all systems have, in 16 bits and one other precision."""
    system = System.load(name)
    return mixed(system, system, EVERYTHING, precision)


@cache
def start(work: Work, *, usual: bool = False) -> Step:
    """The best plan on A100, of all or of those with usual schedules.

    Raises:
        InputError: No plan fits.
    """
    found = best(work, own(FIRST), **(USUAL if usual else {}))
    if found is None:
        raise InputError(f"{work.model}: no plan fits {work.devices} {FIRST}; expected more devices")
    return found


def named(work: Work) -> Row:
    """The columns that say what is trained."""
    return dataclasses.asdict(work)


def corner_rows(work: Work, device: str, precision: str) -> list[Row]:
    """One row for each set of groups that have changed: seconds of the step, whether it fits, and the plan."""
    found = corners(work, System.load(FIRST), System.load(device), precision, start(work).plan)
    return [
        {
            **named(work),
            "device": device,
            "precision": precision,
            "changed": "+".join(group for group in GROUPS if group in taken) or "nothing",
            "time_s": step.time,
            "fits": step.fits,
            "plan": str(step.plan),
        }
        for taken, step in found.items()
    ]


def times_of(rows: list[Row]) -> Times:
    """Seconds by set of groups, from the rows of one comparison."""
    return {frozenset(row["changed"].split("+")) - {"nothing"}: row["time_s"] for row in rows}


def factor_rows(rows: list[Row]) -> list[Row]:
    """One row a group of one comparison: its factor along the path, in the mean over all orders, and their range."""
    times = times_of(rows)
    path, mean, ends = chain(times, GROUPS), shapley(times, GROUPS), spread(times, GROUPS)
    first, last = times[NOTHING], times[EVERYTHING]
    same = {name: rows[0][name] for name in (*(f.name for f in dataclasses.fields(Work)), "device", "precision")}
    return [
        {
            **same,
            "group": group,
            "path": path[group],
            "mean": mean[group],
            "least": ends[group][0],
            "largest": ends[group][1],
            "changed_first": first / times[frozenset({group})],
            "changed_last": times[EVERYTHING - {group}] / last,
            "total": first / last,
        }
        for group in GROUPS
    ]


def path_rows(work: Work, device: str) -> list[Row]:
    """The path in finer steps: each lower precision, and the plan's micro-batch and recomputation before its layout."""
    first, second = System.load(FIRST), System.load(device)
    base, precision = start(work), DEVICES[device][-1]
    taken = frozenset({"precision"})
    steps = [(each, held(work, mixed(first, second, taken, each), base.plan, each)) for each in DEVICES[device]]
    for group in GROUPS[1:-1]:
        taken |= {group}
        steps.append((group, held(work, mixed(first, second, taken, precision), base.plan, precision)))
    system = own(device, precision)
    steps.append(("batch", best(work, system, precision, like=base.plan) or steps[-1][1]))
    steps.append(("layout", best(work, system, precision) or steps[-1][1]))
    found, before = [], base
    for name, step in steps:
        row = {**named(work), "device": device, "precision": precision, "step": name}
        row |= {"factor": before.time / step.time, "so_far": base.time / step.time}
        found.append(row | {"time_s": step.time, "fits": step.fits, "plan": str(step.plan)})
        before = step
    return found


def total_rows(work: Work, device: str) -> list[Row]:
    """One row a precision: the speed-up with A100's plan and with the best ones, the ratio of peaks, and both MFUs."""
    base, usual = start(work), start(work, usual=True)
    found = []
    for precision in (HALF, *DEVICES[device]):
        system = own(device, precision)
        same = held(work, system, base.plan, precision)
        fastest = best(work, system, precision) or same
        fastest_usual = best(work, system, precision, **USUAL) or same
        row = {**named(work), "device": device, "precision": precision}
        row["peak_ratio"] = system.matrix_rate(precision).value / System.load(FIRST).matrix_rate(HALF).value
        row |= {"same_plan": base.time / same.time, "same_plan_fits": same.fits, "best_plan": base.time / fastest.time}
        row["usual_schedules"] = usual.time / fastest_usual.time
        row |= {"first_mfu": base.run.value("mfu"), "mfu": fastest.run.value("mfu")}
        row |= {"first_time_s": base.time, "time_s": fastest.time}
        found.append(row | {"first_plan": str(base.plan), "plan": str(fastest.plan)})
    return found


def share_rows(work: Work, device: str) -> list[Row]:
    """The exact shares of the step time by resource: on A100, and on the device with A100's plan and with its best."""
    base, precision = start(work), DEVICES[device][-1]
    system = own(device, precision)
    same = held(work, system, base.plan, precision)
    ends = {"A100": base, "A100's plan": same, "best plan": best(work, system, precision) or same}
    found = []
    for end, step in ends.items():
        shares, elasticities = step.run.shares(), step.run.sensitivity()
        row: Row = {**named(work), "device": device, "precision": precision, "end": end, "time_s": step.time}
        row |= {name: shares.get(name, 0.0) for name in ("compute", "memory", "scale_up", "scale_out", "launch")}
        row["matrix_rate"] = -elasticities["matrix_rate"]
        found.append(row)
    return found


def rate_rows(device: str) -> list[Row]:
    """What the catalogue says of A100 and of a device, and the ratio, for the quantities that grow."""
    first, second = System.load(FIRST), System.load(device)
    pairs: dict[str, tuple[float, float]] = {HALF: (first.matrix_rate(HALF).value, second.matrix_rate(HALF).value)}
    pairs |= {each: (pairs[HALF][0], second.matrix_rate(each).value) for each in DEVICES[device]}
    for name in ("vector_rate", "memory_bandwidth", "memory_capacity", "scale_up_bandwidth", "scale_up_size"):
        pairs[name] = first.value(name), second.value(name)
    pairs["scale_out_bandwidth"] = first.value("scale_out_bandwidth"), second.value("scale_out_bandwidth")
    return [{"device": device, "quantity": k, "first": a, "second": b, "ratio": b / a} for k, (a, b) in pairs.items()]


def blackwell_rows(file: Path = SCORES) -> list[Row]:
    """How far predictions of training on Blackwell are from published measurements: the kept scores of accuracy.md."""
    text, found = file.read_text(encoding="utf-8"), []
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["quantity"] in (*SLOWER, *FASTER)]
    for device, part in BLACKWELL.items():
        named = re.compile(rf"\b{part}\b")
        own = [row for row in rows if named.search(row["case"]) and not row["source"].startswith("serving")]
        if not own:
            continue
        ratios = [float(row["predicted"]) / float(row["measured"]) for row in own]
        times = sorted(
            ratio if row["quantity"] in SLOWER else 1 / ratio for ratio, row in zip(ratios, own, strict=True)
        )
        row: Row = {"device": device, "rows": len(own), "too_fast": sum(time < 1 for time in times)}
        row |= {"mean": sum(abs(ratio - 1) for ratio in ratios) / len(ratios)}
        found.append(row | {"time": math.exp(sum(math.log(time) for time in times) / len(times))})
    return found


def attaining(system: System) -> System:
    """The system with every efficiency 1 and every overhead 0."""
    ends = {"_efficiency": 1.0, "_latency": 0.0, "_half_bytes": 0.0}
    values = {name: ideal for name in system.quantities for end, ideal in ends.items() if name.endswith(end)}
    return system.with_values(values, HALF, "attained")


def ladder_rows(work: Work, device: str, most: int = len(LADDER)) -> list[Row]:
    """The speed-up in tokens per second as assumptions are added; `most` of them."""
    base, more = start(work), dataclasses.replace(work, batch=LARGER * work.batch)
    wide = own(device, "fp4").with_values({"scale_up_size": work.devices}, HALF, "one domain")
    slower: dict[str, Callable[[], Step | None]] = {
        "first": lambda: base,
        "earlier": lambda: best(work, own(FIRST), **EARLIER),
        "ideal": lambda: best(work, attaining(own(FIRST)), **EARLIER),
    }
    faster: tuple[tuple[str, Callable[[], tuple[Work, Step | None]]], ...] = (
        ("first", lambda: (work, held(work, own(device), base.plan))),
        ("first", lambda: (work, best(work, own(device)))),
        ("first", lambda: (work, best(work, own(device, "fp8"), "fp8"))),
        ("first", lambda: (work, best(work, own(device, "fp4"), "fp4"))),
        ("first", lambda: (more, best(more, own(device, "fp4"), "fp4"))),
        ("first", lambda: (more, best(more, wide, "fp4"))),
        ("earlier", lambda: (more, best(more, wide, "fp4"))),
        ("earlier", lambda: (more, best(more, attaining(wide), "fp4"))),
        ("ideal", lambda: (more, best(more, attaining(wide), "fp4"))),
    )
    found = []
    for assumption, (slow, fast) in list(zip(LADDER, faster, strict=True))[:most]:
        before, (asked, after) = slower[slow](), fast()
        if before is None or after is None:
            continue
        speeds = work.batch * work.sequence / before.time, asked.batch * asked.sequence / after.time
        row = {**named(work), "device": device, "assumption": assumption, "first_tokens_per_s": speeds[0]}
        row |= {"tokens_per_s": speeds[1], "speedup": speeds[1] / speeds[0]}
        row |= {"first_mfu": before.run.value("mfu"), "mfu": after.run.value("mfu")}
        found.append(row | {"first_plan": str(before.plan), "plan": str(after.plan)})
    return found


def level_rows(work: Work, device: str, levels: tuple[str, ...] = LEVELS) -> list[Row]:
    """The speed-up in 16 bits with and without the L2 cache as a level, where the catalogue has its bandwidth."""
    found = []
    for level in levels:
        load = own if level == LEVELS[0] else System.load
        slow, fast = (best(work, load(name)) for name in (FIRST, device))
        if slow is None or fast is None:
            continue
        row = {**named(work), "device": device, "level": level, "first_time_s": slow.time, "time_s": fast.time}
        found.append(row | {"speedup": slow.time / fast.time})
    return found


def compared(works: tuple[Work, ...] = WORKS, devices: tuple[str, ...] = tuple(DEVICES)) -> Tables:
    """The tables of some comparisons that say what the speed-ups are and what they are due to."""
    pairs = [(work, device) for work in works for device in devices]
    found: Tables = {name: [] for name in ("totals", "corners", "factors", "path", "shares")}
    for work, device in pairs:
        rows = corner_rows(work, device, DEVICES[device][-1])
        found["totals"] += total_rows(work, device)
        found["corners"] += rows
        found["factors"] += factor_rows(rows)
        found["path"] += path_rows(work, device)
        found["shares"] += share_rows(work, device)
    return found | {"rates": [row for device in devices for row in rate_rows(device)]}


def study(coarse: bool) -> Study:
    """All comparisons, or the one of GPT-3 175B on 64 devices with H100."""
    works, devices = (WORKS[:1], ("h100-sxm",)) if coarse else (WORKS, tuple(DEVICES))
    tables = compared(works, devices)
    climbed = ("b200-sxm",) if coarse else ("b200-sxm", "gb200-nvl72")
    most = 2 if coarse else len(LADDER)
    tables["ladder"] = [row for work in works for device in climbed for row in ladder_rows(work, device, most)]
    known, levels = (("h100-sxm",), LEVELS[:1]) if coarse else (("h100-sxm", "h200-sxm"), LEVELS)
    tables["levels"] = [row for work in works for device in known for row in level_rows(work, device, levels)]
    tables["blackwell"] = blackwell_rows()
    return Study(tables, blocks(tables), {"factors": lambda figure: draw(figure, tables["factors"])})

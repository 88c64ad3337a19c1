"""Small searches, and the same by trying every plan one after another, with nothing of the search in it but names."""

from __future__ import annotations

import dataclasses
import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import symperf as sf
from symperf.plan_search.search import answer_search

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symperf.plan_search.search import Answer

EVEN: dict[str, Any] = {"uneven_stages": [False]}
PLAIN: dict[str, Any] = {"zero": [0], "cp": [1]}
MENUS: dict[str, list[dict[str, Any]]] = {
    "gpt2": [
        {"recompute": ["none", "selective", "full"], "schedule": ["1f1b"], **PLAIN, "attention": ["eager"]},
        {
            "recompute": ["none"],
            "zero": [0, 3],
            "schedule": ["1f1b"],
            "cp_kind": ["all-gather"],
            "attention": ["flash"],
        },
    ],
    "llama-3.2-1b": [
        {"recompute": ["none"], "zero": [0, 1, 2], "schedule": ["1f1b"], "cp_kind": ["ring", "all-to-all"], **EVEN},
        {"recompute": ["full"], "zero": [1], "cp": [1], "sequence_parallel": [False], "schedule": ["1f1b", "zb-h2"]},
        {"zero": [0], "schedule": ["1f1b", "interleaved", "dualpipe", "zero-bubble"], "cp": [1], **EVEN},
    ],
    "olmoe-1b-7b": [
        {"recompute": ["none", "full"], "zero": [1], "schedule": ["1f1b"], "cp": [1], "ep": [1, 2, 8], **EVEN},
        {"recompute": ["none"], "zero": [0], "schedule": ["interleaved"], "cp": [1], "ep": [2, 4], **EVEN},
    ],
}
"""Values of some fields, by model; a field without any is searched whole."""
SIZES = {"gpt2": (8.5, 10), "llama-3.2-1b": (9.2, 10.9), "olmoe-1b-7b": (10, 11.2)}
"""Powers of ten of a device's memory, from too small to ample."""
ENDS = {"none": 0, "loss": 1, "both": 2}
"""Ends of the model that are dealt as layers, by `account_for`."""
WHOLE: dict[str, list[Any]] = {
    "recompute": ["none", "selective", "full"],
    "sequence_parallel": [False, True],
    "zero": [0, 1, 2, 3],
    "schedule": ["1f1b", "interleaved", "zero-bubble", "zb-h2", "zero-bubble-2p", "dualpipe"],
    "cp_kind": ["ring", "all-to-all", "all-gather"],
    "uneven_stages": [False, True],
    "rank_order": ["tp-cp-dp-pp", "tp-cp-pp-dp"],
}


@dataclass(frozen=True)
class Problem:
    """One search."""

    model: str
    system: str
    devices: int
    batch: int
    sequence: int
    menu: dict[str, Any]
    values: dict[str, Any]
    limits: dict[str, int] = field(default_factory=dict)
    max_memory: float | None = None

    def run(self, **fields: Any) -> sf.Run:
        return sf.training(
            sf.Model.load(self.model),
            sf.System.load(self.system),
            sf.Plan(**fields),
            batch=self.batch,
            sequence=self.sequence,
            **self.values,
        )

    def search(self, **how: Any) -> Answer:
        return answer_search(
            sf.Model.load(self.model),
            sf.System.load(self.system),
            devices=self.devices,
            batch=self.batch,
            sequence=self.sequence,
            require=self.menu,
            limits=self.limits,
            max_memory=self.max_memory,
            values=self.values,
            **how,
        )


def problem(seed: int) -> Problem:
    """A random small problem."""
    draw = random.Random(seed)
    model = draw.choice(list(MENUS))
    values: dict[str, Any] = {"memory_capacity": 10 ** draw.uniform(*SIZES[model])}
    if model != "olmoe-1b-7b":
        values["num_layers"] = draw.choice([2, 4, 6, 12])
    if draw.random() < 0.5:
        values |= {"scale_out_bandwidth": 10 ** draw.uniform(9, 11.5), "scale_up_size": draw.choice([2, 4, 8])}
    made = Problem(
        model=model,
        system=draw.choice(["h100-sxm", "a100-80gb-sxm"]),
        devices=draw.choice([2, 3, 4, 6, 8]),
        batch=draw.choice([2, 4, 6, 8]),
        sequence=draw.choice([128, 256, 512]),
        menu=draw.choice(MENUS[model]),
        values=values,
        limits={"tp": 4} if draw.random() < 0.2 else {},
        max_memory=10 ** draw.uniform(9, 11) if draw.random() < 0.2 else None,
    )
    if made.devices <= values.get("scale_up_size", 8) and seed % 4:  # where no order of ranks moves a group
        return dataclasses.replace(made, menu={**made.menu, "rank_order": ["tp-cp-dp-pp"]})
    return made


def divisors(n: int) -> list[int]:
    return [k for k in range(1, n + 1) if n % k == 0]


def every(of: Problem, *, duplicates: bool = False) -> Iterator[dict[str, Any]]:
    """The fields of every plan of a problem, legal or not; `duplicates` too that are never better than another."""
    base = sf.Model.load(of.model)
    sizes = {**base.sizes, **of.values}
    dropout = base.architecture.dropout
    layers, stages = int(sizes["num_layers"]), divisors(of.devices)
    ends = [n for n, more in ENDS.items() if not more or any(layers % p and (layers + more) % p == 0 for p in stages)]
    whole = {**WHOLE, "attention": ["eager", "flash"] if dropout else ["flash"], "account_for": ends} | of.menu
    turns = {each for name in {"none", *ends, *whole["account_for"]} for each in divisors(layers + ENDS[name])}
    turns |= set(range(1, layers // 2 + 1)) if whole["uneven_stages"] == [True] else set()
    degrees = {"micro_batch": divisors(of.batch), "vpp": sorted(turns)}
    degrees["ep"] = divisors(int(sizes["num_experts"])) if "num_experts" in sizes else [1]
    layouts = {name: divisors(of.devices) for name in ("tp", "pp", "cp", "dp")}
    whole = {**layouts, **degrees, **whole}
    names = list(whole)
    for chosen in itertools.product(*whole.values()):
        fields = dict(zip(names, chosen, strict=True))
        if fields["tp"] * fields["pp"] * fields["cp"] * fields["dp"] != of.devices:
            continue
        if any(fields[name] > most for name, most in of.limits.items()):
            continue
        if (fields["vpp"] > 1) is not (fields["schedule"] == "interleaved"):
            continue
        if fields["cp"] == 1 and fields["cp_kind"] != whole["cp_kind"][0]:
            continue
        stages_even = (layers + ENDS[fields["account_for"]]) % fields["pp"] == 0
        if fields["uneven_stages"] and False in whole["uneven_stages"] and (fields["vpp"] > 1 or stages_even):
            continue
        same = fields["vpp"] == 1 or layers % fields["pp"] == 0  # stages are as good without ends among the layers
        if fields["account_for"] != "none" and same and "none" in whole["account_for"]:
            continue
        spared = fields["attention"] == "flash" and fields["recompute"] == "selective" and "none" in whole["recompute"]
        if spared and not duplicates:
            continue
        yield fields


def shards_nothing(of: Problem, fields: dict[str, Any]) -> bool:
    """Whether ZeRO is asked for where there is one copy of everything."""
    routed = "num_experts" in sf.Model.load(of.model).sizes
    copies = fields["dp"] * fields["cp"] * (fields["tp"] if routed else 1)
    zeros = of.menu.get("zero", WHOLE["zero"])
    return bool(fields["zero"] and copies == 1 and fields["schedule"] != "dualpipe" and 0 in zeros)


def schedules_nothing(of: Problem, fields: dict[str, Any]) -> bool:
    """Whether a single stage has a schedule of its own, where 1F1B is tried too."""
    others = fields["schedule"] in ("gpipe", "zero-bubble", "zb-h2", "zero-bubble-2p")
    return fields["pp"] == 1 and others and "1f1b" in of.menu.get("schedule", WHOLE["schedule"])


def moves_nothing(of: Problem, fields: dict[str, Any]) -> bool:
    """Whether pipelines lie inside replicas where every group stays in its tier, as with the usual order."""
    if fields["rank_order"] == "tp-cp-dp-pp" or "tp-cp-dp-pp" not in of.menu.get("rank_order", WHOLE["rank_order"]):
        return False
    size = of.values.get("scale_up_size", 8)
    return fields["pp"] == 1 or fields["dp"] == 1 or of.devices <= size or fields["tp"] * fields["cp"] >= size


@dataclass
class Tried:
    """What trying every plan found: plans that fit with time and memory, in order, and counts."""

    plans: list[tuple[float, float, dict[str, Any]]]
    considered: int
    legal: int


def tried(of: Problem) -> Tried:
    """Every plan of a problem, one run each."""
    found: list[tuple[float, float, dict[str, Any]]] = []
    considered = legal = 0
    for fields in every(of):
        considered += 1
        if shards_nothing(of, fields) or moves_nothing(of, fields) or schedules_nothing(of, fields):
            continue
        try:
            run = of.run(**fields)
        except sf.InputError:
            continue
        legal += 1
        memory = run.needed_alone()
        if memory <= min(of.max_memory or float("inf"), run.value("capacity_bytes")):
            found.append((run.value("time"), memory, fields))
    return Tried(sorted(found, key=lambda each: each[:2]), considered, legal)

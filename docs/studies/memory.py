"""Study: what a device holds in training with no, selective and full recomputation, 22B to 1T parameters.

Run: python docs/studies/run.py memory [--check]
"""

from __future__ import annotations

import csv
import importlib.resources
import itertools
import math
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import memory_page as page
from study import Row, Study, Tables

from symperf import Model, Plan, System, training

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

TITLE = "training memory without, with selective and with full recomputation, 22B to 1T"
RECOMPUTE = ("none", "selective", "full")
MANNERS = (("eager", False), ("eager", True), ("flash", True))
"""Attention kernel, and whether sequences are parallel."""
PARTS = ("weights", "gradients", "optimizer", "activations", "workspace")


@dataclass(frozen=True)
class Layout:
    """A model laid out on devices of a system.

    Attributes:
        model: name in the catalogue.
        system: name in the catalogue.
        plan: fields of the plan, without recomputation.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        values: values of other symbols.
    """

    model: str
    system: str
    plan: dict[str, Any]
    batch: int
    sequence: int
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a replica."""
        return self.batch // (self.plan.get("micro_batch", 1) * self.plan.get("dp", 1))

    def run(self, **changes: Any) -> Any:
        """The training step, with other fields of the plan."""
        model, system = Model.load(self.model), System.load(self.system)
        plan = Plan(**(self.plan | changes))
        return training(model, system, plan, batch=self.batch, sequence=self.sequence, **self.values)

    def of_micro_batch(self, micro_batch: int) -> Layout:
        """The same number of micro-batches, each of so many sequences."""
        batch = self.micro_batches * micro_batch * self.plan.get("dp", 1)
        return replace(self, plan=self.plan | {"micro_batch": micro_batch}, batch=batch)

    def of_sequence(self, sequence: int) -> Layout:
        """The same with sequences of so many tokens, and learned positions for each where the model has such."""
        values = dict(self.values)
        if Model.load(self.model).sizes["position_rows"]:
            values["position_rows"] = sequence
        return replace(self, sequence=sequence, values=values)


def _published(model: str, batch: int, **plan: Any) -> Layout:
    return Layout(model, "a100-80gb-sxm", {"tp": 8, **plan}, batch, 2048)


LAYOUTS = (
    _published("gpt-22b", 4, micro_batch=4),
    _published("gpt3-175b", 64, pp=8, vpp=3),
    _published("gpt-530b", 280, pp=35, vpp=3),
    _published("gpt-1t", 512, pp=64),
)
"""Korthikanti et al. 2022, table 3: tensor, pipeline and interleaved degrees, micro-batch, batch; one replica each."""

DEEPSEEK = Layout(
    "deepseek-v3",
    "h800-sxm",
    {
        "pp": 16,
        "dp": 128,
        "ep": 64,
        "zero": 1,
        "schedule": "dualpipe",
        "uneven_stages": True,
        "node_limit": 4,
        "precision": "fp8",
    },
    15360,
    4096,
    {"optimizer_bytes": 8},
)
"""DeepSeek-V3 report (arXiv 2412.19437), sections 3.2 and 3.3: 2048 H800, 16 stages, 64-way experts, each token on 4
nodes at most, ZeRO-1, DualPipe, FP8, BF16 moments; no tensor parallelism."""


def memory(layouts: Sequence[Layout] = LAYOUTS, manners: Sequence[tuple[str, bool]] = MANNERS) -> list[Row]:
    """One row a layout, attention kernel and recomputation: bytes on the fullest device by what they are for, in GB."""
    found = []
    for layout, how in _cases(layouts, manners):
        run = layout.run(**how)
        terms = run.memory_terms()
        parts = {
            part: sum(value for name, value in terms.items() if name.split("/")[0] == part) / 1e9 for part in PARTS
        }
        capacity = run.value("capacity_bytes") / 1e9
        total = run.value("memory") / 1e9
        row = _case(layout, how) | {f"{part}_GB": value for part, value in parts.items()}
        row["saved_GB"] = run.value("saved_activations") / 1e9
        found.append(row | {"total_GB": total, "capacity_GB": capacity, "fits": total <= capacity})
    return found


def _cases(layouts: Sequence[Layout], manners: Sequence[tuple[str, bool]]) -> Iterator[tuple[Layout, dict[str, Any]]]:
    """Layouts with fields of a plan; a flash kernel keeps no scores, so that selective recomputation is no choice."""
    for layout, (attention, parallel), recompute in itertools.product(layouts, manners, RECOMPUTE):
        if attention != "flash" or recompute != "selective":
            yield layout, {"attention": attention, "sequence_parallel": parallel, "recompute": recompute}


def _case(layout: Layout, how: dict[str, Any]) -> Row:
    plan = Plan(**layout.plan)
    row: Row = {"model": layout.model, "system": layout.system, "tp": plan.tp, "pp": plan.pp, "dp": plan.dp}
    row |= {"vpp": plan.vpp, "micro_batch": plan.micro_batch or 1, "batch": layout.batch, "sequence": layout.sequence}
    return row | how


# --- what was published

PUBLISHED = {
    "parameters + gradients + optimizer state per GPU": "state",
    "activation memory per GPU": "activations",
    "activation memory relative to tensor-parallel baseline without recompute": "activations' share",
}
MODELS = {"GPT-22B": "gpt-22b", "GPT-175B": "gpt3-175b", "GPT-530B": "gpt-530b", "GPT-1T": "gpt-1t"}


def published(rows: list[Row]) -> list[Row]:
    """The bars of figures 1 and 7 of Korthikanti et al. 2022 (digitised in calculon) beside the rows of `memory`.

    Activations are those that are saved, without what one layer computes again and the loss at its peak.
    """
    text = (importlib.resources.files("symperf.validation") / "data" / "memory.csv").read_text(encoding="utf-8")
    eager = {
        (row["model"], row["recompute"], row["sequence_parallel"]): row for row in rows if row["attention"] == "eager"
    }
    found = []
    for bar in csv.DictReader(text.splitlines()):
        model = MODELS.get(bar["model"])
        if not bar["id"].startswith("KORTHMEM") or (model, "none", False) not in eager:
            continue
        kind = PUBLISHED[bar["metric"]]
        recompute = next((name for name in ("selective", "full") if name in bar["recompute"]), "none")
        row = eager[model, recompute, "sequence parallelism" in bar["recompute"]]
        base = eager[model, "none", False]["saved_GB"]
        here = {
            "state": (row["weights_GB"] + row["gradients_GB"] + row["optimizer_GB"]) * 1e9 / 2**30,
            "activations": row["saved_GB"] * 1e9 / 2**30,
            "activations' share": 100 * row["saved_GB"] / base,
        }[kind]
        value = float(bar["value"])
        line = {"id": bar["id"], "model": model, "what": kind, "recompute": bar["recompute"] or "any"}
        found.append(line | {"unit": bar["unit"], "published": value, "here": here, "error": here / value - 1})
    return found


# --- what still fits


def limits(layouts: Sequence[Layout] = LAYOUTS, manners: Sequence[tuple[str, bool]] = MANNERS) -> list[Row]:
    """One row a layout, kernel and recomputation: the longest sequence and the largest micro-batch that fit, exactly.

    The sequence is a multiple of the tensor-parallel degree, at the layout's micro-batch, with learned positions for
    every token. The micro-batch is a real number at the layout's sequence and number of micro-batches: memory is then
    state + b (bytes that one sequence of a micro-batch keeps).
    """
    found = []
    for layout, how in _cases(layouts, manners):
        capacity = layout.run(**how).bound["memory_capacity"][0]
        one, two = (layout.of_micro_batch(b).run(**how).memory_alone() for b in (1, 2))
        micro_batch = max(0.0, (capacity - (2 * one - two)) / (two - one))
        row = _case(layout, how) | {"state_GB": (2 * one - two) / 1e9, "sequence_keeps_GB": (two - one) / 1e9}
        found.append(row | {"most_micro_batch": micro_batch, "longest_sequence": longest(layout, how, capacity)})
    return found


def longest(layout: Layout, how: dict[str, Any], capacity: float) -> int:
    """Tokens of the longest sequence that fits into a capacity, in steps of the tensor-parallel degree; 0 if none."""
    step = layout.plan.get("tp", 1)

    def exceeds(steps: int) -> bool:
        return layout.of_sequence(step * steps).run(**how).memory_alone() > capacity

    first = least(exceeds, (1 << 24) // step)
    assert first is not None, "no step of so many tokens fits"
    return step * (first - 1)


# --- fewest devices


def devices(layouts: Sequence[Layout] = LAYOUTS, manners: Sequence[tuple[str, bool]] = MANNERS) -> list[Row]:
    """One row a model, kernel, recomputation and way to share the state: the fewest devices that hold a step.

    Micro-batches of one sequence, tensor parallelism within a scale-up domain, 1F1B without interleaving. "pipeline":
    ZeRO-0, one replica, any number of stages that divides the layers, always enough micro-batches to fill them.
    "ZeRO-3": one stage, as many replicas as it takes. None where no number of devices is enough.
    """
    found = []
    for (layout, how), sharing in itertools.product(_cases(layouts, manners), ("pipeline", "zero-3")):
        plans = sorted(_fitting(layout, how, sharing), key=lambda plan: (math.prod(plan[:3]), plan))
        row: Row = {"model": layout.model, "system": layout.system, "sequence": layout.sequence, **how}
        row |= {"sharing": sharing, "devices": math.prod(plans[0][:3]) if plans else None}
        row |= dict(zip(("tp", "pp", "dp", "bytes"), plans[0] if plans else [None] * 4, strict=True))
        used = row.pop("bytes")
        found.append(row | {"total_GB": used / 1e9 if used else None})
    return found


def _fitting(layout: Layout, how: dict[str, Any], sharing: str) -> Iterator[tuple[int, int, int, float]]:
    """Degrees that fit, and their bytes: with each tensor-parallel degree the fewest of the others."""
    model, system = Model.load(layout.model), System.load(layout.system)
    layers, most = model.sizes["num_layers"], int(system.quantities["scale_up_size"].value)
    for tp in (t for t in range(1, most + 1) if most % t == 0 and model.sizes["num_attention_heads"] % t == 0):
        if tp == 1 and how["sequence_parallel"]:
            continue

        def used(pp: int, dp: int, tp: int = tp) -> tuple[float, bool]:
            zero = 0 if sharing == "pipeline" else 3
            plan = Plan(tp=tp, pp=pp, dp=dp, zero=zero, **how)
            run = training(model, system, plan, batch=pp * dp, sequence=layout.sequence)
            return run.memory_alone(), run.memory_alone() <= run.bound["memory_capacity"][0]

        if sharing == "pipeline":
            stages = (pp for pp in range(1, layers + 1) if layers % pp == 0)
            first = next((pp for pp in stages if used(pp, 1)[1]), None)
            if first:
                yield tp, first, 1, used(first, 1)[0]
        else:
            replicas = least(lambda dp: used(1, dp)[1], 1 << 20)
            if replicas:
                yield tp, 1, replicas, used(1, replicas)[0]


def least(holds: Callable[[int], bool], most: int) -> int | None:
    """The least whole number from 1 to `most` from which on a condition holds, None if it does not hold at `most`.

    >>> least(lambda n: n * n >= 50, 1000), least(lambda n: False, 1000)
    (8, None)
    """
    if not holds(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# --- the study


def study(coarse: bool) -> Study:
    """All tables, or those of the smallest model."""
    layouts = LAYOUTS[:1] if coarse else LAYOUTS
    rows = memory(layouts)
    tables: Tables = {
        "memory": rows,
        "published": published(rows),
        "limits": limits(layouts),
        "devices": devices(layouts),
        "moe": memory([DEEPSEEK], [("flash", False)]),
    }
    return Study(tables, blocks(tables), {"memory": lambda figure: page.draw(figure, rows, tables["limits"])})


def blocks(tables: Tables) -> dict[str, str]:
    """The generated parts of the page."""
    return page.blocks(tables)


if __name__ == "__main__":
    import run

    sys.exit(run.main([Path(__file__).stem, *sys.argv[1:]]))

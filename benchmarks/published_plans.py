"""Whether the predicted best plan of published measurements is their measured best.

Run it from anywhere: python benchmarks/published_plans.py [--smoke]

A group are rows of one source, model, device, number of devices, sequence and precision whose plans differ; with
`software` they also share the framework and its release, so that nothing but the plan differs. The predicted best is
good when its measured throughput is within 5 % of the measured best. Predictions are those of
`docs/accuracy/rows.csv`, which `docs/refresh.py` writes; plans and work are read from the tables of `symperf validate`.
`--smoke` only sees that there are groups, and that their figures are possible ones.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PREDICTED = ROOT / "docs" / "accuracy" / "rows.csv"
PUBLISHED = ROOT / "symperf" / "validation" / "data" / "training.csv"
PLAN = ("tp", "pp", "vpp", "dp", "cp", "ep", "sharding", "micro_batch_seqs", "recompute", "global_batch_seqs")
SHARED = ("model", "hw_key", "num_devices", "seq_len_tokens", "precision")
WITHIN = 0.05


@dataclass(frozen=True)
class Group:
    """Rows that differ in their plan.

    Attributes:
        name: what they share.
        plans: measured and predicted throughput of each row.
    """

    name: tuple[str, ...]
    plans: tuple[tuple[float, float], ...]

    @property
    def loss(self) -> float:
        """What the predicted best lacks of the measured best."""
        best = max(measured for measured, _ in self.plans)
        return 1 - max(self.plans, key=lambda plan: plan[1])[0] / best

    @property
    def concordance(self) -> float:
        """Of all pairs of plans, the part that the prediction puts in the measured order, less the rest (Kendall)."""
        pairs = [(a, b) for k, a in enumerate(self.plans) for b in self.plans[k + 1 :]]
        agree = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in pairs]
        return sum((product > 0) - (product < 0) for product in agree) / len(pairs)


def groups(*, software: bool) -> list[Group]:
    """The groups of published rows, by what they share."""
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        published = {row["id"]: row for row in csv.DictReader(file)}
    shared = (*SHARED, "framework") if software else SHARED
    found: dict[tuple[str, ...], dict[tuple[str, ...], list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    with PREDICTED.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            of = published.get(row["case"].partition(":")[0])
            if of is None or row["quantity"] not in ("time_s", "tokens_per_s"):
                continue
            measured, predicted = float(row["measured"]), float(row["predicted"])
            if row["quantity"] == "time_s":
                tokens = float(of["global_batch_seqs"] or 1) * float(of["seq_len_tokens"])
                measured, predicted = tokens / measured, tokens / predicted
            name = (row["source"], row["quantity"], *(of[key] for key in shared))
            found[name][tuple(of[key] for key in PLAN)].append((measured, predicted))
    return [
        Group(name, tuple(each for rows in plans.values() for each in rows))
        for name, plans in sorted(found.items())
        if len(plans) > 1
    ]


def good(found: list[Group]) -> int:
    """How many predicted bests are within 5 % of the measured best."""
    return sum(group.loss <= WITHIN for group in found)


def smoke() -> None:
    """There are groups, and their figures are possible ones.

    Raises:
        AssertionError: there are none, or one is not.
    """
    found = groups(software=True)
    if not found or not all(0 <= group.loss < 1 and -1 <= group.concordance <= 1 for group in found):
        raise AssertionError(f"{len(found)} groups")
    print(f"{len(found)} groups of published plans")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that the tables can be read")
    if parser.parse_args().smoke:
        smoke()
        return
    for software in (True, False):
        found = groups(software=software)
        order = sum(group.concordance for group in found) / len(found)
        kind = "one release of one software" if software else "any release"
        print(
            f"{kind}: the predicted best is within {WITHIN:.0%} of the measured best in {good(found)} of {len(found)} "
            f"groups; mean rank correlation (Kendall) {order:+.2f}"
        )
        for group in found:
            if group.loss > WITHIN:
                print(f"    {group.loss:6.1%}  {', '.join(group.name)}")


if __name__ == "__main__":
    main()

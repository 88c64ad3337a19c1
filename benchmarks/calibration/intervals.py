"""What intervals of predictions hold beside the spreads of symbols: `symperf/catalogue/intervals.toml`.

Split conformal prediction (Lei et al. 2018, arXiv 1604.04173) on rows of use = calibration alone: whole training steps
(`steps.csv`) and whole servers (`symperf/validation/data/serving.csv`). A row needs the rest that, added in quadrature
to the spreads of its own symbols, lets its interval end at the measurement. Each side is the quantile of what the rows
need that leaves `TAIL` out. Rows of one software, device and model are a group, and each group of `FEWEST` rows or more
weighs the same (pooling of distributions: Dunn, Wasserman and Ramdas 2023, arXiv 1809.07441), as what is asked next is
mostly of another group. Groups of `OWN` rows or more have quantiles of their own: the (n + 1)(1 - TAIL)-th of n.

`software` is what another software would change: the quantile of 1 - 2 TAIL of |ln| of the ratio of two predictions of
one calibration row, by the profiles of two softwares whose kernels were measured on the device.

Constants of the profiles (host_latency; request_latency, tokenizer_latency, crowd_latency and the acceptance of drafts)
were fitted to these rows as well, some ten numbers to 1,400: they lie a little nearer than rows that were not seen.
Run as `python benchmarks/calibration/intervals.py`; it takes some minutes and writes the file.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from host import STEPS, step_of
from rows import column
from rows import read as read_own

from symperf.common.errors import InputError
from symperf.evaluation.causes import REST, SOFTWARE, whole
from symperf.infer.stack import Stack
from symperf.validation import serving
from symperf.validation.case import Case
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.spread import group_of, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symperf.evaluation.base_run import BaseRun

FILE = Path(__file__).resolve().parents[2] / "symperf" / "catalogue" / "intervals.toml"
TAIL = 0.05
FEWEST, OWN = 9, 39
"""Rows from which on a group has a quantile of 90 %, and one of 95 % that is not its largest row."""
MEASURED = ("vllm-0.24", "sglang-0.5", "tensorrt-llm-1.3")
EVERY = 3
"""Of so many calibration rows one is predicted by other software."""
Need = tuple[str, float, float]
"""A row's group, and the rest that it needs downwards and upwards."""

HEAD = """\
# What intervals of predictions hold beside the spreads of symbols, in natural logarithms: `below` and `above`, the rest
# that rows of use = calibration ask for, from `rows` of them in groups of one software, device and model; `software`,
# what another software changes where the kernels of a software were not measured on a device. Under `own`, groups that
# have rows enough for a rest of their own. Written by `python benchmarks/calibration/intervals.py`, which says how.
"""
IMBALANCE = """
[imbalance]
low = 1.0
high = 1.25
source = "assumed: experts take 1 to 1.25 times their even share of tokens before tokens are dropped in training \
(capacity factors of Switch Transformers, Fedus et al. 2022, arXiv 2101.03961); a run that states token_imbalance has \
no spread of it"
"""


def need(run: BaseRun, quantity: str, measured: float, predicted: float, kind: str, group: str) -> Need:
    """The rest that a row needs."""
    spread = spread_of(run, quantity, predicted, kind)
    assert spread is not None
    down, up = whole({name: steps for name, steps in spread.causes.items() if name not in (REST, SOFTWARE)})
    far = math.log(measured / predicted)
    beyond = math.sqrt(max(0.0, far**2 - (up if far > 0 else down) ** 2))
    return group, beyond if far < 0 else 0.0, beyond if far > 0 else 0.0


def steps() -> list[Need]:
    """What whole training steps need: one software on one device, of which the models are the groups."""
    rows = read_own(STEPS)
    found = []
    for row, measured in zip(rows, column(rows, "step_time_s"), strict=True):
        run = step_of(row)
        group = f"{row['layers']} layers of {row['hidden']}"
        found.append(need(run, "time_s", float(measured), run.value("time"), "training", group))
    return found


def served() -> dict[str, list[Need]]:
    """What servers need, by the kind of answer."""
    found: dict[str, list[Need]] = {"first_token": [], "token": []}
    for case in served_cases():
        try:
            run = case.run()
            predicted = case.read(run)
        except InputError:
            continue
        if 1e-2 < predicted / case.measured < 1e2:
            found[case.kind].append(need(run, case.quantity, case.measured, predicted, case.kind, group_of(run)))
    return found


def served_cases() -> list[Case]:
    """The cases of the calibration rows of servers."""
    return [case for row in calibration_rows() for case in serving.express(row) if isinstance(case, Case)]


def calibration_rows() -> list[TableRow]:
    """The calibration rows of servers, as if they were to be scored."""
    rows = read(PACKAGED / "serving.csv", serving.COLUMNS)
    return [replace(row, cells={**row.cells, "use": "test"}) for row in rows if row.text("use") == "calibration"]


def other_software() -> tuple[float, float]:
    """What another software changes: the pass of a prompt, and a step that generates."""
    prompts, tokens = [], []
    for row in calibration_rows()[::EVERY]:
        try:
            asked = serving.asked_of(row)
            if asked.prefill is not None:
                continue
            runs = [serving.serving_of(replace(asked, stack=name)).run for name in MEASURED if measured(name, asked)]
        except InputError:
            continue
        for place, one in enumerate(runs):
            for other in runs[place + 1 :]:
                prompts.append(abs(math.log(one.value("prefill") / other.value("prefill"))))
                tokens.append(abs(math.log(one.value("time_per_token") / other.value("time_per_token"))))
    return quantile(prompts, 1 - 2 * TAIL), quantile(tokens, 1 - 2 * TAIL)


def measured(stack: str, asked: serving.ServedRow) -> bool:
    """Whether the kernels of a software were measured on a row's device."""
    return asked.system in Stack.load(stack).reached


def quantile(needs: Sequence[float], level: float) -> float:
    """The conformal quantile: the least value that (n + 1) level of n + 1 do not exceed.

    >>> quantile([3.0, 1.0, 2.0], 0.5)
    2.0
    """
    return sorted(needs)[min(math.ceil((len(needs) + 1) * level), len(needs)) - 1]


def pooled(needs: Sequence[tuple[str, float]], level: float) -> float:
    """The quantile of the mean of the groups' distributions.

    >>> pooled([("a", 1.0), ("a", 2.0), ("b", 3.0)], 0.6)
    3.0
    """
    rows = Counter(group for group, _ in needs)
    reached = 0.0
    for group, value in sorted(needs, key=lambda pair: pair[1]):
        reached += 1 / rows[group] / len(rows)
        if reached >= level - 1e-12:
            return value
    return max(value for _, value in needs)


def entry(name: str, needs: Sequence[Need], software: float, extra: str = "", *, own: bool = True) -> str:
    """The table of a kind of answer."""
    rows = Counter(group for group, _, _ in needs)
    kept = [each for each in needs if rows[each[0]] >= FEWEST]
    ends = [pooled([(each[0], each[place]) for each in kept], 1 - TAIL) for place in (1, 2)]
    groups = len({each[0] for each in kept})
    lines = [f"\n[{name}]", f"below = {ends[0]:.3f}", f"above = {ends[1]:.3f}", f"rows = {len(kept)}"]
    lines += [f"groups = {groups}", f"software = {software:.3f}{extra}"]
    for group in sorted(group for group in rows if rows[group] >= OWN and own):
        mine = [each for each in needs if each[0] == group]
        below, above = (quantile([each[place] for each in mine], 1 - TAIL) for place in (1, 2))
        lines.append(f'own."{group}" = {{ below = {below:.3f}, above = {above:.3f}, rows = {len(mine)} }}')
    return "\n".join(lines) + "\n"


def table(training: Sequence[Need], servers: Mapping[str, Sequence[Need]], software: tuple[float, float]) -> str:
    """The file."""
    prompt, token = software
    where = '\nmeasured = ["a100-80gb-sxm"]'
    return "".join(
        [
            HEAD,
            "\n# Whole steps of Megatron-DeepSpeed; `software` is that of prompts, whose kernels are the nearest.",
            entry("training", training, prompt, where, own=False),
            "\n# Whole batches and decoding, by the times of later tokens of servers.",
            entry("inference", servers["token"], token, own=False),
            "\n# The pass of a prompt, by the same rows.",
            entry("prompt", servers["token"], prompt, own=False),
            "\n# A server's time to the first token, and of each later one.",
            entry("first_token", servers["first_token"], prompt),
            entry("token", servers["token"], token),
            IMBALANCE,
        ]
    )


if __name__ == "__main__":
    FILE.write_text(table(steps(), served(), other_software()), encoding="utf-8")
    print(FILE.read_text(encoding="utf-8"))

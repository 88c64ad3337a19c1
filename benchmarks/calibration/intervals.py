"""What intervals of predictions hold beside the spreads of symbols: `symperf/catalogue/intervals.toml`.

Split conformal prediction (Lei et al. 2018, arXiv 1604.04173) on rows of use = calibration alone: whole training steps
(`steps.csv`) and whole servers (`symperf/validation/data/serving.csv`). A row needs the rest that, added in quadrature
to the spreads of its own symbols, lets its interval end at the measurement. Each side is the quantile of what the rows
need that leaves `TAIL` out. Rows of one software, device and model are a group, and each group of `FEWEST` rows or more
weighs the same (pooling of distributions: Dunn, Wasserman and Ramdas 2023, arXiv 1809.07441), as what is asked next is
mostly of another group. Groups of `OWN` rows or more have quantiles of their own: the (n + 1)(1 - TAIL)-th of n.

Where the spreads of symbols alone hold more than the rows ask for, no rest is left, and the quantile of what the rows
need over what the symbols' spreads give is the share of these that is taken.

`software` is what it changes that the kernels of a software were not measured: the quantile of ln of the ratio of two
predictions of one calibration row, with the constants of the software's kernels and without them, by the devices on
which they were measured and which have a rate for the row's format. Dense models in 16 bits and in narrower formats,
and mixtures of experts, have one each.

Constants of the profiles (host_latency; request_latency, tokenizer_latency, crowd_latency and the acceptance of drafts)
were fitted to these rows as well, some ten numbers to 1,400: they lie a little nearer than rows that were not seen.
Run as `python benchmarks/calibration/intervals.py`; it takes some minutes and writes the file.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from host import STEPS, step_of
from rows import column
from rows import read as read_own

from symperf.common.errors import InputError
from symperf.evaluation.causes import PROMPT, SUBJECTS, TOKEN, Scatter, combine, subject_of, whole
from symperf.infer.formats import format_of, rate_asked
from symperf.infer.stack import CATALOGUE, Stack
from symperf.validation import serving
from symperf.validation.case import Case
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.spread import OUTPUTS, group_of, responses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from symperf.evaluation.base_run import BaseRun
    from symperf.runs.inference_run import InferenceRun

FILE = Path(__file__).resolve().parents[2] / "symperf" / "catalogue" / "intervals.toml"
TAIL = 0.05
SIDES = ("below", "above")
FEWEST, OWN = 9, 39
"""Rows from which on a group has a quantile of 90 %, and one of 95 % that is not its largest row."""
EVERY = 3
"""Of so many calibration rows one is predicted without the constants of kernels."""
Need = tuple[str, tuple[float, float, float, float]]
"""A row's group, the rest that it needs downwards and upwards, and the shares of its spreads that it needs."""
NOTHING = Scatter(0.0, 0.0, (0.0, 0.0), 0)
Ratio = tuple[str, float]
"""A group, and how far a prediction moves with the constants of kernels."""

HEAD = """\
# What intervals of predictions hold beside the spreads of symbols, in natural logarithms: `below` and `above`, the rest
# that rows of use = calibration ask for, from `rows` of them in groups of one software, device and model; `share_below`
# and `share_above`, the parts of the spreads that they ask for where these hold more, so that no rest is left. Under
# `own`, groups that have rows enough for a rest of their own. `software`, what it changes that the kernels of one were
# not measured on a device. Written by `python benchmarks/calibration/intervals.py`, which says how.
"""
IMBALANCE = """
[imbalance]
low = 1.0
high = 1.25
source = "assumed: experts take 1 to 1.25 times their even share of tokens before tokens are dropped in training \
(capacity factors of Switch Transformers, Fedus et al. 2022, arXiv 2101.03961); a run that states token_imbalance has \
no spread of it"
"""


def need(run: BaseRun, quantity: str, measured: float, predicted: float, group: str) -> Need:
    """The rest that a row needs."""
    name = OUTPUTS.get(quantity, "time")
    moved, _ = responses(run, name if name in run.compiled.program.outputs else "time")
    down, up = whole(combine(moved, NOTHING, measured=True))
    far = math.log(measured / predicted)
    side = up if far > 0 else down
    beyond, share = math.sqrt(max(0.0, far**2 - side**2)), abs(far) / side if side else math.inf
    return group, (beyond, 0.0, share, 0.0) if far < 0 else (0.0, beyond, 0.0, share)


def steps() -> list[Need]:
    """What whole training steps need: one software on one device, of which the models are the groups."""
    rows = read_own(STEPS)
    found = []
    for row, measured in zip(rows, column(rows, "step_time_s"), strict=True):
        run = step_of(row)
        group = f"{row['layers']} layers of {row['hidden']}"
        found.append(need(run, "time_s", float(measured), run.value("time"), group))
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
            found[case.kind].append(need(run, case.quantity, case.measured, predicted, group_of(run)))
    return found


def served_cases() -> list[Case]:
    """The cases of the calibration rows of servers."""
    return [case for row in calibration_rows() for case in serving.express(row) if isinstance(case, Case)]


def calibration_rows() -> list[TableRow]:
    """The calibration rows of servers, as if they were to be scored."""
    rows = read(PACKAGED / "serving.csv", serving.COLUMNS)
    return [replace(row, cells={**row.cells, "use": "test"}) for row in rows if row.text("use") == "calibration"]


def without_kernels() -> dict[str, dict[str, list[Ratio]]]:
    """How far the pass of a prompt and a step that generates move with the constants of kernels, by subject."""
    found: dict[str, dict[str, list[Ratio]]] = {kind: {name: [] for name in SUBJECTS} for kind in (PROMPT, TOKEN)}
    with TemporaryDirectory() as folder:
        for row in calibration_rows()[::EVERY]:
            for one, bare in questions(row, Path(folder)):
                subject = subject_of(one.plan.precision, routed=one.model.architecture.routed)
                for kind, output in ((PROMPT, "prefill"), (TOKEN, "time_per_token")):
                    found[kind][subject].append((group_of(one), math.log(one.value(output) / bare.value(output))))
    return found


def questions(row: TableRow, folder: Path) -> Iterator[tuple[InferenceRun, InferenceRun]]:
    """A row's run on every device on which its software was measured, with its kernels' constants and without them."""
    try:
        asked = serving.asked_of(row)
    except InputError:
        return
    for name in Stack.load(asked.stack).reached if asked.prefill is None else ():
        try:
            run = serving.serving_of(replace(asked, system=name)).run
            if format_of(run.base_plan, run.bare_system)[2] == rate_asked(run.base_plan, run.bare_system):
                yield run, run.swap(stack=without(asked.stack, folder))
        except InputError:
            continue


def without(stack: str, folder: Path) -> str:
    """The path of a profile that is another without what its kernels reach."""
    path = folder / f"{stack}.toml"
    if not path.exists():
        bare, lists = re.subn(r"(?ms)^on = \[.*?^\]\n", "", (CATALOGUE / path.name).read_text(encoding="utf-8"))
        if not lists:  # those of its base, which a profile beside it would have too: no ratio but 1
            raise ValueError(f"{path.name}: found no list of kernels of its own")
        path.write_text(bare, encoding="utf-8")
    return str(path)


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


def entry(name: str, needs: Sequence[Need], extra: str = "", *, own: bool = True) -> str:
    """The table of a kind of answer."""
    rows = Counter(each[0] for each in needs)
    kept = [each for each in needs if rows[each[0]] >= FEWEST]
    ends = [pooled([(group, asked[place]) for group, asked in kept], 1 - TAIL) for place in range(4)]
    groups = len({each[0] for each in kept})
    lines = [f"\n[{name}]", *told(ends), f"rows = {len(kept)}", f"groups = {groups}{extra}"]
    for group in sorted(group for group in rows if rows[group] >= OWN and own):
        mine = [asked for whose, asked in needs if whose == group]
        ends = [quantile([asked[place] for asked in mine], 1 - TAIL) for place in range(4)]
        lines.append(f'own."{group}" = {{ {", ".join(told(ends))}, rows = {len(mine)} }}')
    return "\n".join(lines) + "\n"


def told(ends: Sequence[float]) -> list[str]:
    """The keys of both ends: the rest, and the share of the spreads on a side that has none."""
    found = [f"{side} = {end:.3f}" for side, end in zip(SIDES, ends[:2], strict=True)]
    sides = zip(SIDES, ends[:2], ends[2:], strict=True)
    return found + [f"share_{side} = {share:.3f}" for side, end, share in sides if end == 0]


def changed(kind: str, subject: str, ratios: Sequence[Ratio]) -> str:
    """The table of what software changes of a kind of answer for a subject."""
    ends = [pooled([(group, max(0.0, sign * far)) for group, far in ratios], 1 - TAIL) for sign in (-1, 1)]
    lines = [f"\n[software.{kind}.{subject}]", *(f"{side} = {end:.3f}" for side, end in zip(SIDES, ends, strict=True))]
    return "\n".join([*lines, f"rows = {len(ratios)}", f"groups = {len({group for group, _ in ratios})}"]) + "\n"


def table(
    training: Sequence[Need], servers: Mapping[str, Sequence[Need]], software: Mapping[str, Mapping[str, list[Ratio]]]
) -> str:
    """The file."""
    where = '\nmeasured = ["a100-80gb-sxm"]'
    return "".join(
        [
            HEAD,
            "\n# Whole steps of Megatron-DeepSpeed; what software changes is that of prompts, the nearest.",
            entry("training", training, where, own=False),
            "\n# Whole batches and decoding, by the times of later tokens of servers.",
            entry("inference", servers["token"], own=False),
            "\n# The pass of a prompt, by the same rows.",
            entry("prompt", servers["token"], own=False),
            "\n# A server's time to the first token, and of each later one.",
            entry("first_token", servers["first_token"]),
            entry("token", servers["token"]),
            "\n# The pass of a prompt, and a step that generates, with the constants of kernels and without them.",
            *(changed(kind, name, own) for kind, subjects in software.items() for name, own in subjects.items()),
            IMBALANCE,
        ]
    )


if __name__ == "__main__":
    FILE.write_text(table(steps(), served(), without_kernels()), encoding="utf-8")
    print(FILE.read_text(encoding="utf-8"))

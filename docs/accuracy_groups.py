"""The beginning of `docs/accuracy.md`: where predictions fail, each group judged by its own aim, none hidden."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from symperf.validation import report as tables
from symperf.validation.chosen import LEAST as POWER
from symperf.validation.chosen import chosen_table
from symperf.validation.groups import by_aim, contests, group_of, grouped, name_of, split, worst_groups
from symperf.validation.labels import GROUPINGS, UNTOLD, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symperf.validation.case import Scored
    from symperf.validation.groups import Group
    from symperf.validation.score import Report

WORST = 10
LEAST = 20
"""Rows from which on a group's coverage is meant to reach `COVERED`."""
COVERED = 0.75
NARROW = 1.6
"""The median of high over low that intervals are meant to have at most."""
RANKED = 0.9
ONE_SIDED = 0.8
"""Bias over mean error from which on nearly all rows are off to one side."""
SUBJECTS = {
    "training": "training",
    "blackwell": "training and passes on Blackwell",
    "mixtures": "training of mixtures of experts",
    "inference": "passes and batches",
    "serving": "servers with requests in flight",
    "memory": "memory",
}
"""The keys of aims, and what they are called."""

MISSING = {
    "MBSKILL": "the host: a batch of four sequences waits for it (the rows' own notes)",
    "MBRIDGE": "experts in 16 bits are too fast already, FP8 gains less than its rates (casts, hosts); attention with "
    "heads of 64 (GPT-OSS), kernels around the experts' products; the host's share is assumed",
    "SWIFT": "Python between ZeRO-3's calls for each expert's matrix; the network between its two nodes is not told",
    "TITAN": "kernels of eager mode, casts to float8 (row-wise above all), attention of other kernels on B200",
    "TITANOLD": "kernels of eager mode; gathers and reductions that do not hide as far as declared",
    "GPUREC": "single lines of a log",
    "FOUNDRY": "kernels of 2023, of which only ranges were published",
    "MAXTEXT": (
        "no table of a TPU's kernels was found: products are taken at 0.68 of the peak, a median of GPUs. One of a TPU "
        "v2 reached 0.996 of it (jax-ml/scaling-book, profiling.md), those of v6e 0.75 with the host's time; with 0.95 "
        "the bias would be +13 to +23 %, so that something else is missing too"
    ),
    "MCOREH100": (
        "data loading and logging are in its times: 0.05 to 0.15 s a step that no operation explains, a quarter of the "
        "smallest model's; micro-batch, chunks and recomputation are not told"
    ),
    "LLAMA3": "unequal work of context-parallel ranks; congestion of 16,384 devices on RoCE",
    "MCOREMOE": "experts of unequal load; permutation of tokens as kernels of their own",
    "MTNLG": (
        "not known (the micro-batch is not told); its software is that of BIGSCI, which is too fast as well, by 9 %. "
        "It is not the stages, which are equal"
    ),
    "SC21T2": (
        "of ZeRO-3 of 2021, by which these runs are bound: copies of pieces at the host's pace and not the device's, "
        "and a third gather where a layer is computed again; neither was measured"
    ),
    "BIGSCI": (
        "layers with tensor parallelism over 8 devices are 13 % too fast, over 4 devices 7 %; heads of width 108 lose "
        "more than products of the published rate would (tensor units unused), hidden sizes of 14,400 too. It is not "
        "ALiBi (under 1 %), the layouts of stages, nor transfers between them"
    ),
    "BIGSCI memory": (
        "7 GB on every device, rank 0.96: casts of the largest gradient to FP32 (3.6 GB of the table) and buckets of "
        "DeepSpeed, which are not modelled; the figures may be GiB"
    ),
    "INTERNEVO": (
        "kernels of 2023 are 5 to 10 % too fast on every layout, with the operations of its source counted; exposed "
        "sums where a step has few micro-batches"
    ),
    "DGXC": (
        "on Blackwell three rows of DeepSeek-V3 (-62 to -66 %) and six of Llama 4 Maverick (-18 to -29 %) are two "
        "thirds of it, the other 24 are 7 % off. DeepSeek-V3 takes 32 ms a layer and micro-batch on GB200 and 45 "
        "on H100, whose device is busy 31 of them: the host, it seems, in steps that no graph records (launch.sh, with "
        "--cuda_graphs false for Llama 4); layouts, recomputation and stages are those of launch.sh"
    ),
    "MLPERF": (
        "on Blackwell five steps of 0.09 to 0.26 s on 72 to 512 devices (Llama 3.1 8B and LoRA, -10 to -47 %), in "
        "which all that waits shows, are three fifths of it; layouts are those of the submissions' configurations. "
        "LoRA on eight devices is 12 % too fast in round 5.0 and met in 5.1: the software became faster"
    ),
    "INTERNEVO memory": "pipelines: 10 to 19 GB that no tensor explains; the others are 2 to 15 % too low",
    "SC21": "six of its ten rates lie within 5 % of one another (135 to 142 TFLOP/s): small errors change their order",
    "TITAN memory": "what the allocator holds in reserve; gathered parameters kept from layer to layer",
    "FTGPT memory": "1.2 GB on every row: FasterTransformer's own kernels, loaded with CUDA's context, and cuBLAS",
    "ZEROBUB memory": "which of the allocator's figures was meant, and whether its GB are GiB (+5 % or -2 %)",
    "TRTT": "kernels of single releases",
    "TRTL": "1 to 2 ms a request on Hopper at 128 tokens; products of 128 rows there, far from the ridge",
    "FTGPT": "the host of small models",
    "FTBERT": "products of few rows of small models; the host between kernels",
    "LMDEPLOY": "requests that the software serves in turns",
    "INFX": (
        "processors of the host: its script asks Slurm for 8 devices and no --cpus-per-task, for which sbatch gives "
        "one by default, where vLLM needs one for each of its ten processes (its page on optimization). All first "
        "tokens come when all prompts are done, and steps take 14 ms that take 8 on the same devices in other rows. It "
        "is neither lengths nor formats, which were read anew"
    ),
    "TRT20": (
        "13 rows of Llama 4 (the others: 8 %), +10 to +203 %: under this release layers of local attention hold whole "
        "contexts and decode over them (TensorRT-LLM, features/long-sequence.md), and batches between the recorded "
        "sizes 1024, 2048 and 4096 run padded or without a graph; neither was measured"
    ),
    "LLAMACPP": (
        "prompts: weights are unpacked to 16 bits, factors cast from 32 bits and results back by kernels of their own "
        "(ggml_cuda_op_mul_mat_cublas of ggml-cuda.cu), 2.6 bytes a weight and 6 an element, by an estimate two fifths "
        "of what is missing on A100s; not modelled, and no calibration row has such kernels"
    ),
    "VULTR": (
        "one model of 3 to 15 ms a step: later tokens 6 to 16 % too fast, but at 32 and 400 in flight, which lie "
        "outside their neighbours; first tokens take 0.06 to 1 s more, which was not explained"
    ),
    "serving ttft": "how a server orders and batches what waits; a client's bursts; servers that compile meanwhile",
    "serving tpot": "layouts of experts that a row does not tell; drafts",
}
"""The physical effect that is missing, as far as it is known, by family (notes of rows, sign of errors; not proved)."""


def section(found: Report) -> list[str]:
    """The lines of the page's beginning."""
    lines = ["## The worst groups", "", *worst_lines(found.tested), "", "## By aim", "", *aim_lines(found.tested)]
    lines += ["", "## Biased or badly ranked", "", *one_sided_lines(found.tested)]
    lines += ["", "## Measured kernels alone, or chosen constants", "", *constant_lines(found.tested)]
    lines += ["", "## Intervals", "", *interval_lines(found.tested)]
    return [
        *lines,
        "",
        "## Layouts that compete",
        "",
        *layout_lines(found.tested, [row for row in found.scored if row.calibrates]),
    ]


def group_sections(found: Report) -> list[str]:
    """The lines of every grouping but that by family."""
    lines: list[str] = []
    for by in GROUPINGS[1:]:
        lines += [f"### By {by}", "", *tables.group_table(by, grouped(found.tested, by)), ""]
    return ["## By device, format, class, software, size and year", "", *lines[:-1]]


def worst_lines(rows: Sequence[Scored]) -> list[str]:
    """The groups whose mean error is the largest over their aim, and why, as far as it is known."""
    lines = [
        *wrapped(
            f"Of all groups of ten rows or more, by any grouping, the {WORST} whose mean error is the largest over its "
            "aim. The cause is that of the family with most of the group's error, with its part of that error."
        ),
        "",
        f"| group | {' | '.join(tables.GROUP_HEADS)} | cause |",
        "|---|" + "---:|" * len(tables.GROUP_HEADS) + "---|",
    ]
    for by, group in worst_groups(rows, WORST):
        own = [row for row in rows if name_of(row, by) == group.name]
        cells = " | ".join(tables.group_cells(group))
        lines.append(f"| {by}: {tables.cell(group.name)} | {cells} | {cause(own)} |")
    return lines


def cause(rows: Sequence[Scored]) -> str:
    """What is missing in the family that makes most of the error of some rows, and what part of it that is."""
    errors: Counter[str] = Counter()
    for row in rows:
        errors[row.source] += abs(row.error)  # type: ignore[assignment]
    family, size = errors.most_common(1)[0]
    return f"{family} ({size / sum(errors.values()):.0%}): {MISSING.get(family, 'not known')}"


def aim_lines(rows: Sequence[Scored]) -> list[str]:
    """Every subject and every family by its own aim."""
    subjects: dict[str, list[Scored]] = {}
    for row in rows:
        subjects.setdefault(label(row.labels, "judged"), []).append(row)
    named = [group_of(SUBJECTS.get(name, name), own) for name, own in subjects.items()]
    families = by_aim(rows)
    met = [one for one in families if one.mape <= one.aim]
    lines = [*tables.group_table("subject", named), ""]
    lines += [
        f"Of {len(families)} families, those on Blackwell and with mixtures apart, {len(met)} are within their aim."
    ]
    lines += ["", *tables.group_table("family, subject", families), "", "Those that are not:", ""]
    lines += ["| family, subject | mean | aim | bias | missing |", "|---|---:|---:|---:|---|"]
    for one in sorted((one for one in families if one.mape > one.aim), key=lambda one: -one.excess):
        why = MISSING.get(one.name.rpartition(", ")[0], "not known")
        numbers = f"{tables.share(one.mape)} | {one.aim:.0%} | {tables.share(one.bias, sign=True)}"
        lines.append(f"| {tables.cell(one.name)} | {numbers} | {why} |")
    return lines


def one_sided_lines(rows: Sequence[Scored]) -> list[str]:
    """Families whose rows are nearly all off to one side, and those whose rows are badly ranked."""
    found = [one for one in grouped(rows, "family") if one.rows >= 3]
    sided = [one for one in found if abs(one.bias) >= ONE_SIDED * one.mape]
    ranked = [one for one in found if one.rank_correlation is not None and one.rank_correlation < RANKED]
    lines = [f"Families of three rows or more with a bias of {ONE_SIDED:.0%} of their mean error or more:", ""]
    lines += ["| family | rows | mean | bias | cause |", "|---|---:|---:|---:|---|"]
    for one in sided:
        numbers = f"{one.rows} | {tables.share(one.mape)} | {tables.share(one.bias, sign=True)}"
        lines.append(f"| {tables.cell(one.name)} | {numbers} | {MISSING.get(one.name, 'not known')} |")
    lines += ["", f"With a rank correlation below {RANKED}:", ""]
    lines += ["| family | rows | rank | cause |", "|---|---:|---:|---|"]
    for one in ranked:
        cells = f"{tables.cell(one.name)} | {one.rows} | {one.rank_correlation:.3f}"
        lines.append(f"| {cells} | {MISSING.get(one.name, 'not known')} |")
    return lines


def constant_lines(rows: Sequence[Scored]) -> list[str]:
    """Each headline in two: predictions by measured kernels alone, and those that go with chosen constants."""
    lines = [
        *wrapped(
            "`symperf/catalogue/validation/chosen.toml` lists the constants that a human chose when errors of whole "
            "steps or servers were known, or that such measurements set; a prediction counts as theirs where 1 % more "
            f"of them moves it by {POWER / 100:.2%} or more. Which these are:"
        ),
        "",
        "| constants | why |",
        "|---|---|",
        *(f"| {', '.join(f'`{name}`' for name in entry.symbols)} | {entry.why} |" for entry in chosen_table()),
        "",
    ]
    subjects = dict.fromkeys(label(row.labels, "judged") for row in rows if row.chosen is not None)
    found: list[Group] = []
    for subject in (None, *subjects):
        own = [row for row in rows if subject in (None, label(row.labels, "judged"))]
        name = "all with a time" if subject is None else SUBJECTS.get(subject, subject)
        for part, half in zip(("kernels alone", "chosen constants"), split(own), strict=True):
            found += [group_of(f"{name}: {part}", half)] if half else []
    return [*lines, *tables.group_table("rows", found)]


def interval_lines(rows: Sequence[Scored]) -> list[str]:
    """How many measurements lie inside, where too few do, and what makes intervals wide."""
    timed = [row for row in rows if row.low is not None]
    if not timed:
        return ["No row has an interval."]
    whole = group_of("all", timed)
    lines = [
        *wrapped(
            "A prediction has a 90 % interval from the spreads of its efficiencies and overheads, from what another "
            "software would change where its kernels were not measured, and from a rest that rows of use = calibration "
            "ask for (split conformal prediction, [how sure a prediction is](uncertainty.md)). No row below had a part "
            "in it. Intervals are meant to hold 85 to 95 % of all measurements and hold "
            f"{tables.percent(whole.coverage)}; the median of high over low is meant to be at most {NARROW} and is "
            f"{whole.width:.2f}. Groups of {LEAST} rows or more with less than {COVERED:.0%} inside:"
        ),
        "",
        "| group | rows | coverage | width | bias |",
        "|---|---:|---:|---:|---:|",
    ]
    count, failing = 0, 0
    for by in GROUPINGS:
        for one in grouped(timed, by):
            if one.rows >= LEAST and one.name != UNTOLD:
                count += 1
                if one.coverage is not None and one.coverage < COVERED:
                    numbers = f"{one.rows} | {one.coverage:.0%} | {one.width:.2f} | {tables.share(one.bias, sign=True)}"
                    lines.append(f"| {by}: {tables.cell(one.name)} | {numbers} |")
                    failing += 1
    return [*lines, "", f"These are {failing} of {count} groups."]


def layout_lines(rows: Sequence[Scored], apart: Sequence[Scored] = ()) -> list[str]:
    """How well layouts of one model, system and size are ranked; by family also of rows that set constants."""
    found = contests(rows)
    if found is None:
        return ["No three rows are layouts of one model on one system, of one size and work."]
    lines = wrapped(
        f"{found.contests} times three or more rows of a family are layouts of one model on one system, of one size, "
        f"work, format and software: {found.rows} rows. Spearman's rank correlation inside such a contest is "
        f"{found.correlation:.3f} (the mean, weighted by rows; {RANKED} is aimed at); of two layouts that are 5 % or "
        f"more apart {found.ordered:.0%} are in the right order. {found.level} more contests, whose measurements all "
        "lie within 5 %, have no order: one layout that BIGSCI measured twice differs by 9 %. By family:"
    )
    lines += ["", "| family | contests | rows | rank | pairs in order |", "|---|---:|---:|---:|---:|"]
    for name in dict.fromkeys(row.source for row in (*rows, *apart)):
        own = contests([row for row in (*rows, *apart) if row.source == name])
        if own is not None:
            numbers = f"{own.contests} | {own.rows} | {own.correlation:.3f} | {own.ordered:.0%}"
            lines.append(f"| {tables.cell(name)} | {numbers} |")
    return lines


def wrapped(text: str) -> list[str]:
    """A paragraph in lines of the page."""
    return textwrap.wrap(text, 119)

"""Writes the parts of the documentation that the program prints, so that no page quotes a stale number.

Run: python docs/refresh.py [--check]     (with --check nothing is written; exit status 1 if a page is stale)

* A fenced `text` block right after a fenced `sh` block holds what the last line of that block prints, up to `LINES`
  lines.
* `docs/accuracy.md` is written whole, from the published measurements in `tests/golden/`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import re
import shlex
import sys
from pathlib import Path

from symperf import Model, Plan, Run, System
from symperf.cli import main as symperf

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
PAGES = ("README.md", "docs/derive.md")
LINES = 26
BLOCK = re.compile(r"(```sh\n(?P<commands>.*?)```\n\n```text\n)(?P<output>.*?)(```\n)", re.DOTALL)


def printed(command: str) -> str:
    """What a `symperf ...` command line prints."""
    words = shlex.split(command)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = symperf(words[1:])
    if code:
        raise SystemExit(f"{command}: exit status {code}")
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([*lines[:LINES], *(["..."] if len(lines) > LINES else [])]) + "\n"


def refreshed(page: str) -> str:
    """A page with its `text` blocks as the program prints them now."""

    def fresh(match: re.Match[str]) -> str:
        last = match["commands"].strip().splitlines()[-1]
        return match[1] + printed(last) + match[4]

    return BLOCK.sub(fresh, page)


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a file of published measurements."""
    with (GOLDEN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def reference_run(row: dict[str, str]) -> Run:
    """The run of a row of `reference_training.csv`, with every default as it is."""
    plan = Plan(
        tp=int(row["tp"]),
        pp=int(row["pp"]),
        dp=int(row["dp"]),
        vpp=int(row["vpp"] or 1),
        micro_batch=int(row["micro_batch"] or 1),
        recompute=row["recompute"],
        sequence_parallel=row["sequence_parallel"] == "True",
    )
    model, system = Model.load(row["model"]), System.load(row["system"])
    return Run(model, system, plan, batch=int(row["batch"]), sequence=int(row["sequence"]))


def accuracy() -> str:
    """The page of predictions beside published measurements."""
    lines = [
        "# Accuracy",
        "",
        "Written by `python docs/refresh.py`; CI checks that it is current. Every efficiency is the default of the",
        "system's file, set by calibration rows only (`benchmarks/calibration/`); no number was set by a row below.",
        "",
        "## Step time",
        "",
        "Rows of Korthikanti et al. 2022 (arXiv 2205.05198, tables 3 and 5) and Narayanan et al. 2021 (arXiv",
        "2104.04473, table 1; micro-batch not stated there, taken as 1). The paper's predictions are those of Kundu et",
        "al. 2024 (arXiv 2407.14645) as far as they can be assigned to rows.",
        "",
        "| set | model | recompute | devices | measured s | symperf s | error | the paper's error |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    errors: dict[str, list[tuple[float, float]]] = {}
    for row in rows("reference_training.csv"):
        measured, theirs = float(row["measured_s"]), float(row["paper_predicted_s_probable"])
        predicted = reference_run(row).value("time")
        error, paper = predicted / measured - 1, theirs / measured - 1
        errors.setdefault(row["set"], []).append((error, paper))
        recompute = row["recompute"] + (" + SP" if row["sequence_parallel"] == "True" else "")
        lines.append(
            f"| {row['set']} | {row['model']} | {recompute} | {row['devices']} | {measured:.2f} | {predicted:.2f} "
            f"| {error:+.1%} | {paper:+.1%} |"
        )
    lines += [
        "",
        "| set | rows | mean absolute error | worst | bias | the paper's mean |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, pairs in errors.items():
        own = [error for error, _ in pairs]
        mean, worst = sum(map(abs, own)) / len(own), max(own, key=abs)
        paper_mean = sum(abs(paper) for _, paper in pairs) / len(pairs)
        lines.append(
            f"| {name} | {len(own)} | {mean:.1%} | {worst:+.1%} | {sum(own) / len(own):+.1%} | {paper_mean:.1%} |"
        )
    return "\n".join([*lines, *layer_times()]) + "\n"


def layer_times() -> list[str]:
    """The section on the forward and backward time of one layer."""
    lines = [
        "",
        "## One layer",
        "",
        "One layer of the 22-billion-parameter GPT, micro-batch 4, on 8 devices: Korthikanti et al. 2022, table 4.",
        "The prediction is the layer's part of the step time; a backward pass includes what it computes again.",
        "",
        "| case | pass | measured ms | symperf ms | error |",
        "|---|---|---:|---:|---:|",
    ]
    model, system = Model.load("gpt-22b"), System.load("a100-80gb-sxm")
    for row in rows("korthikanti_layer.csv"):
        case, what = row["recompute"], row["primary_metric"].removeprefix("per-layer ").removesuffix(" time")
        plan = Plan(
            tp=8,
            micro_batch=4,
            recompute=next((mode for mode in ("full", "selective") if mode in case), "none"),
            sequence_parallel="sequence parallelism" in case,
        )
        terms = [r for r in Run(model, system, plan, batch=4, sequence=2048).table() if r.name.startswith("layer/")]
        forward = sum(r.time_s for r in terms if r.name.endswith("/forward")) / model.sizes["num_layers"]
        total = sum(r.time_s for r in terms) / model.sizes["num_layers"]
        predicted = 1e3 * {"forward": forward, "backward": total - forward, "forward+backward": total}[what]
        measured = float(row["value"])
        lines.append(f"| {case} | {what} | {measured:.1f} | {predicted:.1f} | {predicted / measured - 1:+.1%} |")
    return lines


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a page is stale")
    options = parser.parse_args()
    fresh = {ROOT / page: refreshed((ROOT / page).read_text(encoding="utf-8")) for page in PAGES}
    fresh[ROOT / "docs" / "accuracy.md"] = accuracy()
    stale = [path for path, text in fresh.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'stale' if options.check else 'written'}")
        if not options.check:
            path.write_text(fresh[path], encoding="utf-8")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())

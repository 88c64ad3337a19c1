"""The numbers and figures of the paper: `python paper/figures.py` writes them, and with `--check` says what is stale.

Numbers stand in `paper.md` between `<!-- begin NAME -->` and `<!-- end NAME -->`, and are those of the table of
predictions beside `docs/accuracy.md` and of the catalogue, so that none has to be copied. Figures are drawn from the
same table and from one run.
"""

from __future__ import annotations

import argparse
import csv
import re
import statistics
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAPER = HERE / "paper.md"
ROWS = ROOT / "docs" / "accuracy" / "rows.csv"
CALIBRATION = "(calibration)"
"""What the name of a family of rows that set constants ends with."""
SUBJECTS = {
    "training": "dense training",
    "mixtures": "training of mixtures of experts",
    "blackwell": "runs on Blackwell",
    "memory": "memory",
    "inference": "passes and batches of inference",
    "serving": "servers under load",
}
"""What rows are judged as, in words."""
TABLE = "KORTH"
"""The family whose rows are listed."""


def rows() -> list[dict[str, str]]:
    """The rows that are scored."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if not row["source"].endswith(CALIBRATION)]


def percent(value: float) -> str:
    """A share with one digit behind the point.

    >>> percent(0.1024)
    '10.2 %'
    """
    return f"{100 * value:.1f} %"


def catalogue() -> str:
    """How much there is, by what it is more than, so that the paper is not stale at each formula."""
    from symperf.formulas.registry import load

    folder = ROOT / "symperf" / "catalogue"
    models, systems = len(list(folder.glob("models/*.json"))), len(list(folder.glob("systems/*.toml")))
    return (
        f"Version {version()} has more than {below(len(load()), 100)} formulas, and a catalogue of more than "
        f"{below(models, 100)} models and {below(systems, 10)} systems in which each number has its source."
    )


def below(count: int, step: int) -> int:
    """The largest multiple of a step that is smaller.

    >>> below(597, 100), below(600, 100)
    (500, 500)
    """
    return (count - 1) // step * step


def version() -> str:
    """Of the program."""
    from symperf import __version__

    return __version__


def accuracy(scored: list[dict[str, str]]) -> str:
    """Errors and coverage over all rows and by subject."""
    errors = [abs(float(row["error"])) for row in scored]
    bounded = [row for row in scored if row["low"] and row["high"]]
    inside = sum(float(row["low"]) <= float(row["measured"]) <= float(row["high"]) for row in bounded) / len(bounded)
    parts = []
    for subject, words in SUBJECTS.items():
        of = [abs(float(row["error"])) for row in scored if row["judged"] == subject]
        parts.append(f"{percent(statistics.median(of))} of {words} ({len(of):,})")
    return (
        f"{len(scored):,} published measurements stand beside predictions in the documentation, with all errors by "
        f"family, device, software and year, the largest first. No constant was fitted to them, but some were chosen, "
        f"and definitions read, when errors were known; the documentation tells these apart. The median absolute error "
        f"is {percent(statistics.median(errors))}: {', '.join(parts)}. Each prediction of a time has an interval that "
        f"is to hold nine tenths of measurements, and holds {percent(inside)}. Where an error is large, its cause is "
        f"told where it is known."
    )


def table(scored: list[dict[str, str]]) -> str:
    """The rows of one family."""
    found = [row for row in scored if row["source"] == TABLE]
    lines = ["| run of @korthikanti2022 | measured | predicted | error |", "|---|---:|---:|---:|"]
    for row in found:
        case = row["case"].partition(": ")[2].split(", ")
        name = f"{case[0]}, {case[1].split(' x ')[0]} GPUs, {case[-1]}"
        measured, predicted = float(row["measured"]), float(row["predicted"])
        lines.append(f"| {name} | {measured:.2f} s | {predicted:.2f} s | {100 * (predicted / measured - 1):+.1f} % |")
    return "\n".join([*lines, "", ": Times of training steps. No constant was fitted to them."])


def written(text: str) -> str:
    """The paper with its numbers as they are now."""
    scored = rows()
    for name, block in (("catalogue", catalogue()), ("accuracy", accuracy(scored)), ("table", table(scored))):
        pattern = rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)"
        text, count = re.subn(
            pattern, lambda match, block=block: f"{match[1]}\n{block}\n\n{match[2]}", text, flags=re.DOTALL
        )
        if count != 1:
            raise SystemExit(f"paper.md: found {count} places for '{name}', expected 1")
    return text


def draw_accuracy(axes: Any) -> None:
    """Predicted against measured times."""
    times = [row for row in rows() if row["quantity"].endswith("_s") and not row["quantity"].startswith("tokens")]
    for subject, words in SUBJECTS.items():
        of = [row for row in times if row["judged"] == subject]
        if of:
            points = [float(row["measured"]) for row in of], [float(row["predicted"]) for row in of]
            axes.scatter(*points, s=4, alpha=0.5, linewidths=0, label=words, rasterized=True)
    every = [float(row["measured"]) for row in times]
    ends = [min(every), max(every)]
    axes.plot(ends, ends, color="0.2", linewidth=0.8)
    axes.fill_between(
        ends, [end / 1.25 for end in ends], [end * 1.25 for end in ends], color="0.5", alpha=0.25, linewidth=0
    )
    axes.set(xscale="log", yscale="log", xlabel="measured in s", ylabel="predicted in s")
    axes.legend(frameon=False, markerscale=3)


def draw_shares(axes: Any) -> None:
    """Shares of a step along the bandwidth of memory."""
    import symperf as sf

    plan = sf.Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True)
    run = sf.training(sf.Model.load("gpt3-175b"), sf.System.load("a100-80gb-sxm"), plan, batch=64, sequence=2048)
    bandwidths = [1e11 * 1.15**k for k in range(34)]
    shares = [run.bind(memory_bandwidth=each).shares() for each in bandwidths]
    names = [name for name in shares[0] if max(each[name] for each in shares) > 0.01]
    axes.stackplot(
        bandwidths, [[each[name] for each in shares] for name in names], labels=[n.replace("_", " ") for n in names]
    )
    axes.set(xscale="log", xlabel="memory bandwidth in bytes/s", ylabel="share of the step")
    axes.set(xlim=(bandwidths[0], bandwidths[-1]), ylim=(0, 1))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)


FIGURES = {"accuracy.png": draw_accuracy, "shares.png": draw_shares}


def main() -> int:
    """Write the paper and its figures, or check the numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a number is stale")
    options = parser.parse_args()
    now = PAPER.read_text(encoding="utf-8")
    fresh = written(now)
    if options.check:
        if fresh != now:
            print("paper/paper.md: stale")
        return int(fresh != now)
    PAPER.write_text(fresh, encoding="utf-8")
    from matplotlib.figure import Figure

    for name, draw in FIGURES.items():
        axes = Figure(figsize=(6, 3.6), layout="constrained").subplots()
        draw(axes)
        axes.figure.savefig(HERE / name, dpi=160, metadata={"Software": None})
        print(f"paper/{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())

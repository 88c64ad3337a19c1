"""The page `docs/accuracy.md`, and the tables and figures beside it in `docs/accuracy/`.

Every prediction is kept in `rows.csv`, so that the page can be written again and checked without computing all of them:
a check predicts the rows anew whose hash has changed (`accuracy_hashes.py`), and compares.
"""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import accuracy_blocks
import accuracy_evidence
import accuracy_groups
import accuracy_hashes
import accuracy_serving

from symperf.pictures.figure import picture
from symperf.validation import report as tables
from symperf.validation.case import Case, LeftOut, Scored
from symperf.validation.plot import sheet
from symperf.validation.rows import PACKAGED, TableRow, read
from symperf.validation.score import Report, predict_case, summaries, validate
from symperf.validation.tables import columns_of

HERE = Path(__file__).resolve().parent / "accuracy"
ROWS, LEFT_OUT = HERE / "rows.csv", HERE / "left_out.csv"
FIGURES = (HERE / "scatter.png", HERE / "scatter.svg")
SAMPLE = 25
CLOSE = 1e-5
"""How far a prediction may be from the kept one, which has six digits."""
REFERENCES = ("reference_training", "reference_inference")
WORST = 12

TOOLS_TRAINING = (
    (
        "Calculon",
        "3.65 %",
        "Isaev et al., SC 2023, doi 10.1145/3581784.3607102; as compiled for this project, not checked against it",
    ),
    ("Kundu et al.", "4.4 %", "arXiv 2407.14645; as compiled for this project, as far as figures belong to rows"),
    ("SimuMax", "5.1 %", "github.com/MooreThreads/SimuMax; as compiled for this project, not checked against it"),
    (
        "RAPID-LLM",
        "9.3 % (four rows)",
        "as compiled for this project; the abstract of arXiv 2512.19606 says within 10.4 %",
    ),
    ("llm-analysis", "10.4 %", "github.com/cli99/llm-analysis; as compiled for this project, not checked against it"),
)
TOOLS_INFERENCE = (
    ("RAPID-LLM", "2.4 to 12 %", "as compiled for this project; the abstract of arXiv 2512.19606 says within 10.4 %"),
    ("Vidur", "12 %", "as compiled for this project, from a comparison by the authors of RAPID-LLM"),
    ("GenZ", "30 %", "as compiled for this project, from a comparison by the authors of RAPID-LLM"),
    ("LLM-Viewer", "34 to 40 %", "as compiled for this project; no primary source found"),
    ("llm-analysis", "40 %", "as compiled for this project; no primary source found"),
    ("LLMCompass", "70 %", "as compiled for this project, from a comparison by the authors of RAPID-LLM"),
)
"""Published predictions of other tools: mean absolute error, and where the figure is from."""

HEAD = """\
# Accuracy

Written by `python docs/refresh.py` from `symperf validate`; CI checks that it is current. Every efficiency is the
default of the system's file or of a software's profile (`benchmarks/calibration/`); no constant was fitted to a row
below, but [some were chosen](#measured-kernels-alone-or-chosen-constants) when errors of whole steps were known, and
[definitions too](#how-independent-these-numbers-are). What a row does not say of its software is
declared in `symperf/validation/` and described in [validation](validation.md). Large errors are shown as they are.
"""


def report() -> Report:
    """Every prediction, computed now."""
    return validate()


def write(found: Report) -> dict[Path, str | bytes]:
    """The page, its tables and its figures, by path."""
    left = io.StringIO()
    writer = csv.writer(left, lineterminator="\n")
    writer.writerows([("source", "case", "reason"), *((row.source, row.case, row.reason) for row in found.left_out)])
    files: dict[Path, str | bytes] = {ROWS: tables.as_csv(found.scored), LEFT_OUT: left.getvalue()}
    hashes = accuracy_hashes.written(results(found), files)
    return files | {path: drawn(found, path) for path in FIGURES} | {accuracy_hashes.FILE: hashes}


def drawn(found: Report, path: Path) -> bytes:
    """The picture of all rows, as the file of that name holds it."""
    with tempfile.TemporaryDirectory() as folder:
        picture(sheet(found.scored), Path(folder) / path.name)
        return (Path(folder) / path.name).read_bytes()


def results(found: Report) -> dict[tuple[str, str, str], str]:
    """What is kept for each case, by family, case and quantity; of a case that is left out, whatever its quantity."""
    scored = {(row.source, row.case, row.quantity): accuracy_hashes.told(row) for row in found.scored}
    left = {(row.source, row.case): row.reason for row in found.left_out}
    return Results(scored, left)


class Results(dict[tuple[str, str, str], str]):
    """What is kept for each case; nothing for one that is not known.

    Args:
        scored: by family, case and quantity.
        left: reasons, by family and case.
    """

    def __init__(self, scored: dict[tuple[str, str, str], str], left: dict[tuple[str, str], str]) -> None:
        super().__init__(scored)
        self.left = left

    def __missing__(self, key: tuple[str, str, str]) -> str:
        return self.left.get(key[:2], "")


def kept() -> Report:
    """Every prediction, as it was when the page was written."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        scored = [
            Scored(
                row["source"],
                row["case"],
                row["quantity"],
                float(row["measured"]),
                float(row["predicted"]),
                {name: row[name] for name in tables.LABELS if row.get(name)},
                chosen=float(row["chosen"]) if row.get("chosen") else None,
                low=float(row["low"]) if row["low"] else None,
                high=float(row["high"]) if row["high"] else None,
            )
            for row in csv.DictReader(file)
        ]
    with LEFT_OUT.open(encoding="utf-8", newline="") as file:
        left = [LeftOut(row["source"], row["case"], row["reason"]) for row in csv.DictReader(file)]
    return Report(scored, left)


def stale(*, sample: bool = False) -> list[str]:
    """What of the kept predictions is no longer so, one line each: of all rows whose hash has changed.

    Args:
        sample: predict every `SAMPLE`-th of them alone, and the references of the paper that symperf follows.
    """
    all_inputs, hashes = accuracy_hashes.stored()
    if all_inputs == accuracy_hashes.inputs({path: path.read_text(encoding="utf-8") for path in (ROWS, LEFT_OUT)}):
        return []
    before = kept()
    was = results(before)
    known = {(row.source, row.case, row.quantity): row for row in before.scored}
    out = {(row.source, row.case) for row in before.left_out}
    found, number = [], 0
    for row, item in accuracy_hashes.every_item():
        if isinstance(item, LeftOut):
            if (item.source, item.case) not in out:
                found.append(f"{item.case}: left out now: {item.reason}")
            continue
        number += 1
        if sample and number % SAMPLE and item.source not in REFERENCES:
            continue
        if accuracy_hashes.row_hash(row, item, was[item.source, item.case, item.quantity]) not in hashes:
            found += compared(item, known, was)
    return found


def compared(case: Case, known: dict[tuple[str, str, str], Scored], was: dict[tuple[str, str, str], str]) -> list[str]:
    """What a case's prediction is now, if that is not what was kept."""
    now, key = predict_case(case), (case.source, case.case, case.quantity)
    if isinstance(now, LeftOut):
        return [] if was[key] == now.reason else [f"{now.case}: left out now: {now.reason}"]
    before = known.get(key)
    if before is None:
        return [f"{now.case}: was not scored"]
    for name in ("predicted", "low", "high"):
        new, old = getattr(now, name), getattr(before, name)
        if (new is None) != (old is None) or (new is not None and abs(new / old - 1) > CLOSE):
            return [f"{now.case}: {name} {new}, was {old}"]
    return []


def page(found: Report) -> str:
    """The page."""
    lines = [HEAD, f"{tables.total(found)}.", ""]
    lines += [
        "Mean and median are of absolute errors; bias is the mean error with its sign; rank is Spearman's; coverage"
    ]
    lines += [
        "is the part of measurements inside the 90 % interval of the prediction, width the median of high over low."
    ]
    lines += ["", *accuracy_groups.section(found), "", "## By family", ""]
    scored = [summary for summary in summaries(found) if summary.rows]
    lines += tables.summary_table(scored)
    lines += ["", "![measured against predicted, by family](accuracy/scatter.png)", ""]
    lines += ["Every row: [rows.csv](accuracy/rows.csv).", "", *beside_other_tools(found), "", *reference_rows(found)]
    lines += ["", *accuracy_groups.group_sections(found), "", *accuracy_evidence.section()]
    lines += [
        "",
        *accuracy_blocks.section(),
        "",
        *layers(found),
        "",
        *accuracy_serving.section(found),
        "",
        "## Worst rows",
        "",
        *worst_rows(found),
    ]
    lines += ["", "## Left out", "", "Every row: [left_out.csv](accuracy/left_out.csv).", ""]
    return "\n".join([*lines, *tables.left_out_table(found)]) + "\n"


def beside_other_tools(found: Report) -> list[str]:
    """The section on other tools."""
    training = [row for row in of(found, "reference_training") if row.case.startswith("korthikanti")]
    inference = [row for row in of(found, "reference_inference") if "a100" in row.case.casefold()]
    return [
        "## Beside other tools",
        "",
        "Mean absolute error on the eight rows of Korthikanti et al. 2022 (arXiv 2205.05198, table 5):",
        "",
        *tool_table(("symperf", mean(training), "the rows below"), TOOLS_TRAINING),
        "",
        "On the Llama 2 rows on A100 (batch 1, 200 tokens in and 200 out):",
        "",
        *tool_table(("symperf", mean(inference), "the rows below"), TOOLS_INFERENCE),
        "",
        "Tools differ in which rows they show and in how much they fit to them. Figures compiled for this project were",
        "not checked against the primary source; so is RAPID-LLM's 13.2 % on 52 FOUNDRY rows (MPT on H100 in BF16).",
    ]


def tool_table(own: tuple[str, str, str], others: tuple[tuple[str, str, str], ...]) -> list[str]:
    """The lines of a table of tools."""
    lines = ["| tool | mean absolute error | source |", "|---|---:|---|"]
    return lines + [f"| {name} | {error} | {source} |" for name, error, source in (own, *others)]


def reference_rows(found: Report) -> list[str]:
    """The section on the rows of the paper's own validation."""
    lines = [
        "## Reference rows",
        "",
        "Rows of Korthikanti et al. 2022 (tables 3 and 5) and Narayanan et al. 2021 (arXiv 2104.04473, table 1;",
        "micro-batch not stated there, taken as 1). The paper is Kundu et al. 2024 (arXiv 2407.14645).",
        "",
        "| case | measured s | symperf s | error | the paper's error |",
        "|---|---:|---:|---:|---:|",
    ]
    theirs = [row.number("paper_predicted_s_probable") for row in read_reference()]
    for row, paper in zip(of(found, "reference_training"), theirs, strict=True):
        error = "" if paper is None else f"{paper / row.measured - 1:+.1%}"
        lines.append(f"| {row.case} | {row.measured:.2f} | {row.predicted:.2f} | {row.error:+.1%} | {error} |")
    lines += ["", "Llama 2, batch 1, 200 tokens in and 200 out, FP16: NVIDIA's NeMo page, as in Kundu et al. 2024; the"]
    lines += ["serving software is `tensorrt-llm`, of that time, as which one was measured is not published.", ""]
    return [*lines, *row_table(of(found, "reference_inference"))]


def read_reference() -> list[TableRow]:
    """The rows of the table of training references."""
    return read(PACKAGED / "reference_training.csv", columns_of("reference_training.csv"))


def layers(found: Report) -> list[str]:
    """The section on the forward and backward time of one layer."""
    lines = [
        "## One layer",
        "",
        "One layer of the 22-billion-parameter GPT, micro-batch 4, on 8 devices: Korthikanti et",
    ]
    lines += ["al. 2022, table 4. A backward pass includes what it computes again.", ""]
    return [*lines, *row_table(of(found, "KORTHLAYER"))]


def worst_rows(found: Report) -> list[str]:
    """The rows with the largest errors."""
    return row_table(tables.worst(found, WORST))


def row_table(rows: list[Scored]) -> list[str]:
    """The lines of a table of rows."""
    lines = ["| case | quantity | measured | symperf | error |", "|---|---|---:|---:|---:|"]
    return lines + [
        f"| {tables.cell(row.case)} | {row.quantity} | {row.measured:.4g} | {row.predicted:.4g} | {row.error:+.1%} |"
        for row in rows
    ]


def of(found: Report, source: str) -> list[Scored]:
    """The rows of a family."""
    return [row for row in found.scored if row.source == source]


def mean(rows: list[Scored]) -> str:
    """The mean absolute error of some rows, as text."""
    return f"{sum(abs(row.error) for row in rows) / len(rows):.1%} ({len(rows)} rows)"

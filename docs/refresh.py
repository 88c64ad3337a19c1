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

from symperf import Model, Plan, Run, System, inference
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
    return "\n".join([*lines, *layer_times(), *inference_latencies(), *inference_families()]) + "\n"


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


def inference_latencies() -> list[str]:
    """The section on Llama 2 latencies."""
    lines = [
        "",
        "## Inference",
        "",
        "Llama 2, batch 1, 200 tokens in and 200 out, FP16: NVIDIA's NeMo page, as in Kundu et al. 2024. The",
        "serving software is the default profile (`tensorrt-llm`); which one was measured is not published.",
        "",
        "| model | system | tp | measured s | symperf s | error |",
        "|---|---|---:|---:|---:|---:|",
    ]
    errors = []
    for row in rows("reference_inference.csv"):
        plan = Plan(tp=int(row["tp"]), precision=row["precision"])
        work = {name: int(row[name]) for name in ("batch", "prompt", "generate")}
        run = inference(Model.load(row["model"]), System.load(row["system"]), plan, **work)
        measured, predicted = float(row["measured_s"]), run.value("time")
        errors.append(predicted / measured - 1)
        lines.append(
            f"| {row['model']} | {row['system']} | {row['tp']} | {measured:.3f} | {predicted:.3f} | {errors[-1]:+.1%} |"
        )
    mean, worst = sum(map(abs, errors)) / len(errors), max(errors, key=abs)
    bias = sum(errors) / len(errors)
    return [*lines, "", f"Mean absolute error {mean:.1%}, worst {worst:+.1%}, bias {bias:+.1%}."]


STACKS = {"FTGPT": "fastertransformer", "TRTL": "tensorrt-llm", "VLLMCI": "vllm"}
"""The serving software of each family of `inference.csv`."""


def inference_families() -> list[str]:
    """The section on latencies of serving software, by family."""
    lines = [
        "",
        "Published latencies by family: FTGPT, FasterTransformer's grid of GPT latencies on A100; TRTL, TensorRT-LLM's",
        "first-token latencies at batch 1; VLLMCI, vLLM's latency job. Nothing was set by them; large errors are shown",
        "as they are.",
        "",
        "| family | stack | rows | mean absolute error | median | bias | rank correlation |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    found: dict[str, list[tuple[float, float]]] = {}
    published = rows("inference.csv")
    expressed = [row for row in published if row["framework"] != "Megatron"]
    for row in expressed:
        found.setdefault(row["id"].split("-")[0], []).append((float(row["value"]), latency(row)))
    for family, pairs in found.items():
        errors = [predicted / measured - 1 for measured, predicted in pairs]
        sizes = sorted(map(abs, errors))
        rank = correlation(*(ranks([pair[side] for pair in pairs]) for side in (0, 1)))
        lines.append(
            f"| {family} | {STACKS[family]} | {len(pairs)} | {sum(sizes) / len(sizes):.1%} "
            f"| {sizes[len(sizes) // 2]:.1%} | {sum(errors) / len(errors):+.1%} | {rank:.3f} |"
        )
    left = len(published) - len(expressed)
    return [
        *lines,
        "",
        f"{left} rows of FTGPT are left out: they are of Megatron-LM's own inference, which no stack stands for.",
    ]


def latency(row: dict[str, str]) -> float:
    """The predicted milliseconds of a row of `inference.csv`."""
    plan = Plan(tp=int(row["tp"] or 1), pp=int(row["pp"] or 1), precision=row["precision"] or None)
    run = inference(
        Model.load(row["model"]),
        System.load(row["hw_key"]),
        plan,
        batch=int(row["batch_size"]),
        prompt=int(row["input_len_tokens"]),
        generate=int(row["output_len_tokens"]),
        stack=STACKS[row["id"].split("-")[0]],
        kv_precision=row["kv_dtype"] or None,
    )
    return 1e3 * run.value("prefill" if row["metric"] == "first_token_latency" else "time")


def ranks(values: list[float]) -> list[float]:
    """The mean rank of each value."""
    return [sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values]


def correlation(left: list[float], right: list[float]) -> float:
    """Pearson's correlation."""
    means = sum(left) / len(left), sum(right) / len(right)
    pairs = [(a - means[0], b - means[1]) for a, b in zip(left, right, strict=True)]
    spread = sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs)
    return sum(a * b for a, b in pairs) / float(spread) ** 0.5


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

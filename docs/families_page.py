"""Writes the table of models in docs/architectures.md: what each file holds, and one inference and one step of each.

Run: python docs/families_page.py [--check]     (with --check nothing is written; exit status 1 if the table is stale)

Inference: 8 sequences of 1024 + 128 tokens on H200, the smallest tensor-parallel group that holds them, as the
checkpoint is stored. Training: 256 sequences of 4096 tokens on 64 H200 in BF16, ZeRO-1, full recomputation, experts
dealt to 8 devices, the smallest tensor-parallel group that holds them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import symperf as sf
from symperf.models.catalogue import CATALOGUE

PAGE = Path(__file__).parent / "architectures.md"
BEGIN, END = "<!-- models: begin -->\n", "<!-- models: end -->\n"
MODELS = """
    qwen3.5-27b qwen3.5-35b-a3b qwen3.5-397b-a17b nemotron-3-super-120b-a12b nemotron-super-49b granite-4.0-h-small
    hunyuan-a13b ernie-4.5-21b-a3b ling-mini-2.0 kimi-k2.5 mimo-7b-base seed-oss-36b smollm3-3b mistral-small-3.1-24b
    qwen3-vl-32b qwen3-vl-30b-a3b gemma-4-26b-a4b gpt-oss-120b deepseek-v3 minimax-m2.5 glm-4.6 llama-4-maverick
    deepseek-v3.2 deepseek-v4-flash glm-5 minimax-m3 kimi-linear-48b-a3b xlstm-7b lfm2-8b-a1b qwen2.5-vl-7b
"""
GROUPS = (1, 2, 4, 8)


def rows() -> list[str]:
    """The rows of the table."""
    return [row(name) for name in MODELS.split() if CATALOGUE.find(name)]


def row(name: str) -> str:
    """The row of a model."""
    model = sf.Model.load(name)
    found = sf.inspect(model)
    kinds = "; ".join(f"{layer['count']} {layer['kind']}" for layer in found["layers"][:4])
    kinds += f"; {len(found['layers']) - 4} more kinds" if len(found["layers"]) > 4 else ""
    total, active = (found["parameters"][key] for key in ("total", "active_per_token"))
    cache, state = found["kv_cache"]["growing_bytes_per_token"], found["kv_cache"]["state_bytes_per_sequence"]
    counts = [f"{count:,}" for count in (total, active, cache, state)]
    cells = [name, f"`{CATALOGUE.entries[name]['hub_id']}`", kinds, *counts]
    return "| " + " | ".join([*cells, inference(model), training(model)]) + " |"


def inference(model: sf.Model) -> str:
    """Tokens per second of the smallest group that holds it."""
    for tp in GROUPS:
        try:
            run = sf.inference(model, "h200-sxm", sf.Plan(tp=tp), batch=8, prompt=1024, generate=128)
        except sf.InputError:
            continue
        if run.fits:
            return f"tp {tp}: {run.value('tokens_per_s'):,.0f} token/s"
    return "no group of 8 holds it"


def training(model: sf.Model) -> str:
    """Seconds and MFU of the smallest group that holds it."""
    ep = 8 if model.architecture.routed else 1
    for tp in GROUPS:
        plan = sf.Plan(tp=tp, dp=64 // tp, ep=ep, zero=1, recompute="full", sequence_parallel=tp > 1)
        try:
            run = sf.training(model, "h200-sxm", plan, batch=256, sequence=4096)
        except sf.InputError:
            continue
        if run.fits:
            return f"tp {tp}: {float(run.time.value()):.3g} s, MFU {100 * run.value('mfu'):.1f} %"
    return "no group of 8 holds it without a pipeline"


def main() -> int:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the table is stale")
    options = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    head = [
        "| model | file | layers | parameters | active | cache, B/token | state, B | infer | train |",
        "|---|---|---|---:|---:|---:|---:|---|---|",
    ]
    fresh = before + BEGIN + "\n".join([*head, *rows()]) + "\n" + END + after
    if options.check:
        return int(fresh != text)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

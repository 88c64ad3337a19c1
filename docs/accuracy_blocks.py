"""Blocks and steps that `symperf measure` timed on one H200, beside what symperf predicts of them.

No constant is fitted to these rows: those of the H200 are fitted to its single kernels, or to those of other parts.
"""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import symperf as sf

ROWS = Path(__file__).resolve().parents[1] / "benchmarks" / "calibration" / "h200.csv"
SYSTEM = "h200-sxm"
TRAINED, SERVED = "flash-attention-2", "vllm"
"""Software whose kernels are nearest: eager PyTorch with FlashAttention-2; fused kernels in CUDA graphs."""


def model(row: dict[str, str], folder: Path) -> sf.Model:
    """The model of whose blocks a row is: a Llama, or a GPT with layer norms, biases and GELU."""
    sizes = {key: int(row[key]) for key in ("layers", "hidden", "heads", "kv_heads", "ffn")}
    vocabulary = int(row["vocabulary"] or 32000)
    if row["name"].startswith("gpt"):
        config: dict[str, Any] = {"model_type": "gpt2", "n_layer": sizes["layers"], "n_embd": sizes["hidden"]}
        config |= {"n_head": sizes["heads"], "n_inner": sizes["ffn"], "n_positions": 8192, "vocab_size": vocabulary}
    else:
        config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu"}
        config |= {"num_hidden_layers": sizes["layers"], "hidden_size": sizes["hidden"], "vocab_size": vocabulary}
        config |= {"num_attention_heads": sizes["heads"], "num_key_value_heads": sizes["kv_heads"]}
        config |= {"head_dim": int(row["head_dim"]), "intermediate_size": sizes["ffn"], "rms_norm_eps": 1e-5}
        config |= {"max_position_embeddings": 8192, "tie_word_embeddings": bool(row["vocabulary"])}
    file = folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return sf.Model.load(file)


def trained(row: dict[str, str], folder: Path) -> float:
    """Seconds of blocks forward, or forward and backward, or of a whole step, in eager mode."""
    plan = sf.Plan(attention="flash", dropout=False, recompute="none")
    work = {"batch": int(row["batch"]), "sequence": int(row["sequence"])}
    run = sf.training(model(row, folder), SYSTEM, plan, stack=TRAINED, **work)
    if row["name"].endswith("training step"):
        return run.value("time")
    layers = [term for term in run.table() if term.name.startswith("layer/")]
    forward = sum(term.time_s for term in layers if term.name.endswith("/forward"))
    return forward if row["name"].endswith(" forward") else sum(term.time_s for term in layers)


def served(row: dict[str, str], folder: Path) -> float:
    """Seconds of blocks that generate one token for each sequence, in a CUDA graph."""
    work = {"batch": int(row["batch"]), "prompt": int(row["context"]) - 1, "generate": 2}
    run = sf.inference(model(row, folder), SYSTEM, sf.Plan(precision="bf16"), stack=SERVED, **work)
    found = [op.time_s for op in run.operations() if op.phase == "decode" and op.name.startswith("layer/")]
    return sum(found)


def section() -> list[str]:
    """The lines of the section."""
    with ROWS.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "step"]
    lines = [
        "### Blocks and steps measured on one H200",
        "",
        "`symperf measure` on an H200 (PyTorch 2.11, benchmarks/calibration/h200.csv, kind `step`); no constant is",
        f"fitted to these rows. In eager mode, predicted as `{TRAINED}`:",
        "",
        "| what | hidden | batch x sequence | measured | predicted | error |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    errors: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            eager = row["mode"] == "eager"
            time, seconds = (trained if eager else served)(row, Path(folder)), float(row["seconds"])
            error = time / seconds - 1
            errors.setdefault("eager" if eager else row["batch"], []).append(error)
            if eager:
                lines.append(
                    f"| {row['name']} | {row['hidden']} | {row['batch']} x {row['sequence']} | "
                    f"{seconds * 1e3:.2f} ms | {time * 1e3:.2f} ms | {error:+.1%} |"
                )
    eager_mean, one, many = (float(np.mean(np.abs(errors[key]))) for key in ("eager", "1", "16"))
    return [
        *lines,
        "",
        f"Mean absolute error {eager_mean:.1%}. The smallest block's activations, 34 MB, stay in L2: not modelled.",
        "Blocks of Llama 2 7B, 13B and 70B in 1 to 8 parts that generate a token at 512 of context, in CUDA graphs,",
        f"predicted as `{SERVED}` (as many kernels, though not the same): {one:.1%} for one sequence, {many:.1%} for",
        "sixteen, whose caches FlashAttention-2 reads at half of the bandwidth where it does not split them.",
    ]

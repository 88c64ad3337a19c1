"""Other tools asked the same, for `performance.py`: those that an interpreter of one's own has, or none.

    python3 -m venv FOLDER && FOLDER/bin/pip install llm-analysis aiconfigurator

Both say what they are by `pip`; what is missing is not measured, and nothing is quoted of it. Calculon
(github.com/calculon-ai/calculon) is on no package index: the package of that name is another program.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from bench_startup import measure

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = ("llm-analysis", "aiconfigurator")
PLAIN = ["-W", "ignore", "-c"]
VERSIONS = """
import importlib.metadata as known, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = known.version(name)
    except known.PackageNotFoundError:
        found[name] = None
print(json.dumps(found))
"""
TIMED = """
import logging, time
logging.disable(logging.CRITICAL)
def least(ask, repeat):
    ask(0)
    found = []
    for k in range(1, repeat + 1):
        begin = time.process_time()
        value = ask(k)
        found.append(time.process_time() - begin)
        assert value > 0
    print(min(found))
"""
OURS_TRAIN = """
import symperf as sf
model, system = sf.Model.load("gpt3-175b"), sf.System.load("a100-80gb-sxm")
plan = sf.Plan(tp=8, pp=8, recompute="selective", sequence_parallel=True)
least(lambda k: sf.training(model, system, plan, batch=64, sequence=2048 - 64 * (k % 16)).value("time"), REPEAT)
"""
THEIRS_TRAIN = """
from llm_analysis.analysis import ActivationRecomputation, LLMAnalysis
from llm_analysis.config import ModelConfig, ParallelismConfig, get_gpu_config_by_name
model = ModelConfig(name="gpt3-175b", num_layers=96, n_head=96, hidden_dim=12288, vocab_size=51200, max_seq_len=2048,
                    ffn_embed_dim=49152)
gpu = get_gpu_config_by_name("a100-sxm-80gb")
plan = ParallelismConfig(tp_size=8, pp_size=8, dp_size=1, sp_size=8)
def ask(k):
    made = LLMAnalysis(model, gpu, parallelism_config=plan, flops_efficiency=0.5, hbm_memory_efficiency=0.9)
    return made.training(batch_size_per_gpu=1, global_batch_size=64, seq_len=2048 - 64 * (k % 16),
                         activation_recomputation=ActivationRecomputation.SELECTIVE)["latency_per_iter"]
least(ask, REPEAT)
"""
OURS_SERVE = """
import symperf as sf
model, system, plan = sf.Model.load("llama-3.1-70b"), sf.System.load("h100-sxm"), sf.Plan(tp=8)
def ask(k):
    return sf.serving(model, system, plan, prompt=1024, generate=256, concurrency=16 + k, stack="vllm").answer.tpot_s
least(ask, REPEAT)
"""
THEIRS_SERVE = """
from aiconfigurator.cli import api
def ask(k):
    return api.cli_estimate("meta-llama/Meta-Llama-3.1-70B", "h100_sxm", backend_name="vllm", isl=1024, osl=256,
                            batch_size=16 + k, tp_size=8).tpot
least(ask, REPEAT)
"""
IN_PROCESS = {
    "a training step of GPT-3 175B on 64 A100, through Python, once more": ("llm-analysis", OURS_TRAIN, THEIRS_TRAIN),
    "TTFT and TPOT of Llama 3.1 70B on 8 H100, through Python, once more": ("aiconfigurator", OURS_SERVE, THEIRS_SERVE),
}
"""By question: the tool, what symperf is asked and what the tool is, each time with another number."""
OF_LLAMA = "--model-path meta-llama/Meta-Llama-3.1-70B --system h100_sxm --backend vllm --isl 1024 --osl 256"
COMMANDS = {
    "TTFT and TPOT of Llama 3.1 70B on 8 H100, 16 in flight, the whole command": (
        "aiconfigurator",
        "serve llama-3.1-70b -s h100-sxm --tp 8 --prompt 1024 --generate 256 --concurrency 16 --stack vllm --json",
        f"cli estimate {OF_LLAMA} --tp-size 8 --batch-size 16",
    ),
    "the best plan of Llama 3.1 70B on 8 H100 for TTFT 1 s and TPOT 50 ms, the whole command": (
        "aiconfigurator",
        "search llama-3.1-70b -s h100-sxm --devices 8 --prompt 1024 --generate 256 --ttft 1 --tpot 0.05 --stack vllm",
        f"cli default {OF_LLAMA} --total-gpus 8 --ttft 1000 --tpot 50 --serving-mode agg",
    ),
}
"""By question: the tool, the words of symperf's command and of the tool's."""


def opponents(python: Path | None, cache: str, small: bool) -> dict[str, Any]:
    """What each tool that is there takes, and symperf for the same question, one after the other."""
    versions: dict[str, str | None] = dict.fromkeys(TOOLS)
    if python is not None:
        done = subprocess.run([str(python), "-c", VERSIONS, *TOOLS], check=True, capture_output=True, text=True)
        versions = json.loads(done.stdout)
    rows: list[dict[str, Any]] = []
    repeat, runs = (2, 1) if small else (12, 2)
    for question, (tool, ours, theirs) in IN_PROCESS.items():
        if python is not None and versions[tool]:
            both = (("symperf", sys.executable, ours), (tool, str(python), theirs))
            for name, interpreter, text in both:
                command = [interpreter, *PLAIN, (TIMED + text).replace("REPEAT", str(repeat))]
                found = min(float(measure(command, cache).output.split()[-1]) for _ in range(runs))
                rows.append({"question": question, "tool": name, "cpu_s": found})
    for question, (tool, ours, theirs) in COMMANDS.items():
        if python is not None and versions[tool]:
            begun = ([sys.executable, "-m", "symperf"], [str(python), "-W", "ignore", str(python.parent / tool)])
            for name, start, words in zip(("symperf", tool), begun, (ours, theirs), strict=True):
                taken = [measure([*start, *shlex.split(words)], cache) for _ in range(runs + 1)][1:]
                row = {"cpu_s": min(each.cpu for each in taken), "wall_s": min(each.wall for each in taken)}
                peak = max(each.peak_bytes for each in taken)
                rows.append({"question": question, "tool": name, **row, "peak_bytes": peak})
    return {"versions": versions, "rows": rows}

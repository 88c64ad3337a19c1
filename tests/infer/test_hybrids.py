"""Inference of layers with mixers side by side, of lightning attention and gated linear recurrent units."""

from __future__ import annotations

import csv
import math
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.operations.schedule import Op, terms

HYBRIDS = ("default-minimax", "default-olmo_hybrid", "default-recurrent_gemma", "default-zamba2", "falcon-h1-34b")
DEALT = {
    "default-minimax": 4,
    "default-olmo_hybrid": 2,
    "default-recurrent_gemma": 5,
    "default-zamba2": 1,
    "falcon-h1-34b": 2,
}


def load(name: str) -> sf.Model:
    return sf.Model.load(GOLDEN_2026 / "configs" / f"{name}.json")


def make(name: str, system: str = "h200-sxm", **how: Any) -> Any:
    plan = sf.Plan(**{key: how.pop(key) for key in list(how) if key in sf.Plan.names()})
    work: dict[str, Any] = {"batch": 2, "prompt": 512, "generate": 8, "stack": "none"} | how
    return sf.inference(load(name), sf.System.load(system), plan, **work)


def products(run: Any, phase: str) -> dict[str, float]:
    """FLOPs of the products of a phase on one device, by folder and name."""
    found = {}
    for path, leaf in terms(run.schedule_tree()).items():
        if isinstance(leaf, Op) and leaf.shape is not None and path.startswith(f"{phase}/layer"):
            found[path] = run.value(f"term/{path}/flops") * run.value(f"term/{path}/count")
    return found


@pytest.mark.parametrize("name", HYBRIDS)
def test_caches_and_states_are_those_of_pytorch(name: str) -> None:
    """Bytes of one sequence: keys and values of its tokens, and states in FP32 with the windows of convolutions."""
    run, counted = make(name, batch=1), sf.inspect(load(name), sequence=1)["kv_cache"]
    kept = run.memory_terms()
    slots = math.ceil(520 / run.bound["kv_block"][0]) * run.bound["kv_block"][0]
    each = counted["growing_bytes_per_token"] + counted["window_bytes_per_token"]
    assert kept["kv_cache"] == slots * each
    assert kept["kv_cache/state"] == counted["state_bytes_per_sequence"]
    with (GOLDEN_2026 / "kv.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["model"] == name:
                assert kept["kv_cache/state"] == int(row["constant_state_bytes"])


@pytest.mark.parametrize("name", HYBRIDS)
def test_products_are_those_that_are_counted(name: str) -> None:
    """Of prefill and of a step: projections of mixers, and MLP or experts; scans apart."""
    run = make(name)
    for phase, more in (("prefill", {"sequence": 512}), ("decode", {"sequence": 1, "context": 512})):
        flops = sf.inspect(load(name), batch=2, **more)["flops_forward"]
        ssm = sf.inspect(load(name), batch=2, **more)["flops_ssm"]["projections"]
        expected = ssm + sum(flops.get(kind, 0) for kind in ("projections", "mlp", "router", "experts"))
        found = {path: value for path, value in products(run, phase).items() if "/core/" not in path}
        steps = 7 if phase == "decode" else 1
        assert sum(found.values()) == pytest.approx(steps * expected, rel=1e-12), phase


@pytest.mark.parametrize("name", HYBRIDS)
def test_tensor_parallelism_conserves_products(name: str) -> None:
    tp = DEALT[name]
    for phase in ("prefill", "decode"):
        whole, split = products(make(name), phase), products(make(name, tp=tp), phase)
        routers = {path for path in whole if path.endswith("/router")}
        for path in whole.keys() - routers:
            assert tp * split[path] == pytest.approx(whole[path], rel=1e-12), path


def test_a_step_of_a_layer_with_two_mixers_by_hand() -> None:
    """Falcon-H1 on a device without tiles: one norm, both mixers one after the other, two additions, and the MLP."""
    b, h, f, heads, kv, inner, state = 2, 5120, 21504, 20 * 128, 4 * 128, 4096, 256
    channels, columns = inner + 2 * 2 * state, 2 * inner + 2 * 2 * state + 32
    run = make("falcon-h1-34b", "tpu-v5e", batch=b, generate=2)
    given = {name: value for name, (value, _) in run.bound.items()}
    bandwidth = given["memory_bandwidth"] * given["memory_efficiency"]
    matrix, core = (given[f"{kind}_rate"] * given[f"{kind}_efficiency"] for kind in ("matrix", "attention"))
    vector, start = given["vector_rate"] * given["vector_efficiency"], given["launch_latency"]

    def product(inner: int, columns: int, out: int = 2) -> float:
        moved = 2 * b * inner + 2 * inner * columns + out * b * columns
        return max(2 * b * inner * columns / matrix, moved / bandwidth) + start

    def stream(moved: float, work: float = 0.0) -> float:
        return max(moved / bandwidth, work / vector) + start

    norm = stream(4 * b * h * 2, b * h * 9)
    attention = product(h, heads + 2 * kv) + product(heads, h)
    attention += max(513 * 4 * b * heads / core, (2 * b * heads + 513 * 2 * b * kv) * 2 / bandwidth) + start
    moved = 2 * b * inner * state * 4 + 2 * b * (2 * inner + 2 * 2 * state + 32)
    mamba = product(h, columns) + product(inner, h) + stream(3 * b * inner * 2, b * inner * 16)
    mamba += stream(2 * b * channels * 2 + 2 * b * channels * 4 * 2 + channels * 4 * 2, b * channels * 16)
    mamba += stream(moved, 6 * b * inner * state)
    mlp = product(h, 2 * f) + stream(3 * b * f * 2, b * f * 8) + product(f, h)
    layer = 2 * norm + attention + mamba + stream(3 * b * h * 2, b * h) + mlp
    ends = stream(b * (2 * h * 2 + given["index_bytes"])) + norm
    ends += product(h, 261120, out=4) + stream(b * 261120 * 4, b * 261120 * 6)
    assert run.value("decode") == pytest.approx(72 * layer + ends, rel=1e-12)


@pytest.mark.parametrize("name", HYBRIDS)
def test_hybrids_are_served(name: str) -> None:
    """One iteration has each mixer over decoding sequences and over chunks; the first token waits for one prompt."""
    served = sf.serving(load(name), "h200-sxm", sf.Plan(precision="bf16", tp=DEALT[name]), prompt=1024, generate=64)
    point = served.point(0.0)
    assert 0 < point.tpot_s < point.ttft_s < 1
    mixers = {each.mixer for kind in load(name).architecture.kinds for each in kind.alone}
    folders = {"attention" if mixer == "local_attention" else mixer for mixer in mixers}
    names = {part for term in served.iteration(4).compiled.terms for part in term.path.split("/")}
    assert folders <= names


@pytest.mark.parametrize(
    ("name", "tp", "message"),
    [
        ("default-recurrent_gemma", 4, "4 .*10"),
        ("falcon-h1-34b", 3, "3 .*20"),
        ("default-minimax", 5, "5 .*32"),
    ],
)
def test_what_is_not_dealt_evenly_is_refused(name: str, tp: int, message: str) -> None:
    with pytest.raises(sf.InputError, match=message):
        make(name, tp=tp)


def test_shared_blocks_stay_on_one_stage() -> None:
    with pytest.raises(sf.InputError, match="pp: found 3, expected 1: blocks of default-zamba2"):
        make("default-zamba2", pp=3)

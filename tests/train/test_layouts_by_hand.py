"""What an audit recomputed by hand: every expectation is written out here and calls no formula of the package."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from support.paths import ONE_LAYER

import symperf as sf

if TYPE_CHECKING:
    from symperf.runs.training_run import Run

WHOLE, SPLIT = ((128, 256), (256, 128), (128, 128)), ((128, 256), (64, 128))
USUAL, INSIDE = "tp-cp-dp-pp", "tp-cp-pp-dp"


def run(model: str, system: str, batch: int, sequence: int, *, stated: Any = (), **plan: Any) -> Run:
    """A run, on the system with values that a user states."""
    loaded = sf.System.load(system).with_values(dict(stated), "bf16")
    return sf.training(sf.Model.load(model), loaded, sf.Plan(**plan), batch=batch, sequence=sequence)


def rows(made: Run) -> dict[str, Any]:
    return {row.name: row for row in made.table()}


# --- products: tiles, waves, L2, device memory, and the corner between memory and compute


def tiled(m: int, n: int, k: int, device: dict[str, float]) -> float:
    """Seconds of a product of 2-byte elements: the best of tiles, by the levels of a cache hierarchy.

    Few tiles are split along k into as many parts as keep all units at work; the parts, in 32 bits, pass L2 twice.
    """
    moved = max(2 * (m * k + k * n + m * n), 2 * m * n * k * 2 * math.sqrt(2 / device["l2"]))
    memory, units, found = moved / device["memory"], int(device["units"]), []
    for parts, tiles in ((False, WHOLE), (True, SPLIT)):
        for high, wide in tiles:
            down, across = -(-m // high), -(-n // wide)
            passes = -(-down * across // units) / (max(1, units // (down * across)) if parts else 1)
            compute = passes * units * 2 * high * wide * k / device["rate"]
            through = 2 * k * (n * down + m * across) / device["l2_rate"]
            sums = 8 * units * min(m, high) * min(n, wide) / device["l2_rate"] if parts else 0.0
            found.append(max(compute, memory, through) + sums)
    corner = (2 * m * n * k / device["rate"] + memory) / (2 * device["ridge"])
    return max(min(found), corner) + device["launch"]


A100 = {
    "l2": 40 * 2**20,
    "memory": 2039e9 * 0.785,
    "units": 108,
    "rate": 312e12 * 0.77,
    "l2_rate": 7219e9 * 0.429,
    "ridge": 0.69,
    "launch": 4.35e-6,
}
"""Figures of the data sheet times what is attained of them, as the catalogue has them."""


def test_products_of_128_rows_on_a100() -> None:
    """Work and traffic are nearly as long, and the corner binds both; without it down is split in four, and sums."""
    made = rows(run(ONE_LAYER, "a100-80gb-sxm", 1, 128))
    wide, narrow = 4 * 6144, 6144
    up, down = made["layer/mlp/up/forward"], made["layer/mlp/down/forward"]
    assert up.each_s == pytest.approx(tiled(128, wide, narrow, A100), rel=1e-12)
    assert down.each_s == pytest.approx(tiled(128, narrow, wide, A100), rel=1e-12)
    assert up.each_s == down.each_s
    perfect = A100 | {"ridge": 1.0}
    assert up.each_s > 1.2 * tiled(128, wide, narrow, perfect)
    alone = 2 * (128 * wide + wide * narrow + 128 * narrow) / A100["memory"]
    sums = 8 * 108 * 128 * 256 / A100["l2_rate"]
    assert tiled(128, narrow, wide, perfect) == pytest.approx(alone + sums + A100["launch"], rel=1e-12)
    assert tiled(128, wide, narrow, perfect) == pytest.approx(alone + A100["launch"], rel=1e-12)


def test_the_ends_of_the_corner() -> None:
    """With 1 the corner is the plain roofline; with 1/2 work and traffic follow one another."""
    m, n, k = 128, 4 * 6144, 6144
    made = run(ONE_LAYER, "a100-80gb-sxm", 1, 128)
    work, memory = 2 * m * n * k / A100["rate"], 2 * (m * k + k * n + m * n) / A100["memory"]
    for ridge, seconds in ((1.0, max(work, memory)), (0.5, work + memory)):
        found = rows(made.bind(ridge_efficiency=ridge))["layer/mlp/up/forward"].each_s
        assert found == pytest.approx(seconds + A100["launch"], rel=1e-12)


# --- collectives: the faster of end points and switch, where a user states their latency; or as their calls measure


def ends(n: float, q: int, up: dict[str, float]) -> float:
    """Seconds to sum n bytes over q ranks of one domain without its switch: plain protocol or words with flags."""
    share, hops = 2 * (q - 1) / q / up["rate"], 2 * math.log2(q) * up["latency"]
    return min(max(share * (n + up["half"]), share * n + hops), 2 * share * n + hops)


H200 = {"rate": 450e9 * 0.811, "latency": 1.95e-6, "half": 24.7e6, "launch": 2.35e-6}


@pytest.mark.parametrize("micro", [1, 4])
def test_an_all_reduce_of_eight_h200(micro: int) -> None:
    """A link carries n (1 + 1/q) bytes at 0.833 of what a ring sustains, and one latency up and one down."""
    stated = {"scale_up_latency": H200["latency"]}
    made = rows(run("gpt-22b", "h200-sxm", micro, 2048, tp=8, micro_batch=micro, stated=stated))
    message = 2 * micro * 2048 * 6144
    switch = (message * 9 / 8 + H200["half"]) / (0.833 * H200["rate"]) + 2 * H200["latency"]
    wanted = min(switch, ends(message, 8, H200)) + H200["launch"]
    assert made["layer/mlp/reduce/forward"].each_s == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(("micro", "pieces"), [(1, 5e-6), (4, 5e-6), (1, 2e-4), (1, 1e-2)])
def test_a_measured_all_reduce_of_eight_h200(micro: int, pieces: float) -> None:
    """A start, two hops to each other rank, 2 (q - 1)/q of the transfer, and the best of three cuts into pieces."""
    stated = {"domain_latency": 4e-6, "domain_hop_latency": 9e-7, "domain_piece_latency": pieces}
    stated["domain_efficiency"] = 0.8
    made = rows(run("gpt-22b", "h200-sxm", micro, 2048, tp=8, micro_batch=micro, stated=stated))
    link = 2 * micro * 2048 * 6144 / (450e9 * 0.8)
    cut = min(2 * link + pieces / 8, link / 2 + pieces / 2, link / 8 + 2 * pieces)
    wanted = 4e-6 + 14 * 9e-7 + 14 / 8 * link + cut
    assert made["layer/mlp/reduce/forward"].each_s == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("system", "bus", "link"),
    [("h100-sxm", 480e9, 450e9), ("h200-sxm", 473.10e9, 450e9), ("b200-sxm", 740.64e9, 900e9)],
)
def test_shares_of_switches_are_those_of_the_measured_bus_bandwidth(system: str, bus: float, link: float) -> None:
    """Bus bandwidth is 2 (q-1)/q n / T: NCCLISSUE-004, and the medians STAS-038 and STAS-075 of 1 GiB and more."""
    quantities = sf.System.load(system).quantities
    attained = link * quantities["scale_up_efficiency"].value
    share = bus / (2 * 7 / 8) * (1 + 1 / 8) / attained
    assert quantities["switch_efficiency"].value == pytest.approx(share, abs=6e-4)


# --- the order of ranks, by listing every rank


def domains(order: str, degrees: dict[str, int], free: str, size: int) -> set[tuple[int, int]]:
    """(ranks in the fullest domain, domains) of every group whose members differ in `free` only."""
    names = order.split("-")
    found: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for rank, place in enumerate(product(*(range(degrees[name]) for name in reversed(names)))):
        at = dict(zip(reversed(names), place, strict=True))
        found[tuple(at[name] for name in names if name != free)].append(rank)
    counts = [Counter(rank // size for rank in ranks) for ranks in found.values()]
    return {(max(count.values()), len(count)) for count in counts}


H100 = {"rate": 450e9 * 0.822, "latency": 1.95e-6, "half": 6.92e6, "launch": 3.1e-6}
OUT = {"rate": 50e9 * 0.739, "latency": 8e-6, "half": 11.2e6}


def summed(n: float, inner: int, outer: int) -> float:
    """Seconds to sum n bytes over several domains: one tier after the other, or both at once."""
    if outer == 1:
        switch = (n * (1 + 1 / inner) + H100["half"]) / (0.834 * H100["rate"]) + 2 * H100["latency"]
        return min(ends(n, inner, H100), switch) if inner > 1 else 0.0
    part, inside, between = n / inner, (inner - 1) / inner / H100["rate"], (outer - 1) / outer / OUT["rate"]
    up, out = math.log2(inner) * H100["latency"], math.log2(outer) * OUT["latency"]
    shared = 2 * min(max(inside * (n + H100["half"]), inside * n + up), 2 * inside * n + up)
    after = shared + ends(part, outer, OUT)
    full = 2 * max(inside * (n + H100["half"]), between * (part + OUT["half"]))
    bare, hops = 2 * max(inside * n, between * part), 2 * (up + out)
    return min(after, max(full, bare + hops), 2 * bare + hops)


@pytest.mark.parametrize(("order", "inner", "outer", "pairs"), [(USUAL, 4, 1, {(1, 2)}), (INSIDE, 2, 2, {(2, 1)})])
def test_gradients_of_sixteen_ranks(order: str, inner: int, outer: int, pairs: set[tuple[int, int]]) -> None:
    """tp 2, pp 2, dp 4, eight devices a domain: every group of every kind, and the time of the gradients' sum."""
    degrees = {"tp": 2, "cp": 1, "pp": 2, "dp": 4}
    assert domains(order, degrees, "dp", 8) == {(inner, outer)}
    assert domains(order, degrees, "pp", 8) == pairs
    assert domains(order, degrees, "tp", 8) == {(2, 1)}
    stated = {"scale_up_latency": H100["latency"]}
    made = rows(run("gpt-6.7b", "h100-sxm", 16, 1024, attention="flash", rank_order=order, stated=stated, **degrees))
    gradients = made["gradients/reduce"]
    wanted = summed(gradients.bytes, inner, outer) + H100["launch"]
    assert gradients.each_s == pytest.approx(wanted, rel=1e-9)


# --- scans: each kernel's tensors, as (kernel, bytes of what it reads and writes)


def test_bytes_of_a_mamba2_scan() -> None:
    """mamba_ssm's five forward kernels, tensor by tensor, of one layer of Mamba-2 2.7B at 4096 tokens."""
    tokens, heads, head, state, groups, chunk = 4096, 80, 64, 128, 1, 256
    x, b, steps = 2 * tokens * heads * head, 2 * tokens * groups * state, tokens * heads
    chunks = tokens // chunk
    states, scores = chunks * heads * head * state, 4 * chunks * groups * chunk * chunk
    kernels = {
        "_chunk_cumsum_fwd": 2 * steps + 2 * 4 * steps,
        "_chunk_state_fwd": x + b + 2 * 4 * steps + 4 * states,
        "_state_passing_fwd": 4 * states + 2 * states,
        "_bmm_chunk_fwd": 2 * b + scores,
        "_chunk_scan_fwd": scores + x + 2 * 4 * steps + b + 2 * states + x,
    }
    backward = {
        "dt.clone": 2 * 2 * steps,
        "_chunk_cumsum_fwd": 2 * steps + 2 * 4 * steps,
        "_bmm_chunk_fwd": 2 * b + scores,
        "_chunk_state_fwd": x + b + 2 * 4 * steps + 4 * states,
        "_state_passing_fwd": 2 * 4 * states,
        "_chunk_scan_bwd_dstates": b + 4 * steps + x + 4 * states,
        "_state_passing_bwd": 2 * 4 * states + 2 * 2 * states,
        "_chunk_scan_chunk_state_bwd_dx": 3 * x + b + scores + 2 * states + 4 * 4 * steps,
        "_chunk_state_bwd_db": x + b + 2 * states + 4 * 4 * steps + 3 * 2 * b + 2 * 4 * steps,
        "_chunk_scan_bwd_dC": x + b + 2 * states + 3 * 4 * steps + 3 * 2 * b,
        "_chunk_scan_bwd_dcb": 2 * x + 2 * 4 * steps + 3 * scores,
        "_bmm_chunk_bwd, of B and of C": 2 * (b + scores + 2 * b + b),
        "_chunk_scan_bwd_ddAcs_stable": 2 * x + scores + 5 * 4 * steps,
        "flip, cumsum, flip, two sums": 12 * 4 * steps,
        "_chunk_cumsum_bwd": 2 * 4 * steps + 2 * 2 * steps,
    }
    made = rows(run("mamba2-2.7b", "h100-sxm", 1, tokens, attention="flash"))
    forward_row, backward_row = made["layer/ssm/scan/forward"], made["layer/ssm/scan/backward"]
    assert forward_row.bytes == 64 * sum(kernels.values())
    assert backward_row.bytes == 64 * sum(backward.values())


def test_bytes_of_a_gated_delta_rule() -> None:
    """flash-linear-attention's kernels, tensor by tensor, of one layer of Qwen3-Next at 4096 tokens."""
    tokens, heads, width, chunk = 4096, 32, 128, 64
    k = v = 2 * tokens * heads * width
    rate, decay = 2 * tokens * heads, 4 * tokens * heads
    scores, inverse = 4 * tokens * heads * chunk, 2 * tokens * heads * chunk
    states = 2 * (tokens // chunk) * heads * width * width
    solve = 2 * k + 2 * v + rate + inverse + decay
    passing = 2 * k + 2 * v + decay + states
    forward = {
        "chunk_local_cumsum": 2 * decay,
        "chunk_scaled_dot_kkt_fwd": k + decay + rate + scores,
        "solve_tril": scores + inverse,
        "recompute_w_u_fwd": solve,
        "chunk_gated_delta_rule_fwd_h": passing,
        "chunk_fwd_o": 2 * k + v + decay + states + v,
    }
    backward = {
        "recompute_w_u_fwd": solve,
        "chunk_gated_delta_rule_fwd_h": passing,
        "chunk_bwd_dv_local": 2 * k + decay + v + v,
        "chunk_gated_delta_rule_bwd_dhu": 3 * k + 2 * v + decay + v + states,
        "chunk_bwd_dqkwg": 2 * k + 3 * v + decay + 2 * states + 3 * k + 3 * decay,
        "prepare_wy_repr_bwd": 3 * k + 3 * v + 2 * rate + inverse + 2 * decay,
        "dk.add_": 3 * k,
        "dg.add_": 3 * decay,
        "chunk_local_cumsum": 2 * decay,
    }
    made = rows(run("qwen3-next-80b-a3b", "h100-sxm", 1, tokens, attention="flash"))
    path = "layer/linear_attention_experts/linear_attention/scan"
    assert made[f"{path}/forward"].bytes == 36 * sum(forward.values())
    assert made[f"{path}/backward"].bytes == 36 * sum(backward.values())


def test_bytes_of_channelwise_decays() -> None:
    """flash-linear-attention's kernels of KDA, tensor by tensor, of one layer of Kimi Linear at 4096 tokens."""
    tokens, heads, width, chunk = 4096, 32, 128, 64
    k = v = raw = 2 * tokens * heads * width
    decays, rate = 4 * tokens * heads * width, 2 * tokens * heads
    scores, blocks = 2 * tokens * heads * chunk, 4 * tokens * heads * chunk // 4
    states = 2 * (tokens // chunk) * heads * width * width
    solve = 2 * k + k + 2 * v + rate + scores + decays
    passing = 2 * k + 2 * v + states
    forward = {
        "kda_gate_chunk_cumsum": raw + decays,
        "chunk_kda_fwd_kernel_intra_sub_chunk": 2 * k + decays + rate + blocks,
        "chunk_kda_fwd_kernel_inter_solve_fused": 2 * k + decays + rate + blocks + 3 * scores,
        "recompute_w_u_fwd": solve,
        "chunk_gated_delta_rule_fwd_h": passing,
        "chunk_gla_fwd_o_gk": k + decays + scores + 2 * v + states,
    }
    backward = {
        "kda_gate_chunk_cumsum": raw + decays,
        "recompute_w_u_fwd": solve + 2 * k,
        "chunk_gated_delta_rule_fwd_h": passing,
        "chunk_kda_bwd_dAv": 3 * v + scores + 2 * scores,
        "chunk_gated_delta_rule_bwd_dhu": 3 * k + 3 * v + states,
        "chunk_kda_bwd_wy_dqkg_fused": 2 * k + decays + 5 * v + 2 * states + scores + rate + 3 * decays + 2 * rate
        + 2 * scores,
        "chunk_kda_bwd_intra": 2 * k + decays + rate + 4 * scores + 6 * decays + 4 * rate,
        "chunk_local_cumsum": 2 * decays,
        "kda_gate_bwd": raw + 2 * decays,
        "to": 3 * (decays + k) + 3 * rate,
    }  # fmt: skip
    made = rows(run("kimi-linear-48b-a3b", "h100-sxm", 1, tokens, attention="flash"))
    path = "layer/linear_attention_experts/linear_attention/scan"
    assert made[f"{path}/forward"].bytes == 19 * sum(forward.values())
    assert made[f"{path}/backward"].bytes == 19 * sum(backward.values())


# --- the studies: bytes of activations, of experts' transfers, and a crossing


SCORES = 5 * 96 * 2048**2 / 8
KEPT = (10 + 24 / 8) * 2048 * 12288 + SCORES


@pytest.mark.parametrize(
    ("sequence_parallel", "recompute", "layer", "again"),
    [
        (False, "none", KEPT, 0),
        (True, "selective", 34 / 8 * 2048 * 12288, SCORES),
        (False, "full", 2 * 2048 * 12288, KEPT - 2 * 2048 * 12288),
    ],
)
def test_activations_of_gpt_3_by_korthikanti(
    sequence_parallel: bool, recompute: str, layer: float, again: float
) -> None:
    """Korthikanti et al. 2022, table 2 and section 4.2.3: p stages interleaved v times hold L (1 + (p-1)/(p v)) layers.

    The first stage also keeps the mask of the embedding's dropout, for as many micro-batches (their section 4.3).
    Beside what they count, one layer's recomputed activations exist while its backward pass runs.
    """
    layers, h, s, t, p, v = 96, 12288, 2048, 8, 8, 3
    more = 1 + (p - 1) / (p * v)
    kept = layers * more * layer + p * more * s * h / (t if sequence_parallel else 1)
    plan = {"tp": t, "pp": p, "vpp": v, "recompute": recompute, "sequence_parallel": sequence_parallel}
    made = run("gpt3-175b", "a100-80gb-sxm", 64, s, **plan)
    terms = made.memory_terms()
    assert terms["activations"] == pytest.approx(kept + again, rel=1e-12)
    block = 12 * h * h / t + 7 * h / t + 6 * h  # products; biases and norms
    first = layers / p * block + 51200 * h / t + 2048 * h  # words, and learned positions on every device
    state = sum(size for name, size in terms.items() if name.split("/")[0] in ("weights", "gradients", "optimizer"))
    assert state == pytest.approx(18 * first, rel=1e-12)


@pytest.mark.parametrize("limit", [{}, {"node_limit": 4}], ids=["by its groups", "as stated"])
def test_all_to_all_of_deepseek_v3(limit: dict[str, int]) -> None:
    """4096 tokens of 7168 channels to 8 experts each, on at most 4 of 8 nodes; 1/8 of either tier's bytes stays."""
    plan = {"pp": 16, "dp": 128, "ep": 64, "uneven_stages": True, "zero": 1, **limit}
    made = rows(run("deepseek-v3", "h800-sxm", 15360, 4096, **plan))
    (up, up_half, up_hop), (out, out_half, out_hop) = (200e9 * 0.8, 23.6e6, 1.95e-6), (50e9 * 0.739, 11.2e6, 8e-6)
    message, crossing = 4096 * 8 * 7168 * 2, 4096 * 4 * 7168 * 2
    full = 7 / 8 * max((message + up_half) / up, (crossing + out_half) / out)
    bare, hops = 7 / 8 * max(message / up, crossing / out), 7 * (up_hop + out_hop)
    for name in ("dispatch", "combine"):
        row = made[f"layer/latent_attention_experts/experts/{name}/forward"]
        assert row.bytes / row.count == pytest.approx(message, rel=1e-12)
        wanted = min(max(full, bare + hops), 2 * bare + hops) + H100["launch"]
        assert row.each_s == pytest.approx(wanted, rel=1e-9)

"""Attention to a window and compressed entries in inference, and several residual streams, against sums over tokens."""

from __future__ import annotations

import csv
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compressed_cases import KINDS, keys_seen, label, pairs_seen, three_layers
from support.known_kernels import known
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.language.symbols import num_streams, strip_units
from symperf.infer.compressed import CompressedAttention
from symperf.infer.footprint import sequence_terms
from symperf.infer.layer import Layer
from symperf.infer.stack import Stack
from symperf.infer.structure import structure_of

HEADS, WIDTH, INDEX_HEADS, INDEX_WIDTH, HIDDEN, STREAMS = 64, 512, 64, 128, 4096, 4
PLAN = sf.Plan(precision="bf16")


def inference(system: Any = "h200-sxm", model: sf.Model | None = None, tp: int = 1, **work: Any) -> Any:
    """A run in 16 bits."""
    work = {"batch": 2, "prompt": 3000, "generate": 5, "stack": "none"} | work
    return sf.inference(model or three_layers(), system, sf.Plan(precision="bf16", tp=tp), **work)


def rows(run: Any, kind: str) -> dict[str, Any]:
    """Rows of the attention of the layer of a kind, by phase and name."""
    return {
        f"{row.name.partition('/')[0]}/{row.name.rpartition('/')[2]}": row
        for row in run.table()
        if f"/{label(kind)}/attention/" in row.name
    }


@cache
def golden(name: str) -> dict[str, dict[str, str]]:
    """Rows of a golden table of the model that has these layers, by phase and tokens."""
    with (GOLDEN_2026 / name).open(encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if row["model"] == "deepseek-v4-flash"]
    return {f"{row.get('phase', '')}/{row.get('batch', '')}x{row.get('q_len', '')}": row for row in found}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prompt", [100, 2048, 5000])
def test_prefill_computes_the_pairs_that_are_seen(kind: str, prompt: int) -> None:
    found = rows(inference(prompt=prompt), kind)
    core = found["prefill/flash"]
    assert core.flops == pytest.approx(2 * 4 * HEADS * WIDTH * pairs_seen(kind, prompt))
    assert ("prefill/index_scores" in found) == (kind == "selected")
    if kind == "selected":
        entries = sum(token // 4 for token in range(1, prompt + 1))
        scores = 2 * 2 * INDEX_HEADS * INDEX_WIDTH * entries
        assert found["prefill/index_scores"].flops == pytest.approx(scores)


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_products_are_those_that_pytorch_counts(phase: str) -> None:
    """By class, of all 43 layers: 2 with a window alone, 21 with selected entries, 20 with all."""
    prompt = 2048
    run = inference(batch=1, prompt=prompt, generate=2)
    row = golden("flops.csv")["prefill/1x2048" if phase == "prefill" else "decode/1x1"]
    classes = {
        "flops_attn_proj": ("query_key_down", "query_up", "group_output", "output"),
        "flops_compressor": ("compress",),
        "flops_indexer_proj": ("index_compress", "index_query", "index_weights"),
        "flops_hyper_conn": ("weights",),
    }
    found = dict.fromkeys(classes, 0.0)
    for kind, number in zip(KINDS, (2, 21, 20), strict=True):
        each = rows(run, kind)
        for name, parts in classes.items():
            found[name] += number * sum(each[f"{phase}/{part}"].flops for part in parts if f"{phase}/{part}" in each)
    tokens = prompt if phase == "prefill" else 1
    # Both parts of a layer have connections; their mixing is element-wise here, and a head joins the streams.
    mixed = 86 * 2 * STREAMS**2 * HIDDEN * tokens
    found["flops_hyper_conn"] = 2 * found["flops_hyper_conn"] + mixed + 2 * STREAMS**2 * HIDDEN * tokens
    for name, flops in found.items():
        assert flops == pytest.approx(int(row[name])), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prompt", [50, 1000, 3000])
def test_decode_computes_the_keys_of_every_step(kind: str, prompt: int) -> None:
    steps = 300
    found = rows(inference(prompt=prompt, generate=steps + 1), kind)["decode/flash"]
    seen = sum(keys_seen(kind, prompt + step) for step in range(1, steps + 1))
    assert found.flops == pytest.approx(2 * 4 * HEADS * WIDTH * seen)


@pytest.mark.parametrize("kind", KINDS)
def test_a_generation_takes_as_long_as_its_steps(kind: str) -> None:
    """The steps of a generation one by one: equal where no bound changes inside, less than the sum elsewhere."""
    whole = rows(inference(prompt=700, generate=41), kind)["decode/flash"].time_s
    single = [rows(inference(prompt=700 + step, generate=2), kind)["decode/flash"].time_s for step in range(40)]
    assert whole == pytest.approx(sum(single), rel=1e-9)


@given(st.integers(1, 3000), st.integers(1, 3000), st.sampled_from(KINDS))
def test_chunks_of_a_prompt_make_its_pairs(before: int, new: int, kind: str) -> None:
    """What a second chunk adds to the pairs of the first is what the whole prompt has."""
    (layer,) = (each for each in _layers() if each.kind.label == label(kind))
    mixer = layer.mixer
    assert isinstance(mixer, CompressedAttention)
    work = [op.demand.flops for op in mixer.extend(1, new, before) if op is not None and op.path.endswith("flash")]
    values = {"head_dim": WIDTH, "num_attention_heads": HEADS, "tp": 1, "sliding_window": 128, "index_top_keys": 512}
    values |= {"compress_ratio": 128 if kind == "all" else 4}
    (flops,) = (strip_units(each) for each in work)
    number = float(flops.subs({symbol: values[symbol.name] for symbol in flops.free_symbols}))
    assert number == pytest.approx(4 * HEADS * WIDTH * (pairs_seen(kind, new, before)))


@cache
def _layers() -> list[Layer]:
    model = three_layers()
    structure = structure_of(model, sf.System.load("h200-sxm"), PLAN, Stack.load("none"))
    return [Layer(structure, "prefill", 1, kind) for kind in model.architecture.kinds]


def test_caches_hold_what_pytorch_holds() -> None:
    """Index keys in 16 bits; transformers holds windows without the token itself, and some of them twice."""
    row = golden("kv.csv")["/x"]
    model = sf.Model.load(GOLDEN_2026 / "configs" / "deepseek-v4-flash.json")
    structure = structure_of(model, sf.System.load("h200-sxm"), PLAN, Stack.load("none"))
    values = {**model.sizes, "kv_bytes": 2, "index_key_bytes": 2, "kv_block": 1, "pp": 1, "tp": 1}
    held = {}
    for tokens in (2048, 8192):
        form = strip_units(sequence_terms(structure, tokens)[""])
        held[tokens] = float(form.subs({symbol: values[symbol.name] for symbol in form.free_symbols}))
    grown = int(row["kv_bytes_at_8192"]) - int(row["kv_bytes_at_2048"])
    assert held[8192] - held[2048] == grown == 6144 * float(row["bytes_per_token_growing"])
    windows = 128 * int(row["bytes_per_token_within_window"])
    assert held[2048] == windows + 2 * (21 * 512 * (512 + 128) + 20 * 16 * 512)


def test_states_are_those_of_serving_software() -> None:
    """Values and gates in FP32: 8 tokens of two series of 512 and of 128 features, and 128 tokens of one of 512."""
    run = inference(batch=3, prompt=100, generate=10)
    selected = 8 * 2 * 2 * (512 + 128) * 4
    assert run.value("memory/kv_cache/state") == 3 * (selected + 128 * 2 * 512 * 4)


@pytest.mark.parametrize("kind", KINDS)
def test_tensor_parallelism_deals_heads_and_groups(kind: str) -> None:
    """Narrow projections, compressors and indexers are whole on every device."""
    one, four = (rows(inference(tp=tp), kind) for tp in (1, 4))
    for name, row in four.items():
        dealt = name.rpartition("/")[2] in ("query_up", "group_output", "output", "flash")
        if row.flops and not name.endswith(("norm", "derotate")):
            assert one[name].flops == pytest.approx(row.flops * (4 if dealt else 1)), name


def test_groups_of_the_output_are_not_split() -> None:
    with pytest.raises(sf.InputError, match="tp: 16 does not divide the 8 groups of heads"):
        inference(tp=16)


def test_all_streams_pass_to_the_next_stage() -> None:
    """Four times the bytes of one stream."""
    structure = structure_of(three_layers(), sf.System.load("h200-sxm"), PLAN, Stack.load("none"))
    block = Layer(structure, "prefill", 1000, three_layers().architecture.kinds[0])
    assert block.stage_message == num_streams * block.stream_message


def test_kernels_of_known_constants() -> None:
    """Heads in blocks of 64; a query that selects computes a part of its empty places too."""
    share = known("h100-sxm").value("entry_slot_share")
    for kind in KINDS:
        found = rows(inference(known("h100-sxm"), tp=8), kind)["prefill/flash"]
        keys = pairs_seen(kind, 3000)
        if kind == "selected":
            keys += share * ((128 + 512) * 3000 - keys)
        assert found.flops == pytest.approx(2 * 4 * 64 * WIDTH * keys)


def test_serving() -> None:
    """Prompts in chunks, and steps: a point has a load, whose work is that of its tokens."""
    found = sf.serving(three_layers(), "h200-sxm", PLAN, prompt=2000, generate=200, ttft=2.0, tpot=0.05)
    assert found.largest.load > 0

"""Architectures that are one and the same at the edges of their sizes: counted, and proved, alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.formulas.kernels import latent_attention as mla
from symperf.formulas.kernels import moe, ssm, windows
from symperf.formulas.kernels.attention import attention_flops
from symperf.formulas.language.symbols import SYMBOLS, strip_units
from symperf.models import counts, layer_counts
from symperf.models.architecture import Architecture, LayerKind
from symperf.models.catalogue import BENCHMARKS, CATALOGUE
from symperf.train.memory import device_counts

PLAIN = sf.Model.load("llama-2-7b").architecture
size = st.integers(1, 2000)
few = st.integers(1, 12)


def value(expr: Any, **sizes: int) -> int:
    """The exact value of a closed form."""
    found = strip_units(expr).xreplace({SYMBOLS[name].symbol: sympy.Integer(n) for name, n in sizes.items()})
    assert not found.free_symbols, found.free_symbols
    return int(found)


def kind(mixer: str = "attention", ffn: str = "dense") -> LayerKind:
    """A kind of layer of which there is only one."""
    return LayerKind(mixer, ffn)  # type: ignore[arg-type]


def with_kinds(*kinds: LayerKind, **fields: Any) -> Architecture:
    """A Llama with other layers."""
    return replace(PLAIN, kinds=kinds, **fields)


def everything(architecture: Architecture, **sizes: int) -> dict[str, int]:
    """Parameters, FLOPs and cache bytes."""
    found = {name: value(flops, **sizes) for name, flops in counts.forward_flops(architecture).items()}
    found["parameters"] = value(counts.total_parameters(architecture), **sizes)
    found["cache"] = value(counts.cache_bytes(architecture, SYMBOLS["context"].symbol), **sizes)
    found["visible"] = value(counts.visible_score_flops(architecture), **sizes)
    return found


@st.composite
def dense_sizes(draw: st.DrawFn) -> dict[str, int]:
    """Sizes of a dense model and of its work, small enough to be read."""
    names = ("hidden_size", "head_dim", "intermediate_size", "vocab_size", "sequence", "sliding_window", "context")
    drawn = {name: draw(size) for name in names}
    counts_of = {name: draw(few) for name in ("batch", "num_layers", "num_attention_heads")}
    heads = counts_of["num_attention_heads"]
    return {**drawn, **counts_of, "num_key_value_heads": heads, "position_rows": 0, "element_bytes": 2}


@given(sizes=dense_sizes())
def test_gqa_with_one_query_head_per_group_is_mha(sizes: dict[str, int]) -> None:
    """Then queries, keys, values and output are four square matrices of h a d_h, and 2 a d_h elements are cached."""
    found = everything(PLAIN, **sizes)
    h, width = sizes["hidden_size"], sizes["num_attention_heads"] * sizes["head_dim"]
    tokens = sizes["batch"] * sizes["sequence"]
    assert found["projections"] == 2 * tokens * 4 * h * width * sizes["num_layers"]
    assert found["cache"] == 2 * sizes["num_layers"] * 2 * width * sizes["context"]


@given(sizes=dense_sizes())
def test_gqa_with_one_group_is_mqa(sizes: dict[str, int]) -> None:
    """Then keys and values have the width of one head (Shazeer 2019), and scores cost the same."""
    grouped, many = {**sizes, "num_key_value_heads": 1}, everything(PLAIN, **sizes)
    found = everything(PLAIN, **grouped)
    h, d, a = sizes["hidden_size"], sizes["head_dim"], sizes["num_attention_heads"]
    tokens = sizes["batch"] * sizes["sequence"]
    assert found["projections"] == 2 * tokens * (2 * h * a * d + 2 * h * d) * sizes["num_layers"]
    assert found["cache"] * a == many["cache"]
    assert found["attention_scores"] == many["attention_scores"]


@given(sizes=dense_sizes(), gated=st.booleans())
def test_one_expert_is_the_mlp_and_a_router(sizes: dict[str, int], gated: bool) -> None:
    """One expert, passed by every token, without a shared one: the dense MLP, and a router of one column."""
    one = {"num_experts": 1, "num_experts_per_token": 1, "expert_intermediate_size": sizes["intermediate_size"]}
    dense = everything(replace(PLAIN, gated_mlp=gated), **sizes)
    routed = everything(with_kinds(kind(ffn="experts"), gated_mlp=gated), **sizes, **one)
    tokens, layers, h = sizes["batch"] * sizes["sequence"], sizes["num_layers"], sizes["hidden_size"]
    assert routed.pop("experts") == dense["mlp"]
    assert routed.pop("router") == 2 * tokens * h * layers
    assert routed["parameters"] == dense["parameters"] + layers * h
    assert routed | {"mlp": dense["mlp"], "parameters": dense["parameters"]} == dense


@given(sizes=dense_sizes(), extra=size)
def test_all_experts_active_are_all_parameters(sizes: dict[str, int], extra: int) -> None:
    """A token that passes every expert meets every parameter."""
    architecture = with_kinds(kind(ffn="experts"))
    routed = {"num_experts": extra, "num_experts_per_token": extra, "expert_intermediate_size": 3}
    total = value(counts.total_parameters(architecture), **sizes, **routed)
    assert value(counts.active_parameters(architecture), **sizes, **routed) == total


@given(sizes=dense_sizes())
def test_a_window_longer_than_the_sequence_is_full_attention(sizes: dict[str, int]) -> None:
    """Then every count of windows and of chunks is that of full attention; shorter ones have fewer pairs."""
    local = with_kinds(kind("local_attention"))
    longer = max(sizes["sequence"], sizes["context"])
    wide = {**sizes, "sliding_window": longer}
    full = everything(PLAIN, **wide)
    assert everything(local, **wide) == full
    assert everything(replace(local, chunked_attention=True), **wide) == full
    narrow = everything(local, **sizes)
    chunks = everything(replace(local, chunked_attention=True), **sizes)
    assert chunks["visible"] <= narrow["visible"] <= full["visible"]
    assert narrow["cache"] <= full["cache"]


@given(sequence=st.integers(1, 300), window=st.integers(1, 300))
def test_pairs_are_those_of_the_mask(sequence: int, window: int) -> None:
    """Triangles and bands, counted pair by pair; both rise with the sequence and with the window."""
    band = sum(min(i, window) for i in range(1, sequence + 1))
    chunk = sum((i % window) + 1 for i in range(sequence))
    assert windows.window_pairs(sequence, window) == band
    assert windows.chunk_pairs(sequence, window) == chunk
    assert windows.window_pairs(sequence + 1, window) > band
    assert windows.window_pairs(sequence, window + 1) >= band
    assert windows.chunk_pairs(sequence + 1, window) > chunk


@st.composite
def latent_shapes(draw: st.DrawFn) -> dict[str, int]:
    """Shapes of latent attention and of its work."""
    names = ("tokens", "keys", "heads", "rank", "nope", "rope", "value")
    return {name: draw(st.integers(1, 300)) for name in names}


def product(shape: tuple[int, ...], rows: tuple[int, int], columns: tuple[int, int]) -> tuple[tuple[int, int], int]:
    """The shape and the FLOPs of `shape` products of a `rows` by a `columns` matrix."""
    assert rows[1] == columns[0]
    return (rows[0], columns[1]), 2 * sympy.prod(shape) * rows[0] * rows[1] * columns[1]


@given(s=latent_shapes())
def test_absorbed_latent_attention_is_expanded_latent_attention(s: dict[str, int]) -> None:
    """The same product of five matrices in two orders: one result shape; each formula counts its own order.

    Scores are q (c W_k)^T, and results p (c W_v), for latents c; absorbed they are (q W_k^T) c^T and (p c) W_v.
    """
    a, t, keys, rank = s["heads"], s["tokens"], s["keys"], s["rank"]
    made, up = product((a,), (keys, rank), (rank, s["nope"]))
    values, up_values = product((a,), (keys, rank), (rank, s["value"]))
    scores, first = product((a,), (t, s["nope"] + s["rope"]), (made[1] + s["rope"], keys))
    result, second = product((a,), scores, values)
    expanded = mla.expanded_attention_flops(1, t, keys, a, s["nope"], s["rope"], s["value"])
    expansion = mla.latent_expansion_flops(keys, a, rank, s["nope"], s["value"])
    assert value(expanded) == first + second
    assert value(expansion) == up + up_values

    into, one = product((a,), (t, s["nope"]), (s["nope"], rank))
    scores, two = product((a,), (t, into[1] + s["rope"]), (rank + s["rope"], keys))
    latent, three = product((a,), scores, (keys, rank))
    absorbed, four = product((a,), latent, (rank, s["value"]))
    assert absorbed == result
    assert value(mla.absorbed_attention_flops(1, t, keys, a, rank, s["rope"])) == two + three
    assert value(mla.absorption_flops(t, a, rank, s["nope"], s["value"])) == one + four


@given(s=latent_shapes())
def test_both_ways_cost_the_same_where_a_latent_is_as_wide_as_a_head(s: dict[str, int]) -> None:
    """With r = d_n = d_v and as many queries as keys, latents are keys and values: both orders have equal FLOPs."""
    a, t, r, rope = s["heads"], s["tokens"], s["rank"], s["rope"]
    expanded = mla.expanded_attention_flops(1, t, t, a, r, rope, r) + mla.latent_expansion_flops(t, a, r, r, r)
    absorbed = mla.absorbed_attention_flops(1, t, t, a, r, rope) + mla.absorption_flops(t, a, r, r, r)
    assert value(expanded) == value(absorbed)


@given(s=latent_shapes())
def test_latent_attention_without_rotary_keys_is_plain_attention(s: dict[str, int]) -> None:
    """Expanded, with d_r = 0 and equal widths, scores cost what those of as many plain heads cost."""
    a, t, keys, d = s["heads"], s["tokens"], s["keys"], s["nope"]
    assert value(mla.expanded_attention_flops(1, t, keys, a, d, 0, d)) == value(attention_flops(1, t, keys, a, d))


@given(s=latent_shapes())
def test_one_head_absorbed_is_multi_query_attention(s: dict[str, int]) -> None:
    """Absorbed, all heads attend to one cached key: bytes of the keys do not depend on the heads."""
    shape = 1, s["tokens"], s["keys"]
    one, many = (value(mla.absorbed_attention_bytes(*shape, a, s["rank"], s["rope"], 2)) for a in (1, s["heads"]))
    queries = 2 * s["tokens"] * (2 * s["rank"] + s["rope"])
    assert many - one == (s["heads"] - 1) * queries
    assert value(mla.latent_cache_elements(s["rank"], s["rope"])) == s["rank"] + s["rope"]


@given(chunks=few, chunk=few, heads=few, width=few, state=few)
def test_one_chunk_of_a_scan_is_attention_and_states_pass_on(
    chunks: int, chunk: int, heads: int, width: int, state: int
) -> None:
    """Within a chunk the scan is masked linear attention (Dao and Gu 2024 section 6): scores n, values p wide."""
    inside = value(ssm.ssd_flops(1, chunk, chunk, heads, heads, width, state))
    assert inside == 2 * chunk**2 * (state + width) * heads + 4 * chunk * width * state * heads
    assert value(ssm.ssd_flops(1, chunks * chunk, chunk, heads, heads, width, state)) == chunks * inside
    padded = value(ssm.ssd_flops(1, chunks * chunk + 1, chunk, heads, heads, width, state))
    assert padded == (chunks + 1) * inside


@given(tokens=size, experts=few, chosen=few)
def test_grouped_products_read_what_has_rows(tokens: int, experts: int, chosen: int) -> None:
    """Rows add up: with balance 1 the fullest expert has the mean, and never more than all tokens."""
    chosen = min(chosen, experts)
    mean, fullest = moe.expert_rows(tokens, chosen, experts), moe.fullest_expert_rows(tokens, chosen, experts, 1)
    assert fullest == min(tokens, mean)
    assert moe.fullest_expert_rows(tokens, chosen, experts, 10**6) == tokens
    read = moe.touched_experts(tokens, chosen, experts)
    assert read <= experts
    assert value(moe.grouped_product_bytes(tokens, chosen, experts, 3, 5, 2, 2)) == 2 * (
        tokens * chosen * 8 + read * 15
    )


MODELS = ("llama-2-7b", "mixtral-8x7b", "deepseek-v3", "gemma-3-1b", "jamba-1.5-mini", "nemotron-h-8b")
RISING = ("batch", "sequence", "hidden_size", "intermediate_size", "num_layers", "vocab_size")


@pytest.mark.parametrize("name", [*MODELS, "mamba2-130m", "qwen3-next-80b-a3b", "gpt-oss-20b", "bert-base"])
def test_flops_and_parameters_rise_with_tokens_layers_and_width(name: str) -> None:
    """Derivatives are positive: each closed form is a sum of positive terms, so raising a size raises it."""
    model = sf.Model.load(name)
    architecture = model.architecture
    flops = sympy.Add(*counts.forward_flops(architecture).values())
    work = {"batch": 2, "sequence": 384, "encoder_sequence": 64}
    base = {**model.sizes, **work}
    before = value(flops, **base), value(counts.total_parameters(architecture), **base)
    layers = {k.count for k in architecture.kinds}
    for raised in (*RISING, *layers):
        if not base.get(raised) or (raised == "num_layers" and raised not in layers):
            continue
        more = {**base, raised: base[raised] + (256 if raised == "sequence" else 1)}
        after = value(flops, **more), value(counts.total_parameters(architecture), **more)
        used = strip_units(flops).has(SYMBOLS[raised].symbol)
        assert (after[0] > before[0]) is used, raised
        assert after[1] >= before[1], raised
        symbol = SYMBOLS[raised].symbol
        if used and raised != "sequence":
            assert value(sympy.diff(strip_units(flops), symbol), **base) > 0, raised


@pytest.mark.parametrize("name", MODELS)
def test_layers_add_up(name: str) -> None:
    """A model's parameters are its layers', by kind, and its ends'."""
    model = sf.Model.load(name)
    found = sf.inspect(model)
    layers = sum(found["parameters_per_layer"][layer["kind"]] * layer["count"] for layer in found["layers"])
    architecture = model.architecture
    ends = counts.embedding_parameters(architecture) + counts.head_parameters(architecture)
    ends += counts.final_norm_parameters(architecture)
    assert layers + value(ends, **model.sizes) == found["parameters"]["total"]


def test_sharded_and_whole_layers_of_a_dense_model_are_one_formula() -> None:
    """What training shards over one device is what is counted here, for every dense family of the catalogue."""
    seen = set()
    for name in (*CATALOGUE.names(), *BENCHMARKS.names()):
        model = sf.Model.load(name)
        if model.uniform_dense and model.architecture not in seen:
            seen.add(model.architecture)
            for kind_ in model.architecture.kinds:
                sharded = device_counts.dense_parameters(model.architecture, kind_)
                whole = layer_counts.layer_parameters(model.architecture, kind_)
                assert value(sharded, tp=1, **model.sizes) == value(whole, **model.sizes), name
    assert len(seen) > 20

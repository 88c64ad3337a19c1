"""Training of compressed attention and of several residual streams, against sums over tokens and bytes by hand."""

from __future__ import annotations

from typing import Any

import pytest
from support.compressed_cases import KINDS, TOP, keys_seen, label, pairs_seen, three_layers
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.language.symbols import strip_units
from symperf.train.inputs import structure_of
from symperf.train.memory import device_counts
from symperf.train.memory.saved_activations import layer_activations

HEADS, WIDTH, RANK, OUT, GROUPS, STREAMS, HIDDEN = 64, 512, 1024, 1024, 8, 4, 4096
INDEX_HEADS, INDEX_WIDTH = 64, 128


def training(sequence: int = 4096, modules: int = 0, **plan: Any) -> Any:
    """A step of as many sequences as there are replicas."""
    made = sf.Plan(micro_batch=1, **plan)
    return sf.training(three_layers(modules), "h200-sxm", made, batch=made.dp, sequence=sequence)


def flops(run: Any, kind: str, name: str) -> float:
    """FLOPs of one execution of an operation of the layer of a kind."""
    return run.value(f"term/layer/{label(kind)}/{name}/flops")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequence", [256, 4096])
def test_the_core_computes_the_pairs_that_are_seen(kind: str, sequence: int) -> None:
    run, pairs = training(sequence), pairs_seen(kind, sequence)
    assert flops(run, kind, "attention/flash/forward") == pytest.approx(4 * HEADS * WIDTH * pairs)
    assert flops(run, kind, "attention/flash/backward") == pytest.approx(10 * HEADS * WIDTH * pairs)


def test_the_indexer_scores_entries_and_learns_from_those_it_selects() -> None:
    run, sequence = training(), 4096
    every = sum(token // 4 for token in range(1, sequence + 1))
    chosen = sum(min(TOP, token // 4) for token in range(1, sequence + 1))
    score = 2 * INDEX_HEADS * INDEX_WIDTH
    assert flops(run, "selected", "attention/flash/index_scores/forward") == pytest.approx(score * every)
    assert flops(run, "selected", "attention/flash/index_loss/backward") == pytest.approx(3 * score * chosen)
    target = 2 * HEADS * WIDTH * chosen
    assert flops(run, "selected", "attention/flash/index_target/backward") == pytest.approx(target)
    names = {row.name for row in run.table()}
    assert f"layer/{label('selected')}/attention/index_compress/backward_weight" in names
    # The indexer's input has no gradient of its loss.
    assert f"layer/{label('selected')}/attention/index_compress/backward_input" not in names


def test_connections_of_a_part() -> None:
    """24 weights of a token's 4 streams, forward and for both gradients; 5, 9, 13 and 14 tensors of hidden width."""
    run, tokens = training(), 4096
    product = 2 * tokens * (2 + STREAMS) * STREAMS * STREAMS * HIDDEN
    for part in ("attention", "mlp"):
        for phase in ("forward", "backward_input", "backward_weight"):
            assert flops(run, "all", f"{part}/connections/streams/{phase}") == pytest.approx(product)
        moved = {
            "connections/mixture/forward": STREAMS + 1,
            "residual/forward": 2 * STREAMS + 1,
            "connections/mixture/backward": 3 * STREAMS + 1,
            "residual/backward": 3 * STREAMS + 2,
        }
        for name, times in moved.items():
            found = run.value(f"term/layer/{label('all')}/{part}/{name}/bytes")
            assert found == pytest.approx(times * 2 * tokens * HIDDEN)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_layer_keeps(kind: str) -> None:
    """Bytes of a token, tensor by tensor, as fused kernels keep them."""
    model = three_layers()
    structure = structure_of(model, sf.System.load("h200-sxm"), sf.Plan(micro_batch=1))
    (layer,) = (each for each in model.architecture.kinds if each.label == label(kind))
    form = strip_units(layer_activations(structure, layer))
    values = {**model.sizes, "micro_batch": 1, "sequence": 1, "tp": 1, "expert_tp": 1, "ep": 1, "token_imbalance": 1}
    values |= {"activation_bytes": 2, "statistic_bytes": 4, "index_bytes": 8}
    found = float(form.subs({symbol: values[symbol.name] for symbol in form.free_symbols}))
    width = HEADS * WIDTH
    # Both parts: 4 streams, the mixture, what the linear layers read, the result, and 24 weights before and after.
    expected = 2 * (2 * HIDDEN * (STREAMS + 3) + 2 * 4 * (2 + STREAMS) * STREAMS)
    # Queries and key before their norms; the key and compressed queries after; queries before and after; results
    # before and after their positions are taken out; groups; statistics.
    expected += 2 * (RANK + WIDTH + WIDTH + RANK + 4 * width + GROUPS * OUT) + 4 * HEADS
    series, ratio = {"window": (0, 1), "selected": (2, 4), "all": (1, 128)}[kind]
    if series:
        expected += 2 * (2 * series * WIDTH + 2 * WIDTH / ratio)
    if kind == "selected":
        expected += 2 * (2 * series * INDEX_WIDTH + 2 * INDEX_WIDTH / ratio + INDEX_HEADS * (INDEX_WIDTH + 1)) + 4 * TOP
    # Experts: scores, rows in and out, and four inner tensors of 6 routed and one shared expert.
    inner = 2048
    expected += 4 * 256 + 6 * 2 * 2 * HIDDEN + 7 * 2 * 4 * inner
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_devices_of_a_group_hold_a_layer(kind: str) -> None:
    """One device has every parameter; of four each has a quarter of the heads and groups, and the rest."""
    model = three_layers()
    (layer,) = (each for each in model.architecture.kinds if each.label == label(kind))
    form = device_counts.dense_parameters(model.architecture, layer)

    def held(tp: int) -> float:
        values = {**model.sizes, "tp": tp}
        return float(form.subs({symbol: values[symbol.name] for symbol in form.free_symbols}))

    counted = sf.inspect(model)["layers"]
    assert len(counted) == 3
    dealt = RANK * HEADS * WIDTH + HEADS * WIDTH * OUT + GROUPS * OUT * HIDDEN + HEADS + 3 * HIDDEN * 2048
    assert held(1) - held(4) == dealt * 3 / 4


def test_parts_of_a_sequence_gather_entries() -> None:
    """Two parts: half of the work each, a window from the part before, and the entries of both."""
    whole, parts = training(), training(cp=2, cp_kind="all-gather")
    for kind in KINDS:
        name = "attention/flash/forward"
        assert flops(parts, kind, name) == pytest.approx(flops(whole, kind, name) / 2)
    found = {row.name.rpartition("/attention/")[2] for row in parts.table() if f"/{label('window')}/" in row.name}
    assert "context/window/forward" in found
    assert "context/gather/forward" not in found
    with pytest.raises(sf.InputError, match="expected all-gather, found ring"):
        training(cp=2)


def test_what_is_refused() -> None:
    with pytest.raises(sf.InputError, match="tp: 16 does not divide the 8 groups"):
        training(tp=16, sequence_parallel=True)
    with pytest.raises(sf.InputError, match="expected flash, found eager"):
        training(attention="eager")


def test_low_precision_leaves_compressors_and_streams_in_16_bits() -> None:
    names = {row.name for row in training(precision="fp8").table()}
    casts = {name.rpartition("/cast/")[0].rpartition("/")[2] for name in names if "/cast/" in name}
    assert {"query_up", "group_output", "query_key_down", "index_query"} <= casts
    assert not casts & {"compress", "index_compress", "index_weights", "streams"}


def test_modules_for_further_tokens_have_a_window_and_all_streams() -> None:
    run, sequence = training(modules=1), 4096
    assert three_layers(1).architecture.module_kind.traits == ("window_only",)
    work = 4 * HEADS * WIDTH * sum(keys_seen("window", token) for token in range(1, sequence + 1))
    assert run.value("term/multi_token/layer/attention/flash/forward/flops") == pytest.approx(work)
    embedding, streams = (
        run.value(f"term/multi_token/projection/{name}/forward/flops") for name in ("embedding", "streams")
    )
    assert streams == STREAMS * embedding == pytest.approx(STREAMS * 2 * sequence * HIDDEN**2)


def test_the_released_file_trains() -> None:
    """43 layers of three kinds in two segments, and a module for one further token."""
    model = sf.Model.load(GOLDEN_2026 / "configs" / "deepseek-v4-flash.json")
    run = sf.training(model, "h200-sxm", sf.Plan(dp=64, ep=64, zero=1, micro_batch=1), batch=64, sequence=4096)
    assert run.value("time") > 0
    assert run.value("mfu_executed") < 1

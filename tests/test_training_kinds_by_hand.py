"""One layer of Mamba-2, of Mamba-1, of a delta rule, and of T5, computed by hand: FLOPs, bytes, and what is kept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from kind_cases import train
from model_configs import JAMBA, MAMBA2, QWEN3_NEXT, T5, load_config

from symperf.formulas.symbols import SYMBOLS, strip_units
from symperf.kept import layer_activations

if TYPE_CHECKING:
    from pathlib import Path

    import symperf as sf


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Loads a config that a test writes."""
    return partial(load_config, tmp_path)


def demand(run: sf.Run, path: str) -> tuple[float, float]:
    """FLOPs and bytes of one execution of an operation."""
    return run.value(f"term/{path}/flops"), run.value(f"term/{path}/bytes")


def kept(run: sf.Run, index: int = 0) -> float:
    """Bytes that one layer of a kind keeps."""
    form = layer_activations(run.structure, run.model.architecture.kinds[index])
    values = {SYMBOLS[name].symbol: value for name, (value, _) in run.bound.items() if name in SYMBOLS}
    return float(strip_units(form).xreplace(values))


def test_a_layer_of_mamba_2(load: Any) -> None:
    """2 sequences of 20 tokens, in 3 chunks of 8; width 64, 4 heads of 32, states of 16, one group, 4 taps."""
    run = train(load(MAMBA2 | {"num_hidden_layers": 1}), sequence=20, batch=2, micro_batch=2)
    tokens, padded, inner, channels = 40, 48, 128, 128 + 2 * 16
    assert demand(run, "layer/ssm/in/forward")[0] == 2 * tokens * 64 * (inner + channels + 4)
    assert demand(run, "layer/ssm/convolution/forward") == (
        2 * tokens * channels * 4,
        2 * tokens * channels * 2 + channels * 4 * 2,
    )
    scores, results, states = 2 * 8 * 16, 2 * 8 * 32 * 4, 2 * 32 * 16 * 4
    forward = padded * (scores + results + 2 * states)
    moved = tokens * 2 * (2 * inner + 2 * 16) + tokens * 4 * 4 + 4 * 2 * 3 * inner * 16 * 4
    assert demand(run, "layer/ssm/scan/forward") == (forward, moved)
    assert demand(run, "layer/ssm/scan/backward") == (
        2 * forward + padded * (scores + states),
        tokens * 2 * (3 * inner + 4 * 16) + 2 * tokens * 4 * 4 + 8 * 2 * 3 * inner * 16 * 4,
    )
    assert demand(run, "layer/ssm/convolution/backward") == (
        4 * tokens * channels * 4,
        3 * tokens * channels * 2 + 2 * channels * 4 * 4,
    )
    assert demand(run, "layer/ssm/norm_gate/forward")[1] == 3 * tokens * inner * 2
    assert demand(run, "layer/ssm/output/forward")[0] == 2 * tokens * inner * 64
    # Inputs of norm and projection; gate, channels, B, C and time steps; the scan's result, raw and normalised.
    assert kept(run) == tokens * 2 * (64 + 64 + (2 * inner + 2 * 16 + 4) + 2 * inner)
    # Projections, taps and their biases, three vectors over heads, the gated norm and the layer's.
    layer = 64 * (inner + channels + 4) + inner * 64 + channels * (4 + 1) + 3 * 4 + inner + 64
    assert run.memory_terms()["weights/layers"] == 2 * layer


def test_the_time_of_a_scan_is_that_of_its_kernels(load: Any) -> None:
    """Products at the flash kernel's part of the peak, or traffic; five launches forward, twelve backward."""
    run = train(load(MAMBA2), sequence=20, batch=2)
    bound = {name: value for name, (value, _) in run.bound.items()}
    peak = {"forward": bound["attention_efficiency"], "backward": bound["attention_backward_efficiency"]}
    for phase, launches in (("forward", 5), ("backward", 12)):
        flops, moved = demand(run, f"layer/ssm/scan/{phase}")
        roofs = (
            flops / (bound["matrix_rate"] * peak[phase]),
            moved / (bound["memory_bandwidth"] * bound["memory_efficiency"]),
        )
        expected = max(roofs) + launches * bound["launch_latency"]
        assert run.value(f"layer/ssm/scan/{phase}") == pytest.approx(expected, rel=1e-12)


def test_a_layer_of_mamba_1(load: Any) -> None:
    """Jamba's: 1 sequence of 10 tokens, 128 channels, states of 8, time steps from 5 features; on two devices too."""
    run = train(load(JAMBA), sequence=10, batch=1)
    path = "layer/ssm1_dense/ssm"
    assert demand(run, f"{path}/in/forward")[0] == 2 * 10 * 64 * 256
    assert demand(run, f"{path}/narrow/forward")[0] == 2 * 10 * 128 * (5 + 2 * 8)
    assert demand(run, f"{path}/time_step/forward")[0] == 2 * 10 * 5 * 128
    assert demand(run, f"{path}/scan/forward") == (7 * 10 * 128 * 8, 10 * 2 * (4 * 128 + 2 * 8))
    assert demand(run, f"{path}/scan/backward") == (19 * 10 * 128 * 8, 10 * 2 * (8 * 128 + 4 * 8))
    assert demand(run, f"{path}/narrow_norm/forward")[1] == 2 * 10 * (5 + 16) * 2
    mixer = 10 * 2 * (3 * 128 + 5 + 2 * 8)
    mlp = 10 * 2 * 4 * 96
    assert kept(run) == 10 * 2 * 4 * 64 + mixer + mlp
    two = train(load(JAMBA), sequence=10, batch=1, tp=2, sequence_parallel=True)
    assert two.value(f"term/{path}/narrow/reduce/forward/message") == 10 * (5 + 16) * 2
    assert demand(two, f"{path}/scan/forward")[0] == 7 * 10 * 64 * 8


def test_a_layer_of_a_delta_rule(load: Any) -> None:
    """1 sequence of 100 tokens in 2 chunks of 64: 2 key heads, 4 value heads, all of width 8."""
    run = train(load(QWEN3_NEXT), sequence=100, batch=1)
    path = "layer/linear_attention_experts/linear_attention"
    keys, values, padded = 2 * 8, 4 * 8, 128
    assert demand(run, f"{path}/in/forward")[0] == 2 * 100 * 64 * (2 * keys + 2 * values + 2 * 4)
    products = padded * 4 * (2 * 64 * (2 * 8 + 8) + 6 * 8 * 8)
    solves = padded * 64 * 4 * (8 + 8)
    moved = 4 * (100 * 2 * (2 * 8 + 2 * 8) + 2 * 2 * 8 * 8 * 4)
    assert demand(run, f"{path}/scan/forward") == (products + solves, moved)
    again = padded * 4 * (4 * 8 * 8 + 2 * 64 * 8)
    assert demand(run, f"{path}/scan/backward")[0] == 2 * products + 3 * solves + again
    assert demand(run, f"{path}/convolution/forward")[0] == 2 * 100 * (2 * keys + values) * 4
    # The gate of full attention doubles the queries; its product with the result is a kernel.
    attention = "layer/attention_experts/attention"
    assert demand(run, f"{attention}/qkv/forward")[0] == 2 * 100 * 64 * 16 * (2 * 4 + 2 * 2)
    assert demand(run, f"{attention}/gate/forward")[1] == 3 * 100 * 4 * 16 * 2


def test_layers_of_t5(load: Any) -> None:
    """2 sequences of 12 tokens after 20 of the encoder; width 64, 4 heads of 8, MLP of 128; eager attention."""
    run = train(load(T5), sequence=12, batch=2, micro_batch=2, dropout=False, values={"encoder_sequence": 20})
    own, other = 2 * 12, 2 * 20
    decoder, encoder = "layer/decoder", "layer/encoder"
    assert demand(run, f"{encoder}/attention/qkv/forward")[0] == 2 * other * 64 * 96
    assert demand(run, f"{encoder}/attention/core/scores/forward")[0] == 2 * 2 * 4 * 20 * 20 * 8
    assert demand(run, f"{decoder}/attention/core/scores/forward")[0] == 2 * 2 * 4 * 12 * 12 * 8
    assert demand(run, f"{decoder}/cross/query/forward")[0] == 2 * own * 64 * 32
    assert demand(run, f"{decoder}/cross/key_value/forward")[0] == 2 * other * 64 * 64
    assert demand(run, f"{decoder}/cross/key_value/backward_weight")[0] == 2 * other * 64 * 64
    for name in ("scores/forward", "context/forward", "scores/backward_queries", "context/backward_values"):
        assert demand(run, f"{decoder}/cross/core/{name}")[0] == 2 * 2 * 4 * 12 * 20 * 8
    assert demand(run, f"{decoder}/cross/core/softmax/forward")[1] == 2 * 2 * (2 * 4 * 12 * 20)
    assert demand(run, f"{decoder}/attention/core/bias/forward")[1] == 3 * 2 * (2 * 4 * 12 * 12)
    assert f"{decoder}/cross/core/bias/forward" not in {term.path for term in run.compiled.terms}

    def attention(tokens: int, keys: int, length: int, depth: int) -> int:
        return 2 * (tokens * 2 * 32 + 2 * keys * 32) + 2 * 2 * 4 * length * depth

    mlp = 2 * 2 * 128
    assert kept(run, 0) == other * (4 * 64 * 2 + mlp) + attention(other, other, 20, 20)
    both = attention(own, own, 12, 12) + attention(own, other, 12, 20)
    assert kept(run, 1) == own * (6 * 64 * 2 + mlp) + both
    layer = 4 * 64 * 32 + 2 * 64 * 128 + 2 * 64
    assert run.memory_terms()["weights/layers"] == 2 * (2 * layer + 2 * (layer + 4 * 64 * 32 + 64))


def test_a_window_in_the_flash_kernel(load: Any) -> None:
    """10 tokens, each seeing 4 keys: 4 + 3 + 2 + 1 pairs at the start, then 6 rows of 4; chunks of 4: 10 + 10 + 3."""
    config = {
        "model_type": "mistral",
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 9,
        "sliding_window": 4,
    }
    run = train(load(config), sequence=10, batch=1)
    assert demand(run, "layer/attention/flash/forward")[0] == 4 * (10 + 6 * 4) * 4 * 16
    assert demand(run, "layer/attention/flash/backward")[0] == 10 * (10 + 6 * 4) * 4 * 16
    eager = train(load(config), sequence=10, batch=1, attention="eager")
    assert demand(eager, "layer/attention/core/scores/forward")[0] == 2 * 100 * 4 * 16


def test_an_encoder_attends_in_full(load: Any) -> None:
    """A flash kernel of an encoder computes every pair, twice what a causal one does (but for the diagonal)."""
    base = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 128}
    bert = {**base, "model_type": "bert", "vocab_size": 9, "max_position_embeddings": 16}
    run = train(load(bert), sequence=16, batch=1, dropout=False)
    assert demand(run, "layer/attention/flash/forward")[0] == 4 * 16 * 16 * 4 * 16
    assert demand(run, "head/transform/forward")[0] == 2 * 16 * 64 * 64

"""One layer of Mamba-2, of Mamba-1, of a delta rule, and of T5, computed by hand: FLOPs, bytes, and what is kept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.kind_cases import train
from support.model_configs import JAMBA, MAMBA2, QWEN3_NEXT, T5, load_config

from symperf.formulas.language.symbols import SYMBOLS, strip_units
from symperf.models.model import make_model
from symperf.train.memory.saved_activations import layer_activations

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


SSD = {
    "_chunk_cumsum_fwd": "raw steps steps",
    "_chunk_state_fwd": "B x steps steps state",
    "_state_passing_fwd": "state STATE",
    "_bmm_chunk_fwd": "C B score",
    "_chunk_scan_fwd": "score x steps steps C STATE x",
}
SSD_BACKWARD = {
    "clone": "raw raw",
    "_chunk_cumsum_fwd": "raw steps steps",
    "_bmm_chunk_fwd": "C B score",
    "_chunk_state_fwd": "B x steps steps state",
    "_state_passing_fwd": "state state",
    "_chunk_scan_bwd_dstates": "C x steps state",
    "_state_passing_bwd": "state state STATE STATE",
    "_chunk_scan_chunk_state_bwd_dx": "x steps steps B score x STATE x steps steps",
    "_chunk_state_bwd_db": "x STATE B steps steps gradient steps steps",
    "sum and cumsum": "gradient gradient steps steps",
    "_chunk_scan_bwd_dC": "STATE x C steps gradient steps steps",
    "sum": "gradient gradient",
    "_chunk_scan_bwd_dcb": "x x steps steps score",
    "sum of scores": "score score",
    "_bmm_chunk_bwd": "C score gradient B",
    "_bmm_chunk_bwd of C": "B score gradient C",
    "flip, cumsum, flip": "steps steps steps steps steps steps",
    "_chunk_scan_bwd_ddAcs_stable": "x x steps steps score steps",
    "sum of decays": "steps steps",
    "+ and +=": "steps steps steps steps steps steps",
    "_chunk_cumsum_bwd": "steps steps raw raw",
}
"""Tensors that each kernel of mamba_ssm (ssd_combined.py) reads and writes: x for everything as wide as the channels,
steps for time steps and their sums in FP32, raw for time steps in 16 bits, STATE for states in 16 bits, gradient for
those of B and C in FP32. What a kernel fills with zeros before it adds to it is written twice."""
DELTA = {
    "chunk_local_cumsum": "g g",
    "chunk_scaled_dot_kkt_fwd": "k g rate A32",
    "solve_tril": "A32 A",
    "recompute_w_u_fwd": "k v rate A g k v",
    "chunk_gated_delta_rule_fwd_h": "k k v g h v",
    "chunk_fwd_o": "k k v h g v",
}
DELTA_BACKWARD = {
    "recompute_w_u_fwd": "k v rate A g k v",
    "chunk_gated_delta_rule_fwd_h": "k k v g h v",
    "chunk_bwd_dv_local": "k k g v v",
    "chunk_gated_delta_rule_bwd_dhu": "k k k g v v h v",
    "chunk_bwd_dqkwg": "k k v g h v v h k k k g",
    "dg.sum": "g g",
    "prepare_wy_repr_bwd": "k v rate g A k v k v rate g",
    "dk.add_, dg.add_": "k k k g g g",
    "chunk_local_cumsum": "g g",
}
"""The same of flash-linear-attention (gated_delta_rule/chunk.py): k also for queries and solved keys, g in FP32."""


def moved(kernels: dict[str, str], x: int, shared: int, steps: int, state: int, score: int) -> int:
    """Bytes of the tensors of all kernels of Mamba-2, from those of one tensor of each sort."""
    sizes = {"x": x, "B": shared, "C": shared, "steps": steps, "raw": steps // 2, "state": state, "STATE": state // 2}
    sizes |= {"score": score, "gradient": 2 * shared}
    return sum(sizes[name] for names in kernels.values() for name in names.split())


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
    x, shared, steps = tokens * inner * 2, tokens * 16 * 2, tokens * 4 * 4
    state, score = 2 * 3 * inner * 16 * 4, padded * 8 * 4
    assert demand(run, "layer/ssm/scan/forward") == (forward, moved(SSD, x, shared, steps, state, score))
    assert demand(run, "layer/ssm/scan/backward") == (
        2 * forward + padded * (scores + results + states),
        moved(SSD_BACKWARD, x, shared, steps, state, score),
    )
    assert demand(run, "layer/ssm/convolution/backward") == (
        4 * tokens * channels * 4,
        3 * tokens * channels * 2 + 2 * channels * 4 * 4,
    )
    assert demand(run, "layer/ssm/norm_gate/forward")[1] == 3 * tokens * inner * 2
    assert demand(run, "layer/ssm/output/forward")[0] == 2 * tokens * inner * 64
    # The stream is in FP32: read by the norm, twice by its gradients, and in and out of additions.
    n = tokens * 64
    assert demand(run, "layer/ssm/norm/forward")[1] == n * (4 + 2)
    assert demand(run, "layer/ssm/norm/backward")[1] == n * (2 * 4 + 3 * 2)
    assert demand(run, "layer/ssm/residual/forward")[1] == n * (2 * 4 + 2)
    assert demand(run, "layer/ssm/residual/backward")[1] == n * (2 * 4 + 2)
    # Inputs of norm and projection; gate, channels, B, C and time steps; the scan's result, raw and normalised.
    assert kept(run) == tokens * 2 * (2 * 64 + 64 + (2 * inner + 2 * 16 + 4) + 2 * inner)
    # Projections, taps and their biases, three vectors over heads, the gated norm and the layer's.
    layer = 64 * (inner + channels + 4) + inner * 64 + channels * (4 + 1) + 3 * 4 + inner + 64
    assert run.memory_terms()["weights/layers"] == 2 * layer


def test_a_stream_in_16_bits_is_half_as_wide(load: Any) -> None:
    """`residual_in_fp32` false: what norms read, what additions move, what is kept, and what goes to the next stage."""
    wide, narrow = (
        train(load(MAMBA2 | {"residual_in_fp32": each}), sequence=16, batch=2, pp=2) for each in (True, False)
    )
    tokens = 16 * 64
    assert demand(narrow, "layer/ssm/norm/forward")[1] == 4 * tokens
    assert demand(narrow, "layer/ssm/residual/forward")[1] == 6 * tokens
    assert kept(wide) - kept(narrow) == 2 * tokens
    sent = [run.value("term/pipeline/send/forward/message") for run in (wide, narrow)]
    assert sent == [4 * tokens, 2 * tokens]
    again = [
        train(load(MAMBA2 | {"residual_in_fp32": each}), sequence=16, batch=2, recompute="full")
        for each in (True, False)
    ]
    assert [kept(run) for run in again] == [4 * tokens, 2 * tokens]


def test_the_time_of_a_scan_is_that_of_its_kernels(load: Any) -> None:
    """Products at the flash kernel's part of the peak, or traffic; each kernel and small operation is launched."""
    run = train(load(MAMBA2), sequence=20, batch=2)
    bound = {name: value for name, (value, _) in run.bound.items()}
    peak = {"forward": bound["attention_efficiency"], "backward": bound["attention_backward_efficiency"]}
    again_and_gradients = sum(name.startswith("_") for name in SSD_BACKWARD)
    # Of PyTorch: a copy; three fills; sums over splits of B, C, scores, over blocks of decays, of D and of the passing;
    # two running sums, two reversals, and three additions.
    small = 1 + 3 + 6 + 2 + 2 + 3
    for phase, launches in (("forward", len(SSD)), ("backward", again_and_gradients + small)):
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
    assert demand(run, f"{path}/scan/forward") == (7 * 10 * 128 * 8, 10 * 2 * (5 * 128 + 2 * 8))
    assert demand(run, f"{path}/scan/backward") == (19 * 10 * 128 * 8, 10 * 2 * (9 * 128 + 4 * 8))
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
    sizes = {"k": 16, "v": 16, "g": 4, "rate": 2, "A": 128, "A32": 256, "h": 2 * 8 * 8 * 2 / 100}
    each = {name: 100 * 4 * size for name, size in sizes.items()}
    forward, backward = (
        sum(each[name] for names in kernels.values() for name in names.split()) for kernels in (DELTA, DELTA_BACKWARD)
    )
    assert demand(run, f"{path}/scan/forward") == (products + solves, forward)
    again = padded * 4 * (4 * 8 * 8 + 2 * 64 * 8)
    assert demand(run, f"{path}/scan/backward") == (2 * products + 3 * solves + again, backward)
    assert demand(run, f"{path}/convolution/forward")[0] == 2 * 100 * (2 * keys + values) * 4
    # The gate of full attention doubles the queries; its product with the result is a kernel.
    attention = "layer/attention_experts/attention"
    assert demand(run, f"{attention}/qkv/forward")[0] == 2 * 100 * 64 * 16 * (2 * 4 + 2 * 2)
    assert demand(run, f"{attention}/gate/forward")[1] == 3 * 100 * 4 * 16 * 2


MEMORY = {"states": "k v gate gate h", "results": "k k v gate gate h v m m"}
MEMORY_BACKWARD = {
    "states": "k v gate gate h",
    "passing back": "k v gate gate m m h",
    "values": "k k v gate gate h m m v",
    "queries": "k v v gate gate h m m k",
    "keys": "k v v gate gate h m m k",
    "gates": "k k k k m m",
}
"""The same of mlstm_kernels: m for the normalizer and the largest exponent, or gradients of gates, in FP32."""


def test_a_layer_of_a_matrix_memory() -> None:
    """2 sequences of 100 tokens in 2 chunks of 64: 4 heads with keys of 8 and values of 16, MLP of 192."""
    data = {"model_type": "xlstm", "hidden_size": 64, "num_hidden_layers": 1, "num_heads": 4, "vocab_size": 128}
    run = train(make_model("memory", "test", data, "memory.json"), sequence=100, batch=2, micro_batch=2)
    path, tokens, padded = "layer/matrix_memory", 200, 2 * 128
    assert demand(run, f"{path}/in/forward")[0] == 2 * tokens * 64 * (2 * 32 + 2 * 64 + 2 * 4)
    assert demand(run, f"{path}/output/forward")[0] == 2 * tokens * 64 * 64
    work = padded * 4 * (2 * 64 * (8 + 16) + 4 * 8 * 16 + 2 * 8)
    each = {"k": 16, "v": 32, "gate": 2, "m": 4, "h": 2 * 2 * 8 * 16 / 100}
    forward, backward = (
        sum(tokens * 4 * each[name] for names in kernels.values() for name in names.split())
        for kernels in (MEMORY, MEMORY_BACKWARD)
    )
    assert demand(run, f"{path}/scan/forward") == (work, pytest.approx(forward))
    again = padded * 4 * (2 * 8 * 16 + 2 * 64 * (2 * 8 + 16))
    assert demand(run, f"{path}/scan/backward") == (2 * work + again, pytest.approx(backward))
    assert not [row.name for row in run.table() if "convolution" in row.name]
    mixer = tokens * 2 * (2 * 32 + 5 * 64 + 6 * 4) + tokens * 4 * 2 * 4
    assert kept(run) == tokens * 2 * 4 * 64 + mixer + tokens * 2 * 4 * 192


WKV = {
    "chunk_rwkv6_fwd_cumsum": "k k32 k32",
    "chunk_dplr_fwd_intra": "k k k k k32 k32 A32 A32 A A k k k k",
    "prepare_wy_repr_fwd": "A32 A32 k A32 A32 v k v",
    "chunk_dplr_fwd_h": "k k k v v v h",
    "chunk_dplr_fwd_o": "k v v A A h v",
}
WKV_BACKWARD = {
    **{name: names for name, names in WKV.items() if name != "chunk_dplr_fwd_o"},
    "chunk_dplr_bwd_dAu": "v v v A v A32 A32",
    "chunk_dplr_bwd_dhu": "k k k v v h v",
    "chunk_dplr_bwd_dv": "A k v h v",
    "chunk_dplr_bwd_o": "k k k v v v v h h k k k k",
    "chunk_dplr_bwd_wy": "A32 A32 v v v k k A32 A32 v k",
    "chunk_dplr_bwd_dqk_intra": "k k k k k32 k32 A32 A32 A32 A32 k k k k k k k k k32 k32 k32 k32 k32",
    "to": "k32 k",
}
"""The same of flash-linear-attention (generalized_delta_rule/dplr/chunk.py): k for all of keys' width, A for scores."""


def test_layers_of_a_time_mixing() -> None:
    """1 sequence of 20 tokens in 2 chunks of 16: 4 heads of 16, narrow widths of 3, 5, 6 and 7, MLP of 256."""
    narrow = {"decay_low_rank_dim": 3, "a_low_rank_dim": 5, "v_low_rank_dim": 6, "gate_low_rank_dim": 7}
    data = {"model_type": "rwkv7", "hidden_size": 64, "num_hidden_layers": 2, "head_dim": 16, "vocab_size": 128}
    run = train(make_model("mixing", "test", data | narrow, "mixing.json"), sequence=20, batch=1)
    first, other = "layer/wkv_dense/wkv", "layer/wkv_dense_2/wkv"
    for name in ("receptance", "key", "value", "output"):
        assert demand(run, f"{first}/{name}/forward")[0] == 2 * 20 * 64 * 64
    for name, rank in (("decay", 3), ("rate", 5), ("taken", 6), ("gate", 7)):
        for end in ("down", "up"):
            assert demand(run, f"{other}/{name}_{end}/forward")[0] == 2 * 20 * 64 * rank
    assert not [row.name for row in run.table() if f"{first}/taken" in row.name]
    work = 32 * 4 * (16 * (8 * 16 + 6 * 16) + 8 * 16 * 16)
    each = {"k": 32, "v": 32, "k32": 64, "A": 32, "A32": 64, "h": 2 * 2 * 16 * 16 / 20}
    forward, backward = (
        sum(20 * 4 * each[name] for names in kernels.values() for name in names.split())
        for kernels in (WKV, WKV_BACKWARD)
    )
    assert demand(run, f"{other}/scan/forward") == (work, pytest.approx(forward))
    again = 32 * 4 * (16 * (8 * 16 + 2 * 16) + 6 * 16 * 16)
    assert demand(run, f"{other}/scan/backward") == (2 * work + again, pytest.approx(backward))
    assert demand(run, f"{other}/shift/forward")[1] == 10 * 20 * 64 * 2
    assert demand(run, "layer/wkv_dense_2/mlp/shift/forward")[1] == 5 * 20 * 64 * 2
    # ReLU squared: what it reads, and its square.
    ends = 4 * 64 + 2 * 256
    statistics = 20 * 4 * 3 * 4
    assert kept(run, 0) == 20 * 2 * (ends + 8 * 64 + 9 * 64 + 5 * 64 + 3 + 5 + 7) + statistics
    assert kept(run, 1) == 20 * 2 * (ends + 8 * 64 + 9 * 64 + 7 * 64 + 3 + 5 + 6 + 7) + statistics


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

    # ReLU: the output of the activation function serves its gradient and the next product.
    mlp = 2 * 128
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

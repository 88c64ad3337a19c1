"""Norms, rotary positions and gated activations operation by operation: bytes of real arrays, and of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import symperf as sf
from symperf.formulas.kernels import eager

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

ROWS, WIDTH = 64, 128
HALF, SINGLE = np.float16, np.float32


class Tape:
    """Runs operations on arrays, and counts the bytes of those that are as long as the stream."""

    def __init__(self) -> None:
        self.moved = 0

    def run(self, operation: Callable[..., NDArray[Any]], *arrays: NDArray[Any]) -> NDArray[Any]:
        result = operation(*arrays)
        self.moved += sum(array.nbytes for array in (*arrays, result) if array.size >= ROWS * WIDTH)
        return result


def rows_of(seed: int) -> NDArray[Any]:
    return np.random.default_rng(seed).standard_normal((ROWS, WIDTH)).astype(HALF)


def mean(array: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(array.mean(-1, keepdims=True, dtype=array.dtype))


def total(array: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(array.sum(-1, keepdims=True, dtype=array.dtype))


def single(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(SINGLE)


def half(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(HALF)


def test_a_norm_moves_what_its_operations_do_and_its_gradients_are_right() -> None:
    x, gain, gradient = rows_of(0), np.ones(WIDTH, HALF), rows_of(1)
    tape = Tape()
    wide = tape.run(single, x)
    root = 1 / np.sqrt(tape.run(mean, tape.run(np.square, wide)))
    normal = tape.run(half, tape.run(np.multiply, wide, root))
    result = tape.run(np.multiply, normal, gain)
    assert tape.moved == float(eager.eager_norm_bytes(x.size, 2, 4))
    tape = Tape()
    back = tape.run(np.multiply, gradient, gain)
    gains = tape.run(lambda array: array.sum(0), tape.run(np.multiply, gradient, normal))
    back = tape.run(single, back)
    direct = tape.run(np.multiply, back, root)
    of_root = tape.run(total, tape.run(np.multiply, back, wide))
    of_mean = -0.5 * of_root * root**3 / WIDTH
    power = tape.run(lambda array: array**1, wide)
    square = tape.run(np.multiply, tape.run(lambda array: 2 * array, power), of_mean.astype(SINGLE))
    found = tape.run(half, tape.run(np.add, direct, square))
    assert tape.moved == float(eager.eager_norm_backward_bytes(x.size, 2, 4))
    assert gains.shape == (WIDTH,)
    y, g, r = result.astype(float), gradient.astype(float), root.astype(float)
    assert np.allclose(found, r * (g - y * (g * y).mean(-1, keepdims=True)), atol=2e-2)


def test_rotary_positions_and_gates_move_what_their_operations_do() -> None:
    x, up = rows_of(2), rows_of(3)
    turns = np.exp(1j * np.arange(WIDTH // 2)).astype(np.complex64)
    tape = Tape()
    wide = tape.run(single, x)
    turned = (wide[:, ::2] + 1j * wide[:, 1::2]) * turns
    tape.moved += 2 * wide.nbytes
    found = tape.run(half, np.stack((turned.real, turned.imag), -1).reshape(x.shape).astype(SINGLE))
    assert tape.moved == float(eager.eager_rotary_bytes(x.size, 2, 4))
    assert np.allclose(np.linalg.norm(found.astype(float)), np.linalg.norm(x.astype(float)), rtol=1e-3)
    tape = Tape()
    tape.run(np.multiply, tape.run(np.tanh, x), up)
    assert tape.moved == float(eager.eager_gated_bytes(x.size, 2))
    tape, gradient, slope = Tape(), rows_of(4), 1 - np.tanh(single(x)) ** 2
    tape.run(np.multiply, gradient, np.tanh(x))
    of_function = tape.run(np.multiply, gradient, up)
    of_gate = tape.run(lambda array, gate: half(array * (1 - np.tanh(single(gate)) ** 2)), of_function, x)
    assert tape.moved == float(eager.eager_gated_backward_bytes(x.size, 2))
    assert np.allclose(of_gate, single(gradient) * single(up) * slope, atol=2e-2)


def moved(model: str = "llama-3.1-8b", sequence: int = 4096, **plan: Any) -> dict[str, float]:
    run = sf.training(model, "h100-sxm", sf.Plan(attention="flash", **plan), batch=1, sequence=sequence)
    return {row.name: row.bytes for row in run.table()}


def test_a_step_moves_more_unless_a_compiler_joins_its_operations() -> None:
    fused, apart = moved(), moved(eager=True)
    n = 4096 * 4096 * 32
    assert apart["layer/mlp/norm/forward"] == pytest.approx(fused["layer/mlp/norm/forward"] * 36 / 4)
    assert apart["layer/mlp/norm/backward"] == pytest.approx(n * 84)
    assert apart["layer/mlp/activation/forward"] == pytest.approx(fused["layer/mlp/activation/forward"] * 5 / 3)
    assert apart["layer/attention/rotary/forward"] == pytest.approx(fused["layer/attention/rotary/forward"] * 20 / 4)
    assert {name for name, size in apart.items() if size != pytest.approx(fused[name])} == {
        *(f"layer/{part}/norm/{phase}" for part in ("attention", "mlp") for phase in ("forward", "backward")),
        *(f"layer/attention/rotary/{phase}" for phase in ("forward", "backward")),
        *(f"layer/mlp/activation/{phase}" for phase in ("forward", "backward")),
        "head/norm/forward",
        "head/norm/backward",
    }
    assert moved(eager=True, compiled=True) == moved(compiled=True)


def test_layer_norms_have_a_kernel_of_their_own() -> None:
    assert moved("gpt2", 1024, eager=True) == moved("gpt2", 1024)


def test_a_norm_of_a_copy_moves_what_its_operations_do() -> None:
    """The copy, and one kernel; two kernels for the gradients, which read copy and gradient, and a copy back."""
    x, gradient, tape = rows_of(5), rows_of(6), Tape()
    wide = tape.run(single, x)
    tape.run(lambda array: half(array / np.sqrt(np.square(array).mean(-1, keepdims=True))), wide)
    assert tape.moved == float(eager.copied_norm_bytes(x.size, 2, 4))
    tape = Tape()
    of_copy = tape.run(np.multiply, wide, gradient)
    tape.run(half, of_copy)
    tape.run(lambda array, slope: (array * slope).sum(0), wide, gradient)
    assert tape.moved == float(eager.copied_norm_backward_bytes(x.size, 2, 4))


def test_parts_run_apart_by_name() -> None:
    """All three together are eager; a copy is of norms of the stream, and is kept for the backward pass."""
    fused, n = moved(), 4096 * 4096 * 32
    assert moved(eager_parts="norms,rotary,gated") == moved(eager=True)
    assert moved(eager_parts="norms,copies") == moved(eager_parts="norms")
    assert moved(eager_parts="copies", compiled=True) == moved(compiled=True)
    gated, copied = moved(eager_parts="gated"), moved(eager_parts="copies")
    assert {name for name in fused if gated[name] != pytest.approx(fused[name])} == {
        f"layer/mlp/activation/{phase}" for phase in ("forward", "backward")
    }
    assert copied["layer/mlp/norm/forward"] == pytest.approx(n * 12)
    assert copied["layer/mlp/norm/backward"] == pytest.approx(n * 22)
    assert moved("gpt2", 1024, eager_parts="copies") != moved("gpt2", 1024)
    kept, plain = (
        sf.training("llama-3.1-8b", "h100-sxm", sf.Plan(eager_parts=parts), batch=1, sequence=4096).value("memory")
        for parts in ("copies", None)
    )
    assert kept - plain == pytest.approx(2 * n * 2 + 4096 * 4096 * 2, rel=0.02)


@pytest.mark.parametrize("recompute", [{"recompute": "full"}, {"recompute_modules": "layernorm"}])
def test_a_norm_that_is_computed_again_keeps_no_copy(recompute: dict[str, Any]) -> None:
    """But for the norm before the head, 2 bytes an element, and copies of the one layer that is computed again."""
    kept, plain = (
        sf.training("llama-3.1-8b", "h100-sxm", sf.Plan(eager_parts=parts, **recompute), batch=1, sequence=4096).value(
            "saved_activations"
        )
        for parts in ("copies", None)
    )
    assert 0 <= kept - plain <= 3 * 4096 * 4096 * 2


@pytest.mark.parametrize("loss", ["unfused", "fused", "chunked", "fused-linear"])
def test_metrics_of_the_logits_are_a_stream_of_their_own(loss: str) -> None:
    """Bytes for each logit, in every micro-batch; nothing else takes longer."""
    plan = sf.Plan(tp=2, micro_batch=1, attention="flash", loss=loss)

    def rows(**values: Any) -> dict[str, Any]:
        run = sf.training("llama-3.1-8b", "h100-sxm", plan, batch=4, sequence=4096, **values)
        return {row.name: row for row in run.table()}

    plain, metered = rows(), rows(loss_metric_bytes=16.0)
    found = metered.pop("head/loss/metrics")
    assert found.bytes == pytest.approx(4 * 4096 * 128256 / 2 * 16)
    assert {name: row.time_s for name, row in metered.items()} == pytest.approx(
        {name: row.time_s for name, row in plain.items()}
    )
    assert found.time_s >= found.bytes / 3.35e12

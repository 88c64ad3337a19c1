"""Kernels between the products, as PyTorch runs them without a compiler, and the optimizer's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .bench import NotMeasuredError
from .jobs import Job, scatter, turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from .bench import Bench

TOKENS = (1, 16, 128, 512, 2048, 8192, 32768)
WIDTHS = (4096, 8192, 14336)
BYTES = {  # bytes an element in bf16: each operand of each kernel once
    "layer_norm": 4,
    "rms_norm": 4,
    "softmax": 4,
    "gelu": 4,
    "silu_mul": 10,
    "add": 6,
    "dropout_add": 11,
    "cast": 6,
    "cast_fp8": 3,
}
NOTES = {
    "rms_norm": "as functional.rms_norm runs it: bytes are those of one fused kernel",
    "silu_mul": "two kernels: silu, then the product",
    "dropout_add": "two kernels: dropout with a mask of a byte, then the sum",
    "cast": "bf16 to fp32",
    "cast_fp8": "bf16 to fp8, without a scale",
}
PARAMETERS = (1 << 22, 1 << 25, 1 << 28)
ADAM_BYTES = {"adam": 28, "adam_foreach": 72, "adam_loop": 72}
"""Of an fp32 parameter. Fused: weight, gradient and two moments in; weight and moments out. Else seven kernels read and
write their operands: those of the moments 3, 2 and 3 numbers, root, division and epsilon 2 each, the weight's 4."""
TENSORS = 16
ADAM_NOTES = {
    "adam": "one fused step over 16 tensors",
    "adam_foreach": "a step over 16 tensors, each of seven operations for all of them together",
    "adam_loop": "a step over 16 tensors, seven kernels for each",
}


def jobs() -> list[Job]:
    """Every kernel at some sizes."""
    found = [_job(name, tokens, width) for name in BYTES for tokens in TOKENS for width in WIDTHS]
    return scatter([*found, *(_adam(name, count) for name in ADAM_BYTES for count in PARAMETERS)])


def _job(name: str, tokens: int, width: int) -> Job:
    elements = tokens * width
    row = {"kind": "elementwise", "name": name, "dtype": "bf16", "m": tokens, "n": width, "elements": elements}
    row |= {"bytes": elements * BYTES[name], "note": NOTES.get(name, "")}
    if name in ("silu_mul", "dropout_add"):
        row["kernels"] = 2
    return Job(row, lambda bench: _call(bench, name, tokens, width))


def _call(bench: Bench, name: str, tokens: int, width: int) -> Callable[[int], Any]:
    torch = bench.torch
    functional = torch.nn.functional
    inputs = bench.views("bf16", 0, (tokens, width))
    others = bench.views("bf16", 1, (tokens, width))
    pairs = list(zip(inputs, others, strict=True))
    gain = torch.ones(width, dtype=torch.bfloat16, device="cuda")
    if name == "rms_norm" and not hasattr(functional, "rms_norm"):
        raise NotMeasuredError(f"PyTorch {bench.version} has no rms_norm")
    calls: dict[str, Callable[[Any], Any]] = {
        "layer_norm": lambda pair: functional.layer_norm(pair[0], (width,), gain, gain),
        "rms_norm": lambda pair: functional.rms_norm(pair[0], (width,), gain),
        "softmax": lambda pair: torch.softmax(pair[0], dim=-1),
        "gelu": lambda pair: functional.gelu(pair[0], approximate="tanh"),
        "silu_mul": lambda pair: functional.silu(pair[0]) * pair[1],
        "add": lambda pair: pair[0] + pair[1],
        "dropout_add": lambda pair: functional.dropout(pair[0], 0.1, True) + pair[1],
        "cast": lambda pair: pair[0].float(),
        "cast_fp8": lambda pair: pair[0].to(bench.dtype("fp8")),
    }
    return turns(calls[name], pairs)


def _adam(name: str, count: int) -> Job:
    row = {"kind": "elementwise", "name": name, "dtype": "fp32", "elements": count, "bytes": ADAM_BYTES[name] * count}
    if name == "adam_loop":
        row["kernels"] = 7 * TENSORS
    elif name == "adam_foreach":
        row["kernels"] = 7
    return Job(row | {"note": ADAM_NOTES[name]}, lambda bench: _optimizer(bench, name, count))


def _optimizer(bench: Bench, name: str, count: int) -> Callable[[int], Any]:
    torch = bench.torch
    bench.check_fits(28 * count)
    weights = [torch.randn(count // TENSORS, device="cuda", requires_grad=True) for _ in range(TENSORS)]
    for weight in weights:
        weight.grad = torch.randn(count // TENSORS, device="cuda")
    ways: dict[str, dict[str, bool]] = {
        "adam": {"fused": True},
        "adam_foreach": {"foreach": True},
        "adam_loop": {"foreach": False, "fused": False},
    }
    optimizer = torch.optim.Adam(weights, **ways[name])
    return lambda _: optimizer.step()

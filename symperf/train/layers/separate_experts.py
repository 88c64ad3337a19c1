"""Biases of experts and limits of their activation where software adds them by kernels of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...formulas.kernels import separate_experts as apart
from ...formulas.language.symbols import (
    activation_bytes,
    expert_operations,
    hidden_size,
    launch_latency,
    mask_bytes,
    separate_expert_kernels,
)
from ...operations.schedule import Demand

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .transformer import Decoder

ADDED, REDUCED = 2, 4
"""Kernels for each expert: a product and a sum; of their gradients two products and two sums over rows or columns."""
PER_EXPERT = {ADDED: 1, REDUCED: 2}
"""What they take the host, in operations that it needs for a product of one expert."""


class SeparateExperts:
    """What lies between the products of the experts of one layer; nothing unless the run states it.

    Args:
        layer: where the experts are.
        rows: that arrive at the device.
        inner: width of the experts on the device.
        held: experts of the device.
    """

    def __init__(self, layer: Decoder, rows: Any, inner: Any, held: Any) -> None:
        self.layer, self.rows, self.inner, self.held = layer, rows, inner, held
        stated, architecture = layer.structure.separate_experts, layer.architecture
        self.biased = stated and architecture.expert_bias
        self.limited = stated and architecture.limited_gate

    def bias(self, phase: str) -> Op | None:
        """The biases of the second products, each by the probabilities of its rows, added expert by expert."""
        n = self.rows * hidden_size
        return self.by_expert(f"bias/{phase}", apart.separate_bias_bytes(n, activation_bytes), n, ADDED)

    def bias_backward(self) -> Op | None:
        """Gradients of biases and probabilities."""
        n = self.rows * hidden_size
        return self.by_expert("bias/backward", apart.separate_bias_backward_bytes(n, activation_bytes), n, REDUCED)

    def limit(self, phase: str) -> Op | None:
        """Limits of the gate and of the linear half."""
        n = self.rows * self.inner
        return (
            self.kernel(f"limit/{phase}", apart.separate_limit_bytes(n, activation_bytes), n, 3)
            if self.limited
            else None
        )

    def limit_backward(self) -> Op | None:
        """Gradients of what is limited, 0 beyond the limits."""
        n = self.rows * self.inner
        traffic = apart.separate_limit_backward_bytes(n, activation_bytes, mask_bytes)
        return self.kernel("limit/backward", traffic, n, 7) if self.limited else None

    def waits_after(self, steps: tuple[Op | None, ...]) -> int:
        """How many of the steps of a forward pass the host launches before it waits for the device once more.

        The offset of the linear half becomes a tensor on the device on every call, by a copy that blocks the host
        (`torch.tensor(linear_offset, device=...)` in Megatron-LM, megatron/core/fusions/fused_bias_geglu.py).
        """
        waits = [i for i, op in enumerate(steps, 1) if op is not None and op.path.split("/")[-2] == "limit"]
        return waits[0] if waits else len(steps)

    def by_expert(self, name: str, traffic: Any, elements: Any, kernels: int) -> Op | None:
        """Kernels for each expert, and one that joins their results."""
        if not self.biased:
            return None
        op = self.kernel(name, traffic, elements, 1)
        pieces = separate_expert_kernels * self.held
        launches = separate_expert_kernels + PER_EXPERT[kernels] * expert_operations * pieces
        return replace(op, time=op.time + kernels * pieces * launch_latency, launches=launches)

    def kernel(self, name: str, traffic: Any, elements: Any, kernels: int) -> Op:
        """Some kernels that move so many bytes in all."""
        share = separate_expert_kernels
        op = self.layer.kernels.stream(f"{self.layer.root}/experts/{name}", traffic, elements, 2)
        demand = Demand(share * op.demand.flops, share * op.demand.memory_bytes)
        time = share * (op.time + (kernels - 1) * launch_latency)
        return replace(op, time=time, demand=demand, launches=share * kernels)

"""Passes of layers with adapters: their products beside those of the frozen weights, and these widened where stored.

A pass is built without them; each product that has adapters is then followed by theirs: forward x A and (x A) B,
scaled and added; backward the gradients of both and of what they read. A layer that is packed with others into one
product has an adapter of its own, of as many outputs as the mean of them. A base whose weights are stored in 4 bits is
widened before every product that reads it. With decomposed weights the norms of W + s B A are taken in each forward
pass, for which B A is made from the identity (PEFT, tuners/lora/dora.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import trained_adapters as form
from ...formulas.language.symbols import activation_bytes, base_block, gradient_bytes, lora_rank
from ...formulas.language.symbols import expert_tp as expert_ranks
from ...operations.groups import Group, tensor_group
from ...operations.schedule import Op, Overlap, Repeat, Sequence, sequence
from ...plans.adapted_layers import products_of
from ..layers.adapters import adapted_product
from .low_precision import is_low

if TYPE_CHECKING:
    from ...operations.kernels import Kernels
    from ...operations.schedule import Node
    from ...plans.structure import Structure
    from ..layers.adapters import Adapted
    from ..layers.transformer import Decoder
    from ..memory.device_share import DeviceShare

FORWARD = ("forward", "recompute")


class AdaptedPasses:
    """What adapters, and a base in 4 bits, add to the passes of layers of a structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def __call__(self, node: Node, decoder: Decoder) -> Node:
        """A pass of a layer with them."""
        if not (self.structure.adapted or self.structure.stored):
            return node
        return _Pass(self.structure, decoder).of(node)


class _Pass:
    def __init__(self, structure: Structure, decoder: Decoder) -> None:
        self.structure, self.decoder, self.kernels = structure, decoder, decoder.kernels

    def of(self, node: Node) -> Node:
        match node:
            case Op():
                return self._with_adapters(node)
            case Sequence(children):
                return Sequence(tuple(self.of(child) for child in children))
            case Repeat(child, count):
                return Repeat(self.of(child), count)
            case Overlap(work, transfer, fraction):
                return Overlap(self.of(work), transfer, fraction)
            case _:
                raise TypeError(f"a pass has no {type(node).__name__}")

    def _with_adapters(self, op: Op) -> Node:
        path, _, phase = op.path.rpartition("/")
        if op.shape is None or phase not in (*FORWARD, "backward_input"):
            return op
        forward = op if phase in FORWARD else _forward_of(op)
        found = adapted_product(self.decoder, forward)
        before = self._widened(path, phase, op) if self.structure.stored else None
        if before is None and found is None:
            return op
        if found is None:
            return sequence(before, op)
        products = self._forward(path, phase, found) if phase in FORWARD else self._backward(path, found)
        return sequence(before, op, *products)

    # --- stored weights

    def _widened(self, path: str, phase: str, op: Op) -> Node | None:
        """The weights of each layer that is packed into a product, and their scales before, as 16 bits."""
        assert op.shape is not None
        if not is_low(op):
            return None
        name = "/".join(path.split("/")[-2:])
        product = products_of(self.decoder.architecture, self.decoder.kind).get(name)
        layers = 1 if product is None else len(product.layers)
        _, columns, inner, groups = op.shape
        elements = columns * inner * groups / layers
        scales, weights = form.widened_scales_bytes(elements), form.widened_weights_bytes(elements)
        steps = sequence(
            self.kernels.stream(f"{path}/widen_scales/{phase}", scales, elements / base_block, 2),
            self.kernels.stream(f"{path}/widen/{phase}", weights, elements, 2),
        )
        return Repeat(steps, layers) if layers > 1 else steps

    # --- adapters

    def _forward(self, path: str, phase: str, found: Adapted) -> list[Node | None]:
        """The products of both matrices, and what adds their result."""
        matmul, path = self.kernels.matmul, f"{path}/lora"
        ranks = found.first_rows, lora_rank, found.inner, found.groups
        results = found.last_rows, found.mean_columns, lora_rank, found.groups
        steps = sequence(
            matmul(f"{path}/into/{phase}", *ranks),
            self._summed(path, phase, found),
            matmul(f"{path}/out/{phase}", *results),
            *(self._weighed(path, phase, found) if self.structure.decomposed else ()),
            None if self.structure.decomposed else self._added(path, phase, found),
        )
        return [_repeated(steps, found.layers)]

    def _added(self, path: str, phase: str, found: Adapted) -> Op:
        return self.kernels.stream(f"{path}/add/{phase}", form.adapter_sum_bytes(found.results), found.results, 2)

    def _weighed(self, path: str, phase: str, found: Adapted) -> list[Op]:
        """The norms of the columns of the merged weight, and the magnitudes over them."""
        matmul, n, columns = self.kernels.matmul, found.results, found.mean_columns
        weights = found.inner * columns
        return [
            matmul(f"{path}/merge_into/{phase}", found.inner, lora_rank, found.inner, found.groups),
            matmul(f"{path}/merge_out/{phase}", found.inner, columns, lora_rank, found.groups),
            self.kernels.stream(f"{path}/norm/{phase}", form.merged_norm_bytes(weights), weights, 4),
            self.kernels.stream(f"{path}/magnitude/{phase}", form.magnitude_bytes(n), n, 5),
        ]

    def _backward(self, path: str, found: Adapted) -> list[Node | None]:
        """The gradients of both matrices and of what they read; those of the layer's input are summed."""
        matmul, path = self.kernels.matmul, f"{path}/lora"
        columns, inner, groups = found.mean_columns, found.inner, found.groups
        rows = found.first_rows * groups
        added = form.adapter_sum_backward_bytes(rows, inner, found.results / rows)
        n = found.results
        steps = sequence(
            self.kernels.stream(f"{path}/magnitude/backward", form.magnitude_backward_bytes(n), n, 7)
            if self.structure.decomposed
            else None,
            matmul(f"{path}/out/backward_input", found.last_rows, lora_rank, columns, groups),
            self._weights(f"{path}/out/backward_weight", found.last_rows, (lora_rank, columns), groups),
            self._summed(path, "backward", found),
            matmul(f"{path}/into/backward_input", found.first_rows, inner, lora_rank, groups),
            self._weights(f"{path}/into/backward_weight", found.first_rows, (inner, lora_rank), groups),
            self.kernels.stream(f"{path}/add/backward", added, n, 2),
        )
        return [_repeated(steps, found.layers)]

    def _weights(self, path: str, rows: Any, sides: tuple[Any, Any], groups: Any) -> Op:
        """The gradient of a matrix of an adapter, added to the accumulated one."""
        return self.kernels.weight_gradient(path, rows, *sides, groups)

    def _summed(self, path: str, phase: str, found: Adapted) -> Node | None:
        """What goes over the tensor-parallel group of what is between both matrices, or of its gradient.

        A matrix into the rank that is split gives shares of sums; one out of it gives shares of the sum's gradient.
        """
        kernels, group, forward = self.kernels, tensor_group(), phase in FORWARD
        if found.product.startswith("experts"):
            group = Group(expert_ranks, 1)
        message = found.rows * found.groups * lora_rank * activation_bytes
        if found.split == "whole":
            return None
        if found.own == 1 or found.split == "inner":
            summed = forward == (found.split == "rows")
            return kernels.all_reduce(f"{path}/reduce/{phase}", message, group) if summed else None
        gather, scatter = (f"{path}/{name}/{phase}" for name in ("gather", "reduce"))
        gathered = kernels.all_gather(gather, message, group)
        if found.split == "rows":
            return kernels.reduce_scatter(scatter, message, group) if forward else gathered
        if forward:
            return gathered
        # What leaves the rank is kept in shares, and gathered again for the gradient of the matrix out of it.
        return sequence(gathered, kernels.reduce_scatter(scatter, message, group))


def tensor_sum(kernels: Kernels, share: DeviceShare) -> Node | None:
    """The sum over the tensor-parallel group of gradients that each rank has of its own tokens, once a step.

    Of matrices that are whole beside sequence parallelism, as Megatron-Core sums those of norms
    (distributed/finalize_model_grads.py, `_allreduce_non_tensor_model_parallel_grads`).
    """
    summed = share.summed_adapters
    return kernels.all_reduce("gradients/adapters", summed * gradient_bytes, tensor_group()) if summed != 0 else None


def _forward_of(op: Op) -> Op:
    """The forward product of which an operation is the gradient of the input."""
    assert op.shape is not None
    rows, inner, columns, groups = op.shape
    return Op(f"{op.path.rpartition('/')[0]}/forward", op.time, op.demand, (rows, columns, inner, groups))


def _repeated(steps: Sequence, layers: int) -> Node:
    return Repeat(steps, layers) if layers > 1 else steps

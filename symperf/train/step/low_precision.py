"""Products in low precision: a step's linear layers with casts before them, and everything else in 16 bits.

The step is built in 16 bits, and then its operations are replaced: a linear layer's product by a cast of its input
(or of its output's gradient) and the product in low precision; any other product by itself at the 16-bit rate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...formulas.kernels import elementwise, matmul, roofline
from ...formulas.kernels import expert_formats as fmt
from ...formulas.kernels import low_precision as low
from ...formulas.language.atoms import complement
from ...formulas.language.symbols import (
    activation_bytes,
    attention_rate,
    dispatch_element_bytes,
    fp8_efficiency,
    matrix_efficiency,
    matrix_rate,
    product_input_bytes,
)
from ...operations.expert_formats import cast_launches, in_transit, reads_arrivals
from ...operations.kernels import added_apart, aligned_time, gradient_traffic, product_time
from ...operations.schedule import Demand, Ends, Idle, Op, Overlap, Repeat, Scheduled, Sequence

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from ...plans.structure import Structure

SIXTEEN_BITS = (
    *("/core/", "/router/", "/shared/gate/", "head/", "optimizer/", "/scan", "/conv", "/flash", "embedding/"),
    *("/ssm/narrow/", "/ssm/time_step/", "/gated_lru/gates/", "compress/", "/index_weights/", "/streams/"),
    *("/vision/", "/audio/", "/lora/"),
)
"""Parts of the paths of products that stay in 16 bits: attention, routers, recurrences and what they read, the ends,
Muon's; compressors and the weights of residual streams; encoders of images and sound; adapters."""


def is_low(op: Op) -> bool:
    """Whether an operation is the product of a linear layer."""
    return op.shape is not None and not any(part in f"/{op.path}" for part in SIXTEEN_BITS)


class Lowered:
    """Replaces the operations of trees; an operation that stands at several places stays one."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.known: dict[int, tuple[Node, Node]] = {}

    def __call__(self, node: Node) -> Node:
        """The tree in low precision."""
        if id(node) not in self.known:
            # The node is kept beside its answer, so that its identity is not given to another.
            self.known[id(node)] = node, self._lowered(node)
        return self.known[id(node)][1]

    def _lowered(self, node: Node) -> Node:
        match node:
            case Op():
                return self.product(node) if is_low(node) else sixteen(node)
            case Sequence(children):
                return Sequence(tuple(self(child) for child in children))
            case Repeat(child, count):
                return Repeat(self(child), count)
            case Overlap(work, transfer, fraction):
                return Overlap(self(work), self(transfer), fraction)
            case Ends(first, last, micro_batches, stages):
                return Ends(self(first), self(last), micro_batches, stages)
            case Idle(path, child, count):
                return Idle(path, self(child), count)
            case Scheduled(passes, counts, rule):
                return Scheduled(tuple(self(each) for each in passes), counts, rule)
            case _:
                raise TypeError(f"a training step has no {type(node).__name__}")

    def product(self, op: Op) -> Node:
        """A linear layer's product, after the cast of what it reads first; its weights' copies are there already.

        The gradient of the weights reads copies of the input and of the output's gradient that earlier casts made.
        """
        assert op.shape is not None
        rows, columns, inner, groups = op.shape
        weights = op.path.endswith("backward_weight")
        result = gradient_traffic(self.structure) if weights else activation_bytes
        element = product_input_bytes
        traffic = matmul.matmul_bytes(rows, columns, inner, groups, element, element, result)
        time = product_time(self.structure, op.shape, element, traffic)
        time = aligned_time(self.structure, time, (rows, columns, inner))
        time = time.xreplace({matrix_efficiency: fp8_efficiency})
        made = replace(op, time=time, demand=Demand(op.demand.flops, traffic))
        if weights:
            return added_apart(self.structure, made)
        arrived = reads_arrivals(self.structure, op.path)
        copied = cast(op.path, rows * inner * groups, arrived=arrived)
        return Sequence((replace(copied, launches=cast_launches(groups)), made))


def cast(path: str, elements: Any, *, arrived: bool = False) -> Op:
    """The cast of a product's input, or of one that was cast before it was sent here: its other copies alone."""
    layer, phase = path.rsplit("/", 1)
    traffic, work = low.cast_bytes(elements), elementwise.elementwise_flops(elements, 2)
    if arrived:
        element_bytes = in_transit(dispatch_element_bytes)
        before, copies = fmt.is_converted(element_bytes), fmt.arrived_copies_bytes(elements, element_bytes)
        traffic = complement(before) * traffic + before * copies
    return Op(f"{layer}/cast/{phase}", roofline.stream_time(traffic, work), Demand(work, traffic))


def sixteen(op: Op) -> Op:
    """An operation at the 16-bit rate."""
    if not op.time.has(matrix_rate):
        return op
    return replace(op, time=op.time.xreplace({matrix_rate: attention_rate}))

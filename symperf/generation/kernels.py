"""Operations of an inference: thin products, and the gap that software leaves before each kernel.

Collectives have no gap of their own: their latencies are fitted to whole calls, start included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas import decode as dec
from ..formulas import elementwise as ew
from ..formulas import matmul, roofline, thin
from ..formulas.atoms import Min
from ..formulas.symbols import activation_bytes, operand_bytes, weight_bytes
from ..kernels import Kernels
from ..schedule import Demand, Op

if TYPE_CHECKING:
    from .structure import InferenceStructure


class InferenceKernels(Kernels):
    """Builds operations for one structure; every kernel starts after the software's gap."""

    def __init__(self, structure: InferenceStructure) -> None:
        super().__init__(structure)  # type: ignore[arg-type]

    def matmul(
        self,
        path: str,
        rows: Any,
        columns: Any,
        inner: Any,
        groups: Any = 1,
        right: Any = weight_bytes,
        result: Any = activation_bytes,
        left: Any = operand_bytes,
    ) -> Op:
        """`groups` products of rows x inner by inner x columns; `left`, `right`, `result` are bytes of an element."""
        traffic = matmul.matmul_bytes(rows, columns, inner, groups, left, right, result)
        if self.structure.quantised and self.structure.l2:
            time = thin.thin_matmul_time(rows, columns, inner, groups, left, traffic)
        elif self.structure.quantised:
            time = thin.quantised_thin_matmul_time(rows, columns, inner, groups, traffic)
        else:
            time = thin.smooth_thin_matmul_time(rows, columns, inner, groups, traffic)
        demand = Demand(matmul.matmul_flops(rows, columns, inner, groups), traffic)
        return Op(path, time, demand, (rows, columns, inner, groups))

    def stream(self, path: str, traffic: Any, elements: Any, flops_per_element: int) -> Op:
        """An element-wise or reducing kernel."""
        work = ew.elementwise_flops(elements, flops_per_element)
        return Op(path, roofline.stream_time(traffic, work) + thin.gap_time(), Demand(work, traffic))

    def flash(self, path: str, work: Any, traffic: Any) -> Op:
        """Attention of many new tokens, in one kernel."""
        return Op(path, dec.prefill_attention_time(work, traffic), Demand(work, traffic))

    def generation(
        self, path: str, contexts: tuple[Any, Any], work: Any, own: Any, each: Any, *, window: Any = None
    ) -> Op:
        """Attention of one new token over a growing cache, summed over the steps.

        Args:
            path: of the operation.
            contexts: number of steps, and keys that the first one reads.
            work: FLOPs for each key.
            own: bytes that do not depend on the context.
            each: bytes for each key.
            window: keys that are attended to at most; the mean demand is then an upper bound.
        """
        count, first = contexts
        mean = first + (count - 1) / 2
        if window is None:
            time = dec.generation_attention_time(count, first, work, own, each)
        else:
            time = dec.windowed_generation_time(count, first, window, work, own, each)
            mean = Min(mean, window)
        return Op(path, time, Demand(mean * work, own + mean * each), summed=True)

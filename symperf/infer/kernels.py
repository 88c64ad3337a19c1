"""Operations of an inference: thin products, and the gap that software leaves before each kernel.

Collectives of the vendor's library are kernels like any other; software's own all-reduces have no start beside their
time, which is fitted to whole calls. Where software leaves small messages to the library as well, a call takes at least
that library's time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ..common.symbolic import replace_symbols
from ..formulas import collectives
from ..formulas.generation import decode as dec
from ..formulas.kernels import attention_blocks as blocked
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import looped_matmul as looped
from ..formulas.kernels import matmul, roofline
from ..formulas.kernels import thin_matmul as thin
from ..formulas.kernels.measured_scan import measured_scan_time
from ..formulas.language.symbols import (
    SYMBOLS,
    activation_bytes,
    attention_efficiency,
    attention_rate,
    cast_passes,
    channel_scan_efficiency,
    format_latency,
    half_efficiency,
    half_inner_latency,
    inner_latency,
    launch_latency,
    matrix_efficiency,
    matrix_rate,
    operand_bytes,
    query_block,
    ssm_chunk_size,
    table_bytes,
    weight_bytes,
)
from ..formulas.language.symbols.scans import CHANNEL
from ..operations.kernels import Kernels, aligned_time
from ..operations.schedule import Demand, Op
from ..systems.kernel_constants import BY_FORMAT

if TYPE_CHECKING:
    from ..operations.groups import Group
    from .cache_read import BlockRead, CacheRead
    from .structure import InferenceStructure

IN_SIXTEEN_BITS = {
    matrix_rate: attention_rate,
    matrix_efficiency: half_efficiency,
    inner_latency: half_inner_latency,
}
"""What stands for the constants of products in 16 bits where the other products have a narrower format."""


@cache
def numbered_symbols(number: int) -> dict[Any, Any]:
    """What differs between formats -> what stands for it in the products of the `number`-th one."""
    return {SYMBOLS[name].symbol: SYMBOLS[f"{name}_{number}"].symbol for name in sorted(BY_FORMAT)}


CHANNELWISE = {SYMBOLS[name].symbol: SYMBOLS[f"channel_{name}"].symbol for name in CHANNEL} | {
    attention_efficiency: channel_scan_efficiency
}
"""What stands for the constants of recurrent kernels in those of Kimi Delta Attention."""


@dataclass(frozen=True)
class PromptBlocks:
    """Attention of new tokens as blocks of queries.

    Attributes:
        groups: sequences times heads.
        new_tokens: of each sequence.
        mean_keys: keys that a query sees, the mean.
        longest_keys: keys that the query which sees most of them sees.
        pair_flops: FLOPs of a query and a key.
        rows: queries of a block.
        written: bytes of the kernel that writes the cache, and of casts to its format.
        casts: queries are cast to the format of the cache.
    """

    groups: Any
    new_tokens: Any
    mean_keys: Any
    longest_keys: Any
    pair_flops: Any
    rows: Any = query_block
    written: Any = 0
    casts: bool = True


def cast_bytes(rows: Any, inner: Any, element_bytes: Any) -> Any:
    """Bytes of device memory of casting a left factor, which `cast_time` takes its time for."""
    return rows * inner * (cast_passes * activation_bytes + element_bytes)


def class_of(path: str) -> str:
    """The class of modules that the product of a path belongs to, as checkpoints are quantized.

    >>> [class_of(f"decode/layer/{name}") for name in ("attention/qkv", "ssm/in", "mlp/up", "experts/down")]
    ['attention', 'attention', 'mlp', 'experts']
    """
    folder = path.split("/")[-2] if "/" in path else ""
    return folder if folder in ("mlp", "experts", "shared", "head") else "attention"


WRITERS = {
    **dict.fromkeys(("qkv", "query", "query_down", "query_up", "latent_down", "gate_in"), "norm"),
    **dict.fromkeys(("gate_up", "gate", "up"), "norm"),
    "down": "activation",
    "output": "attention",
}
"""The kernel that makes the left factor of a product, by the last part of its path, one of `structure.CASTING`."""


def written_by(path: str) -> str:
    """The kernel that makes the left factor of the product of a path; "" where it is another.

    >>> written_by("decode/layer/mlp/down"), written_by("decode/layer/experts/router")
    ('activation', '')
    """
    return WRITERS.get(path.rpartition("/")[2], "")


class InferenceKernels(Kernels):
    """Builds operations for one structure; every kernel starts after the software's gap."""

    @property
    def start(self) -> Any:
        """Seconds before a kernel's own work: its launch and the software's gap."""
        return thin.kernel_start_time()

    @property
    def gap(self) -> Any:
        """Seconds that software leaves before a kernel."""
        return thin.gap_time()

    @property
    def casts(self) -> bool:
        """Whether products in a narrow format cast their left factor."""
        families = self.structure.families
        return self.mixed_rates and "casts" in families and "late_starts" not in families

    def __init__(self, structure: InferenceStructure) -> None:
        super().__init__(structure)  # type: ignore[arg-type]
        self.mixed_rates, self.called_collectives = structure.mixed_rates, structure.called_collectives
        self.own_all_reduce, self.kept = structure.own_all_reduce, structure.kept
        self.symbols = {} if structure.format == 1 else numbered_symbols(structure.format)

    def of_class(self, name: str) -> InferenceKernels:
        """The kernels of a class of modules, whose products may be in another format."""
        structure: InferenceStructure = self.structure  # type: ignore[assignment]
        own = structure.of_class(name)
        return self if own is structure else InferenceKernels(own)

    def in_format(self, op: Op) -> Op:
        """An operation whose symbols are those of the format of these kernels."""
        return replace_symbols(op, self.symbols) if self.symbols else op

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
        """`groups` products of rows x inner by inner x columns; `left`, `right`, `result` are bytes of an element.

        A product whose left factor has `activation_bytes` runs at the 16-bit rate, whatever the others run at.
        """
        if right == weight_bytes:
            if class_of(path) in self.kept:
                left, right = activation_bytes, table_bytes
            elif (others := self.of_class(class_of(path))) is not self:
                return others.matmul(path, rows, columns, inner, groups, right, result, left)
        traffic = matmul.matmul_bytes(rows, columns, inner, groups, left, right, result)
        # The forms of calibration have a structure of training, where no software joins kernels.
        cast_before = written_by(path) in getattr(getattr(self.structure, "fusion", None), "casts", ())
        time = self._product_time((rows, columns, inner, groups), left, right, traffic, cast_before=cast_before)
        if self.structure.power_limited and (left == activation_bytes or not self.mixed_rates):
            time = matmul.power_limited_time(time, thin.kernel_start_time(), rows, columns, inner, groups)
        time = aligned_time(self.structure, time, (rows, columns, inner))
        if self.mixed_rates and left == activation_bytes:
            time = time.xreplace(IN_SIXTEEN_BITS)
        if left != activation_bytes and self.casts and groups == 1 and not cast_before:
            traffic += cast_bytes(rows, inner, left)
        demand = Demand(matmul.matmul_flops(rows, columns, inner, groups), traffic)
        return self.in_format(Op(path, time, demand, (rows, columns, inner, groups)))

    def _product_time(
        self, shape: tuple[Any, Any, Any, Any], left: Any, right: Any, traffic: Any, *, cast_before: bool = False
    ) -> Any:
        """Seconds of a product by what is known of its kernels: constants of its loops, or its tiles and the L2 cache.

        A single product in a narrow format casts its left factor, unless the kernel before it has written it so;
        grouped ones get theirs from an earlier kernel. Where software states that a format starts later, nothing is
        cast.
        """
        structure, quantised = self.structure, left != activation_bytes
        rows, _, inner, groups = shape
        late = quantised and "late_starts" in structure.families
        casts = quantised and self.casts
        if "loops" in structure.families:
            time = (looped.narrow_matmul_time if casts else looped.looped_thin_matmul_time)(*shape, traffic)
        elif structure.quantised and structure.l2:
            time = thin.thin_matmul_time(*shape, left, right, traffic)
        elif structure.quantised:
            time = thin.quantised_thin_matmul_time(*shape, traffic)
        else:
            time = thin.smooth_thin_matmul_time(*shape, traffic)
        if late:
            time += format_latency
        elif casts and groups == 1 and not cast_before:
            time += looped.cast_time(rows, inner, left)
        return time

    def _collective(self, path: str, name: str, message: Any, group: Group) -> Op | None:
        """A collective by the library, or an all-reduce by the software's own kernel where that is faster."""
        op = super()._collective(path, name, message, group)
        if op is None:
            return op
        time = op.time
        if self.called_collectives:
            time = collectives.called_collective_time(time, group.ranks)
        if self.own_all_reduce and name.endswith("all_reduce"):
            inner, outer = (group.ranks, 1) if self.structure.tiers == 1 else (group.inner, group.outer)
            time = collectives.own_all_reduce_time(time, message, inner, outer)
        return replace(op, time=time)

    def stream(self, path: str, traffic: Any, elements: Any, flops_per_element: Any) -> Op:
        """An element-wise or reducing kernel."""
        work = ew.elementwise_flops(elements, flops_per_element)
        return Op(path, self.stream_time(traffic, work), Demand(work, traffic))

    def continued(self, path: str, traffic: Any, work: Any) -> Op:
        """An element-wise part of a kernel that runs anyway: without a start of its own."""
        time = roofline.stream_time(traffic, work) - launch_latency
        return Op(path, time, Demand(work, traffic))

    def stream_time(self, traffic: Any, work: Any) -> Any:
        """Seconds of an element-wise kernel."""
        return roofline.stream_time(traffic, work) + thin.gap_time()

    def flash(self, path: str, work: Any, traffic: Any, blocks: PromptBlocks | None = None) -> Op:
        """Attention of many new tokens, in one kernel; in blocks of queries where the constants of these are known.

        Args:
            path: of the operation.
            work: FLOPs.
            traffic: bytes that the kernel itself moves.
            blocks: what is computed together, and what is written into the cache before.
        """
        if blocks is None or "prompts" not in self.structure.families:
            return self.fused_products(path, work, traffic, 1)
        moved = traffic + blocks.written
        shape = blocks.groups, blocks.new_tokens, blocks.rows, blocks.mean_keys, blocks.longest_keys, blocks.pair_flops
        time = blocked.blocked_attention_time(*shape, moved)
        if blocks.casts and "cache_casts" in self.structure.families:
            time += blocked.cache_cast_time()
        return Op(path, time, Demand(work, moved))

    def fused_products(self, path: str, work: Any, traffic: Any, kernels: int) -> Op:
        """Products of fused kernels in 16 bits, as attention's: the slower of work and traffic, and their starts."""
        time = dec.prefill_attention_time(work, traffic) + (kernels - 1) * thin.kernel_start_time()
        return Op(path, time, Demand(work, traffic))

    def scan(self, path: str, work: Any, traffic: Any, kernels: int, length: Any, *, channelwise: bool = False) -> Op:
        """A chunked scan of sequences of some tokens in several kernels."""
        time = measured_scan_time(work, traffic, length, ssm_chunk_size)
        found = self.fused_products(path, work, traffic, kernels)
        return self.measured("scans", found, time, kernels, channelwise=channelwise)

    def measured(self, family: str, op: Op, time: Any, kernels: int = 1, *, channelwise: bool = False) -> Op:
        """An operation with the time of a software's measured kernels, where their constants are known.

        Args:
            family: of the constants.
            op: as it is where they are not known.
            time: of the kernels without the software's gaps.
            kernels: before each of which there is a gap.
            channelwise: they are those of Kimi Delta Attention.
        """
        if (f"channel_{family}" if channelwise else family) not in self.structure.families:
            return op
        return replace(op, time=(time.xreplace(CHANNELWISE) if channelwise else time) + kernels * self.gap)

    def cached(self, path: str, context: Any, read: CacheRead | BlockRead) -> Op:
        """Attention over a cache of a given number of keys."""
        return Op(path, read.over(context), Demand(context * read.work, read.own + context * read.each))

    def generation(
        self,
        path: str,
        contexts: tuple[Any, Any],
        read: CacheRead | BlockRead,
        *,
        window: Any = None,
        chunked: bool = False,
    ) -> Op:
        """Attention of one new token over a growing cache, summed over the steps.

        Args:
            path: of the operation.
            contexts: number of steps, and keys that the first one reads.
            read: what a step computes and moves.
            window: keys that are attended to at most; the mean demand is then an upper bound.
            chunked: the window is a chunk of the sequence, whose keys are those since its start.
        """
        time, mean = read.growing(*contexts, window, chunked=chunked)
        return Op(path, time, Demand(mean * read.work, read.own + mean * read.each), summed=True)

"""What a run would predict for each row: the same closed forms, lowered, with their exact derivatives.

Rows of one form and one format share a program; their sizes are arrays. Kernels are those that
`symperf.operations.kernels` and `symperf.infer.kernels` give a run, on the structure of the system.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from ..codegen.adjoint import PREFIX, gradient
from ..codegen.interpret import arrays
from ..codegen.interpret import run as interpreted
from ..codegen.lower import lower
from ..formulas.generation import decode as dec
from ..formulas.generation import split_decode as split
from ..formulas.kernels import attention as att
from ..formulas.kernels import matmul, roofline
from ..formulas.language.symbols import (
    activation_bytes,
    kv_bytes,
    l2_bandwidth,
    l2_efficiency,
    launch_latency,
    statistic_bytes,
    strip_units,
)
from ..infer.binding import OWN
from ..infer.cache_read import CacheRead
from ..infer.kernels import InferenceKernels
from ..measuring.clock import LONG
from ..operations.groups import Group
from ..operations.kernels import Kernels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..codegen.program import Program
    from ..systems.system import System
    from .table import MeasuredRow

THIN_ROWS = 512
"""Products of fewer rows are predicted as inference predicts them, which may split them along k; others as training."""
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send")
BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "tf32": 4.0, "fp8": 1.0, "int8": 1.0}
HALF = ("bf16", "fp16")

_m, _n, _k, _b, _s, _l, _a, _g, _d, _q, _r, _c = (
    sympy.Symbol(f"row/{name}", positive=True)
    for name in (
        *("m", "n", "k", "batch", "sequence", "context"),
        *("heads", "kv_heads", "head_dim", "bytes", "ranks", "kernels"),
    )
)


@dataclass(frozen=True)
class RowFormula:
    """How rows of one sort are predicted: which formula, in which format, and who stands for an input."""

    kind: str
    formula: str
    dtype: str = "bf16"
    renamed: tuple[tuple[str, str], ...] = ()
    """(input of the formula, symbol of the system that it takes its value from)."""
    lasting: bool = False
    """Whether power may bound it."""


class LeftOutError(Exception):
    """A row that no formula predicts, with the reason."""


def form_of(row: MeasuredRow, system: System) -> RowFormula:
    """How a row is predicted.

    Raises:
        LeftOutError: it is not: the reason is told to the user.
    """
    mode = row.texts["mode"]
    if row.kind == "power":
        return _sustained_product(row, system)
    if mode not in ("", "stream"):
        raise LeftOutError(f"{row.kind} rows of mode {mode}")
    if row.kind == "step":
        raise LeftOutError("step rows: whole steps have no kernel's closed form")
    dtype = row.texts["dtype"] or "bf16"
    if row.kind == "gemm":
        return _gemm(row, dtype, system)
    if row.kind == "copy" and row.name.startswith("l2"):
        return _cached_attention(row, system)
    if row.kind == "attention":
        return _attention(row, dtype)
    if row.kind == "collective":
        if row.name not in COLLECTIVES:
            raise LeftOutError(f"collective rows named {row.name}")
        if not system.tiers:
            raise LeftOutError("collective rows: the system has no network")
        if row.counts["ranks"] < 2:
            raise LeftOutError("collective rows of one rank")
        if row.counts["ranks"] > system.value("scale_up_size") and len(system.tiers) < 2:
            raise LeftOutError("collective rows of more ranks than the system's one tier has")
        return RowFormula("collective", row.name)
    if row.kind == "launch" and row.name != "kernel":
        raise LeftOutError(f"launch rows named {row.name}")
    return RowFormula(row.kind, "start" if row.kind == "launch" else "stream")


def _gemm(row: MeasuredRow, dtype: str, system: System) -> RowFormula:
    if dtype not in BYTES or dtype not in system.matrix_rates:
        raise LeftOutError(f"gemm rows in {dtype}: the system has no matrix_rate for it")
    if dtype == "fp8" and "fp8_efficiency" in system.quantities:
        if system.power_limited and row.seconds < LONG:
            raise LeftOutError("gemm rows in fp8 under 150 us: they are over before power bounds them")
        return RowFormula("gemm", "thin", dtype, (("matrix_efficiency", "fp8_efficiency"),))
    thin = row.counts["m"] < THIN_ROWS or dtype not in HALF
    lasting = dtype in HALF and row.seconds >= LONG
    return RowFormula("gemm", "thin" if thin else "product", dtype, lasting=lasting)


def _sustained_product(row: MeasuredRow, system: System) -> RowFormula:
    dtype, mode = row.texts["dtype"], row.texts["mode"]
    if mode not in ("", "sustained"):
        raise LeftOutError(f"power rows of mode {mode}")
    if row.name != "gemm" or dtype not in (*HALF, "fp8") or not {"m", "n", "k"} <= row.counts.keys():
        raise LeftOutError("power rows other than products in 16 bits or fp8")
    share = "fp8_efficiency" if dtype == "fp8" else "sustained_efficiency"
    if share not in system.quantities or dtype not in system.matrix_rates:
        raise LeftOutError(f"power rows: the system has no {share}")
    if row.counts["m"] < THIN_ROWS:
        raise LeftOutError("power rows of few rows")
    return RowFormula("power", "sustained", dtype, (("sustained_efficiency", share),))


def _cached_attention(row: MeasuredRow, system: System) -> RowFormula:
    if "l2_bandwidth" not in system.quantities or "l2_capacity" not in system.quantities:
        raise LeftOutError("copy rows of L2: the system does not describe its L2")
    if row.counts["bytes"] > system.value("l2_capacity") / 2:
        raise LeftOutError("copy rows of L2 larger than half of it")
    return RowFormula("copy", "cached")


def _attention(row: MeasuredRow, dtype: str) -> RowFormula:
    if dtype not in HALF:
        raise LeftOutError(f"attention rows in {dtype}")
    counts = row.counts
    if row.name == "decode":
        if counts["sequence"] != 1 or "context" not in counts:
            raise LeftOutError("decode rows without a context, or of several tokens")
        return RowFormula("attention", "decode", dtype)
    if row.name not in ("forward", "backward"):
        raise LeftOutError(f"attention rows named {row.name}")
    if counts.get("context", counts["sequence"]) != counts["sequence"]:
        raise LeftOutError("attention rows of sequences with a context before them")
    return RowFormula("attention", row.name, dtype)


@dataclass
class RowFamily:
    """Rows of one form: their sizes, their lines and what they measured."""

    form: RowFormula
    rows: list[MeasuredRow]
    fixed: dict[str, float]
    sizes: dict[str, Any]
    seconds: Any
    program: Program
    partials: dict[tuple[str, ...], Program] = field(default_factory=dict)

    def without(self, lines: set[int]) -> RowFamily | None:
        """The family without the rows of these lines; None if none is left."""
        kept = [at for at, row in enumerate(self.rows) if row.line not in lines]
        if not kept:
            return None
        sizes = {name: size[kept] for name, size in self.sizes.items()}
        return replace(self, rows=[self.rows[at] for at in kept], sizes=sizes, seconds=self.seconds[kept])

    def inputs(self, values: dict[str, float]) -> dict[str, Any]:
        """Every input of the program, from the values of the system's symbols."""
        renamed = {name: values[symbol] for name, symbol in self.form.renamed}
        return {**self.fixed, **values, **renamed, **self.sizes}

    def predict(self, values: dict[str, float]) -> Any:
        """Seconds of each row."""
        found = interpreted(self.program, self.inputs(values), arrays())[self.program.outputs["time"]]
        return np.broadcast_to(found, self.seconds.shape)

    def slopes(self, values: dict[str, float], names: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Seconds of each row and d ln(seconds) / d ln(symbol) for each of the symbols, exactly."""
        wanted = {name: inputs for name in names if (inputs := self.inputs_of(name))}
        key = tuple(sorted({each for inputs in wanted.values() for each in inputs}))
        if key not in self.partials:
            self.partials[key] = gradient(self.program, "time", key)
        program = self.partials[key]
        found = interpreted(program, self.inputs(values), arrays())
        time = np.broadcast_to(found[program.outputs["time"]], self.seconds.shape)
        return time, {
            name: sum(np.broadcast_to(found[program.outputs[PREFIX + each]], time.shape) for each in inputs)
            * values[name]
            / time
            for name, inputs in wanted.items()
        }

    def inputs_of(self, symbol: str) -> tuple[str, ...]:
        """The inputs of the program that take their value from a symbol of the system."""
        renamed = dict(self.form.renamed)
        return tuple(
            name for name in self.program.inputs if renamed.get(name, name) == symbol and name not in self.sizes
        )


def families(rows: Iterable[MeasuredRow], system: System) -> tuple[list[RowFamily], Counter[str]]:
    """The rows by form, and why some are left out (reason: rows)."""
    sorted_rows: dict[RowFormula, list[MeasuredRow]] = {}
    left: Counter[str] = Counter()
    for row in rows:
        try:
            sorted_rows.setdefault(form_of(row, system), []).append(row)
        except LeftOutError as error:
            left[str(error)] += 1
    return [_family(form, members, system) for form, members in sorted_rows.items()], left


def _family(form: RowFormula, rows: list[MeasuredRow], system: System) -> RowFamily:
    fixed = {name: value for name, (value, _) in OWN.items()}
    fixed |= {"gap_latency": 0.0, "graph_removal": 1.0, "kv_bytes": 2.0}
    width = BYTES[form.dtype]
    fixed |= {"operand_bytes": width, "weight_bytes": width, "activation_bytes": max(width, 2.0)}
    rate = form.dtype if form.dtype in system.matrix_rates else next(iter(system.matrix_rates))
    fixed["matrix_rate"] = fixed["attention_rate"] = system.matrix_rate(rate).value
    sizes: dict[str, Any] = {}
    for column in ("m", "n", "k", "batch", "sequence", "context", "heads", "kv_heads", "head_dim", "bytes", "ranks"):
        spare = {"kv_heads": "heads", "context": "sequence"}.get(column, "")
        found = [row.counts.get(column, row.counts.get(spare, 1)) for row in rows]
        sizes[f"row/{column}"] = np.array(found, dtype=float)
    sizes["row/kernels"] = np.array([row.counts.get("kernels", 1) for row in rows], dtype=float)
    seconds = np.array([row.seconds for row in rows])
    time = strip_units(_time(form, system))
    return RowFamily(form, rows, fixed, sizes, seconds, lower([], {"time": time}))


def _time(form: RowFormula, system: System) -> Any:
    """The closed form of a form."""
    structure: Any = SimpleNamespace(
        families=system.families,
        misaligned=(),
        documents=False,
        quantised=system.quantised,
        l2="l2" in system.levels,
        tiers=len(system.tiers),
        mixed_rates=False,
        kept=(),
        format=1,
        of_class=lambda _: structure,
        called_collectives=False,
        own_all_reduce=False,
        in_switch=system.in_switch,
        links=system.links,
        power_limited=form.lasting and system.power_limited,
    )
    training, inference = Kernels(structure), InferenceKernels(structure)
    match form.formula:
        case "product":
            return training.matmul("row", _m, _n, _k).time
        case "thin":
            return inference.matmul("row", _m, _n, _k).time
        case "sustained":
            return matmul.power_limited_time(0, launch_latency, _m, _n, _k, 1)
        case "stream":
            return training.stream("row", _q, 0, 0).time + (_c - 1) * launch_latency
        case "cached":
            return roofline.traffic_time(_q, l2_bandwidth * l2_efficiency) + launch_latency
        case "start":
            return launch_latency
        case "forward" | "backward":
            work = att.flash_flops(_b, _s, _a, _d)
            traffic = att.flash_bytes(_b, _s, _a, _g, _d, activation_bytes, statistic_bytes)
            made = training.flash if form.formula == "forward" else training.flash_backward
            return made("row", work, traffic).time
        case "decode":
            return _decode(inference, system.quantised)
    operation = getattr(training, form.formula)("row", _q, Group(_r, sympy.S.One))
    return operation.time


def _decode(kernels: InferenceKernels, quantised: bool) -> Any:
    """One query a sequence over a cache, whose contexts may be split over units."""
    work = att.attention_flops(_b, 1, 1, _a, _d)
    own = 2 * _b * _a * _d * activation_bytes
    read = CacheRead(work, own, dec.cache_read_bytes(_b, 1, _g, _d, kv_bytes))
    if quantised:
        parts = dec.partial_bytes(_b, _a, _g, _d)
        combine = kernels.stream_time(parts + _b * _a * _d * activation_bytes, 0)
        read = replace(read, splits=split.context_parts(_b, _g), parts=parts, combine=combine)
    return kernels.cached("row", _l, read).time

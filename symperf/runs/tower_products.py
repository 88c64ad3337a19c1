"""Products of an encoder's stem and projector: their time, what they are due to, and what they move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import adjoints, floats
from ..codegen.interpret import run as evaluate
from ..evaluation.base_run import Row
from ..operations.compiled import Compiled, load_or_compile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.towers import Product
    from .full_run import FullRun

ROWS, COLUMNS, INNER = "tower_rows", "tower_columns", "tower_inner"


@dataclass(frozen=True)
class TowerProduct:
    """A product before or after the layers of an encoder, in 16 bits, whole on each device.

    Attributes:
        product: its sizes.
        rows: of what it reads.
        encoder: the run of the layers, whose system and software it has.
    """

    product: Product
    rows: int
    encoder: FullRun

    @property
    def _compiled(self) -> Compiled:
        return compiled_product(self.encoder.structure)

    def _inputs(self, changed: Mapping[str, float]) -> dict[str, float]:
        values = {name: bound[0] for name, bound in self.encoder.bound.items()} | dict(changed)
        own = {ROWS: float(self.rows), COLUMNS: float(self.product.outputs), INNER: float(self.product.inputs)}
        return {name: (values | own)[name] for name in self._compiled.program.inputs}

    def seconds(self, changed: Mapping[str, float] | None = None) -> float:
        """Seconds of all copies, with other values of symbols where they are given."""
        return self.product.copies * self._output("time", changed or {})

    def _output(self, name: str, changed: Mapping[str, float]) -> float:
        program = self._compiled.program
        return float(evaluate(program, self._inputs(changed), floats())[program.outputs[name]])

    def shares(self) -> dict[str, float]:
        """The share of each resource in the time; they sum to 1."""
        compiled = self._compiled
        program, inputs = compiled.program, self._inputs({})
        values, at = evaluate(program, inputs, floats()), program.outputs["time"]
        slopes = adjoints(program, values, at, floats())
        found: dict[str, float] = {}
        for name, resource in compiled.resources.items():
            place, sign = program.inputs[name], 1 if "_latency" in name else -1
            part = sign * slopes.get(place, 0.0) * values[place] / values[at]
            found[resource] = found.get(resource, 0.0) + float(part)
        return found

    def row(self, name: str, total: float) -> Row:
        """The product as a term of a breakdown.

        Args:
            name: of the term.
            total: seconds of all terms.
        """
        shares, seconds, copies = self.shares(), self.seconds(), self.product.copies
        overheads = {name: 1.0 if name.endswith("efficiency") else 0.0 for name in self.encoder.overheads()}
        known = {name: value for name, value in overheads.items() if name in self._compiled.program.inputs}
        return Row(
            name,
            seconds,
            self.seconds(known),
            seconds / total,
            max(shares, key=lambda resource: shares[resource]),
            copies * self._output("flops", {}),
            copies * self._output("bytes", {}),
            float(copies),
            seconds / copies,
        )


def compiled_product(structure: Any) -> Compiled:
    """A product of any size in 16 bits, as those of patches and heads are: seconds, FLOPs and bytes of memory."""

    def make() -> Compiled:
        import sympy

        from ..codegen.lower import lower
        from ..formulas.language.symbols import SYMBOLS, activation_bytes, strip_units, table_bytes
        from ..infer.kernels import InferenceKernels

        rows, columns, inner = (sympy.Symbol(name, positive=True) for name in (ROWS, COLUMNS, INNER))
        product = InferenceKernels(structure).matmul(
            "product", rows, columns, inner, right=table_bytes, left=activation_bytes
        )
        outputs = {"time": product.time, "flops": product.demand.flops, "bytes": product.demand.memory_bytes}
        program = lower([], {name: strip_units(form) for name, form in outputs.items()})
        known = {name: SYMBOLS[name].resource for name in program.inputs if name not in (ROWS, COLUMNS, INNER)}
        return Compiled(program, (), {name: what for name, what in known.items() if what is not None})

    return load_or_compile("tower", repr(structure), make)

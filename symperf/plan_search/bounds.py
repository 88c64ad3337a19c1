"""Lower bounds of the step time that are proved, and cost a few operations for a whole table.

A step of m micro-batches runs every matrix product of the layers, at least at the peak rate times its efficiency, which
no plan raises: ideal = 3 F / (devices x rate x efficiency), with F the forward FLOPs of the layers' products without
attention scores (F once where parts of the model are frozen: some products have no gradients then). A schedule whose
backward passes are whole waits besides for b = (p - 1) / v of its m equal slots, so

    time >= ideal (1 + b / m)        1F1B, GPipe and interleaved (Narayanan et al. 2021, section 2.2)
    time >= ideal                    the others, stages of other kinds of layers with m <= p, and ends dealt as layers

because the fold of `formulas.discipline` proves the step time to rise with the time of every operation, and leaving out
all but some products can only shorten it. What a bound prunes is slower than a plan that has been computed: the optimum
is never lost. With m > p the first bound holds for unequal stages under 1F1B too: of T = S + max_i ((m - p + i - 1) t_i
+ Y_i), with Y_i = t_(i+1) + ... + t_p and S = Y_0, were every term below (m - 1) S / p, then, by induction from i = p
down, Y_i < (p - i) S / p, and so S < S.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import floats, run
from ..common.artefacts import load_or_make_program
from ..plans.structure import SPLIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..models.architecture import Architecture
    from ..plans.structure import Structure
    from .space import SearchQuestion

    Array = np.ndarray[Any, Any]

COUNTED = ("projections", "mlp", "experts", "shared_experts")
"""Classes of products that run at the rate and efficiency of matrix products, in every layer of a stage."""
SLACK = 1 - 1e-9
"""Of a bound, so that rounding never makes it exceed the time."""


def ideal_time(question: SearchQuestion, structure: Structure, scalars: Mapping[str, float]) -> float:
    """Seconds of the layers' matrix products at their rate and efficiency, spread over all devices."""
    program = _work_program(structure.architecture)
    values = run(program, {**scalars, "batch": question.batch, "sequence": question.sequence}, floats())
    work = (1 if structure.frozen else 3) * values[program.outputs["work"]]
    half = min(scalars["matrix_efficiency"], scalars.get("sustained_efficiency", 1.0))
    efficiency = max(half, scalars.get("fp8_efficiency", 0.0))
    return float(SLACK * work / (question.devices * scalars["matrix_rate"] * efficiency))


def lower_bounds(question: SearchQuestion, columns: Mapping[str, Array], ideal: float) -> tuple[Array, Array]:
    """At each row of a table, the bound for schedules whose backward passes are whole, and that for the others."""
    micro_batches = question.batch / (columns["dp"] * columns["micro_batch"])
    idle = (columns["pp"] - 1) / columns["vpp"]
    if question.model.segments:
        idle = np.where(micro_batches > columns["pp"], idle, 0.0)
    return ideal * (1 + idle / micro_batches), np.full(len(columns["tp"]), ideal)


def waits(structure: Structure) -> bool:
    """Whether the first of the two bounds holds for a structure."""
    return structure.schedule not in SPLIT and not any(structure.counted)


def _work_program(architecture: Architecture) -> Program:
    def make() -> Program:
        import sympy

        from ..codegen.lower import lower
        from ..formulas.language.symbols import strip_units
        from ..models import counts

        flops = counts.forward_flops(architecture)
        return lower([], {"work": strip_units(sympy.Add(*(flops.get(name, 0) for name in COUNTED)))})

    return load_or_make_program("search bound", repr(architecture), make)

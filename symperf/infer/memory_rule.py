"""What a serving software's profile says of memory: the part that it takes, what it reserves, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from ..common.errors import InputError, quote
from ..systems.system_symbols import Limits, Quantity
from ..systems.units import BYTES, COUNT, FRACTION
from ..train.binding import COUNT_OF_REALS
from .profile_table import table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..plans.plan import Plan
    from ..systems.system import System

Rule = Literal["total", "free", "static"]
RULES: Final = get_args(Rule)
Step = Literal["chunks", "contexts", "prompts"]
STEPS: Final = get_args(Step)
LARGE: Final = 70 * 2.0**30
"""Bytes of memory from which vLLM takes a device as large (vllm/engine/arg_utils.py)."""
_BYTES: Final = Limits(BYTES, 1, 1e15, zero=True)
MEMORY_LIMITS: Final[Mapping[str, Limits]] = {
    "memory_utilization": Limits(FRACTION, 1e-3, 1.0),
    "max_num_seqs": Limits(COUNT, 1, 1e9),
    "whole_contexts": Limits(COUNT, 1, 1e9),
    "sampling_copies": Limits(COUNT_OF_REALS, 1e-2, 1e3),
    "graph_bytes": _BYTES,
    "context_bytes": _BYTES,
    "collective_buffer_bytes": _BYTES,
}
"""Symbols that the table binds, and what values they may take."""
CASES: Final = ("large", "in_switch")
_SILENT: Final = "the software states none"
DEFAULTS: Final[Mapping[str, Quantity]] = {
    "memory_utilization": Quantity(1.0, "all of a device's memory: the software states no part of it"),
    "max_num_seqs": Quantity(256.0, "default of vLLM and others"),
    "whole_contexts": Quantity(1.0, "the software takes no context whole for its length"),
    "sampling_copies": Quantity(1.0, "logits in 32 bits, once"),
    "graph_bytes": Quantity(0.0, _SILENT),
    "context_bytes": Quantity(0.0, _SILENT),
    "collective_buffer_bytes": Quantity(0.0, _SILENT),
}


@dataclass(frozen=True)
class MemoryRule:
    """How a software shares out the memory of a device.

    Attributes:
        rule: what `memory_utilization` is a part of: "total", the device's memory, for everything; "free", what weights
            and a step leave, for the cache; "static", the device's memory, for weights and cache.
        step: for which memory is reserved: "chunks", for a chunk of tokens; "contexts", for a whole context where that
            is longer, up to `whole_contexts` tokens; "prompts", for all prompts of a batch.
        quantities: value and source of symbols of `MEMORY_LIMITS`.
        cases: others on devices of `CASES`: "large" ones, those whose switch can add.
        small: systems that the software does not take as large.
        source: where the rule is read.
    """

    rule: Rule = "total"
    step: Step = "prompts"
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    cases: Mapping[str, Mapping[str, Quantity]] = field(default_factory=dict)
    small: tuple[str, ...] = ()
    source: str = ""

    def on(self, system: System, plan: Plan) -> dict[str, Quantity]:
        """Value and source of every symbol of `MEMORY_LIMITS` on a system under a plan."""
        large = system.quantities["memory_capacity"].value >= LARGE and not {system.name, *system.lineage} & {
            *self.small
        }
        holds = {"large": large, "in_switch": system.in_switch}
        found = {**DEFAULTS, **self.quantities}
        for case in CASES:
            found |= self.cases.get(case, {}) if holds[case] else {}
        if plan.tp * plan.pp * plan.ep == 1:
            found["collective_buffer_bytes"] = Quantity(0.0, "a replica of one device exchanges nothing")
        return found


def read_memory(table: object, label: str) -> MemoryRule:
    """The table `[memory]` of a profile.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    from ..systems.quantities import text_of

    where = f"{label}: memory"
    known = table_of(table, ("rule", "step", "small", "source", *CASES, *MEMORY_LIMITS), where)
    rule, step, small = known.get("rule", "total"), known.get("step", "prompts"), known.get("small", [])
    for key, value, expected in (("rule", rule, RULES), ("step", step, STEPS)):
        if value not in expected:
            raise InputError(f"{where}.{key}: found {quote(value)}, expected {' or '.join(expected)}")
    if not isinstance(small, list) or not all(isinstance(each, str) for each in small):
        raise InputError(f"{where}.small: found {quote(small)}, expected a list of names of systems")
    cases: dict[str, Mapping[str, Quantity]] = {
        case: _quantities(table_of(known[case], MEMORY_LIMITS, f"{where}.{case}"), f"{where}.{case}")
        for case in CASES
        if case in known
    }
    return MemoryRule(rule, step, _quantities(known, where), cases, tuple(small), text_of(known, "source", where))


def _quantities(table: Mapping[str, Any], where: str) -> dict[str, Quantity]:
    from ..systems.quantities import quantity_of

    return {
        name: quantity_of(table[name], limits, where, name) for name, limits in MEMORY_LIMITS.items() if name in table
    }

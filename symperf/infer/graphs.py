"""For which passes a serving software records graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from ..common.errors import InputError, quote
from ..systems.system_symbols import Limits, Quantity
from ..systems.units import COUNT
from .profile_table import table_of
from .scheduling import ChunkSizes, read_steps

if TYPE_CHECKING:
    from ..plans.plan import Plan
    from ..systems.system import System

Recorded = Literal["", "passes", "decoding"]
RECORDED: Final = get_args(Recorded)[1:]
GRAPH_LIMITS: Final = {"recorded_tokens": Limits(COUNT, 1, 1e9)}
KEYS: Final = ("of", "largest", "from_gb", "wide", "wide_tp", "source")


@dataclass(frozen=True)
class Graphs:
    """The largest recorded graph.

    Attributes:
        of: "passes" with at most so many new tokens, prompts' too; "decoding": at most so many sequences that only
            decode; "": whatever is run, if graphs are recorded at all.
        largest: by the memory of a device.
        wide: likewise where tensor parallelism is at least `wide_tp`; none: the same.
        wide_tp: the degree from which `wide` holds.
    """

    of: Recorded = ""
    largest: ChunkSizes = field(default_factory=ChunkSizes)
    wide: ChunkSizes = field(default_factory=ChunkSizes)
    wide_tp: int = 0

    def on(self, system: System, plan: Plan) -> dict[str, Quantity]:
        """Value and source of `recorded_tokens`; nothing where no limit is known."""
        sizes = self.wide if self.wide.steps and plan.tp >= self.wide_tp else self.largest
        found = sizes.on(system)
        return {} if found is None else {"recorded_tokens": Quantity(float(found), sizes.source)}


def read_graphs(table: object, label: str) -> Graphs:
    """The table `[graphs]` of a profile.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    from ..systems.quantities import text_of

    where = f"{label}: graphs"
    known = table_of(table, KEYS, where)
    if not known:
        return Graphs()
    of: Any = known.get("of")
    if of not in RECORDED:
        raise InputError(f"{where}.of: found {quote(of)}, expected {' or '.join(RECORDED)}")
    source, least = text_of(known, "source", where), known.get("from_gb", [0])
    largest = ChunkSizes(read_steps(known.get("largest"), least, where, "largest"), source=source)
    if ("wide" in known) != ("wide_tp" in known):
        raise InputError(f"{where}.wide: expected wide and wide_tp together, found one of them")
    if "wide" not in known:
        return Graphs(of, largest)
    if type(degree := known["wide_tp"]) is not int or degree < 2:
        raise InputError(f"{where}.wide_tp: found {quote(degree)}, expected a whole number of at least 2")
    wide = ChunkSizes(read_steps(known["wide"], least, where, "wide"), source=source)
    return Graphs(of, largest, wide, degree)

"""Serving software as a named profile: which kernels it joins, and the time it adds; each value with its source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..common.errors import InputError, quote
from ..plans.structure import SENT
from ..systems.profiles import locate, names_in
from ..systems.system_symbols import Limits, Quantity
from ..systems.units import COUNT, FRACTION, TIME
from ..train.binding import LIMITS as BINDING
from .formats import FORMATS, WEIGHT_ONLY, format_of, rate_asked
from .fusions import read_fusion
from .graphs import Graphs, read_graphs
from .group_reads import GroupReads
from .group_reads import read as read_groups
from .latent_kernels import LatentKernels
from .latent_kernels import read as read_latent
from .memory_rule import MemoryRule, read_memory
from .profile_table import profile_table, table_of
from .reached import Reached, reached_on
from .reached import read as read_reached
from .running import RunningLimit, read_running
from .scheduling import ChunkSizes, read_apart, read_chunk, read_date, read_exchange, read_pipeline

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from ..plans.plan import Plan
    from ..systems.system import System
    from .structure import Fusion

CATALOGUE: Final = Path(__file__).parent.parent / "catalogue" / "stacks"
DEFAULT: Final = "vllm-0.24"
LIMITS: Final[Mapping[str, Limits]] = {
    "gap_latency": Limits(TIME, 1e-10, 1e-2, zero=True),
    "graph_removal": Limits(FRACTION, 1e-4, 1.0, zero=True),
    "step_latency": Limits(TIME, 1e-10, 10.0, zero=True),
    "sampling_kernels": Limits(COUNT, 1, 1e3),
    "kv_block": Limits(COUNT, 1, 1e6),
    "start_removal": Limits(FRACTION, 1e-4, 1.0, zero=True),
    "host_latency": Limits(TIME, 1e-10, 1e-2, zero=True),
    "request_latency": Limits(TIME, 1e-10, 1e2, zero=True),
    "tokenizer_latency": Limits(TIME, 1e-12, 1.0, zero=True),
    "crowd_latency": Limits(TIME, 1e-10, 1e2, zero=True),
}
"""Symbols that a stack binds, and what values they may take."""
LATER: Final = ("start_removal", "host_latency", "request_latency", "tokenizer_latency", "crowd_latency")
"""Those that a profile may leave out, and which are then 0."""
KEYS: Final = (
    *("name", "title", "date", "source", "fusion", "group_reads", "latent", "collectives", "experts", "exchange"),
    *("chunk", "running", "graphs", "pipeline", "memory", "on", *LIMITS),
)
"""The keys of a profile; only it may have a `base`."""
ELEMENT: Final = BINDING["activation_bytes"]
"""What an element may take on its way to experts or back."""


@dataclass(frozen=True)
class Stack:
    """A serving software.

    Attributes:
        name: of the profile.
        title: what it stands for.
        date: year and month of the software, "" where the profile is of none.
        source: where its fusions are read.
        fusion: which kernels are joined.
        cast_formats: precisions in which `fusion.casts` holds.
        quantities: value and source of each symbol of `LIMITS`.
        group_reads: how attention over a cache reads keys for the query heads of a group; all together unless it says.
        latent: what its kernels of latent attention do on which systems.
        called_collectives: small messages too are summed by calls of the vendor's library of collectives.
        own_all_reduce: it has a kernel of its own for all-reduces of small messages.
        experts: in which format tokens are sent to experts and come back, by precision; activations unless it says.
        exchange: "ranks" where the ranks of a tensor-parallel group share out its tokens and send them to experts;
            "replicas" where every rank of a group has all of its tokens, and only replicas send them to one another.
        chunk: prompt tokens that an iteration of continuous batching may process, by the memory of a device.
        apart: prompts are prefilled in iterations of their own, while no sequence decodes.
        running: sequences that a replica runs at once, unless it is told.
        graphs: the largest pass for which it records a graph.
        stage_tokens: tokens of a pipeline's micro-batch, at most, where it cuts batches for its stages; 0: it does not.
        memory: how it shares out the memory of a device.
        reached: what its kernels reach on each system that it was measured on.
    """

    name: str
    title: str
    date: str
    source: str
    fusion: Fusion
    cast_formats: tuple[str, ...]
    quantities: Mapping[str, Quantity]
    group_reads: GroupReads
    latent: LatentKernels
    called_collectives: bool
    own_all_reduce: bool
    experts: Mapping[str, Mapping[str, Quantity]]
    exchange: str
    chunk: ChunkSizes
    apart: bool
    running: RunningLimit
    graphs: Graphs
    stage_tokens: int
    memory: MemoryRule
    reached: Mapping[str, Reached]

    def on(self, system: System, plan: Plan) -> System:
        """The system with what this software's kernels reach on it under the plan's precision.

        Products that are widened to 16 bits are those of kernels that read weights alone in the plan's precision.
        """
        precision, _, rate = format_of(plan, system)
        reached = reached_on(system, self.reached)
        usual = system.with_constants(reached.under())
        if rate != rate_asked(plan, system):
            if precision not in WEIGHT_ONLY:
                return usual
            precision = WEIGHT_ONLY[precision]
        found = usual.with_constants(reached.under(precision))
        kept, narrow = (each.quantities.get("inner_latency") for each in (usual, found))
        return found if kept is None or kept is narrow else found.with_constants({"half_inner_latency": kept})

    @property
    def told(self) -> str:
        """What it stands for, and when that was."""
        return f"{self.title} ({self.date})" if self.date else self.title

    def states(self, name: str) -> bool:
        """Whether it has a value above 0 for one of the symbols that a profile may leave out."""
        return self.quantities[name].value > 0

    def sent_in(self, precision: str) -> Mapping[str, Quantity]:
        """The formats of transfers of experts under a precision of the products, some of `structure.SENT`."""
        return self.experts.get(precision) or self.experts.get(FORMATS[precision].like, {})

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> Stack:
        """The profile of a catalogue name or of a TOML file.

        Raises:
            InputError: one line with the file, the key, what was found and what was expected.

        >>> Stack.load("vllm").quantities["kv_block"].value
        16.0
        """
        path = locate(source, CATALOGUE)
        return load_known(path) if path.parent == CATALOGUE else _read(path)


def names() -> list[str]:
    """The profiles that come with symperf, sorted."""
    return names_in(CATALOGUE)


@cache
def load_known(path: Path) -> Stack:
    """A profile that comes with symperf, read once."""
    return _read(path)


def _read(path: Path) -> Stack:
    from ..systems.quantities import quantity_of, text_of

    label = path.name if path.parent == CATALOGUE else str(path)
    table = profile_table(path, CATALOGUE, KEYS)
    table = {**{key: {"value": 0, "source": "none stated"} for key in LATER}, **table}
    missing = [key for key in ("name", "fusion", *LIMITS) if key not in table]
    if missing:
        raise InputError(f"{label}: missing {', '.join(missing)}")
    quantities = {key: quantity_of(table[key], limits, label, key) for key, limits in LIMITS.items()}
    name = text_of(table, "name", label)
    title = text_of(table, "title", label) or name
    reads = read_groups(table.get("group_reads", {}), label)
    latent = read_latent(table.get("latent", {}), label)
    called, own = _collectives(table.get("collectives", {}), label)
    fusion, cast_formats = read_fusion(table["fusion"], label)
    experts = _experts(table.get("experts", {}), label)
    exchange, chunk = read_exchange(table.get("exchange", {}), label), read_chunk(table.get("chunk", {}), label)
    memory = read_memory(table.get("memory", {}), label)
    reached = read_reached(table.get("on", {}), label)
    date, source = read_date(table, label), text_of(table, "source", label)
    return Stack(
        *(name, title, date, source, fusion, cast_formats, quantities, reads, latent, called, own, experts),
        *(exchange, chunk, read_apart(table.get("chunk", {}), label), read_running(table.get("running", {}), label)),
        read_graphs(table.get("graphs", {}), label),
        *(read_pipeline(table.get("pipeline", {}), label), memory, reached),
    )


def _experts(table: object, label: str) -> Mapping[str, Mapping[str, Quantity]]:
    """Formats of transfers of experts by precision: tables [experts.fp8.dispatch_element_bytes] and the like."""
    from ..systems.quantities import quantity_of

    found = {}
    for precision, formats in table_of(table, FORMATS, f"{label}: experts").items():
        where = f"{label}: experts.{precision}"
        found[precision] = {
            name: quantity_of(entry, ELEMENT, where, name) for name, entry in table_of(formats, SENT, where).items()
        }
    return found


def _collectives(table: object, label: str) -> tuple[bool, bool]:
    """Whether collectives are calls of the vendor's library, and all-reduces the software's own; not unless it says."""
    from ..systems.quantities import text_of

    keys = ("called", "own_all_reduce", "source")
    table = table_of(table, keys, f"{label}: collectives")
    for key in keys[:2]:
        if not isinstance(value := table.get(key, False), bool):
            raise InputError(f"{label}: collectives.{key}: found {quote(value)}, expected true or false")
    text_of(table, "source", f"{label}: collectives")
    return table.get("called", False), table.get("own_all_reduce", False)

"""Takes a speed-up apart: one cost function, evaluated while groups of its arguments change from one system to another.

The step time is one function T of a precision, a device's rates, its memory, its network, what is attained of them, and
a plan. A *corner* is T with some of these groups taken from the second system and the others from the first; with n
groups there are 2^n. Every factor is a ratio of two corners that differ in one group, so that along any order of the
groups the factors multiply to the whole speed-up, and so do their means over all orders (`shapley`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from symperf import Model, Plan, System, training
from symperf.plan_search.search import answer_search
from symperf.systems.software import SCALED

Corner = frozenset[str]
Times = dict[Corner, float]

QUANTITIES = {
    "compute": ("vector_rate", "compute_units"),
    "memory": ("memory_bandwidth", "memory_capacity"),
    "network": (
        "scale_up_size",
        "scale_up_bandwidth",
        "scale_up_latency",
        "scale_out_bandwidth",
        "scale_out_latency",
        "collective_latency",
        "switch_efficiency",
        "domain_latency",
        "domain_hop_latency",
    ),
    "attained": (
        *SCALED,
        "ridge_efficiency",
        "scale_up_half_bytes",
        "scale_out_half_bytes",
        "domain_efficiency",
        "domain_piece_latency",
        "inner_latency",
        "inner_ends",
        "ssd_passes",
        "launch_latency",
    ),
}
"""What of a system belongs to which group. The matrix rate in 16 bits belongs to `compute`, its multiple in a lower
precision to `precision`. The constants of a family (`domain_*`, `inner_*`) are that family's form of the cost: a corner
without all of them has the form that systems have where nobody measured."""
ENERGIES = ("static_power", "matrix_energy", "memory_energy", "scale_up_energy", "scale_out_energy")
LEFT_OUT = ("l2_", "split_", "reread_", "host_", "power", "peer_", "exponent_", "query_", *ENERGIES)
"""Beginnings of what no comparison uses: not all systems have it, or only prompts, which are no training, need it."""
GROUPS = ("precision", *QUANTITIES, "plan")
"""In the order of the path."""
FREE = ("micro_batch", "recompute", "recompute_layers", "precision")
"""Fields of a plan that may change when its layout is kept."""
HALF = "bf16"


@dataclass(frozen=True)
class Work:
    """A training step: a model of the catalogue, how many devices, and the sequences and tokens of the global batch."""

    model: str
    devices: int
    batch: int
    sequence: int


@dataclass(frozen=True)
class Step:
    """A plan with the seconds of its step, whether it fits, and its `Run`."""

    time: float
    fits: bool
    plan: Plan
    run: Any = dataclasses.field(repr=False)


def mixed(first: System, second: System, taken: Corner, precision: str = HALF) -> System:
    """The first system with the groups `taken` from the second, and without `LEFT_OUT`.

    Args:
        first: Gives what is not taken.
        second: Gives the quantities of the groups taken.
        taken: Some of `GROUPS`; "plan" changes nothing here.
        precision: Whose matrix rate the group "precision" adds: as many times the rate in 16 bits as in the second.
    """
    rates = (second if "compute" in taken else first).matrix_rates
    whole = set(GROUPS[:-1]) <= taken
    name = second.name if whole else f"{first.name} to {second.name}"
    table: dict[str, Any] = {"name": name, "matrix_rate": {HALF: rates[HALF].value}}
    if "precision" in taken and precision != HALF:
        own = second.matrix_rate(precision).value
        multiple = own / second.matrix_rates[HALF].value
        table["matrix_rate"][precision] = own if "compute" in taken else rates[HALF].value * multiple
    for group, names in QUANTITIES.items():
        quantities = (second if group in taken else first).quantities
        table |= {name: quantities[name].value for name in names if name in quantities}
    return System.from_table(table)


def held(work: Work, system: System, plan: Plan, precision: str = HALF) -> Step:
    """The step of a plan in a precision, whether it fits or not."""
    own = dataclasses.replace(plan, precision=precision)
    run = training(Model.load(work.model), system, own, batch=work.batch, sequence=work.sequence)
    return Step(run.value("time"), run.fits, own, run)


@cache
def best(work: Work, system: System, precision: str = HALF, like: Plan | None = None, **require: Any) -> Step | None:
    """The step of the fastest plan that fits, or None where none does.

    Args:
        work: What is trained.
        system: What it is trained on.
        precision: Of the products of linear layers.
        like: A plan whose layout is kept: only the micro-batch and the recomputation are searched.
        require: Values of other fields of the plan; several of a field as a tuple.
    """
    if like is not None:
        kept = {name: getattr(like, name) for name in Plan.names() if name not in FREE}
        require = {**kept, "schedule": like.effective_schedule, **require}
    model = Model.load(work.model)
    asked: dict[str, Any] = {"devices": work.devices, "batch": work.batch, "sequence": work.sequence}
    found = answer_search(model, system, **asked, top=1, require={"precision": precision, **require})
    if not found.whole:
        raise KeyboardInterrupt
    if not found.feasible:
        return None
    run = found.winner
    return Step(run.value("time"), True, run.plan, run)


def corners(work: Work, first: System, second: System, precision: str, base: Plan) -> dict[Corner, Step]:
    """The step at every corner.

    A corner without the group "plan" has the plan `base`, whether it fits there or not; one with it has the fastest
    plan that fits there.
    """
    found: dict[Corner, Step] = {}
    for taken in subsets(GROUPS):
        system = mixed(first, second, taken, precision)
        own = precision if "precision" in taken else HALF
        fastest = best(work, system, own) if "plan" in taken else None
        found[taken] = fastest or held(work, system, base, own)
    return found


def subsets(groups: tuple[str, ...]) -> list[Corner]:
    """Every set of groups, the smaller first.

    >>> [sorted(each) for each in subsets(("a", "b"))]
    [[], ['a'], ['b'], ['a', 'b']]
    """
    return [frozenset(some) for n in range(len(groups) + 1) for some in itertools.combinations(groups, n)]


def chain(times: Times, order: tuple[str, ...]) -> dict[str, float]:
    """The factor of each group when they change one after another; their product is the speed-up.

    >>> times = {frozenset(): 8.0, frozenset("a"): 4.0, frozenset("b"): 8.0, frozenset("ab"): 1.0}
    >>> chain(times, ("a", "b")), chain(times, ("b", "a"))
    ({'a': 2.0, 'b': 4.0}, {'b': 1.0, 'a': 8.0})
    """
    found, taken = {}, frozenset[str]()
    for group in order:
        found[group] = times[taken] / times[taken | {group}]
        taken |= {group}
    return found


def shapley(times: Times, groups: tuple[str, ...]) -> dict[str, float]:
    """The geometric mean of each group's factor over all n! orders; their product is the speed-up.

    A group's factor depends on the set that has changed before it, so that the mean is over the 2^(n-1) sets S without
    it, each with the weight |S|! (n - 1 - |S|)! / n! (Shapley 1953, of the logarithm of the time).

    >>> times = {frozenset(): 8.0, frozenset("a"): 4.0, frozenset("b"): 8.0, frozenset("ab"): 1.0}
    >>> {group: round(factor, 12) for group, factor in shapley(times, ("a", "b")).items()}
    {'a': 4.0, 'b': 2.0}
    """
    n = len(groups)
    found = {}
    for group in groups:
        rest = tuple(other for other in groups if other != group)
        parts = (
            math.factorial(len(some)) * math.factorial(n - 1 - len(some)) * math.log(times[some] / times[both])
            for some, both in ((some, some | {group}) for some in subsets(rest))
        )
        found[group] = math.exp(math.fsum(parts) / math.factorial(n))
    return found


def spread(times: Times, groups: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """The least and the largest factor of each group over all orders."""
    found = {}
    for group in groups:
        rest = tuple(other for other in groups if other != group)
        factors = [times[some] / times[some | {group}] for some in subsets(rest)]
        found[group] = (min(factors), max(factors))
    return found

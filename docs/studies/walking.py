"""How the bottleneck of one run walks as its resources get faster: shares, crossings, limits and greedy paths.

Everything is read from the compiled closed form of the run, so nothing is sampled: shares are Euler's (every rate and
latency is responsible for its elasticity of the time, and these sum to 1), and crossings are those of `run.regimes`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symperf.analysis.attribution import least
from symperf.analysis.regimes import Regimes, regimes_of
from symperf.analysis.subject import Subject, subject_of
from symperf.codegen.interpret import adjoints, floats
from symperf.codegen.interpret import run as evaluate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from study import Row

    from symperf.evaluation.base_run import BaseRun

LATENCY = "latency"
RATES = ("compute", "memory", "l2", "scale_up", "scale_out")
"""Resources that have rates."""
RESOURCES = (*RATES, LATENCY)
LEGS = {"compute": ("compute",), "memory": ("memory", "l2"), "network": ("scale_up", "scale_out")}
"""What gets faster on each leg of a walk, one leg after the other."""
KINDS = {resource: leg for leg, resources in LEGS.items() for resource in resources} | {LATENCY: LATENCY}
"""The kind of each resource: the leg that speeds it up."""
TOP = 64.0
MOST = 400
"""Doublings after which a greedy path is given up."""
NOTHING = 1e-12
"""A share below this is rounding."""
ENDLESS = 1e30
"""A factor after which a rate is as good as without bound: its part of the time is below the last digit."""


@dataclass(frozen=True)
class Question:
    """A time of a run, and how much faster each resource is than in the run.

    Attributes:
        name: what is asked.
        run: bound in every symbol.
        of: the output that is the time: "time", "prefill" or "time_per_token".
        factors: by resource, what its rates are multiplied by; 1 where nothing is said.
    """

    name: str
    run: BaseRun
    of: str = "time"
    factors: tuple[tuple[str, float], ...] = ()

    @cached_property
    def subject(self) -> Subject:
        """The compiled time at these factors, with all latencies as one resource."""
        found = subject_of(self.run, self.of, "walk")
        resources = {n: LATENCY if n.endswith("_latency") else owner for n, owner in found.resources.items()}
        by = dict(self.factors)
        values = {n: v * by.get(resources.get(n, ""), 1.0) for n, v in found.values.items()}
        return dataclasses.replace(found, resources=resources, values=values)

    def with_faster(self, factor: float, *resources: str) -> Question:
        """The same with the rates of some resources times a factor."""
        by = dict(self.factors)
        for name in resources:
            by[name] = by.get(name, 1.0) * factor
        return dataclasses.replace(self, factors=tuple(by.items()))

    def rates(self, *resources: str) -> tuple[str, ...]:
        """The symbols of the rates of some resources that the time depends on."""
        return tuple(n for n, owner in self.subject.resources.items() if owner in resources)

    @cached_property
    def values(self) -> list[Any]:
        """The value of every instruction of the compiled time."""
        return evaluate(self.subject.program, self.subject.values, floats())

    @property
    def seconds(self) -> float:
        """The time."""
        return float(self.values[self.subject.position])

    def elasticities(self) -> dict[str, float]:
        """The elasticity of the time in each rate and latency: -1 to 0 and 0 to 1, of all the size 1."""
        subject, values = self.subject, self.values
        slopes = adjoints(subject.program, values, subject.position, floats())
        at = {name: subject.program.inputs[name] for name in subject.resources}
        return {name: slopes.get(k, 0.0) * values[k] / self.seconds for name, k in at.items()}

    def shares(self) -> dict[str, float]:
        """The part of the time that each resource is responsible for; they sum to 1."""
        found = dict.fromkeys(RESOURCES, 0.0)
        for name, elasticity in self.elasticities().items():
            share = self.subject.degree(name) * elasticity
            found[self.subject.resources[name]] += share if abs(share) > NOTHING else 0.0
        return found

    @property
    def bound(self) -> str:
        """The resource with the largest share."""
        return largest(self.shares())

    @property
    def kind(self) -> str:
        """The kind of resource with the largest share: compute, memory with L2, both networks together, or latency."""
        return largest(by_kind(self.shares()))

    def along(self, resources: Sequence[str], top: float = TOP) -> tuple[Regimes, float] | None:
        """The regimes of kinds as the rates of some resources grow up to a factor, and the value that is factor 1.

        Nothing where the time depends on none of them.
        """
        names = self.rates(*resources)
        if not names:
            return None
        subject, leader = self.subject, names[0]
        base = subject.values[leader]
        kinds = {name: KINDS[owner] for name, owner in subject.resources.items()}
        subject = dataclasses.replace(subject, resources=kinds)
        together = subject.led({name: (subject.values[name] / base, {leader: 1}) for name in names[1:]}, {})
        return regimes_of(together, leader, base, top * base), base

    def without(self, *resources: str) -> float:
        """What is left of the time, in seconds, when the rates of these resources grow without bound.

        Latencies, if they are among them, vanish.
        """
        names = self.rates(*resources)
        return least(self.subject, {name: -self.subject.degree(name) for name in names})


def largest(shares: Mapping[str, float]) -> str:
    """The name of the largest share, of equals the first."""
    return max(shares, key=shares.__getitem__)


def by_kind(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares of resources added up to those of their kinds.

    >>> by_kind({"compute": 0.5, "memory": 0.125, "l2": 0.25, "latency": 0.125})
    {'compute': 0.5, 'memory': 0.375, 'latency': 0.125}
    """
    found: dict[str, float] = {}
    for resource, share in shares.items():
        found[KINDS[resource]] = found.get(KINDS[resource], 0.0) + share
    return found


# --- rows


def row_of(question: Question) -> Row:
    """Time, binding resource and shares at one point."""
    shares = question.shares()
    found: Row = {"time_s": question.seconds, "bound": largest(shares)}
    return found | {f"share_{name}": shares[name] for name in RESOURCES}


def path(question: Question, factors: Sequence[float]) -> list[Row]:
    """Points of the walk along `LEGS`: each leg begins where the one before ended, at `TOP`."""
    found = []
    for leg, resources in LEGS.items():
        for factor in factors:
            at = question.with_faster(factor, *resources)
            found.append({"question": question.name, "leg": leg, "factor": factor} | row_of(at))
        question = question.with_faster(TOP, *resources)
    return found


def crossings(question: Question) -> list[Row]:
    """Every point of the walk at which the binding kind of resource changes, and what binds where the walk begins.

    The `view` says how they were found: "exact" from all sums of powers, "sampled" where a rounding depends on a rate.
    """
    before = question.kind
    start = {"question": question.name, "leg": "start", "factor": 1.0, "before": None, "after": before}
    found: list[Row] = [start | {"time_s": question.seconds, "view": None}]
    for leg, resources in LEGS.items():
        stretch = question.along(resources)
        if stretch is not None:
            regimes, base = stretch
            for low, _, after in regimes.bounds():
                if after is not None and after != before:
                    row = {
                        "question": question.name,
                        "leg": leg,
                        "factor": low / base,
                        "before": before,
                        "after": after,
                    }
                    at = question.with_faster(low / base, *resources)
                    found.append(row | {"time_s": at.seconds, "view": regimes.view})
                    before = after
        question = question.with_faster(TOP, *resources)
    return found


def greedy(question: Question, rule: str) -> list[Row]:
    """Double one resource after another until latency has the largest share.

    Args:
        question: where to begin.
        rule: "share" doubles the resource with the largest share among those with rates, "gain" the one whose doubling
            shortens the time most.
    """
    found = []
    name, start = question.name, question.seconds
    while question.bound != LATENCY and len(found) < MOST:
        shares, now = question.shares(), question.seconds
        doubled = {r: question.with_faster(2.0, r) for r in RATES if question.rates(r)}
        scores = shares if rule == "share" else {r: now / after.seconds for r, after in doubled.items()}
        chosen = largest({r: scores[r] for r in doubled})
        question = doubled[chosen]
        row = {"question": name, "rule": rule, "step": len(found) + 1, "resource": chosen, "share": shares[chosen]}
        row |= {"gain": now / question.seconds, "time_s": question.seconds, "speed_up": start / question.seconds}
        by = dict(question.factors)
        found.append(row | {f"x_{r}": by.get(r, 1.0) for r in RATES})
    return found


def limits(question: Question) -> list[Row]:
    """What is left of the time when some resources are infinitely fast: each alone, and leg after leg."""
    now = question.seconds
    sets: list[tuple[str, ...]] = [(r,) for r in RESOURCES if question.rates(r)]
    removed: tuple[str, ...] = ()
    for resources in LEGS.values():
        removed += resources
        if removed not in sets:
            sets.append(removed)
    found = []
    for these in sets:
        left = min(question.without(*these), now)  # equal but for rounding where it is greater
        row = {"question": question.name, "infinite": " + ".join(these), "time_s": left}
        found.append(row | {"speed_up": now / left if left else math.inf})
    return found


def floors(question: Question) -> list[Row]:
    """The limit of all rates without bound, in closed form: how often each latency is paid, and in which counts.

    Where every rate is endless only latencies are left, and the time is linear in each. Imports SymPy.
    """
    import sympy

    from symperf.analysis.closed import powers, sides_at, symbol_of

    endless = question.with_faster(ENDLESS, *RATES)
    subject = endless.subject
    form = sum(powers(subject, "", sides_at(subject, endless.values))[subject.position].values())
    form = form.xreplace({symbol_of(name): sympy.oo for name in question.rates(*RATES)})
    known = {symbol_of(name): value for name, value in subject.values.items()}
    found = []
    for name in question.rates(LATENCY):
        count = form.diff(symbol_of(name))
        times, each = float(count.subs(known)), subject.values[name]
        row = {"question": question.name, "latency": name, "each_s": each, "times": times, "seconds": times * each}
        found.append(row | {"closed_form": str(count)})
    return found


def rows(questions: Iterable[Question], *of: Any, system: str) -> list[Row]:
    """The rows of several questions, with the name of the system in front."""
    return [{"system": system} | row for question in questions for each in of for row in each(question)]

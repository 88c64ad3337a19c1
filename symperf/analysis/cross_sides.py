"""The two sides of a comparison: a quantity of a run, as a function of one symbol."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.builder import rewrite
from ..codegen.interpret import arrays, floats, run
from ..common.errors import InputError, nearest, quote
from ..common.numbers import is_finite
from ..systems.units import COUNT
from ..train.inputs import limits_of
from .choices import Choice, is_choice, parse_choice
from .forms import FormError, PowerQuotient, constant
from .line import Pieces, join_pieces
from .measures import unit_of
from .numbers import numbers
from .subject import Subject, subject_of
from .symbols import LARGEST, Domain, domain_of, lead_dependents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..evaluation.base_run import BaseRun

AGREES = 1e-11
"""Relative difference that is rounding."""
DIVISORS = ("tp", "pp", "dp", "cp", "vpp", "ep", "expert_tp", "zero_shards", "micro_batch", "num_key_value_heads")
"""Symbols that a run accepts only where they divide one of its sizes, so that only divisors are offered to it."""
OPTIONS = ("stack", "kv_precision")
"""What a run is asked for that is no number."""
LARGE = 1e18
"""Where a symbol without a limit is tried."""
PROBES = (0.5, 2.0, 3.0)
"""Factors on a symbol at which it is seen what moves with it."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        label: as a sentence has it.
        run: with the choice, where it is one.
        of: the quantity of it.
        symbol: that varies; None where this side stays as it is.
        where: begins error lines.
        resource: of which the time is what it is responsible for; else nothing.
        share: whether it is the part of the time, and not its seconds.
        supposed: whether the value that the symbol has in the run is but supposed.
        choice: what was chosen; None of a term, a resource or a quantity of the base run.
    """

    label: str
    run: BaseRun
    of: str
    symbol: str | None = None
    where: str = "cross"
    resource: str = ""
    share: bool = False
    supposed: bool = False
    choice: Choice | None = None

    def bind(self, x: float) -> BaseRun:
        """The run with the symbol at a value.

        Raises:
            InputError: the run refuses it.
        """
        if self.symbol is None:
            return self.run
        return self.run.bind(**{self.symbol: int(x) if domain_along(self.run, self.symbol).whole else float(x)})

    def value(self, x: float) -> float:
        """The quantity with the symbol bound to a value.

        Raises:
            InputError: the run refuses it.
        """
        return float(self.of_runs([self.bind(x)])[0])

    def of_runs(self, runs: Sequence[BaseRun]) -> Any:
        """The quantity of each of many runs."""
        if not self.resource:
            return values_of(runs, self.of)
        parts = [each.shares().get(self.resource, 0.0) for each in runs]
        return np.array(parts) * (1.0 if self.share else values_of(runs, self.of))

    @property
    def now(self) -> float | None:
        """The value that the symbol has in the run, if it has one."""
        if self.symbol is None:
            return None
        known = value_now(self.run, self.symbol)
        return self._plain.values.get(self.symbol) if known is None else known

    @cached_property
    def _plain(self) -> Subject:
        return subject_of(self.run, self.of, self.where)

    @cached_property
    def subject(self) -> Subject:
        """The quantity as a program, in which what the run sets in proportion to the symbol moves with it."""
        found = self._plain
        if self.symbol is None:
            return found
        return _follow(self, lead_dependents(self.run, found, self.symbol) if self.symbol in self.run.bound else found)

    @cached_property
    def faithful(self) -> bool:
        """Whether the program says what the run with the symbol bound does, as far as trials show."""
        if self.symbol is None:
            return True
        tried: dict[float, BaseRun] = {}
        for x in self._trials(self.symbol):
            try:
                tried[x] = self.bind(x)
            except InputError:
                continue
        wanted, found = self.of_runs(list(tried.values())), self.values(np.array(list(tried)))
        return bool(tried) and bool(np.all(np.abs(found - wanted) <= AGREES * np.abs(wanted)))

    def _trials(self, symbol: str) -> list[float]:
        """Values of the symbol at which the program is compared with the run."""
        domain = domain_along(self.run, symbol)
        if self.now:
            tried = [self.now * factor for factor in (*PROBES, 0.25)]
            return [x for x in tried if domain.low <= x <= domain.high and not (domain.whole and x % 1)]
        high = min(domain.high, LARGE)
        return [domain.low, high, math.sqrt(domain.low * high)]

    @property
    def constant(self) -> bool:
        """Whether the program does not depend on the symbol."""
        if self.symbol is None or self.symbol in self._plain.program.inputs:
            return self.symbol is None
        return self.symbol not in self.subject.program.inputs

    def pieces(self, low: float, high: float) -> Pieces:
        """The quantity as exact pieces between two values of the symbol.

        Raises:
            FormError: there are none.
        """
        for (first, last), known in self._known.items():
            if first <= low and high <= last:
                return known
        if self.constant:
            found = Pieces((), (constant(float(self.values(np.ones(1))[0])),))
        else:
            found = self.subject.line(str(self.symbol), low, high).values[self.subject.position]
        if self.resource:
            found = join_pieces(found.cuts, [self._part(form) for form in found.parts])
        self._known[low, high] = found
        return found

    @cached_property
    def _known(self) -> dict[tuple[float, float], Pieces]:
        """Pieces that were computed, by their ends."""
        return {}

    def _part(self, form: PowerQuotient) -> PowerQuotient:
        """What the resource is responsible for in a form, by Euler's theorem.

        Raises:
            FormError: the form is no time.
        """
        names = self.subject.names
        parts = form.parts(len(names))
        if parts is None:
            raise FormError("no time")
        due = parts[names.index(self.resource)] if self.resource in names else constant(0)
        return due / form if self.share else due

    def values(self, xs: Any) -> Any:
        """The quantity along the symbol, from the program."""
        inputs = self.subject.values if self.constant else self.subject.values | {str(self.symbol): xs}
        if self.resource:
            return self._due(np.asarray(xs, dtype=float))
        with np.errstate(all="ignore"):
            found = run(self.subject.program, inputs, arrays())[self.subject.position]
        return np.broadcast_to(np.asarray(found, dtype=float), np.shape(xs))

    def _due(self, xs: Any) -> Any:
        """What the resource is responsible for along the symbol."""
        found = numbers(self.subject, {self.symbol or "": xs})
        parts, names = found.parts[self.subject.position], self.subject.names
        if parts is None or self.resource not in names:
            return np.zeros(np.shape(xs))
        whole = found.values[self.subject.position] if self.share else 1.0
        return np.broadcast_to(parts[names.index(self.resource)] / whole, np.shape(xs))


def values_of(runs: Sequence[BaseRun], of: str) -> Any:
    """A quantity of many runs; those of one structure are evaluated at once."""
    found = np.full(len(runs), np.nan)
    groups: dict[int, list[int]] = {}
    for k, each in enumerate(runs):
        groups.setdefault(id(each.compiled), []).append(k)
    for places in groups.values():
        first = subject_of(runs[places[0]], of, "cross")
        alone = [first]
        if not all(name in runs[places[0]].bound for name in first.program.inputs):
            alone += [subject_of(runs[k], of, "cross") for k in places[1:]]
            rows = [each.values for each in alone]
        else:
            rows = [{name: runs[k].bound[name][0] for name in first.program.inputs} for k in places]
        if len(places) == 1:
            found[places[0]] = run(first.program, rows[0], floats())[first.position]
            continue
        columns = {name: np.array([row[name] for row in rows]) for name in first.program.inputs}
        with np.errstate(all="ignore"):
            found[places] = run(first.program, columns, arrays())[first.position]
    return found


def divisors_of(run: BaseRun) -> set[int]:
    """Every divisor of a whole number that a run is bound to."""
    found: set[int] = set()
    for size in {int(value) for value, _ in run.bound.values() if value % 1 == 0 and 1 <= value <= LARGEST}:
        tried = np.arange(1, math.isqrt(size) + 1)
        small = tried[size % tried == 0]
        found.update(small.tolist(), (size // small).tolist())
    return found


def value_now(run: BaseRun, symbol: str) -> float | None:
    """The value that a symbol, a figure of the system or a count that the run was asked for has, if it has one."""
    if symbol in run.bound:
        return run.bound[symbol][0]
    if symbol in run.question and is_finite(run.question[symbol]):
        return float(run.question[symbol])
    known = run.system.quantities.get(symbol)
    return None if known is None else float(known.value)


def domain_along(run: BaseRun, symbol: str) -> Domain:
    """The values that a run takes for a symbol, or for a count that it was asked for."""
    if (symbol in run.question and symbol not in run.bound) or symbol in run.settable.sizes:
        return Domain(True, 1.0, LARGEST)
    limits = run.settable.limits.get(symbol)
    if limits is None:
        return domain_of(symbol)
    return Domain(limits.dimension is COUNT, limits.low, limits.high, limits.zero)


def is_known(run: BaseRun, symbol: str) -> bool:
    """Whether a run can be asked for a value of a symbol."""
    counts = {name for name, value in run.question.items() if not isinstance(value, str) and name not in OPTIONS}
    return symbol in run.bound or limits_of(symbol) is not None or symbol in counts


def _follow(side: Side, subject: Subject) -> Subject:
    """The subject in which what a run sets in proportion to the symbol moves with it."""
    symbol, now = side.symbol, side.now
    if symbol is None or not now or side.supposed:
        return subject
    bound, ratios = side.run.bound, None
    for factor in PROBES:
        if domain_along(side.run, symbol).whole and now * factor % 1:
            continue
        try:
            other = side.bind(now * factor).bound
        except InputError:
            continue
        moved = {n for n in subject.program.inputs if n != symbol and n in other and other[n][0] != bound[n][0]}
        here = {n: bound[n][0] / now for n in moved if other[n][0] == bound[n][0] * factor}
        ratios = here if ratios is None else {n: r for n, r in ratios.items() if n in here}
    return _led(subject, symbol, now, ratios) if ratios else subject


def _led(subject: Subject, symbol: str, now: float, ratios: Mapping[str, float]) -> Subject:
    """The subject with inputs that follow a symbol, which need not be one of them, each at a fixed ratio to it."""

    def rule(builder: Any, operation: str, operands: Any, _: int) -> int:
        if operation != "input" or operands[0] not in ratios:
            return int(builder.emit(operation, *operands))
        leader, ratio = builder.emit("input", symbol), ratios[operands[0]]
        return int(leader if ratio == 1 else builder.emit("multiply", builder.emit("constant", ratio), leader))

    values = subject.values | {symbol: now}
    return dataclasses.replace(subject, program=rewrite(subject.program, rule), values=values)


def sides_of(base: BaseRun, a: str, b: str, over: str, of: str) -> tuple[Side, Side]:
    """The two sides of a comparison.

    Args:
        base: the run.
        a: a term, a folder, a resource, a quantity, or a choice.
        b: another.
        over: a symbol; `a.NAME` or `b.NAME` where it varies on one side alone.
        of: the quantity that two choices are compared in.

    Raises:
        InputError: a side that there is not, or that the rules refuse; two of different kinds or units; an unknown
            symbol.
    """
    for name, text in (("a", a), ("b", b), ("over", over), ("of", of)):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"cross: {name}: found {quote(text)}, expected a name or a choice")
    choices = is_choice(a), is_choice(b)
    if choices[0] != choices[1]:
        told = [
            f"{quote(text)}, which is {'a choice' if c else 'a term, resource or quantity'}"
            for text, c in ((a, choices[0]), (b, choices[1]))
        ]
        raise InputError(f"cross: found {told[0]}, and {told[1]}; expected two of one kind")
    which, _, name = over.strip().rpartition(".")
    if which not in ("", "a", "b"):
        raise InputError(f"cross: over: found {quote(over)}, expected NAME, a.NAME or b.NAME")
    if all(choices):
        made = [
            _chosen(base, text, of, f"cross: {letter}", name if which in ("", letter) else "")
            for letter, text in (("a", a), ("b", b))
        ]
    else:
        both = all(text.strip() in resources_of(base) for text in (a, b))
        made = [_measured(base, text.strip(), f"cross: {letter}", both) for letter, text in (("a", a), ("b", b))]
        _require_two_of_one_unit(*made)
    if made[0].label == made[1].label:
        raise InputError(f"cross: a and b are both {quote(made[0].label)}, expected two that differ")
    first, second = (
        _along(side, name) if which in ("", letter) else side for side, letter in zip(made, "ab", strict=True)
    )
    if first.symbol is None and second.symbol is None:
        known = {known for side in made for known in (*side.run.bound, *side.run.question)}
        raise InputError(f"cross: over: the run has no symbol {quote(name)}{nearest(name, sorted(known))}")
    return first, second


def _along(side: Side, name: str) -> Side:
    """A side as a function of a symbol, if its run has the symbol.

    Raises:
        InputError: the side's choice sets it.
    """
    if side.choice is not None and name in side.choice.values:
        raise InputError(f"cross: over: {name} is set by {quote(side.label)}, expected a symbol that it leaves open")
    if not is_known(side.run, name):
        return side
    found = dataclasses.replace(side, symbol=name)
    if found.now:
        try:
            found.bind(found.now)
        except InputError as error:
            raise InputError(f"cross: over: {error}") from None
    return found


def _chosen(base: BaseRun, text: str, of: str, where: str, over: str) -> Side:
    choice = parse_choice(text, where)
    side = Side(choice.label, choice.run(base, where), of, choice=choice)
    try:
        subject_of(side.run, of, "cross: of")
    except InputError:
        limits = limits_of(over) if over else None
        if limits is None or value_now(side.run, over) is not None:
            raise
        # The quantity needs the symbol that varies, such as a price: whatever value it has, it will have others
        side = dataclasses.replace(
            side, run=side.run.bind(**{over: math.sqrt(limits.low * limits.high)}), supposed=True
        )
        subject_of(side.run, of, "cross: of")
    return side


def _measured(base: BaseRun, text: str, where: str, both: bool) -> Side:
    """A term, a quantity or a resource; of two resources "memory" is one, beside anything else it is the bytes."""
    resources = resources_of(base)
    if text in resources and (both or text not in base.compiled.program.outputs):
        return Side(text, base, "time", resource=text)
    try:
        subject_of(base, text, where)
    except InputError as error:
        hint = nearest(text, resources)
        raise InputError(f"{error}{hint}" if hint and "did you mean" not in str(error) else str(error)) from None
    return Side(text, base, text)


def resources_of(run: BaseRun) -> set[str]:
    """The resources that the time of a run is due to."""
    return set(run.compiled.resources.values())


def _require_two_of_one_unit(a: Side, b: Side) -> None:
    units = [unit_of(side.of) for side in (a, b)]
    if units[0] != units[1]:
        told = [
            f"{side.of} is {f'in {unit}' if unit != '1' else 'a number'}"
            for side, unit in zip((a, b), units, strict=True)
        ]
        raise InputError(f"cross: {told[0]} and {told[1]}, expected two of one unit")

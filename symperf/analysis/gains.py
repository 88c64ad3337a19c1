"""What to buy or tune next: what a quantity gains from each resource and symbol, at 10 % more, twice, in the limit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..codegen.interpret import adjoints, arrays, floats, run
from ..common.errors import InputError
from .answers import Answer, AnswerTable
from .attribution import least
from .forms import FormError
from .measures import spell
from .solution import is_higher_better
from .subject import RISING, Subject, subject_of
from .symbols import domain_of
from .wording import changed, noun, sentence_case, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..evaluation.base_run import BaseRun

STEPS = (1.1, 2.0)
"""Factors by which something is made better."""
FAR = 2.0**60
"""A factor that stands for no limit where a quantity has no leading form."""
LESS_IS_BETTER = (*RISING, "_half_bytes", "price", "_price", "price_per_hour", "facility_overhead")
"""Ends of the names of symbols that gain by being smaller."""
MORE_IS_BETTER = ("_efficiency", "_bandwidth", "_rate", "_capacity", "lifetime", "_removal")
"""Ends of the names of symbols that gain by being larger, beside rates; fractions up to 1."""
NOTICED = 1.0005
"""A factor below which nothing is gained."""
BARS = 12


@dataclass(frozen=True)
class Gain:
    """What something better would bring: a rate times a factor, a latency over it, a fraction times it up to 1.

    Attributes:
        symbol: what is made better; nothing where it is a whole resource.
        resource: whose rate or latency it is, or the whole resource; nothing of an efficiency.
        symbols: all that is made better at once.
        share: of the quantity that is due to it: how it moves with the logarithm of all that is made better at once.
        plus_10_percent: how much better the quantity is with it 1.1 times as good.
        times_2: the same with it twice as good.
        limit: the same in the limit; nothing where that is without bound.
    """

    symbol: str | None
    resource: str | None
    symbols: tuple[str, ...]
    share: float
    plus_10_percent: float
    times_2: float
    limit: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"symbols": list(self.symbols)}

    @property
    def key(self) -> tuple[float, float]:
        """By which gains are sorted, the best last."""
        return self.times_2, math.inf if self.limit is None else self.limit


@dataclass(frozen=True)
class Gains(Answer):
    """Gains from whole resources and from single symbols, the largest at twice as good first.

    Attributes:
        of: the quantity.
        value: of it now.
        gains: of every resource and symbol.
        now: values of the symbols.
        thing: how a sentence names the quantity.
        short: how much more memory a device would need, as a factor; nothing where the run fits.
    """

    of: str
    value: float
    gains: tuple[Gain, ...]
    now: dict[str, float]
    thing: str
    short: float | None

    def __len__(self) -> int:
        return len(self.gains)

    def __iter__(self) -> Iterator[Gain]:
        return iter(self.gains)

    @overload
    def __getitem__(self, at: int) -> Gain: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Gain, ...]: ...
    def __getitem__(self, at: int | slice) -> Gain | tuple[Gain, ...]:
        return self.gains[at]

    @property
    def resources(self) -> tuple[Gain, ...]:
        """Gains from whole resources."""
        return tuple(gain for gain in self.gains if gain.symbol is None)

    @property
    def single(self) -> tuple[Gain, ...]:
        """Gains from single symbols."""
        return tuple(gain for gain in self.gains if gain.symbol is not None)

    @property
    def sentence(self) -> str:
        """What brings most when it is twice as good, and what anything else brings at most."""
        best, *others = self.single
        if best.times_2 < NOTICED:
            return f"Nothing alone makes {self.thing} better."
        more = f"{changed(self.of, self.thing, best.times_2)}"
        after = others[0].times_2 if others else 1.0
        rest = f"nothing else gives more than {after:.2f}x" if after >= NOTICED else "nothing else gives anything"
        return f"{self._doubled(best)} {more}; {rest}."

    def _doubled(self, gain: Gain) -> str:
        assert gain.symbol is not None
        name = words(gain.symbol)
        if falls(gain.symbol):
            return f"Half the {name}"
        high = domain_of(gain.symbol).high
        if not 0 < 2 * self.now[gain.symbol] <= high:
            return f"{sentence_case(words(gain.symbol))} at {high:g}"
        return f"Twice the {name}"

    def tables(self) -> list[AnswerTable]:
        """Single symbols that bring something, and whole resources."""
        heads = ("share", "+10 %", "x 2", "without limit")
        single = tuple(
            (gain.symbol or "", spell(gain.symbol or "", self.now[gain.symbol or ""]), gain.resource or "", *_row(gain))
            for gain in self.single
            if _helps(gain)
        )
        whole = tuple((gain.resource or "", *_row(gain)) for gain in self.resources)
        found = [AnswerTable(f"gains of {self.of} from one symbol", ("symbol", "now", "of", *heads), single)]
        title = "gains from a resource: all its rates and latencies together"
        return found + ([AnswerTable(title, ("resource", *heads), whole)] if whole else [])

    def notes(self) -> list[str]:
        """What brings nothing, and that the run does not fit."""
        idle = [gain for gain in self.single if not _helps(gain)]
        worse = [f"{gain.symbol} ({gain.times_2:.3f}x)" for gain in idle if gain.times_2 < 1 / NOTICED]
        none = [gain.symbol or "" for gain in idle if gain.times_2 >= 1 / NOTICED]
        found = [f"Twice as much makes it worse: {', '.join(worse)}."] if worse else []
        found += [f"Nothing comes from {', '.join(none)}."] if none else []
        if self.short is not None:
            found.append(f"The run does not fit: memory_capacity would have to be {self.short:.4g}x what it is.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "of": self.of,
            "value": self.value,
            "better": "more" if is_higher_better(self.of) else "less",
            "gains": [gain.to_dict() for gain in self.gains],
            "memory_capacity_needed": self.short,
        }

    def draw(self, axes: Any) -> None:
        """Bars of the symbols that bring most: at 10 % more, twice, and in the limit."""
        shown = [gain for gain in self.single if _helps(gain)][:BARS][::-1]
        most = max((gain.limit for gain in shown if gain.limit is not None), default=2.0)
        for height, shade, label in ((0.8, "0.85", "without limit"), (0.55, "C0", "x 2"), (0.3, "C1", "+10 %")):
            values = [
                {"x 2": gain.times_2, "+10 %": gain.plus_10_percent}.get(label, gain.limit or 1.2 * most)
                for gain in shown
            ]
            axes.barh(range(len(shown)), [value - 1 for value in values], height, 1.0, color=shade, label=label)
        axes.set_yticks(range(len(shown)), [gain.symbol for gain in shown])
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{self.of}: times better")
        axes.set_title(self.sentence)
        axes.legend(loc="lower right")


def gains(of_run: BaseRun, of: str = "time") -> Gains:
    """What to buy or tune next: exact gains from each resource and each symbol, the largest at twice as good first.

    Args:
        of_run: bound in every symbol.
        of: the quantity: rates and utilisations gain by growing, all others by shrinking.

    Raises:
        InputError: an unknown quantity, or the run has free symbols.
    """
    subject = subject_of(of_run, of, "gains")
    levers = [*_resources(subject), *_symbols(of_run, subject)]
    shares = _elasticities(subject)
    columns = [subject.values, *(_at(of_run, subject, lever, factor) for lever in levers for factor in STEPS)]
    now, *values = _evaluate(subject, columns)
    if not levers or not now:
        raise InputError(f"gains: {subject.output} depends on nothing that can be bought or tuned")
    sign = 1 if is_higher_better(subject.output) else -1
    found = []
    for k, lever in enumerate(levers):
        more, twice = (_factor(now, value, sign) for value in values[2 * k : 2 * k + 2])
        rest = _limit(of_run, subject, lever)
        limit = None if not math.isfinite(rest) else _factor(now, rest, sign)
        share = abs(math.fsum(power * shares.get(name, 0.0) for name, power in lever.powers.items()))
        found.append(
            Gain(
                lever.symbol,
                lever.resource,
                lever.names,
                share,
                1.0 if more is None else more,
                1.0 if twice is None else twice,
                # A limit is the limit of what grows: rounding must not put it below.
                None if limit is None else limit if lever.worse(twice) else max(limit, twice or limit),
            )
        )
    ordered = tuple(sorted(found, key=lambda gain: gain.key, reverse=True))
    own = {gain.symbol: subject.values[gain.symbol] for gain in ordered if gain.symbol is not None}
    # Of what a larger memory adds, software leaves the same part free.
    need, unused = of_run.value("memory"), of_run.needed_bytes - of_run.value("memory")
    have = of_run.value("capacity_bytes") - unused
    return Gains(subject.output, now, ordered, own, noun(of_run, subject.output), need / have if need > have else None)


@dataclass(frozen=True)
class _Lever:
    """What is made better at once: by name, 1 where it grows and -1 where it shrinks."""

    symbol: str | None
    resource: str | None
    powers: Mapping[str, int]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.powers)

    @staticmethod
    def worse(factor: float | None) -> bool:
        return factor is not None and factor < 1


def falls(name: str) -> bool:
    """Whether a symbol gains by being smaller."""
    return name.endswith(LESS_IS_BETTER)


def _resources(subject: Subject) -> list[_Lever]:
    bought = {name: owner for name, owner in subject.resources.items() if "/" not in name}  # the others mark parts
    return [
        _Lever(None, resource, {name: -subject.degree(name) for name, owner in bought.items() if owner == resource})
        for resource in dict.fromkeys(bought[name] for name in subject.program.inputs if name in bought)
    ]


def _symbols(of_run: BaseRun, subject: Subject) -> list[_Lever]:
    """Everything that can be bought or tuned by itself."""
    found = []
    for name in subject.program.inputs:
        rate = name in of_run.compiled.resources
        tuned = name.endswith(MORE_IS_BETTER) or name.startswith("overlap_")
        if subject.values[name] and (rate or tuned or falls(name)):
            resource = subject.resources.get(name) or of_run.compiled.resources.get(name)
            found.append(_Lever(name, resource, {name: -1 if falls(name) else 1}))
        elif tuned and domain_of(name).high == 1.0:
            found.append(_Lever(name, None, {name: 1}))
    return found


def _at(of_run: BaseRun, subject: Subject, lever: _Lever, factor: float) -> dict[str, float]:
    """The values with a lever at a factor; what the run sets from a single symbol moves with it."""
    values = {name: _moved(name, subject.values[name], power, factor) for name, power in lever.powers.items()}
    if lever.symbol is not None:
        values |= _following(of_run, subject, lever.symbol, values[lever.symbol])
    return subject.values | values


def _moved(name: str, value: float, power: int, factor: float) -> float:
    if power < 0:
        return value / factor
    high = domain_of(name).high
    if high == 1.0 and not value:
        return min(factor - 1.0, 1.0)  # a fraction of zero has no multiple: 10 % and all of it
    return min(value * factor, high)


def _following(of_run: BaseRun, subject: Subject, symbol: str, value: float) -> dict[str, float]:
    if symbol not in of_run.bound:
        return {}
    try:
        other = of_run.bind(**{symbol: value}).bound
    except InputError:
        return {}
    return {
        name: other[name][0]
        for name in subject.program.inputs
        if name in other and other[name][0] != of_run.bound[name][0]
    }


def _limit(of_run: BaseRun, subject: Subject, lever: _Lever) -> float:
    """The quantity with a lever without limit, or at 1; infinite where it grows without bound."""
    if any(power > 0 and domain_of(name).high == 1.0 for name, power in lever.powers.items()):
        return _evaluate(subject, [_at(of_run, subject, lever, FAR)])[0]
    powers = dict(lever.powers)
    if lever.symbol is not None:
        twice = _following(of_run, subject, lever.symbol, subject.values[lever.symbol] * 2)
        powers |= {
            name: powers[lever.symbol] for name, value in twice.items() if value == 2 * subject.values[name] != 0
        }
    try:
        return least(subject, powers)
    except (FormError, ZeroDivisionError):
        return _evaluate(subject, [_at(of_run, subject, lever, FAR)])[0]


def _factor(now: float, then: float, sign: int) -> float | None:
    """How much better a quantity is."""
    over, under = (then, now) if sign > 0 else (now, then)
    return over / under if under else None


def _evaluate(subject: Subject, columns: Sequence[Mapping[str, float]]) -> list[float]:
    """The output at several points at once."""
    inputs: dict[str, Any] = {}
    for name, value in subject.values.items():
        points = [column[name] for column in columns]
        inputs[name] = value if all(point == value for point in points) else np.array(points)
    with np.errstate(all="ignore"):
        found = run(subject.program, inputs, arrays())[subject.position]
    return [float(value) for value in np.broadcast_to(found, (len(columns),))]


def _elasticities(subject: Subject) -> dict[str, float]:
    values = run(subject.program, subject.values, floats())
    slopes = adjoints(subject.program, values, subject.position, floats())
    total = values[subject.position]
    return {name: slopes.get(at, 0.0) * values[at] / total for name, at in subject.program.inputs.items() if total}


def _row(gain: Gain) -> tuple[str, ...]:
    limit = "-" if gain.limit is None else f"{gain.limit:.3f}x"
    return f"{100 * gain.share:.1f} %", f"{gain.plus_10_percent:.3f}x", f"{gain.times_2:.3f}x", limit


def _helps(gain: Gain) -> bool:
    return gain.limit is None or max(gain.limit, gain.times_2) >= NOTICED

"""What `regimes` answers: the stretches of a symbol, what binds in each, and where it changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .answers import Answer, AnswerTable, Equation
from .legal import spell_skipped
from .spelling import join, percent, spell

if TYPE_CHECKING:
    from collections.abc import Callable

    from .changes import Crossover, Regime
    from .legal import LegalValues
    from .spans import Profile, Span

FEW = 4
"""Stretches that one sentence tells."""
SHOWN = 3
"""Changes of branches that are written out of each crossover."""
SHORT = 60
"""Operations of a closed form that is written out as text."""
SPENT = ("memory", "energy")
"""Quantities whose shares are parts that they go to, not resources that bind."""
LONGEST = 200
"""Instructions above which no closed form is written out."""
APART = 3.0
"""Factor up to which the crossover without roundings is that of a whole number."""


@dataclass(frozen=True)
class Told:
    """A stretch, the quantity at its point, and the terms by which its resource binds, with shares of the quantity."""

    span: Span
    value: float
    terms: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Turn:
    """Where one stretch ends and the next begins.

    Attributes:
        at: the value of the symbol; of a whole number, the first of the new stretch.
        before: the resource that binds below.
        after: the one that binds from there on.
        crossover: with the branches that change; of a whole number that without roundings, or nothing.
    """

    at: float
    before: str | None
    after: str | None
    crossover: Crossover | None = field(repr=False, compare=False)

    @cached_property
    def short(self) -> bool:
        """Whether it has a closed form that fits a few lines; SymPy is asked only where it may have."""
        if self.crossover is None or self.crossover.extent > LONGEST:
            return False
        return self.form is not None and self.form.count_ops() <= SHORT

    @cached_property
    def form(self) -> Any:
        """The symbol there as a SymPy expression in the others, or nothing."""
        return None if self.crossover is None else self.crossover.closed_form()


@dataclass(frozen=True)
class Regimes(Answer):
    """The regimes of one quantity along one symbol, in order.

    Attributes:
        symbol: what varies.
        low: one end of the range.
        high: the other.
        of: the quantity.
        view: "exact" of a real symbol; of a whole number "whole" (each was evaluated) or "smooth" (no roundings);
            "sampled" where a rounding depends on a real symbol, so that a grid had to be tried.
        intervals: stretches on which no branch that matters changes.
        crossovers: between them.
        told: stretches of what binds, in which changes within the band are flicker.
        profile: shares of the resources along the symbol.
        band: share of the quantity, over a doubling of the symbol, below which a change is flicker.
        legal: of a whole number, which values were tried and which were skipped.
    """

    symbol: str
    low: float
    high: float
    of: str
    view: str
    intervals: tuple[Regime, ...]
    crossovers: tuple[Crossover, ...]
    told: tuple[Told, ...] = field(repr=False, compare=False)
    profile: Profile = field(repr=False, compare=False)
    band: float = field(compare=False)
    legal: LegalValues | None = field(default=None, repr=False, compare=False)
    smooth: Callable[[], Regimes | None] | None = field(default=None, repr=False, compare=False)

    def bounds(self) -> list[tuple[float, float, str | None]]:
        """The intervals of the bounding resource alone, flicker and all."""
        found: list[tuple[float, float, str | None]] = []
        for regime in self.intervals:
            if found and found[-1][2] == regime.bound:
                found[-1] = (found[-1][0], regime.high, regime.bound)
            else:
                found.append((regime.low, regime.high, regime.bound))
        return found

    @property
    def spans(self) -> tuple[Span, ...]:
        """The stretches that are told, flicker inside the band left out."""
        return tuple(each.span for each in self.told)

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """Where one of the told stretches ends and the next begins."""
        turns = []
        for before, after in zip(self.spans, self.spans[1:], strict=False):
            bound, x = (before.bound, after.bound), after.low
            if self.view == "whole":
                same = [turn for turn in self.unrounded if (turn.before, turn.after) == bound]
                near = [turn for turn in same if x / APART <= turn.at <= x * APART]
                nearest = min(near, key=lambda turn, x=x: abs(turn.at / x - 1), default=None)  # type: ignore[misc]
                found = None if nearest is None else nearest.crossover
            else:
                found = next((c for c in self.crossovers if c.x == x), None)
            turns.append(Turn(x, *bound, found))
        return tuple(turns)

    @cached_property
    def unrounded(self) -> tuple[Turn, ...]:
        """Of a whole number: where it would turn without roundings to tiles, waves and devices."""
        found = self.smooth() if self.smooth is not None and len(self.told) > 1 else None
        return () if found is None else found.turns

    # --- as words

    @property
    def sentence(self) -> str:
        """What binds from where to where."""
        first, last = self.spans[0], self.spans[-1]
        if first.bound is None:
            return f"{self._range()} {self.of} is due to no resource; it changes its form {len(self.crossovers)} times."
        if len(self.spans) == 1:
            return f"{self._range()} {self._binds(first.bound)} throughout{self._most()}."
        if len(self.spans) > FEW:
            changes = f"what binds {self._what} changes {len(self.spans) - 1} times"
            return f"{self._range()} {changes}, from {first.bound} to {last.bound}."
        parts = [f"From {self.symbol} {self._say(first.low)} to {self._say(first.high)} {self._binds(first.bound)}"]
        parts += [
            f"from {self._say(span.low)} to {self._say(span.high)} {self._binds(span.bound, again=True)}"
            for span in self.spans[1:-1]
        ]
        parts.append(f"from {self._say(last.low)} on {self._binds(last.bound, again=True)}")
        return "; ".join(parts) + "."

    def _binds(self, bound: str | None, *, again: bool = False) -> str:
        if self.of.startswith(SPENT):
            return f"to {bound}" if again else f"most of {self._what} goes to {bound}"
        return f"{bound} does" if again else f"{bound} binds {self._what}"

    @property
    def _what(self) -> str:
        return f"the {self.of}" if self.of in ("time", "memory", "energy", "cost") else self.of

    def _most(self) -> str:
        return f", most of all in {self.told[0].terms[0][0]}" if self.told[0].terms else ""

    def _range(self) -> str:
        return f"Along {self.symbol} from {self._say(self.spans[0].low)} to {self._say(self.spans[-1].high)}"

    def _say(self, value: float) -> str:
        return spell(self.symbol, value)

    def tables(self) -> list[AnswerTable]:
        """One row a stretch; without a band also what changes where."""
        spent = self.of.startswith(SPENT)
        rows: list[tuple[str, ...]] = [
            (
                self._say(span.low),
                self._say(span.high),
                span.bound or "-",
                _range_of(span.shares) if span.bound else "-",
                ", ".join(f"{name} {percent(share)}" for name, share in each.terms),
            )
            for each in self.told
            for span in (each.span,)
        ]
        heads: tuple[str, ...] = ("from", "to", "goes to" if spent else "binds", "share", "most of all in")
        title = f"{'Where' if spent else 'What binds'} {self.of}{' goes' if spent else ''} along {self.symbol}"
        if not any(each.terms for each in self.told):  # of a term there are none below
            heads, rows = heads[:-1], [row[:-1] for row in rows]
        found = [AnswerTable(title, heads, tuple(rows), frozenset({0, 2, 4}))]
        if self.band == 0 or self.spans[0].bound is None:
            found += self._changes()
        return found

    def _changes(self) -> list[AnswerTable]:
        rows = []
        for crossover in self.crossovers:
            texts = [str(change) for change in crossover.changes]
            if crossover.bound is not None:
                texts = [f"{self.of}: {crossover.bound[0]} -> {crossover.bound[1]}", *texts]
            named = texts[:SHOWN] + ([f"and {len(texts) - SHOWN} more"] if len(texts) > SHOWN else [])
            rows.append((self._say(crossover.x), "; ".join(named)))
        return [AnswerTable("What changes", ("at", "from one branch to another"), tuple(rows), frozenset({0, 1}))]

    def equations(self) -> list[Equation]:
        """The closed form of each crossover that has a short one; of a whole number without roundings."""
        rounded = ", without roundings" if self.view == "whole" else ""
        return [
            Equation(self.symbol, turn.form, f"{turn.before} to {turn.after}, {self._say(turn.at)}{rounded}")
            for turn in self._formed()
            if turn.short
        ]

    def _formed(self) -> tuple[Turn, ...]:
        return self.unrounded if self.view == "whole" else self.turns

    def notes(self) -> list[str]:
        """Flicker, skipped values, and what was left out."""
        found = []
        for span in self.spans:
            if span.flicker is not None:
                others = join(span.flicker.bounds)
                stretch = f"From {self._say(span.flicker.low)} to {self._say(span.flicker.high)}"
                if span.flicker.part == 1:
                    leads = "lead" if len(span.flicker.bounds) > 1 else "leads"
                    found.append(f"{stretch} {others} {leads} {span.bound}, within the band.")
                    continue
                part = percent(span.flicker.part)
                found.append(f"{stretch} {span.bound} flickers with {others}, in front in {part} of that stretch.")
        if found:
            found.append(
                f"What binds for less than {percent(self.band)} of {self._what} over a doubling of {self.symbol} "
                "is told as flicker; --all tells every change."
            )
        long = [turn for turn in self._formed() if turn.crossover is not None and not turn.short]
        if long:
            places = join([self._say(turn.at) for turn in long])
            found.append(
                f"The crossover at {places} has no short closed form; a long one, where there is one, is in --json."
            )
        if self.legal is not None and self.legal.skipped:
            total = len(self.legal.skipped) + len(self.legal.values)
            reasons = spell_skipped(self.legal.skipped)
            found.append(f"Skipped {len(self.legal.skipped)} of {total} values of {self.symbol}: {reasons}.")
        if self.view == "smooth":
            found.append(
                f"Without roundings to tiles, waves and devices, and between whole numbers: {self.symbol} takes "
                "more than can be tried one by one."
            )
        if self.view == "sampled":
            found.append(f"A rounding depends on {self.symbol}: seen on a grid of 2049 points, then halved down.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `closed_form` is in the names of the symbols."""
        whole = self.view == "whole"

        def number(value: float) -> float:
            return int(value) if whole else value

        return {
            "sentence": self.sentence,
            "symbol": self.symbol,
            "low": number(self.low),
            "high": number(self.high),
            "of": self.of,
            "view": self.view,
            "band": self.band,
            "intervals": [
                {
                    "low": number(span.low),
                    "high": number(span.high),
                    "bound": span.bound,
                    "at": number(span.at),
                    "value": each.value,
                    "share": list(span.shares) if span.bound else None,
                    "terms": [{"name": name, "share": share} for name, share in each.terms],
                    "flicker": None
                    if span.flicker is None
                    else {
                        "low": number(span.flicker.low),
                        "high": number(span.flicker.high),
                        "bounds": list(span.flicker.bounds),
                        "part": span.flicker.part,
                    },
                }
                for each in self.told
                for span in (each.span,)
            ],
            "crossovers": [
                {
                    "at": number(turn.at),
                    "from": turn.before,
                    "to": turn.after,
                    "closed_form": _text(turn.form),
                }
                for turn in self.turns
            ],
            "without_roundings": [
                {"at": turn.at, "from": turn.before, "to": turn.after, "closed_form": _text(turn.form)}
                for turn in self.unrounded
            ],
            "skipped": []
            if self.legal is None
            else [{"value": s.value, "reason": s.reason} for s in self.legal.skipped],
            "regimes": [regime.to_dict() for regime in self.intervals],
            "changes": [crossover.to_dict() for crossover in self.crossovers],
        }

    # --- as HTML and as a picture

    def _repr_html_(self) -> str:
        from .strips import regime_strip

        return f"{regime_strip(self)}\n{super()._repr_html_()}"

    def draw(self, axes: Any) -> None:
        """The share of each resource along the symbol, stacked, with the crossovers marked."""
        from .drawing import draw_shares

        draw_shares(self, axes)


def _text(form: Any) -> str | None:
    return None if form is None else str(form)


def _range_of(shares: tuple[float, float]) -> str:
    low, high = (percent(share) for share in shares)
    return low if low == high else f"{low.removesuffix(' %')} to {high}"

"""The axes of a sweep: numbers, ranges, choices, and several symbols zipped along one axis.

Values are checked here, one symbol at a time, by the rules of a single run; what depends on several symbols is checked
point by point, by the rules of `validity`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..common.errors import InputError, nearest, quote
from ..common.numbers import as_plain, is_finite
from ..models.model import Model
from ..plans.plan import FIELDS, NUMBERS, positive_integer
from ..systems.quantities import check_number
from ..systems.system import System
from ..systems.system_symbols import SYMBOLS as SYSTEM_SYMBOLS
from ..systems.units import COUNT
from ..train.binding import DEFAULTS
from ..train.inputs import TRAINED_SIZES, WORK, limits_of, size

CHOICES = ("model", "system", *(name for name in FIELDS if name not in NUMBERS))
"""Axes of choices: each value has a structure, or numbers, of its own."""
WHOLE = (*(name for name, entry in NUMBERS.items() if entry.whole), *WORK)
NUMERIC = (*NUMBERS, *WORK, *TRAINED_SIZES, *SYSTEM_SYMBOLS, "matrix_rate", *DEFAULTS)
STAND_INS = {"fp4_efficiency": "fp8_efficiency"}
"""Figures of a system that no formula reads -> the symbol that has their value in the runs that they are of."""
LONGEST = 10**7
"""Values of one axis."""
EXACT = 2.0**53
"""Up to here a float holds every whole number."""
SCALES = ("linear", "log")
_RANGE = ("from", "to", "count", "step", "powers_of", "scale")


@dataclass(frozen=True, eq=False)
class Axis:
    """One dimension of a sweep.

    Attributes:
        name: of the dimension.
        members: what varies along it, by symbol: float64 or int64 arrays, or tuples of choices; all of one length.
        unset: where a number is left open (and its array has 1), by symbol; only of those that are so somewhere.
    """

    name: str
    members: Mapping[str, np.ndarray[Any, Any] | tuple[Any, ...]]
    unset: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.members.values())))

    def labels(self, name: str) -> np.ndarray[Any, Any] | tuple[Any, ...]:
        """The values of a member as they were given: None where a number is left open."""
        values = self.members[name]
        if name not in self.unset:
            return values
        return tuple(None if open_ else value for value, open_ in zip(values.tolist(), self.unset[name], strict=True))  # type: ignore[union-attr]

    def forms(self, decisive: Collection[str] = ()) -> dict[str, Sequence[Any]]:
        """What decides the form of the cost at each position, by member; of members that change numbers only, nothing.

        Of a number it is whether it is above 1, or given (see `Field.form`); of a choice the choice itself.

        Args:
            decisive: numbers each of whose values has a form of its own here.
        """
        found: dict[str, Sequence[Any]] = {}
        for name, values in self.members.items():
            if isinstance(values, tuple):
                found[name] = values
            elif name in decisive:
                found[name] = values.tolist()
            elif name in NUMBERS and NUMBERS[name].form != "none":
                found[name] = [NUMBERS[name].form_of(value) for value in self.labels(name)]
        return found


@dataclass(frozen=True)
class Zip:
    """Symbols that vary together along one axis: `shape=Zip(tp=[1, 2, 4], pp=[4, 2, 1])`."""

    members: Mapping[str, Any]

    def __init__(self, **members: Any) -> None:
        object.__setattr__(self, "members", members)


def linear(first: float, last: float, count: int) -> np.ndarray[Any, Any]:
    """Evenly spaced values, both ends included.

    >>> linear(1, 3, 5).tolist()
    [1.0, 1.5, 2.0, 2.5, 3.0]
    """
    return np.linspace(first, last, count)


def logarithmic(first: float, last: float, count: int) -> np.ndarray[Any, Any]:
    """Values in a constant ratio, both ends included.

    >>> logarithmic(1, 16, 3).tolist()
    [1.0, 4.0, 16.0]
    """
    return np.geomspace(first, last, count)


def powers(base: int, first: int, last: int) -> list[int]:
    """`first`, and times `base` again and again up to `last`.

    >>> powers(2, 1, 8)
    [1, 2, 4, 8]
    """
    found = [first]
    while found[-1] * base <= last:
        found.append(found[-1] * base)
    return found


def axis(name: str, given: Any, extras: Iterable[str] = ()) -> Axis:
    """The axis that a value stands for.

    Args:
        name: of the symbol, or any name for a `Zip`.
        given: a list, range or array of values; a range as a mapping (`from`, `to`, and `count`, `step` or
            `powers_of`); a `Zip`, or a mapping with the one key `zip`.
        extras: names that are no symbols, but stand in expressions.

    Raises:
        InputError: an unknown symbol, an empty or reversed axis, a value of the wrong kind or out of range.
    """
    where = f"axis {name}"
    if isinstance(given, Mapping) and set(given) == {"zip"}:
        if not isinstance(given["zip"], Mapping):
            raise InputError(f"{where}: zip is {quote(given['zip'])}, expected lists by name")
        given = Zip(**given["zip"])
    if not isinstance(given, Zip):
        found, unset = values(name, given, where, extras)
        return Axis(name, {name: found}, {} if unset is None else {name: unset})
    if not given.members:
        raise InputError(f"{where}: zips nothing, expected lists by name")
    if name in (*CHOICES, *NUMERIC) and name not in given.members:
        raise InputError(f"{where}: a zipped axis needs a name that is no symbol, or that of one of its symbols")
    pairs = {key: values(key, value, f"{where}: {key}", extras, unique=False) for key, value in given.members.items()}
    members = {key: found for key, (found, _) in pairs.items()}
    lengths = {key: len(value) for key, value in members.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"{where}: {', '.join(f'{key} has {n} values' for key, n in lengths.items())}, expected as many of each"
        )
    return Axis(name, members, {key: unset for key, (_, unset) in pairs.items() if unset is not None})


def values(
    name: str, given: Any, where: str, extras: Iterable[str] = (), *, unique: bool = True
) -> tuple[np.ndarray[Any, Any] | tuple[Any, ...], np.ndarray[Any, Any] | None]:
    """The checked values of one symbol along an axis, and where a number is left open, if it is anywhere.

    Raises:
        InputError: naming the axis, what was found and what was expected.
    """
    if isinstance(given, Mapping):
        given = _range(name, given, where)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"{where}: found {quote(given)}, expected a list of values or a range")
    if not isinstance(given, Sequence | np.ndarray):
        given = list(given)
    if len(given) == 0:
        raise InputError(f"{where}: is empty, expected one value or more")
    if len(given) > LONGEST:
        raise InputError(f"{where}: has {len(given)} values, expected at most {LONGEST}")
    if name in STAND_INS:
        raise InputError(f"{where}: cannot vary, expected {STAND_INS[name]}, as which a run in that precision reads it")
    unset = _unset(name, given)
    if name in CHOICES:
        found: np.ndarray[Any, Any] | tuple[Any, ...] = tuple(choice(name, value, where) for value in given)
        repeated = [c for c, count in Counter(found).items() if count > 1]
    elif unset is not None:
        found = numbers(name, [1 if open_ else value for value, open_ in zip(given, unset, strict=True)], where)
        repeated = [None] if unset.sum() > 1 else _find_repeated(found[~unset])
    elif name in NUMERIC or name in extras:
        found = numbers(name, given, where)
        repeated = _find_repeated(found) if unique else []
    else:
        raise InputError(f"{where}: no such symbol{nearest(name, [*NUMERIC, *CHOICES])}")
    if unique and repeated:
        raise InputError(f"{where}: {quote(label(repeated[0]))} comes twice, expected it once")
    return found, unset


def _open(value: Any) -> bool:
    """Whether a value leaves a field open; files, which have no None, say it with a word."""
    return value is None or (isinstance(value, str) and value == "none")


def _unset(name: str, given: Iterable[Any]) -> np.ndarray[Any, Any] | None:
    """Where a number that a plan may leave open is left open; None where it is nowhere."""
    if name not in NUMBERS or not NUMBERS[name].optional:
        return None
    unset = np.array([_open(value) for value in given])
    return unset if unset.any() else None


def choice(name: str, value: Any, where: str) -> Any:
    """One checked value of an axis of choices; models and systems are loaded.

    Raises:
        InputError: it is not one of the choices.
    """
    try:
        if name == "model":
            return value if isinstance(value, Model) else Model.load(value)
        if name == "system":
            return value if isinstance(value, System) else System.load(value)
        field = FIELDS[name]
        return field.check(None if field.optional and _open(value) else value, training=True)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix(f'{name}: ')}") from None


def label(value: Any) -> Any:
    """How a choice is written in a table: the name of a model or system, or the value itself."""
    return value.name if isinstance(value, Model | System) else value


def numbers(name: str, given: Any, where: str) -> np.ndarray[Any, Any]:
    """The checked values of a symbol that has numbers: int64 for counts, else float64.

    Of a name that is no symbol they are int64 where all are whole numbers that a float holds exactly, up to 2^53 and
    its negative; beyond, and where any has a fraction, all are float64, the nearest to each.

    Raises:
        InputError: a value that is no number, or that a single run would refuse.
    """
    if isinstance(given, range):
        given = np.arange(given.start, given.stop, given.step)
    if isinstance(given, np.ndarray):
        if given.ndim != 1 or given.dtype.kind not in "iuf":
            raise InputError(f"{where}: found an array of {given.dtype} with {given.ndim} dimensions, expected numbers")
        found = given.astype(np.float64)
    else:
        found = np.array([_number(name, value, where) for value in given], dtype=np.float64)
    finite = found[np.isfinite(found)]
    probes = [*found[~np.isfinite(found)][:1], *finite[finite % 1 != 0][:1], *finite[finite != 0][:1]]
    if finite.size:
        probes += [finite.min(), finite.max(), finite[np.argmin(np.abs(finite))]]
        if (finite > 0).any():
            probes.append(finite[finite > 0].min())
    for probe in probes:
        plain = probe.item()
        one(name, int(plain) if plain.is_integer() else plain, where)
    limits = limits_of(name)
    count = name in (*WHOLE, *TRAINED_SIZES) or (limits is not None and limits.dimension is COUNT)
    exact = not (finite % 1).any() and not (np.abs(found) > EXACT).any()
    if count or (name not in NUMERIC and exact):
        return found.astype(np.int64)
    return found


def one(name: str, value: Any, where: str) -> float:
    """The SI value of one number, or of a text with a unit, as a single run takes it.

    Raises:
        InputError: it is out of range, or of the wrong kind.
    """
    value = as_plain(value)
    try:
        if name in TRAINED_SIZES:
            return size(name, value)
        if name in WORK:
            return positive_integer(name, value)
        if name in NUMBERS and not (value is None and NUMBERS[name].optional):
            return float(NUMBERS[name].check(value))
        limits = limits_of(name)
        if limits is not None:
            return check_number(value, limits, name)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix(f'{name}: ')}") from None
    if not is_finite(value):
        raise InputError(f"{where}: found {quote(value)}, expected a finite number")
    return float(value)


def _number(name: str, value: Any, where: str) -> float:
    value = as_plain(value)
    if type(value) is int or type(value) is float:
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"{where}: found {quote(value)}, expected a number within the range of a float") from None
    return one(name, value, where)


def _range(name: str, given: Mapping[str, Any], where: str) -> Any:
    for key in given:
        if key not in _RANGE:
            raise InputError(f"{where}: unknown key {quote(key)}{nearest(str(key), _RANGE)}")
    missing = [key for key in ("from", "to") if key not in given]
    how = [key for key in ("count", "step", "powers_of") if key in given]
    if missing or len(how) != 1:
        raise InputError(
            f"{where}: found {quote(dict(given))}, expected from, to and one of count, step, powers_of"
            + (f" (no {missing[0]})" if missing else "")
        )
    if name in CHOICES:
        raise InputError(f"{where}: a range of choices, expected a list")
    first, last = (_number(name, given[key], f"{where}: {key}") for key in ("from", "to"))
    if first > last or (first == last and given.get("count", 1) != 1):
        raise InputError(f"{where}: is reversed or empty: from {first:g} to {last:g}, expected from below to")
    scale = given.get("scale", "linear")
    if scale not in SCALES or (scale == "log" and how != ["count"]):
        raise InputError(f"{where}: scale is {quote(scale)}, expected linear, or log with count")
    by = as_plain(given[how[0]])
    if not is_finite(by) or by <= 0:
        raise InputError(f"{where}: {how[0]} is {quote(by)}, expected a number above 0")
    if how == ["count"]:
        if by % 1 or by > LONGEST:
            raise InputError(f"{where}: count is {quote(by)}, expected a whole number from 1 to {LONGEST}")
        if scale == "log" and first <= 0:
            raise InputError(f"{where}: from is {first:g}, expected a number above 0 on a log scale")
        return (logarithmic if scale == "log" else linear)(first, last, int(by))
    if how == ["powers_of"]:
        if by < 2 or by % 1 or first < 1 or first % 1:
            raise InputError(
                f"{where}: powers of {by:g} from {first:g}, expected whole numbers: 2 or more from 1 or more"
            )
        return powers(int(by), int(first), int(last))
    steps = math.floor((last - first) / by * (1 + 1e-12))
    if steps >= LONGEST:
        raise InputError(f"{where}: has {steps + 1} values, expected at most {LONGEST}")
    return first + by * np.arange(steps + 1)


def _find_repeated(found: np.ndarray[Any, Any]) -> list[Any]:
    steps = np.diff(found)
    if (steps > 0).all() or (steps < 0).all():
        return []
    unique, counts = np.unique(found, return_counts=True)
    if unique.size == found.size:
        return []
    return [unique[counts > 1][0].item()]

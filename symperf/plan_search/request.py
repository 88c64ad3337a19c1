"""Constraints of a search as users give them, checked; and those that contradict each other, named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..plans.plan import FIELDS, positive_integer
from .space import DEGREES, LAYOUT, layouts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .space import SearchQuestion


def check_mapping(where: str, given: Any) -> Mapping[Any, Any]:
    """What gives values by name, as it is.

    Raises:
        InputError: it is something else, such as a list.
    """
    if not hasattr(given, "items"):
        raise InputError(f"{where}: found {quote(given)}, expected values by name, such as {{NAME: VALUE}}")
    return given  # type: ignore[no-any-return]


def check_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values by symbol; which symbols there are is known where they are set.

    Raises:
        InputError: no mapping, or a name that is no text.
    """
    for name in check_mapping("values", given):
        if not isinstance(name, str):
            raise InputError(f"values: found {quote(name)}, expected the name of a symbol")
    return dict(given)


def check_required(given: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Values by field of the plan, each checked as a plan would.

    Raises:
        InputError: an unknown field, with the nearest, no value, or a value that no plan has.
    """
    found = {}
    for name, value in check_mapping("require", given).items():
        if name not in FIELDS:
            raise InputError(f"require: no field {quote(name)} in a plan{nearest(name, FIELDS)}")
        values = list(value) if _several(value) else [value]
        if not values:
            raise InputError(f"require: {name} has no value, expected one or more")
        found[name] = tuple(dict.fromkeys(_check(name, each) for each in values))
    return found


def _several(value: object) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes)


def _check(name: str, value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    try:
        return FIELDS[name].check(value)
    except InputError as error:
        raise InputError(f"require: {error}") from None


def check_limits(given: Mapping[str, Any]) -> dict[str, int]:
    """Largest values of degrees.

    Raises:
        InputError: of something that is no degree, or no whole number from 1.
    """
    for name in check_mapping("limits", given):
        if name not in DEGREES:
            raise InputError(f"max_{name}: no such limit{nearest(f'max_{name}', [f'max_{d}' for d in DEGREES])}")
    return {name: positive_integer(f"max_{name}", value) for name, value in given.items()}


def contradictions(question: SearchQuestion) -> None:
    """Refuse constraints that leave a field without a value, or no way to use the devices.

    Raises:
        InputError: naming the constraints that contradict each other.
    """
    for name, values in question.candidates.items():
        if not values and name not in question.limits:
            raise InputError(f"{question.software.name}: runs none of the values of {name} that a search tries")
        if not values:
            asked = " or ".join(map(str, question.required.get(name, ())))
            raise InputError(
                f"constraints contradict each other: {name} = {asked}, and max_{name} = {question.limits[name]}"
            )
    given = {name: question.required[name] for name in LAYOUT if name in question.required}
    for name, values in given.items():
        if not any(question.devices % value == 0 for value in values):
            raise InputError(f"require: {_show(name, values)} does not divide {question.devices} devices")
    if next(layouts(question), None) is None:
        limits = [f"max_{name} = {most}" for name, most in question.limits.items() if name in LAYOUT]
        constraints = [*(_show(name, values) for name, values in given.items()), *limits]
        raise InputError(
            f"constraints contradict each other: with {', '.join(constraints)} no tp x pp x cp x dp is "
            f"{question.devices} devices"
        )
    schedules, vpp = question.candidates["schedule"], question.candidates["vpp"]
    if set(schedules) == {"interleaved"} and max(vpp) == 1:
        raise InputError(
            "constraints contradict each other: schedule = interleaved needs vpp above 1, found "
            f"{'max_vpp' if 'vpp' in question.limits else 'vpp'} = 1"
        )
    if "interleaved" not in schedules and min(vpp) > 1:
        raise InputError(
            f"constraints contradict each other: {_show('vpp', vpp)} needs schedule interleaved, found "
            f"{_show('schedule', schedules)}"
        )


def _show(name: str, values: tuple[Any, ...]) -> str:
    return f"{name} = {' or '.join(map(str, values))}"

"""What the best plan is best at: orders of plans, each from a step's time and from what the devices cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..spending.mixin import ENERGIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..systems.system import System
    from .space import SearchQuestion


@dataclass(frozen=True)
class Criterion:
    """An order of plans. The plans of one question are compared by time alone; several questions by the value.

    Attributes:
        column: the name of its value in a table.
        value: of a step that takes some seconds; by joules of resources, of one that takes some joules.
        largest: whether more is better.
        needs: the figure of the system that it reads, if any.
        basis: of joules, as `run.energy()` names it: "resources" or "board"; None where none are counted.
    """

    column: str
    value: Callable[[SearchQuestion, float], float]
    largest: bool
    needs: str | None = None
    basis: str | None = None

    def score(self, question: SearchQuestion, amount: float) -> float:
        """Of a step of so many seconds, or joules: lower is better."""
        value = self.value(question, amount)
        return -value if self.largest else value


def _time(_: SearchQuestion, time: float) -> float:
    return time


def _tokens_per_dollar(question: SearchQuestion, time: float) -> float:
    price = question.device_second
    assert price is not None
    return question.batch * question.sequence / (time * question.devices * price)


def _tokens_per_joule(question: SearchQuestion, joules: float) -> float:
    return question.batch * question.sequence / joules


def _tokens_per_board_joule(question: SearchQuestion, time: float) -> float:
    power = question.base.system.value("power")  # watts of a device at its limit: energy is at most this
    return question.batch * question.sequence / (time * question.devices * power)


CRITERIA = {
    "time": Criterion("time_s", _time, largest=False),
    "tokens_per_dollar": Criterion("tokens_per_dollar", _tokens_per_dollar, largest=True),
    "tokens_per_joule": Criterion(
        "tokens_per_joule", _tokens_per_board_joule, largest=True, needs="power", basis="board"
    ),
}
BY_RESOURCES = Criterion("tokens_per_joule", _tokens_per_joule, largest=True, basis="resources")
"""Tokens per joule where the system tells the energies of FLOPs and bytes, or some of them."""


def by_energy(name: str, system: System, values: Mapping[str, Any]) -> bool:
    """Whether plans are ranked by the joules of resources, and not by time."""
    told = {*system.quantities, *values}
    return name == "tokens_per_joule" and any(f"{each}_energy" in told for each in ENERGIES)


def criterion(name: str, question: SearchQuestion) -> Criterion:
    """The order of a name.

    Raises:
        InputError: an unknown name, or one that needs a figure which the system does not have.
    """
    if not isinstance(name, str) or name not in CRITERIA:
        raise InputError(f"by: found {quote(name)}, expected {' or '.join(CRITERIA)}{nearest(str(name), CRITERIA)}")
    found = BY_RESOURCES if question.by_energy else CRITERIA[name]
    if name == "tokens_per_dollar":
        check_priced(question, f"by: {name}")
    if found.needs is not None and found.needs not in question.base.system.quantities:
        raise InputError(f"by: {name} needs {found.needs}, which system {question.system.name} does not have; set it")
    return found


def check_priced(question: SearchQuestion, what: str) -> None:
    """Refuse to rank by dollars where the system has no price, or where they differ by the joules of each plan.

    Raises:
        InputError: naming what to set.
    """
    try:
        known = question.device_second
    except InputError as error:
        raise InputError(f"{what}: {str(error).removeprefix('cost: ')}") from None
    if known is None:
        raise InputError(
            f"{what}: system {question.system.name} has an electricity_price and energies of FLOPs and bytes, so that "
            "dollars are not those of time alone; set price_per_hour"
        )

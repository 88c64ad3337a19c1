"""What questions take for a model, a system and a plan: the object, or the name or path that it is loaded from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from ..common.errors import InputError, quote

if TYPE_CHECKING:
    from ..models.model import Model
    from ..systems.system import System
    from .plan import Plan

    Loaded = TypeVar("Loaded", Model, System)


def load_model(model: Model | str | os.PathLike[str]) -> Model:
    """A model, or the one of a name or a path.

    Raises:
        InputError: there is none, or it is something else.
    """
    from ..models.model import Model as _Model

    return _load(_Model, model)


def load_system(system: System | str | os.PathLike[str]) -> System:
    """A system, or the one of a name or a path.

    Raises:
        InputError: there is none, or it is something else.
    """
    from ..systems.system import System as _System

    return _load(_System, system)


def _load(kind: type[Loaded], given: Loaded | str | os.PathLike[str]) -> Loaded:
    """What is given, or what its kind loads by that name or path."""
    if isinstance(given, kind):
        return given
    if isinstance(given, str | os.PathLike):
        return kind.load(given)
    name = kind.__name__
    raise InputError(f"{name.lower()}: found {quote(given)}, expected a {name}, a name of the catalogue or a path")


def load_plan(plan: Plan | None) -> Plan:
    """A plan, or where there is none that of one device.

    Raises:
        InputError: it is something else.
    """
    from .plan import Plan as _Plan

    if plan is None:
        return _Plan()
    if isinstance(plan, _Plan):
        return plan
    raise InputError(f"plan: found {quote(plan)}, expected a Plan, such as Plan(tp=8, dp=2)")

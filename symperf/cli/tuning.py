"""What `symperf train --method` asks for: a step that runs several models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..models.model import Model

if TYPE_CHECKING:
    import argparse

    from ..plans.plan import Plan
    from ..runs.tuning import Tuning
    from ..systems.system import System
    from .settings import Answers

MODELS = ("teacher", "reward_model")


def tuning_of(
    options: argparse.Namespace, model: Model, system: System, plan: Plan, *, images: tuple[Any, ...], **asked: Any
) -> Tuning | None:
    """The step of the method that is asked for; None where none is.

    Raises:
        InputError: what is of methods without one, or what the method refuses.
    """
    own = {name: getattr(options, name) for name in ("prompt", "group", "rollout")}
    given = [name for name, value in own.items() if value is not None]
    given += [name for name in MODELS if getattr(options, name)] + ["no_reference"] * options.no_reference
    if options.method is None:
        if given:
            raise InputError(f"{given[0]}: is of methods that run several models, found none; add --method")
        return None
    if images:
        raise InputError(f"images: found some with method {options.method}, whose steps with images are not modelled")
    from ..runs.tuning import Tuning as _Tuning

    own |= {name: Model.load(path) if (path := getattr(options, name)) else None for name in MODELS}
    return _Tuning(model, system, plan, method=options.method, reference=not options.no_reference, **asked, **own)


def told_of(step: Tuning | None) -> dict[str, Answers | None]:
    """What is said of a step beside its update, by key; nothing where no method is asked for."""
    if step is None:
        return {}
    from ..report.tuning import TuningReport

    return {"method": TuningReport(step)}

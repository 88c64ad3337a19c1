"""`symperf train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..models.model import Model
from ..models.sounds import parse_media
from ..report.tuning import TuningReport
from ..runs.training_run import Run
from ..systems.system import System
from .settings import parse_values, plan_of, print_run

if TYPE_CHECKING:
    import argparse

    from ..plans.plan import Plan
    from ..runs.tuning import Tuning


def run(options: argparse.Namespace) -> int:
    """Print the answers for one training step."""
    from ..report import training as report

    values = parse_values(options.set)
    plan = plan_of(options, values, training=True)
    batch, sequence = values.pop("batch", options.batch), values.pop("sequence", options.sequence)
    model, system = Model.load(options.model, options.ignore_key), System.load(options.system)
    sequence = _of_images(model) if sequence is None else sequence
    if options.encoder_sequence is not None:
        values.setdefault("encoder_sequence", options.encoder_sequence)
    images = parse_media(options.images, options.frames, options.sounds)
    work = {"batch": batch, "sequence": sequence, "stack": options.stack}
    step = tuning_of(options, model, system, plan, **work, values=values)
    if step is None:
        print_run(Run(model, system, plan, **work, images=images, values=values), report, options)
        return 0
    if images:
        raise InputError(f"images: found some with method {step.name}, whose steps with images are not modelled")
    print_run(step.update, report, options, beside={"method": TuningReport(step)})
    return 0


def tuning_of(options: argparse.Namespace, model: Model, system: System, plan: Plan, **asked: Any) -> Tuning | None:
    """The step of the method that is asked for; None where none is.

    Raises:
        InputError: what is of methods without one, or what the method refuses.
    """
    from ..runs.tuning import Tuning as _Tuning

    own = {name: getattr(options, name) for name in ("prompt", "group", "rollout")}
    names = ("teacher", "reward_model")
    given = [name for name, value in own.items() if value is not None]
    given += [name for name in names if getattr(options, name)] + ["no_reference"] * options.no_reference
    if options.method is None:
        if given:
            raise InputError(f"{given[0]}: is of methods that run several models, found none; add --method")
        return None
    own |= {name: Model.load(path) if (path := getattr(options, name)) else None for name in names}
    return _Tuning(model, system, plan, method=options.method, reference=not options.no_reference, **asked, **own)


def _of_images(model: Model) -> int:
    """Tokens of an image: its patches, and one for its class where there is one.

    Raises:
        InputError: the model reads texts, whose length has to be given.
    """
    if not model.architecture.patches:
        raise InputError("train: the following arguments are required: --sequence")
    return model.image_positions

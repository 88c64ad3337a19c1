"""`symperf train`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..models.model import Model
from ..models.sounds import parse_media
from ..runs.training_run import Run
from ..systems.system import System
from .settings import parse_values, plan_of, print_run

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print the answers for one training step."""
    from ..report import training as report

    values = parse_values(options.set)
    plan = plan_of(options, values, options.stack)
    batch, sequence = values.pop("batch", options.batch), values.pop("sequence", options.sequence)
    model, system = Model.load(options.model, options.ignore_key), System.load(options.system)
    sequence = _of_images(model) if sequence is None else sequence
    if options.encoder_sequence is not None:
        values.setdefault("encoder_sequence", options.encoder_sequence)
    images = parse_media(options.images, options.frames, options.sounds)
    work = {"batch": batch, "sequence": sequence, "stack": options.stack, "images": images}
    answer = Run(model, system, plan, **work, values=values)
    print_run(answer, report, options)
    return 0


def _of_images(model: Model) -> int:
    """Tokens of an image: its patches, and one for its class where there is one.

    Raises:
        InputError: the model reads texts, whose length has to be given.
    """
    if not model.architecture.patches:
        raise InputError("train: the following arguments are required: --sequence")
    return model.image_positions

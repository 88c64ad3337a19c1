"""`symperf train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..common.errors import InputError
from ..models.sounds import parse_media
from ..plans.plan import positive_integer
from ..runs.training_run import Run
from ..systems.system import System
from .documents import documents_of
from .framework_file import fill_in, model_asked, require
from .plots import check_plot, show_bars, write_plot
from .settings import parse_values, plan_of, print_run
from .timeline import check_timeline, write_timeline
from .tuning import told_of, tuning_of

if TYPE_CHECKING:
    import argparse

    from ..frameworks.settings import FrameworkSettings
    from ..models.model import Model
    from ..pictures.figure import Sheet
    from ..runs.tuning import Tuning
    from ..timeline.chrome import Timeline
    from ..train.document_lengths import Documents


class Asked(NamedTuple):
    """What a command line asks for.

    Attributes:
        answer: the step, or the update of a method's.
        step: the step of a method that runs several models.
        documents: that share sequences.
        settings: of a framework's file.
    """

    answer: Run
    step: Tuning | None
    documents: Documents | None
    settings: FrameworkSettings | None


def run(options: argparse.Namespace) -> int:
    """Print the answers for one training step."""
    from ..report import bars
    from ..report import training as report
    from ..report.documents import DocumentAnswers

    check_timeline(options)
    check_plot(options)
    answer, step, documents, settings = ask(options)
    write_timeline(options, lambda: _timeline(answer))
    write_plot(options, lambda: _picture(answer))
    told = None if documents is None else DocumentAnswers(answer, documents)
    print_run(answer, report, options, above=told_of(step), beside={"documents": told, "from": settings})
    show_bars(options, lambda: bars.of_run(answer))
    return 0


def ask(options: argparse.Namespace) -> Asked:
    """The run that the options ask for.

    Raises:
        InputError: something is missing, an impossible plan, an unknown name or a value out of range.
    """
    settings = fill_in(options)
    values = parse_values(options.set)
    require(options, values)
    plan = plan_of(options, values, training=True, stack=None if settings else options.stack)
    batch, sequence = values.pop("batch", options.batch), values.pop("sequence", options.sequence)
    model, system = model_asked(options), System.load(options.system)
    sequence = _of_images(model) if sequence is None else sequence
    if options.encoder_sequence is not None:
        values.setdefault("encoder_sequence", options.encoder_sequence)
    images = parse_media(options.images, options.frames, options.sounds)
    batch, sequence = positive_integer("batch", batch), positive_integer("sequence", sequence)
    documents = documents_of(options, plan, batch, sequence)
    sequence = documents.tokens if documents else sequence
    for name, value in documents.symbols().items() if documents else ():
        values.setdefault(name, value)
    work = {"batch": batch, "sequence": sequence, "stack": options.stack}
    step = tuning_of(options, model, system, plan, images=images, **work, values=values)
    answer = step.update if step else Run(model, system, plan, **work, images=images, values=values)
    return Asked(answer, step, documents, settings)


def _picture(answer: Run) -> Sheet:
    from ..report.picture_training import sheet

    return sheet(answer)


def _timeline(answer: Run) -> Timeline:
    from ..timeline.training import training_timeline

    return training_timeline(answer)


def _of_images(model: Model) -> int:
    """Tokens of an image: its patches, and one for its class where there is one.

    Raises:
        InputError: the model reads texts, whose length has to be given.
    """
    if not model.architecture.patches:
        raise InputError("train: the following arguments are required: --sequence")
    return model.image_positions

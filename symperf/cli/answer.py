"""How an answer of the algebra is printed: text, `--json`, `--latex`, a picture, to a file or to standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..common.outputs import check_file, write_file
from .output import columns, write, write_json
from .plots import check_plot, write_plot

if TYPE_CHECKING:
    import argparse

    from ..analysis.answers import Answer


def check_output(options: argparse.Namespace) -> None:
    """Refuse ways of printing that do not go together, before the work whose result they are to show.

    Raises:
        InputError: two formats at once, or a file that cannot be written.
    """
    if options.json and (options.latex or options.output is not None):
        raise InputError(
            f"{options.verb}: --json prints one object, without --{'latex' if options.latex else 'output'}"
        )
    if options.output is not None:
        check_file(options.output, f"{options.verb}: --output {{}}: cannot be written")
    check_plot(options)


def deliver(answer: Answer, options: argparse.Namespace) -> int:
    """Print an answer as the options say.

    Raises:
        InputError: two formats at once, or a file that cannot be written.
    """
    check_output(options)
    write_plot(options, lambda: answer)
    if options.json:
        write_json(answer.to_dict())
        return 0
    text = answer.latex() if options.latex else answer.text(columns(file=options.output is not None)) + "\n"
    if options.output is None:
        write(text)
    else:
        write_file(options.output, text, f"{options.verb}: --output {{}}: cannot be written")
    return 0

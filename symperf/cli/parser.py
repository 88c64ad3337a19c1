"""Flags and verbs; nothing that a verb needs is imported before it runs."""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING, Any, NoReturn

from ..common.deprecations import current_name
from ..common.errors import InputError, nearest, quote
from . import flags
from .output import write, write_error
from .verbs import derives, explores, looks, measures, questions, runs, searches, sweeps, technologies, tools, validates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


LONGEST = 1000
"""Characters of a message of argparse."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, with the nearest valid name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """Raise the message as an `InputError`."""
        if len(message) > LONGEST:  # argparse quotes what it was given in full
            message = f"{message[: LONGEST // 2]}...{message[-LONGEST // 4 :]}"
        raise InputError(f"{self.prog.removeprefix('symperf').strip() or 'command line'}: {message}")

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002
        """Print help or the version like any other output."""
        write(message)

    def flags(self) -> list[str]:
        """The long flags that the parser knows."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line; `run` is the verb's function.

    Raises:
        InputError: an unknown verb or flag, with the nearest, or a value of the wrong kind.
    """
    parser, verbs = build()
    arguments = [_current(argument) for argument in arguments]
    run = _position_of_asked_verb(arguments, verbs)
    if run is not None:
        options = parse(arguments[:run])
        options.asked = parse(arguments[run:])
        return options
    _check_names(arguments, parser, verbs)
    options, rest = parser.parse_known_args(arguments)
    if rest:
        raise InputError(f"{options.verb}: unknown argument {quote(rest[0])}")
    options.given = _given(arguments, verbs[options.verb])
    return options


def _current(argument: str) -> str:
    """An argument whose flag has its name of today."""
    if not argument.startswith("--"):
        return argument
    flag, equals, value = argument.partition("=")
    return current_name(flag, lambda line: write_error(f"note: {line}")) + equals + value


def _given(arguments: Sequence[str], verb: Parser) -> frozenset[str]:
    """The names of the options whose flags stand in a command line."""
    flags = {flag: action.dest for action in verb._actions for flag in action.option_strings}
    written = (argument.partition("=")[0] for argument in arguments)
    return frozenset(flags[flag] for flag in written if flag in flags)


def _position_of_asked_verb(arguments: Sequence[str], verbs: dict[str, Parser]) -> int | None:
    """Where `symperf cite ...` goes on with the verb of a run."""
    if list(arguments[:1]) != ["cite"]:
        return None
    return next((place for place, argument in enumerate(arguments) if place and argument in verbs), None)


def _check_names(arguments: Sequence[str], parser: Parser, verbs: dict[str, Parser]) -> None:
    """Refuse unknown verbs and flags before argparse does: it would tell of what is missing without them instead."""
    verb = None
    for argument in arguments:
        if argument == "--":
            return
        if argument.startswith("--") and " " not in argument:  # what argparse takes for a flag
            _check_flag(argument, verb, verbs[verb].flags() if verb else parser.flags())
        elif verb is None and not argument.startswith("-"):
            if argument not in verbs:
                raise InputError(
                    f"command line: unknown verb {quote(argument)}, expected {' or '.join(verbs)}"
                    f"{nearest(argument, verbs)}"
                )
            verb = argument


def _check_flag(argument: str, verb: str | None, known: list[str]) -> None:
    flag, _, value = argument.partition("=")
    if flag not in known:
        if verb is None:
            raise InputError(f"command line: found {quote(flag)} before the verb, expected {' or '.join(known)}")
        raise InputError(f"{verb}: unknown argument {quote(flag)}{nearest(flag, known)}")
    if value == "--":  # argparse of Python 3.11 would drop it
        raise InputError(f"{verb or 'command line'}: argument {flag}: found '--', expected a value")


def build() -> tuple[Parser, dict[str, Parser]]:
    """The parser of the program, and those of its verbs."""
    parser = Parser(
        prog="symperf",
        description="Closed-form time and memory of LLM training on a cluster.",
        epilog="Example: symperf train gpt3-175b -s a100-80gb-sxm --tp 8 --pp 8 --batch 64 --sequence 2048",
    )
    parser.add_argument("--version", action="version", version=f"symperf {_version()}")
    added = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    verbs: dict[str, Parser] = {}

    def verb(name: str, text: str, example: str, module: str) -> Parser:
        sub: Parser = added.add_parser(name, help=text, description=text, epilog=f"Example: {example}")
        sub.set_defaults(run=_lazily(module))
        sub.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
        sub.add_argument(
            "--width", type=flags.width, metavar="N", help="columns of text (default: the terminal's, 120 in a pipe)"
        )
        verbs[name] = sub
        return sub

    for group in (
        runs,
        looks,
        explores,
        sweeps,
        derives,
        questions,
        measures,
        validates,
        technologies,
        searches,
        tools,
    ):
        group.add(verb)
    return parser, verbs


def _lazily(module: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        verb = importlib.import_module(f".{module}", __package__)
        return int(verb.run(options))

    return run


def _version() -> str:
    from ..common.version import VERSION

    return VERSION

"""Flags and verbs; nothing that a verb needs is imported before it runs."""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..errors import InputError, nearest, shown
from .output import write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LATER = ("--cp", "--ep", "--offload")
"""Flags of the public contract whose physics is not modelled yet."""
LISTED = ("models", "systems", "symbols", "formulas")
Number = TypeVar("Number", int, float)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, with the nearest valid name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """Raise the message as an `InputError`."""
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
    _check_names(arguments, parser, verbs)
    options, rest = parser.parse_known_args(arguments)
    if rest:
        raise InputError(f"{options.verb}: unknown argument {shown(rest[0])}")
    return options


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
                    f"command line: unknown verb {shown(argument)}, expected {' or '.join(verbs)}"
                    f"{nearest(argument, verbs)}"
                )
            verb = argument


def _check_flag(argument: str, verb: str | None, known: list[str]) -> None:
    flag, _, value = argument.partition("=")
    if flag not in known:
        if verb is None:
            raise InputError(f"command line: found {shown(flag)} before the verb, expected {' or '.join(known)}")
        if flag in LATER:
            raise InputError(f"{verb}: {flag} is not modelled yet")
        raise InputError(f"{verb}: unknown argument {shown(flag)}{nearest(flag, known)}")
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
        verbs[name] = sub
        return sub

    train = verb(
        "train",
        "Step time, throughput, MFU, memory and breakdown of a training step.",
        "symperf train llama-2-70b -s h100-sxm --tp 8 --pp 4 --dp 4 --batch 256 --sequence 4096",
        "train",
    )
    _model(train)
    train.add_argument("-s", "--system", required=True, help="a catalogue name or the path of a .toml file")
    train.add_argument("--batch", type=whole, required=True, help="sequences in the global batch")
    train.add_argument("--sequence", type=whole, required=True, help="tokens in a sequence")
    _plan(train)
    inspect = verb(
        "inspect",
        "Parameters, KV-cache bytes and forward FLOPs of a model.",
        "symperf inspect llama-2-7b --batch 1 --sequence 4096",
        "inspect",
    )
    _model(inspect)
    inspect.add_argument("--batch", type=whole, default=1, help="sequences (default 1)")
    inspect.add_argument("--sequence", type=whole, default=1, help="tokens in a sequence (default 1)")
    inspect.add_argument(
        "--causal-half", action="store_true", help="count only the pairs of tokens that attention sees"
    )
    lists = verb("list", "What there is.", "symperf list models", "list")
    lists.add_argument("what", type=listed, metavar="WHAT", help=f"what to list: {', '.join(LISTED)}")
    lists.add_argument("-s", "--system", help="with symbols: show the values that this system gives them")
    sweep = verb(
        "sweep",
        "A sweep that a file describes, of any size, into a file; it can be stopped and resumed.",
        "symperf sweep study.toml -o result.zarr",
        "sweep",
    )
    sweep.add_argument("study", help="a .toml file with model, system, batch, sequence, [axes], ...")
    sweep.add_argument("-o", "--output", required=True, metavar="OUT", help=".zarr, .nc, .parquet or .csv")
    sweep.add_argument("--overwrite", action="store_true", help="replace a result, or an unfinished one")
    sweep.add_argument("--resume", action="store_true", help="go on with an unfinished one")
    sweep.add_argument("--dask", metavar="ADDRESS", help="compute on the Dask cluster of this scheduler")
    cache = verb("cache", "Show or clear the cache of compiled structures and kernels.", "symperf cache", "cache")
    cache.add_argument("--clear", action="store_true", help="remove everything that is kept")
    return parser, verbs


def _model(parser: Parser) -> None:
    parser.add_argument("model", help="a catalogue name, the path of a config.json, or a folder that holds one")


def _plan(parser: Parser) -> None:
    group = parser.add_argument_group("plan")
    for name, text in (
        ("tp", "tensor-parallel degree"),
        ("pp", "pipeline stages"),
        ("dp", "replicas"),
        ("vpp", "virtual stages per device"),
        ("micro-batch", "sequences in a micro-batch"),
    ):
        group.add_argument(f"--{name}", type=whole, default=1, help=f"{text} (default 1)")
    group.add_argument("--recompute", default="none", metavar="MODE", help="none, selective or full")
    group.add_argument("--sequence-parallel", action=argparse.BooleanOptionalAction, default=False)
    group.add_argument("--zero", type=whole, default=0, help="ZeRO stage, 0 or 1 (default 0)")
    group.add_argument("--schedule", metavar="NAME", help="gpipe, 1f1b or interleaved (default: by --vpp)")
    group.add_argument("--precision", metavar="NAME", help="bf16 or fp16 (default: what the device has)")
    group.add_argument("--attention", metavar="KIND", help="eager or flash (default: eager with dropout)")
    group.add_argument("--dropout", action=argparse.BooleanOptionalAction, help="default: as the model's config says")
    group.add_argument(
        "--overlap-tp", type=number, default=1.0, metavar="F", help="part of tensor-parallel traffic that may hide"
    )
    group.add_argument(
        "--overlap-dp", type=number, default=0.0, metavar="F", help="part of a backward pass that hides gradients"
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of any symbol (see: symperf list symbols); may be repeated, and overrides the flag of its name",
    )


def whole(text: str) -> int:
    """A whole number."""
    if (found := numeral(text, int)) is None:
        raise argparse.ArgumentTypeError(f"found {shown(text)}, expected a whole number")
    return found


def number(text: str) -> float:
    """A number."""
    if (found := numeral(text, float)) is None:
        raise argparse.ArgumentTypeError(f"found {shown(text)}, expected a number")
    return found


def numeral(text: str, kind: type[Number]) -> Number | None:
    """The number that a text is, or None; digits of other scripts and underscores are none, although Python has them.

    >>> numeral("12", int), numeral("1_2", int), numeral("1e3", float)
    (12, None, 1000.0)
    """
    try:
        return kind(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def listed(text: str) -> str:
    """One of the kinds of things that `symperf list` knows."""
    if text not in LISTED:
        raise argparse.ArgumentTypeError(f"found {shown(text)}, expected {' or '.join(LISTED)}{nearest(text, LISTED)}")
    return text


def _lazily(module: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        verb = importlib.import_module(f".{module}", __package__)
        return int(verb.run(options))

    return run


def _version() -> str:
    from .. import __version__

    return __version__

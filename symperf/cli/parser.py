"""Flags and verbs; nothing that a verb needs is imported before it runs."""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..errors import InputError, nearest, shown
from .output import write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LATER = ("--offload",)
"""Flags of the public contract whose physics is not modelled yet."""
LISTED = ("models", "systems", "stacks", "symbols", "formulas")
INFER_DEFINITIONS = """\
prefill         from the first prompt token entering to the first generated token of every sequence (TTFT)
decode          all later tokens, a step each; time per token is the mean step (TPOT)
throughput      generated tokens of all sequences over prefill and decode, all devices together
MFU of prefill  model FLOPs over time, devices and dense peak
MBU of decode   bytes that a device moves in a step over its time and peak bandwidth"""
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
    run = _asked(arguments, verbs)
    if run is not None:
        options = parse(arguments[:run])
        options.asked = parse(arguments[run:])
        return options
    _check_names(arguments, parser, verbs)
    options, rest = parser.parse_known_args(arguments)
    if rest:
        raise InputError(f"{options.verb}: unknown argument {shown(rest[0])}")
    return options


def _asked(arguments: Sequence[str], verbs: dict[str, Parser]) -> int | None:
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
    _infer(verb)
    _serve(verb)
    inspect = verb(
        "inspect",
        "Parameters, KV-cache bytes and forward FLOPs of a model.",
        "symperf inspect llama-2-7b --batch 1 --sequence 4096",
        "inspect",
    )
    _model(inspect)
    inspect.add_argument("--batch", type=whole, default=1, help="sequences (default 1)")
    inspect.add_argument("--sequence", type=whole, default=1, help="tokens in a sequence (default 1)")
    inspect.add_argument("--encoder-sequence", type=whole, help="tokens of the encoder's input, of models with one")
    inspect.add_argument("--context", type=whole, help="count generation: tokens cached before the --sequence new ones")
    inspect.add_argument("--absorbed", action="store_true", help="with --context: latent attention over latents")
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
    sweep.add_argument(
        "--resume", action="store_true", help="go on with an unfinished one; a finished one of the same study stays"
    )
    sweep.add_argument("--dask", metavar="ADDRESS", help="compute on the Dask cluster of this scheduler")
    _derive(verb)
    _formulas(verb)
    cite = verb(
        "cite",
        "BibTeX of the method, of one formula, or of all that a run uses.",
        "symperf cite train gpt-22b -s a100-80gb-sxm --tp 8 --batch 8 --sequence 2048",
        "cite",
    )
    cite.add_argument(
        "name", nargs="?", help="a formula or a source's key; or: train or infer, and all of its arguments"
    )
    cite.add_argument("--all", action="store_true", help="every source that a formula cites")
    cite.set_defaults(asked=None)
    cache = verb("cache", "Show or clear the cache of compiled structures and kernels.", "symperf cache", "cache")
    cache.add_argument("--clear", action="store_true", help="remove everything that is kept")
    return parser, verbs


def _infer(verb: Callable[[str, str, str, str], Parser]) -> None:
    infer = verb(
        "infer",
        "Prefill, time per token, total latency, memory, and the bound of every operation.",
        "symperf infer llama-2-70b -s h100-sxm --tp 8 --batch 1 --prompt 200 --generate 200",
        "infer",
    )
    infer.epilog = f"{INFER_DEFINITIONS}\n\n{infer.epilog}"
    _model(infer)
    infer.add_argument("-s", "--system", required=True, help="a catalogue name or the path of a .toml file")
    infer.add_argument("--batch", type=whole, required=True, help="sequences, over all replicas")
    infer.add_argument("--prompt", type=whole, required=True, help="tokens of each prompt")
    infer.add_argument("--generate", type=whole, required=True, help="tokens generated for each")
    _software(infer)
    _plan(infer)


def _serve(verb: Callable[[str, str, str, str], Parser]) -> None:
    from ..batching.definitions import as_text

    serve = verb(
        "serve",
        "The largest load within latency targets, or all metrics at a load; throughput-latency curve.",
        "symperf serve llama-2-70b -s h100-sxm --tp 8 --prompt 1024 --generate 256 --ttft 0.5 --tpot 0.05",
        "serve",
    )
    serve.epilog = f"{as_text()}\n\n{serve.epilog}"
    _model(serve)
    serve.add_argument("-s", "--system", required=True, help="a catalogue name or the path of a .toml file")
    serve.add_argument("--prompt", type=whole, required=True, help="tokens of each prompt (P)")
    serve.add_argument("--generate", type=whole, required=True, help="tokens generated for each (G)")
    serve.add_argument("--ttft", type=number, metavar="T", help="longest mean time to the first token, seconds")
    serve.add_argument("--tpot", type=number, metavar="T", help="longest mean time of each later token, seconds")
    serve.add_argument("--load", type=number, metavar="R", help="requests a second at all replicas (default: largest)")
    serve.add_argument("--chunk", type=whole, metavar="TOKENS", help="prompt tokens of an iteration (default 2048)")
    group = serve.add_argument_group("speculative decoding")
    group.add_argument("--draft", metavar="MODEL", help="a draft model; it runs on the same devices")
    group.add_argument("--acceptance", type=number, metavar="A", help="probability that a drafted token is accepted")
    group.add_argument("--draft-length", type=whole, metavar="K", help="tokens drafted for a step (default: the best)")
    _software(serve)
    _plan(serve)


def _software(parser: Parser) -> None:
    group = parser.add_argument_group("serving software")
    group.add_argument("--stack", metavar="NAME", help="a profile (see: symperf list stacks), or the path of one")
    group.add_argument("--kv-precision", metavar="NAME", help="format of the cache: fp16, bf16, fp8 or int8")


def _derive(verb: Callable[[str, str, str, str], Parser]) -> None:
    derive = verb(
        "derive",
        "The closed form of a quantity, term by term inside the current regime; as text, LaTeX or code.",
        "symperf derive train gpt3-175b -s a100-80gb-sxm --tp 8 --pp 8 --batch 64 --sequence 2048 --term layer/mlp",
        "derive",
    )
    derive.add_argument("what", metavar="KIND", help="train or infer")
    _model(derive)
    derive.add_argument("-s", "--system", required=True, help="a catalogue name or the path of a .toml file")
    derive.add_argument("--batch", type=whole, help="sequences in the global batch")
    derive.add_argument("--sequence", type=whole, help="of train: tokens in a sequence")
    derive.add_argument("--prompt", type=whole, help="of infer: tokens of each prompt")
    derive.add_argument("--generate", type=whole, help="of infer: tokens generated for each")
    derive.add_argument(
        "--of", default="time", metavar="QUANTITY", help="time (default), memory, tokens_per_s, mfu, ..."
    )
    derive.add_argument("--term", metavar="PATH", help="a term of the breakdown, or a folder of terms: layer/mlp")
    derive.add_argument(
        "--free", action="append", default=[], metavar="NAME", help="a symbol that varies; all others become numbers"
    )
    derive.add_argument(
        "--fold",
        action="append",
        default=[],
        metavar="NAME",
        help="what becomes a number: formats (default), efficiencies, tiles, all, none, or a symbol; may be repeated",
    )
    derive.add_argument(
        "--below", type=number, default=0.01, metavar="SHARE", help="drop lines of a smaller share (default 0.01)"
    )
    derive.add_argument("--whole", action="store_true", help="print also the whole closed form over named terms")
    derive.add_argument("--wrt", metavar="NAME", help="print also the regimes and crossovers along a symbol")
    derive.add_argument("--from", dest="from_", type=number, metavar="A", help="with --wrt: from this value")
    derive.add_argument("--to", type=number, metavar="B", help="with --wrt: to this value")
    group = derive.add_mutually_exclusive_group()
    for name, text in (
        ("latex", "a LaTeX document that needs amsmath only"),
        ("fragment", "its align block of the lines"),
        ("unicode", "text (default)"),
        ("python", "a Python function of the free symbols, or of all"),
        ("c", "the same in C99"),
        ("js", "the same as an ES module"),
    ):
        group.add_argument(f"--{name}", action="store_true", help=f"print {text}")
    derive.add_argument("-o", "--output", metavar="FILE", help="write to a file; its suffix may say the format")
    _software(derive)
    _plan(derive)


def _formulas(verb: Callable[[str, str, str, str], Parser]) -> None:
    formulas = verb(
        "formulas",
        "Every formula with its equation, symbols, assumptions, proofs and source; also as a book.",
        "symperf formulas ring_all_reduce_time",
        "formulas",
    )
    formulas.add_argument("name", nargs="?", help="one formula; without it the list of all")
    group = formulas.add_mutually_exclusive_group()
    group.add_argument("--latex", action="store_true", help="print equations only, in LaTeX")
    for kind, text in (
        ("pdf", "write the book as PDF (needs pdflatex)"),
        ("tex", "write its LaTeX, which needs amsmath only"),
        ("md", "write it as Markdown"),
        ("html", "write it as one HTML file with MathML (needs symperf[book])"),
    ):
        group.add_argument(f"--{kind}", metavar="FILE", help=text)


def _model(parser: Parser) -> None:
    parser.add_argument("model", help="a catalogue name, the path of a config.json, or a folder that holds one")


def _plan(parser: Parser) -> None:
    group = parser.add_argument_group("plan")
    for name, text in (
        ("tp", "tensor-parallel degree (default 1)"),
        ("pp", "pipeline stages (default 1)"),
        ("dp", "replicas (default 1)"),
        ("vpp", "virtual stages per device (default 1)"),
        ("micro-batch", "sequences in a micro-batch (default: 1 in training, all in inference)"),
    ):
        group.add_argument(f"--{name}", type=whole, default=None if name == "micro-batch" else 1, help=text)
    group.add_argument("--ep", type=whole, default=1, help="devices over which experts are dealt (default 1)")
    group.add_argument("--expert-tp", type=whole, help="tensor-parallel degree inside an expert")
    group.add_argument("--cp", type=whole, default=1, help="parts of a sequence (default 1)")
    group.add_argument("--cp-kind", default="ring", metavar="KIND", help="ring (default), all-to-all or all-gather")
    group.add_argument("--node-limit", type=whole, metavar="N", help="scale-up domains for the experts of a token")
    group.add_argument("--recompute", default="none", metavar="MODE", help="none, selective or full")
    group.add_argument("--sequence-parallel", action=argparse.BooleanOptionalAction, default=False)
    group.add_argument("--zero", type=whole, default=0, help="ZeRO stage, 0 to 3 (default 0)")
    group.add_argument("--zero-shards", type=whole, metavar="N", help="hybrid sharding: replicas of a shard group")
    group.add_argument(
        "--schedule",
        metavar="NAME",
        help="gpipe, 1f1b, interleaved, zero-bubble, zb-h2, zero-bubble-2p or dualpipe (default: by --vpp)",
    )
    group.add_argument("--uneven-stages", action=argparse.BooleanOptionalAction, default=False)
    group.add_argument("--first-stage-layers", type=whole, metavar="N", help="with --last-stage-layers")
    group.add_argument("--last-stage-layers", type=whole, metavar="N", help="with --first-stage-layers")
    group.add_argument(
        "--precision", metavar="NAME", help="bf16 or fp16 (default: what the device has); inference has more"
    )
    group.add_argument("--attention", metavar="KIND", help="eager or flash (default: eager with dropout)")
    group.add_argument("--dropout", action=argparse.BooleanOptionalAction, help="default: as the model's config says")
    group.add_argument(
        "--overlap-tp", type=number, default=1.0, metavar="F", help="part of tensor-parallel traffic that may hide"
    )
    group.add_argument(
        "--overlap-dp", type=number, default=0.0, metavar="F", help="part of a backward pass that hides gradients"
    )
    group.add_argument(
        "--overlap-ep", type=number, default=1.0, metavar="F", help="part of expert traffic that DualPipe may hide"
    )
    group.add_argument(
        "--overlap-gather", type=number, default=1.0, metavar="F", help="part of ZeRO-3's gathering that may hide"
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

"""Groups of flags that several verbs share, and the types of their values."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..common.errors import quote
from ..common.numbers import numeral
from ..plans.fields import LARGEST
from ..plans.plan_fields import FIELDS
from .output import NARROWEST

if TYPE_CHECKING:
    from ..plans.fields import Field
    from .parser import Parser


WIDEST = 10_000
"""Columns that anyone asks for."""


def model(parser: Parser, *, optional: bool = False) -> None:
    """The model, which a file may name instead where it is optional."""
    told = "a catalogue name, the path of a config.json, or a folder that holds one"
    parser.add_argument("model", nargs="?" if optional else None, help=told)
    parser.add_argument(
        "--ignore-key",
        action="append",
        default=[],
        metavar="NAME",
        help="read the model's file as if it had no such key; for keys whose meaning is not known; may be repeated",
    )


def system(parser: Parser, *, optional: bool = False) -> None:
    """The system, which a verb asks for by itself where it is optional here."""
    parser.add_argument("-s", "--system", required=not optional, help="a catalogue name or the path of a .toml file")


def question(parser: Parser) -> None:
    """A kind of run, its model, its system and its work."""
    parser.add_argument("what", metavar="KIND", help="train, infer or serve")
    model(parser)
    system(parser)
    parser.add_argument("--batch", type=whole, help="of train and infer: sequences in the global batch")
    parser.add_argument("--sequence", type=whole, help="of train: tokens in a sequence")
    parser.add_argument("--prompt", type=whole, help="of infer and serve: tokens of each prompt")
    parser.add_argument("--generate", type=whole, help="of infer and serve: tokens generated for each")
    parser.add_argument("--concurrency", type=whole, metavar="N", help="of serve: sequences that a replica decodes")
    parser.add_argument("--chunk", type=whole, metavar="TOKENS", help="of serve: prompt tokens of an iteration")
    parser.add_argument("--prefix", type=whole, metavar="TOKENS", help="of infer: of each prompt that are in the cache")
    parser.add_argument(
        "--lora-adapters",
        type=whole,
        metavar="N",
        help="of infer and serve: slots of adapters of requests, whose rank is --lora-rank (default 1)",
    )
    images(parser, "join the prompt, of infer")


def software(parser: Parser) -> None:
    """The serving software and its cache."""
    group = parser.add_argument_group("serving software")
    group.add_argument("--stack", metavar="NAME", help="a profile (see: symperf list stacks), or the path of one")
    group.add_argument(
        "--kv-precision", metavar="NAME", help="format of the cache: fp16, bf16, fp8, int8, nvfp4, int4, q8_0 or q4_0"
    )
    group.add_argument(
        "--memory-utilization", type=number, metavar="F", help="part of a device's memory that the software takes"
    )


def dask(parser: Parser) -> None:
    """A cluster that computes."""
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="compute on the Dask cluster of this scheduler, which may run code here: name one that you trust",
    )
    parser.add_argument(
        "--dask-tls", metavar="CA,CERT,KEY", help="speak to those alone whom this authority has signed (tls://...)"
    )


def longest(parser: Parser) -> None:
    """How long a context may be."""
    parser.add_argument(
        "--longest",
        type=whole,
        nargs="?",
        const=1,
        metavar="N",
        help="the longest context of which N sequences fit (default 1)",
    )


def speculation(parser: Parser) -> None:
    """What drafts tokens, and how many of them are accepted."""
    group = parser.add_argument_group("speculative decoding")
    group.add_argument(
        "--speculate",
        metavar="WAY",
        help="mtp (the model's own head), eagle or eagle3 (a head's file, --draft), or draft (a model, --draft)",
    )
    group.add_argument("--draft", metavar="MODEL", help="a draft model or a head's file; it runs on the same devices")
    group.add_argument(
        "--acceptance",
        type=numbers,
        metavar="A[,A...]",
        help="probability that a drafted token is accepted once those before it are; or one for each position",
    )
    group.add_argument("--draft-length", type=whole, metavar="K", help="tokens drafted for a step (default: the best)")


def adapters(parser: Parser) -> None:
    """Low-rank adapters of requests."""
    group = parser.add_argument_group("adapters of requests (LoRA)")
    group.add_argument("--lora-rank", type=whole, metavar="R", help="rank of their slots; 0: there are none")
    group.add_argument("--lora-adapters", type=whole, metavar="N", help="slots, each with an adapter (default 1)")
    group.add_argument(
        "--lora-targets",
        metavar="NAMES",
        help="linear layers that have them, with commas between, as q_proj,v_proj (default: all that the model has)",
    )


def workload(parser: Parser) -> None:
    """How requests come, and how they differ."""
    group = parser.add_argument_group("requests in flight or at once, instead of a load")
    group.add_argument("--concurrency", type=whole, metavar="N", help="requests in flight, each replaced as it ends")
    group.add_argument(
        "--requests", type=whole, metavar="M", help="of a run that sends N at once and then keeps N in flight"
    )
    group.add_argument("--burst", type=whole, metavar="N", help="requests that arrive at once, and none after them")
    group = parser.add_argument_group("lengths that differ, and what is cached of a prompt")
    group.add_argument("--prompt-spread", type=number, metavar="R", help="prompts of (1 - R) to (1 + R) times P tokens")
    group.add_argument("--generate-spread", type=number, metavar="R", help="likewise of what is generated")
    group.add_argument("--max-generate", type=whole, metavar="TOKENS", help="that memory is reserved for")
    group.add_argument("--prefix", type=whole, metavar="TOKENS", help="that all prompts begin with, and find cached")
    group.add_argument("--turns", type=whole, metavar="K", help="requests of a conversation, which send it all again")
    group.add_argument("--hit-rate", type=number, metavar="F", help="part that finds them cached (default 1)")


def images(parser: Parser, counted: str = "join the prompt") -> None:
    """Images and recordings of each sequence, with where their tokens are counted."""
    parser.add_argument(
        "--images",
        action="append",
        default=[],
        metavar="COUNTxHxW",
        help=f"images of each sequence by height and width in pixels, whose tokens {counted}; may be repeated",
    )
    parser.add_argument(
        "--frames",
        type=whole,
        default=1,
        metavar="N",
        help="frames of each of them, as of a video; without images, spectra of 10 ms of one recording",
    )
    parser.add_argument(
        "--sounds",
        action="append",
        default=[],
        metavar="COUNTxFRAMES",
        help=f"recordings of each sequence by spectra of 10 ms, whose tokens {counted}; may be repeated",
    )


def plan(parser: Parser, *, requests: bool = False) -> None:
    """Every field of a plan, and `--set`; where adapters are those of `requests`, they have flags of their own."""
    group = parser.add_argument_group("plan")
    for field in FIELDS.values():
        if requests and field.adapters:
            continue
        group.add_argument(f"--{field.name.replace('_', '-')}", default=field.default, **_flag(field))
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of any symbol (see: symperf list symbols); may be repeated, and overrides the flag of its name",
    )


def _flag(field: Field) -> dict[str, Any]:
    """What a flag of a field takes and says."""
    if field.kind == "flag":
        return {"action": argparse.BooleanOptionalAction, "help": field.sentence}
    default = "" if field.optional else f" (default {field.default})"
    found: dict[str, Any] = {"help": field.sentence + default, "metavar": field.metavar or _METAVARS[field.kind]}
    if field.numeric or isinstance(field.default, int):
        found["type"] = number if field.kind == "fraction" else whole
    return found


_METAVARS = {"degree": "N", "count": "N", "fraction": "F", "choice": "NAME", "list": "LIST", "text": "TEXT"}


def whole(text: str) -> int:
    """A whole number."""
    if (found := numeral(text, int)) is None:
        most = f" of at most {LARGEST}" if text.strip().removeprefix("+").isdecimal() and text.isascii() else ""
        raise argparse.ArgumentTypeError(f"found {quote(text)}, expected a whole number{most}")
    return found


def width(text: str) -> int:
    """Columns of text."""
    found = numeral(text, int)
    if found is None or not NARROWEST <= found <= WIDEST:
        raise argparse.ArgumentTypeError(f"found {quote(text)}, expected a whole number from {NARROWEST} to {WIDEST}")
    return found


def numbers(text: str) -> float | tuple[float, ...]:
    """A number, or several with commas between."""
    found = tuple(number(part) for part in text.split(","))
    return found if len(found) > 1 else found[0]


def number(text: str) -> float:
    """A number."""
    if (found := numeral(text, float)) is None:
        raise argparse.ArgumentTypeError(f"found {quote(text)}, expected a number")
    return found


def plot(parser: Any, what: str) -> None:
    """The flag of a picture.

    Args:
        parser: of a verb, or a group of its flags.
        what: is drawn.
    """
    parser.add_argument("--plot", metavar="FILE", help=f"draw {what} into a .svg, .png, .pdf or .html file as well")


def bars(parser: Any, what: str) -> None:
    """The flag that turns off what a terminal gets below the tables."""
    parser.add_argument(
        "--no-bars", dest="bars", action="store_false", help=f"in a terminal, print no bars of {what} below the tables"
    )

"""Groups of flags that several verbs share, and the types of their values."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeVar

from ..common.errors import shown

if TYPE_CHECKING:
    from .parser import Parser

Number = TypeVar("Number", int, float)


def model(parser: Parser) -> None:
    """The model."""
    parser.add_argument("model", help="a catalogue name, the path of a config.json, or a folder that holds one")


def system(parser: Parser) -> None:
    """The system."""
    parser.add_argument("-s", "--system", required=True, help="a catalogue name or the path of a .toml file")


def software(parser: Parser) -> None:
    """The serving software and its cache."""
    group = parser.add_argument_group("serving software")
    group.add_argument("--stack", metavar="NAME", help="a profile (see: symperf list stacks), or the path of one")
    group.add_argument("--kv-precision", metavar="NAME", help="format of the cache: fp16, bf16, fp8 or int8")


def plan(parser: Parser) -> None:
    """Every field of a plan, and `--set`."""
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
    group.add_argument(
        "--recompute-layers", type=whole, metavar="N", help="layers of each stage that --recompute full repeats"
    )
    group.add_argument(
        "--optimizer",
        default="adam",
        metavar="NAME",
        help="adam (default), adam-8bit, adafactor, sgd-momentum or muon",
    )
    group.add_argument(
        "--offload", metavar="LIST", help="what the host keeps: activations, optimizer, weights, or several with commas"
    )
    group.add_argument(
        "--rank-order", default="tp-cp-dp-pp", metavar="ORDER", help="tp-cp-dp-pp (default) or tp-cp-pp-dp"
    )
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
        "--precision", metavar="NAME", help="bf16, fp16, fp8 or fp4 (default: what the device has); inference has more"
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
        "--overlap-parameters", type=number, default=0.0, metavar="F", help="the same of ZeRO-1's, in a forward pass"
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

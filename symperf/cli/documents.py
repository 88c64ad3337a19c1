"""The flags of `symperf train` for the lengths of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from .flags import number

if TYPE_CHECKING:
    import argparse

    from ..plans.plan import Plan
    from ..train.document_lengths import Documents
    from .parser import Parser


def add_documents(parser: Parser) -> None:
    """Add the flags."""
    import argparse as _argparse

    group = parser.add_argument_group("documents shorter than a sequence")
    group.add_argument("--lengths", metavar="FILE", help="their tokens, a line each: LENGTH, or LENGTH,COUNT")
    group.add_argument("--length-mean", type=number, metavar="TOKENS", help="in place of a file: their mean length")
    group.add_argument("--length-spread", type=number, metavar="R", help="lengths of (1 - R) to (1 + R) times the mean")
    group.add_argument(
        "--packing",
        action=_argparse.BooleanOptionalAction,
        default=None,
        help="documents share sequences, and attention stays inside of each (the default); or each is padded to one",
    )
    group.add_argument(
        "--pad-to-longest",
        action="store_true",
        help="each document has a sequence of its own, as long as the longest of its micro-batch (collators that pad)",
    )
    group.add_argument(
        "--shard-documents",
        action="store_true",
        help="context parallelism cuts each document for all devices, and not the sequence",
    )


def documents_of(options: argparse.Namespace, plan: Plan, batch: int, sequence: int) -> Documents | None:
    """The documents that the options tell of, if they do.

    Raises:
        InputError: options that do not go together, or lengths that are none.
    """
    from ..train.document_lengths import Documents as _Documents
    from ..train.document_lengths import read_lengths, uniform

    if options.lengths is not None and options.length_mean is not None:
        raise InputError("train: --lengths and --length-mean both tell the lengths of documents, expected one of them")
    if options.length_spread is not None and options.length_mean is None:
        raise InputError("train: --length-spread means something with --length-mean only, found none")
    if options.lengths is None and options.length_mean is None:
        _check_none(options)
        return None
    if options.lengths is not None:
        counts = read_lengths(options.lengths, sequence)
    else:
        counts = uniform(options.length_mean, options.length_spread or 0.0, sequence)
    if options.pad_to_longest:
        return _padded(options, counts, plan, batch, sequence)
    return _Documents(counts, sequence, packed=options.packing is not False, sharded=options.shard_documents)


def _check_none(options: argparse.Namespace) -> None:
    given = {
        "--packing": options.packing is not None,
        "--pad-to-longest": options.pad_to_longest,
        "--shard-documents": options.shard_documents,
    }
    for flag in (flag for flag, is_given in given.items() if is_given):
        raise InputError(f"train: {flag} means something with --lengths or --length-mean only, found neither")


def _padded(options: argparse.Namespace, counts: dict[int, int], plan: Plan, batch: int, sequence: int) -> Documents:
    from ..train.padded_batches import PaddedBatches

    if options.packing:
        raise InputError("train: --packing and --pad-to-longest tell two ways of padding, expected one of them")
    if options.shard_documents:
        raise InputError("train: --shard-documents cuts documents that share sequences, found --pad-to-longest")
    if options.method not in (None, "sft"):
        raise InputError(f"train: --pad-to-longest is not modelled for --method {options.method}, expected sft or none")
    micro = plan.micro_batch or 1
    return PaddedBatches(
        counts,
        sequence,
        micro_batch=micro,
        micro_batches=max(1, batch // (micro * plan.dp)),
        replicas=plan.dp,
    )

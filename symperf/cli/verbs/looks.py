"""`symperf inspect`, `list`, `cite` and `cache`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...common.errors import nearest, quote
from .. import flags
from ..flags import whole

if TYPE_CHECKING:
    from . import Verb

LISTED = ("models", "systems", "stacks", "symbols", "formulas")


def add(verb: Verb) -> None:
    """Add the verbs."""
    inspect = verb(
        "inspect",
        "Parameters, KV-cache bytes and forward FLOPs of a model.",
        "symperf inspect llama-2-7b --batch 1 --sequence 4096",
        "inspect",
    )
    flags.model(inspect)
    inspect.add_argument("--batch", type=whole, default=1, help="sequences (default 1)")
    inspect.add_argument("--sequence", type=whole, default=1, help="tokens in a sequence (default 1)")
    inspect.add_argument("--encoder-sequence", type=whole, help="tokens of the encoder's input, of models with one")
    inspect.add_argument("--context", type=whole, help="count generation: tokens cached before the --sequence new ones")
    inspect.add_argument("--absorbed", action="store_true", help="with --context: latent attention over latents")
    inspect.add_argument(
        "--causal-half", action="store_true", help="count only the pairs of tokens that attention sees"
    )
    inspect.add_argument(
        "--check",
        action="store_true",
        help="compare every count with the modules that transformers builds from the file: needs symperf[hf]",
    )
    flags.bars(inspect, "the parts of the forward FLOPs")
    lists = verb("list", "What there is.", "symperf list models llama", "list")
    lists.add_argument("what", type=list_kind, metavar="WHAT", help=f"what to list: {', '.join(LISTED)}")
    lists.add_argument(
        "family", nargs="?", metavar="FAMILY", help="with models: only those whose family, or whose name, starts so"
    )
    lists.add_argument("-s", "--system", help="with symbols: show the values that this system gives them")
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
    cache.add_argument("--explain", action="store_true", help="what each pass over a kernel's program saved")


def list_kind(text: str) -> str:
    """One of the kinds of things that `symperf list` knows."""
    if text not in LISTED:
        raise argparse.ArgumentTypeError(f"found {quote(text)}, expected {' or '.join(LISTED)}{nearest(text, LISTED)}")
    return text

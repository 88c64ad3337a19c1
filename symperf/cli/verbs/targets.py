"""`symperf solve` and `symperf cross`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Verb

WHAT = """\
--a and --b are two of one kind:
  terms           a path of the breakdown, or a folder: layer/mlp, gradients/reduce
  resources       compute, memory, scale_up, ...: the seconds that each is responsible for
  quantities      of one unit: prefill and decode
  whole choices   relative to the run; "base" is the run as it is; compared in --of:
                  "plan: tp=8 pp=8", "system: b200-sxm", "model: llama-2-70b", "stack: vllm", "precision=fp8",
                  or several with commas between: "system: b200-sxm, plan: tp=4"
--over a.NAME or b.NAME: the symbol varies on that side alone, such as the price of one of two systems"""


def add(verb: Verb) -> None:
    """Add the verbs."""
    _solve(verb)
    _cross(verb)


def _solve(verb: Verb) -> None:
    solve = verb(
        "solve",
        "The value of a symbol that meets every target, or how near it gets.",
        "symperf solve infer llama-2-70b -s h100-sxm --tp 8 --batch 8 --prompt 1024 --generate 256 --for batch "
        '--memory "80 GB"',
        "solve",
    )
    solve.add_argument("--for", dest="for_", required=True, metavar="NAME", help="the symbol to solve for")
    solve.add_argument("--time", metavar="T", help='longest time: "20 ms", or a number of seconds')
    solve.add_argument("--memory", metavar="M", help='most bytes on the fullest device: "80 GB"')
    solve.add_argument(
        "--of",
        action="append",
        default=[],
        metavar="QUANTITY=VALUE",
        help="a target of any other quantity, such as mfu=0.5 or time_per_token='15 ms'; may be repeated",
    )
    solve.add_argument("--low", metavar="A", help="the smallest value to consider")
    solve.add_argument("--high", metavar="B", help="the largest")


def _cross(verb: Verb) -> None:
    cross = verb(
        "cross",
        "Where one thing passes another along a symbol: terms, resources, quantities, or whole choices.",
        'symperf cross train gpt3-175b -s a100-80gb-sxm --batch 64 --sequence 2048 --a "plan: tp=8 pp=8" '
        '--b "plan: tp=4 pp=16" --over batch --from 16 --to 1024',
        "cross",
    )
    cross.epilog = f"{WHAT}\n\n{cross.epilog}"
    cross.add_argument("--a", required=True, metavar="WHAT", help="one of the two")
    cross.add_argument("--b", required=True, metavar="WHAT", help="the other")
    cross.add_argument("--over", required=True, metavar="NAME", help="the symbol along which they are compared")
    cross.add_argument("--from", dest="from_", metavar="A", help="where to begin (default: the smallest value)")
    cross.add_argument("--to", metavar="B", help="where to end (default: the largest; of a whole number, 16 times now)")
    cross.add_argument(
        "--of", default="time", metavar="QUANTITY", help="of choices: time (default), tokens_per_s, memory, cost, ..."
    )

"""`symperf search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...plans.plan_fields import COLUMNS
from .. import flags
from ..flags import number, whole

if TYPE_CHECKING:
    from ..parser import Parser
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verb."""
    search = verb(
        "search",
        "The best plans of all that are legal, why others are not among them, and the nearest alternatives.",
        "symperf search gpt3-175b -s h100-sxm --devices 4096 --batch 1536 --sequence 2048 --require zero=0,1",
        "search",
    )
    flags.model(search)
    flags.system(search)
    search.add_argument(
        "--devices", required=True, metavar="N", help="how many, all used; several numbers with commas between"
    )
    search.add_argument("--batch", type=whole, help="sequences in the global batch; of inference in a static batch")
    search.add_argument("--sequence", type=whole, help="tokens in a sequence, in training")
    search.add_argument("--top", type=whole, default=10, metavar="K", help="plans to list (default 10)")
    search.add_argument(
        "--by",
        default="time",
        metavar="WHAT",
        help="time (default), tokens-per-dollar or tokens-per-joule; in inference latency (default with --batch), "
        "throughput, cost (USD for a million tokens) or joules (of a token) as well",
    )
    search.add_argument(
        "--pareto",
        action="store_true",
        help="the plans best in time, memory or devices (or --axes) instead; in inference the front of tokens a second "
        "and device against those of a user",
    )
    flags.plot(search, "the plans, the front of --pareto, or the curves of --iso-time and --iso-cost")
    flags.bars(search, "what the time of the best plan is due to")
    search.add_argument("--csv", action="store_true", help="print the plans as CSV and nothing else")
    flags.dask(search)
    _inference(search)
    _extras(search)
    group = search.add_argument_group("constraints")
    group.add_argument(
        "--max-memory", metavar="SIZE", help='bytes on a device, such as "70 GB" (default: its capacity)'
    )
    for name in (column.replace("_", "-") for column in COLUMNS):
        group.add_argument(f"--max-{name}", type=whole, metavar="N", help=f"largest {name}")
    group.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="values of a field of the plan, with commas between; may be repeated. Fields without are searched",
    )
    group.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="the value of any symbol; may be repeated"
    )


def _inference(search: Parser) -> None:
    group = search.add_argument_group("inference")
    group.add_argument("--prompt", type=whole, help="tokens of each prompt: search for inference")
    group.add_argument("--generate", type=whole, help="tokens generated for each")
    group.add_argument("--ttft", type=number, metavar="T", help="longest mean time to the first token, seconds")
    group.add_argument("--tpot", type=number, metavar="T", help="longest mean time of each later token, seconds")
    group.add_argument("--disaggregate", action="store_true", help="also prefill and decode on devices of their own")
    group.add_argument("--stack", metavar="NAME", help="a serving software, in training one of that; or a path")
    group.add_argument(
        "--axes",
        metavar="NAMES",
        help="of --pareto, with commas between: throughput, interactivity, ttft, latency, cost, joules (default "
        "throughput,interactivity); in training time, memory, devices, cost, joules",
    )
    flags.speculation(search)
    group.add_argument("--max-chunk", type=whole, metavar="TOKENS", help="largest chunk of prompts in an iteration")


def _extras(search: Parser) -> None:
    group = search.add_argument_group("beside the plans")
    group.add_argument(
        "--emit",
        metavar="FRAMEWORK",
        help="print the best plan as options of megatron, megatron-bridge, torchtitan, deepspeed, vllm, sglang or "
        "trtllm; with --prompt, of the plans that it runs, as what starts vllm, sglang, trtllm or dynamo",
    )
    group.add_argument(
        "--explain", metavar="PLAN", help='why a plan, such as "tp=8 pp=4", is not the best: term by term, or its rule'
    )
    group.add_argument("--weak", action="store_true", help="the batch grows with the devices; the fewest have --batch")
    group.add_argument(
        "--within",
        type=number,
        metavar="SECONDS",
        help="the fewest of the devices whose best step takes at most so long",
    )
    group.add_argument("--tokens", type=number, metavar="N", help="time, cost and joules of training on so many tokens")
    group.add_argument(
        "--iso-time", type=number, metavar="DAYS", help="of each number of devices the tokens that it trains on in DAYS"
    )
    group.add_argument(
        "--iso-cost", type=number, metavar="DOLLARS", help="of each number of devices the tokens that DOLLARS pay for"
    )

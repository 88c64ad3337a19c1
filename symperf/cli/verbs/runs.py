"""`symperf train`, `infer` and `serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import flags
from ..documents import add_documents
from ..flags import number, whole
from .technologies import spending

if TYPE_CHECKING:
    from ..parser import Parser
    from . import Verb

INFER_DEFINITIONS = """\
prefill         from the first prompt token entering to the first generated token of every sequence (TTFT)
decode          all later tokens, a step each; time per token is the mean step (TPOT)
throughput      generated tokens of all sequences over prefill and decode, all devices together
MFU of prefill  model FLOPs over time, devices and dense peak
MBU of decode   bytes that a device moves in a step over its time and peak bandwidth"""


def add(verb: Verb) -> None:
    """Add the verbs."""
    _train(verb)
    _infer(verb)
    _serve(verb)


def _train(verb: Verb) -> None:
    train = verb(
        "train",
        "Step time, throughput, MFU, memory and breakdown of a training step.",
        "symperf train llama-2-70b -s h100-sxm --tp 8 --pp 4 --dp 4 --batch 256 --sequence 4096",
        "train",
    )
    flags.model(train, optional=True)
    flags.system(train, optional=True)
    _framework(train)
    train.add_argument("--batch", type=whole, help="sequences in the global batch (needed but with --from)")
    train.add_argument("--sequence", type=whole, help="tokens in a sequence (needed but for images)")
    train.add_argument(
        "--encoder-sequence",
        type=whole,
        metavar="N",
        help="tokens in a sequence of the encoder before a decoder (default: as --sequence)",
    )
    flags.images(train, "are among those of --sequence")
    train.add_argument("--stack", metavar="NAME", help="a training software (see: symperf list stacks), or a path")
    _methods(train)
    _interval(train)
    _timeline(train, "--timeline", "--trace")
    flags.plot(train, "the largest terms, the roofline and the memory of each stage")
    flags.bars(train, "the largest terms and of memory")
    add_documents(train)
    spending(train)
    flags.plan(train)


def _methods(train: Parser) -> None:
    """What else a step runs than the model that it trains."""
    group = train.add_argument_group("methods of fine-tuning, whose steps run several models")
    group.add_argument(
        "--method",
        metavar="NAME",
        help="sft, dpo, reward (pairs: --batch counts them), distill, grpo or ppo (--batch counts prompts)",
    )
    group.add_argument("--teacher", metavar="MODEL", help="of distill: the model whose logits are learned")
    group.add_argument("--reward-model", metavar="MODEL", help="of ppo (default: one like the policy)")
    group.add_argument("--prompt", type=whole, metavar="TOKENS", help="of grpo and ppo: the rest is generated")
    group.add_argument("--group", type=whole, metavar="N", help="answers to a prompt (default: 8 of grpo, 1 of ppo)")
    group.add_argument("--rollout", metavar="TEXT", help='how answers are generated, as "plan: tp=2 dp=4, stack: vllm"')
    group.add_argument("--no-reference", action="store_true", help="the loss reads no frozen reference")


def _infer(verb: Verb) -> None:
    infer = verb(
        "infer",
        "Prefill, time per token, total latency, memory, and the bound of every operation.",
        "symperf infer llama-2-70b -s h100-sxm --tp 8 --batch 1 --prompt 200 --generate 200",
        "infer",
    )
    infer.epilog = f"{INFER_DEFINITIONS}\n\n{infer.epilog}"
    flags.model(infer)
    flags.system(infer)
    infer.add_argument("--batch", type=whole, required=True, help="sequences, over all replicas")
    infer.add_argument("--prompt", type=whole, required=True, help="tokens of each prompt")
    infer.add_argument("--generate", type=whole, required=True, help="tokens generated for each")
    infer.add_argument("--prefix", type=whole, default=0, metavar="TOKENS", help="of each prompt that are in the cache")
    flags.images(infer)
    _interval(infer)
    _timeline(infer, "--timeline", "--trace")
    flags.plot(infer, "the rooflines and the largest terms of prefill and decode")
    flags.bars(infer, "the largest terms and of memory")
    flags.software(infer)
    flags.longest(infer)
    flags.speculation(infer)
    flags.adapters(infer)
    spending(infer)
    flags.plan(infer, requests=True)


def _serve(verb: Verb) -> None:
    from ...serve.definitions import as_text

    serve = verb(
        "serve",
        "The largest load within latency targets, or all metrics at a load; throughput-latency curve.",
        "symperf serve llama-2-70b -s h100-sxm --tp 8 --prompt 1024 --generate 256 --ttft 0.5 --tpot 0.05",
        "serve",
    )
    serve.epilog = f"{as_text()}\n\n{serve.epilog}"
    flags.model(serve)
    flags.system(serve)
    serve.add_argument("--prompt", type=whole, help="tokens of each prompt (P)")
    serve.add_argument("--generate", type=whole, help="tokens generated for each (G)")
    serve.add_argument("--trace", metavar="FILE", help="JSON lines of arrival, input and output, to be replayed")
    _interval(serve)
    _timeline(serve, "--timeline")
    flags.plot(serve, "latencies against throughput")
    flags.bars(serve, "what each load yields")
    flags.images(serve)
    serve.add_argument("--ttft", type=number, metavar="T", help="longest mean time to the first token, seconds")
    serve.add_argument("--tpot", type=number, metavar="T", help="longest mean time of each later token, seconds")
    serve.add_argument("--load", type=number, metavar="R", help="requests a second at all replicas (default: largest)")
    serve.add_argument(
        "--chunk",
        type=whole,
        metavar="TOKENS",
        help="prompt tokens of an iteration (default: that of the serving software)",
    )
    serve.add_argument(
        "--max-num-seqs",
        type=whole,
        metavar="N",
        help="sequences that a replica runs at once, at most (default: that of the serving software; 0: no limit)",
    )
    flags.workload(serve)
    serve.add_argument(
        "--prefill",
        metavar="CHOICE",
        help='a pool that only prefills, told by what differs: "system: h100-sxm, plan: tp=4 dp=2"; -s and the plan '
        "are then of the pool that decodes",
    )
    flags.speculation(serve)
    flags.adapters(serve)
    flags.software(serve)
    flags.longest(serve)
    flags.plan(serve, requests=True)


def _framework(train: Parser) -> None:
    train.add_argument(
        "--from",
        dest="framework_file",
        metavar="FILE",
        help="a plan as a framework has it: options of Megatron-LM, or a file of DeepSpeed, torchtitan, axolotl or "
        "LLaMA-Factory; flags override it",
    )
    train.add_argument("--devices", type=whole, metavar="N", help="with --from: devices in all, where it does not say")


def _interval(parser: Parser) -> None:
    parser.add_argument(
        "--interval",
        action="store_true",
        help="print [low, high] that are meant to hold nine of ten measurements, and why they are not nearer",
    )


def _timeline(parser: Parser, *names: str) -> None:
    parser.add_argument(
        *names,
        dest="timeline",
        metavar="FILE",
        help="write what runs when on each stage, as a trace that Perfetto and Chrome open (JSON)",
    )

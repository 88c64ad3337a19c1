"""A trace replayed event by event, in iterations whose times follow the contexts of the moment."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from ..common.errors import InputError
from .engine import ModelTimes
from .program import Evaluator
from .simulator import Measured, Request, Source, simulate
from .trace import read_trace

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator

    from .serving import Serving

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True)
class Replay:
    """What the requests of a trace measured; times in seconds, means and quantiles over the requests.

    Attributes:
        requests: of the trace.
        rate: requests that arrive in a second; None where all arrive at once.
        input_tokens: mean of a prompt.
        output_tokens: mean that is generated.
        duration_s: from the first arrival to the last token.
        requests_per_s: over that.
        output_tokens_per_s: likewise.
        ttft_s: time to the first token: "mean", "p50", "p90", "p99".
        tpot_s: of each later token; None without any.
        e2e_s: to the last token.
        itl_s: mean gap between two tokens; None without any.
        decoding: mean number of sequences that decode.
    """

    requests: int
    rate: float | None
    input_tokens: float
    output_tokens: float
    duration_s: float
    requests_per_s: float
    output_tokens_per_s: float
    ttft_s: dict[str, float]
    tpot_s: dict[str, float] | None
    e2e_s: dict[str, float]
    itl_s: float | None
    decoding: float


class MomentaryTimes:
    """Seconds of iterations by the contexts of the moment.

    Attention takes time in proportion to what it reads, nearly. So a time lies on the lines through those of three
    contexts: short, the mean of the trace, and long; for decoding sequences and for chunks, each beside the mean of the
    other.

    Args:
        serving: of the means of the trace.
    """

    def __init__(self, serving: Serving) -> None:
        each, asked = serving.evaluators[0], serving.requests.iteration_inputs()
        prompt, half = asked["prompt"], asked["generate"] / 2
        piece = prompt / each.inputs["chunks"]

        def times(**values: float) -> ModelTimes:
            return ModelTimes(Evaluator(each.program, each.inputs | values), 1)

        self.mean = times()
        self.steps = Lines(
            (half, prompt + asked["context_before"] + half, 3 * prompt + half),
            (times(context_before=-prompt), self.mean, times(context_before=2 * prompt)),
        )
        self.chunks = Lines(
            (piece / 2, asked["chunk_context"] + prompt / 2, asked["chunk_context"] + 3 * prompt),
            (
                times(chunk_context=(piece - prompt) / 2),
                self.mean,
                times(chunk_context=asked["chunk_context"] + 2.5 * prompt),
            ),
        )

    def __call__(self, sequences: int, tokens: float, context: float, chunk_context: float) -> float:
        """An iteration that decodes some sequences and prefills some tokens, in the mean over either at a context."""
        mean = _time(self.mean, sequences, tokens)
        found = mean
        if sequences:
            found += self.steps.at(context, sequences, tokens) - mean
        if tokens:
            found += self.chunks.at(chunk_context, sequences, tokens) - mean
        return found


@dataclass(frozen=True)
class Lines:
    """Times through those of a short, a middle and a long context; never below that of the shortest.

    Attributes:
        contexts: the three.
        times: at each.
    """

    contexts: tuple[float, float, float]
    times: tuple[ModelTimes, ModelTimes, ModelTimes]

    def at(self, context: float, sequences: int, tokens: float) -> float:
        """Seconds of an iteration at a context."""
        place = 0 if context < self.contexts[1] else 1
        low, high = self.contexts[place : place + 2]
        one, other = (_time(times, sequences, tokens) for times in self.times[place : place + 2])
        return one + (other - one) * max(context - low, 0.0) / (high - low) if high > low else one


def _time(times: ModelTimes, sequences: int, tokens: float) -> float:
    if not tokens:
        return times.decode(sequences)
    return times.mixed(sequences, tokens) if sequences else times.prefill(tokens)


def replay(serving: Serving, told: Callable[[int], None] | None = None) -> Replay:
    """Replay the trace that a serving system is asked about; requests go to the replicas in turn.

    Args:
        serving: a system that fits.
        told: called with the number of requests that have ended, now and then.

    Raises:
        InputError: the trace cannot be read again.
    """
    trace, steady, replicas = serving.trace, serving.steady, serving.plan.dp
    check_replayed(serving)
    assert trace is not None
    assert steady is not None
    times, found, ended = MomentaryTimes(serving), Measured(), 0
    area = end = 0.0
    for replica in range(min(replicas, trace.count)):
        before = ended
        one = simulate(
            steady.engine,
            Source(_requests(trace.path, trace.first, replica, replicas)),
            told=None if told is None else lambda done, before=before: told(before + done),  # type: ignore[misc]
            times=times,
        )
        ended += one.count
        for name in ("first_tokens", "token_times", "request_times"):
            getattr(found, name).extend(getattr(one, name))
        found.tokens, found.later_tokens = found.tokens + one.tokens, found.later_tokens + one.later_tokens
        area, end = area + one.decoding_area, max(end, one.end)
    found = dataclasses.replace(found, end=end, decoding_area=area)
    way = steady.engine.way_time(max(1.0, math.fsum(found.request_times) / end / min(replicas, trace.count)))
    for those in (found.first_tokens, found.request_times):
        for place, value in enumerate(those):
            those[place] = value + way
    return Replay(
        found.count,
        trace.rate,
        trace.prompt_tokens,
        trace.generates.expected,
        end,
        found.throughput,
        found.tokens / end,
        _spread(found.first_tokens),
        _spread(found.token_times) if found.token_times else None,
        _spread(found.request_times),
        found.between_tokens if found.later_tokens else None,
        found.decoding,
    )


def _requests(path: str, first: float, replica: int, replicas: int) -> Iterator[Request]:
    for each in islice(read_trace(path), replica, None, replicas):
        yield Request(each.arrival - first, float(each.prompt), each.generate)


def _spread(values: array[float]) -> dict[str, float]:
    """The mean and the quantiles of some values: those of which at most a part is larger."""
    ordered = sorted(values)
    found = {"mean": sum(ordered) / len(ordered)}
    return found | {name: ordered[min(len(ordered) - 1, int(part * len(ordered)))] for name, part in QUANTILES.items()}


def check_replayed(serving: Serving) -> None:
    """Refuse what a simulation does not know.

    Raises:
        InputError: a pipeline, drafts, replicas that wait for one another, or pools.
    """
    found = {
        "pp": serving.plan.pp > 1,
        "draft": serving.draft is not None,
        "ep": serving.lockstep_ranks > 1,
        "prefill": serving.apart is not None,
    }
    for name, there in found.items():
        if there:
            raise InputError(f"{name}: a trace is replayed without it, expected none with trace")

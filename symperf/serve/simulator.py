"""An event-by-event simulation of continuous batching with chunked prefill: a policy, and no closed form.

Requests wait for a place among the sequences that run. At the start of an iteration, one chunk of the first prompt
that is cut, or as many whole prompts as a chunk holds, join the sequences that decode; at its end each of these has
one token more, and prompts that are done have their first one. Where software prefills apart, sequences pause for it.
"""

from __future__ import annotations

import heapq
import math
import random
from array import array
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import count, islice, repeat
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .engine import Engine

ROUND = 1e-9
"""Part of a token that is taken as none."""


@dataclass(slots=True)
class Request:
    """A request on its way.

    Attributes:
        arrival: seconds.
        prompt: tokens that are prefilled.
        generate: tokens generated.
        encoder: seconds that its images take before its first chunk.
        cached: tokens before those that are prefilled, which are in the cache.
        left: chunks of the prompt that are not done.
        piece: tokens of each.
        first: moment of the first token.
    """

    arrival: float
    prompt: float
    generate: int
    encoder: float = 0.0
    cached: float = 0.0
    left: int = 0
    piece: float = 0.0
    first: float = 0.0


@dataclass
class Measured:
    """Sums over requests that ended, in their order.

    Attributes:
        count: requests.
        first_tokens: seconds to the first token of each.
        token_times: mean seconds of each later token of each request that has some.
        request_times: seconds to the last token of each.
        tokens: generated.
        decoding_area: sequences that decode, integrated over the time.
        start: moment of the first end of an earlier request, or 0.
        end: moment of the last.
        waiting_at_end: requests that have no first token then.
    """

    first_tokens: array[float] = field(default_factory=lambda: array("d"))
    token_times: array[float] = field(default_factory=lambda: array("d"))
    request_times: array[float] = field(default_factory=lambda: array("d"))
    tokens: int = 0
    later_tokens: int = 0
    decoding_area: float = 0.0
    start: float = 0.0
    end: float = 0.0
    waiting_at_end: int = 0

    @property
    def count(self) -> int:
        """Requests that ended."""
        return len(self.first_tokens)

    @property
    def first_token(self) -> float:
        """Mean time to the first token (TTFT)."""
        return math.fsum(self.first_tokens) / self.count

    @property
    def per_token(self) -> float:
        """Mean over the requests of the time of each later token (TPOT); 0 where there is none."""
        return math.fsum(self.token_times) / len(self.token_times) if self.token_times else 0.0

    @property
    def whole(self) -> float:
        """Mean time of a request."""
        return math.fsum(self.request_times) / self.count

    @property
    def between_tokens(self) -> float:
        """Mean gap between tokens of all requests (ITL); 0 where there is none."""
        late = math.fsum(self.request_times) - math.fsum(self.first_tokens)
        return late / self.later_tokens if self.later_tokens else 0.0

    @property
    def throughput(self) -> float:
        """Requests a second."""
        return self.count / (self.end - self.start)

    @property
    def decoding(self) -> float:
        """Mean number of sequences that decode."""
        return self.decoding_area / (self.end - self.start)


class ContextTimes(Protocol):
    """Seconds of iterations by what their attention reads."""

    def __call__(self, sequences: int, tokens: float, context: float, chunk_context: float) -> float:
        """An iteration that decodes some sequences and prefills some tokens, in the mean over either at a context."""
        ...


class Source:
    """Where requests come from: in the order of their arrival, and, of a closed loop, one for each that ends.

    Args:
        open_: requests in the order of their arrival.
        after: the request that follows one that ended at a moment; None where none does.
    """

    def __init__(self, open_: Iterator[Request], after: Callable[[float], Request | None] | None = None) -> None:
        self.open, self.after = open_, after
        self.head: Request | None = next(open_, None)
        self.back: deque[Request] = deque()

    def due(self) -> float:
        """The moment of the next arrival; infinite where none is known."""
        if self.back:
            return self.back[0].arrival
        return math.inf if self.head is None else self.head.arrival

    def take(self) -> Request:
        """The next request."""
        if self.back:
            return self.back.popleft()
        found, self.head = self.head, next(self.open, None)
        assert found is not None
        return found

    def ended(self, clock: float) -> None:
        """Say that a request ended."""
        if self.after is not None and (following := self.after(clock)) is not None:
            self.back.append(following)


def simulate(
    engine: Engine,
    source: Source,
    requests: float = math.inf,
    skip: int = 0,
    told: Callable[[int], None] | None = None,
    times: ContextTimes | None = None,
) -> Measured:
    """Run an engine until so many requests have ended, or no more come.

    A request that arrives while an iteration runs, or at the moment at which one begins, joins the next: the software
    has dealt the work of the one before it hears of it.

    Args:
        engine: of one group (no pipeline), in which each step yields one token.
        source: of the requests.
        requests: that end before it stops.
        skip: requests that end before the measurement starts.
        told: called with the number of requests that have ended, now and then.
        times: of iterations by their contexts; by default those of the engine, which are of mean contexts.
    """
    assert engine.groups == 1
    chunk, context = engine.chunk_size + ROUND, 0.0
    clock, iteration, ended = 0.0, 0, 0
    waiting: deque[Request] = deque()
    prompts: deque[Request] = deque()
    decoding: list[tuple[int, int, Request]] = []
    order = count()
    found = Measured()
    while ended < requests:
        if not waiting and not prompts and not decoding:
            if source.due() == math.inf:
                break
            clock = max(clock, source.due())
            while source.due() <= clock:
                waiting.append(source.take())
        while source.due() < clock:
            waiting.append(source.take())
        while waiting and len(prompts) + len(decoding) < engine.limit:
            prompts.append(_cut(waiting.popleft(), chunk))
        served, tokens = _fill(prompts, chunk)
        held = len(decoding)
        paused = engine.apart and served > 0
        if times is None:
            taken = _mean_time(engine, 0 if paused else held, tokens)
        else:
            mean = context / held if held else 0.0
            taken = times(0 if paused else held, tokens, mean, _chunk_context(prompts, served, tokens))
        for place in range(served):
            taken += prompts[place].encoder
            prompts[place].encoder = 0.0
        found.decoding_area += held * taken
        if not paused:
            context, iteration = context + held, iteration + 1
        clock += taken
        done: list[Request] = []
        while decoding and decoding[0][0] <= iteration:
            done.append(heapq.heappop(decoding)[2])
            context -= done[-1].cached + done[-1].prompt + done[-1].generate
        for _ in range(served):
            prompts[0].left -= 1
            if prompts[0].left:
                break
            prompt = prompts.popleft()
            prompt.first = clock
            if prompt.generate == 1:
                done.append(prompt)
            else:
                context += prompt.cached + prompt.prompt + 1
                heapq.heappush(decoding, (iteration + prompt.generate - 1, next(order), prompt))
        for each in done:
            ended += 1
            if ended > skip:
                _measure(found, each, clock)
            elif ended == skip:
                found.start, found.decoding_area = clock, 0.0
            source.ended(clock)
        if told is not None and done:
            told(ended)
    found.end = clock
    found.waiting_at_end = len(waiting) + len(prompts)
    return found


def _cut(request: Request, chunk: float) -> Request:
    """A request with its prompt cut into equal chunks."""
    request.left = max(1, math.ceil((request.prompt - ROUND) / chunk))
    request.piece = request.prompt / request.left
    return request


def _fill(prompts: deque[Request], chunk: float) -> tuple[int, float]:
    """Prompts of the next iteration, and their tokens: a chunk of one that is cut, or whole ones."""
    if not prompts:
        return 0, 0.0
    if prompts[0].piece < prompts[0].prompt:
        return 1, prompts[0].piece
    served, tokens = 0, 0.0
    for prompt in prompts:
        if prompt.left > 1 or tokens + prompt.prompt > chunk:
            break
        served, tokens = served + 1, tokens + prompt.prompt
    return served, tokens


def _mean_time(engine: Engine, held: int, tokens: float) -> float:
    """Seconds of an iteration at the mean contexts of an engine."""
    if not tokens:
        return engine.times.decode(held)
    return engine.times.mixed(held, tokens) if held else engine.times.prefill(tokens)


def _chunk_context(prompts: deque[Request], served: int, tokens: float) -> float:
    """Tokens that those of an iteration's prompts attend to, in the mean over them."""
    pairs = 0.0
    for prompt in islice(prompts, served):
        done = prompt.prompt - prompt.left * prompt.piece
        pairs += prompt.piece * (prompt.cached + done + prompt.piece / 2)
    return pairs / tokens if tokens else 0.0


def _measure(found: Measured, request: Request, clock: float) -> None:
    found.first_tokens.append(request.first - request.arrival)
    found.request_times.append(clock - request.arrival)
    found.tokens += request.generate
    found.later_tokens += request.generate - 1
    if request.generate > 1:
        found.token_times.append((clock - request.first) / (request.generate - 1))


# --- loads


def poisson(engine: Engine, load: float, seed: int = 1, encoder: float = 0.0) -> Source:
    """Requests that arrive at random moments, so many in a second, each with images that take so many seconds."""
    rng = random.Random(seed)

    def arrive() -> Iterator[Request]:
        clock = 0.0
        while True:
            clock += rng.expovariate(load)
            yield replace(_draw(engine, clock, rng), encoder=encoder)

    return Source(arrive())


def closed_loop(engine: Engine, concurrency: int, requests: float = math.inf, seed: int = 1) -> Source:
    """So many requests at once, and a new one whenever one ends, until so many were sent."""
    rng = random.Random(seed)
    first = int(min(concurrency, requests))
    left = requests - first

    def follow(clock: float) -> Request | None:
        nonlocal left
        left -= 1
        return None if left < 0 else _draw(engine, clock, rng)

    return Source(islice((_draw(engine, 0.0, rng) for _ in repeat(None)), first), follow)


def burst(engine: Engine, requests: int, seed: int = 1) -> Source:
    """So many requests at one moment, and none after them."""
    rng = random.Random(seed)
    return Source(_draw(engine, 0.0, rng) for _ in range(requests))


def _draw(engine: Engine, clock: float, rng: random.Random) -> Request:
    generates = engine.generates
    prompt, cached = (engine.prompt, 0.0) if engine.mix is None else engine.mix.draw(rng)
    return Request(clock, prompt, generates.draw(rng) if generates.ratio else engine.generate, cached=cached)

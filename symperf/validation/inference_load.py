"""A server with a fixed number of requests in flight: as soon as one ends, the next comes.

A closed loop of N requests. By Little's law N = n + Lambda (T_p + W): n sequences decode, n = x N_s with x the prompts
that are prefilled in a mean iteration, T_p is the time of a prompt's iterations, W its wait behind other prompts. A
request sees the other N - 1 (the arrival theorem of closed networks, Reiser and Lavenberg 1980), so of the prompts that
pass while it decodes, the part (N - 1) / N is not its own. Prompts are alike and come at random, so W is the wait of a
queue with constant service (Pollaczek and Khinchine), rho T_p / (2 (1 - rho)), and at most that behind N - 1 prompts.
x is the only unknown. Requests beyond what memory holds wait for their first token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.errors import InputError

if TYPE_CHECKING:
    from ..serve.engine import Engine
    from ..serve.serving import Serving

HALVINGS = 80


@dataclass(frozen=True)
class Loop:
    """The steady state of a closed loop, in seconds and tokens a second.

    Attributes:
        prefill_s: mean time to the first token, waits included.
        time_per_token_s: mean time of each later token.
        tokens_per_s: generated, of all requests.
        time_s: of a request.
    """

    prefill_s: float
    time_per_token_s: float
    tokens_per_s: float
    time_s: float


def closed_loop(serving: Serving, requests: int) -> Loop:
    """The steady state of `requests` in flight.

    Args:
        serving: the system and the lengths of the requests.
        requests: N.

    Raises:
        InputError: not one request fits.
    """
    if serving.steady is None:
        raise InputError("the model does not fit the memory of its devices")
    engine = serving.steady.engine
    inside = min(requests, engine.limit)
    most = engine.chunk_prompts / engine.chunks
    low, high = 0.0, most
    if _state(engine, most, inside)[0] > inside:
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if _state(engine, middle, inside)[0] <= inside else (low, middle)
    present, mean, prefill = _state(engine, high, inside)
    load = high / mean
    first = prefill + max(0.0, requests - present) / load
    return Loop(first, mean, load * engine.generate, first + engine.steps * mean)


def _state(engine: Engine, arrivals: float, requests: int) -> tuple[float, float, float]:
    """Requests that are served, the mean iteration, and the time of a prompt with its wait, with x prompts in it."""
    others = (requests - 1) / requests
    tokens = engine.prompt / engine.chunks
    decoding = arrivals * engine.steps
    share = min(1.0, others * arrivals * engine.chunks / engine.chunk_prompts)
    decode = engine.times.decode(max(1.0, decoding))
    mixed = engine.times.mixed(max(1.0, decoding), tokens)
    mean = decode + share * max(0.0, mixed - decode)
    seen = others * decoding
    beside = engine.times.mixed(max(1.0, seen), tokens)
    alone = engine.times.prefill(tokens)
    prefill = engine.chunks * (beside if seen >= 1 else alone + seen * (beside - alone))
    load = arrivals / mean
    service = prefill / engine.chunk_prompts
    busy = others * load * service
    longest = (requests - 1) * service
    wait = min(longest, busy * service / (2 * (1 - busy))) if busy < 1 else longest
    return decoding + load * (prefill + wait), mean, prefill + wait

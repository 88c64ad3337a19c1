"""The way of a request outside the engine that computes it."""

from __future__ import annotations

from typing import Any

from ..language.dimension import SECOND
from ..language.formula import formula
from ..language.symbols import crowd_latency, request_latency, tokenizer_latency
from ..sources import LITTLE


@formula(
    glyph="T_{way}",
    dimension=SECOND,
    source=LITTLE,
    increasing="concurrency crowd_latency prompt request_latency tokenizer_latency",
    curvature="convex",
)
def request_way_time(prompt: Any, concurrency: Any) -> Any:
    """Time of a request outside the engine, until its first token is there: lambda_r + lambda_t s_p + lambda_if N.

    One thread each of the client, the server and the engine reads requests, turns texts into tokens and sends tokens
    of all requests in flight; a new request waits its turn behind those.

    Assumes: each of the N requests in flight costs a thread the same between two looks for new ones.

    Source: derivation: work of a thread for one request, for each token of its prompt, and for each request beside it;
    that the last grows with N is seen in measured times to the first token of vLLM, from 4 to 512 in flight.

    >>> from sympy import symbols
    >>> request_way_time(*symbols("s N"))
    N*crowd_latency + request_latency + s*tokenizer_latency
    """
    return request_latency + tokenizer_latency * prompt + crowd_latency * concurrency

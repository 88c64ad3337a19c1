"""Answers for a number of requests in flight, or at once, in the terms of those for a load."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .bursts import Burst, FiniteRun, finite_run
from .closed import ClosedLoop
from .point import LoadPoint, describe
from .program import form

if TYPE_CHECKING:
    from .serving import Serving


@dataclass(frozen=True)
class LoopAnswer:
    """What a closed loop, a finite run of one or a burst measures; times in seconds, means unless said.

    Attributes:
        arrivals: "closed", "benchmark" (a closed loop of a limited number of requests, that begins with a burst) or
            "burst".
        concurrency: requests in flight at most, all replicas together.
        requests: of the whole run; None where it goes on for ever.
        in_step: whether requests keep the order of the burst with which they began.
        burst_ttft_s: time to the first token of those that are sent at once; None in an endless loop.
        burst_last_ttft_s: that of the last of them.
        steady_ttft_s: time to the first token behind the burst; None where nothing is behind it.
        duration_s: from the first request sent to the last token; None in an endless loop.
    """

    arrivals: str
    concurrency: int
    requests: int | None
    in_step: bool
    burst_ttft_s: float | None = None
    burst_last_ttft_s: float | None = None
    steady_ttft_s: float | None = None
    duration_s: float | None = None


def loop_point(serving: Serving) -> tuple[LoadPoint, LoopAnswer]:
    """All answers of a system that fits, for the closed loop or the burst that is asked for.

    Requests are dealt evenly; where there are fewer than replicas, the others have nothing to do.
    """
    asked, steady = serving.asked.workload, serving.steady
    assert steady is not None
    count = asked.concurrency or asked.burst
    assert count is not None
    replicas = min(serving.plan.dp, count)
    loop = ClosedLoop(steady, count / replicas)
    if asked.requests is None and asked.burst is None:
        state = loop.state()
        found = describe(serving, state.load * replicas, state, replicas)
        return found, LoopAnswer("closed", count, None, loop.in_step, steady_ttft_s=state.first_token)
    run = Burst(loop).alone() if asked.burst else finite_run(loop, (asked.requests or count) / replicas)
    followed = asked.requests is not None and asked.requests > count
    answer = LoopAnswer(
        "benchmark" if asked.burst is None else "burst",
        count,
        asked.requests or count,
        loop.in_step,
        run.burst_first_token,
        run.burst_last_first_token,
        run.state.first_token if followed else None,
        run.duration,
    )
    return _of_run(serving, run, replicas, followed=followed), answer


def _of_run(serving: Serving, run: FiniteRun, replicas: int, *, followed: bool) -> LoadPoint:
    """The answers of a run: its own means, beside the waits of its steady part where it has one."""
    state = dataclasses.replace(run.state, load=run.throughput, iteration=run.iteration)
    found = describe(serving, run.throughput * replicas, state, replicas)
    whole = form(
        "request_time",
        first_token_time=run.first_token,
        generate=serving.asked.generate,
        iteration_time=found.tpot_s or 0.0,
    )
    found = dataclasses.replace(found, ttft_s=run.first_token, e2e_s=whole)
    if followed:
        return found
    return dataclasses.replace(
        found, boundary_wait_s=None, queue_wait_s=None, cache_wait_s=None, prefill_s=None, kv_use=None
    )

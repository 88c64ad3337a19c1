"""Random arrivals where software prefills what waits before it decodes again, in iterations of prompts alone.

Those that arrive during a decode step are prefilled behind it, those during that prefill behind it, and so on, until
none waits: a busy period of generations, as of a queue whose server takes all that wait together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .steady import Steady

GENERATIONS = 400
"""Generations of a busy period that are told apart at most."""
ENDLESS = 1e9
"""Prompts of a generation from which on a busy period is taken to have no end."""
NEGLIGIBLE = 1e-11
"""Part of a cycle that is left out."""
BUSIEST = 0.999
"""Part of the time that prefill is taken to be busy at most."""
CLOSER = 60
CLOSE = 1e-13
"""Steps towards the time of a cycle at most, and the relative change at which it is taken as found."""


@dataclass(frozen=True)
class Cycle:
    """A decode step with all that is prefilled before the next one; means.

    Attributes:
        share: part of the steps that are followed by a prefill.
        iterations: of prefill, for each step.
        busy: seconds of prefill, for each step.
        time: seconds of a step and its prefill.
    """

    share: float
    iterations: float
    busy: float
    time: float


def busy_period(steady: Steady, rate: float, step: float) -> tuple[float, float, float]:
    """Chance, iterations and seconds of the prefill behind a decode step, of so many arrivals in a second.

    A generation follows another with the chance that any arrives meanwhile, 1 - e^-(rate t), and is then of rate t /
    (1 - e^-(rate t)) prompts in the mean. Its length tends to a limit, from which on each is as likely as the last.
    """
    engine = steady.engine
    length, chance = step, 1.0
    first = iterations = busy = 0.0
    for _ in range(GENERATIONS):
        some = -math.expm1(-rate * length)
        if some <= 0:
            break
        prompts = rate * length / some
        count = max(1.0, prompts / engine.chunk_prompts) * engine.chunks
        after = count * steady.with_tokens(0.0, prompts / count * engine.prompt)
        chance *= some
        first = first or chance
        iterations, busy = iterations + chance * count, busy + chance * after
        if rate * after > ENDLESS:
            return first, math.inf, math.inf
        some = -math.expm1(-rate * after)
        rest = chance * some / (1 - some) if some < 1 else math.inf
        if rest * abs(after - length) <= NEGLIGIBLE * (step + busy):
            iterations, busy = iterations + rest * count, busy + rest * after
            break
        length = after
    return first, iterations, busy


def cycle(steady: Steady, arrivals: float, step: float) -> Cycle:
    """The cycle of a decode step in which so many prompts arrive: the time that the arrivals' rate makes of it."""
    engine = steady.engine
    if not arrivals:
        return Cycle(0.0, 0.0, 0.0, step)
    alone = engine.chunks * steady.with_tokens(0.0, engine.prompt / engine.chunks)
    low, high = step, step + arrivals * alone

    def surplus(time: float) -> float:
        return step + busy_period(steady, arrivals / time, step)[2] - time

    time, before = high, math.nan
    value = known = surplus(time)
    for _ in range(CLOSER):
        low, high = (time, high) if value > 0 else (low, time)
        if abs(value) <= CLOSE * time or high - low <= CLOSE * high:
            break
        # The secant through the last two, or halfway where it leaves what is known.
        slope = (value - known) / (time - before) if math.isfinite(before) and math.isfinite(known) else -1.0
        known, before = value, time
        guess = time - value / slope if slope and math.isfinite(value) else math.nan
        time = guess if low < guess < high else (low + high) / 2
        value = surplus(time)
    share, iterations, _ = busy_period(steady, arrivals / time, step)
    return Cycle(share, iterations, time - step, time)


def seen_by_a_request(steady: Steady, arrivals: float, means: tuple[float, ...]) -> tuple[float, float]:
    """Prompts prefilled for each step that a request decodes in, and other sequences that decode with it.

    Whatever arrives while it waits and is prefilled is prefilled behind it, before it decodes; and whatever arrives
    during its steps but the last: Lambda (N tau + W + S - D). Of whole prompts, those that wait with it are prefilled
    with it, and W is none.

    All that are prefilled in one cycle begin to decode together. So one meets x (N - 1) of the other cycles' and, of
    its own, Lambda E[C^2] / E[C], more than x by x times the squared variation of a cycle's length; where prompts are
    prefilled one by one that is (rho / (1 - rho))^2, since the busy period behind a step D has the variance
    Lambda D S^2 / (1 - rho)^3 (Kleinrock 1975, section 5.8). Of whole prompts it is taken as 2 Lambda S, those that
    arrive during the prefill of one another.

    Args:
        steady: of a replica alone.
        arrivals: x, prompts that arrive in the mean cycle.
        means: of cycles, as `Steady.iterations` has them.
    """
    engine = steady.engine
    _, tokens, decode, _, mean = means
    rate, chunk = arrivals / mean, steady.with_tokens(0.0, tokens)
    prefill = engine.chunks * chunk
    behind = prefill - decode
    if engine.chunk_prompts == 1:
        busy = min(rate * prefill, BUSIEST)
        behind += steady.boundary(rate * engine.groups, math.exp(-steady.decoding(arrivals)), decode, chunk, tokens)
        behind += busy * prefill / 2 / (1 - busy)
        together = (busy / (1 - busy)) ** 2
    else:
        together = 2 * rate * prefill
    return rate * (mean + behind / engine.steps), steady.decoding(arrivals) + together * engine.groups

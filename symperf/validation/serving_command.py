"""The command line of a row of `serving.csv`: `symperf serve` with the requests, options and limits of its server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .commands import Command, NoCommandError, inference_words, set_words
from .readings import Reading
from .serving import asked_of, limit_of, pools_of, serving_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..serve.serving import Serving
    from .case import Case
    from .rows import TableRow
    from .serving import ServedRow


def serving_reading(row: TableRow, case: Case) -> Reading:
    """How the prediction of a case of a served row is read from its command.

    Raises:
        NoCommandError: no command line gives it.
    """
    asked = asked_of(row)
    first = case.quantity == "prefill_s"
    if asked.prefill is not None:
        pools = pools_of(asked)
        command = _command(asked, pools.decode, _pool(pools.prefill))
        key = "first_token" if first else "token"
        return Reading(
            (command,), f"pools.in_flight.{key}", lambda answers: float(answers[0]["pools"]["in_flight"][key])
        )
    serving = serving_of(asked)
    command = _command(asked, serving, _limits(asked, serving))
    if not first:
        return Reading((command,), "tpot_s", lambda answers: float(answers[0]["tpot_s"]))
    polls = [value for least, value in asked.script.polls if asked.concurrency >= least]
    if not polls:
        return Reading((command,), "ttft_s", lambda answers: float(answers[0]["ttft_s"]))
    tokens = serving.tokens_of_a_step(asked.script.drafts)
    words = f"ttft_s + {polls[-1]!r} (iterations until the scheduler looks for requests) x tpot_s"
    words += "" if tokens == 1 else f" x {tokens!r} (tokens of a step)"

    def read(answers: Sequence[Mapping[str, Any]]) -> float:
        return float(answers[0]["ttft_s"] + polls[-1] * (answers[0]["tpot_s"] * tokens))

    return Reading((command,), words, read)


def _command(asked: ServedRow, serving: Serving, more: list[str]) -> Command:
    words, files, values = inference_words(serving.run, (asked.model,), (asked.system,))
    work = ["--prompt", str(asked.prompt), "--generate", str(asked.generate)]
    work += ["--concurrency", str(asked.concurrency), "--requests", str(asked.requests)]
    if asked.ratio:
        work += ["--prompt-spread", repr(asked.ratio), "--generate-spread", repr(asked.ratio)]
    work += ["--chunk", str(serving.asked.chunk)]
    if asked.script.drafts:
        work += ["--speculate", "mtp", "--acceptance", str(serving.asked.acceptance)]
        work += ["--draft-length", str(asked.script.drafts)]
    return Command(("symperf", "serve", *words[:3], *work, *more, *words[3:], *set_words(values)), files)


def _limits(asked: ServedRow, serving: Serving) -> list[str]:
    """How many sequences run at once: as many as fit with the part of the memory that the row's software takes.

    `symperf serve` counts the whole length of each, the row what it holds in the mean; where that is another number it
    is given, with as much memory as it takes.

    Raises:
        NoCommandError: no part of the memory holds as many whole sequences.
    """
    limit, drafts = limit_of(asked, serving), asked.script.drafts
    enough = max(-(-asked.concurrency // asked.replicas), serving.chunk_prompts)
    for utilization in (asked.utilization, 1.0):
        held = serving.room(drafts, memory_utilization=utilization).sequences
        running = serving.most_running(drafts)
        own = held if running is None else min(held, running)
        told = ["--memory-utilization", repr(utilization)]
        if own == limit or min(own, limit) >= enough:
            return told
        if held >= limit:
            return [*told, "--max-num-seqs", str(limit)]
    raise NoCommandError("no part of the memory holds as many sequences of the whole length as run at once")


def _pool(prefill: Serving) -> list[str]:
    plan = prefill.plan
    return ["--prefill", f"plan: tp={plan.tp} ep={plan.ep} dp={plan.dp}"]

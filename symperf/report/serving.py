"""A serving system as JSON and as terminal tables."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..common.table import Table, show_lines
from ..runs.shortage import NAMES, shortage
from ..serve.definitions import as_text
from ..serve.point import LoadPoint
from . import adapters, pools, room, serving_trace
from .run_parts import facts, show_warnings, title
from .scaled import percent, quantity, seconds

if TYPE_CHECKING:
    from rich.console import Console

    from ..serve.loop_point import LoopAnswer
    from ..serve.serving import Serving
    from ..serve.workload import Workload

TINY = 1e-9
"""Seconds below which a wait is printed as none."""
POINT_KEYS = tuple(field.name for field in dataclasses.fields(LoadPoint) if field.name != "state")


def can(serving: Serving) -> bool:
    """Whether the question has an answer: the model fits, and a load within the targets is served."""
    asked, answer = serving.asked, serving.answer
    if serving.trace is not None:
        return serving.replayed is not None and not serving_trace.missed(serving.replayed, serving.targets)
    if serving.apart is not None:
        return serving.apart.served
    if asked.load is None and serving.loop is None:
        return serving.largest is not None and serving.largest.load is not None
    return answer is not None and answer.meets(asked.ttft, asked.tpot)


def as_json(serving: Serving, longest: int = 1) -> dict[str, Any]:
    """The `serve` object; its keys are listed in `docs/serving.md`. The longest context is of so many sequences."""
    asked, run, plan, steady = serving.asked, serving.run, serving.plan, serving.steady
    largest, answer = serving.largest, serving.answer
    memory, place = serving.memory(serving.draft_length), serving.room(serving.draft_length)
    alone = serving.point(0.0) if steady else None
    return {
        "model": run.model.name,
        "system": run.system.name,
        "stack": run.stack.name,
        "devices": plan.devices,
        "replicas": plan.dp,
        "prompt": asked.prompt,
        "generate": asked.generate,
        "lockstep_replicas": serving.lockstep_ranks,
        "chunk": asked.chunk,
        "chunks_per_prompt": steady.engine.chunks if steady else serving.chunks,
        "workload": dataclasses.asdict(asked.workload) | {"hit_rate": _hit_rate(asked.workload)},
        "prompts_per_chunk": steady.engine.chunk_prompts if steady else None,
        "targets": {"ttft_s": asked.ttft, "tpot_s": asked.tpot, "load": asked.load},
        "served": can(serving),
        "fits": serving.fits,
        "memory_bytes": memory,
        "capacity_bytes": serving.capacity_bytes,
        "max_num_seqs": serving.most_running(serving.draft_length),
        "concurrency_limit": serving.limit(serving.draft_length) * plan.dp,
        "capacity": steady.capacity.load * plan.dp if steady else None,
        "capacity_limit": steady.capacity.limit if steady else None,
        "largest_load": largest.load * plan.dp if largest and largest.load is not None else None,
        "largest_load_limit": largest.limit if largest else None,
        "alone": _point(alone),
        **_point(answer, empty=True),
        "loop": dataclasses.asdict(serving.loop[1]) if serving.loop else None,
        "mean_concurrency": None if answer is None else answer.concurrency,
        **room.as_json(place, serving.longest_context(longest), run.model.context),
        "shares": serving.shares(answer) if answer else None,
        "curve": [_point(each) for each in serving.curve],
        "disaggregation": dataclasses.asdict(serving.pools) if serving.pools else None,
        "pools": serving.apart.to_dict() if serving.apart else None,
        "speculative": _speculation(serving),
        "trace": dataclasses.asdict(serving.replayed) if serving.replayed else None,
        "adapters": adapters.as_json(serving.run),
        **({"images": _images(serving)} if serving.images else {}),
        "warnings": list(warnings(serving)),
    }


def _point(point: LoadPoint | None, *, empty: bool = False) -> Any:
    if point is None:
        return dict.fromkeys(POINT_KEYS) if empty else None
    return {name: getattr(point, name) for name in POINT_KEYS}


def _images(serving: Serving) -> dict[str, Any]:
    """What the images of a request are and cost, its prompt encoded alone."""
    assert serving.images is not None
    found = serving.images.one.to_dict()
    kept = {name: found[name] for name in ("part", "tokens", "encode_s", "weight_bytes", "sizes")}
    return kept | {"activation_bytes": serving.images.activation_bytes}


def _speculation(serving: Serving) -> dict[str, Any] | None:
    found = serving.speculation()
    if found is None or serving.draft is None:
        return None
    own = {"draft": serving.draft.model.name, "acceptance": serving.asked.acceptance}
    return own | {"draft_length": serving.draft_length} | found


def warnings(serving: Serving) -> tuple[str, ...]:
    """Why there is no answer, and what plan, model and system warn of."""
    run, asked, steady = serving.run, serving.asked, serving.steady
    if serving.apart is not None:
        return (*pools.reasons(serving.apart), *serving.apart.warnings, *run.model.warnings)
    found: list[str] = []
    if steady is None:
        found.append(f"{room.why_not(shortage(run, serving.room(serving.draft_length), 1), NAMES)}, one sequence")
    elif serving.replayed is not None:
        found += serving_trace.warnings(serving.replayed, serving.answer, serving.targets)
    elif asked.load is not None and serving.answer is not None:
        most = steady.capacity.load * serving.plan.dp
        if serving.answer.saturated:
            found.append(
                f"saturated: load {asked.load:g} is not below the capacity of {most:.6g} requests/s, "
                f"which {LIMITS[steady.capacity.limit]} limits; queues grow without end"
            )
        elif not can(serving):
            found.append(f"load {asked.load:g} misses a target: {_times(serving.answer)}")
    elif serving.loop is not None:
        if not can(serving):
            found.append(f"{arrivals(serving.loop[1])}: misses a target: {_times(serving.loop[0])}")
    elif serving.largest is not None and serving.largest.load is None:
        found.append(f"no load meets the targets: a request alone has {_times(serving.point(0.0))}")
    system = run.system.warnings if not found else ()
    return (*found, *serving.warnings, *run.model.warnings, *system)


LIMITS = {
    "ttft": "the target of the first token",
    "tpot": "the target of later tokens",
    "chunk": "prefill (a full chunk in every iteration)",
    "kv_cache": "memory of the cache",
    "max_num_seqs": "the most sequences that run at once",
}
"""What limits a load, in words."""


def arrivals(loop: LoopAnswer) -> str:
    """How the requests of a loop arrive, in words."""
    if loop.arrivals == "burst":
        return f"{loop.requests} requests at once"
    run = "" if loop.requests is None else f", {loop.requests} in all, of which as many are sent at once"
    return f"{loop.concurrency} requests in flight{run}"


def differences(serving: Serving) -> str:
    """How the requests differ, in words."""
    load, mix = serving.asked.workload, serving.requests.mix
    parts = [f"{name} within {percent(spread)}" for name, spread in _spreads(load) if spread]
    if load.turns > 1:
        parts.append(f"{load.turns} turns")
    if load.prefix:
        parts.append(f"a prefix of {load.prefix} tokens, {quantity(serving.room(serving.draft_length).shared, 'B')}")
    if mix is not None:
        parts.append(f"of {serving.requests.sent:.5g} prompt tokens {mix.tokens:.5g} are prefilled")
    if (found := _hit_rate(load)) is not None:
        parts.append(f"{percent(found)} of requests find the rest in the cache")
    return "; ".join(parts)


def _spreads(load: Workload) -> tuple[tuple[str, float], ...]:
    return (("prompts", load.prompt_spread), ("generated", load.generate_spread))


def _hit_rate(load: Workload) -> float | None:
    """The part of the requests that find something in the cache; None where nothing is to be found."""
    return load.hits if load.prefix or load.turns > 1 else None


def _times(point: LoadPoint) -> str:
    parts = [f"TTFT {_seconds(point.ttft_s)}"]
    return ", ".join(parts + ([f"TPOT {_seconds(point.tpot_s)}"] if point.tpot_s is not None else []))


def _seconds(value: float | None) -> str:
    return "" if value is None else seconds(value if value > TINY else 0.0)


def show(serving: Serving, console: Console, longest: int = 1) -> None:
    """Print the answer, the curve, the pools and the meaning of each metric.

    Args:
        serving: what is told.
        console: where it is printed.
        longest: sequences of the longest context that is told.
    """
    run, asked, steady = serving.run, serving.asked, serving.steady
    if serving.apart is not None:
        pools.show(serving.apart, console)
        return
    console.print(title(run.model.name, serving.plan.devices, run.system, f"{run.stack.told}, continuous batching"))
    if steady is not None:
        engine = steady.engine
        cut = f"{engine.chunks:.4g} chunks a prompt" if engine.chunks > 1 else f"{engine.chunk_prompts:.4g} prompts"
        held = serving.held(serving.draft_length) * serving.plan.dp
        table = facts()
        table.add_row("requests", f"{asked.prompt} tokens in, {asked.generate} out; chunk {asked.chunk}: {cut}")
        for row in adapters.rows(serving.run):
            table.add_row(*row)
        if not serving.requests.alike:
            table.add_row("", differences(serving))
        if serving.images is not None:
            one = serving.images.one
            table.add_row(
                "images",
                f"{one.tokens} tokens of each prompt are of images or sound, encoded in {seconds(one.time_s)}, "
                f"{quantity(one.weight_bytes, 'B')} of weights",
            )
        if serving.lockstep_ranks > 1:
            table.add_row("lock step", f"{serving.lockstep_ranks} replicas pass the same experts, each step together")
        table.add_row("memory", f"{held} sequences fit{_running(serving)}")
        place = serving.room(serving.draft_length)
        for row in room.rows(place, serving.longest_context(longest), longest, run.model.context):
            table.add_row(*row)
        most = steady.capacity.load * serving.plan.dp
        table.add_row("capacity", f"{most:.5g} requests/s, limited by {LIMITS[steady.capacity.limit]}")
        table.add_row("alone", _times(serving.point(0.0)))
        _add_largest(serving, table)
        if serving.answer is not None:
            _add_answer(serving, serving.answer, table)
        console.print(table)
        if serving.replayed is not None:
            serving_trace.show(serving.replayed, serving.answer, console)
        console.print("\nthroughput and latency", style="bold")
        console.print(curve(serving))
        _show_pools(serving, console)
        _show_speculation(serving, console)
        console.print("\nmeaning", style="bold")
        show_lines(console, as_text().splitlines())
    show_warnings(warnings(serving), console)


def _running(serving: Serving) -> str:
    """How many sequences run at once, and who says so."""
    if (most := serving.most_running(serving.draft_length)) is None:
        return ""
    asked = serving.asked.workload.max_num_seqs is not None
    return f", {most} a replica run at once{'' if asked else f' (default of {serving.run.stack.name})'}"


def _add_largest(serving: Serving, table: Table) -> None:
    largest = serving.largest
    if largest is None or largest.load is None:
        return
    load = largest.load * serving.plan.dp
    if largest.state is None:
        table.add_row("largest load", f"below {load:.5g} requests/s, the capacity: no target limits it")
    else:
        table.add_row("largest load", f"{load:.5g} requests/s, limited by {LIMITS[largest.limit]}", bold=True)


def _add_answer(serving: Serving, point: LoadPoint, table: Table) -> None:
    name = f"at {point.load:.5g} req/s"
    if serving.loop is not None:
        table.add_row("arrivals", arrivals(serving.loop[1]))
    if point.saturated:
        table.add_row(name, f"saturated: utilisation {percent(point.utilisation)}", bold=True)
        return
    devices = serving.plan.devices
    output, all_tokens = point.output_tokens_per_s or 0.0, point.tokens_per_s or 0.0
    bounds = [f"{name} {seconds(value)}" for name, value in (point.ttft_bound_s or {}).items() if value is not None]
    lines = [
        f"utilisation {percent(point.utilisation)}, {_times(point)}, e2e {_seconds(point.e2e_s)}",
        (
            f"output {quantity(output, 'token/s')} ({quantity(output / devices, 'token/s')} a device), "
            f"all {quantity(all_tokens, 'token/s')}"
        ),
        (
            f"concurrency {point.concurrency:.4g}, kv use {percent(point.kv_use or 0.0)}; wait "
            f"{_seconds(point.boundary_wait_s)} boundary, {_seconds(point.queue_wait_s)} queue, "
            f"{_seconds(point.cache_wait_s)} cache; prefill {_seconds(point.prefill_s)}"
        ),
    ]
    if point.prefill_s is None:
        del lines[2]
    if bounds:
        lines.append(f"bounds of TTFT: {', '.join(bounds)}")
    shares = serving.shares(point)
    if shares:
        parts = ", ".join(f"{name} {percent(share)}" for name, share in shares.items() if share)
        lines.append(f"an iteration is due to {parts}")
    if serving.loop is not None:
        lines[1:1] = _run_lines(serving.loop[1])
    for place, line in enumerate(lines):
        table.add_row("" if place else name, line)


def _run_lines(loop: LoopAnswer) -> list[str]:
    """What only a run with a beginning has."""
    if loop.burst_ttft_s is None:
        return []
    later = "" if loop.steady_ttft_s is None else f", {_seconds(loop.steady_ttft_s)} behind the burst"
    return [
        (
            f"TTFT of those sent at once {_seconds(loop.burst_ttft_s)}, of the last of them "
            f"{_seconds(loop.burst_last_ttft_s)}{later}; all done after {_seconds(loop.duration_s)}"
        )
    ]


def curve(serving: Serving) -> Table:
    """A row a load."""
    table = Table(("requests/s", "utilisation", "TTFT", "TPOT", "e2e", "output token/s", "a device", "concurrency"))
    for point in serving.curve:
        table.add_row(
            f"{point.load:.4g}",
            percent(point.utilisation),
            _seconds(point.ttft_s),
            _seconds(point.tpot_s),
            _seconds(point.e2e_s),
            f"{point.output_tokens_per_s or 0:.5g}",
            f"{point.output_tokens_per_s_per_device or 0:.5g}",
            f"{point.concurrency or 0:.4g}",
        )
    return table


def _show_pools(serving: Serving, console: Console) -> None:
    found = serving.pools
    if found is None:
        return
    console.print("\nprefill and decode on instances of their own", style="bold")
    each = serving.plan.tp * serving.plan.pp
    console.print(
        f"an instance of {each} devices prefills {found.prefill_load:.4g} or decodes {found.decode_load:.4g} requests/s"
        f"; best: {percent(found.decode_share)} decode, {found.load_per_instance:.4g} requests/s each"
    )
    console.print(f"a prompt's cache takes {seconds(found.transfer_s)} to move")
    if found.load is not None:
        console.print(
            f"of {serving.plan.dp} instances {found.prefill_instances} prefill and {found.decode_instances} decode: "
            f"{found.load:.4g} requests/s, TTFT {_seconds(found.ttft_s) or 'unbounded'}, TPOT {_seconds(found.tpot_s)}"
        )


def _show_speculation(serving: Serving, console: Console) -> None:
    found = _speculation(serving)
    if found is None:
        return
    console.print("\nspeculative decoding, a request alone", style="bold")
    console.print(
        f"{found['draft']} drafts {found['draft_length']}: {found['tokens_per_step']:.4g} tokens a step, "
        f"a draft costs {found['draft_cost']:.3g} and verifying {found['verify_cost']:.4g} of a step: "
        f"{found['speedup']:.4g} times as fast"
    )
    console.print(f"best: {found['best_draft_length']} tokens, {found['best_speedup']:.4g} times as fast")

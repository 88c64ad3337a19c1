"""Two pools, one that prefills and one that decodes, as terminal tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.table import Table
from .run_parts import facts, show_warnings, title
from .scaled import percent, quantity, seconds

if TYPE_CHECKING:
    from rich.console import Console

    from ..serve.apart import Apart, PoolPoint
    from ..serve.serving import Serving

LIMITS = {"prefill": "the pool that prefills", "decode": "the pool that decodes", "transfer": "the move of caches"}
"""What limits a load, in words."""


def reasons(apart: Apart) -> tuple[str, ...]:
    """Why there is no answer."""
    for name, serving in (("prefills", apart.prefill), ("decodes", apart.decode)):
        if not serving.fits:
            return (f"does not fit: an instance that {name} does not hold the model and one sequence",)
    if apart.served:
        return ()
    load, (limit, most) = apart.asked.load, min(apart.limits.items(), key=lambda each: each[1])
    if load is not None and load >= most:
        return (f"saturated: load {load:g} is not below {most:.6g} requests/s, which {LIMITS[limit]} limits",)
    return ("no load meets the targets" if load is None else f"load {load:g} misses a target: {_times(apart.answer)}",)


def _times(point: PoolPoint | None) -> str:
    return "" if point is None else f"TTFT {seconds(point.ttft_s)}, TPOT {seconds(point.tpot_s)}"


def show(apart: Apart, console: Console) -> None:
    """Print both pools, the answer and the curve."""
    asked, run = apart.asked, apart.decode.run
    console.print(title(run.model.name, apart.devices, run.system, run.stack.title))
    table = facts()
    table.add_row("requests", f"{asked.prompt} tokens in, {asked.generate} out")
    for name, serving in (("prefill", apart.prefill), ("decode", apart.decode)):
        table.add_row(name, _pool(serving))
    if apart.fits:
        table.add_row("transfer", f"{seconds(apart.transfer_s)} for a prompt's cache, over the slower of both networks")
        table.add_row("limits", ", ".join(f"{name} {load:.5g}" for name, load in apart.limits.items()) + " requests/s")
        if apart.largest is not None:
            load, limit = apart.largest
            table.add_row("largest load", f"{load:.5g} requests/s, limited by {LIMITS[limit]}", bold=True)
        if apart.answer is not None:
            table.add_row(f"at {apart.answer.load:.5g} req/s", _answer(apart.answer))
        if (loop := apart.in_flight) is not None:
            wait = f", of which {seconds(loop.place)} a request wait for a place" if loop.place else ""
            told = f"TTFT {seconds(loop.first_token)}, TPOT {seconds(loop.token)}{wait}; {loop.load:.5g} requests/s"
            table.add_row(f"{asked.workload.concurrency} in flight", told)
    console.print(table)
    if apart.curve:
        console.print("\nthroughput and latency", style="bold")
        console.print(curve(apart))
    show_warnings((*reasons(apart), *apart.warnings), console)


def _pool(serving: Serving) -> str:
    plan, run = serving.plan, serving.run
    return f"{plan.dp} instances of {plan.devices // plan.dp} {run.system.name}, {plan}; {run.stack.name}"


def _answer(point: PoolPoint) -> str:
    return (
        f"{_times(point)}, e2e {seconds(point.e2e_s)}; utilisation {percent(point.prefill_utilisation)} prefill, "
        f"{percent(point.decode_utilisation)} decode, {percent(point.transfer_utilisation)} transfer; "
        f"{quantity(point.output_tokens_per_s_per_device, 'token/s')} a device"
    )


def curve(apart: Apart) -> Table:
    """A row a load."""
    table = Table(
        ("requests/s", "prefill", "decode", "transfer", "TTFT", "TPOT", "e2e", "token/s a device", "decoding")
    )
    for point in apart.curve:
        used = (point.prefill_utilisation, point.decode_utilisation, point.transfer_utilisation)
        table.add_row(
            f"{point.load:.4g}",
            *map(percent, used),
            *map(seconds, (point.ttft_s, point.tpot_s, point.e2e_s)),
            f"{point.output_tokens_per_s_per_device:.5g}",
            f"{point.decoding:.4g}",
        )
    return table

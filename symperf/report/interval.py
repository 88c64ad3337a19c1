"""The intervals of a run's answers as JSON and as lines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..evaluation.causes import HOST, IMBALANCE, KERNELS, NETWORK, REST, SOFTWARE
from ..evaluation.uncertainty import LEVEL, interval
from .scaled import percent, quantity, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evaluation.base_run import BaseRun
    from ..evaluation.uncertainty import Interval

ANSWERS = ("time", "prefill", "decode", "time_per_token", "tokens_per_s")
"""Outputs whose interval is told where a run has them."""
HEAD = f"{LEVEL:.0%} interval, from the spreads of efficiencies and overheads, and from measured steps:"
TOLD = {
    KERNELS: "what kernels reach",
    NETWORK: "what links and collectives reach",
    HOST: "launches and the host",
    IMBALANCE: "how unevenly tokens choose experts",
    SOFTWARE: "kernels were not measured on this device",
    REST: "what measured steps ask for beside these",
}
"""What each cause is, in a few words."""
SECONDS = ("time", "prefill", "decode", "time_per_token")


def as_json(run: BaseRun) -> dict[str, Any]:
    """The level, the two ends of every answer, and what each symbol's spread does to the time."""
    found: dict[str, Any] = {"level": LEVEL}
    for name in _answers(run):
        ends = interval(run, name)
        found[f"{name}_s" if name in SECONDS else name] = [ends.low, ends.high]
    found["effects"] = [
        {
            "name": effect.name,
            "low": effect.low,
            "high": effect.high,
            "time_s_at_low": effect.at_low,
            "time_s_at_high": effect.at_high,
        }
        for effect in interval(run).effects
    ]
    return found | {"causes": causes_json(interval(run))}


def causes_json(found: Interval) -> dict[str, list[float]]:
    """Times that each cause alone makes the answer lower, and higher."""
    return {cause: [math.exp(-down), math.exp(up)] for cause, (down, up) in found.causes.items()}


def served_json(found: Mapping[str, Interval]) -> dict[str, Any]:
    """The level, and the two ends and the causes of each of a server's times."""
    ends = {f"{name}_s": [one.low, one.high] for name, one in found.items()}
    return {"level": LEVEL, **ends, "causes": {name: causes_json(one) for name, one in found.items()}}


def lines(run: BaseRun) -> list[str]:
    """One line an answer, and one for each symbol that moves the time by a tenth of a per cent or more."""
    found = [HEAD]
    for name in _answers(run):
        ends = interval(run, name)
        text = seconds if name in SECONDS else _per_second
        found.append(f"{name.replace('_', ' '):22}[{text(ends.low)}, {text(ends.high)}]")
    time = interval(run)
    for effect in time.effects:
        change = [end / time.value - 1 for end in (effect.at_low, effect.at_high)]
        if max(map(abs, change)) >= 1e-3:
            spread = f"{effect.low:.4g} to {effect.high:.4g}"
            found.append(f"  {effect.name:28}{spread:24}time {_sign(change[0])} to {_sign(change[1])}")
    return [*found, *cause_lines(time)]


def served_lines(found: Mapping[str, Interval]) -> list[str]:
    """One line for each of a server's times, and its causes."""
    lines = [HEAD] if found else []
    for name, one in found.items():
        lines.append(f"{name.upper():22}[{seconds(one.low)}, {seconds(one.high)}]")
        lines += cause_lines(one)
    return lines


def cause_lines(found: Interval) -> list[str]:
    """One line for each cause that moves an answer by a tenth of a per cent or more."""
    return [
        f"  {cause:28}{TOLD[cause]:42}{_sign(math.exp(-down) - 1)} to {_sign(math.exp(up) - 1)}"
        for cause, (down, up) in found.causes.items()
        if max(down, up) >= 1e-3
    ]


def _answers(run: BaseRun) -> list[str]:
    outputs = run.compiled.program.outputs
    return [name for name in ANSWERS if name in outputs and run.value(name)]


def _per_second(value: float) -> str:
    return quantity(value, "token/s")


def _sign(share: float) -> str:
    return f"{'+' if share >= 0 else '-'}{percent(abs(share))}"

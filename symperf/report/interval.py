"""The intervals of a run's answers as JSON and as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evaluation.uncertainty import LEVEL, interval
from .scaled import percent, quantity, seconds

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun

ANSWERS = ("time", "prefill", "decode", "time_per_token", "tokens_per_s")
"""Outputs whose interval is told where a run has them."""
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
    return found


def lines(run: BaseRun) -> list[str]:
    """One line an answer, and one for each symbol that moves the time by a tenth of a per cent or more."""
    found = [f"{LEVEL:.0%} interval, from the spreads of efficiencies and overheads:"]
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
    return found


def _answers(run: BaseRun) -> list[str]:
    outputs = run.compiled.program.outputs
    return [name for name in ANSWERS if name in outputs and run.value(name)]


def _per_second(value: float) -> str:
    return quantity(value, "token/s")


def _sign(share: float) -> str:
    return f"{'+' if share >= 0 else '-'}{percent(abs(share))}"

"""What each metric of a serving system means; read by help, reports and documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFINITIONS: Final[Mapping[str, str]] = {
    "utilisation": "load / capacity, the largest load that has a steady state; saturated from 1 on",
    "ttft": "mean time from arrival to first token: W_b + W_q + W_k + S_p (boundary, queue, cache, prefill)",
    "tpot": "mean time of each later token: (e2e - ttft) / (G - 1); equals ITL, the mean gap between tokens",
    "itl with prefill": "gap between tokens across an iteration that prefills too; others are shorter",
    "e2e": "mean time from arrival to last token: ttft + (G - 1) tpot",
    "output tokens": "load x G a second, of all replicas together; per device: over tp x pp x dp",
    "all tokens": "load x (P + G) a second: prompts and output",
    "concurrency": "mean sequences that decode or are prefilled, all replicas: load x (S_p + (G - 1) tpot)",
    "in flight": "N requests, the next sent as one ends: load = N / (ttft + (G - 1) tpot) exactly; all are means",
    "run of M": "ttft: mean of N sent at once and M - N behind them; load: over the run, to its last token",
    "kv use": "mean part of the cache's memory that holds tokens",
    "bound p90, p99": "a time that at most 10 %, 1 % of first tokens exceed (Cantelli); not an estimate",
}
"""Every metric of the output, and its formula."""


def as_text() -> str:
    """One line a metric."""
    wide = max(map(len, DEFINITIONS))
    return "\n".join(f"{name:<{wide}}  {text}" for name, text in DEFINITIONS.items())

"""Symbols of what software and chance add to a training step."""

from __future__ import annotations

from ..dimension import SECOND
from .entry import ZERO_UP, add

host_latency = add(
    "efficiency",
    "host_latency",
    r"\lambda_h",
    "Time that the host needs to launch one kernel of a training step.",
    SECOND,
    ZERO_UP,
    "host",
)
overhead_latency = add(
    "efficiency",
    "overhead_latency",
    r"\lambda_o",
    "Time of a training step that no kernel explains: input of data, logging, synchronisation of the host.",
    SECOND,
    ZERO_UP,
    "host",
)
jitter = add(
    "efficiency",
    "jitter",
    r"\sigma_j",
    "Standard deviation of the time that devices need for the same work, as a part of it.",
    domain=ZERO_UP,
)

"""`Operation`: what one operation of an inference is, how often it runs and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """One operation of a phase.

    Attributes:
        phase: "prefill" or "decode"; "encoder" of images and recordings.
        name: its path in the phase.
        m: rows of a product's result; None where the operation is no product.
        n: columns.
        k: length of the contracted dimension.
        count: executions on the way of the batch through all stages, over all steps.
        time_s: seconds of all executions.
        bound: the resource with the largest share of the time.
    """

    phase: str
    name: str
    m: int | None
    n: int | None
    k: int | None
    count: float
    time_s: float
    bound: str | None

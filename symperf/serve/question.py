"""A question about serving from what a user gives: lengths and a load, or a trace that has both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from .request import ServingRequest
from .trace import Trace
from .workload import Workload

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

OF_A_TRACE = ("max_num_seqs",)
"""What of a workload may be said beside a trace."""


def build_request(
    work: Mapping[str, Any],
    load: Mapping[str, Any],
    trace: str | os.PathLike[str] | None,
    images: tuple[Any, ...] = (),
) -> tuple[ServingRequest, Trace | None]:
    """The question, and the means of the trace where there is one.

    Args:
        work: fields of a `ServingRequest`; None where they are not given.
        load: fields of a `Workload`, likewise.
        trace: path of recorded requests.
        images: of each request.

    Raises:
        InputError: no lengths and no trace, both, or a value out of range.
    """
    given = {name: value for name, value in work.items() if value is not None}
    loads = {name: value for name, value in load.items() if value is not None}
    if trace is None:
        for name in ("prompt", "generate"):
            if name not in given:
                raise InputError(f"{name}: missing, expected tokens of each request, or a trace")
        return ServingRequest(**given, images=images, workload=Workload(**loads)), None
    defaults = Workload()
    said: list[str] = [name for name in ("prompt", "generate", "load") if name in given]
    said += [name for name, value in loads.items() if name not in OF_A_TRACE and value != getattr(defaults, name)]
    if said or images:
        name = said[0] if said else "images"
        raise InputError(f"{name}: found together with a trace, which has lengths and arrivals of its own")
    ServingRequest(1, 1, **given, workload=Workload(**loads))  # checks what is asked before the trace is read
    read = Trace.load(trace)
    loads["generate_spread"] = read.spread
    if read.rate is None:
        loads["burst"] = read.count
    else:
        given["load"] = read.rate
    return ServingRequest(read.prompt, read.generate, **given, workload=Workload(**loads)), read

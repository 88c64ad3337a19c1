"""`symperf.search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.numbers import plain_arguments
from ..plans.arguments import load_model, load_system
from .request import check_mapping
from .search import answer, sort_keywords

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from ..common.cluster import Scheduler
    from ..models.model import Model
    from ..systems.system import System


@plain_arguments
def search(
    model: Model | str,
    system: System | str,
    *,
    devices: int | Sequence[int],
    batch: int,
    sequence: int,
    top: int = 10,
    by: str = "time",
    max_memory: float | str | None = None,
    require: Mapping[str, Any] | None = None,
    pareto: bool = False,
    dask: str | Scheduler | None = None,
    stack: str | os.PathLike[str] | None = None,
    **words: Any,
) -> pd.DataFrame:
    """The best plans for a training step, of all that are legal.

    Args:
        model: what to train, or its name or file.
        system: what to train on, or its name or file.
        devices: how many, all of them used; several numbers are searched one after another and ranked together.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        top: plans to return.
        by: "time", "tokens_per_dollar" or "tokens_per_joule" (of resources where the system tells their energies, else
            at each device's board power).
        max_memory: bytes on a device that a plan may use, or a text with a unit; by default its capacity.
        require: values that a field of the plan may take, one or a list, by field.
        pareto: return the plans that no other is as good as in time, memory and devices, and not the `top`.
        dask: the address of the scheduler of a Dask cluster that computes the search, such as `tcp://10.0.0.1:8786`,
            or a `symperf.common.cluster.Scheduler` with the files of TLS. It is trusted as code is (SECURITY.md).
        stack: name of a training software's profile (`symperf list stacks`), or the path of one; what it chooses for
            fields that are no choice of the search is taken.
        words: limits such as `max_tp=8`, required fields such as `zero=1`, values of symbols such as
            `memory_efficiency=0.9`.

    Returns:
        A row a plan, best first: the plan's fields, `devices`, `time_s`, `tokens_per_s`, `mfu`, `memory_bytes`. `attrs`
        counts the plans `considered`, `legal`, `feasible`, `pruned` and `rejected` (by reason), and has the `shares`
        of the best.

    Raises:
        InputError: bad input; constraints that contradict each other; devices that no plan can use.
        Unreachable: no plan fits; the message names what would.
        KeyboardInterrupt: the search was interrupted.
    """
    import pandas as pd

    limits, fields, values = sort_keywords(words)
    found = answer(
        load_model(model),
        load_system(system),
        devices=devices,
        batch=batch,
        sequence=sequence,
        top=top,
        by=by,
        max_memory=max_memory,
        require={**check_mapping("require", require or {}), **fields},
        limits=limits,
        pareto=pareto,
        values=values,
        dask=dask,
        stack=stack,
    )
    if not found.whole:
        raise KeyboardInterrupt  # a table does not show that it is of a part
    table = pd.DataFrame(found.front if pareto else found.records)
    table.attrs = {
        "considered": found.considered,
        "legal": found.legal,
        "feasible": found.feasible,
        "pruned": found.pruned,
        "rejected": found.rejected,
        "shares": found.winner.shares(),
    }
    return table

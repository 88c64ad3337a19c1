"""The intervals of a server's two times: to the first token, and of each later one.

A time to the first token goes with the pass of a prompt, a later one with a step that generates: each has the spread of
its part, and the rest that measured servers ask for, waits included (`evaluation/causes.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..evaluation.causes import FIRST_TOKEN, TOKEN, group_name
from ..evaluation.uncertainty import interval

if TYPE_CHECKING:
    from ..evaluation.uncertainty import Interval
    from .serving import Serving

PARTS: Final = {"ttft": ("ttft_s", "prefill", FIRST_TOKEN), "tpot": ("tpot_s", "time_per_token", TOKEN)}
"""A server's times -> attribute of a load's point, output of the run that it goes with, and kind of answer."""


def served_intervals(serving: Serving) -> dict[str, Interval]:
    """The interval of each of a server's two times at its answer, by name; those without a time have none.

    Of two pools the first token goes with that which prefills, and later ones with that which decodes.
    """
    apart, found = serving.apart, {}
    answer = serving.answer if apart is None else apart.answer
    if answer is None:
        return {}
    first = serving if apart is None else apart.prefill
    for name, (attribute, output, kind) in PARTS.items():
        value, run = getattr(answer, attribute), (first if name == "ttft" else serving).run
        if value:
            group = group_name(run.stack.name, run.system.name, run.model.name)
            found[name] = interval(run, output, kind, group, value)
    return found

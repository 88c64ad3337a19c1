"""What speculative decoding brings to a request of a serving system alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .speculation import speedup as gain

if TYPE_CHECKING:
    from .serving import Serving


def speculative_gain(serving: Serving) -> dict[str, float] | None:
    """What drafting brings to a request alone; None without a draft model or later tokens."""
    if serving.draft is None or serving.asked.generate == 1:
        return None
    length = serving.draft_length
    plain = serving.times(0).decode(1.0)
    verify = serving.evaluators[0]("decode", decoding=1.0, step_tokens=length + 1.0, groups_in_flight=1.0)
    draft = (serving.times(length).decode(1.0) - verify) / length
    best = serving.best_draft_length

    def speedup(k: int) -> float:
        return plain * serving.tokens_of_a_step(k) / serving.times(k).decode(1.0)

    assert serving.asked.acceptance is not None
    return {
        "tokens_per_step": serving.tokens_of_a_step(length),
        "draft_cost": draft / plain,
        "verify_cost": verify / plain,
        "speedup": gain(serving.asked.acceptance, length, draft, verify, plain),
        "best_draft_length": best,
        "best_speedup": speedup(best),
    }

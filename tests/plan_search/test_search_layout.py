"""How a space is laid out: what is known of one choice serves others, and they are the same as found alone."""

from __future__ import annotations

import numpy as np
import pytest

import symperf as sf
from symperf.plan_search import space
from symperf.plan_search.evaluate import lay_out_space
from symperf.plan_search.space import SearchQuestion


@pytest.mark.parametrize(
    ("model", "required"),
    [
        ("gpt-22b", {}),
        ("mixtral-8x7b", {"recompute": ("full",), "zero": (0, 1)}),
        ("gpt-22b", {"zero": (1,), "zero_shards": (None, 2), "recompute": ("full",), "schedule": ("1f1b",)}),
    ],
)
def test_both_orders_of_ranks_share_what_choices_say(
    monkeypatch: pytest.MonkeyPatch, model: str, required: dict[str, tuple[object, ...]]
) -> None:
    """Structures, refusals, what rules read, and rows are those of each order laid out by itself."""
    question = SearchQuestion(sf.Model.load(model), sf.System.load("h100-sxm"), 32, 64, 2048, required=required)
    shared = lay_out_space(question)
    assert len({c.fields["rank_order"] for c in shared.combinations}) == 2
    monkeypatch.setattr(space, "_serves_both_orders", lambda *_: False)
    alone = lay_out_space(question)
    for one, other in zip(shared.combinations, alone.combinations, strict=True):
        assert vars(one) == vars(other)
    for mine, theirs in zip(shared.members, alone.members, strict=True):
        assert (mine.number, mine.table, mine.scalars) == (theirs.number, theirs.table, theirs.scalars)
        assert np.array_equal(mine.legal, theirs.legal)
    assert (shared.rejected, shared.examples) == (alone.rejected, alone.examples)

"""The nearest number of devices that a plan can use is what trying one number after another finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.effort import some

import symperf as sf
from symperf.plan_search import nearest
from symperf.plan_search.evaluate import lay_out_space
from symperf.plan_search.space import SearchQuestion

if TYPE_CHECKING:
    from collections.abc import Callable

ASKED: list[tuple[str, int, int, dict[str, Any], dict[str, int]]] = [
    ("gpt2", 23, 6, {"uneven_stages": (False,)}, {}),
    ("gpt2", 97, 4, {"schedule": ("1f1b", "interleaved")}, {"cp": 2}),
    ("olmoe-1b-7b", 61, 8, {"schedule": ("1f1b",), "cp": (1,)}, {"tp": 4}),
    ("mamba2-2.7b", 29, 4, {"schedule": ("1f1b",)}, {}),
    ("gpt2", 11, 4, {"tp": (2,), "schedule": ("dualpipe",)}, {}),
]


def question(of: tuple[str, int, int, dict[str, Any], dict[str, int]]) -> SearchQuestion:
    model, devices, batch, required, limits = of
    system = sf.System.load("h100-sxm")
    return SearchQuestion(sf.Model.load(model), system, devices, batch, 256, required=required, limits=limits)


@pytest.mark.parametrize("of", some(ASKED), ids=str)
def test_as_one_number_after_another(of: tuple[str, int, int, dict[str, Any], dict[str, int]]) -> None:
    """What is left out beforehand could not have been used, and the nearest of the rest is found."""
    asked = question(of)
    possible = list(nearest._possible(asked))
    assert [abs(count - asked.devices) for count in possible] == sorted(abs(n - asked.devices) for n in possible)
    near = [count for count in range(max(1, asked.devices - 16), asked.devices + 17) if count != asked.devices]
    usable = {count for count in near if lay_out_space(nearest._slim(asked, count)).legal}
    assert usable
    assert usable <= set(possible)
    assert nearest.nearest_devices(asked) == min(usable, key=lambda count: (abs(count - asked.devices), count))


def test_where_products_are_too_many_every_number_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question(ASKED[0])
    found = nearest.nearest_devices(asked)
    monkeypatch.setattr(nearest, "PRODUCTS", 0)
    assert len(list(nearest._possible(asked))) == nearest.FARTHEST - 1 + asked.devices - 1
    assert nearest.nearest_devices(asked) == found


def test_a_million_devices(call: Callable[[Any], Any]) -> None:
    """10^6 = 2^6 5^6 is no product of degrees of GPT-3 with a batch of 1,536; 999,424 = 2^14 x 61 is."""
    code, out, err = call(
        ["search", "gpt3-175b", "-s", "h100-sxm", "--devices", "1000000", "--batch", "1536", "--sequence", "2048"]
    )
    assert (code, out) == (2, "")
    assert "the nearest number that one can use is 999424" in err

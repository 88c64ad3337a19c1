"""Groups of experts of which a token chooses some: how files say it, and what runs make of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.model_configs import DEEPSEEK, MIXTRAL, load_config

import symperf as sf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GROUPS = ("num_expert_groups", "expert_groups_per_token")


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Any], sf.Model]:
    return partial(load_config, tmp_path)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, (8, 4)),  # the class of DeepSeek-V3
        ({"n_group": 8, "topk_group": 4}, (8, 4)),
        ({"n_group": 4, "topk_group": 1}, (4, 1)),
        ({"topk_group": 3}, (8, 3)),
        ({"n_group": 1, "topk_group": 1}, None),
        ({"n_group": 8, "topk_group": 8}, None),
        ({"n_group": 8, "topk_group": 2, "topk_method": "greedy"}, None),
        ({"model_type": "deepseek_v2"}, None),
        ({"model_type": "deepseek_v2", "n_group": 8, "topk_group": 3}, (8, 3)),
    ],
)
def test_a_file_says_its_groups(load: Any, said: dict[str, Any], found: tuple[int, int] | None) -> None:
    model = load(DEEPSEEK | said)
    assert model.architecture.grouped_routing == (found is not None)
    assert tuple(model.sizes.get(name) for name in GROUPS) == (found or (None, None))


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ({"n_group": 2, "topk_group": 3}, "topk_group is 3, expected at most the 2 groups of experts"),
        ({"n_group": 3, "topk_group": 2}, "the 8 experts do not form 3 groups alike"),
        ({"model_type": "deepseek_v2", "n_group": 8}, "topk_group is missing, expected a positive integer"),
        ({"topk_method": "noaux"}, "topk_method is 'noaux', expected greedy or group_limited_greedy or noaux_tc"),
        ({"n_group": 0}, "n_group is 0, expected a positive integer"),
    ],
)
def test_groups_that_are_none_are_refused(load: Any, model: dict[str, Any], line: str) -> None:
    with pytest.raises(sf.InputError) as caught:
        load(DEEPSEEK | model)
    assert line in str(caught.value)


def test_other_models_have_no_groups(load: Any) -> None:
    assert not load(MIXTRAL).architecture.grouped_routing
    assert not sf.Model.load("glm-4.5").architecture.grouped_routing
    assert sf.Model.load("ling-mini-2.0").architecture.grouped_routing


SERVED = {"batch": 64, "prompt": 1024, "generate": 32}


def times(node_limit: int | None, *, serves: bool) -> float:
    """Seconds of DeepSeek-V3 over eight nodes."""
    plan = sf.Plan(dp=64, ep=64, precision="fp8", node_limit=node_limit)
    if serves:
        return float(sf.inference("deepseek-v3", "h100-sxm", plan, **SERVED).value("prefill"))
    return float(sf.training("deepseek-v3", "h100-sxm", plan, batch=64, sequence=1024).time.value())


@pytest.mark.parametrize("serves", [False, True])
def test_the_file_limits_the_nodes_of_a_token_unless_the_plan_does(serves: bool) -> None:
    """4 of 8 groups are 4 of 8 nodes; in all eight nodes a token sends twice as much."""
    assert times(None, serves=serves) == times(4, serves=serves) < times(8, serves=serves)


def test_inference_refuses_a_limit_without_experts() -> None:
    with pytest.raises(sf.InputError, match="node_limit: found 4, but llama-2-7b has no experts"):
        sf.inference("llama-2-7b", "h100-sxm", sf.Plan(node_limit=4), **SERVED)

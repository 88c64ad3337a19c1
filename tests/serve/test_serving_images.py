"""Serving requests with images: the encoder takes time of every iteration that prefills, memory, and tokens."""

from __future__ import annotations

import dataclasses
import itertools
import json
from functools import lru_cache
from typing import Any

import pytest
from support.serving_cases import affine

import symperf as sf
from symperf.cli import main
from symperf.serve.images import TimesWithImages
from symperf.serve.simulator import poisson, simulate
from symperf.serve.steady import Steady


@lru_cache
def serve(*images: str, **how: Any) -> Any:
    """A vision model on four H100 under vLLM."""
    plan = {name: how.pop(name) for name in list(how) if name in sf.Plan.names()}
    asked: dict[str, Any] = {"prompt": 512, "generate": 64, "stack": "vllm"} | how
    return sf.serving("qwen3-vl-4b", "h100-sxm", sf.Plan(**{"tp": 2} | plan), images=images, **asked)


@dataclasses.dataclass(frozen=True)
class Each:
    """Images that take as long for every prompt."""

    time: float

    def seconds(self, prompts: float) -> float:
        return self.time * prompts


ENGINES = {
    "cut prompts": affine(1000, 100, 4, 1),
    "several prompts a chunk": affine(200, 100, 1, 5),
    "prefill only": affine(400, 1, 2, 1),
}


@pytest.mark.parametrize("part", [0.3, 0.6])
@pytest.mark.parametrize("name", ENGINES)
def test_means_agree_with_a_simulation_that_encodes_before_the_first_chunk(name: str, part: float) -> None:
    """Where the images of a prompt take as long as its tokens; the first token within the 5 % of runs without them."""
    plain = ENGINES[name]
    encoder = plain.times.token * plain.prompt
    times = TimesWithImages(plain.times, Each(encoder), plain.prompt)
    steady = Steady(dataclasses.replace(plain, times=times))
    assert steady.capacity.load < Steady(plain).capacity.load
    load = part * steady.capacity.load
    state, found = steady.at_load(load), simulate(plain, poisson(plain, load, 7, encoder), 6000, skip=1200)
    assert state is not None
    assert found.throughput == pytest.approx(load, rel=0.05)
    assert state.first_token == pytest.approx(found.first_token, rel=0.05)
    if plain.generate > 1:
        assert state.iteration == pytest.approx(found.per_token, rel=0.05)


def test_a_request_alone_waits_for_its_encoder() -> None:
    """TTFT without load is that of as many tokens of text, and the encoder's pass of one prompt."""
    with_images, text = serve("1x1024x1024"), serve(prompt=512 + 1024)
    assert with_images.asked.prompt == 512 + 1024
    more = with_images.point(0.0).ttft_s - text.point(0.0).ttft_s
    assert more == pytest.approx(with_images.images.one.time_s, rel=1e-9)
    assert with_images.point(0.0).tpot_s == pytest.approx(text.point(0.0).tpot_s, rel=1e-12)


def test_the_encoder_lowers_the_capacity_and_takes_memory() -> None:
    with_images, text = serve("1x1024x1024"), serve(prompt=512 + 1024)
    assert with_images.steady.capacity.load < text.steady.capacity.load
    memory, before = with_images.memory(0), text.memory(0)
    weights = with_images.images.weight_bytes
    assert memory["weights"] == before["weights"] + weights
    assert memory["fixed"] >= before["fixed"] + weights
    assert memory["sequence"] == before["sequence"]
    assert with_images.held(0) < text.held(0)
    load = 0.5 * with_images.steady.capacity.load
    assert with_images.point(load).tpot_s > text.point(load).tpot_s


def test_more_and_larger_images_never_help() -> None:
    rising = [(), ("1x448x448",), ("1x896x896",), ("2x896x896",), ("3x896x896",), ("6x896x896",), ("6x896x1792",)]
    found = [serve(*images) for images in rising]
    for one, other in itertools.pairwise(found):
        assert other.point(0.0).ttft_s > one.point(0.0).ttft_s
        assert other.steady.capacity.load < one.steady.capacity.load
        assert other.limit(0) <= one.limit(0)
    load = 0.5 * found[-1].steady.capacity.load
    waits = [each.point(load).ttft_s for each in found]
    assert waits == sorted(waits)


def test_prompts_of_one_iteration_are_encoded_together() -> None:
    images = serve("1x448x448").images
    one, two, three = (images.seconds(count) for count in (1, 2, 3))
    assert one < two < three < 3 * one
    assert images.seconds(0.25) == one / 4
    assert images.seconds(1.5) == pytest.approx((one + two) / 2)


def test_the_first_stage_encodes_for_every_group_of_a_pipeline() -> None:
    found = serve("1x448x448", tp=1, pp=2)
    times = found.times(0)
    encoder = found.images.seconds(1)
    assert times.prefill(found.asked.prompt) == times.times.prefill(found.asked.prompt) + encoder
    assert times.mixed(8, found.asked.prompt) == times.times.mixed(8, found.asked.prompt) + 2 * encoder
    assert times.decode(8) == times.times.decode(8)


def test_shares_with_an_encoder_sum_to_one() -> None:
    found = serve("2x896x896")
    shares = found.shares(found.point(0.5 * found.steady.capacity.load))
    assert sum(shares.values()) == pytest.approx(1, rel=1e-9)
    assert min(shares.values()) >= -1e-12


def test_sound_and_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["serve", "qwen3-vl-4b", "-s", "h100-sxm", "--prompt", "512", "--generate", "64", "--stack", "vllm"]
    assert main([*base, "--tp", "2", "--images", "1x896x896", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    told = serve("1x896x896")
    assert data["prompt"] == 512 + data["images"]["tokens"] == told.asked.prompt
    assert data["capacity"] == told.steady.capacity.load
    assert data["images"]["encode_s"] == told.images.one.time_s
    assert data["memory_bytes"]["weights"] == told.memory(0)["weights"]
    assert main([*base, "--tp", "2", "--json"]) == 0
    assert "images" not in json.loads(capsys.readouterr().out)
    assert main([*base, "--sounds", "1x3000"]) == 2
    assert "has no encoder of sound" in capsys.readouterr().err


def test_an_iteration_as_a_run_refuses_images() -> None:
    with pytest.raises(sf.InputError, match="images: an iteration"):
        serve("1x448x448").iteration()

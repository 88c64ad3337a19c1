"""Two pools of unlike devices or plans: against pools of like ones, by hand, and in the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.cli import main

if TYPE_CHECKING:
    from symperf.serve.apart import Apart

ASKED: dict[str, Any] = {"prompt": 1024, "generate": 128, "stack": "vllm"}
LINE = ["serve", "llama-2-7b", "-s", "h100-sxm", "--prompt", "1024", "--generate", "128", "--stack", "vllm"]


def pools_of(prefill: str, dp: int = 2, **asked: Any) -> Apart:
    found = sf.serving("llama-2-7b", "h100-sxm", sf.Plan(dp=dp), prefill=prefill, **(ASKED | asked)).apart
    assert found is not None
    return found


def test_like_pools_are_those_of_one_system() -> None:
    """Two that prefill and two that decode, as `disaggregation` has them of one kind of instance."""
    apart = pools_of("plan: dp=2", ttft=0.2, tpot=0.01)
    like = sf.serving("llama-2-7b", "h100-sxm", sf.Plan(dp=4), ttft=0.2, tpot=0.01, **ASKED).pools
    assert apart.transfer_s == like.transfer_s
    load, limit = apart.largest
    assert load == pytest.approx(2 * min(like.prefill_load, like.decode_load))
    assert limit == ("prefill" if like.prefill_load < like.decode_load else "decode")
    found = apart.answer
    assert found.ttft_s <= 0.2 * (1 + 1e-6)
    assert found.tpot_s <= 0.01 * (1 + 1e-6)


def test_each_pool_has_its_own_devices() -> None:
    """Prefill takes the A100s' time and decoding the H100s'; the cache moves as slowly as the slower side does."""
    own, unlike = pools_of("plan: dp=2"), pools_of("system: a100-80gb-sxm, plan: dp=2 tp=2")
    assert own.prefill.run.system.name == own.decode.run.system.name == "h100-sxm"
    assert unlike.prefill.run.system.name == "a100-80gb-sxm"
    assert unlike.devices == 6
    assert unlike.limits["decode"] == own.limits["decode"]
    assert unlike.limits["prefill"] != own.limits["prefill"]
    assert unlike.transfer_s == max(unlike.prefill.transfer_s, unlike.decode.transfer_s)
    assert unlike.prefill.transfer_s < unlike.decode.transfer_s  # half of the cache on each device
    twice = pools_of("system: a100-80gb-sxm, plan: dp=4 tp=2")
    assert twice.limits["prefill"] == pytest.approx(2 * unlike.limits["prefill"])


def test_requests_in_flight_keep_little_s_law(capsys: pytest.CaptureFixture[str]) -> None:
    """N requests in flight are the load times what each takes; `serve --json` has the same."""
    apart = pools_of("plan: dp=2", concurrency=16)
    found = apart.in_flight
    assert found is not None
    assert found.load * (found.first_token + 127 * found.token) == pytest.approx(16, rel=1e-6)
    assert pools_of("plan: dp=2").in_flight is None
    asked = ["--dp", "2", "--prefill", "plan: dp=2", "--concurrency", "16", "--requests", "160", "--json"]
    assert main([*LINE, *asked]) == 0
    told = json.loads(capsys.readouterr().out)["pools"]["in_flight"]
    assert told["load"] == found.load
    assert told["first_token"] > found.first_token  # the burst at the beginning waits


def test_times_at_a_load_are_those_of_each_pool() -> None:
    """By hand: Little's law of a pool that decodes, the wait of one that prefills, the cache in the second token."""
    apart = pools_of("system: a100-80gb-sxm, plan: dp=3")
    load = 0.5 * min(apart.limits.values())
    found = apart.point(load)
    assert found.ttft_s == apart.first.at_load(load / 3).first_token
    own = found.tpot_s - apart.transfer_s / 127
    assert found.decoding == pytest.approx(load * 127 * own, rel=1e-6)
    assert found.e2e_s == pytest.approx(found.ttft_s + 127 * found.tpot_s)
    assert found.output_tokens_per_s_per_device == pytest.approx(load * 128 / 5)
    for name in ("ttft_s", "tpot_s", "decode_utilisation"):
        values = [getattr(each, name) for each in apart.curve]
        assert values == sorted(values)
    assert apart.point(min(apart.limits.values())) is None


def test_the_command_line_tells_both_pools(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--prefill", "system: a100-80gb-sxm, plan: dp=3"]
    assert main([*LINE, *chosen, "--load", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["served"]
    assert found["pools"]["prefill"]["instances"] == 3
    assert found["pools"]["answer"]["load"] == 3
    assert main([*LINE, *chosen, "--load", "3000"]) == 1
    assert "saturated: load 3000 is not below" in " ".join(capsys.readouterr().out.split())
    assert main([*LINE, *chosen, "--load", "3", "--ttft", "0.001"]) == 1
    assert "misses a target: TTFT" in " ".join(capsys.readouterr().out.split())
    assert main(LINE) == 0
    assert "prefill and decode on instances" not in capsys.readouterr().out.split("meaning")[-1]


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("model: llama-2-13b", {}, "prefill: found model llama-2-13b, expected none: both pools run one model"),
        ("sistem: a10", {}, "prefill: found 'sistem:', expected plan: or system: .* did you mean system"),
        ("plan: tp=3", {}, "prefill: tp: 3 does not divide the 32 attention heads"),
        ("plan: tpp=2", {}, "prefill: .*tpp"),
        ("kv_precision=fp8", {}, "prefill: cache in fp8 in the pool that prefills and cache in bf16 in the one that"),
        ("plan: dp=2", {"generate": 1}, "prefill: found generate = 1, expected at least 2"),
        ("plan: dp=2", {"draft": "tinyllama-1.1b", "acceptance": 0.5}, "prefill: found a draft model, expected none"),
    ],
)
def test_pools_that_cannot_be_are_one_line(text: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(sf.InputError, match=message) as raised:
        pools_of(text, **more)
    assert "\n" not in str(raised.value)

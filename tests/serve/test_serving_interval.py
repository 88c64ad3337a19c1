"""The intervals of a server's two times."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import symperf as sf
from symperf.evaluation.causes import CAUSES, FIRST_TOKEN, REST, TOKEN, scatter_of
from symperf.serve.interval import served_intervals

ASKED = ["serve", "llama-2-7b", "-s", "h100-sxm", "--prompt", "512", "--generate", "64", "--load", "2"]


def test_each_time_lies_inside_its_own_ends_with_the_rest_of_its_kind() -> None:
    serving = sf.serving("llama-2-7b", "h100-sxm", prompt=512, generate=64, load=2.0)
    found = served_intervals(serving)
    answer = serving.answer
    assert answer is not None
    for name, value, kind in (("ttft", answer.ttft_s, FIRST_TOKEN), ("tpot", answer.tpot_s, TOKEN)):
        ends, rest = found[name], scatter_of(kind)
        assert ends.value == pytest.approx(value)
        assert ends.low < ends.value < ends.high
        assert ends.causes[REST] == (rest.below, rest.above)
        assert ends.high / ends.value == pytest.approx(math.exp(math.hypot(*(up for _, up in ends.causes.values()))))
    symbols = {effect.name for effect in found["tpot"].effects}
    assert symbols <= set(serving.run.quantities())


def test_of_two_pools_each_time_is_of_its_own_pool() -> None:
    work = {"prompt": 512, "generate": 64, "load": 2.0}
    serving = sf.serving("llama-2-7b", "h100-sxm", prefill="system: a100-80gb-sxm", **work)
    assert serving.apart is not None
    assert serving.apart.answer is not None
    found = served_intervals(serving)
    assert found["ttft"].value == pytest.approx(serving.apart.answer.ttft_s)
    assert found["tpot"].value == pytest.approx(serving.apart.answer.tpot_s)
    alone = sf.serving("llama-2-7b", "a100-80gb-sxm", **work)
    for cause, steps in served_intervals(alone)["ttft"].causes.items():
        assert found["ttft"].causes[cause] == pytest.approx(steps)


def test_the_command_line_prints_them_when_asked(call: Any) -> None:
    code, out, err = call([*ASKED, "--interval", "--json"])
    assert (code, err) == (0, "")
    data = json.loads(out)
    for name in ("ttft", "tpot"):
        low, high = data["interval"][f"{name}_s"]
        assert low < data[f"{name}_s"] < high
        assert set(data["interval"]["causes"][name]) == set(CAUSES)
    code, out, _ = call([*ASKED, "--interval"])
    assert code == 0
    assert "TTFT" in out.split("90% interval")[1]

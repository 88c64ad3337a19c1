"""Steps of several models: each is the sum of runs that can be asked for alone, and holds what these hold."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.runs.inference_run import InferenceRun
from symperf.runs.training_run import Run
from symperf.runs.tuning import METHODS

H100 = sf.System.load("h100-sxm")
MODEL = sf.Model.load("qwen2.5-0.5b")
STATE = ("weights", "gradients", "optimizer")


def step(method: str, plan: dict[str, Any] | None = None, **asked: Any) -> Any:
    work = {"batch": 16, "sequence": 512} | asked
    return sf.tuning(MODEL, H100, sf.Plan(**({"dp": 2} | (plan or {}))), method=method, **work)


def state_of(run: Any) -> float:
    return sum(size for name, size in run.memory_terms().items() if name.split("/")[0] in STATE)


@pytest.mark.parametrize("plan", [{}, {"pp": 2, "dp": 1, "schedule": "zero-bubble"}, {"zero": 3}], ids=str)
def test_a_forward_pass_alone_has_a_third_of_the_flops_and_no_state(plan: dict[str, Any]) -> None:
    plan = {"dp": 2} | plan
    whole, forward = (
        Run(MODEL, H100, sf.Plan(**plan), batch=16, sequence=512, forward_only=only) for only in (False, True)
    )
    assert forward.value("model_flops") == whole.value("model_flops") / 3
    names = {row.name for row in forward.table()}
    assert not any("backward" in name or name.startswith(("optimizer", "gradients")) for name in names)
    assert state_of(forward) == sum(n for name, n in whole.memory_terms().items() if name.startswith("weights"))
    assert forward.value("time") < whole.value("time") / 2


def test_preferences_double_the_sequences_and_pass_a_reference() -> None:
    """TRL, DPOTrainer: chosen and rejected are one batch, of the policy and of its frozen copy."""
    found = step("dpo", {"micro_batch": 2})
    update = Run(MODEL, H100, sf.Plan(dp=2, micro_batch=4), batch=32, sequence=512)
    reference = Run(MODEL, H100, sf.Plan(dp=2, micro_batch=4), batch=32, sequence=512, forward_only=True)
    assert {each.name: each.time_s for each in found.timed} == {
        "ref": reference.value("time"),
        "update_actor": update.value("time"),
    }
    assert found.time == reference.value("time") + update.value("time")
    assert sum(each.share for each in found.timed) == pytest.approx(1)
    assert found.memory["total"] == pytest.approx(update.value("memory") + state_of(reference))
    assert [each.name for each in step("dpo", reference=False).timed] == ["update_actor"]


def test_under_adapters_the_reference_is_the_base() -> None:
    """PEFT's disabled adapters: no second copy of the weights; stored in 4 bits it is widened, too."""
    found = step("dpo", {"lora_rank": 8, "base_precision": "nf4"})
    assert set(found.memory) == {"policy", "passing", "total", "reserved"}
    assert found.memory["policy"] == state_of(found.update)
    names = {row.name for row in found.passes["ref"].table()}
    assert any("/widen/" in name for name in names)
    assert not any("/lora/" in name for name in names)


def test_a_reward_model_has_no_logits() -> None:
    run = step("reward").update
    assert not any("logits" in row.name or "loss" in row.name for row in run.table())
    assert run.value("model_flops") < step("dpo").update.value("model_flops")


def test_logits_of_a_teacher_wait_for_those_of_the_student() -> None:
    teacher = sf.Model.load("qwen2.5-1.5b")
    found = step("distill", teacher=teacher)
    passes = [run.value("memory") - state_of(run) for run in found.passes.values()]
    assert found.memory["passing"] == sum(passes)
    assert found.passes["teacher"].model.name == "qwen2.5-1.5b"
    assert step("distill", teacher="gpt2-medium").warnings[0].startswith("the teacher has 50257 words")


def test_a_step_of_reinforcement_learning_is_generation_and_training() -> None:
    """verl: gen, old_log_prob, ref and update_actor over all answers to the prompts."""
    found = step("grpo", prompt=128, group=4, rollout="plan: tp=2 dp=1, stack: vllm")
    answers = InferenceRun(MODEL, H100, sf.Plan(tp=2), batch=64, prompt=128, generate=384, stack="vllm")
    times = {each.name: each.time_s for each in found.timed}
    assert list(times) == ["gen", "old_log_prob", "ref", "update_actor"]
    assert times["gen"] == answers.value("time")
    assert times["update_actor"] == Run(MODEL, H100, sf.Plan(dp=2), batch=64, sequence=512).value("time")
    assert times["old_log_prob"] == times["ref"]
    assert found.fits
    critic = [each.name for each in step("ppo", prompt=128).timed]
    assert critic == ["gen", "reward", "old_log_prob", "ref", "values", "update_critic", "update_actor"]


def test_answers_come_in_waves_where_caches_have_no_room() -> None:
    one, many = (step("grpo", prompt=128, group=group, sequence=4096).generation for group in (1, 4096))
    assert one.waves == 1
    assert many.waves > 1
    assert many.waves * many.run.work.batch >= 16 * 4096


def test_the_command_line_has_every_share(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["train", "qwen2.5-0.5b", "-s", "h100-sxm", "--dp", "2", "--batch", "16", "--sequence", "512"]
    asked += ["--method", "dpo"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["method"]
    expected = step("dpo")
    assert found["time_s"] == expected.time
    assert [each["share"] for each in found["phases"]] == [each.share for each in expected.timed]
    assert found["fits"] is True
    assert found["generation"] is None
    assert main(asked) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "a step of dpo (direct preference optimization)" in words
    assert "update_actor" in words


@pytest.mark.parametrize(
    ("method", "asked", "message"),
    [
        ("dop", {}, "method: found 'dop', expected sft or dpo .*did you mean dpo"),
        ("dpo", {"teacher": "gpt2"}, "teacher: means nothing to method dpo, expected method distill"),
        ("sft", {"prompt": 8}, "prompt: means nothing to method sft, expected method grpo or ppo"),
        ("sft", {"reference": False}, "reference: means nothing to method sft"),
        ("grpo", {}, "prompt: method grpo needs tokens of each prompt; add --prompt"),
        ("grpo", {"prompt": 512}, "prompt: found 512, expected less than the 512 tokens"),
        ("grpo", {"prompt": 8, "group": 0.5}, "group: found 0.5, expected a whole number"),
        ("grpo", {"prompt": 8, "reward_model": "gpt2"}, "reward_model: means nothing to method grpo"),
        ("distill", {}, "teacher: method distill needs the model"),
    ],
)
def test_what_a_method_does_not_read_or_lacks_is_one_line(method: str, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        step(method, **asked)


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        ("plan: tp=8", "rollout: found 8 devices, expected the 2"),
        ("system: b200-sxm", "rollout: expected a plan or a stack"),
    ],
)
def test_answers_are_generated_on_the_same_devices(rollout: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        step("grpo", prompt=8, rollout=rollout).time  # noqa: B018


def test_options_of_methods_need_one(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["train", "gpt2", "-s", "h100-sxm", "--batch", "1", "--sequence", "64"]
    assert main([*asked, "--no-reference"]) == 2
    assert re.fullmatch("symperf: no_reference: is of methods .*; add --method\n", capsys.readouterr().err)
    assert set(METHODS) == {"sft", "dpo", "reward", "distill", "grpo", "ppo"}

"""Inputs of parts of layers that the host keeps by name: bytes by hand, transfers, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.export.emit import emit

if TYPE_CHECKING:
    from pathlib import Path

HOST: dict[str, Any] = {"host_bandwidth": 64e9, "host_memory_bandwidth": 75e9}
ROWS, LAYERS, FLIGHT = 4096, 16, 2
WIDTHS = {
    "attn_norm": 4096,
    "qkv_linear": 4096,
    "core_attn": 4096 + 2 * 1024,
    "core_attn,attn_proj": 4096 + 2 * 1024 + 4096,
    "mlp_norm": 4096,
}
"""Features of a token of Llama 3 8B."""


def make(model: str = "llama-3.1-8b", **plan: Any) -> Any:
    return sf.training(model, "h100-sxm", sf.Plan(**plan), batch=16, sequence=ROWS, **HOST)


@pytest.mark.parametrize("names", WIDTHS)
def test_inputs_leave_the_device_and_two_layers_of_them_stay(names: str) -> None:
    """Of the first of two stages, 16 layers and two micro-batches; each is sent once and comes back once."""
    plain, run = make(dp=4, pp=2), make(dp=4, pp=2, offload=names)
    layer = 2 * ROWS * WIDTHS[names]
    left = plain.memory_terms()["activations"] - run.memory_terms()["activations"]
    assert left == run.host_memory()["activations"] == LAYERS * FLIGHT * layer
    assert run.memory_terms()["workspace/offload"] == 2 * layer
    for phase in ("forward", "backward"):
        assert run.value(f"term/offload/activations/{phase}/message") == LAYERS * layer
    slow = run.bind(host_bandwidth=1e9)
    assert slow.value("time") > run.value("time") >= plain.value("time")


def test_a_part_of_them_is_a_fraction() -> None:
    half = make(dp=4, pp=2, offload="core_attn").bind(offloaded_activations=0.5)
    assert half.host_memory()["activations"] == LAYERS * FLIGHT * 2 * ROWS * WIDTHS["core_attn"] / 2


def test_inputs_of_experts() -> None:
    """Mixtral: two rows of each token; 4096 features in, and gate and up of 14336 before the activation."""
    plain = make("mixtral-8x7b", dp=4)
    for name, width in (("expert_fc1", 4096), ("moe_act", 2 * 14336)):
        run = make("mixtral-8x7b", dp=4, offload=name)
        left = plain.memory_terms()["activations"] - run.memory_terms()["activations"]
        assert left == 32 * 2 * ROWS * 2 * width
    again = make("mixtral-8x7b", dp=4, offload="moe_act,attn_norm", recompute_modules="moe")
    assert again.host_memory()["activations"] == 32 * 2 * ROWS * 4096


def test_latent_attention_has_heads_of_queries_keys_and_values() -> None:
    """DeepSeek-V2-Lite: 16 heads of 128 + 64 for queries and keys, 128 for values; expanded again, none are kept."""
    layer = 2 * ROWS * 16 * (2 * 192 + 128)
    run, again = (make("deepseek-v2-lite", offload="core_attn", recompute_modules=m) for m in (None, "mla_up_proj"))
    assert run.host_memory()["activations"] == 27 * layer
    assert again.host_memory()["activations"] == 0


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ({"offload": "core_atn"}, "offload: found 'core_atn'.*did you mean core_attn"),
        ({"offload": "expert_fc1"}, "offload: expert_fc1 needs experts, which llama-3.1-8b has not"),
        ({"offload": "attn_proj"}, "expected core_attn beside it, found attn_proj"),
        ({"offload": "attn_norm,activations"}, "expected one of them"),
        ({"offload": "attn_norm", "recompute": "full"}, "expected no recompute = full with attn_norm"),
        ({"offload": "attn_norm", "recompute_modules": "op"}, "expected no recompute_modules = op with attn_norm"),
        ({"offload": "attn_norm", "lora_rank": 8}, "adapters or frozen parts"),
        ({"offload": "attn_norm", "pp": 2, "layout": "Et*16|t*16L"}, "expected equal or uneven stages"),
    ],
)
def test_what_is_not_kept_cannot_leave(plan: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        make(**plan)


def test_megatron_writes_and_reads_them(tmp_path: Path) -> None:
    plan = sf.Plan(dp=4, pp=2, offload="core_attn,attn_proj", precision="bf16")
    model = sf.Model.load("llama-3.1-8b")
    text = emit(plan, "megatron", model=model, batch=16, sequence=ROWS).text
    assert "--fine-grained-activation-offloading" in text
    path = tmp_path / "run.txt"
    path.write_text(text, encoding="utf-8")
    found, _ = sf.read_framework(path, model=True).plan(32, devices=8)
    assert found.offload == plan.offload

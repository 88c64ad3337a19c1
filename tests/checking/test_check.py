"""`inspect --check`: agreement, differences and refusals, with modules that stand in for those of PyTorch."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from support.model_configs import LLAMA, MIXTRAL

from symperf.checking import build as building
from symperf.checking.compare import compare
from symperf.checking.modules import Modules
from symperf.common.errors import InputError
from symperf.models.model import make_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def modules(config: dict[str, Any], changes: dict[str, tuple[int, ...]] | None = None, **more: Any) -> Modules:
    """The modules of a small Llama or Mixtral, as transformers names them."""
    h, f, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    width = h // config["num_attention_heads"] * config.get("num_key_value_heads", config["num_attention_heads"])
    count = config.get("num_local_experts")
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, h)}
    for place in range(config["num_hidden_layers"]):
        layer = f"model.layers.{place}."
        for name, rows in (("q", h), ("k", width), ("v", width), ("o", h)):
            shapes[f"{layer}self_attn.{name}_proj.weight"] = (rows, h)
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{layer}{name}.weight"] = (h,)
        if count:
            shapes[f"{layer}mlp.gate.weight"] = (count, h)
            shapes[f"{layer}mlp.experts.gate_up_proj"] = (count, 2 * f, h)
            shapes[f"{layer}mlp.experts.down_proj"] = (count, h, f)
        else:
            shapes |= {f"{layer}mlp.{name}_proj.weight": (f, h) for name in ("gate", "up", "down")}
    shapes |= {"model.norm.weight": (h,), "lm_head.weight": (vocab, h)}
    found = {
        "stacks": {"model.layers": config["num_hidden_layers"]},
        "embeddings": ("model.embed_tokens.weight",),
        "head": "lm_head.weight",
        "experts": (count, config["num_experts_per_tok"]) if count else None,
        "settings": {"attention_bias": False, "mlp_bias": False},
    }
    versions = {"transformers": "5.24.0", "torch": "2.13.0"}
    return Modules("StandIn", versions, shapes | (changes or {}), **{**found, **more})


def rows(config: dict[str, Any], *built: Any, **more: Any) -> dict[str, tuple[Any, Any]]:
    """What differs, by name."""
    comparison = compare(make_model("tiny", "test", config, "tiny.json"), modules(config, *built, **more))
    return {row.what: (row.ours, row.theirs) for row in comparison.differing}


@pytest.mark.parametrize("config", [LLAMA, MIXTRAL], ids=lambda config: config["model_type"])
def test_equal_counts_agree(config: dict[str, Any]) -> None:
    """Totals, classes, experts, every layer, ties and class defaults."""
    comparison = compare(make_model("tiny", "test", config, "tiny.json"), modules(config))
    assert comparison.differing == ()
    assert comparison.notes == ()
    names = {row.what for row in comparison.rows}
    assert names >= {"parameters", "parameters, attention", "parameters, all layers one by one", "parameters, others"}
    assert ("experts of a layer" in names) == ("parameters, active per token" in names) == (config is MIXTRAL)
    assert json.loads(json.dumps(comparison.as_json()))["agrees"]


def test_a_count_that_differs_is_told_with_its_place() -> None:
    wide = {"model.layers.1.mlp.up_proj.weight": (LLAMA["intermediate_size"] + 1, LLAMA["hidden_size"])}
    found = rows(LLAMA, wide)
    assert set(found) == {"parameters", "parameters, dense mlp", "parameters, layer 1"}
    assert all(theirs - ours == LLAMA["hidden_size"] for ours, theirs in found.values())
    assert set(rows(LLAMA, {"model.layers.0.self_attn.q_proj.bias": (64,)})) == {
        "parameters",
        "parameters, others",
        "parameters, layer 0",
    }
    assert rows(LLAMA, head="model.embed_tokens.weight")["head tied to the token table"] == (False, True)
    assert rows(MIXTRAL, experts=(4, 1)).keys() == {"experts that a token passes", "parameters, active per token"}
    assert rows(LLAMA, settings={"attention_bias": True}) == {"class default, attention_bias": (False, True)}


def test_many_layers_that_differ_are_counted() -> None:
    config = LLAMA | {"num_hidden_layers": 9}
    norms = {f"model.layers.{place}.extra_norm.weight": (3,) for place in range(8)}
    found = rows(config, norms)
    assert {f"parameters, layer {place}" for place in range(5)} <= set(found)
    assert "parameters, layer 5" not in found
    assert found["layers of the same size"] == (1, 9)


def test_what_cannot_be_compared_is_noted() -> None:
    model = make_model("tiny", "test", LLAMA, "tiny.json")
    (note,) = compare(model, modules(LLAMA, stacks={})).notes
    assert note == "layers are not compared: no list of modules has 2"
    tower = {"model.vision_tower.layers.0.mlp.fc1.weight": (7, 3)}
    comparison = compare(model, modules(LLAMA, tower))
    assert comparison.differing == ()
    assert "vision (21 parameters) of class defaults is left out" in comparison.notes[0]
    assert "parameters, language" in {row.what for row in comparison.rows}


def test_an_encoder_that_the_file_describes_and_we_do_not_count_is_a_difference() -> None:
    tower = {"model.vision_tower.layers.0.mlp.fc1.weight": (7, 3)}
    assert building.encoder_keys({"vision_config": {"depth": 3}, "image_size": 224, "audio_config": None}) == [
        "vision_config"
    ]
    ours, theirs = rows(LLAMA, tower, encoders=("vision_config",))["parameters"]
    assert theirs - ours == 21


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    return str(path)


def test_the_command_line_shows_both_and_judges(
    call: Callable[..., Any], tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 0 where all agree, 1 with one line where a count differs; JSON has every row, null without the flag."""
    assert json.loads(call(["inspect", tiny, "--json"]).out)["check"] is None
    monkeypatch.setattr(building, "build", lambda _data, _where, _model: modules(LLAMA))
    done = call(["inspect", tiny, "--check"])
    assert (done.code, done.err) == (0, "")
    assert "StandIn, built by transformers 5.24.0, torch 2.13.0" in done.out
    assert "counts agree" in done.out
    wide = {"model.layers.1.mlp.up_proj.weight": (LLAMA["intermediate_size"] + 1, LLAMA["hidden_size"])}
    monkeypatch.setattr(building, "build", lambda _data, _where, _model: modules(LLAMA, wide))
    done = call(["inspect", tiny, "--check", "--json"])
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "counts differ: parameters: " in done.err
    assert "in StandIn" in done.err
    found = json.loads(done.out)["check"]
    assert found["agrees"] is False
    assert {row["what"] for row in found["rows"] if not row["agrees"]} >= {"parameters, layer 1"}


def test_without_the_packages_one_line_says_what_to_install(
    refused: Callable[..., str], tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "needs torch, which is not installed: pip install 'symperf[hf]'" in refused(["inspect", tiny, "--check"])
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert "needs transformers" in refused(["inspect", tiny, "--check"])


class Refusing:
    """A class of configurations that refuses every file."""

    sub_configs: ClassVar[dict[str, Any]] = {}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> None:
        raise RuntimeError(f"first line\nsecond line {data}")


def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A transformers that knows one kind of model; says how its notes were silenced."""
    calls: list[str] = []
    logging = SimpleNamespace(
        get_verbosity=lambda: 30,
        set_verbosity=lambda level: calls.append(f"back to {level}"),
        set_verbosity_error=lambda: calls.append("errors"),
    )
    package = SimpleNamespace(__version__="9.9", CONFIG_MAPPING={"llama": Refusing}, logging=logging)
    listed = SimpleNamespace()
    found = {"torch": SimpleNamespace(), "transformers": package, "transformers.models.auto.modeling_auto": listed}
    monkeypatch.setattr(building, "import_extra", lambda module, _extra, _what: found[module])
    return calls


def test_kinds_without_a_class_are_refused_and_no_code_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    model = make_model("tiny", "test", LLAMA, "tiny.json")
    data = {**LLAMA, "model_type": "kimi_k2", "auto_map": {"AutoModel": "modeling.Kimi"}}
    with pytest.raises(InputError, match=r"9\.9 has no class for model_type 'kimi_k2', and the code .* is never run"):
        building.build(data, "tiny.json", model)
    with pytest.raises(InputError, match=r"has no class for model_type 'kimi_k2'$"):
        building.build({"model_type": "kimi_k2"}, "tiny.json", model)


def test_what_a_class_raises_becomes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of code and of formats are not handed on; notes of transformers are silenced for the time."""
    calls = stand_in(monkeypatch)
    nested = {"auto_map": {"AutoModel": "code.Model"}, "time_step_limit": [0.0, {"__float__": "Infinity"}]}
    data = {"model_type": "llama", "auto_map": {}, "quantization_config": {}, "text_config": nested}
    with pytest.raises(InputError) as caught:
        building.build(data, "tiny.json", make_model("tiny", "test", LLAMA, "tiny.json"))
    expected = "tiny.json: --check: transformers 9.9 cannot build it: first line second line "
    expected += "{'text_config': {'time_step_limit': [0.0, inf]}}"
    assert str(caught.value) == expected
    assert calls == ["errors", "back to 30"]

"""Plans in the words of frameworks: the text parses, values are right, and no field is dropped in silence."""

from __future__ import annotations

import dataclasses
import json
import shlex
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.emit_cases import DEEPSPEED, FLAGS, GROUPS, TORCHTITAN, parse_flags

import symperf as sf
from symperf.cli.search_extras import SERVERS
from symperf.export import megatron, megatron_bridge
from symperf.export.emit import FRAMEWORKS, Emission, emit
from symperf.plans.plan import Plan
from symperf.plans.stage_layout import stages_of

if TYPE_CHECKING:
    from collections.abc import Callable

DENSE = Plan(tp=8, pp=8, dp=4, vpp=3, micro_batch=2, sequence_parallel=True, zero=1, overlap_dp=1.0, recompute="full")
EXPERTS = Plan(tp=2, pp=2, dp=8, cp=2, ep=8, sequence_parallel=True, zero=2, precision="fp8", optimizer="muon")
GIVEN = Plan(pp=4, dp=2, first_stage_layers=6, last_stage_layers=6, recompute="full", recompute_layers=2)
HYBRID = Plan(dp=16, zero=3, zero_shards=4, offload="optimizer,weights", precision="bf16", dropout=False)
ODD = Plan(pp=3, tp=2, uneven_stages=True, schedule="zb-h2", cp=2, cp_kind="all-to-all", optimizer="adafactor")
MODULES = Plan(recompute="selective", recompute_modules="core_attn,mlp")
PLANS = {"one": Plan(), "dense": DENSE, "experts": EXPERTS, "given": GIVEN, "hybrid": HYBRID, "odd": ODD}
PLANS |= {"modules": MODULES}


def parsed(found: Emission) -> dict[str, Any]:
    """The flags of a text, by a parser that knows the documented names and types."""
    words = [word for line in found.text.splitlines() if not line.startswith("#") for word in shlex.split(line)]
    return parse_flags(words, FLAGS[found.framework])


def fits(value: Any, form: Any) -> bool:
    """Whether nested tables have documented keys and types only."""
    if isinstance(form, dict):
        return isinstance(value, dict) and all(name in form and fits(value[name], form[name]) for name in value)
    return type(value) is form


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("told", [False, True])
def test_the_text_parses(framework: str, name: str, told: bool) -> None:
    """With and without a model, a system and a batch, the text is what the framework's documents allow."""
    known: dict[str, Any] = {}
    if told:
        known = {
            "model": sf.Model.load("gpt-6.7b"),
            "system": sf.System.load("h100-sxm"),
            "batch": 96,
            "sequence": 2048,
        }
    found = emit(PLANS[name], framework, **known)
    assert set(found.sources) == set(found.settings)
    assert all(source.startswith("https://github.com/") for source in found.sources.values())
    if framework in FLAGS:
        assert len(parsed(found)) == len(found.settings)
    elif framework == "torchtitan":
        assert fits(tomllib.loads(found.text), TORCHTITAN)
    elif framework == "deepspeed":
        assert fits(json.loads(found.text), DEEPSPEED)
    else:
        lines = [line for line in found.text.splitlines() if not line.startswith("#")]
        assert all(line.partition("=")[0].split(".")[0] in (*GROUPS, "mixed_precision") for line in lines)
        assert len(lines) == len(found.settings)
    if framework != "deepspeed":  # JSON has no comments
        assert [line for line in found.text.splitlines() if line.startswith("#")] == [
            f"# {field}: {text}" for field, text in found.notes
        ]


def test_megatron() -> None:
    """Degrees, virtual stages, the distributed optimizer, recomputation, layouts of uneven stages."""
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("h100-sxm")
    found = parsed(emit(DENSE, "megatron", system=system, batch=96, sequence=2048))
    want = {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 8, "micro_batch_size": 2}
    want |= {"num_virtual_stages_per_pipeline_rank": 3, "global_batch_size": 96, "seq_length": 2048, "bf16": True}
    want |= {"sequence_parallel": True, "use_distributed_optimizer": True, "overlap_grad_reduce": True}
    want |= {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    want |= {"context_parallel_size": 1, "optimizer": "adam", "no_overlap_p2p_communication": True}
    assert found == want
    hidden = emit(dataclasses.replace(DENSE, overlap_pp=1.0), "megatron", system=system, batch=96, sequence=2048)
    assert parsed(hidden) == {name: value for name, value in want.items() if name != "no_overlap_p2p_communication"}
    assert "no_overlap_p2p_communication" not in parsed(emit(dataclasses.replace(DENSE, pp=2, vpp=2), "megatron"))
    found = parsed(emit(EXPERTS, "megatron"))
    assert (found["expert_model_parallel_size"], found["expert_tensor_parallel_size"]) == (8, 1)
    assert (found["moe_token_dispatcher_type"], found["cp_comm_type"]) == ("alltoall", "p2p")
    assert (found["use_megatron_fsdp"], found["data_parallel_sharding_strategy"]) == (True, "optim_grads")
    assert (found["bf16"], found["fp8_format"], found["optimizer"]) == (True, "hybrid", "dist_muon")
    found = parsed(emit(GIVEN, "megatron"))
    assert (found["decoder_first_pipeline_num_layers"], found["decoder_last_pipeline_num_layers"]) == (6, 6)
    assert (found["recompute_method"], found["recompute_num_layers"]) == ("block", 2)
    assert parsed(emit(dataclasses.replace(DENSE, fp32_residual=True), "megatron"))["fp32_residual_connection"]
    assert parsed(emit(MODULES, "megatron"))["recompute_modules"] == ["core_attn", "mlp"]
    found = parsed(emit(HYBRID, "megatron", model=model))
    assert found["num_distributed_optimizer_instances"] == 4
    assert (found["attention_dropout"], found["hidden_dropout"]) == (0.0, 0.0)
    layout = parsed(emit(Plan(pp=3, uneven_stages=True), "megatron", model=model))["pipeline_model_parallel_layout"]
    assert [stage.count("t") for stage in stages_of(layout)] == [11, 11, 10]
    assert (layout[0], layout[-1]) == ("E", "L")


def test_parameters_are_gathered_beside_work_only_with_the_gradients_too() -> None:
    """Megatron-LM refuses the one without the other, so both are set and the difference is noted."""
    found = emit(Plan(dp=4, zero=1, overlap_parameters=0.5), "megatron")
    assert found.settings["--overlap-grad-reduce"]
    assert found.settings["--overlap-param-gather"]
    assert {"overlap_dp", "overlap_parameters"} <= {name for name, _ in found.notes}


def test_every_flag_of_megatron_has_a_translation() -> None:
    """Each flag is an override of Megatron Bridge, or a note."""
    handled = {*megatron_bridge.SAME, *megatron_bridge.ELSEWHERE, *megatron_bridge.PRODUCTS}
    assert handled | {"--attention-backend", "--optimizer"} == set(megatron.OPTIONS)
    found = emit(DENSE, "megatron-bridge", system=sf.System.load("h100-sxm"), batch=96).settings
    assert found["model.virtual_pipeline_model_parallel_size"] == 3
    assert found["ddp.use_distributed_optimizer"]
    assert found["optimizer.use_distributed_optimizer"]
    assert (found["train.global_batch_size"], found["mixed_precision"]) == (96, "bf16_mixed")


def test_torchtitan() -> None:
    """Replicas and shards, schedules, local batches, layers of a stage."""
    model = sf.Model.load("gpt3-175b")
    found = tomllib.loads(emit(DENSE, "torchtitan", model=model, batch=96).text)
    parallel = found["parallelism"]
    assert (parallel["data_parallel_replicate_degree"], parallel["data_parallel_shard_degree"]) == (1, 4)
    assert (parallel["pipeline_parallel_schedule"], parallel["pipeline_parallel_layers_per_stage"]) == (
        "Interleaved1F1B",
        4,
    )
    assert (parallel["pipeline_parallel_microbatch_size"], found["training"]["local_batch_size"]) == (2, 24)
    parallel = tomllib.loads(emit(HYBRID, "torchtitan").text)["parallelism"]
    assert (parallel["data_parallel_replicate_degree"], parallel["data_parallel_shard_degree"]) == (4, 4)
    assert parallel["fsdp_reshard_after_forward"] == "always"
    parallel = tomllib.loads(emit(GIVEN, "torchtitan", model=sf.Model.load("gpt-6.7b")).text)["parallelism"]
    assert parallel["pipeline_parallel_first_stage_less_layers"] == (32 - 12) // 2 - 6


def test_deepspeed() -> None:
    """The batch is the product that DeepSpeed checks; offloading needs its stage."""
    found = json.loads(emit(DENSE, "deepspeed", batch=96).text)
    parts = found["train_micro_batch_size_per_gpu"] * found["gradient_accumulation_steps"] * DENSE.dp
    assert found["train_batch_size"] == parts == 96
    found = json.loads(emit(HYBRID, "deepspeed").text)["zero_optimization"]
    assert (found["stage"], found["offload_optimizer"], found["offload_param"]) == (
        3,
        {"device": "cpu"},
        {"device": "cpu"},
    )
    refused = emit(Plan(dp=2, offload="optimizer"), "deepspeed")
    assert "zero_optimization.offload_optimizer.device" not in refused.settings
    assert ("offload", "optimizer on the host needs zero above 0") in refused.notes


def test_servers() -> None:
    """Degrees, replicas and experts; what only training has is named."""
    plan = Plan(tp=4, dp=2, ep=8)
    found = emit(plan, "vllm", batch=64, sequence=4096)
    want = {"tensor_parallel_size": 4, "pipeline_parallel_size": 1, "data_parallel_size": 2, "max_num_seqs": 32}
    assert parsed(found) == want | {"enable_expert_parallel": True, "max_model_len": 4096}
    assert "ep" not in dict(found.notes)
    assert "ep" in dict(emit(Plan(tp=4, dp=2, ep=4), "vllm").notes)
    assert parsed(emit(Plan(tp=4, ep=4), "trtllm")) == {"tp_size": 4, "pp_size": 1, "ep_size": 4}
    assert {"ep", "dp"} <= set(dict(emit(plan, "trtllm").notes))
    assert {"zero", "recompute", "sequence_parallel", "vpp"} <= set(dict(emit(DENSE, "vllm").notes))
    assert parsed(emit(Plan(precision="fp8"), "vllm"))["quantization"] == "fp8"


BASE = Plan(tp=4, pp=4, dp=4, cp=2, ep=4, sequence_parallel=True, zero=3, recompute="full")
OTHERS: dict[str, tuple[Any, ...]] = {
    "tp": (2,),
    "pp": (2,),
    "dp": (2,),
    "vpp": (2,),
    "micro_batch": (2, 4),
    "recompute": ("none", "selective"),
    "sequence_parallel": (False,),
    "zero": (0, 1, 2),
    "schedule": ("gpipe", "zero-bubble", "zb-h2", "zero-bubble-2p", "dualpipe"),
    "precision": ("bf16", "fp16", "fp8", "fp4", "int8-weight", "int4-weight"),
    "attention": ("eager", "flash"),
    "dropout": (True,),
    "overlap_tp": (0.0, 0.5),
    "overlap_dp": (0.5, 1.0),
    "ep": (2, 8),
    "expert_tp": (2,),
    "overlap_gather": (0.5,),
    "cp": (1, 4),
    "cp_kind": ("all-to-all", "all-gather"),
    "uneven_stages": (True,),
    "account_for": ("embedding", "loss", "both"),
    "layout": ("Et*40|t*10|t*20|t*10L",),
    "zero_shards": (2, 4),
    "node_limit": (4,),
    "overlap_ep": (0.5,),
    "overlap_pp": (0.5,),
    "overlap_parameters": (0.5,),
    "optimizer": ("adam-8bit", "adafactor", "sgd-momentum", "muon"),
    "recompute_layers": (2,),
    "offload": ("activations", "optimizer", "weights", "activations,optimizer,weights"),
    "rank_order": ("tp-cp-pp-dp",),
    "dcp": (2,),
    "redundant_experts": (8,),
    "expert_exchange": ("gather",),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", [*OTHERS, "first_stage_layers"])
def test_no_field_is_dropped_in_silence(framework: str, name: str) -> None:
    """Another value of any field changes the settings or the notes."""
    base = emit(BASE, framework, batch=64)
    for value in OTHERS.get(name, (3,)):
        fields = {name: value} if name != "first_stage_layers" else {name: value, "last_stage_layers": value}
        plan = dataclasses.replace(BASE, **fields)
        other = emit(plan, framework, batch=64)
        if name == "overlap_parameters" and framework in ("megatron", "megatron-bridge", "torchtitan"):
            continue  # of ZeRO-1 and 2, which the base has not
        assert (other.settings, other.notes) != (base.settings, base.notes), value


@given(
    st.sampled_from(list(FRAMEWORKS)),
    st.fixed_dictionaries(
        {
            "tp": st.sampled_from([1, 2, 8]),
            "pp": st.sampled_from([1, 2, 6]),
            "dp": st.integers(1, 12),
            "cp": st.sampled_from([1, 2]),
            "ep": st.sampled_from([1, 2, 8]),
            "zero": st.sampled_from([0, 1, 2, 3]),
            "recompute": st.sampled_from(["none", "selective", "full"]),
            "optimizer": st.sampled_from(["adam", "adam-8bit", "adafactor", "sgd-momentum", "muon"]),
            "overlap_dp": st.sampled_from([0.0, 0.4, 1.0]),
            "overlap_parameters": st.sampled_from([0.0, 1.0]),
            "uneven_stages": st.booleans(),
            "precision": st.sampled_from([None, "bf16", "fp16", "fp8", "fp4", "int8-weight"]),
            "offload": st.sampled_from([None, "activations", "optimizer", "weights"]),
            "attention": st.sampled_from([None, "eager", "flash"]),
        }
    ),
)
def test_every_field_is_set_or_named(framework: str, fields: dict[str, Any]) -> None:
    """Any plan can be emitted; degrees above 1 are set, or noted."""
    plan = Plan(**fields)
    found = emit(plan, framework)
    named = dict(found.notes)
    values = [value for value in found.settings.values() if type(value) is int]
    if found.settings.get("--enable-expert-parallel") and "ep" not in named:
        values.append(plan.tp * plan.dp)  # the switch deals experts over all of them
    for name in ("tp", "pp", "ep"):
        assert getattr(plan, name) in values or getattr(plan, name) == 1 or name in named
    assert found.text.endswith("\n")
    assert found.as_json()["framework"] == framework


def test_bad_input() -> None:
    """An unknown framework, a batch that does not divide, something that is no plan."""
    with pytest.raises(sf.InputError, match="did you mean megatron"):
        emit(Plan(), "megatronn")
    with pytest.raises(sf.InputError, match="expected megatron"):
        emit(Plan(), None)  # type: ignore[arg-type]
    with pytest.raises(sf.InputError, match="batch 7 is not divisible by dp x micro_batch = 2"):
        emit(Plan(dp=2), "megatron", batch=7)
    with pytest.raises(sf.InputError, match="expected a Plan"):
        emit({"tp": 2}, "megatron")  # type: ignore[arg-type]


ASKED = ["search", "gpt-6.7b", "-s", "a100-80gb-sxm", "--devices", "16", "--batch", "32", "--sequence", "1024"]
ASKED += ["--require", "tp=2,4", "--require", "pp=1", "--require", "cp=1", "--require", "zero=1"]
ASKED += ["--require", "recompute=none", "--require", "schedule=1f1b", "--require", "uneven_stages=false"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_command_line(call: Callable[[Any], Any], framework: str) -> None:
    """`--emit` prints the best plan's options and nothing else; JSON has them beside the plans."""
    asked = [word.replace("zero=1", "zero=2") for word in ASKED] if framework == "torchtitan" else ASKED
    code, out, err = call([*asked, "--json", "--emit", framework])
    assert (code, err) == (0, "")
    told = json.loads(out)
    best = Plan(**{name: told["plans"][0][name] for name in Plan.names()})
    batch = {} if framework in SERVERS else {"batch": 32, "sequence": 1024}
    model, system = sf.Model.load("gpt-6.7b"), sf.System.load("a100-80gb-sxm")
    assert told["emitted"] == emit(best, framework, model=model, system=system, **batch).as_json()
    code, out, err = call([*asked, "--emit", framework])
    assert (code, out) == (0, told["emitted"]["text"])
    assert (err != "") == (framework == "deepspeed")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--emit", "megatronn"], "--emit: found 'megatronn'"),
        (["--emit", "vllm", "--csv"], "--csv and --emit"),
        (["--emit", "vllm", "--explain", "tp=2"], "--emit and --explain"),
    ],
)
def test_bad_flags(call: Callable[[Any], Any], more: list[str], told: str) -> None:
    code, out, err = call([*ASKED, *more])
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1

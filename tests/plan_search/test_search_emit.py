"""Plans for inference as what starts a server: options that exist, of plans that it runs, for one or two pools."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.emit_cases import DYNAMO, FLAGS, parse_flags

import symperf as sf
from symperf.cli.search_emit import emitted, software
from symperf.common.errors import InputError
from symperf.export.lines import yaml
from symperf.export.serve import NEWEST, SERVERS, backend_of, emit_service, limits_of
from symperf.export.service import Service
from symperf.export.sheet import ExportRequest
from symperf.plan_search.inference.search import answer_search
from symperf.plan_search.inference.space import Software
from symperf.plans.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = "mistralai/Mixtral-8x7B-v0.1"
BACKENDS = ("vllm", "sglang", "trtllm")


def asked(plan: Plan, role: str | None = None, **how: Any) -> ExportRequest:
    given: dict[str, Any] = {"kv_precision": "fp8", "role": role, "routed": True, "utilization": 0.9, **how}
    service = Service(MODEL, 1000, 200, 300, 40, 512, **given)
    return ExportRequest(plan, service=service)


def commands(text: str) -> list[list[str]]:
    """The commands of a text, their files and comments apart."""
    lines, inside = list[str](), False
    for line in text.replace(" \\\n", " ").splitlines():
        if line.startswith("cat >") or line == "END":
            inside = not inside
        elif not inside and line and not line.startswith("#"):
            lines.append(line)
    return [shlex.split(line) for line in lines]


def files(text: str) -> dict[str, str]:
    """The files that a text writes, by name."""
    found: dict[str, str] = {}
    for part in text.split("cat > ")[1:]:
        head, _, rest = part.partition("\n")
        found[head.split()[0]] = rest.partition("END\n")[0]
    return found


def options(words: list[str], backend: str) -> dict[str, Any]:
    start = next(k for k, word in enumerate(words) if word.startswith("--") and word != "--model-path")
    return parse_flags(words[start:], FLAGS[backend])


def test_one_server_of_each() -> None:
    """Experts over all replicas: attention is data-parallel, and limits count as each server counts them."""
    plan = Plan(tp=1, dp=8, ep=8, precision="fp8")
    one = {name: emit_service(name, name, [asked(plan)]) for name in BACKENDS}
    found = {name: options(commands(each.text)[0], name) for name, each in one.items()}
    assert found["vllm"] == {
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "data_parallel_size": 8,
        "enable_expert_parallel": True,
        "all2all_backend": "deepep_low_latency",
        "quantization": "fp8",
        "kv_cache_dtype": "fp8",
        "max_model_len": 1200,
        "gpu_memory_utilization": 0.9,
        "max_num_seqs": 300,
        "max_num_batched_tokens": 552,
    }
    assert found["sglang"] == {
        "tp_size": 8,
        "pp_size": 1,
        "dp_size": 8,
        "ep_size": 8,
        "moe_a2a_backend": "deepep",
        "enable_dp_attention": True,
        "enable_dp_lm_head": True,
        "moe_dense_tp_size": 1,
        "quantization": "fp8",
        "kv_cache_dtype": "fp8_e4m3",
        "context_length": 1200,
        "mem_fraction_static": 0.9,
        "max_running_requests": 2400,
        "chunked_prefill_size": 4096,
        "enable_mixed_chunk": True,
    }
    assert found["trtllm"] == {
        "tp_size": 8,
        "pp_size": 1,
        "ep_size": 8,
        "max_batch_size": 300,
        "max_num_tokens": 552,
        "max_seq_len": 1200,
        "free_gpu_memory_fraction": 0.9,
        "enable_chunked_prefill": True,
        "config": "server.yaml",
    }
    assert files(one["trtllm"].text) == {"server.yaml": "enable_attention_dp: true\nkv_cache_config:\n  dtype: fp8\n"}
    assert dict(one["trtllm"].notes).keys() == {"precision"}
    assert not one["vllm"].notes
    assert not one["sglang"].notes


def test_replicas_with_experts_of_their_own_are_servers_of_their_own() -> None:
    """In one server of vLLM they would divide the experts; replicas of a dense model share a server."""
    plan = Plan(tp=2, dp=4, precision="bf16")
    for experts, told in ((True, False), (False, True)):
        found = emit_service("vllm", "vllm", [asked(plan, routed=experts)])
        assert ("--data-parallel-size" in found.settings) == told
        assert ("dp" in dict(found.notes)) != told
    within = emit_service("vllm", "vllm", [asked(Plan(tp=2, dp=4, ep=2))])
    assert within.settings["--enable-expert-parallel"]
    assert "ep" not in dict(within.notes)


def test_layouts_of_caches_and_experts_have_options() -> None:
    """Parts of a prompt, devices that share a cache, copies of experts, tokens that are gathered for all of them."""
    plan = Plan(tp=4, cp=2, dp=2, ep=8, dcp=4, redundant_experts=8, expert_exchange="gather", precision="bf16")
    for backend in BACKENDS:
        found = emit_service(backend, backend, [asked(plan)])
        notes = dict(found.notes)
        told = options(commands(found.text)[0], backend)
        if backend == "vllm":
            assert (told["prefill_context_parallel_size"], told["decode_context_parallel_size"]) == (2, 4)
            assert (told["enable_eplb"], told["eplb_config"]) == (True, {"num_redundant_experts": 8})
            assert told["all2all_backend"] == "allgather_reducescatter"
            assert not notes
        elif backend == "sglang":
            assert (told["dcp_size"], told["ep_num_redundant_experts"], told["moe_a2a_backend"]) == (4, 8, "none")
            assert notes.keys() == {"cp", "tp"}
        else:
            assert {"cp", "dcp", "redundant_experts", "expert_exchange"} <= notes.keys()
    whole = Plan(tp=2, dp=4, expert_tp=8, expert_exchange="gather", precision="bf16")
    found = emit_service("vllm", "vllm", [asked(whole)])
    assert found.settings["--data-parallel-size"] == 4
    assert "--enable-expert-parallel" not in found.settings
    assert not found.notes


@pytest.mark.parametrize("framework", BACKENDS)
def test_two_pools_have_a_role_each(framework: str) -> None:
    parts = [asked(Plan(tp=4, ep=4), "prefill"), asked(Plan(dp=4, ep=4), "decode")]
    found = emit_service(framework, framework, parts)
    first, second, *more = commands(found.text)
    assert found.settings.keys() == {"prefill", "decode"}
    one, two = options(first, framework), options(second, framework)
    if framework == "vllm":
        assert [each["kv_transfer_config"]["kv_role"] for each in (one, two)] == ["kv_producer", "kv_consumer"]
        assert (one["max_num_batched_tokens"], two["max_num_batched_tokens"]) == (512, 300)
    if framework == "sglang":
        assert [each["disaggregation_mode"] for each in (one, two)] == ["prefill", "decode"]
        assert "chunked_prefill_size" not in two
    if framework == "trtllm":
        assert more == [["trtllm-serve", "disaggregated", "-c", "disaggregated.yaml"]]
        written = files(found.text)
        assert "disable_overlap_scheduler: true" in written[one["config"]]
        assert all("cache_transceiver_config:" in written[each["config"]] for each in (one, two))
        assert written["disaggregated.yaml"].count('"localhost:') == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_deployment_of_dynamo(backend: str) -> None:
    """Replicas that share nothing are replicas of a worker, whose options exist; large workers span nodes."""
    yaml_of = pytest.importorskip("yaml")
    parts = [asked(Plan(tp=2, dp=3, precision="fp8"), "prefill"), asked(Plan(dp=16, ep=16), "decode")]
    found = emit_service("dynamo", backend, parts, node=8)
    told = yaml_of.safe_load(found.text)
    assert (told["apiVersion"], told["kind"]) == ("nvidia.com/v1beta1", "DynamoGraphDeployment")
    front, prefill, decode = told["spec"]["components"]
    assert [each["type"] for each in (front, prefill, decode)] == ["frontend", "prefill", "decode"]
    assert (prefill["replicas"], decode["replicas"], decode["multinode"]["nodeCount"]) == (3, 1, 2)
    for part, devices in ((prefill, 2), (decode, 8)):
        (container,) = part["podTemplate"]["spec"]["containers"]
        assert container["command"] == ["python3", "-m", f"dynamo.{backend}"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == str(devices)
        flags = parse_flags(container["args"], DYNAMO[backend])
        assert flags["disaggregation_mode"] == part["type"]
        assert MODEL in (flags.get("model"), flags.get("model_path"))
    assert set(found.sources) >= {name for role in found.settings.values() for name in role}
    assert all(
        source.startswith("https://github.com/ai-dynamo/")
        for name, source in found.sources.items()
        if name in ("replicas", "--disaggregation-mode") and backend != "sglang"
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_rules_admit_what_options_say(backend: str) -> None:
    """A plan that the rules admit leaves no note about its experts; one that they refuse leaves one."""
    rules, caches = limits_of(backend)
    assert "int8" not in caches
    for tp, dp, ep in ((1, 1, 1), (4, 1, 4), (2, 4, 8), (2, 4, 2), (1, 8, 8), (2, 4, 4), (1, 8, 4), (4, 1, 2)):
        plan = Plan(tp=tp, dp=dp, ep=ep)
        admitted = all(rule.holds({"tp": tp, "dp": dp, "ep": ep}) for rule in rules)
        notes = dict(emit_service(backend, backend, [asked(plan)]).notes)
        assert admitted == (not {"ep", "expert_tp"} & notes.keys()), (tp, dp, ep, notes)


@given(
    st.recursive(
        st.one_of(
            st.text(st.characters(categories=("L", "N", "P", "Zs")), max_size=8),
            st.integers(-5, 5),
            st.booleans(),
            st.sampled_from(["yes", "No", "1", "-", "a:b"]),
        ),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3),
            st.dictionaries(st.from_regex(r"[a-z]{1,3}x", fullmatch=True), inner, min_size=1, max_size=3),
        ),
        max_leaves=6,
    )
)
def test_yaml_reads_as_it_was(data: Any) -> None:
    read = pytest.importorskip("yaml").safe_load
    data = {"a": data} if not isinstance(data, dict) else data
    if nested(data):
        return  # lists in lists are not written
    assert read(yaml(data)) == data


def nested(data: Any) -> bool:
    """Whether a list is an item of a list."""
    if isinstance(data, list):
        return any(isinstance(each, list) or nested(each) for each in data)
    return isinstance(data, dict) and any(nested(each) for each in data.values())


def test_a_search_for_a_server_finds_only_what_it_runs() -> None:
    """The others are counted under its rule, whose message names the field; a cache it has not is refused."""
    model, system = sf.Model.load("mixtral-8x7b"), sf.System.load("h100-sxm")
    rules, caches = limits_of("trtllm")
    runs = Software("trtllm", rules, caches, {"rank_order": "tp-cp-pp-dp"})
    few = {"chunk": [512], "precision": ["fp8"], "pp": [1]}
    question: dict[str, Any] = {"devices": 4, "prompt": 512, "generate": 16, "tpot": 0.05}
    found = answer_search(model, system, **question, require=few, software=runs, top=50)
    (name,) = (rule.name for rule in rules)
    assert found.rejected[name]
    assert found.survey.examples[name].startswith("ep: found")
    assert all(
        each.fields["ep"] in (1, each.fields["tp"], each.fields["tp"] * each.fields["dp"]) for each in found.records
    )
    assert found.survey.considered == found.feasible + sum(found.rejected.values())
    with pytest.raises(InputError, match="kv_precision: trtllm has no such format, expected bf16 or fp16 or fp8"):
        answer_search(model, system, **question, require={**few, "kv_precision": "int8"}, software=runs)
    options = argparse.Namespace(emit="trtllm", model="mixtral-8x7b", stack=None)
    assert software(options)[0] == NEWEST["trtllm"]
    told = emitted(found.winner, options)
    assert MODEL in told.text
    assert told.settings["--max_seq_len"] == 528


@pytest.mark.parametrize("framework", SERVERS)
def test_profiles_belong_to_their_software(framework: str) -> None:
    assert backend_of(framework, NEWEST[framework]) in BACKENDS
    with pytest.raises(InputError, match="expected a profile of"):
        backend_of(framework, "llama-cpp")


def test_the_command_line_emits(call: Callable[[Any], Any]) -> None:
    words = ["search", "llama-2-7b", "-s", "h100-sxm", "--devices", "2", "--prompt", "512", "--generate", "16"]
    words += ["--tpot", "0.05", "--require", "chunk=512", "--require", "precision=bf16", "--require", "tp=2"]
    code, out, err = call([*words, "--emit", "vllm", "--stack", "vllm", "--json"])
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["stack"] == "vllm"
    assert told["emitted"]["settings"]["--tensor-parallel-size"] == 2
    code, out, err = call([*words, "--emit", "vllm", "--stack", "vllm"])
    assert (code, err, out) == (0, "", told["emitted"]["text"])
    assert out.startswith("vllm serve meta-llama/Llama-2-7b-hf")

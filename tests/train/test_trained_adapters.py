"""Adapters that a step trains: counts that PEFT prints, products by hand, memory, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part, some

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.formulas.language.symbols import SYMBOLS
from symperf.operations.schedule import count_operations
from symperf.plans.validity import reason_of
from symperf.train.build import step_tree
from symperf.train.inputs import structure_of

WORK: dict[str, Any] = {"batch": 1, "sequence": 512}
LLAMA = "llama-2-7b"
ALL = {"rank": 64, "layers": 4 * 8192 + 3 * (4096 + 11008)}


def run_of(model: str = LLAMA, work: dict[str, Any] | None = None, **plan: Any) -> Any:
    return sf.training(model, "h100-sxm", sf.Plan(**plan), **(work or WORK))


# --- parameters


@pytest.mark.parametrize(
    ("model", "rank", "targets", "count"),
    [
        # PEFT's print_trainable_parameters, as public notebooks show it.
        ("llama-2-7b", 8, "q,v", 4_194_304),
        ("llama-2-7b", 64, "all-linear", 159_907_840),
        ("llama-3.1-8b", 16, "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj", 41_943_040),
        # PEFT, README.md: bigscience/mt0-large, whose layers have the sizes of flan-t5-large.
        ("flan-t5-large", 8, "q,v", 2_359_296),
        # Hu et al. 2021, table 4: GPT-3 with 4.7 M (rank 1 of queries and values) and 37.7 M (rank 8) parameters.
        ("gpt3-175b", 1, "q,v", 4_718_592),
        ("gpt3-175b", 8, "q,v", 37_748_736),
    ],
)
def test_parameters_are_those_that_peft_prints(model: str, rank: int, targets: str, count: int) -> None:
    run = run_of(model, lora_rank=rank, lora_targets=targets)
    assert run.value("adapter_parameters") == count
    assert run.memory_terms()["weights/adapters"] == 2 * count


def test_peft_prints_the_share_of_all_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    """trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622."""
    asked = ["train", LLAMA, "-s", "h100-sxm", "--batch", "1", "--sequence", "512", "--lora-rank", "8"]
    assert main([*asked, "--lora-targets", "q,v", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["adapters"]
    assert found["trainable_parameters"] == 4_194_304
    assert found["trainable_share"] == 4_194_304 / 6_742_609_920
    assert found["layers"] == ["q", "v"]
    assert main([*asked, "--dora", "--base-precision", "nf4"]) == 0
    assert "DoRA of rank 8 on q, k, v, o, gate, up, down, base in nf4" in " ".join(capsys.readouterr().out.split())


def test_dora_has_a_magnitude_for_each_output() -> None:
    """Liu et al. 2024: one for each column, beside the two matrices."""
    plain, decomposed = (run_of(lora_rank=8, lora_targets="q,v", dora=dora) for dora in (False, True))
    assert decomposed.value("adapter_parameters") - plain.value("adapter_parameters") == 32 * 2 * 4096


def test_tensor_parallelism_splits_the_wide_matrix() -> None:
    """PEFT, tuners/lora/tp_layer.py: A is whole beside a column-split layer, B beside a row-split one."""
    run = run_of(lora_rank=16, lora_targets="q,o", tp=4)
    q, o = 16 * (4096 + 4096 / 4), 16 * (4096 / 4 + 4096)
    assert run.memory_terms()["weights/adapters"] == 2 * 32 * (q + o)


def test_experts_have_adapters_only_where_they_are_named() -> None:
    found = [run_of("mixtral-8x7b", lora_rank=4, lora_targets=targets) for targets in (None, "all-linear")]
    attention = 32 * 4 * (2 * (4096 + 4096) + 2 * (4096 + 1024))
    experts = 32 * 8 * 4 * 3 * (4096 + 14336)
    assert [run.value("adapter_parameters") for run in found] == [attention, attention + experts]


# --- products


def counts_of(model: str, **plan: Any) -> dict[str, int]:
    """How often each operation runs in a step of one micro-batch."""
    structure = structure_of(sf.Model.load(model), sf.System.load("h100-sxm"), sf.Plan(**plan))
    numbers = {SYMBOLS[name].symbol: 1 for name in ("pp", "batch", "micro_batch", "dp", "vpp")}
    numbers[SYMBOLS["num_layers"].symbol] = 1
    found = count_operations(step_tree(structure))
    none_beside = {SYMBOLS[name].symbol: 0 for name in ("overlap_dp", "overlap_parameters", "overlap_pp")}
    return {op.path: int(sympy.sympify(times).subs(numbers | none_beside)) for op, times in found.items()}


@pytest.mark.parametrize("targets", ["q,v", "gate,down", "all-linear"])
def test_an_adapter_has_two_products_forward_and_four_backward(targets: str) -> None:
    """The frozen layer has one forward and one for its input, and none for its weights."""
    found = counts_of(LLAMA, lora_rank=8, lora_targets=targets)
    packed = {"q,v": {"attention/qkv": 2}, "gate,down": {"mlp/up": 1, "mlp/down": 1}}.get(
        targets, {"attention/qkv": 3, "attention/output": 1, "mlp/up": 2, "mlp/down": 1}
    )
    for product in ("attention/qkv", "attention/output", "mlp/up", "mlp/down"):
        path = f"layer/{product}"
        assert found[f"{path}/forward"] == found[f"{path}/backward_input"] == 1
        assert f"{path}/backward_weight" not in found
        for matrix in ("into", "out"):
            for phase in ("forward", "backward_input", "backward_weight"):
                assert found.get(f"{path}/lora/{matrix}/{phase}", 0) == packed.get(product, 0)
    assert not any(name.startswith(("head", "embedding")) and name.endswith("_weight") for name in found)


@pytest.mark.parametrize(("targets", "adapted"), [("q,v", 8 * 2 * 8192), ("all-linear", 8 * ALL["layers"])])
def test_a_frozen_parameter_costs_a_token_four_flops_and_an_adapters_six(targets: str, adapted: int) -> None:
    run = run_of(lora_rank=8, lora_targets=targets)
    weights, scores = 32 * (4 * 4096**2 + 3 * 4096 * 11008) + 32000 * 4096, 3 * 32 * 2 * 2 * 512**2 * 4096
    assert run.value("model_flops") == 512 * (4 * weights + 6 * 32 * adapted) + scores


def test_the_base_is_widened_before_each_product_of_a_layer() -> None:
    """bitsandbytes, MatMul4Bit: forward and for the gradient of the input; the head is not stored so."""
    found = counts_of(LLAMA, lora_rank=8, lora_targets="q", base_precision="nf4", recompute="full")
    for product, layers in (("attention/qkv", 3), ("attention/output", 1), ("mlp/up", 2), ("mlp/down", 1)):
        for phase in ("forward", "recompute", "backward_input"):
            assert found[f"layer/{product}/widen/{phase}"] == layers
    assert not any("widen" in name and name.startswith(("head", "embedding")) for name in found)


def test_only_adapters_are_reduced_over_replicas() -> None:
    run = run_of(work={"batch": 2, "sequence": 512}, lora_rank=8, lora_targets="q,v", dp=2)
    rows = {row.name: row for row in run.table()}
    assert run.value("term/gradients/reduce/message") == 4 * 4_194_304
    assert rows["gradients/reduce"].count == 1


@pytest.mark.parametrize(("base", "bytes_of_layers"), [(None, 2.0), ("nf4", 0.5 + 1.015625 / 64)])
def test_zero_3_gathers_the_base_as_it_is_stored(base: str | None, bytes_of_layers: float) -> None:
    """FSDP with QLoRA shards and gathers the stored values."""
    run = run_of(work={"batch": 2, "sequence": 512}, lora_rank=8, lora_targets="q,v", dp=2, zero=3, base_precision=base)
    linear = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    others = 6_738_415_616 - linear + 4_194_304 - 32000 * 4096  # one end: of one stage both are on the device
    gathered = run.value("term/parameters/gather/forward/message")
    assert gathered == pytest.approx(linear * bytes_of_layers + 2 * (others + 32000 * 4096))


def test_sums_between_both_matrices_are_as_narrow_as_the_rank() -> None:
    """Forward where A is split, backward where B is."""
    run = run_of(lora_rank=16, lora_targets="q,o", tp=2)
    rows = {row.name for row in run.table() if "/lora/reduce" in row.name}
    assert rows == {"layer/attention/qkv/lora/reduce/backward", "layer/attention/output/lora/reduce/forward"}
    assert run.value("term/layer/attention/output/lora/reduce/forward/message") == 512 * 16 * 2


# --- memory


def test_nf4_takes_4_127_bits_a_parameter() -> None:
    """Dettmers et al. 2023 section 3: 4 bits and 8/64 + 32/(64 256)."""
    run, wide = (run_of(lora_rank=8, lora_targets="q,v", base_precision=base) for base in ("nf4", "int8"))
    linear, norms = 32 * (4 * 4096**2 + 3 * 4096 * 11008), 32 * 2 * 4096
    assert run.memory_terms()["weights/layers"] == pytest.approx(
        linear * (4 + 8 / 64 + 32 / (64 * 256)) / 8 + 2 * norms
    )
    assert run.memory_terms()["workspace/widened"] == 2 * 4096 * 11008
    assert wide.memory_terms()["weights/layers"] == linear * (1 + 4 / 4096) + 2 * norms


def test_a_layer_keeps_the_inputs_of_its_adapters_and_what_is_between() -> None:
    """Of one layer: both norms' inputs, queries, keys, values, the result, gate and up, as frozen; and the inputs of
    adapted layers (one for q and v, one for down) with T r of each."""
    frozen = run_of(freeze="layers,norms,head").value("memory/activations")
    tokens = 512
    for targets, more in (
        ("q,v", 4096 + 2 * 8),
        ("down", 11008 + 8),
        ("o", 8),  # its input is what the flash kernel keeps
    ):
        found = run_of(lora_rank=8, lora_targets=targets).value("memory/activations")
        assert found - frozen == 32 * tokens * 2 * more, targets


def test_state_is_of_adapters_alone() -> None:
    terms = run_of(lora_rank=8, lora_targets="q,v", optimizer="adam-8bit").memory_terms()
    assert {name for name, size in terms.items() if name.startswith(("gradients", "optimizer")) and size} == {
        "gradients/adapters",
        "optimizer/adapters",
    }


@pytest.mark.parametrize(
    "plan",
    some(
        [
            {"tp": 2, "sequence_parallel": True, "recompute": "full", "recompute_layers": 4},
            {"pp": 2, "schedule": "zero-bubble"},
            {"dp": 2, "zero": 3, "base_precision": "nf4", "dora": True},
            {"precision": "fp8"},
        ],
        0.5,
    ),
    ids=str,
)
def test_adapters_cost_less_than_all_weights(plan: dict[str, Any]) -> None:
    work = {"batch": 4, "sequence": 2048}
    adapted = run_of(work=work, lora_rank=16, **plan)
    full = run_of(work=work, **{name: value for name, value in plan.items() if name not in ("base_precision", "dora")})
    assert adapted.value("memory") < full.value("memory")
    assert sum(adapted.shares().values()) == pytest.approx(1)
    if "base_precision" not in plan:
        assert adapted.value("time") < full.value("time")


@given(st.integers(1, 2048), st.integers(1, 2048))
@part(0.1)
def test_a_wider_rank_takes_longer_and_more(first: int, second: int) -> None:
    low, high = sorted((first, second))
    runs = [run_of(lora_rank=rank, lora_targets="q") for rank in (low, high)]
    for quantity in ("memory", "adapter_parameters", "model_flops"):
        assert runs[0].value(quantity) <= runs[1].value(quantity)


@pytest.mark.parametrize(
    "model", some(["deepseek-v2-lite", "mamba2-1.3b", "flan-t5-large", "gemma-2-2b", "qwen3-30b-a3b"], 0.4)
)
def test_other_kinds_of_layers_have_adapters(model: str) -> None:
    run = run_of(model, lora_rank=8)
    assert 0 < run.value("adapter_parameters") < 0.05 * run.value("parameters")
    assert any("/lora/" in row.name for row in run.table())


def test_what_has_no_adapters_may_be_named_as_frozen() -> None:
    """Files of LLaMA-Factory name towers beside adapters; it is frozen as it is."""
    told, plain = (run_of(lora_rank=8, freeze=freeze) for freeze in ("embedding,head", None))
    assert told.structure == plain.structure


# --- what is refused


@pytest.mark.parametrize(
    ("plan", "message", "reason"),
    [
        ({"lora_rank": 5000}, "lora_rank: found 5000, expected 1 to the 4096 features", "narrower"),
        ({"dora": True}, "dora: is of adapters, found no rank of them; add --lora-rank", "have_a_rank"),
        ({"lora_targets": "q"}, "lora_targets: is of adapters, found no rank", "have_a_rank"),
        ({"base_precision": "nf4"}, "base_precision: nf4 stores frozen weights .* add --lora-rank", "frozen_weights"),
        ({"lora_rank": 8, "freeze": "mlp"}, "freeze: found mlp with lora_rank = 8", "freeze_all_else"),
        (
            {"lora_rank": 8, "lora_targets": "q_a"},
            "lora_targets: found q_a, but llama-2-7b has no such",
            "of_the_model",
        ),
        ({"lora_rank": 8, "optimizer": "muon"}, "optimizer: found muon, whose state of adapters", "element_wise"),
        ({"lora_rank": 8, "base_precision": "nf4", "precision": "fp8"}, "base_precision: nf4 is widened", "widened"),
        ({"lora_rank": 8, "base_precision": "nf4", "offload": "weights"}, "base_precision: nf4 with weights", "device"),
    ],
)
def test_contradictions_are_one_line_with_a_name(plan: dict[str, Any], message: str, reason: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as found:
        run_of(**plan)
    assert reason in reason_of(found.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--lora-rank 8 --lora-targets qp", "lora_targets: found 'qp', expected q or k .*did you mean q"),
        ("--lora-rank 0", "lora_rank: found 0, expected a whole number from 1"),
        ("--lora-rank 8 --base-precision nf5", "base_precision: found 'nf5', expected nf4 or int8; did you mean nf4"),
        ("--precision int4", "precision: found 'int4', expected bf16 or .*; a base in 4 bits"),
        ("--precision int4-weight", "precision: .* of inference only.; a base in 4 bits is frozen under adapters"),
        ("--set gradient_bytes=0", "set: gradient_bytes: found 0, .*; what has no gradients is named by --freeze"),
    ],
)
def test_bad_flags_are_one_line(flags: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["train", LLAMA, "-s", "h100-sxm", "--batch", "1", "--sequence", "512", *flags.split()]
    assert main(asked) == 2
    found = capsys.readouterr().err
    assert re.search(message, found), found
    assert found.count("\n") == 1


def test_sums_of_experts_adapters_by_hand() -> None:
    """Mixtral, 2048 tokens with 2 experts each: 4096 rows of 4096 and 14336; of a row 5 n, backward 2 n + 3 k."""
    run = sf.training("mixtral-8x7b", "h100-sxm", sf.Plan(lora_rank=8, lora_targets="experts"), batch=1, sequence=2048)
    for side, inner, columns in (("up", 4096, 14336), ("down", 14336, 4096)):
        term = f"term/layer/experts/{side}/lora/add"
        assert run.value(f"{term}/forward/bytes") == 2 * 4096 * 5 * columns
        assert run.value(f"{term}/backward/bytes") == 2 * 4096 * (2 * columns + 3 * inner)


def test_an_optimizer_in_the_backward_pass_keeps_the_gradients_of_one_layers_adapters() -> None:
    """Llama-2-7B has 32 equal layers."""
    plan = {"lora_rank": 8, "lora_targets": "attention"}
    later, at_once = (
        sf.training(LLAMA, "h100-sxm", sf.Plan(**plan, optimizer_in_backward=at_once), batch=1, sequence=512)
        for at_once in (False, True)
    )
    name = "gradients/adapters"
    assert at_once.memory_terms()[name] == pytest.approx(later.memory_terms()[name] / 32, rel=1e-12)


@pytest.mark.parametrize("dora", [False, True])
def test_gradients_of_whole_matrices_are_summed_where_each_rank_sees_its_own_tokens(*, dora: bool) -> None:
    """Beside columns that is the matrix into the rank, beside rows the one out of it; once a step, in 32 bits."""
    plan = {"lora_rank": 16, "lora_targets": "q,v,o,down", "tp": 4, "dora": dora}
    work = {"batch": 8, "sequence": 512}
    run = run_of(work=work, sequence_parallel=True, **plan)
    into, out = 2 * 4096 * 16, 2 * 4096 * 16
    magnitudes = 2 * 4096 if dora else 0
    assert run.value("term/gradients/adapters/message") == 4 * 32 * (into + out + magnitudes)
    assert run.value("term/gradients/adapters/count") == 1
    assert "gradients/adapters" not in {row.name for row in run_of(work=work, **plan).table()}

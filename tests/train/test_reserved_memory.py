"""What a device must have beside its tensors; modules that are computed again; and where state may lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from symperf.common.errors import InputError
from symperf.report.stages import fullest_stage, parts
from symperf.report.training import as_json
from symperf.systems.runtime_memory import RUNTIMES
from symperf.systems.software import Software

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2.0**30
HOST = {"host_bandwidth": 64e9, "host_memory_bandwidth": 75e9}


def make(model: str = "llama-3.1-8b", system: str = "h100-sxm", batch: int = 8, **stated: Any) -> sf.Run:
    plan = sf.Plan(**{name: value for name, value in stated.items() if name in sf.Plan.names()})
    values = {name: value for name, value in stated.items() if name not in sf.Plan.names()}
    return sf.training(sf.Model.load(model), sf.System.load(system), plan, batch=batch, sequence=4096, **values)


def activations(**stated: Any) -> float:
    return make(**stated).memory_terms()["activations"]


# Reserved -----------------------------------------------------------------------------------------------------------


def test_the_verdict_is_by_what_is_reserved() -> None:
    """A capacity between what is allocated and what is reserved does not hold the step."""
    run = make(dp=8, zero=3, recompute="full")
    between = (run.value("memory") + run.needed_bytes) / 2
    assert run.fits
    assert not run.bind(memory_capacity=between).fits
    assert run.bind(memory_capacity=run.needed_bytes * (1 + 1e-9)).fits
    assert as_json(run)["memory_bytes"]["reserved"] == run.needed_bytes > run.value("memory")


def test_what_is_beside_tensors_goes_by_the_runtime() -> None:
    """A compiled graph fragments nothing and lies in the capacity that the compiler has; PyTorch's does not."""
    names = ("fragmentation", "context", "communicators", "libraries")
    assert make(system="tpu-v5p", dp=8).reserved_parts() == dict.fromkeys(names, 0.0)
    cuda, rocm = make(dp=8).reserved_parts(), make(system="mi300x", dp=8).reserved_parts()
    assert cuda["communicators"] == RUNTIMES["cuda"]["collective_buffer_bytes"].value
    assert rocm["communicators"] == RUNTIMES["rocm"]["collective_buffer_bytes"].value
    assert make(system="mi350x").system.runtime == "rocm"


@pytest.mark.parametrize(
    ("plan", "groups"),
    [({}, 0), ({"dp": 2}, 1), ({"tp": 2, "pp": 2, "dp": 2}, 3), ({"cp": 2, "tp": 2}, 2)],
)
def test_every_kind_of_group_has_a_communicator(plan: dict[str, int], groups: int) -> None:
    assert make(collective_buffer_bytes=1e9, **plan).reserved_parts()["communicators"] == groups * 1e9


def test_a_profile_states_what_it_holds(tmp_path: Path) -> None:
    """Its values stand in the place of the runtime's, and those of the user in the place of both."""
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\n[memory]\nfragmentation = 0.0\ncontext_bytes = "1 GiB"\n', encoding="utf-8")
    plan, work = sf.Plan(dp=8, zero=3), {"batch": 8, "sequence": 4096}
    run = sf.training("llama-3.1-8b", "h100-sxm", plan, **work, stack=path)
    assert run.reserved_parts()["fragmentation"] == 0
    assert run.reserved_parts()["context"] == GIB
    assert run.bind(context_bytes=0).reserved_parts()["context"] == 0
    assert run.bind(dp=16, batch=16).reserved_parts()["context"] == GIB


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[memory]\nfragmentatoin = 0.1\n", "memory: unknown key 'fragmentatoin'.*did you mean fragmentation"),
        ("[memory]\nfragmentation = 1.5\n", "memory: fragmentation: found 1.5"),
        ("memory = 3\n", "memory: found 3, expected a table"),
    ],
)
def test_a_profile_that_says_nothing_of_it_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f'name = "own"\n{text}' if text[0] == "[" else f'{text}name = "own"\n', encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Software.load(path)


def test_a_runtime_that_is_none_is_refused() -> None:
    table = {"name": "x", "runtime": "cuad", "matrix_rate": {"bf16": 1e14}, "memory_bandwidth": 1e12}
    with pytest.raises(
        InputError, match=r"runtime: found 'cuad', expected one of cuda, rocm, compiled.*did you mean cuda"
    ):
        sf.System.from_table(table | {"memory_capacity": 8e10})


# The loss, and gathered ends ----------------------------------------------------------------------------------------


def test_the_loss_has_its_peak_beside_the_logits() -> None:
    """w_ls bytes for each logit of a micro-batch, unless a recomputed layer takes more; split over tensor ranks."""
    wide, narrow = (make(loss_working_bytes=width).value("memory") for width in (12, 2))
    logits = 4096 * 128256
    assert wide - narrow == pytest.approx(10 * logits, rel=1e-12)
    full = make(recompute="full", loss_working_bytes=1).value("memory")
    assert make(recompute="full", loss_working_bytes=1 / 16).value("memory") == full
    split = [make(tp=2, loss_working_bytes=width).value("memory") for width in (12, 2)]
    assert split[0] - split[1] == pytest.approx(10 * logits / 2, rel=1e-12)


def test_the_head_is_gathered_under_zero_3() -> None:
    """Whole in 16 bits, with its gradient, beside the layers that are gathered; not on one replica."""
    terms = make(dp=8, zero=3).memory_terms()
    assert terms["workspace/gathered_ends"] == 128256 * 4096 * (2 + 4)
    assert make(zero=3).memory_terms()["workspace/gathered_ends"] == 0


# Modules and operations ---------------------------------------------------------------------------------------------


def test_modules_free_what_only_they_keep() -> None:
    """Bytes of a layer by hand: outputs of two norms, four tensors in a gated MLP, an expert's activation."""
    rows, layers = 4096, 32
    kept = activations(dp=8)
    assert kept - activations(dp=8, recompute_modules="layernorm") == pytest.approx(
        layers * rows * 2 * 4096 * 2, rel=0.1
    )
    without = activations(dp=8, recompute_modules="mlp")
    inner = rows * 4 * 14336 * 2
    assert kept - without == pytest.approx(layers * inner, rel=1e-9)
    moe = {"model": "deepseek-v2-lite", "dp": 8}
    freed = activations(**moe) - activations(**moe, recompute_modules="moe_act")
    assert freed == pytest.approx(26 * rows * 6 * 1408 * 2, rel=1e-9)


def test_selective_recomputation_alone_is_the_core_of_attention() -> None:
    one, other = make(recompute="selective"), make(recompute_modules="core_attn")
    assert one.structure == other.structure
    assert one.value("time") == other.value("time") > make().value("time")


def test_the_input_of_a_recomputed_layer_is_held_once() -> None:
    """What is computed again comes beside the input that a layer keeps: with one layer no more is held than without."""
    for sizes in ({}, {"num_layers": 1}):
        plan = {"loss": "cut", "tp": 2, **sizes}
        saved, held, layer = (
            [make(recompute=way, **plan).value(name) for way in ("full", "none")]
            for name in ("saved_activations", "memory/activations", "memory/workspace/framework")
        )
        assert layer == [0, 0]
        assert held[1] == saved[1]
        layers = sizes.get("num_layers", 32)
        assert held[0] - saved[0] == pytest.approx((saved[1] - saved[0]) / layers, rel=1e-9)


def test_all_modules_are_nearly_full_recomputation() -> None:
    """Time and memory lie between none and full, and more modules never keep more nor take less."""
    model = {"model": "deepseek-v2-lite", "dp": 8}
    lists = ("moe_act", "moe_act,shared_experts", "moe", "moe,mlp", "layernorm,mla_up_proj,mlp,moe")
    runs = [
        make(**model),
        *(make(**model, recompute_modules=names) for names in lists),
        make(**model, recompute="full"),
    ]
    memory = [run.memory_terms()["activations"] for run in runs]
    times = [run.value("time") for run in runs]
    assert memory == sorted(memory, reverse=True)
    assert times == sorted(times)
    assert [run.value("hfu") >= run.value("mfu") for run in runs] == [True] * len(runs)


def test_operations_keep_every_second_product() -> None:
    """torchtitan's selective op on Llama 3 8B: products 1, 3, 5 and 7 (q, v, gate, down), the core, and the input."""
    rows = 4096
    kept = (4096 + 4096 + 1024 + 14336 + 4096 + 4096) * 2 + 32 * 4
    plain = activations(dp=8) - activations(dp=8, recompute_modules="op")
    layer = activations(dp=8, num_layers=33) - activations(dp=8)
    again = activations(dp=8, num_layers=33, recompute_modules="op") - activations(dp=8, recompute_modules="op")
    assert again == pytest.approx(rows * kept, rel=1e-9)
    assert plain == pytest.approx(32 * (layer - again), rel=1e-9)
    assert make(recompute_modules="op").value("hfu") / make().value("hfu") < make(recompute="full").value(
        "hfu"
    ) / make().value("mfu")


@pytest.mark.parametrize("kind", ["ring", "all-gather"])
def test_operations_keep_attention_over_parts_of_a_sequence_too(kind: str) -> None:
    """What a ring sends and merges, or what is gathered, is no more computed again than attention is."""
    run = make(cp=4, cp_kind=kind, recompute_modules="op")
    again = {
        row.name.removeprefix("layer/").removesuffix("/recompute") for row in run.table() if "recompute" in row.name
    }
    assert again >= {"attention/norm", "attention/qkv", "mlp/up"}
    assert not [name for name in again if any(part in name for part in ("flash", "ring", "merge", "context"))]


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"recompute_modules": "mpl"}, "recompute_modules: found 'mpl'.*did you mean mlp"),
        ({"recompute_modules": "moe"}, "recompute_modules: moe needs experts, which llama-3.1-8b has not"),
        ({"recompute_modules": "mlp", "recompute": "full"}, "recompute_modules: .* found recompute = full"),
        ({"recompute_modules": "op,mlp"}, "recompute_modules: op says of every operation.*expected it alone"),
        ({"recompute_modules": "op", "model": "mamba-1.4b"}, "recompute_modules: op needs attention over plain heads"),
        ({"nvme": "optimizer"}, "nvme: holds what the host keeps.*add --offload optimizer"),
        ({"nvme": "optimizer", "offload": "optimizer", **HOST}, "nvme: system h100-sxm describes no bandwidth"),
        ({"offload": "gradients", **HOST}, "offload: gradients on the host are for its optimizer"),
        (
            {"optimizer_in_backward": True},
            "optimizer_in_backward: gradients are not accumulated, found 8 micro-batches",
        ),
        ({"optimizer_in_backward": True, "optimizer": "muon", "dp": 8}, "optimizer_in_backward: updates each weight"),
        ({"loss_working_bytes": 0}, "loss_working_bytes: found 0"),
        ({"nvme_bandwidth": -1}, "nvme_bandwidth: found -1"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_cannot_be_has_its_own_sentence(stated: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**stated)


# State that lies elsewhere, or is gone at once ----------------------------------------------------------------------


def test_gradients_are_gone_at_once_with_the_optimizer_in_the_backward_pass() -> None:
    """Those of one layer and of one table are left; without clipping and reset the step is no longer."""
    plain, at_once = make(dp=8), make(dp=8, optimizer_in_backward=True)
    layer = 218_112_000
    assert at_once.memory_terms()["gradients/layers"] == layer * 4
    assert at_once.memory_terms()["gradients/ends"] == 128256 * 4096 * 4
    assert at_once.value("memory") < plain.value("memory") - 25e9
    assert at_once.value("time") < plain.value("time")


def test_moments_in_four_bits() -> None:
    """Half a byte each and a scale of 4 bytes for each 128, beside the master copy (torchao, Li et al. 2023)."""
    held = make(optimizer="adam-4bit").memory_terms()
    count = make().memory_terms()["optimizer/layers"] / 12
    assert held["optimizer/layers"] == pytest.approx(count * (4 + 2 * (0.5 + 4 / 128)), rel=1e-12)


def test_the_host_keeps_gradients_and_drives_keep_state() -> None:
    """Gradients leave the device but for two layers'; state on drives takes no memory of the host, and their time."""
    plan = {"dp": 8, "zero": 2, **HOST}
    host = make(**plan, offload="optimizer")
    both = make(**plan, offload="gradients,optimizer")
    assert sum(size for name, size in both.memory_terms().items() if name.startswith("gradients/")) == 0
    assert both.memory_terms()["workspace/offload"] == 2 * 218_112_000 * 4
    assert both.host_memory() == host.host_memory()
    drives = make(**plan, offload="gradients,optimizer", nvme="optimizer", nvme_bandwidth=3e9)
    found = drives.host_memory()
    state = found["nvme/optimizer"]
    assert state == pytest.approx(12 / 8 * 8_030_261_248, rel=1e-9)
    assert found["total"] == found["optimizer"] == pytest.approx(both.host_memory()["total"] - state, rel=1e-9)
    assert drives.value("time") - both.value("time") < 2 * state / 3e9 < drives.value("time")
    slower = make(**plan, offload="gradients,optimizer", nvme="optimizer", nvme_bandwidth=1e9)
    assert slower.value("time") - drives.value("time") == pytest.approx(2 * state * (1 / 1e9 - 1 / 3e9), rel=0.01)


@pytest.mark.parametrize(("zero", "whole"), [(0, True), (1, True), (2, False)])
def test_gradients_that_are_not_sharded_leave_with_the_last_micro_batch(zero: int, whole: bool) -> None:
    """DeepSpeed's ZeRO-1 adds them up on the device and hands their sums over; of one micro-batch nothing is added."""
    plan = {"dp": 2, "zero": zero, "offload": "gradients,optimizer", **HOST}
    several, one = make(**plan, batch=8), make(**plan, batch=2)
    held = [sum(v for name, v in run.memory_terms().items() if name.startswith("gradients/")) for run in (several, one)]
    assert held == [4 * 8_030_261_248 if whole else 0, 0]
    assert several.value("term/offload/gradients/count") == (1 if whole else 4) * several.plan.pp


# Stages -------------------------------------------------------------------------------------------------------------


def test_parts_of_stages_sum_to_what_they_must_have() -> None:
    """Logits lie on the last stage, and the fullest stage is named."""
    run = make(tp=2, pp=4, batch=32)
    rows = run.stage_memory()
    for row in rows:
        assert sum(parts(row).values()) == pytest.approx(row["reserved"], rel=1e-12)
    assert [row["logits"] > 0 for row in rows] == [False, False, False, True]
    assert rows[-1]["logits"] == 4096 * 128256 / 2 * (4 + 2)
    found = as_json(run)
    assert found["fullest_stage"] == fullest_stage(run) == 1
    assert found["stages"][0]["parts"]["states"] == found["stages"][0]["memory_bytes"]["optimizer"]
    assert max(row["reserved"] for row in rows) == pytest.approx(run.needed_bytes, rel=1e-3)

"""Multi-token prediction: DeepSeek-V3's module counted by hand, and what a step has of it on its last stage."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from typing import Any

import pytest
from support.effort import some
from support.kind_cases import train, work

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.models.model import catalogue_names

V3 = sf.Model.load("deepseek-v3")
HEADS = [name for name in catalogue_names() if sf.Model.load(name).architecture.multi_token_head]
# Sizes of the report, section 4.2, and the config.
H, VOCABULARY, EXPERTS, CHOSEN, WIDTH = 7168, 129280, 256, 8, 2048
A, NOPE, ROPE, VALUE, QUERY_RANK, RANK = 128, 128, 64, 128, 1536, 512
EXPERT = 3 * H * WIDTH
LATENT = H * QUERY_RANK + QUERY_RANK * A * (NOPE + ROPE) + H * (RANK + ROPE) + RANK * A * (NOPE + VALUE) + A * VALUE * H
NORMS = 2 * H + QUERY_RANK + RANK
LAYER = LATENT + NORMS + H * EXPERTS + (EXPERTS + 1) * EXPERT
PROJECTION, OWN_NORMS = 2 * H * H, 3 * H
# The router's bias for balance, one value an expert (HF: e_score_correction_bias), is no parameter that is trained.
MODULE = LAYER + PROJECTION + OWN_NORMS
LARGE: dict[str, Any] = {"tp": 2, "pp": 4, "dp": 8, "ep": 8, "sequence_parallel": True, "zero": 1, "batch": 64}
UNEVEN: dict[str, Any] = {**LARGE, "uneven_stages": True}


def step(model: sf.Model | str = V3, modules: int | None = None, **plan: Any) -> sf.Run:
    """A step, with another number of modules than the model's if that is asked for."""
    batch = plan.pop("batch", 8)
    values = {} if modules is None else {"num_multi_token_layers": modules}
    return train(model, batch=batch, values=values, **plan)


def without_head(model: sf.Model) -> sf.Model:
    """The model whose config has no such layers."""
    sizes = {name: size for name, size in model.sizes.items() if name != "num_multi_token_layers"}
    return dataclasses.replace(
        model, sizes=sizes, architecture=dataclasses.replace(model.architecture, multi_token_head=False)
    )


# Counts -------------------------------------------------------------------------------------------------------------


def test_parameters_of_the_module_of_deepseek_v3() -> None:
    """11.6 B of its own; with the table and the head that a file holds again, the 14 B of its README (685 - 671)."""
    found = sf.inspect(V3)
    assert found["multi_token_parameters"] == pytest.approx(MODULE, rel=1e-6)
    assert 11.5e9 < MODULE < 11.7e9
    assert round((MODULE + 2 * VOCABULARY * H) / 1e9) in (13, 14)
    # The published counts have the main model alone.
    assert found["parameters"]["total"] == pytest.approx(671.0e9, rel=1e-3)
    assert found["parameters"]["active_per_token"] == pytest.approx(37e9, rel=0.02)


def test_products_of_the_module_of_deepseek_v3() -> None:
    """Forward FLOPs of a module: 2 a weight and token, the scores, and the head."""
    sequence, batch = 512, 8
    run = step(attention="eager", dp=1, batch=batch)
    tokens = sequence * batch
    scores = 2 * batch * A * sequence**2 * (NOPE + ROPE + VALUE)
    products = 2 * tokens * (LATENT + H * EXPERTS + (CHOSEN + 1) * EXPERT + PROJECTION)
    head = 2 * tokens * H * VOCABULARY
    found = work(run, modules=True)
    assert found["attention_scores"] == pytest.approx(scores, rel=1e-12)
    assert found["lm_head"] == pytest.approx(head, rel=1e-12)
    assert found["multi_token_projection"] == pytest.approx(2 * tokens * PROJECTION, rel=1e-12)
    assert sum(found.values()) == pytest.approx(scores + products + head, rel=1e-12)
    alone = step(modules=0, attention="eager", batch=batch)
    added = run.value("model_flops") - alone.value("model_flops")
    assert added == pytest.approx(3 * (scores + products + head), rel=1e-9)


def test_recomputation_passes_norms_projection_and_layer_again_but_not_the_head() -> None:
    """As Megatron-Core's checkpoint of a module; where layers are chosen by number, it is not one of them."""
    plan = {"attention": "eager", "recompute": "full"}
    run, chosen = step(**plan), step(recompute_layers=3, **plan)
    once, again = work(run, modules=True), work(run, "recompute", modules=True)
    assert again == {name: pytest.approx(flops) for name, flops in once.items() if name != "lm_head"}
    assert not work(chosen, "recompute", modules=True)
    for model in (V3, without_head(V3)):
        whole, plain = (step(model, **{**plan, "recompute": way}) for way in ("full", "none"))
        recomputed = 3 * (whole.value("hardware_flops") - whole.value("model_flops"))
        head = 3 * sum(work(plain, modules=way).get("lm_head", 0) for way in (False, True))
        assert recomputed == pytest.approx(plain.value("model_flops") - head, rel=1e-9)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_tensor_parallelism_conserves_the_work_of_modules(tp: int) -> None:
    """All devices together do the products of one, and the narrow projections of latents each anew."""
    whole = work(step(attention="eager"), modules=True)
    split = work(step(attention="eager", tp=tp, sequence_parallel=True), modules=True)
    whole["projections"] += (tp - 1) * 2 * 8 * 512 * H * (QUERY_RANK + RANK + ROPE)
    assert {name: tp * flops for name, flops in split.items()} == pytest.approx(whole, rel=1e-12)


# None of them -------------------------------------------------------------------------------------------------------


PLANS: dict[str, dict[str, Any]] = {
    "one device": {},
    "pipeline": UNEVEN,
    "full, given stages": {**LARGE, "recompute": "full", "first_stage_layers": 15, "last_stage_layers": 14},
    "zero 3": {"dp": 8, "zero": 3, "ep": 8},
    "muon, fp8": {**UNEVEN, "optimizer": "muon", "precision": "fp8"},
    "adafactor": {**UNEVEN, "zero": 0, "optimizer": "adafactor"},
    "dualpipe": {**UNEVEN, "schedule": "dualpipe", "recompute": "full"},
    "zero-bubble": {**UNEVEN, "schedule": "zero-bubble"},
    "ring": {"cp": 2, "dp": 4, "attention": "flash"},
}


@pytest.mark.parametrize("plan", some(PLANS.values(), 0.4), ids=some(PLANS, 0.4))
def test_no_modules_are_no_head(plan: dict[str, Any]) -> None:
    """`num_multi_token_layers` of 0 is a model without them; only the order of sums may differ."""
    none, absent = step(modules=0, **plan), step(without_head(V3), **plan)
    for name in ("time", "memory", "mfu", "hfu", "model_flops", "hardware_flops", "parameters"):
        assert none.value(name) == pytest.approx(absent.value(name), rel=1e-15), name
    rows = {row.name: row.time_s for row in none.table()}
    assert all(not time for name, time in rows.items() if name.startswith("multi_token/"))
    assert not any(name.startswith("multi_token") for name in absent.memory_terms())
    assert not any(value for name, value in none.memory_terms().items() if "multi_token" in name)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_module_costs_as_much_as_the_one_before(plan: dict[str, Any]) -> None:
    """Time and memory rise, and by equal steps, once the first has brought its copy of the table.

    Where stages are given, a module costs less until the last one is the slowest; under DualPipe the first ones fill
    what is idle on the outermost devices.
    """
    runs = [step(modules=count, **plan) for count in range(4)]
    for name in ("time", "memory"):
        one, two, three = (after.value(name) - before.value(name) for before, after in pairwise(runs))
        assert one > 0
        assert two > 0
        assert three >= 0.98 * two
        if "last_stage_layers" not in plan and plan.get("schedule") != "dualpipe":
            assert three == pytest.approx(two, rel=0.02)
    for run in runs:
        assert sum(row.time_s for row in run.table()) == pytest.approx(run.value("time"), rel=1e-9)


# Where they are -----------------------------------------------------------------------------------------------------


def test_the_last_stage_holds_the_modules() -> None:
    """Their state on the last stage alone, with a copy of the table; under DualPipe the first device is the last."""
    plan = {"pp": 4, "dp": 8, "ep": 8, "uneven_stages": True, "batch": 64}
    run, none = step(**plan), step(modules=0, **plan)
    added = [
        {name: size - without[name] for name, size in stage.items() if name.startswith("weights/")}
        for stage, without in zip(run.stage_memory(), none.stage_memory(), strict=True)
    ]
    for first in added[:-1]:
        assert not any(first.values())
    dense = MODULE - EXPERTS * EXPERT
    assert added[-1] == pytest.approx(
        {
            "weights/layers": 0,
            "weights/experts": 0,
            "weights/ends": 2 * VOCABULARY * H,
            "weights/multi_token": 2 * dense,
            "weights/multi_token_experts": 2 * EXPERTS / 8 * EXPERT,
        },
        rel=1e-6,
    )
    fullest = run.memory_terms()
    assert fullest["weights/multi_token"] == pytest.approx(2 * dense, rel=1e-6)
    two = step(schedule="dualpipe", **plan).memory_terms()
    assert two["weights/multi_token"] == fullest["weights/multi_token"]
    assert two["weights/ends"] == pytest.approx(2 * (2 * VOCABULARY * H + H))
    assert fullest["weights/ends"] == two["weights/ends"]


def test_gradients_of_both_tables_are_summed() -> None:
    """Between the first and the last stage; not on one stage, and not where DualPipe has both on one device."""
    plan = {"pp": 4, "dp": 8, "ep": 8, "uneven_stages": True, "batch": 64}
    rows = {row.name: row for row in step(**plan).table()}
    assert rows["gradients/tied"].time_s > 0
    none = {row.name: row.time_s for row in step(modules=0, **plan).table()}
    assert none["gradients/tied"] == 0
    assert "gradients/tied" not in {row.name for row in step(schedule="dualpipe", **plan).table()}
    assert {row.name: row.time_s for row in step().table()}["gradients/tied"] == 0


def test_a_stage_with_fewer_layers_makes_room_for_the_module() -> None:
    """NVIDIA's recipe gives the first stage one layer less, and the last two: with table, module and head, 64.

    Without it the last stage has one layer less already.
    """
    plan = {**LARGE, "pp": 8, "batch": 256}
    even = step(uneven_stages=True, **plan)
    given = step(first_stage_layers=7, last_stage_layers=6, **plan)
    assert given.value("time") < 0.95 * even.value("time")


def test_modules_run_once_a_micro_batch_on_the_last_stage() -> None:
    """Their time is that of the pipeline's last stage: all micro-batches pass them."""
    run = step(**UNEVEN)
    assert run.value("term/multi_token/layer/experts/up/forward/count") == 64 / 8
    assert run.value("term/multi_token/projection/forward/flops") == pytest.approx(2 * 512 * PROJECTION / 2)
    # Columns are split: the result is gathered, and with sequence parallelism the input, of two streams, too.
    message = 512 * H * 2
    assert run.value("term/multi_token/projection/results/forward/message") == message
    assert run.value("term/multi_token/projection/gather/forward/message") == 2 * message


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_activations_of_a_module(recompute: str) -> None:
    """Inputs of its norms and products, its layer's, and its logits; recomputed, only what it reads, and the logits.

    While its backward pass runs, a module has 5 tensors more than a layer, of which it kept 2 and the layer 1.
    """
    run, none = (step(modules=count, recompute=recompute) for count in (1, 0))
    stream, logits = 512 * H * 2, 512 * VOCABULARY * 4
    added = run.memory_terms()["activations"] - none.memory_terms()["activations"]
    if recompute == "full":
        assert added == (2 + 5 - 2 + 1) * stream + logits
    else:
        deeper = dataclasses.replace(
            without_head(V3),
            sizes={
                **without_head(V3).sizes,
                "num_layers": 62,
                "num_latent_attention_experts_layers": V3.sizes["num_latent_attention_experts_layers"] + 1,
            },
        )
        layer = step(deeper).memory_terms()["activations"] - none.memory_terms()["activations"]
        assert added == pytest.approx(layer + 5 * stream + logits)


def test_parts_of_the_layer_of_a_module_are_computed_again() -> None:
    """Its shared expert as those of the layers, in HFU too; and its logits lie among those of the last stage."""
    plan = {"recompute": "selective", "recompute_modules": "shared_experts", "attention": "flash"}
    run, none = (step(modules=count, batch=8, **plan) for count in (1, 0))
    again, of_layers = (each.value("hardware_flops") - each.value("model_flops") for each in (run, none))
    shared = 8 * 512 * 2 * 3 * H * WIDTH
    assert of_layers == pytest.approx(58 * shared, rel=1e-12)
    assert again == pytest.approx(59 * shared, rel=1e-12)
    # Of 6 bytes a logit that the head needs 4 are kept, under GPipe of each of 8 micro-batches, and so of a module's.
    for schedule, more in (("1f1b", 4 / 6), ("gpipe", 8 * 4 / (8 * 4 + 2))):
        held = [step(modules=count, **{**UNEVEN, "schedule": schedule}).stage_memory()[-1] for count in (1, 0)]
        ratio = (held[0]["logits"] - held[1]["logits"]) / held[1]["logits"]
        assert ratio == pytest.approx(more, rel=1e-12)
        assert held[0]["logits"] < held[0]["activations"]


# What is asked ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEADS)
def test_models_with_such_layers_train_with_them(name: str) -> None:
    """Every catalogue model that has them: longer steps, and no warning."""
    run, none = step(name), step(name, modules=0)
    assert run.value("time") > none.value("time")
    assert not any("multi-token" in text for text in (*run.warnings, *run.model.warnings))


def test_the_command_line_counts_modules(capsys: pytest.CaptureFixture[str]) -> None:
    """`--set num_multi_token_layers=N`, 0 included."""
    command = "train deepseek-v3 -s h800-sxm --pp 4 --dp 8 --ep 8 --uneven-stages --zero 1 --batch 64 --sequence 4096"
    times = []
    for count in (0, 1, 2):
        assert main([*command.split(), "--set", f"num_multi_token_layers={count}", "--json"]) == 0
        times.append(json.loads(capsys.readouterr().out)["time_s"])
    assert times == sorted(set(times))
    assert main([*command.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["time_s"] == times[1]
    assert not any("multi-token" in text for text in found["warnings"])


def test_inspection_prints_the_parameters_of_modules_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """A line where the model has modules, none where it has not."""
    assert main(["inspect", "deepseek-v3"]) == 0
    assert f"{MODULE:,}" in capsys.readouterr().out
    assert main(["inspect", "kimi-k2"]) == 0
    assert "multi-token" not in capsys.readouterr().out


def test_a_sweep_takes_modules_as_an_axis() -> None:
    """Cell by cell what single runs tell."""
    found = step().sweep(num_multi_token_layers=[0, 1, 2], outputs=["time", "memory"])
    for name in ("time", "memory"):
        single = [step(modules=count).value(name) for count in (0, 1, 2)]
        assert found[name].values.tolist() == pytest.approx(single, rel=1e-12)


BAD = [
    ("kimi-k2", 1, "num_multi_token_layers: kimi-k2 has no layers for multi-token prediction"),
    ("deepseek-v3", -1, "num_multi_token_layers: found -1, expected a whole number from 0 to"),
    ("deepseek-v3", 0.5, "num_multi_token_layers: found 0.5, expected a whole number from 0 to"),
    ("deepseek-v3", True, "num_multi_token_layers: found True, expected a whole number from 0 to"),
]


@pytest.mark.parametrize(("model", "count", "message"), BAD)
def test_bad_numbers_of_modules_are_refused(model: str, count: Any, message: str) -> None:
    with pytest.raises(InputError, match="^" + message):
        step(model, modules=count)

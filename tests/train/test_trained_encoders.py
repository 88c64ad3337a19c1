"""Training with images and sound: what their encoders add to the first stage, trained or frozen."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import sympy

import symperf as sf
from symperf.cli import main
from symperf.common.errors import InputError
from symperf.formulas.language.symbols import SYMBOLS
from symperf.models.sounds import parse_media
from symperf.operations.schedule import terms
from symperf.train.inputs import structure_of
from symperf.train.memory.encoder_counts import encoder_parameters
from symperf.train.step.encoders import Encoders

H100 = sf.System.load("h100-sxm")
LLAVA = sf.Model.load("llava-1.5-7b")
TOKENS, POSITIONS, WIDTH, INNER, DEPTH, HIDDEN = 576, 577, 1024, 4096, 24, 4096
"""Of an image of LLaVA-1.5: 24 x 24 patches and a token of the class, in CLIP's 24 layers."""
STEM, PROJECTOR = 588 * WIDTH, WIDTH * HIDDEN + HIDDEN**2


def step(images: tuple[str, ...] = ("2x336x336",), batch: int = 8, model: Any = LLAVA, **plan: Any) -> sf.Run:
    """A step of 2,048 tokens a sequence."""
    return sf.training(model, H100, sf.Plan(**plan), batch=batch, sequence=2048, images=images)


def seconds(run: sf.Run, *roots: str) -> float:
    """Seconds of all executions of the terms below some paths."""
    paths = [term.path for term in run.compiled.terms if term.path.startswith(roots) and not term.idle]
    return sum(run.value(path) * run.value(f"term/{path}/count") for path in paths)


# --- time


def test_the_encoder_paces_the_pipeline_where_it_is_the_slower_end() -> None:
    """Its time is on the first stage: all of it once, and again for each later micro-batch what exceeds the last stage.

    With frozen encoders nothing else of the step changes, so that the difference is by hand.
    """
    plan = {"pp": 2, "freeze": "vision,projector"}
    with_images, without = step(**plan), step((), **plan)
    m = 8
    encoder = seconds(with_images, "vision/") / m
    embedding, head = (seconds(without, root) / m for root in ("embedding/", "head/"))
    more = (m - 1) * (max(encoder + embedding, head) - max(embedding, head)) + encoder
    assert with_images.value("time") - without.value("time") == pytest.approx(more, rel=1e-9)
    assert more < m * encoder


def test_on_a_single_stage_every_micro_batch_passes_the_encoder() -> None:
    plan = {"freeze": "vision,projector"}
    more = step(**plan).value("time") - step((), **plan).value("time")
    assert more == pytest.approx(seconds(step(**plan), "vision/"), rel=1e-9)


def test_model_flops_of_the_encoder_by_hand() -> None:
    """6 FLOPs of a parameter and position, 4 of the stem's; without gradients 2; scores of every pair of positions."""
    images, layer = 8 * 2, 4 * WIDTH**2 + 2 * WIDTH * INNER
    scores = DEPTH * 2 * 2 * POSITIONS**2 * WIDTH
    layers = DEPTH * layer * 2 * POSITIONS + scores
    stem, projector = 2 * TOKENS * STEM, 2 * TOKENS * PROJECTOR
    gained = {
        None: 3 * layers + 2 * stem + 3 * projector,
        "vision": layers + stem + 2 * projector + 2 * TOKENS * HIDDEN**2,
        "projector": 3 * layers + 2 * stem + 2 * projector,
        "vision,projector": layers + stem + projector,
    }
    plain = step(()).value("model_flops")
    for freeze, flops in gained.items():
        assert step(freeze=freeze).value("model_flops") - plain == images * flops


def test_executed_products_of_the_encoder_by_hand() -> None:
    """A layer's products and those around them, once forward and twice backward, without a gradient of the images."""
    run, images = step(), 8 * 2
    rows = {row.name: row.flops for row in run.table() if row.name.startswith("vision/")}
    products = ("qkv", "output", "up", "down", "patch", "projector_1", "projector_2")
    done = sum(flops for name, flops in rows.items() if name.split("/")[-2] in products)
    layer = 4 * WIDTH**2 + 2 * WIDTH * INNER
    biases = 8 * (4 * WIDTH + INNER + WIDTH)  # of which gradients are sums, no products
    expected = 6 * DEPTH * POSITIONS * layer + 4 * TOKENS * STEM + 6 * TOKENS * PROJECTOR
    assert done / images == pytest.approx(expected, rel=1e-3)
    assert biases * DEPTH * POSITIONS < 1e-3 * expected
    assert "vision/stem/patch/backward_input" not in rows


def test_gradients_pass_the_whole_language_model_to_a_trained_projector() -> None:
    """LLaVA's first phase trains the projector alone (Liu et al. 2023 section 4.2): 4 FLOPs of a frozen parameter."""
    run = step(freeze="language,vision")
    names = {row.name for row in run.table()}
    assert {"layer/attention/qkv/backward_input", "vision/projector/projector_1/backward_weight"} <= names
    assert not names & {
        "layer/attention/qkv/backward_weight",
        "vision/projector/projector_1/backward_input",
        "vision/layer/attention/qkv/backward_input",
        "embedding/lookup/backward",
    }
    terms = run.memory_terms()
    assert terms["optimizer/ends"] == 12 * (PROJECTOR + 2 * HIDDEN)
    assert not terms.get("optimizer/layers")
    assert run.value("time") < step().value("time")


# --- memory


@pytest.mark.parametrize("tp", [1, 2])
def test_weights_of_the_encoder(tp: int) -> None:
    """Layers over the tensor-parallel group, with norms and biases after sums whole; stem and projector whole."""
    run = step(tp=tp)
    matrices = 4 * WIDTH**2 + 2 * WIDTH * INNER + 3 * WIDTH + INNER
    layers = DEPTH * (matrices / tp + 2 * WIDTH + 4 * WIDTH)
    tower = LLAVA.towers[0]
    around = STEM + tower.stem_values + PROJECTOR + 2 * HIDDEN + tower.projector_values
    assert run.value("encoders/weights") == 2 * (layers + around)
    plain = step((), tp=tp).memory_terms()
    for state, size in {"weights": 2, "gradients": 4, "optimizer": 12}.items():
        more = run.memory_terms()[f"{state}/ends"] - plain[f"{state}/ends"]
        assert more == size * (layers + around)


@pytest.mark.parametrize(
    ("freeze", "width"),
    [("vision,projector", 0), ("vision", WIDTH + 2 * HIDDEN), ("projector", None), (None, None)],
)
def test_a_frozen_encoder_keeps_nothing(freeze: str | None, width: int | None) -> None:
    """A projector keeps its inputs, and what its first product gave, for the function between; each of 2 bytes."""
    kept = step(freeze=freeze).value("encoders/activations")
    if width is not None:
        assert kept == 2 * 2 * TOKENS * width
    layer = 2 * 2 * POSITIONS * (2 * WIDTH + 2 * WIDTH + 4 * WIDTH + 2 * INNER)
    assert width is not None or kept > DEPTH * layer


def test_an_encoder_that_does_not_divide_is_whole_on_every_device() -> None:
    """CLIP has 16 heads: over 32 devices it runs as on one, without collectives of its own."""
    form = structure_of(LLAVA, H100, sf.Plan(tp=32), (), step(tp=2).images)
    (encoder,) = form.encoders
    assert not encoder.split
    passes = Encoders(form)
    found = terms(passes.forward()) | terms(passes.backward())
    for leaf in found.values():
        assert "tp" not in {symbol.name for symbol in leaf.time.free_symbols}  # type: ignore[union-attr]
    alone = structure_of(LLAVA, H100, sf.Plan(), (), step().images)
    one = {SYMBOLS["tp"].symbol: sympy.S.One}
    assert encoder_parameters(encoder) == encoder_parameters(alone.encoders[0]).xreplace(one).doit()
    own, whole = (each["vision/layer/attention/qkv/forward"].time for each in (terms(Encoders(alone).forward()), found))  # type: ignore[union-attr]
    assert own.xreplace(one) == whole


# --- laws


def test_more_trained_is_more_time_and_memory() -> None:
    plan = {"tp": 2, "pp": 2}
    runs = [step(**plan), step(**plan, freeze="vision,projector"), step((), **plan, freeze="vision,projector")]
    for before, after in itertools.pairwise(runs):
        assert before.value("time") > after.value("time")
        assert before.value("memory") > after.value("memory")
    assert all(0 < run.value("mfu_executed") <= 1 for run in runs)


def test_a_schedule_that_splits_gradients_passes_the_encoder() -> None:
    plan = {"pp": 2, "schedule": "zero-bubble", "freeze": "vision"}
    assert step(**plan).value("time") > step((), **plan).value("time")


def test_images_of_several_sizes_are_passed_one_after_another() -> None:
    """The same operations, of which each has its own rows: four times as many pixels are four times as many patches."""
    model = sf.Model.load("qwen2.5-vl-7b")
    images = parse_media(["1x560x560", "3x280x280"])
    encoders = Encoders(structure_of(model, H100, sf.Plan(freeze="vision"), (), images))
    found = terms(encoders.forward())
    large, small = (found[f"vision/{place}/layer/encoder/mlp/up/forward"].demand.flops for place in (1, 2))  # type: ignore[union-attr]
    assert 3 * large == 4 * small
    assert len(found) == 2 * len(terms(Encoders(structure_of(model, H100, sf.Plan(), (), images[:1])).forward()))


# --- answers and refusals


def test_json_has_the_encoder_in_time_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", "llava-1.5-7b", "-s", "h100-sxm", "--tp", "8", "--zero", "1", "--freeze", "vision"]
    argv += ["--batch", "8", "--sequence", "2048", "--images", "2x336x336"]
    assert main([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    images = found["images"]
    assert (images["part"], images["tokens"], images["split"]) == ("vision", 2 * TOKENS, True)
    run = step(tp=8, zero=1, freeze="vision")
    assert found["time_s"] == run.value("time")
    assert found["memory_bytes"]["total"] == run.value("memory")
    assert images["encode_s"] + images["gradients_s"] == pytest.approx(seconds(run, "vision/") / 8, rel=1e-12)
    assert images["sizes"][0]["count"] == 2
    assert main(argv) == 0
    assert "1152 tokens of each sequence" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "images", "plan", "text"),
    [
        ("llama-2-7b", ["1x336x336"], {}, "images: llama-2-7b has no encoder of images"),
        (
            "llava-1.5-7b",
            ["4x336x336"],
            {},
            "images: found 2304 tokens of them, expected at most the 2048 of a sequence",
        ),
        ("llava-1.5-7b", ["1x336x336"], {"cp": 2}, "images: encoders over parts of sequences"),
        ("llava-1.5-7b", ["1x336x336"], {"optimizer": "muon"}, "optimizer: found muon"),
        ("llava-1.5-7b", ["1x336"], {}, "images: found '1x336', expected COUNTxHEIGHTxWIDTH"),
        ("llava-1.5-7b", ["1x336x336"], {"freeze": "language,vision,projector"}, "leaves nothing"),
    ],
)
def test_images_that_make_no_step_are_refused(model: str, images: list[str], plan: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        sf.training(model, H100, sf.Plan(**plan), batch=2, sequence=2048, images=images)


def test_sweeps_refuse_images_and_other_questions_keep_them() -> None:
    run = step(("1x336x336",), freeze="language")
    with pytest.raises(InputError, match="images: a sweep passes no encoders"):
        run.sweep(tp=[1, 2])
    assert run.bind(tp=2).structure.encoders == run.structure.encoders

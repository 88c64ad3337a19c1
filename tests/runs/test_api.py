"""The questions in Python take what is loaded, or names and paths to load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL, SYSTEM = "llama-2-7b", "h100-sxm"
ASKED: dict[str, Callable[[Any, Any], Any]] = {
    "training": lambda model, system: sf.training(model, system, batch=1, sequence=128),
    "inference": lambda model, system: sf.inference(model, system, batch=1, prompt=128, generate=2),
    "serving": lambda model, system: sf.serving(model, system, prompt=128, generate=2),
}


@pytest.mark.parametrize("question", ASKED)
def test_names_are_loaded(question: str) -> None:
    ask = ASKED[question]
    named, loaded = (
        getattr(found, "run", found)
        for found in (ask(MODEL, SYSTEM), ask(sf.Model.load(MODEL), sf.System.load(SYSTEM)))
    )
    assert (named.model, named.system) == (loaded.model, loaded.system)


def test_paths_are_loaded(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'base = "{SYSTEM}"\n[memory_bandwidth]\nvalue = 1e12\nsource = "mine"\n', encoding="utf-8")
    run = ASKED["training"](MODEL, file)
    assert run.bound["memory_bandwidth"][0] == 1e12


def test_a_draft_is_loaded() -> None:
    more = {"prompt": 128, "generate": 2, "acceptance": 0.7, "draft_length": 3}
    named = sf.serving("llama-2-70b", SYSTEM, sf.Plan(tp=4), draft=MODEL, **more)
    assert named.draft is not None
    assert named.draft.model == sf.Model.load(MODEL)


@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("lama-2-7b", SYSTEM), "did you mean llama-2-7b"),
        ((MODEL, "h100-sxn"), "did you mean h100-sxm"),
        ((7, SYSTEM), "model: found 7, expected a Model, a name of the catalogue or a path"),
        ((MODEL, None), "system: found None, expected a System, a name of the catalogue or a path"),
    ],
)
def test_what_is_neither_is_one_clear_line(question: str, arguments: tuple[Any, Any], line: str) -> None:
    with pytest.raises(sf.InputError, match=r".") as told:
        ASKED[question](*arguments)
    assert line in str(told.value)
    assert "\n" not in str(told.value)

"""What a plan freezes of a model: its parts, checked, as classes of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .freezing import CLASSES, PARTS, language_classes
from .rule import Rule, refuse

if TYPE_CHECKING:
    from ..models.model import Model
    from .encoders import EncoderPart

FREEZE_RULES = (
    Rule(
        "frozen_parts_are_of_the_model",
        "known == 1",
        "freeze: found {part}, but {model} has no such part, expected some of {parts}",
        ("known", "trained"),
    ),
    Rule(
        "something_is_trained",
        "trained == 1",
        "freeze: found {freeze}, which leaves nothing of {model} to train, expected less{passed}",
        ("known", "trained"),
    ),
)
"""What the frozen parts of a plan must satisfy with a model."""
ENCODER = "; its encoders run where there are images or sounds for them"


def frozen_classes(freeze: str | None, model: Model, encoders: tuple[EncoderPart, ...]) -> tuple[str, ...]:
    """The classes of parameters that parts of a plan freeze, of those that a step passes.

    Args:
        freeze: names of parts, with commas between.
        model: has them.
        encoders: of images and sound that the step passes; others may be named, too.

    Raises:
        BrokenRuleError: the model has no such part, or nothing is left to train.
    """
    if not freeze:
        return ()
    language = language_classes(model.architecture, model.sizes.get("num_multi_token_layers", 0))
    passed = language | {name for each in encoders for name in (each.part, "projector")}
    there = passed | {name for tower in model.towers for name in (tower.part, "projector")}
    parts = freeze.split(",")
    frozen = {each for part in parts for each in PARTS[part]} & passed
    unknown = [part for part in parts if not there & {*PARTS[part]}]
    words = {
        "part": ", ".join(unknown),
        "parts": ", ".join(part for part, classes in PARTS.items() if there & {*classes}),
        "passed": ENCODER if there - passed else "",
        "freeze": freeze,
        "model": model.name,
    }
    refuse(FREEZE_RULES, words | {"known": int(not unknown), "trained": int(frozen != passed)})
    return tuple(each for each in CLASSES if each in frozen)

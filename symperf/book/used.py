"""Which formulas a computation uses: recorded while its closed forms are built, and kept on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.artefacts import load_or_make

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..formulas.language.formula import Formula
    from ..infer.structure import InferenceStructure
    from ..plans.structure import Structure

Cited = list[tuple[str, str]]
"""Names of formulas, each with the key of its source."""


def used_formulas(build: Callable[[], object]) -> list[Formula]:
    """The formulas that are called while `build` runs, by name; those that others are composed of are among them.

    What `build` takes from a cache of this process is not seen, so it must begin with an empty one.

    >>> from ..formulas.kernels.roofline import roofline_time
    >>> [formula.name for formula in used_formulas(lambda: roofline_time(1, 2, 3, 4))]
    ['roofline_time', 'traffic_time', 'work_time']
    """
    from ..formulas.language.formula import record_calls
    from ..formulas.registry import load

    known = load()  # first, as importing a page calls the formulas that others are composed of
    with record_calls() as names:
        build()
    return [known[name] for name in sorted(names)]


def load_or_record_formulas(kind: str, key: str, build: Callable[[], object]) -> Cited:
    """Name and source of the formulas that `build` uses, from the cache folder if they are there; then without SymPy.

    Args:
        kind: of run, such as "training".
        key: canonical text of all that decides which formulas are used: the key of a structure.
        build: builds the closed forms.
    """

    def make() -> Cited:
        return [(formula.name, formula.source) for formula in used_formulas(build)]

    return load_or_make(f"formulas of {kind}", key, make, _to_json, _from_json)


def training_formulas(structure: Structure) -> Cited:
    """Name and source of the formulas of a training step: its time, its memory and its answers."""

    def build() -> None:
        from ..train.build import build as whole
        from ..train.build import step_tree

        step_tree.cache_clear()
        whole(structure)

    return load_or_record_formulas("training", structure.key(), build)


def inference_formulas(structure: InferenceStructure) -> Cited:
    """Name and source of the formulas of an inference: its times, its memory and its answers."""

    def build() -> None:
        from ..infer.build import build as whole
        from ..infer.build import trees

        trees.cache_clear()
        whole(structure)

    return load_or_record_formulas("inference", structure.key(), build)


def _to_json(found: Cited) -> dict[str, Any]:
    return {"formulas": [list(pair) for pair in found]}


def _from_json(data: dict[str, Any]) -> Cited:
    return [(str(name), str(source)) for name, source in data["formulas"]]

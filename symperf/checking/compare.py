"""Ours and theirs: every count of `inspect` that modules have too, side by side."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..runs.inspection import inspect
from .modules import OTHERS, Modules, active_of, classes_of, layer_sizes, layers_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..models.model import Model

MOST_LAYERS = 5
"""Layers that differ and are named one by one."""
ENCODERS = ("vision", "audio")


@dataclass(frozen=True)
class Row:
    """One count.

    Attributes:
        what: is counted.
        ours: by closed forms; None where they have no such thing.
        theirs: of the modules; None where they have no such thing.

    """

    what: str
    ours: int | bool | None
    theirs: int | bool | None

    @property
    def agrees(self) -> bool:
        """Whether both are the same."""
        return self.ours == self.theirs


@dataclass(frozen=True)
class Comparison:
    """All counts of a model.

    Attributes:
        modules: what was built.
        rows: its counts beside ours.
        notes: what is not compared, one line each.

    """

    modules: Modules
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def differing(self) -> tuple[Row, ...]:
        """The counts that are not the same."""
        return tuple(row for row in self.rows if not row.agrees)

    def as_json(self) -> dict[str, Any]:
        """The object under `check` of `inspect --json`."""
        return {
            "class": self.modules.name,
            **self.modules.versions,
            "agrees": not self.differing,
            "rows": [{**asdict(row), "agrees": row.agrees} for row in self.rows],
            "notes": list(self.notes),
        }


def compare(model: Model, modules: Modules) -> Comparison:
    """Hold the counts of a model against those of its modules."""
    answer, theirs = inspect(model), parts_of(modules)
    beside = {part: count for part, count in theirs.items() if part in ENCODERS and "language" in theirs}
    notes = []
    whole = True
    if beside and not model.towers and not modules.encoders:
        whole = False
        told = " and ".join(f"{part} ({count:,} parameters)" for part, count in beside.items())
        notes.append(f"the file describes no encoder of its own: {told} of class defaults is left out")
    rows = [
        *_parts(answer, theirs, whole, bool(beside)),
        *_classes(answer, modules),
        *_experts(model, answer, modules),
    ]
    layers = layers_of(modules, model.sizes["num_layers"])
    if layers is None:
        notes.append(f"layers are not compared: no list of modules has {model.sizes['num_layers']}")
    else:
        rows += _layers(model, answer, layer_sizes(modules, layers))
    if model.architecture.head in ("vocabulary", "transformed"):
        rows.append(Row("head tied to the token table", model.architecture.tied_embeddings, modules.tied))
    rows += _defaults(model, modules)
    return Comparison(modules, tuple(rows), tuple(notes))


def _parts(answer: Mapping[str, Any], theirs: Mapping[str, int], whole: bool, several: bool) -> Iterator[Row]:
    ours = answer["parameters"]
    if whole:
        yield Row("parameters", ours["total"], sum(theirs.values()))
    if several:
        yield Row("parameters, language", ours["language"], theirs.get("language"))
    if whole and several:
        yield from (Row(f"parameters, {part}", ours[part], theirs.get(part)) for part in ENCODERS if ours[part])


def _classes(answer: Mapping[str, Any], modules: Modules) -> Iterator[Row]:
    """Classes that both have; what one names and the other does not is among the others."""
    ours: dict[str, int] = {}
    for row in answer["checkpoint"]["classes"]:
        if row["module_class"] not in ENCODERS:
            ours[row["module_class"]] = ours.get(row["module_class"], 0) + row["parameters"]
    theirs = classes_of(modules)
    both = [name for name in ours if name in theirs and name != OTHERS]
    for name in both:
        yield Row(f"parameters, {name}".replace("_", " "), ours[name], theirs[name])
    rest = (sum(count for name, count in each.items() if name not in both) for each in (ours, theirs))
    yield Row("parameters, others", *rest)


def _experts(model: Model, answer: Mapping[str, Any], modules: Modules) -> Iterator[Row]:
    sizes, found = model.sizes, modules.experts or (None, None)
    if "num_experts" in sizes or modules.experts:
        yield Row("experts of a layer", sizes.get("num_experts"), found[0])
        yield Row("experts that a token passes", sizes.get("num_experts_per_token"), found[1])
        yield Row("parameters, active per token", answer["parameters"]["active_per_token"], active_of(modules))


def _defaults(model: Model, modules: Modules) -> Iterator[Row]:
    """Class defaults that decided a count; what a class makes of other keys only its modules show."""
    for key, value in model.defaults:
        theirs = modules.settings.get(key)
        if isinstance(value, int) and isinstance(theirs, int):
            yield Row(f"class default, {key}", value, theirs)


def _layers(model: Model, answer: Mapping[str, Any], theirs: list[int]) -> Iterator[Row]:
    sizes = answer["parameters_per_layer"]
    kinds = [str(kind) for kind in model.architecture.kinds]
    ours = list(chain.from_iterable([sizes[kinds[place]]] * count for place, count in model.layers))
    differing = [place for place, each in enumerate(ours) if each != theirs[place]]
    for place in differing[:MOST_LAYERS]:
        yield Row(f"parameters, layer {place}", ours[place], theirs[place])
    if len(differing) > MOST_LAYERS:
        yield Row("layers of the same size", len(ours) - len(differing), len(ours))
    if not differing:
        yield Row("parameters, all layers one by one", sum(ours), sum(theirs))

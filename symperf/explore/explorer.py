"""An explorer of models on systems: what is asked, checked, and the page that answers it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..common.numbers import plain_value
from .data import page_data
from .inference import inference_kind
from .page import page
from .training import VARIED, count_structures, training_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.model import Model
    from ..plans.plan import Plan
    from ..systems.system import System

KINDS = ("train", "infer")
LONGEST = 3_000_000
"""Bytes of a page: more opens slowly."""


@dataclass(frozen=True)
class Explorer:
    """What a page is made of.

    Attributes:
        models: to choose from.
        systems: to choose from.
        plan: where it starts.
        kinds: of runs, some of `KINDS`.
        train: batch and sequence at first.
        infer: sequences, prompt and generated tokens at first.
        varied: values that a page offers of fields with forms of their own.
        options: of inference: stack and format of the cache.
        book: address of a folder with the pages of the book; "" where formulas lead nowhere.
    """

    models: Sequence[Model]
    systems: Sequence[System]
    plan: Plan
    kinds: tuple[str, ...] = KINDS
    train: tuple[int, int] = (64, 4096)
    infer: tuple[int, int, int] = (8, 1024, 256)
    varied: Mapping[str, Sequence[Any]] = field(default_factory=lambda: VARIED)
    options: Mapping[str, Any] = field(default_factory=dict)
    book: str = ""

    def data(self) -> dict[str, Any]:
        """What the page knows.

        Raises:
            InputError: a start that cannot be.
        """
        _check_names("model", [model.name for model in self.models])
        _check_names("system", [system.name for system in self.systems])
        found = []
        if "train" in self.kinds:
            found.append(training_kind(self.models, self.systems, self.plan, self.train, self.varied))
        if "infer" in self.kinds:
            found.append(inference_kind(self.models, self.systems, self.plan, self.infer, self.options))
        return page_data(found, self.models, self.systems, parse_book(self.book))

    def structures(self) -> int:
        """How many structures of a training step the choices reach, each of which is compiled."""
        return count_structures(self.models, self.systems, self.plan, self.varied) if "train" in self.kinds else 0

    def html(self, data: Mapping[str, Any] | None = None) -> str:
        """The page.

        Args:
            data: what it knows, where that is at hand.

        Raises:
            InputError: a start that cannot be, or a page that would be too large to open well.
        """
        text = page(self.data() if data is None else data)
        if (size := len(text.encode())) > LONGEST:
            raise InputError(
                f"explore: the page would have {size / 1e6:.1f} MB, expected at most {LONGEST / 1e6:g} MB: fewer "
                "models or systems, or fewer values of --vary"
            )
        return text


def parse_book(text: str) -> str:
    """The address of the folder of the book's pages, ending in a slash; a page can lead nowhere else.

    Raises:
        InputError: an address that is no http, https or relative one.

    >>> parse_book("https://example.org/book"), parse_book("")
    ('https://example.org/book/', '')
    """
    scheme, colon, _ = text.partition(":")
    if colon and scheme.lower() not in ("http", "https"):
        raise InputError(f"--book: found {quote(text)}, expected an address of http or https, or a relative folder")
    return text if not text or text.endswith("/") else f"{text}/"


def parse_varied(settings: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """The values of fields that a page offers; a field that is named offers those alone.

    Raises:
        InputError: a field that has no forms to choose from, with the nearest.

    >>> parse_varied(["zero=0,1", "schedule=1f1b"])["zero"]
    (0, 1)
    """
    found: dict[str, tuple[Any, ...]] = {name: tuple(values) for name, values in VARIED.items()}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if name not in VARIED or not equals or not text.strip():
            raise InputError(
                f"--vary: found {quote(setting)}, expected NAME=VALUE,... of {', '.join(VARIED)}{nearest(name, VARIED)}"
            )
        values = tuple(_value(name, each.strip()) for each in text.split(","))
        for value in values:
            if value not in VARIED[name]:
                known = ", ".join(_shown(each) for each in VARIED[name])
                raise InputError(f"--vary {name}: found {quote(_shown(value))}, expected some of {known}")
        found[name] = tuple(dict.fromkeys(values))
    return found


def _value(name: str, text: str) -> Any:
    if isinstance(VARIED[name][0], bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    return text if name != "zero" else plain_value(text)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_names(what: str, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(f"explore: the {what} {quote(name)} is named twice")

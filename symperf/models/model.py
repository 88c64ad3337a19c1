"""The `Model`: an architecture and its sizes, read from a Hugging Face `config.json` or from the catalogue."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..common.frozen import Frozen
from .catalogue import CATALOGUE, fold_name
from .config_files import find_config
from .configs import Architecture
from .families import parse
from .segments import segments
from .stored_modules import with_classes

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from .quantization import Quantization
    from .towers import Tower

__all__ = ["Architecture", "Model", "catalogue_names", "resolve"]


@dataclass(frozen=True, repr=False)
class Model:
    """A model: its structure and its sizes.

    Attributes:
        name: Its name in the catalogue, or the name of its file or folder.
        family: The `model_type` of its config.
        source: Its file, or where the catalogue has it from; for messages.
        architecture: The structural choices, which decide the form of the cost.
        sizes: `hidden_size`, `num_layers`, `num_attention_heads`, `num_key_value_heads`, `head_dim`,
            `intermediate_size`, `vocab_size` and `position_rows` (rows of a learned position table), as 0 where there
            is no such thing; and those of other parts that it has, such as `num_experts` or `kv_lora_rank`. Where
            layers are of several kinds, the count of each (`LayerKind.count`), which add up to `num_layers`.
        layers: The layers in order, as runs: the index of a kind in `architecture.kinds`, and how many of it follow one
            another; an encoder comes before a decoder.
        context: The longest sequence in tokens that the config is made for, if it says.
        sliding_window: The width in tokens of windowed attention in some or all layers, if there is any.
        quantization: How the checkpoint stores its weights, if not in 16 bits.
        warnings: What the config says that the cost does not carry, one line each.
        towers: The encoders of images or sound beside the language model, which the other fields are of.
        defaults: Keys that the config leaves out, and what its class has for them, where that decides a count.

    """

    name: str
    family: str
    source: str
    architecture: Architecture
    sizes: Mapping[str, int]
    layers: tuple[tuple[int, int], ...]
    context: int | None
    sliding_window: int | None
    warnings: tuple[str, ...]
    quantization: Quantization | None = None
    towers: tuple[Tower, ...] = ()
    defaults: tuple[tuple[str, object], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", Frozen(self.sizes))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        return f"<Model {self.name} ({self.family}): {sizes}>"

    @property
    def image_positions(self) -> int:
        """Positions of an image in an encoder of images: its patches, and one for its class where there is one."""
        return self.sizes["num_patches"] + self.architecture.class_token

    @property
    def uniform_dense(self) -> bool:
        """Whether every layer is a decoder's attention and MLP of one size; windows do not matter here."""
        return self.architecture.uniform_dense

    @cached_property
    def segments(self) -> tuple[tuple[str, ...], ...]:
        """Kinds of layers that come one after another in a decoder, each by its count, those that interleave together.

        Nothing where stages of a pipeline cannot differ in what they hold: a single such group, or two stacks.
        """
        found = segments(self.layers) if self.architecture.stacks == 1 else ()
        kinds = self.architecture.kinds
        return tuple(tuple(kinds[at].count for at in group) for group in found) if len(found) > 1 else ()

    @classmethod
    def load(cls, source: str | os.PathLike[str], ignore_keys: Iterable[str] = ()) -> Model:
        """Read a model.

        Args:
            source: A name of the catalogue (`llama-2-7b`, in any case, an alias such as `GPT-175B`, or an id of the
                hub such as `meta-llama/Llama-2-7b-hf`), a JSON file in the form of a Hugging Face `config.json`,
                or a folder that holds a `config.json`. A catalogue name comes before a file of the same name:
                write `./gpt2` for the folder.
            ignore_keys: Keys of the file that are read as if they were not there, wherever in it they stand.

        Raises:
            InputError: There is no such name or file, it cannot be read, or it does not describe a supported model.

        >>> Model.load("gpt3-175b").sizes["hidden_size"]
        12288

        """
        found = find_config(source)
        return make_model(found.name, found.source, found.data, found.where, tuple(ignore_keys))


def catalogue_names() -> list[str]:
    """The names of all models of the catalogue, sorted."""
    return CATALOGUE.names()


def resolve(name: str) -> str:
    """The catalogue name that a name, an alias or an id of the hub stands for, in any case.

    Raises:
        InputError: The catalogue has no such model; the line lists the nearest names.

    >>> resolve("GPT-175B")
    'gpt3-175b'

    """
    known = CATALOGUE.find(name)
    if known is None:
        near = nearest(fold_name(name)[:60], CATALOGUE.aliases)
        raise InputError(f"unknown model {quote(name)}, expected a catalogue name{near}")
    return known


def make_model(name: str, source: str, data: Mapping[str, Any], where: str, ignore_keys: tuple[str, ...] = ()) -> Model:
    """A model from the object of its config."""
    for key in ignore_keys:
        if key not in (every := keys_of(data)):
            raise InputError(f"{where}: ignore_key: there is no key {quote(key)} in the file{nearest(key[:60], every)}")
    parsed = parse(without_keys(data, frozenset(ignore_keys)), where)
    ignored = tuple(f"the key {quote(key)} is ignored, as asked" for key in dict.fromkeys(ignore_keys))
    model = Model(
        name,
        parsed.family,
        source,
        parsed.architecture,
        parsed.sizes,
        parsed.layers,
        parsed.context,
        parsed.sliding_window,
        (*parsed.warnings, *ignored),
        parsed.quantization,
        parsed.towers,
        parsed.defaults,
    )
    return with_classes(model)


def encoder_of(model: Model, tower: Tower) -> Model:
    """The layers of a tower as a model of their own, whose formulas are bound to its sizes."""
    name, found = f"{model.name}, {tower.part} encoder", tower.encoder
    return Model(
        name,
        found.family,
        model.source,
        found.architecture,
        found.sizes,
        found.layers,
        None,
        found.sliding_window,
        found.warnings,
    )


def keys_of(data: Any) -> list[str]:
    """The keys of an object and of those within it."""
    inner = [key for value in data.values() for key in keys_of(value)] if isinstance(data, dict) else []
    return sorted({*data, *inner}) if isinstance(data, dict) else []


def without_keys(data: Any, keys: frozenset[str]) -> Any:
    """An object without some keys, and those within it."""
    if not isinstance(data, dict) or not keys:
        return data
    return {key: without_keys(value, keys) for key, value in data.items() if key not in keys}

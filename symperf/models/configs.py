"""How a Hugging Face config is read: checked access to its keys, and the rules that family tables are made of.

The tables themselves are in `symperf.models.families`. No text from a config is ever evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..common.errors import InputError, nearest, quote
from .architecture import Architecture, LayerKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .quantization import Quantization
    from .towers import Tower

__all__ = ["Architecture", "LayerKind"]

LARGEST = 10**12
"""Sizes above this are refused: no tensor dimension, and no layer count, comes near it."""

MOST_LAYERS = 100_000
"""Layers that are told apart one by one; no model comes near it."""

Sizes = dict[str, int]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Parsed:
    """What a config says: the fields of `symperf.models.model.Model` that do not depend on where it was found."""

    family: str
    architecture: Architecture
    sizes: Sizes
    layers: tuple[tuple[int, int], ...]
    context: int | None
    sliding_window: int | None
    warnings: tuple[str, ...]
    quantization: Quantization | None = None
    towers: tuple[Tower, ...] = ()
    defaults: tuple[tuple[str, object], ...] = ()


class Config:
    """A config read key by key: checks every value, remembers which keys are used and what stands for absent ones."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where
        self.used: set[str] = set()
        self.taken: dict[str, object] = {}
        self.sections: dict[str, Config] = {}

    def fail(self, key: str, expected: str) -> NoReturn:
        """Raise the `InputError` for a key whose value is not what was expected."""
        raise InputError(f"{self.where}: {key} is {quote(self.data[key])}, expected {expected}")

    def integer(self, key: str, *, smallest: int = 1) -> int:
        """The value of a key that has to hold an integer in [`smallest`, `LARGEST`]."""
        self.used.add(key)
        value = self.data[key]
        if type(value) is not int or value < smallest:
            self.fail(key, "a positive integer" if smallest == 1 else f"an integer, {smallest} or more")
        if value > LARGEST:
            self.fail(key, f"at most {LARGEST:.0e}")
        return int(value)

    def take(self, key: str, value: Value) -> Value:
        """The value that the class has for a key, which is remembered where the file leaves the key out.

        A size of 0 is a part that is not there.
        """
        if key not in self.data and (value or isinstance(value, bool)):
            self.taken[key] = value
        return value

    def forget(self, *keys: str) -> None:
        """Take back what has been remembered of keys that the file leaves out."""
        for key in keys:
            self.taken.pop(key, None)

    def integer_or(self, key: str, absent: int, *, smallest: int = 1) -> int:
        """The value of a key that has to hold an integer, or the default of its class where it is absent or null."""
        return self.integer(key, smallest=smallest) if self.holds(key) else self.take(key, absent)

    def flag(self, key: str, absent: bool) -> bool:
        """The value of a key that has to hold true or false."""
        self.used.add(key)
        value = self.data[key] if key in self.data else self.take(key, absent)
        if not isinstance(value, bool):
            self.fail(key, "true or false")
        return value

    def probability(self, key: str, absent: float) -> float:
        """The value of a key that has to hold a number from 0 to 1; null is 0."""
        self.used.add(key)
        value = self.data.get(key, absent)
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.fail(key, "a probability from 0 to 1")
        return float(value)

    def text(self, key: str, absent: str, choices: tuple[str, ...]) -> str:
        """The value of a key that has to hold one of a few words."""
        self.used.add(key)
        value = self.data[key] if key in self.data else self.take(key, absent)
        if value not in choices:
            self.fail(key, " or ".join(choices))
        return str(value)

    def holds(self, key: str) -> bool:
        """Whether the key is there and not null."""
        self.used.add(key)
        return self.data.get(key) is not None

    def numbers(self, key: str, *, largest: int) -> list[int] | None:
        """The list of integers in [0, `largest`] under a key; None where the key is absent or null."""
        if not self.holds(key):
            return None
        value = self.data[key]
        good = isinstance(value, list) and all(type(item) is int and 0 <= item <= largest for item in value)
        if not good:
            self.fail(key, f"a list of integers from 0 to {largest}")
        return list(value)

    def words(self, key: str, length: int) -> list[str] | None:
        """The list of as many words as there are layers under a key; None where the key is absent or null."""
        if not self.holds(key):
            return None
        value = self.data[key]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, "a list of words")
        if len(value) != length:
            raise InputError(f"{self.where}: {key} has {len(value)} entries, expected one for each of {length} layers")
        return list(value)

    def section(self, key: str) -> Config:
        """The object under a key; an empty one where the key is absent or null."""
        if self.holds(key) and not isinstance(self.data[key], dict):
            self.fail(key, "an object")
        if key not in self.sections:
            self.sections[key] = Config(self.data.get(key) or {}, f"{self.where}: {key}")
        return self.sections[key]

    def elsewhere(self, keys: Iterable[str]) -> str:
        """The end of an error line about a missing key that stands in an object of this one; or nothing."""
        for key, value in self.data.items():
            if isinstance(value, dict) and (found := next((name for name in keys if name in value), None)):
                return f"; {key} has {found}: is model_type that of the whole file?"
        return ""

    def defaults(self) -> dict[str, object]:
        """What classes have for keys that the file leaves out, those of objects in it after their key and a dot."""
        inner = {key: section.defaults() for key, section in self.sections.items()}
        return self.taken | {f"{key}.{name}": value for key, each in inner.items() for name, value in each.items()}


# The entries of the tables ------------------------------------------------------------------------------

Rule = Callable[[Config, Sizes], int]
"""A size that follows from the config and from the sizes found before it."""

Window = Callable[[Config], int | None]
"""The attention window in tokens that a config speaks of."""

Runs = list[tuple[LayerKind, int]]
"""Layers in order: of which kind, and how many of it follow one another."""

Kinds = Callable[[Config, Sizes, bool], Runs]
"""The layers in order, from config, sizes, and whether there is a window."""


def heads(_: Config, sizes: Sizes) -> int:
    """As many as there are attention heads."""
    return sizes["num_attention_heads"]


def hidden_by_heads(config: Config, sizes: Sizes) -> int:
    """The hidden size divided by the heads."""
    width, remainder = divmod(sizes["hidden_size"], sizes["num_attention_heads"])
    if remainder:
        raise InputError(
            f"{config.where}: the hidden size {sizes['hidden_size']} is not a multiple of the "
            f"{sizes['num_attention_heads']} attention heads, and no head_dim is given"
        )
    return width


def four_hidden(_: Config, sizes: Sizes) -> int:
    """Four times the hidden size."""
    return 4 * sizes["hidden_size"]


DERIVED = (heads, four_hidden)
"""What classes make of other keys where one is absent."""


def require(*keys: str) -> Rule:
    """A size that the file has to give under one of the keys, the first one by preference."""
    return optional(*keys, absent=None)


def optional(*keys: str, absent: int | Rule | None, null: int | Rule | None = None, add: int = 0) -> Rule:
    """A size that may be left out.

    Args:
        keys: Names of the same size; a file may give several if they agree.
        absent: The value where no key is there; None where the size is required.
        null: The value where the key holds null; None where null is refused.
        add: Added to a value from the file (OPT has two more position rows than positions).

    """

    def rule(config: Config, sizes: Sizes) -> int:
        present = [key for key in keys if config.holds(key)]
        if not present:
            nulls = [key for key in keys if key in config.data]
            if nulls and null is None:
                config.fail(nulls[0], "a positive integer")
            fallback = null if nulls else absent
            if fallback is None:
                also = f" (or {', '.join(keys[1:])})" if keys[1:] else ""
                raise InputError(
                    f"{config.where}: {keys[0]}{also} is missing, expected a positive integer{config.elsewhere(keys)}"
                )
            value = fallback(config, sizes) if callable(fallback) else fallback
            known = not nulls and (not callable(fallback) or fallback in DERIVED)
            return config.take(keys[0], value) if known else value
        value = config.integer(present[0])
        for key in present[1:]:
            if config.integer(key) != value:
                config.fail(key, f"{value} as {present[0]} says")
        return value + add

    return rule


def flag(key: str, absent: bool, *, yes: object = True, no: object = False) -> Callable[[Config], object]:
    """A structural choice that a boolean key decides."""
    return lambda config: yes if config.flag(key, absent) else no


def dropping(*keys: str, absent: float = 0.0) -> Callable[[Config], bool]:
    """Whether any of the dropout probabilities is above zero; `absent` is the class default of one left out."""

    def rule(config: Config) -> bool:
        values = [config.probability(key, absent) for key in keys]
        return max(values) > 0

    return rule


ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh", "gelu_accurate"), "gelu"),
    **dict.fromkeys(("quick_gelu", "gelu_10", "gelu_python_tanh"), "gelu"),
    # SiTU bounds both factors of a gated SiLU: its gradient reads the same tensors.
    **dict.fromkeys(("silu", "swish", "swiglu", "swigluoai", "situ"), "silu"),
    **dict.fromkeys(("relu2", "relu_squared", "sqrelu"), "relu2"),
    "relu": "relu",
    "xielu": "xielu",
}
"""Names of activation functions in files -> the choice of an architecture."""

ACTIVATION_KEYS = ("hidden_activation", "hidden_act", "activation_function", "activation", "mlp_hidden_act")


def activating(absent: str) -> Callable[[Config], str]:
    """The activation function of the MLP, under any of its keys; `absent` is the class default.

    Gemma's `hidden_activation` is the one that its classes read where a file has `hidden_act` beside it.
    """

    def rule(config: Config) -> str:
        for key in ACTIVATION_KEYS:
            value = config.data.get(key)
            if isinstance(value, str):
                config.used.add(key)
                if value not in ACTIVATIONS:
                    hint = nearest(value[:60], list(ACTIVATIONS))
                    config.fail(key, f"one of {', '.join(ACTIVATIONS)}{hint}")
                return ACTIVATIONS[value]
        return absent

    return rule


def tie(absent: bool) -> Callable[[Config], object]:
    """Whether the embeddings are tied; many files leave the key out and mean their class default."""
    return flag("tie_word_embeddings", absent)


def window(absent: int | None, *, key: str = "sliding_window", switch: str | None = None) -> Window:
    """The attention window in tokens, if any: `switch` names a key that turns it on (Qwen)."""

    def rule(config: Config) -> int | None:
        on = config.flag(switch, False) if switch else True
        size = config.integer(key) if config.holds(key) else None
        if on and absent is not None and key not in config.data:
            size = config.take(key, absent)
        if size is None and switch:
            config.forget(switch)  # there is nothing to switch on
        return size if on else None

    return rule


@dataclass(frozen=True)
class Family:
    """How the configs of one `model_type` are read.

    Attributes:
        sizes: Our name of a size -> its rule, in the order in which rules may use earlier sizes.
        layers: Field of `Architecture` -> its value, or the function that finds it in the config.
        window: The attention window in tokens, of layers that have one.
        kinds: The kinds of layers and how many there are of each.
        only: Keys whose other values change the architecture in a way that is not carried.
        absent: Keys of `only` that mean another value where the file leaves them out, and that value.
        traits: `soft_capping`: logits are soft-capped where the keys are absent; `output_soft_capping`: only those of
            the output, under RecurrentGemma's name; `encoder`: there is an encoder.
        harmless: Keys of this family that change neither parameters nor matrix products.
        section: The key whose object describes the language model (multimodal files).
        groups: Groups of experts where the file does not say it, and of how many a token chooses; 0 where it has to.

    """

    sizes: Mapping[str, Rule | int]
    layers: Mapping[str, object]
    window: Window = lambda _: None
    kinds: Kinds | None = None
    only: Mapping[str, object] | None = None
    absent: Mapping[str, object] | None = None
    traits: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    section: str | None = None
    groups: tuple[int, int] = (1, 0)

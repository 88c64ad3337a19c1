"""Which layer of a model is of which kind: the patterns that published configs use, as rules for the family tables."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from ..common.errors import InputError
from .architecture import LayerKind
from .configs import MOST_LAYERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .architecture import FeedForward, Mixer
    from .configs import Config, Kinds, Runs, Sizes

    MixerRule = Callable[[Config, Sizes, bool], list[Mixer] | Mixer]
    FeedForwardRule = Callable[[Config, Sizes], list[FeedForward] | FeedForward]
    Chosen = Callable[[int, Config, Sizes], bool]

TYPES: dict[str, Mixer] = {
    "full_attention": "attention",
    "attention": "attention",
    "sliding_attention": "local_attention",
    "chunked_attention": "local_attention",
    "linear_attention": "linear_attention",
    "conv": "short_convolution",
    "mamba": "ssm",
    "mamba2": "ssm",
}
"""The words of `layer_types`."""

NO_OWN: Mapping[Mixer, tuple[tuple[str, str], ...]] = {}


def layer_range(config: Config, sizes: Sizes) -> range:
    """The layers, one by one."""
    count = sizes["num_layers"]
    if count > MOST_LAYERS:
        raise InputError(f"{config.where}: there are {count} layers, expected at most {MOST_LAYERS}")
    return range(count)


def constant_mixer(mixer: Mixer) -> MixerRule:
    """Every layer has the same mixer."""
    return lambda _config, _sizes, _windowed: mixer


def dense(_: Config, __: Sizes) -> FeedForward:
    """Every layer has an MLP."""
    return "dense"


def experts(_: Config, __: Sizes) -> FeedForward:
    """Every layer has experts."""
    return "experts"


def nothing(_: Config, __: Sizes) -> FeedForward:
    """A layer is its mixer."""
    return "none"


def windows(slides: Chosen, *, other: Mixer = "local_attention") -> MixerRule:
    """Layers by `layer_types`, or where it is absent by a pattern.

    Args:
        slides: whether a layer has the `other` mixer, by its index, config and sizes.
        other: the mixer of these layers.
    """

    def rule(config: Config, sizes: Sizes, windowed: bool) -> list[Mixer] | Mixer:
        words = config.words("layer_types", sizes["num_layers"])
        if words is not None:
            layer_range(config, sizes)
            unknown = next((word for word in words if word not in TYPES), None)
            if unknown is not None:
                config.fail("layer_types", f"only {', '.join(TYPES)}")
            found = [TYPES[word] for word in words]
            return found if windowed else ["attention" if m == "local_attention" else m for m in found]
        if other == "local_attention" and not windowed:
            return "attention"
        return [other if slides(i, config, sizes) else "attention" for i in layer_range(config, sizes)]

    return rule


def always(_: int, __: Config, ___: Sizes) -> bool:
    """Every layer."""
    return True


def all_but_every(period: int, *, key: str | None = None) -> Chosen:
    """All layers but the last of every period; a key may hold the period."""

    def slides(index: int, config: Config, _: Sizes) -> bool:
        own = config.integer_or(key, period) if key else period
        return (index + 1) % own != 0

    return slides


def from_layer(key: str, absent: int) -> Chosen:
    """Layers from the one on that a key names."""
    return lambda index, config, _: index >= (config.integer_or(key, absent, smallest=0))


def layout(
    mixers: MixerRule = constant_mixer("attention"),  # noqa: B008
    ffns: FeedForwardRule = dense,
    own: Mapping[Mixer, tuple[tuple[str, str], ...]] = NO_OWN,
) -> Kinds:
    """The layers from a rule for mixers and a rule for what follows them.

    Args:
        mixers: of every layer, or of all.
        ffns: what follows each, or all.
        own: sizes that the layers of a mixer have for themselves, where the model has them.
    """

    def kind(mixer: Mixer, ffn: FeedForward, sizes: Sizes) -> LayerKind:
        return LayerKind(mixer, ffn, own=tuple((size, name) for size, name in own.get(mixer, ()) if name in sizes))

    def rule(config: Config, sizes: Sizes, windowed: bool) -> Runs:
        mixer, ffn = mixers(config, sizes, windowed), ffns(config, sizes)
        if isinstance(mixer, str) and isinstance(ffn, str):
            return [(kind(mixer, ffn, sizes), len(layer_range(config, sizes)))]
        return in_runs(
            kind(mixer if isinstance(mixer, str) else mixer[i], ffn if isinstance(ffn, str) else ffn[i], sizes)
            for i in layer_range(config, sizes)
        )

    return rule


def in_runs(kinds: Iterable[LayerKind]) -> Runs:
    """Layers one by one, as runs of equal ones."""
    return [(kind, len(list(same))) for kind, same in itertools.groupby(kinds)]


def with_sizes(kind: LayerKind, given: Mapping[str, int], sizes: Sizes) -> LayerKind:
    """A kind whose layers have some sizes of their own, which are added to those of the model.

    The first value of a size is the model's, each further one has a number: `intermediate_size_2`.

    Args:
        kind: of the layer.
        given: its sizes, by the names that formulas use.
        sizes: of the model, to which numbered ones are added.
    """
    own = dict(kind.own)
    for name, value in given.items():
        number, numbered = 1, name
        while sizes.setdefault(numbered, value) != value:
            number += 1
            numbered = f"{name}_{number}"
        if number > 1:
            own[name] = numbered
    return replace(kind, own=tuple(sorted(own.items())))


def experts_where(chosen: Chosen) -> FeedForwardRule:
    """Experts in the layers that a rule chooses, an MLP in the rest."""

    def rule(config: Config, sizes: Sizes) -> list[FeedForward]:
        return ["experts" if chosen(i, config, sizes) else "dense" for i in layer_range(config, sizes)]

    return rule


def all_or_windowed(config: Config, sizes: Sizes, windowed: bool) -> Runs:
    """One kind of layer: attention, windowed where there is a window."""
    count = len(layer_range(config, sizes))
    return [(LayerKind("local_attention" if windowed else "attention", "dense"), count)]

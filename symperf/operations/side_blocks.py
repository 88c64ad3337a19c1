"""What layers have beside their mixer and MLP (Gemma-3n), step by step, for training and inference alike.

Every device of a tensor-parallel group has these blocks whole; the table of the layers' features alone is dealt. A
layer predicts all its residual streams, computes one, adds a residual of low rank beside attention, and corrects the
streams by what it found and by the features that it alone has of a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..formulas.language.symbols import conv_kernel, hidden_size, layer_input_size, num_update_streams, residual_rank
from ..models import side_counts
from .shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from ..models.architecture import Architecture, LayerKind


@dataclass(frozen=True)
class Product:
    """A linear layer over all tokens."""

    name: str
    inner: Any
    columns: Any


@dataclass(frozen=True)
class Norm:
    """A norm of some features of every token."""

    name: str
    features: Any = hidden_size


@dataclass(frozen=True)
class Stream:
    """An element-wise kernel: features of a token that it reads and writes, and FLOPs of each written."""

    name: str
    read: Any
    written: Any
    work: Any


@dataclass(frozen=True)
class LookUp:
    """Rows of a table."""

    name: str
    features: Any


Step = Product | Norm | Stream | LookUp
ALL_STREAMS = num_update_streams * hidden_size


def _coefficients(name: str, columns: Any) -> list[Step]:
    """The norm of the active stream, its product with the router, and that with the coefficients' weights."""
    return [
        Norm(f"{name}_norm"),
        Product(f"{name}_router", hidden_size, num_update_streams),
        Product(f"{name}_coefficients", num_update_streams, columns),
    ]


def before(architecture: Architecture) -> list[Step]:
    """Predictions of all streams, each a mixture of all."""
    if not architecture.alternating_updates:
        return []
    mixing = Stream("predict", ALL_STREAMS, ALL_STREAMS, 2 * num_update_streams)
    return [*_coefficients("predict", num_update_streams**2), mixing]


def beside(architecture: Architecture) -> list[Step]:
    """The residual of low rank, of the normalised stream that attention reads too."""
    if not architecture.low_rank_residual:
        return []
    return [
        Product("low_rank_down", hidden_size, residual_rank),
        Product("low_rank_up", residual_rank, hidden_size),
        Norm("low_rank_norm"),
        Stream("low_rank_residual", 2 * hidden_size, hidden_size, FLOPS_PER_ELEMENT["residual"]),
    ]


def behind(architecture: Architecture) -> list[Step]:
    """The correction of all streams, and what the layer's features add to all but the first, or to the only one."""
    found: list[Step] = []
    streams = hidden_size
    if architecture.alternating_updates:
        correction = Stream("correct", ALL_STREAMS + hidden_size, ALL_STREAMS, 3)
        found += [*_coefficients("correct", num_update_streams), correction]
        streams = ALL_STREAMS - hidden_size
    if architecture.layer_inputs:
        size = layer_input_size
        found += [
            Product("input_gate", hidden_size, size),
            Stream("input_product", 2 * size, size, FLOPS_PER_ELEMENT["activation"]),
            Product("input_up", size, hidden_size),
            Norm("input_norm"),
            Stream("input_residual", hidden_size + streams, streams, FLOPS_PER_ELEMENT["residual"]),
        ]
    return found


def convolutions(kind: LayerKind, kept: Any = 0) -> list[Step]:
    """The causal convolutions of what the parts of a layer add.

    Args:
        kind: of the layer.
        kept: features of a token's window that a step of generation reads and writes, for each channel.
    """
    if "convolved" not in kind.traits:
        return []
    names = ("mixer_convolution", *(("mlp_convolution",) if kind.ffn != "none" else ()))
    moved = hidden_size * (1 + kept)
    return [Stream(name, moved, moved, 2 * conv_kernel / (1 + kept)) for name in names]


def embedding(architecture: Architecture) -> list[Step]:
    """Rows of the features' table, the projection of the embedding to them and their sum; and further streams."""
    found: list[Step] = []
    if architecture.layer_inputs:
        features = side_counts.features(architecture)
        found += [
            LookUp("lookup", features),
            Product("input_projection", hidden_size, features),
            Norm("input_projection_norm", features),
            Stream("input_sum", 2 * features, features, FLOPS_PER_ELEMENT["residual"]),
        ]
    return found + (_projections("split") if architecture.alternating_updates else [])


def head(architecture: Architecture) -> list[Step]:
    """The mean of the streams, each but the first through its projection."""
    if not architecture.alternating_updates:
        return []
    return [*_projections("join"), Stream("mean", ALL_STREAMS, hidden_size, num_update_streams)]


def _projections(name: str) -> list[Step]:
    """A square projection of each stream but the first, and the norm that gives it the size of the first."""
    further = ALL_STREAMS - hidden_size
    return [Product(name, hidden_size, further), Norm(f"{name}_norm", further)]

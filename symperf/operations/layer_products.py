"""The matrix products of a layer in the order in which PyTorch runs them, one by one.

Kernels here make some products together (queries, keys and values; gate and up). Selective checkpointing by operations
counts them apart: it keeps the results of those of odd number. Grouped products of routed experts are none that it
counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.language import symbols as sym
from ..formulas.language.symbols import hidden_size, tp
from ..models.layer_counts import router_rows

if TYPE_CHECKING:
    from ..models.architecture import Architecture, LayerKind
    from .shapes import Shapes

Products = list[tuple[str, tuple[Any, ...]]]


def products_in_order(architecture: Architecture, kind: LayerKind, shapes: Shapes) -> Products:
    """Products of a layer of plain attention: the operation that has them by its path in it, and their columns."""
    queries, keys = shapes.heads * shapes.head_dim, shapes.key_value_heads * shapes.head_dim
    found: Products = [("attention/qkv", (queries, keys, keys)), ("attention/output", (hidden_size,))]
    ups = 2 if architecture.gated_mlp else 1
    if kind.ffn in ("dense", "dense_experts"):
        found += [("mlp/up", (shapes.inner,) * ups), ("mlp/down", (hidden_size,))]
    if kind.ffn in ("experts", "dense_experts"):
        found.append(("experts/router", (router_rows(architecture),)))
        if architecture.shared_experts:
            found += [
                ("shared/up", (sym.shared_expert_intermediate_size / tp,) * ups),
                ("shared/down", (hidden_size,)),
            ]
    return found


def recomputed_parts(products: Products) -> dict[str, Any]:
    """The part of each operation that products of even number are: what is computed again.

    >>> recomputed_parts([("qkv", (4, 1, 1)), ("output", (4,)), ("up", (8, 8)), ("down", (4,))])
    {'qkv': 0.16666666666666666, 'output': 1.0, 'up': 0.5, 'down': 0.0}
    """
    return {
        name: sum(width for width, odd in columns if not odd) / sum(width for width, _ in columns)
        for name, columns in _numbered(products)
    }


def kept_columns(products: Products) -> list[tuple[str, Any]]:
    """Columns of the results of products of odd number, each with the operation that makes it."""
    return [(name, width) for name, columns in _numbered(products) for width, odd in columns if odd]


def _numbered(products: Products) -> list[tuple[str, list[tuple[Any, bool]]]]:
    """Each operation with the columns of its products, and whether their number is odd."""
    number, found = 0, []
    for name, columns in products:
        found.append((name, [(width, at % 2 == 1) for at, width in enumerate(columns, number + 1)]))
        number += len(columns)
    return found

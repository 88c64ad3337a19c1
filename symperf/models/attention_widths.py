"""Widths of softmax attention by the variations of its kind of layers: of keys, of values, and of what is projected.

The score products, the flash kernel's traffic, the cache and the weights of attention are linear in the widths of a key
and of a value together, so formulas of one width take the mean of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.kernels import attention as att
from ..formulas.language import symbols as sym

if TYPE_CHECKING:
    from .architecture import LayerKind


def value_width(kind: LayerKind) -> Any:
    """Width of a value of one head, as it is projected and cached."""
    return sym.v_head_dim if "own_values" in kind.traits else sym.head_dim


def core_value_width(kind: LayerKind) -> Any:
    """Width of a value in the core: differential attention weighs the values of two heads together."""
    return 2 * value_width(kind) if "differential" in kind.traits else value_width(kind)


def stored_width(kind: LayerKind) -> Any:
    """Mean width of a key and a value as they are projected and cached."""
    return _mean(value_width(kind))


def core_width(kind: LayerKind) -> Any:
    """Mean width of a key and a value in the core."""
    return _mean(core_value_width(kind))


def _mean(values: Any) -> Any:
    return sym.head_dim if values == sym.head_dim else (sym.head_dim + values) / 2


def made_heads(kind: LayerKind, key_value_heads: Any) -> Any:
    """Key-value heads that the layer projects: none where it reads the keys and values of an earlier one."""
    return 0 if "reused_keys" in kind.traits else key_value_heads


def head_norms(kind: LayerKind) -> int:
    """Norms of one head's width: of queries, and of keys where the layer projects them."""
    return 1 if "reused_keys" in kind.traits else 2


def distance_bytes(kind: LayerKind, rows: Any) -> Any:
    """Bytes of the biases by distance of so many heads of tokens, which the core reads; none where there are none."""
    return rows * sym.distance_extent * sym.activation_bytes if "distance_bias" in kind.traits else 0


def projected(kind: LayerKind, heads: Any, key_value_heads: Any) -> Any:
    """Features of the joint projection of queries, keys and values, and of the weights of profiles, without a gate."""
    made = made_heads(kind, key_value_heads)
    if "distance_bias" in kind.traits:
        return heads * (sym.head_dim + sym.distance_profiles) + 2 * made * sym.head_dim
    if value_width(kind) == sym.head_dim:
        return att.query_key_value_width(heads, made, sym.head_dim)
    return heads * sym.head_dim + made * (sym.head_dim + value_width(kind))

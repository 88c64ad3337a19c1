"""A use of a block whose weights several layers share, in an inference (Zamba2).

As vLLM runs it (vllm/model_executor/models/zamba2.py): queries, keys and values read the embedding beside the stream;
adapters are narrow; the projection of the result is whole on every device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.kernels import attention as att
from ..formulas.kernels import elementwise as ew
from ..formulas.language.symbols import activation_bytes, adapter_rank, hidden_size
from ..models.shared_blocks import read_width
from ..operations.shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..operations.schedule import Op
    from .layer import Layer, Mixer


def mixing(layer: Layer, core: Callable[[Mixer], list[Op | None]]) -> list[Op | None]:
    """The embedding beside the stream, their norm, and attention; nothing is added to the stream."""
    mixer = layer.mixer
    block, n = f"{layer.root}/{mixer.folder}", layer.tokens * read_width(layer.kind)
    copied, normed = ew.activation_function_bytes(n, activation_bytes), ew.norm_bytes(n, activation_bytes)
    return [
        layer.kernels.stream(layer.path(f"{block}/join"), copied, n, 0),
        layer.kernels.stream(layer.path(f"{block}/norm"), normed, n, FLOPS_PER_ELEMENT["norm"]),
        *_attention_adapter(layer, mixer),
        *mixer.projections(),
        *core(mixer),
        *mixer.output(),
        layer.reduce(f"{block}/reduce"),
    ]


def _attention_adapter(layer: Layer, mixer: Any) -> list[Op | None]:
    if "adapted_attention" not in layer.kind.traits:
        return []
    columns = att.query_key_value_width(mixer.heads, mixer.units, mixer.value_width)
    return _adapter(layer, f"{layer.root}/{mixer.folder}/adapter", read_width(layer.kind), 3, columns)


def feed_forward(layer: Layer) -> list[Op | None]:
    """A norm, the MLP with its adapter, the projection of its result, and the addition to what is read next."""
    block = f"{layer.root}/mlp"
    columns = 2 * layer.inner if layer.architecture.gated_mlp else layer.inner
    return [
        layer.norm(f"{block}/norm"),
        *_adapter(layer, f"{block}/adapter", hidden_size, 1, columns),
        *layer.mlp(),
        layer.linear(f"{block}/joining", hidden_size, hidden_size),
        layer.added(f"{block}/sum"),
    ]


def _adapter(layer: Layer, name: str, features: Any, count: int, columns: Any) -> list[Op | None]:
    """Products into the rank of `count` adapters and out of it, and the addition."""
    n = layer.tokens * columns
    traffic = ew.residual_bytes(n, activation_bytes)
    return [
        layer.linear(f"{name}/down", features, count * adapter_rank),
        layer.linear(f"{name}/up", adapter_rank, columns),
        layer.kernels.stream(layer.path(f"{name}/sum"), traffic, n, FLOPS_PER_ELEMENT["residual"]),
    ]

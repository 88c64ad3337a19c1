"""Low-rank adapters of requests: beside every adapted linear layer a product into the rank and one out of it.

Requests have one of several adapters, which lie in slots on the device; a batch reads those that its sequences have. As
vLLM lays them out, the layers that are packed into one product share both kernels, the matrix into the rank of a layer
that is split by columns is whole on every device, and so is the one out of it of a layer that is split by rows. Routed
experts have them where they are asked for, each pair of an expert and an adapter being one of a grouped product's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.kernels import adapters as form
from ..formulas.kernels import matmul
from ..formulas.kernels.moe import expected_experts
from ..formulas.language.symbols import lora_adapters, lora_rank
from ..models.own_sizes import of_kind
from ..operations.schedule import Op, terms
from .adapter_slots import PACKED

if TYPE_CHECKING:
    from .kernels import InferenceKernels
    from .layer import Layer


def with_adapters(layer: Layer, steps: list[Op | None]) -> list[Op | None]:
    """The operations of a layer, with those of the adapters behind each product that has some."""
    found: list[Op | None] = []
    for op in steps:
        found.append(op)
        if isinstance(op, Op) and (sizes := adapted_sizes(layer, op)) is not None:
            found += _products(layer, op, *sizes)
    return found


def _products(layer: Layer, op: Op, rows: Any, inner: Any, columns: Any, packed: int) -> list[Op]:
    return products_of_adapters(
        layer.kernels, op.path, (rows, inner, columns), packed, adapters_present(layer.sequences)
    )


def adapters_present(sequences: Any) -> Any:
    """Adapters that some sequences are expected to have."""
    return expected_experts(sequences, 1, lora_adapters)


def products_of_adapters(
    kernels: InferenceKernels, path: str, sizes: tuple[Any, Any, Any], packed: int, groups: Any
) -> list[Op]:
    """Both products of adapters beside a product, in one kernel each.

    Args:
        kernels: that build them.
        path: of the product.
        sizes: rows, input and outputs of it.
        packed: layers that it is.
        groups: matrices of each kind that are read.
    """
    rows, inner, columns = sizes
    ranks = packed * lora_rank
    shrink = form.adapter_shrink_bytes(rows, inner, ranks, groups)
    expand = form.adapter_expand_bytes(rows, ranks, columns, groups)
    work = matmul.matmul_flops(rows, ranks, inner, 1), matmul.matmul_flops(rows, columns, lora_rank, 1)
    return [
        kernels.fused_products(f"{path}_lora_shrink", work[0], shrink, 1),
        kernels.fused_products(f"{path}_lora_expand", work[1], expand, 1),
    ]


def adapted_sizes(layer: Layer, op: Op) -> tuple[Any, Any, Any, int] | None:
    """Rows, input, outputs and packed layers of a product that has adapters; None where it has none."""
    name = "/".join(op.path.split("/")[-2:])
    names = [each for each in PACKED.get(name, ()) if each in layer.structure.adapted]
    if op.shape is None or not names:
        return None
    rows, columns, inner, _ = op.shape
    if name == "shared/up" and layer.architecture.gated_mlp:
        # Gate and up of shared experts are one product here.
        names = [each for each in ("gate_proj", "up_proj") if each in layer.structure.adapted]
        return rows, inner, columns * len(names) / 2, len(names)
    return rows, inner, _outputs(layer, names, PACKED[name], columns), len(names)


def _outputs(layer: Layer, names: list[str], packed: tuple[str, ...], columns: Any) -> Any:
    """Columns of those of the packed layers that have adapters."""
    if len(packed) == 1 or len(names) == len(packed):
        return columns
    if packed != PACKED["attention/qkv"]:
        return columns * len(names) / len(packed)
    mixer = layer.mixer
    keys, values = mixer.units * mixer.key_width, mixer.units * mixer.value_width  # type: ignore[union-attr]
    sizes = {"k_proj": keys, "v_proj": values, "q_proj": columns - keys - values}
    return sum(sizes[name] for name in names)


def layer_adapters(layer: Layer) -> Any:
    """Bytes of the slots of one layer on one device."""
    steps = [*layer.mixing(lambda _: []), *layer.feed_forward()]
    found: Any = layer.experts_adapters
    for leaf in (leaf for step in steps if step is not None for leaf in terms(step).values()):
        if isinstance(leaf, Op) and (sizes := adapted_sizes(layer, leaf)) is not None:
            _, inner, columns, packed = sizes
            found += form.adapter_memory(packed * inner, columns)
    return of_kind(found, layer.kind)

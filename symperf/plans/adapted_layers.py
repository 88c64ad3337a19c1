"""Linear layers of a model that may have adapters: names that people give, and the products that the layers are.

Names are those of checkpoints without "_proj". Products of the head and of routers have no adapters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..models.architecture import Architecture, LayerKind

LAYERS = ("q", "k", "v", "o", "q_a", "q_b", "kv_a", "kv_b", "in", "out", "gate", "up", "down", "experts")
"""Linear layers that may have an adapter: of attention, latent attention, state-space layers, the dense MLP and shared
experts, and all of a routed expert."""
TARGETS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in LAYERS},
    "attention": LAYERS[:8],
    "linear_fc1": ("gate", "up"),
    "mlp": ("gate", "up", "down"),
    "all-linear": LAYERS,
}
"""What a plan may name -> the linear layers that this is, of which a model may lack some: an MLP without a gate has
`up` in Megatron-Core's `linear_fc1`."""
BASE_PRECISIONS = ("nf4", "int8")
"""Formats of 4 and 8 bits in which frozen weights may be stored."""


@dataclass(frozen=True)
class Product:
    """A product of a layer, and the linear layers of checkpoints that it is.

    Attributes:
        layers: packed into it, some of `LAYERS`.
        split: over the tensor-parallel group by "columns", of what every device has of the layer's input "inner", by
            "rows", or "whole" on each.
    """

    layers: tuple[str, ...]
    split: str


def products_of(architecture: Architecture, kind: LayerKind) -> dict[str, Product]:
    """The products of a kind of layer whose adapters are modelled, by the end of their path.

    >>> from symperf.models.model import Model
    >>> model = Model.load("llama-2-7b").architecture
    >>> {name: each.layers for name, each in products_of(model, model.kinds[0]).items()}
    {'attention/qkv': ('q', 'k', 'v'), 'attention/output': ('o',), 'mlp/up': ('gate', 'up'), 'mlp/down': ('down',)}
    """
    if kind.shared:
        return {}
    found: dict[str, Product] = {}
    for each in kind.alone:
        found |= _mixer_products(architecture, each)
    if kind.cross:
        found |= {
            "cross/query": Product(("q",), "columns"),
            "cross/key_value": Product(("k", "v"), "columns"),
            "cross/output": Product(("o",), "rows"),
        }
    up = ("gate", "up") if architecture.gated_mlp else ("up",)
    routed = kind.ffn in ("experts", "dense_experts")
    for name, there in (
        ("mlp", kind.ffn in ("dense", "dense_experts")),
        ("shared", routed and architecture.shared_experts),
    ):
        if there:
            found |= {f"{name}/up": Product(up, "columns"), f"{name}/down": Product(("down",), "rows")}
    if routed:
        found["experts/up"] = Product(("experts",) * len(up), "columns")
        found["experts/down"] = Product(("experts",), "rows")
    return found


def _mixer_products(architecture: Architecture, kind: LayerKind) -> dict[str, Product]:
    output = {"attention/output": Product(("o",), "rows")}
    if kind.mixer == "latent_attention":
        latents = {} if {"indexer", "reused_index"} & set(kind.traits) else {"attention/latent_up": ("kv_b", "inner")}
        names = {"attention/latent_down": ("kv_a", "whole"), **latents}
        if architecture.query_compression:
            names |= {"attention/query_down": ("q_a", "whole"), "attention/query_up": ("q_b", "inner")}
        else:
            names["attention/query"] = ("q", "columns")
        return {name: Product((layer,), split) for name, (layer, split) in names.items()} | output
    if kind.mixer in ("attention", "local_attention"):
        layers: tuple[str, ...] = ("q", "k", "v")
        if "reused_keys" in kind.traits:
            layers = ("q",)
        elif architecture.shared_key_value and kind.mixer == "attention":
            layers = ("q", "k")
        return {"attention/qkv": Product(layers, "columns")} | output
    if kind.mixer in ("ssm", "ssm1"):
        return {"ssm/in": Product(("in",), "columns"), "ssm/output": Product(("out",), "rows")}
    return {}


def adaptable_layers(architecture: Architecture) -> tuple[str, ...]:
    """The linear layers of a model whose adapters are modelled."""
    found = {
        layer
        for kind in architecture.kinds
        for product in products_of(architecture, kind).values()
        for layer in product.layers
    }
    return tuple(layer for layer in LAYERS if layer in found)


def layers_adapted(architecture: Architecture, kind: LayerKind, adapted: tuple[str, ...]) -> set[str]:
    """Of adapted linear layers, those that a kind of layer has."""
    return {layer for each in products_of(architecture, kind).values() for layer in each.layers} & {*adapted}

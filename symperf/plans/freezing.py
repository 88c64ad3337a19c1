"""Parts of a model that a training step leaves as they are: names that people give, and classes of parameters.

A class is what has gradients or has none as a whole; a structure lists those that have none. A table that is the output
projection too (tied embeddings) is a class of its own, `table`, which the names of both of its uses freeze.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..models.architecture import Architecture, LayerKind

LAYERS = ("attention", "mlp", "experts", "router", "layer_norms", "streams")
"""Classes of a layer: its mixer, its MLP, its routed and shared experts, their router, its norms, and what mixes
several residual streams or stands beside mixer and MLP."""
PARTS: dict[str, tuple[str, ...]] = {
    "embedding": ("embedding", "table"),
    "layers": LAYERS,
    "attention": ("attention",),
    "mlp": ("mlp",),
    "experts": ("experts",),
    "router": ("router",),
    "norms": ("layer_norms", "final_norm"),
    "head": ("head", "table"),
    "multi_token": ("multi_token",),
    "language": ("embedding", "table", *LAYERS, "final_norm", "head", "multi_token"),
    "vision": ("vision",),
    "audio": ("audio",),
    "projector": ("projector",),
}
"""Names of parts -> the classes that they are; modules for multi-token prediction are parts of their own."""
CLASSES = (*PARTS["language"], "vision", "audio", "projector")
"""All classes, in the order of a structure."""


def layer_classes(architecture: Architecture, kind: LayerKind) -> tuple[str, ...]:
    """The classes of parameters that a layer of a kind has.

    >>> from symperf.models.model import Model
    >>> model = Model.load("mixtral-8x7b")
    >>> layer_classes(model.architecture, model.architecture.kinds[0])
    ('attention', 'experts', 'router', 'layer_norms')
    """
    experts = kind.ffn in ("experts", "dense_experts")
    has = {
        "attention": kind.mixer != "none" or kind.cross,
        "mlp": kind.ffn in ("dense", "dense_experts"),
        "experts": experts,
        "router": experts,
        "layer_norms": (architecture.block_norms > 0 and architecture.norm_parameters) or architecture.layer_scale,
        "streams": architecture.side_blocks or architecture.hyper_connections or architecture.attention_residuals,
    }
    return tuple(name for name in LAYERS if has[name])


def end_classes(architecture: Architecture) -> tuple[str, ...]:
    """The classes of parameters before and behind the layers of a language model."""
    tied = architecture.tied_embeddings
    tables = architecture.positions in ("learned", "relative", "disentangled") or architecture.token_types
    inputs = architecture.patches or architecture.spectra or architecture.encoder_table
    has = {
        "embedding": not tied or tables or inputs or architecture.embedding_norm or architecture.side_blocks,
        "table": tied,
        "final_norm": (architecture.final_norm and architecture.norm_parameters) or architecture.attention_residuals,
        "head": architecture.head != "none" and (not tied or architecture.head == "transformed"),
    }
    return tuple(name for name, there in has.items() if there)


def language_classes(architecture: Architecture, modules: int = 0) -> set[str]:
    """The classes of parameters of a language model with some modules for multi-token prediction."""
    found = {name for kind in architecture.kinds for name in layer_classes(architecture, kind)}
    return found | {*end_classes(architecture)} | ({"multi_token"} if modules else set())

"""Bytes that a layer keeps under selective checkpointing by operations: its input, and results of some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.language.symbols import hidden_size
from ...formulas.memory import saved_activations as saved
from ...models import attention_widths as widths
from ...operations.layer_products import kept_columns, products_in_order
from ...operations.shapes import Shapes

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure


def kept_results(structure: Structure, kind: LayerKind) -> Any:
    """The layer's input, results of every second product, of the core of attention, and of sums over tensor ranks.

    Results of products with split rows are whole on every rank before they are summed; what is kept of those sums is
    the shard that the rank has. Routers have all columns of the rank's own tokens.
    """
    shapes, architecture = Shapes.of(structure, kind), structure.architecture
    kept = saved.input_kept_bytes(shapes.stream_tokens, hidden_size)
    for name, columns in kept_columns(products_in_order(architecture, kind, shapes)):
        own = name.startswith("experts/")
        kept += saved.input_kept_bytes(shapes.stream_tokens if own else shapes.tokens, columns)
    kept += saved.input_kept_bytes(shapes.tokens, shapes.heads * widths.value_width(kind))
    kept += saved.flash_kept_bytes(shapes.tokens, shapes.heads)
    sums = (kind.mixer != "none") + (kind.ffn != "none")
    return kept + (
        sums * saved.input_kept_bytes(shapes.stream_tokens, hidden_size) if structure.sequence_parallel else 0
    )

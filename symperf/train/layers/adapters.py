"""Sizes of the adapters of a layer on one device, read off the products of its forward pass.

Tensor parallelism is PEFT's (tuners/lora/tp_layer.py): beside a layer that is split by columns the matrix into the rank
is whole on every device and the one out of it split as the layer is; beside one that is split by rows it is the other
way round. With sequence parallelism whole matrices see a device's own part of the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels import trained_adapters as form
from ...formulas.language.named_calls import remember_forms
from ...formulas.language.symbols import lora_rank, tp
from ...formulas.memory import saved_activations as saved
from ...models import attention_widths as widths
from ...models.own_sizes import of_kind
from ...operations.schedule import Op, terms
from ...plans.adapted_layers import products_of
from .softmax_attention import SoftmaxAttention
from .transformer import Decoder

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure


@dataclass(frozen=True)
class Adapted:
    """The adapters of one product of a layer on one device.

    Attributes:
        product: end of its path.
        split: over the tensor-parallel group, as in `adapted_layers.Product`.
        layers: packed into it that have adapters.
        rows: tokens.
        inner: inputs of each.
        columns: outputs of all.
        groups: experts, of which each has adapters; else 1.
        own: part of the rows that whole matrices see.
    """

    product: str
    split: str
    layers: int
    rows: Any
    inner: Any
    columns: Any
    groups: Any
    own: Any

    @property
    def first_rows(self) -> Any:
        """Rows that the matrix into the rank sees."""
        return self.rows * self.own if self.split == "columns" else self.rows

    @property
    def last_rows(self) -> Any:
        """Rows that the matrix out of the rank sees."""
        return self.rows * self.own if self.split == "rows" else self.rows

    @property
    def mean_columns(self) -> Any:
        """Outputs of one of the layers."""
        return self.columns / self.layers

    @property
    def results(self) -> Any:
        """Elements of what one layer's adapter is added to."""
        return self.last_rows * self.mean_columns * self.groups

    def parameters(self, structure: Structure) -> Any:
        """Parameters of all; with decomposed weights magnitudes, too."""
        found = self.groups * form.adapter_parameters(self.layers * self.inner, self.columns)
        return found + self.groups * self.columns if structure.decomposed else found

    def summed_parameters(self, structure: Structure) -> Any:
        """Parameters on every rank whose gradients each has of its own tokens only."""
        if self.own == 1 or self.split not in ("columns", "rows"):
            return sympy.S.Zero
        if self.split == "columns":
            return self.groups * form.adapter_parameters(self.layers * self.inner, 0)
        found = self.groups * form.adapter_parameters(0, self.columns)
        return found + self.groups * self.columns if structure.decomposed else found

    def kept(self, structure: Structure) -> Any:
        """Bytes kept beside the layer's input: what leaves the rank's matrices, and what magnitudes weigh."""
        rows = self.groups * (self.last_rows if self.split == "rows" else self.first_rows)
        found = saved.input_kept_bytes(rows, self.layers * lora_rank)
        if structure.decomposed:
            found += 2 * saved.input_kept_bytes(self.groups * self.last_rows, self.columns)
        return found


def adapted_product(decoder: Decoder, op: Op) -> Adapted | None:
    """The adapters of a forward product; None where it has none."""
    structure, name = decoder.structure, "/".join(op.path.split("/")[-3:-1])
    product = products_of(decoder.architecture, decoder.kind).get(name)
    if product is None or op.shape is None:
        return None
    layers = [each for each in product.layers if each in structure.adapted]
    if not layers:
        return None
    rows, columns, inner, groups = op.shape
    own = 1 / tp if structure.sequence_parallel and not name.startswith("experts") else sympy.S.One
    columns = _outputs(decoder, name, layers, product.layers, columns)
    return Adapted(name, product.split, len(layers), rows, inner, columns, groups, own)


def _outputs(decoder: Decoder, name: str, layers: list[str], packed: tuple[str, ...], columns: Any) -> Any:
    """Columns of those of the packed layers that have adapters."""
    if len(layers) == len(packed):
        return columns
    if name != "attention/qkv":
        return columns * len(layers) / len(packed)
    (mixer, *_), kind = decoder.mixers[0], decoder.kind
    heads = widths.made_heads(kind, decoder.shapes.key_value_heads)
    assert isinstance(mixer, SoftmaxAttention)
    sizes = of_kind({"k": heads * mixer.key_width, "v": heads * widths.value_width(kind)}, kind)
    sizes["q"] = columns - sum(sizes[each] for each in packed if each != "q")
    return sum(sizes[each] for each in layers)


@remember_forms(maxsize=256)
def layer_adapters(structure: Structure, kind: LayerKind) -> tuple[Adapted, ...]:
    """The adapters of one layer of a kind on one device."""
    if not structure.adapted or kind.shared:
        return ()
    decoder = Decoder(structure, kind)
    products = (op for op in terms(decoder.layer_forward()).values() if isinstance(op, Op))
    found = (adapted_product(decoder, op) for op in products)
    return tuple(each for each in found if each is not None)


def adapter_parameters(structure: Structure, kind: LayerKind) -> tuple[Any, Any]:
    """Parameters of the adapters of one layer of a kind on one device: those beside routed experts apart."""
    groups: tuple[list[Any], list[Any]] = [], []
    for found in layer_adapters(structure, kind):
        groups[found.product.startswith("experts")].append(found.parameters(structure))
    return sympy.Add(*groups[0]), sympy.Add(*groups[1])


def summed_adapters(structure: Structure, kind: LayerKind) -> Any:
    """Parameters of the adapters of one layer of a kind whose gradients the tensor-parallel ranks sum after a step."""
    return sympy.Add(*(found.summed_parameters(structure) for found in layer_adapters(structure, kind)))


def adapters_kept(structure: Structure, kind: LayerKind) -> Any:
    """Bytes that the adapters of one layer of a kind keep of one micro-batch, beside the inputs of their layers."""
    return sympy.Add(*(found.kept(structure) for found in layer_adapters(structure, kind)))

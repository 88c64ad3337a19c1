"""What an encoder of images or sound before the first stage holds, keeps and multiplies in a training step.

Its layers are those of a model of its own, whose sizes are numbers (`plans.encoders`). They are split over the
tensor-parallel group where its heads and its MLP divide, and else whole on every device of it; stem and projector are
so always, and every device has all tokens. Norms and activation functions of stem and projector take no time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import sympy

from ...common.symbolic import replace_symbols
from ...formulas.kernels import matmul
from ...formulas.language.symbols import SYMBOLS, batch, micro_batch, sequence, tp, weight_bytes
from ...formulas.memory import saved_activations as saved
from ...models import counts
from ...operations.reads import changed
from ...plans.gradients import gradients_of
from .device_counts import dealt_parameters
from .saved_activations import layer_activations

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...models.towers import Product
    from ...plans.encoders import EncoderInput, EncoderPart
    from ...plans.structure import Structure

Value = TypeVar("Value")
ZERO = sympy.S.Zero
ENCODED = {"context": "none", "stages": "even", "sequence_parallel": False, "products": "half", "dropout": False}
"""Choices of a structure that its encoders do not share: their sequences and layers are whole, in 16 bits."""


def encoder_structure(structure: Structure, part: EncoderPart) -> Structure:
    """The structure of an encoder's layers."""
    other: dict[str, Any] = {
        **ENCODED,
        "some_layers": False,
        "misaligned": (),
        "segments": (),
        "encoders": (),
        "adapted": (),
    }
    return changed(structure, architecture=part.architecture, attention="flash", sent=(), frozen=(), **other)


def in_sizes(value: Value, part: EncoderPart, read: EncoderInput | None = None) -> Value:
    """What formulas gave, in the sizes of an encoder, over what it reads of the sequences of a micro-batch."""
    forms: dict[Any, Any] = {SYMBOLS[name].symbol: sympy.Integer(size) for name, size in part.sizes}
    if not part.split:
        forms[tp] = sympy.S.One
    if read is not None:
        forms |= {sequence: sympy.Integer(read.positions)}
        forms |= {batch: batch * read.sequences, micro_batch: micro_batch * read.sequences}
    return replace_symbols(value, forms)


def encoder_parameters(part: EncoderPart, frozen: Collection[str] = ()) -> Any:
    """Parameters of an encoder, its stem and its projector on one device, without frozen classes."""
    total = ZERO
    if part.part not in frozen:
        total += in_sizes(dealt_parameters(part.architecture, lambda count: count)[0], part)
        total += sum(product.parameters for product in part.stem) + part.stem_values
    if "projector" not in frozen:
        total += sum(product.parameters for product in part.projector) + part.projector_values
    return total


def rows(product: Product, read: EncoderInput) -> Any:
    """Rows of a product of stem or projector for a micro-batch."""
    return micro_batch * read.rows(product.rows) * product.times


def encoder_activations(structure: Structure) -> Any:
    """Bytes that the encoders keep of one micro-batch: of layers that are trained, and what products read and give.

    A trained product keeps its input; where gradients pass it, those behind the first what they gave too, for the
    function that follows. Of images nothing trained comes before.
    """
    return sum((_kept(structure, part, read) for part in structure.encoders for read in part.inputs), ZERO)


def _kept(structure: Structure, part: EncoderPart, read: EncoderInput) -> Any:
    gradients, total = gradients_of(structure), ZERO
    inside, outside = gradients.trains(part.part), gradients.trains("projector")
    if inside:
        own = encoder_structure(structure, part)
        for count, kind in counts.kinds_with_counts(part.architecture):
            total += in_sizes(count * layer_activations(own, kind), part, read)
        for product in part.stem:
            total += saved.input_kept_bytes(rows(product, read), product.copies * product.inputs)
    for chain in part.chains:
        for product in chain:
            if outside:
                total += saved.input_kept_bytes(rows(product, read), product.copies * product.inputs)
            if (inside or outside) and product is not chain[-1]:
                total += saved.input_kept_bytes(rows(product, read), product.copies * product.outputs)
    return total


def encoder_bytes(structure: Structure) -> dict[str, Any]:
    """Bytes of the encoders on a device, where there are any: of their weights, and kept of one micro-batch."""
    if not structure.encoders:
        return {}
    weights = weight_bytes * sum((encoder_parameters(part) for part in structure.encoders), ZERO)
    return {"weights": weights, "activations": encoder_activations(structure)}


def encoder_flops(structure: Structure) -> tuple[Any, Any]:
    """FLOPs of the encoders in a step over B sequences: forward, and of gradients."""
    forward, backward, gradients = ZERO, ZERO, gradients_of(structure)
    for part in structure.encoders:
        inside, outside = gradients.trains(part.part), gradients.trains("projector")
        for read in part.inputs:
            flops = _layer_flops(part, read)
            stem, projector = (_product_flops(products, read) for products in (part.stem, part.projector))
            forward += flops + stem + projector
            backward += 2 * flops + stem if inside else ZERO
            backward += projector if outside else ZERO
            for chain in part.chains if inside or outside else ():
                backward += _product_flops(chain if inside else chain[1:], read)
    return forward, backward


def _layer_flops(part: EncoderPart, read: EncoderInput) -> Any:
    plain = dataclasses.replace(part.architecture, head="none", patches=False, spectra=False, hyper_connections=False)
    return in_sizes(sympy.Add(*counts.forward_flops(plain).values()), part, read)


def _product_flops(products: tuple[Product, ...], read: EncoderInput) -> Any:
    each = (
        (batch * read.rows(product.rows) * product.times, product.copies * product.outputs, product.inputs)
        for product in products
    )
    return sympy.Add(*(matmul.matmul_flops(*shape, 1) for shape in each))

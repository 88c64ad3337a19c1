"""What images and sound cost before a language model reads them: the encoder's pass, projector, memory and tokens.

The encoder runs on the devices of a replica's first stage, its layers split over the tensor-parallel group, in 16 bits;
stem and projector are whole on each device. Norms and activation functions of the projector are left out.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import floats
from ..codegen.interpret import run as evaluate
from ..infer.formats import sixteen_bits
from ..models.model import encoder_of
from ..plans.encoders import encode, tower_of
from ..plans.plan import STATE_BYTES, Plan
from .operation import Operation
from .tower_products import TowerProduct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evaluation.base_run import Row
    from ..models.model import Model
    from ..models.sounds import Sound
    from ..models.towers import Encoded, Image, Tower
    from .inference_run import InferenceRun

SUMMED = ("time_s", "theory_s", "share", "flops", "bytes", "count")
"""What terms of one name add."""


def image_tokens(model: Model, items: tuple[Image | Sound, ...]) -> int:
    """Tokens that the images and recordings of a sequence add to its prompt.

    Raises:
        InputError: the model has no encoder of them, or one is not what it reads.
    """
    return sum(item.count * encode(model, item).tokens for item in items)


@dataclasses.dataclass(frozen=True)
class EncodedSize:
    """The images of one size, or recordings of one length, of all sequences.

    Attributes:
        image: their size, and how many a sequence has.
        tower: the encoder that reads them.
        encoded: what it makes of one.
        encoder: the run of its layers.
        products: those before and after the layers.

    """

    image: Image | Sound
    tower: Tower
    encoded: Encoded
    encoder: InferenceRun
    products: tuple[TowerProduct, ...]

    @property
    def layers_s(self) -> float:
        """Seconds of the encoder's layers."""
        return self.encoder.value("prefill")

    @property
    def products_s(self) -> dict[str, float]:
        """Seconds of each product before and after them, by name."""
        return {each.product.name: each.seconds() for each in self.products}

    @cached_property
    def time_s(self) -> float:
        """Seconds of the whole pass."""
        return self.layers_s + sum(self.products_s.values())

    def time_at(self, scales: Mapping[str, float]) -> float:
        """Seconds of the pass with symbols times a factor."""
        bound, program = self.encoder.bound, self.encoder.compiled.program
        inputs = {name: value for name, (value, _) in bound.items()}
        changed = {name: inputs[name] * scale for name, scale in scales.items() if name in inputs}
        layers = float(evaluate(program, inputs | changed, floats())[program.outputs["prefill"]])
        return layers + sum(each.seconds(changed) for each in self.products)

    def rows(self, total: float) -> list[Row]:
        """The terms of the pass, named by the encoder, in a breakdown of so many seconds in all."""
        stem = len(self.tower.stem)
        around = [each.row(f"encoder/{self.tower.part}/{each.product.name}", total) for each in self.products]
        layers = [
            dataclasses.replace(
                row,
                name=f"encoder/{self.tower.part}/{row.name.removeprefix('prefill/')}",
                share=row.time_s / total,
            )
            for row in self.encoder.table()
        ]
        return [*around[:stem], *layers, *around[stem:]]

    def operations(self) -> list[Operation]:
        """The operations of the pass."""
        part, stem = self.tower.part, len(self.tower.stem)
        around = []
        for each in self.products:
            row = each.row(f"{part}/{each.product.name}", self.time_s)
            shape = (each.rows, each.product.outputs, each.product.inputs)
            around.append(Operation("encoder", row.name, *shape, row.count, row.time_s, row.bound))
        layers = [
            dataclasses.replace(op, phase="encoder", name=f"{part}/{op.name}") for op in self.encoder.operations()
        ]
        return [*around[:stem], *layers, *around[stem:]]


class Encoding:
    """The pass of the images and recordings of all sequences through the encoders of an inference's model.

    Args:
        run: the inference.
        images: of each sequence, and recordings.
        batch: sequences that are encoded at once, over all replicas; by default those of the inference.

    Raises:
        InputError: the model has no encoder of them, one is not what it reads, or the plan does not fit it.
    """

    def __init__(self, run: InferenceRun, images: tuple[Image | Sound, ...], batch: int | None = None) -> None:
        self.run, self.images = run, images
        self.towers = [tower_of(run.model, image) for image in images]
        self.tokens = image_tokens(run.model, images)
        self.batch = int(run.question["batch"]) if batch is None else batch
        self.replica_batch = -(-self.batch // run.plan.dp)
        self.encoders = [self._encoder(*each) for each in zip(images, self.towers, strict=True)]

    def _encoder(self, image: Image | Sound, tower: Tower) -> InferenceRun:
        run, encoded = self.run, encode(self.run.model, image)
        asked = run.plan.precision
        precision = asked if asked in ("bf16", "fp16") else sixteen_bits(run.system)
        plan = Plan(tp=run.plan.tp, dp=run.plan.dp, precision=precision)
        question = run.question | {
            "batch": self.batch * image.count * encoded.sequences,
            "prompt": encoded.positions,
            "generate": 1,
            "kv_precision": None,
        }
        question.pop("images", None)
        return type(run)(encoder_of(run.model, tower), run.bare_system, plan, **question)

    @cached_property
    def sizes(self) -> list[EncodedSize]:
        """The passes of the images of each size."""
        return [self._size(*each) for each in zip(self.images, self.towers, self.encoders, strict=True)]

    def _size(self, image: Image | Sound, tower: Tower, encoder: InferenceRun) -> EncodedSize:
        encoded, number = encode(self.run.model, image), self.replica_batch * image.count
        each = dataclasses.asdict(encoded) | {"images": encoded.sequences}
        products = tuple(
            TowerProduct(
                product,
                self.replica_batch if product.rows == "texts" else number * each[product.rows] * product.times,
                encoder,
            )
            for product in (*tower.stem, *tower.projector)
        )
        return EncodedSize(image, tower, encoded, encoder, products)

    @cached_property
    def time_s(self) -> float:
        """Seconds before the prompts are complete."""
        return sum(size.time_s for size in self.sizes)

    def time_at(self, changed: Mapping[str, float]) -> float:
        """Seconds where symbols of the inference have other values, by the same factors as there."""
        scales = {name: value / self.run.bound[name][0] for name, value in changed.items() if self.run.bound[name][0]}
        return sum(size.time_at(scales) for size in self.sizes)

    def rows(self, total: float) -> list[Row]:
        """The terms of the pass in a breakdown of so many seconds in all; terms of one name are one."""
        found: dict[str, Row] = {}
        for row in (row for size in self.sizes for row in size.rows(total)):
            other = found.get(row.name)
            found[row.name] = row if other is None else _joined(other, row)
        return list(found.values())

    def operations(self) -> list[Operation]:
        """The operations of the pass, those of each size of images apart."""
        return [op for size in self.sizes for op in size.operations()]

    def shares(self) -> dict[str, float]:
        """The share of each resource in the pass; they sum to 1."""
        found: dict[str, float] = {}
        for size in self.sizes:
            parts = [(size.layers_s, size.encoder.shares())]
            parts += [(each.seconds(), each.shares()) for each in size.products]
            for seconds, shares in parts:
                for name, share in shares.items():
                    found[name] = found.get(name, 0.0) + share * seconds / self.time_s
        return found

    @property
    def weight_bytes(self) -> float:
        """Bytes of the encoders that are used, their stems and projectors on each device of the first stage."""
        total = 0.0
        for part in dict.fromkeys(tower.part for tower in self.towers):
            tower, encoder = next(each for each in zip(self.towers, self.encoders, strict=True) if each[0].part == part)
            total += (tower.stem_parameters + tower.projector_parameters) * STATE_BYTES["activation_bytes"]
            total += sum(size for name, size in encoder.memory_terms().items() if name.startswith("weights"))
        return total

    @property
    def activation_bytes(self) -> float:
        """Bytes alive at once in the encoder's pass, and of its results, on a device."""
        alive = max(encoder.memory_terms()["activations"] for encoder in self.encoders)
        width = self.run.model.sizes["hidden_size"] * STATE_BYTES["activation_bytes"]
        return float(alive + self.replica_batch * self.tokens * width)

    def to_dict(self) -> dict[str, Any]:
        """Times in seconds, bytes on the fullest device, and tokens of the images of one sequence."""
        return {
            "part": " and ".join(dict.fromkeys(tower.part for tower in self.towers)),
            "tokens": self.tokens,
            "encode_s": self.time_s,
            "time_to_first_token_s": self.time_s + self.run.value("prefill"),
            "time_s": self.run.value("time"),
            "weight_bytes": self.weight_bytes,
            "activation_bytes": self.activation_bytes,
            "memory_bytes": self.run.value("memory"),
            "fits": self.run.fits,
            "sizes": [_described(size) for size in self.sizes],
        }


def _joined(one: Row, other: Row) -> Row:
    """Two terms of one name as one; it is bound by what binds the longer one."""
    sums = {name: getattr(one, name) + getattr(other, name) for name in SUMMED}
    return dataclasses.replace(
        one,
        **sums,
        bound=max(one, other, key=lambda row: row.time_s).bound,
        each_s=sums["time_s"] / sums["count"],
    )


def _described(size: EncodedSize) -> dict[str, Any]:
    return {
        **dataclasses.asdict(size.image),
        **dataclasses.asdict(size.encoded),
        "layers_s": size.layers_s,
        "products_s": size.products_s,
        "encode_s": size.time_s,
    }

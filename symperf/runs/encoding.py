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
from ..common.artefacts import load_or_make_program
from ..infer.formats import sixteen_bits
from ..models.model import encoder_of
from ..plans.encoders import encode, tower_of
from ..plans.plan import STATE_BYTES, Plan

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..models.model import Model
    from ..models.sounds import Sound
    from ..models.towers import Encoded, Image, Product, Tower
    from .full_run import FullRun

ROWS, COLUMNS, INNER = "tower_rows", "tower_columns", "tower_inner"


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
        encoded: what the encoder makes of one.
        layers_s: seconds of the encoder's layers.
        products_s: seconds of each product before and after them, by name.

    """

    image: Image | Sound
    encoded: Encoded
    layers_s: float
    products_s: dict[str, float]

    @property
    def time_s(self) -> float:
        """Seconds of the whole pass."""
        return self.layers_s + sum(self.products_s.values())


class Encoding:
    """The pass of the images and recordings of all sequences through the encoders of an inference's model.

    Args:
        run: the inference.
        images: of each sequence, and recordings.

    Raises:
        InputError: the model has no encoder of them, one is not what it reads, or the plan does not fit it.
    """

    def __init__(self, run: FullRun, images: tuple[Image | Sound, ...]) -> None:
        self.run, self.images = run, images
        self.towers = [tower_of(run.model, image) for image in images]
        self.tokens = image_tokens(run.model, images)
        self.batch = int(run.question["batch"])
        self.replica_batch = -(-self.batch // run.plan.dp)
        self.encoders = [self._encoder(*each) for each in zip(images, self.towers, strict=True)]

    def _encoder(self, image: Image | Sound, tower: Tower) -> FullRun:
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
        """The times of the images of each size."""
        return [self._size(*each) for each in zip(self.images, self.towers, self.encoders, strict=True)]

    def _size(self, image: Image | Sound, tower: Tower, encoder: FullRun) -> EncodedSize:
        encoded, number = encode(self.run.model, image), self.replica_batch * image.count
        program = _product_program(encoder.structure)
        times = {}
        each = dataclasses.asdict(encoded) | {"images": encoded.sequences}
        for product in (*tower.stem, *tower.projector):
            rows = self.replica_batch if product.rows == "texts" else number * each[product.rows] * product.times
            times[product.name] = product.copies * _seconds(program, encoder, product, rows)
        return EncodedSize(image, encoded, encoder.value("prefill"), times)

    @property
    def time_s(self) -> float:
        """Seconds before the prompts are complete."""
        return sum(size.time_s for size in self.sizes)

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

    @property
    def memory_bytes(self) -> float:
        """Bytes on the fullest device with the encoder: its pass comes before the language model's."""
        own = self.run.memory_terms()["activations"]
        return self.run.value("memory") + self.weight_bytes + max(0.0, self.activation_bytes - own)

    @property
    def fits(self) -> bool:
        """Whether that is within the capacity."""
        return self.memory_bytes <= self.run.value("capacity_bytes")

    def to_dict(self) -> dict[str, Any]:
        """Times in seconds, bytes on the fullest device, and tokens of the images of one sequence."""
        prefill, whole = self.run.value("prefill"), self.run.value("time")
        return {
            "part": " and ".join(dict.fromkeys(tower.part for tower in self.towers)),
            "tokens": self.tokens,
            "encode_s": self.time_s,
            "time_to_first_token_s": self.time_s + prefill,
            "time_s": self.time_s + whole,
            "weight_bytes": self.weight_bytes,
            "activation_bytes": self.activation_bytes,
            "memory_bytes": self.memory_bytes,
            "fits": self.fits,
            "sizes": [_described(size) for size in self.sizes],
        }


def _described(size: EncodedSize) -> dict[str, Any]:
    return {
        **dataclasses.asdict(size.image),
        **dataclasses.asdict(size.encoded),
        "layers_s": size.layers_s,
        "products_s": size.products_s,
        "encode_s": size.time_s,
    }


def _seconds(program: Program, encoder: FullRun, product: Product, rows: int) -> float:
    values = {name: bound[0] for name, bound in encoder.bound.items()}
    values |= {ROWS: float(rows), COLUMNS: float(product.outputs), INNER: float(product.inputs)}
    return float(evaluate(program, {name: values[name] for name in program.inputs}, floats())[program.outputs["time"]])


def _product_program(structure: Any) -> Program:
    """Seconds of a product of any size in 16 bits, as those of patches and heads are."""

    def make() -> Program:
        import sympy

        from ..codegen.lower import lower
        from ..formulas.language.symbols import activation_bytes, strip_units, table_bytes
        from ..infer.kernels import InferenceKernels

        rows, columns, inner = (sympy.Symbol(name, positive=True) for name in (ROWS, COLUMNS, INNER))
        product = InferenceKernels(structure).matmul(
            "product", rows, columns, inner, right=table_bytes, left=activation_bytes
        )
        return lower([], {"time": strip_units(product.time)})

    return load_or_make_program("tower", repr(structure), make)

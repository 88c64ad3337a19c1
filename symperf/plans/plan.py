"""The plan: how a model's work is laid out over devices."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from .adapters import trained_parts
from .combinations import check_combination
from .encoders import check_encoders, encoders_of
from .fields import LARGEST as LARGEST
from .fields import positive_integer as positive_integer
from .host_rules import check_host
from .plan_fields import CONTEXT_KINDS as CONTEXT_KINDS
from .plan_fields import FIELDS as FIELDS
from .plan_fields import NUMBERS as NUMBERS
from .plan_fields import PRECISIONS as PRECISIONS
from .plan_fields import TRAINING_PRECISIONS as TRAINING_PRECISIONS
from .plan_fields import PlanFields, attributes
from .stage_layout import check_modules, letters_of, spell, stages_of
from .structure import COUNTED, EAGER_PARTS
from .validity import PLAN_RULES, RUN_RULES, plan_values, refuse, run_values

if TYPE_CHECKING:
    import os

    from ..models.model import Model
    from ..models.sounds import Sound
    from ..models.towers import Image
    from ..systems.system import System

STATE_BYTES = {"activation_bytes": 2, "weight_bytes": 2, "gradient_bytes": 4, "optimizer_bytes": 12, "mask_bytes": 1}
"""Mixed-precision training with Adam: 18 bytes a parameter (Rajbhandari et al. 2020, Korthikanti et al. 2022)."""


def _check(name: str, value: Any) -> Any:
    """The value of a field as a plan holds it."""
    return FIELDS[name].check(value)


_check_once = lru_cache(maxsize=4096, typed=True)(_check)
"""The same; a search makes thousands of plans of few values."""


@dataclass(frozen=True)
class Plan(PlanFields):
    """Parallel degrees, micro-batch, schedule, recomputation, sharding, precision and overlap.

    {attributes}

    Raises:
        InputError: a value out of range, naming it.
    """

    def __post_init__(self) -> None:
        for name, value in tuple(vars(self).items()):
            if value is not FIELDS[name].default:
                check = _check_once if type(value) in (bool, int, str) else _check
                object.__setattr__(self, name, check(name, value))
        self._lay_out()
        refuse(PLAN_RULES, plan_values(self))

    def _lay_out(self) -> None:
        """Take the number of virtual stages from a layout, as Megatron-LM does, unless it is given."""
        if self.layout is None:
            return
        turns, left = divmod(len(self.stage_letters), self.pp)
        if self.vpp == 1 and self.pp > 1 and not left:
            object.__setattr__(self, "vpp", turns)
        if not left:
            check_modules(self.stage_letters, self.pp)

    @property
    def stage_letters(self) -> tuple[str, ...]:
        """What every stage of a layout has; nothing without one."""
        return stages_of(self.layout) if self.layout else ()

    def stage_holds(self, layers: int, modules: int = 0) -> list[list[str]] | None:
        """What every virtual stage of every device has, in the letters of a layout; None where stages are equal.

        Args:
            layers: of the model.
            modules: for multi-token prediction.
        """
        if self.pp == 1 or (self.stages == "even" and self.account_for == "none"):
            return None
        letters = self.stage_letters or self._letters(layers, modules)
        return [[letters_of(letters[at]) for at in range(device, len(letters), self.pp)] for device in range(self.pp)]

    def spelled_layout(self, layers: int, modules: int = 0) -> str | None:
        """The layout of a plan whose stages are not equal."""
        if self.stage_holds(layers, modules) is None:
            return None
        return self.layout or spell(self._letters(layers, modules))

    def _letters(self, layers: int, modules: int) -> list[str]:
        """The letters of stages that no layout says."""
        count = self.pp * self.vpp
        embedding, loss = COUNTED[self.account_for]
        if self.first_stage_layers is not None and self.last_stage_layers is not None:
            inner = (layers - self.first_stage_layers - self.last_stage_layers) // max(self.pp - 2, 1)
            devices = [self.first_stage_layers, *[inner] * (self.pp - 2), self.last_stage_layers]
            held = [devices[at % self.pp] // self.vpp for at in range(count)]
        else:
            dealt = layers + embedding + loss
            held = [dealt // count + (at < dealt % count) for at in range(count)]
            held[0] -= embedding
            held[-1] -= loss
        letters = ["t" * each for each in held]
        letters[0] = "E" + letters[0]
        letters[-1] += "m" * modules + "L"
        return letters

    def with_micro_batch(self, default: int) -> Plan:
        """The plan with a micro-batch of `default` sequences, unless it has one."""
        return self if self.micro_batch else dataclasses.replace(self, micro_batch=default)

    def __str__(self) -> str:
        parts = []
        for name, field in FIELDS.items():
            value = getattr(self, name)
            if value != field.default and (name, value) != ("micro_batch", 1):
                parts.append(name if value is True else f"{name}={value}")
        return " ".join(parts) or "one device"

    def number(self, name: str) -> float:
        """The number that closed forms have for a field: its value, or what stands where none is given."""
        value = getattr(self, name)
        return float(FIELDS[name].number(vars(self)) if value is None else value)

    @property
    def devices(self) -> int:
        """Devices that the plan uses."""
        return math.prod(getattr(self, name) for name, field in FIELDS.items() if field.layout)

    @property
    def offloads(self) -> tuple[str, ...]:
        """What the host keeps."""
        return tuple(self.offload.split(",")) if self.offload else ()

    @property
    def on_drives(self) -> tuple[str, ...]:
        """What of that which the host keeps lies on its drives."""
        return tuple(self.nvme.split(",")) if self.nvme else ()

    @property
    def effective_recompute(self) -> str:
        """What the backward pass computes again: single modules are selective recomputation."""
        return "selective" if self.recompute_modules and self.recompute == "none" else self.recompute

    @property
    def parts_alone(self) -> tuple[str, ...]:
        """What of a layer runs operation by operation: a compiler joins it all."""
        named = self.eager_parts.split(",") if self.eager_parts else ()
        run = {*named, *(EAGER_PARTS[:3] if self.eager else ())}
        return () if self.compiled else tuple(part for part in EAGER_PARTS if part in run)

    @property
    def effective_expert_tp(self) -> int:
        """The tensor-parallel degree inside an expert."""
        return int(self.number("expert_tp"))

    @property
    def effective_schedule(self) -> str:
        """The schedule that runs."""
        return self.schedule or ("interleaved" if self.vpp > 1 else "1f1b")

    @property
    def stages(self) -> str:
        """How layers are dealt to stages: "even", "uneven", "given" or by a "layout"."""
        if self.layout is not None:
            return "layout"
        return "given" if self.first_stage_layers is not None else "uneven" if self.uneven_stages else "even"

    @classmethod
    def names(cls) -> list[str]:
        """The names of a plan's fields."""
        return list(FIELDS)

    @classmethod
    def of(cls, **fields: Any) -> Plan:
        """A plan from named fields.

        Raises:
            InputError: an unknown name, with the nearest.
        """
        for name in fields:
            if name not in cls.names():
                raise InputError(f"plan: unknown field {quote(name)}{nearest(name, cls.names())}")
        return cls(**fields)

    @classmethod
    def under(cls, stack: str | os.PathLike[str], **fields: Any) -> Plan:
        """A plan from named fields, the others as a training software's profile chooses them.

        Raises:
            InputError: an unknown name, with the nearest.

        >>> Plan.under("torchtitan-2026", dp=8).zero
        3
        """
        from ..systems.software import Software
        from .profile_plan import defaults_under

        plan = cls.of(**fields)
        return dataclasses.replace(plan, **defaults_under(Software.load(stack), vars(plan), fields))


Plan.__doc__ = str(Plan.__doc__).replace("{attributes}", attributes())


def check(
    plan: Plan,
    model: Model,
    system: System,
    batch: int,
    sequence: int,
    encoder_sequence: int | None = None,
    media: tuple[Image | Sound, ...] = (),
) -> list[str]:
    """Refuse a plan that cannot run; return warnings about one that can.

    Args:
        plan: how a step is laid out.
        model: what is trained.
        system: what it runs on.
        batch: sequences of the global batch.
        sequence: tokens of a sequence.
        encoder_sequence: tokens of the encoder's sequence before a decoder; by default as many.
        media: images and recordings of each sequence.

    Raises:
        InputError: one line that says what does not divide what, or what the system lacks.
    """
    positive_integer("batch", batch)
    positive_integer("sequence", sequence)
    check_combination(plan, model, attention_of(plan, model))
    encoders = encoders_of(model, media, plan.tp)
    frozen, _ = trained_parts(plan, model, encoders)
    check_encoders(plan, model, encoders, frozen, sequence)
    check_host(plan, system)
    require_modelled(model, encoder_sequence)
    for name in ("precision", "offload"):
        FIELDS[name].check(getattr(plan, name), training=True)
    refuse(RUN_RULES, run_values(plan, model.name, model.sizes, system, (batch, sequence), encoder_sequence))
    return list(_warnings(plan, model, sequence, batch // (plan.dp * (plan.micro_batch or 1))))


def attention_of(plan: Plan, model: Model) -> str:
    """The attention kernel: the plan's, or eager with dropout or learned biases of positions, or flash."""
    dropout = model.architecture.dropout if plan.dropout is None else plan.dropout
    eager = dropout or model.architecture.positions == "relative"
    return plan.attention or ("eager" if eager else "flash")


def require_modelled(model: Model, encoder_sequence: int | None) -> None:
    """Refuse a question that the model has no part for.

    Raises:
        InputError: the encoder's sequence of a model that has not both an encoder and a decoder.
    """
    if encoder_sequence is None:
        return
    positive_integer("encoder_sequence", encoder_sequence)
    if model.architecture.stacks == 1:
        raise InputError(
            f"encoder_sequence: found {encoder_sequence}, but {model.name} has not both an encoder and a decoder; "
            "expected none, sequence is that of all its layers"
        )


def _warnings(plan: Plan, model: Model, sequence: int, micro_batches: int) -> list[str]:
    found = []
    if model.quantization is not None:
        found.append("the checkpoint is quantized: training holds its weights in the plan's precision")
    kv_heads = model.sizes["num_key_value_heads"]
    if plan.tp > kv_heads > 0:
        found.append(f"tp = {plan.tp} exceeds {kv_heads} key-value heads: each device holds a copy of one")
    elif kv_heads % plan.tp:
        found.append(f"tp = {plan.tp} does not divide {kv_heads} key-value heads: the fullest device is counted")
    if model.sizes["vocab_size"] % plan.tp:
        found.append(f"tp = {plan.tp} does not divide the vocabulary of {model.sizes['vocab_size']}: it is padded")
    if model.context and sequence > model.context:
        found.append(f"sequence {sequence} exceeds the {model.context} tokens that {model.name} is made for")
    if model.sliding_window and sequence > model.sliding_window and attention_of(plan, model) == "eager":
        found.append(
            f"eager attention computes all pairs, those outside of the window of {model.sliding_window} tokens too"
        )
    if model.architecture.head == "none":
        found.append(f"{model.name} has no head: the loss costs nothing here")
    if plan.zero == 3 and plan.vpp > 1:
        found.append("zero = 3 with interleaved stages: Megatron-FSDP and DeepSpeed run no such schedule")
    if plan.zero > 1 and plan.pp > 1:
        found.append(
            f"zero = {plan.zero} with pp = {plan.pp}: every micro-batch sends its gradients or parameters anew; "
            "DeepSpeed refuses it"
        )
    if plan.uneven_stages and model.sizes["num_layers"] % plan.pp:
        found.append(
            f"{plan.pp} stages do not divide the {model.sizes['num_layers']} layers: the fullest stage is counted"
        )
    if micro_batches < plan.pp:
        found.append(f"{micro_batches} micro-batches do not fill {plan.pp} pipeline stages")
    ignored = [name for name, field in FIELDS.items() if not field.trained and getattr(plan, name) != field.default]
    if ignored:
        found.append(f"{', '.join(ignored)}: means nothing in training and is ignored")
    return found

"""The plan: how a model's work is laid out over devices."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from ..common.errors import InputError, nearest, shown
from .combinations import check_combination, check_host
from .structure import OFFLOADS, Attention, Context, Optimizer, RankOrder, Recompute, Schedule
from .validity import PLAN_RULES, RUN_RULES, plan_values, refuse, run_values

if TYPE_CHECKING:
    from ..models.model import Model
    from ..systems.system import System

TRAINING_PRECISIONS = ("bf16", "fp16", "fp8", "fp4")
"""Formats of the products whose training state is described; fp8 and fp4 are those of linear layers only."""
PRECISIONS = (*TRAINING_PRECISIONS, "int8", "int8-weight", "int4-weight")
STATE_BYTES = {"activation_bytes": 2, "weight_bytes": 2, "gradient_bytes": 4, "optimizer_bytes": 12, "mask_bytes": 1}
"""Mixed-precision training with Adam: 18 bytes a parameter (Rajbhandari et al. 2020, Korthikanti et al. 2022)."""
LARGEST = 10**9
CONTEXT_KINDS = get_args(Context)[1:]
_OPTIONAL = (
    "micro_batch",
    "expert_tp",
    "zero_shards",
    "node_limit",
    "first_stage_layers",
    "last_stage_layers",
    "recompute_layers",
)
_DEGREES = ("tp", "pp", "dp", "vpp", "ep", "cp", *_OPTIONAL)
_CHOICES = {
    "attention": get_args(Attention),
    "recompute": get_args(Recompute),
    "precision": PRECISIONS,
    "cp_kind": CONTEXT_KINDS,
    "optimizer": get_args(Optimizer),
    "rank_order": get_args(RankOrder),
}
_LATER = ("int8",)
"""Values of the public contract whose physics is not modelled yet."""


@dataclass(frozen=True)
class Plan:
    """Parallel degrees, micro-batch, schedule, recomputation, sharding, precision and overlap.

    Attributes:
        tp: tensor-parallel degree.
        pp: pipeline stages.
        dp: replicas.
        vpp: virtual stages per device; above 1 the schedule is interleaved.
        micro_batch: sequences in a micro-batch; by default one in training, a replica's whole batch in inference.
        recompute: "none", "selective" (the attention core) or "full" (every layer).
        sequence_parallel: shard norms, dropouts and residuals over the tensor-parallel group.
        zero: ZeRO stage: what is sharded over the replicas: 0 nothing, 1 the optimizer state, 2 also gradients,
            3 also weights (as FSDP does).
        ep: expert-parallel degree: devices over which the experts of a layer are dealt.
        expert_tp: tensor-parallel degree inside an expert; by default 1 with `ep` above 1, else `tp`.
        schedule: "gpipe", "1f1b", "interleaved", "zero-bubble" (ZB-H1), "zb-h2", "zero-bubble-2p" or "dualpipe"; by
            default what `vpp` asks for.
        precision: of the matrix products, "bf16", "fp16", or of those of linear layers "fp8" or "fp4"; in inference
            also one of the other `PRECISIONS`.
        attention: "eager" or "flash"; by default eager for models with dropout, flash for the rest.
        dropout: whether dropouts run; by default what the model's config says.
        overlap_tp: part of the overlappable tensor-parallel traffic that hides in the backward pass, 0 to 1.
        overlap_dp: part of the last backward pass (of every one from ZeRO-2 on) beside which gradients are reduced.
        overlap_gather: part of the gathering of sharded parameters (ZeRO-3) that runs beside the layers, 0 to 1.
        cp: context-parallel degree: parts of a sequence.
        cp_kind: how attention runs over parts: "ring", "all-to-all" (Ulysses) or "all-gather".
        uneven_stages: stages need not have equal layers: they differ by one at most.
        first_stage_layers: layers of the first stage, together with
        last_stage_layers: those of the last; the others share the rest evenly.
        zero_shards: hybrid sharding: replicas that share one copy of the state; by default all.
        node_limit: scale-up domains that may hold the experts of one token; by default all (DeepSeek-V3 has 4).
        overlap_ep: part of the transfers of experts and stages that DualPipe runs beside the other pass, 0 to 1.
        overlap_parameters: part of the gathering of updated parameters (ZeRO-1 and 2) that runs beside the first
            forward pass, 0 to 1.
        optimizer: "adam", "adam-8bit", "adafactor", "sgd-momentum" or "muon".
        recompute_layers: layers of each stage that full recomputation computes again; by default all.
        offload: what the host keeps: "activations", "optimizer", "weights", or several with commas between.
        rank_order: how ranks are numbered, innermost first: "tp-cp-dp-pp", or "tp-cp-pp-dp" (a whole pipeline
            inside a replica, as Megatron-LM's --use-tp-pp-dp-mapping has it).

    Raises:
        InputError: a value out of range, naming it.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    vpp: int = 1
    micro_batch: int | None = None
    recompute: str = "none"
    sequence_parallel: bool = False
    zero: int = 0
    schedule: str | None = None
    precision: str | None = None
    attention: str | None = None
    dropout: bool | None = None
    overlap_tp: float = 1.0
    overlap_dp: float = 0.0
    ep: int = 1
    expert_tp: int | None = None
    overlap_gather: float = 1.0
    cp: int = 1
    cp_kind: str = "ring"
    uneven_stages: bool = False
    first_stage_layers: int | None = None
    last_stage_layers: int | None = None
    zero_shards: int | None = None
    node_limit: int | None = None
    overlap_ep: float = 1.0
    overlap_parameters: float = 0.0
    optimizer: str = "adam"
    recompute_layers: int | None = None
    offload: str | None = None
    rank_order: str = "tp-cp-dp-pp"

    def __post_init__(self) -> None:
        for name in _DEGREES:
            if name not in _OPTIONAL or getattr(self, name) is not None:
                object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value is not None or name in ("recompute", "cp_kind", "optimizer", "rank_order"):
                _choice(name, value, choices)
        for name in ("overlap_tp", "overlap_dp", "overlap_gather", "overlap_ep", "overlap_parameters"):
            _fraction(name, getattr(self, name))
        if self.zero not in (0, 1, 2, 3) or isinstance(self.zero, bool):
            raise InputError(f"zero: found {shown(self.zero)}, expected 0, 1, 2 or 3")
        object.__setattr__(self, "zero", int(self.zero))
        for name in ("sequence_parallel", "dropout", "uneven_stages"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "dropout" and value is None):
                raise InputError(f"{name}: found {shown(value)}, expected true or false")
        if self.schedule is not None:
            _choice("schedule", self.schedule, get_args(Schedule))
        if self.offload is not None:
            object.__setattr__(self, "offload", _offloads(self.offload))
        refuse(PLAN_RULES, plan_values(self))

    def with_micro_batch(self, default: int) -> Plan:
        """The plan with a micro-batch of `default` sequences, unless it has one."""
        return self if self.micro_batch else dataclasses.replace(self, micro_batch=default)

    def __str__(self) -> str:
        parts = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default and (field.name, value) != ("micro_batch", 1):
                parts.append(field.name if value is True else f"{field.name}={value}")
        return " ".join(parts) or "one device"

    @property
    def devices(self) -> int:
        """Devices that the plan uses."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def offloads(self) -> tuple[str, ...]:
        """What the host keeps."""
        return tuple(self.offload.split(",")) if self.offload else ()

    @property
    def effective_expert_tp(self) -> int:
        """The tensor-parallel degree inside an expert."""
        return self.expert_tp or (1 if self.ep > 1 else self.tp)

    @property
    def effective_schedule(self) -> str:
        """The schedule that runs."""
        return self.schedule or ("interleaved" if self.vpp > 1 else "1f1b")

    @property
    def stages(self) -> str:
        """How layers are dealt to stages: "even", "uneven" or "given"."""
        return "given" if self.first_stage_layers is not None else "uneven" if self.uneven_stages else "even"

    @classmethod
    def names(cls) -> list[str]:
        """The names of a plan's fields."""
        return [f.name for f in dataclasses.fields(cls)]

    @classmethod
    def of(cls, **fields: Any) -> Plan:
        """A plan from named fields.

        Raises:
            InputError: an unknown name, with the nearest.
        """
        for name in fields:
            if name not in cls.names():
                raise InputError(f"plan: unknown field {shown(name)}{nearest(name, cls.names())}")
        return cls(**fields)


def check(
    plan: Plan, model: Model, system: System, batch: int, sequence: int, encoder_sequence: int | None = None
) -> list[str]:
    """Refuse a plan that cannot run; return warnings about one that can.

    Raises:
        InputError: one line that says what does not divide what, or what the system lacks.
    """
    positive_integer("batch", batch)
    positive_integer("sequence", sequence)
    check_combination(plan, model, attention_of(plan, model))
    check_host(plan, system)
    require_modelled(model, encoder_sequence)
    if plan.precision is not None:
        _choice("precision", plan.precision, TRAINING_PRECISIONS)
    values = run_values(plan, model.name, model.sizes, system, (batch, sequence), encoder_sequence)
    refuse(RUN_RULES, values)
    return list(_warnings(plan, model, sequence, values["micro_batches"]))


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
        layers = f"{plan.pp} stages do not divide the {model.sizes['num_layers']} layers: the fullest stage is counted"
        bound = plan.effective_schedule not in ("1f1b", "gpipe")
        found.append(f"{layers}, and every stage taken to be as full" if bound else layers)
    if micro_batches < plan.pp:
        found.append(f"{micro_batches} micro-batches do not fill {plan.pp} pipeline stages")
    return found


def positive_integer(name: str, value: object, lowest: int = 1) -> int:
    """The value, if it is a whole number from 1, or the lowest that is told, to 10^9.

    Raises:
        InputError: it is not.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not lowest <= value <= LARGEST or value % 1:  # type: ignore[operator]
        raise InputError(f"{name}: found {shown(value)}, expected a whole number from {lowest} to {LARGEST}")
    return int(value)  # type: ignore[call-overload,no-any-return]


def _fraction(name: str, value: object) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not 0 <= value <= 1:  # type: ignore[operator]
        raise InputError(f"{name}: found {shown(value)}, expected a fraction from 0 to 1")


def _offloads(value: object) -> str | None:
    """The names of an offload, each once, in their order; None for "none"."""
    parts = [part.strip().lower() for part in value.split(",")] if isinstance(value, str) else [value]
    for part in parts:
        if part not in OFFLOADS and parts != ["none"]:
            hint = nearest(part, OFFLOADS) if isinstance(part, str) else ""
            expected = f"{' or '.join(OFFLOADS)}, or several with commas between"
            raise InputError(f"offload: found {shown(value)}, expected {expected}{hint}")
    return ",".join(name for name in OFFLOADS if name in parts) or None


def _choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        hint = nearest(value.lower(), choices) if isinstance(value, str) else ""
        hint = f" ({value} is not modelled yet)" if value in _LATER else hint
        raise InputError(f"{name}: found {shown(value)}, expected {' or '.join(choices)}{hint}")

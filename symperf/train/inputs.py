"""What a run is asked with, checked: sizes of the model, figures of the system, other symbols; and its structure.

A name that belongs nowhere is refused with the nearest.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from ..common.numbers import as_plain
from ..models.description import BASE_SIZES
from ..plans.adapters import trained_parts
from ..plans.alignment import misaligned_sizes
from ..plans.combinations import check_combination
from ..plans.encoders import encoders_of
from ..plans.freezing import CLASSES, language_classes
from ..plans.plan import Plan, attention_of, positive_integer
from ..plans.plan_fields import WIDE_PRECISIONS
from ..plans.recompute_modules import modules_of
from ..plans.stage_layout import chunks_of, modules_at
from ..plans.structure import (
    COUNTED,
    GATED,
    GATHERED,
    HOOKED,
    METERED,
    OWNED,
    PAIRED,
    SCATTERED,
    SEPARATE,
    SPLIT,
    STATED,
    SUMMED,
    WAITED,
    Structure,
    rank_order_of,
    sent_formats,
)
from ..plans.validity import MODEL_RULES, refuse
from ..systems.kernel_constants import TRAINED
from ..systems.quantities import check_number
from ..systems.system_symbols import MATRIX_RATE, Limits
from ..systems.system_symbols import SYMBOLS as SYSTEM_SYMBOLS
from .binding import LIMITS, LOW_PRECISIONS, precision_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from ..models.model import Model
    from ..models.sounds import Sound
    from ..models.towers import Image
    from ..systems.system import System

MODEL_SIZES = BASE_SIZES
"""Sizes of the model that any run may be asked with."""
TRAINED_SIZES = (*MODEL_SIZES, "num_multi_token_layers")
"""Sizes of the model that a training step may be asked with."""

WORK = ("batch", "sequence", "encoder_sequence")
"""Names of what is asked for."""


def structure_of(
    model: Model,
    system: System,
    plan: Plan,
    stated: Container[str] = (),
    media: tuple[Image | Sound, ...] = (),
) -> Structure:
    """The structural choices of a model on a system under a plan.

    Args:
        model: what is trained.
        system: what it runs on.
        plan: how it is laid out.
        stated: names of the symbols to which the run gives values.
        media: images and recordings of each sequence, whose tokens are among its.

    Raises:
        InputError: choices that do not go together.
    """
    encoders = encoders_of(model, media, plan.tp)
    dropout = model.architecture.dropout if plan.dropout is None else plan.dropout
    attention = attention_of(plan, model)
    check_combination(plan, model, attention)
    frozen, adapted = trained_parts(plan, model, encoders)
    wide = plan.precision in WIDE_PRECISIONS
    l2 = "l2" in system.levels and "l2_capacity" in system.quantities
    return Structure(
        architecture=model.architecture,
        attention=attention,  # type: ignore[arg-type]
        recompute=plan.effective_recompute,  # type: ignore[arg-type]
        sequence_parallel=plan.sequence_parallel,
        schedule=plan.effective_schedule,  # type: ignore[arg-type]
        zero=plan.zero,
        dropout=dropout,
        loss_scaling=precision_of(plan, system) == "fp16",
        quantised=system.quantised,
        l2=l2 and system.quantised,
        tiers=len(system.tiers),
        context="none" if plan.cp == 1 else plan.cp_kind,  # type: ignore[arg-type]
        stages=plan.stages,  # type: ignore[arg-type]
        hybrid=plan.zero_shards is not None,
        node_limited=plan.node_limit is not None,
        optimizer=plan.optimizer,  # type: ignore[arg-type]
        products=plan.precision if plan.precision in LOW_PRECISIONS else "half",  # type: ignore[arg-type]
        some_layers=plan.recompute_layers is not None,
        offload=plan.offloads,
        in_switch=system.in_switch,
        links=system.links,
        power_limited=system.power_limited and not wide,
        rank_order=rank_order_of(plan, system),
        sent=sent_formats(stated) if model.architecture.routed else (),
        waits_for_launches=WAITED in stated or states(system, WAITED),
        scattered=model.architecture.routed and (SCATTERED in stated or states(system, SCATTERED)),
        separate_experts=(model.architecture.expert_bias or model.architecture.limited_gate)
        and (SEPARATE in stated or states(system, SEPARATE)),
        slow_gates=model.architecture.gated_mlp and any(name in stated or states(system, name) for name in GATED),
        summed_apart=SUMMED in stated or states(system, SUMMED),
        metered=METERED in stated or states(system, METERED),
        owned=plan.zero == 1 and (OWNED in stated or states(system, OWNED)),
        gathered_apart=plan.zero == 3 and (GATHERED in stated or states(system, GATHERED)),
        hooked=plan.zero == 3 and model.architecture.routed and (HOOKED in stated or states(system, HOOKED)),
        paired=model.architecture.routed
        and plan.effective_schedule not in SPLIT
        and (PAIRED in stated or states(system, PAIRED)),
        overheads=any(name in stated or states(system, name) for name in STATED),
        families=tuple(name for name in system.families if name in TRAINED and not (wide and name == "loops")),
        misaligned=misaligned_sizes(
            model, system, plan.precision, plan.vocab_multiple, eager_attention=attention == "eager"
        ),
        segments=model.segments,
        counted=COUNTED[plan.account_for],
        chunks=chunks_of(plan.stage_letters, plan.pp, _segment_sizes(model)) if plan.layout else (),
        module_stage=1 + (modules_at(plan.stage_letters) - 1) % plan.pp if "m" in "".join(plan.stage_letters) else 0,
        frozen=frozen,
        encoders=encoders,
        padded_vocabulary=plan.vocab_multiple is not None,
        modules=modules_of(plan.recompute, plan.recompute_modules),
        updates_at_once=plan.optimizer_in_backward,
        nvme=plan.on_drives,
        documents=attention == "flash" and "document_length" in stated,
        adapted=adapted,
        decomposed=plan.dora,
        stored=plan.base_precision is not None,
        loss=plan.loss,  # type: ignore[arg-type]
        compiled=plan.compiled,
        fp32_residual=plan.fp32_residual,
        eager=plan.parts_alone,
    )


def _segment_sizes(model: Model) -> tuple[int, ...]:
    """Layers of each segment of a model."""
    if not model.segments:
        return (model.sizes["num_layers"],)
    return tuple(sum(model.sizes[name] for name in names) for names in model.segments)


def states(system: System, name: str) -> bool:
    """Whether the software on a system gives a symbol a value other than 0."""
    return name in system.software and system.software[name].value > 0


def without_training(structure: Structure, model: Model) -> Structure:
    """The structure of the forward pass alone: nothing is trained, and weights are stored as they were."""
    passed = language_classes(model.architecture, model.sizes.get("num_multi_token_layers", 0))
    passed |= {name for each in structure.encoders for name in (each.part, "projector")}
    frozen = tuple(each for each in CLASSES if each in passed)
    return dataclasses.replace(structure, frozen=frozen, adapted=(), decomposed=False)


def stated_names(values: Mapping[str, Any]) -> set[str]:
    """The names of the symbols to which a run gives values other than 0."""
    return {name for name, value in values.items() if value}


@dataclass(frozen=True)
class Settable:
    """The names that a run takes values of, by where each belongs; those of a system belong to every run.

    Attributes:
        sizes: of the model.
        limits: symbols that neither model, system nor plan binds, and the values that they may take.
        arguments: what a run is asked for, which is no symbol to set.
        counts: of these, the whole numbers that are set as symbols are.
    """

    sizes: tuple[str, ...]
    limits: Mapping[str, Limits]
    arguments: tuple[str, ...]
    counts: tuple[str, ...] = ()

    def sort(self, values: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Any], dict[str, float]]:
        """Checked values by where they belong: the model's sizes, the system's figures (as given), all others.

        Raises:
            InputError: a name that belongs nowhere, with the nearest, or a value out of range.
        """
        sizes: dict[str, int] = {}
        figures: dict[str, Any] = {}
        own: dict[str, float] = {}
        for name, value in ((name, as_plain(value)) for name, value in values.items()):
            if name in self.sizes:
                sizes[name] = size(name, value)
            elif name in SYSTEM_SYMBOLS or name == "matrix_rate":
                figures[name] = value
            elif name in self.counts:
                own[name] = positive_integer(name, value)
            elif name in self.limits:
                own[name] = _number(name, value, self.limits[name])
            else:
                raise self._misplaced(name)
        return sizes, figures, own

    def _misplaced(self, name: str) -> InputError:
        if name in Plan.names() or name in self.arguments:
            where = "a field of the plan" if name in Plan.names() else "an argument of its own"
            return InputError(f"set: {name} is {where} and no symbol, expected it there")
        known = [*self.sizes, *SYSTEM_SYMBOLS, "matrix_rate", *self.limits, *Plan.names(), *self.arguments]
        hint = nearest(name.lower(), known) or ", expected one that `symperf list symbols` shows"
        return InputError(f"set: unknown symbol {quote(name)}{hint}")


REMEDIES = {"gradient_bytes": "; what has no gradients is named by --freeze, or is all but adapters under --lora-rank"}
"""What to do instead of giving a symbol a value that it does not take."""


def _number(name: str, value: Any, limits: Limits) -> float:
    try:
        return check_number(value, limits, f"set: {name}")
    except InputError as error:
        raise InputError(f"{error}{REMEDIES.get(name, '')}") from None


TRAINING: Final = Settable(TRAINED_SIZES, LIMITS, WORK, ("encoder_sequence",))
"""What a training step takes values of."""


def size(name: str, value: object) -> int:
    """The value of a size of the model: a whole number, of layers for multi-token prediction also none.

    Raises:
        InputError: it is none.
    """
    return positive_integer(name, value, lowest=0 if name == "num_multi_token_layers" else 1)


def resize_model(model: Model, sizes: dict[str, int]) -> Model:
    """The model with some sizes replaced.

    Raises:
        InputError: sizes that do not go together.
    """
    if "position_rows" in sizes and model.architecture.positions != "learned":
        raise InputError(f"position_rows: found {sizes['position_rows']}, but {model.name} has no learned positions")
    require_multi_token_head(model, sizes)
    refuse(MODEL_RULES, {**model.sizes, **sizes})
    return dataclasses.replace(model, sizes={**model.sizes, **sizes})


def require_multi_token_head(model: Model, asked: Iterable[str]) -> None:
    """Refuse a number of layers for multi-token prediction where the model has none.

    Raises:
        InputError: the model has none.
    """
    if "num_multi_token_layers" in asked and not model.architecture.multi_token_head:
        raise InputError(
            f"num_multi_token_layers: {model.name} has no layers for multi-token prediction; expected a model whose "
            "config has num_nextn_predict_layers"
        )


def limits_of(name: str) -> Limits | None:
    """What values a figure of a system, or a default, may take."""
    return MATRIX_RATE if name == "matrix_rate" else SYSTEM_SYMBOLS.get(name) or LIMITS.get(name)

"""The closed forms of kernels as an inference has them, compiled once for each structure and kept.

A form takes some operations out of one layer of a model of the catalogue: which model does not matter, only that its
layers have such a kernel; the columns of a row stand for the model's sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ...codegen.evaluate import outputs_at
from ...common.artefacts import load_or_make_program
from ...infer.binding import Work, bind
from ...infer.stack import Stack
from ...infer.structure import InferenceStructure, structure_of
from ...models.model import Model
from ...plans.plan import Plan
from .formats import STACKS

if TYPE_CHECKING:
    from ...codegen.program import Program
    from ...systems.system import System

OUTPUTS: Final = ("time", "flops", "bytes", "message")
IDLE: Final = {"gap_latency": 0.0, "graph_removal": 1.0}
"""Collectors repeat one kernel, mostly in a recorded graph: software leaves no gap between kernels."""


@dataclass(frozen=True)
class Form:
    """Kernels of one layer.

    Attributes:
        name: of the function in `kernels` that takes the operations.
        model: of the catalogue, whose first layer with the mixer (and experts) is taken.
        mixer: of the layer.
        ffn: of the layer; any where it is empty.
        phase: "prefill" or "decode".
        paths: how the paths of the operations end that are taken; all of the function where it is empty.
        skewed: loads of experts follow a power law.
    """

    name: str
    model: str = "llama-2-7b"
    mixer: str = "attention"
    ffn: str = ""
    phase: str = "prefill"
    paths: tuple[str, ...] = ()
    skewed: bool = False


@dataclass(frozen=True)
class Setting:
    """Where a form is evaluated.

    Attributes:
        system: the device.
        software: whose kernels they are, as tables name it.
        precision: of products; 16 bits without one.
        cache: format of the cache.
        own_all_reduce: all-reduces are the software's own.
        profile: of the software, where it is not the one that stands for it in the catalogue.
    """

    system: System
    software: str
    precision: str | None = None
    cache: str | None = None
    own_all_reduce: bool = False
    profile: str = ""

    @property
    def stack(self) -> Stack:
        """The profile of the software."""
        return Stack.load(self.profile or STACKS.get(self.software, "vllm-0.24"))

    @property
    def equipped(self) -> System:
        """The system with what the software reaches on it."""
        return self.stack.on(self.system, _plan(self.precision))


def predict(form: Form, setting: Setting, sizes: dict[str, Any], count: int) -> dict[str, Any]:
    """Seconds, FLOPs, device-memory bytes and message bytes of each row, as arrays.

    Args:
        form: of the kernels.
        setting: gives structure and values.
        sizes: arrays of `count` values, by symbol; they replace what the form's model has.
        count: rows.
    """
    system = setting.equipped
    program = program_of(form, structure_on(system, form, setting))
    values = dict(_values(form.model, setting.system.name, setting)) | sizes
    return outputs_at(program, values, count)


@cache
def _model(name: str) -> Model:
    return Model.load(name)


@cache
def _plan(precision: str | None) -> Plan:
    return Plan(precision=precision)


def structure_on(system: System, form: Form, setting: Setting) -> InferenceStructure:
    """The structure of a form on a system that has what the setting's software reaches on it."""
    made = structure_of(_model(form.model), system, _plan(setting.precision), setting.stack)
    return replace(
        made,
        experts_dealt=form.ffn == "experts",
        power_limited=False,
        skewed=form.skewed,
        read_apart=(),
        called_collectives=False,
        own_all_reduce=setting.own_all_reduce and "peer_latency" in system.quantities,
    )


def values_on(system: System, form: Form, setting: Setting) -> dict[str, float]:
    """The value of every symbol that rows do not have, on a system as of `structure_on`."""
    plan, work = _plan(setting.precision), Work(1, 1, 1)
    bound = bind(_model(form.model), system, plan, work, setting.stack, setting.cache, {})
    return {symbol: value for symbol, (value, _) in bound.items()} | IDLE


_BOUND: dict[tuple[Any, ...], dict[str, float]] = {}


def _values(model: str, name: str, setting: Setting) -> dict[str, float]:
    key = (model, name, setting.software, setting.precision, setting.cache)
    if key not in _BOUND:
        _BOUND[key] = values_on(setting.equipped, Form("", model), setting)
    return _BOUND[key]


@cache
def program_of(form: Form, structure: InferenceStructure) -> Program:
    """The compiled form: seconds, FLOPs, bytes of device memory and of messages."""

    def make() -> Program:
        from .kernels import program

        return program(form, structure)

    return load_or_make_program("kernel", f"{form!r} {structure.key()}", make)

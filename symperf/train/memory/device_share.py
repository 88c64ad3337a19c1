"""What a device of a pipeline holds: the fullest, or that of stage i, to which layers are dealt in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import Max, Min
from ...formulas.language.symbols import (
    batch,
    dp,
    micro_batch,
    num_layers,
    pp,
    stage_number,
    vpp,
)
from ...formulas.memory import stage_memory as each
from ...formulas.parallel import dual_pipe as dual
from ...formulas.parallel import pipeline as pipe
from ...formulas.parallel import zero_bubble as zb
from ...models import counts
from ...operations.dealing import Dealing
from ...operations.groups import expert_shard_groups, shard_groups
from ...operations.laid_out import LaidOut
from ...operations.uneven_chunks import UnevenChunks
from ..layers.adapters import adapter_parameters, summed_adapters
from .device_counts import dealt_parameters
from .end_counts import fullest_ends, stage_ends
from .multi_token_counts import module_parameters, modules_on_fullest, modules_on_stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...plans.structure import Structure


@dataclass(frozen=True)
class DeviceShare:
    """What a device of a pipeline holds.

    Attributes:
        structure: of the step.
        layers_of: how many layers of a stage it has of which the model has a count; under DualPipe it has two stages.
        ends: parameters of the tables, norm and head on it.
        modules: modules for multi-token prediction on it.
        in_flight: micro-batches whose activations its layers hold.
        trained_ends: of the parameters of the ends, those that are trained.
    """

    structure: Structure
    layers_of: Callable[[Any], Any]
    ends: Any
    modules: Any
    in_flight: Any
    trained_ends: Any

    @cached_property
    def layer_parameters(self) -> tuple[Any, Any]:
        """Parameters of its layers: dense ones, and those of routed experts."""
        return self._dealt(())

    @cached_property
    def trained_layer_parameters(self) -> tuple[Any, Any]:
        """Of these, those that are trained."""
        return self._dealt(self.structure.frozen)

    @cached_property
    def adapters(self) -> tuple[Any, Any]:
        """Parameters of the adapters of its layers, those beside routed experts apart."""
        dense: Any = 0
        routed: Any = 0
        for count, kind in counts.kinds_with_counts(self.structure.architecture):
            layers, (own, of_experts) = self.layers_of(count), adapter_parameters(self.structure, kind)
            dense, routed = dense + layers * own, routed + layers * of_experts
        if self.structure.schedule == "dualpipe":
            return dual.dual_pipe_parameters(dense), dual.dual_pipe_parameters(routed)
        return dense, routed

    @cached_property
    def summed_adapters(self) -> Any:
        """Of the parameters of adapters, those whose gradients are sums over the tensor-parallel group."""
        kinds = counts.kinds_with_counts(self.structure.architecture)
        found = sympy.Add(*(self.layers_of(count) * summed_adapters(self.structure, kind) for count, kind in kinds))
        return dual.dual_pipe_parameters(found) if self.structure.schedule == "dualpipe" else found

    def _dealt(self, frozen: tuple[str, ...]) -> tuple[Any, Any]:
        dense, experts = dealt_parameters(self.structure.architecture, self.layers_of, frozen)
        if self.structure.schedule == "dualpipe":
            return dual.dual_pipe_parameters(dense), dual.dual_pipe_parameters(experts)
        return dense, experts

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """All its parameters by what they are of; routed experts only where the model has them."""
        return self._by_name(self.layer_parameters, self.ends, self.modules)

    @cached_property
    def trained_parameters(self) -> dict[str, Any]:
        """Of these, those that are trained, under the same names."""
        return self._by_name(self.trained_layer_parameters, self.trained_ends, self.trained_modules)

    @property
    def trained_modules(self) -> Any:
        """Modules for multi-token prediction on it that are trained."""
        return 0 if "multi_token" in self.structure.frozen else self.modules

    def _by_name(self, layers: tuple[Any, Any], ends: Any, modules: Any) -> dict[str, Any]:
        architecture = self.structure.architecture
        found = {"layers": layers[0], "ends": ends}
        found |= {"experts": layers[1]} if architecture.routed else {}
        if architecture.multi_token_head:
            of_module = module_parameters(architecture)
            found["multi_token"] = modules * of_module[0]
            found |= {"multi_token_experts": modules * of_module[1]} if architecture.routed else {}
        if self.structure.adapted:
            dense, routed = self.adapters
            found |= {"adapters": dense} | ({"adapter_experts": routed} if routed != 0 else {})
        return found

    @cached_property
    def whole(self) -> tuple[Any, Any]:
        """All its parameters: those that are no routed expert's, and those that are."""
        return in_two(self.parameters)

    @cached_property
    def trained(self) -> tuple[Any, Any]:
        """Of these, those that are trained."""
        return in_two(self.trained_parameters)

    def sharded(self, parameters: tuple[Any, Any], zero: int) -> Any:
        """Of dense parameters and those of experts, what a rank has where they are sharded from a ZeRO stage on."""
        dense, experts = parameters
        if self.structure.zero < zero:
            return dense + experts
        dense = dense / shard_groups(self.structure)[0].ranks
        routed = self.structure.architecture.routed
        return dense + experts / expert_shard_groups(self.structure)[0].ranks if routed else dense

    @property
    def updated_parameters(self) -> Any:
        """Parameters whose optimizer state it holds: those that are trained."""
        return self.sharded(self.trained, 1)


def in_two(parameters: dict[str, Any]) -> tuple[Any, Any]:
    """Parameters by name as two sums: of what is no routed expert's, and of what is."""
    groups: tuple[list[Any], list[Any]] = [], []
    for name, count in parameters.items():
        groups["experts" in name].append(count)
    dense, experts = (sum(group) for group in groups)
    return dense, experts


class FullestShare(DeviceShare):
    """The fullest device where stages have other kinds of layers: no stage has the most of each."""

    @cached_property
    def layer_parameters(self) -> tuple[Any, Any]:
        """Parameters of layers: the most dense ones of a stage, and the most of routed experts."""
        return self._largest(stage_share(self.structure).layer_parameters)

    @cached_property
    def trained_layer_parameters(self) -> tuple[Any, Any]:
        """The same of those that are trained."""
        return self._largest(stage_share(self.structure).trained_layer_parameters)

    @cached_property
    def whole(self) -> tuple[Any, Any]:
        """All parameters: the most of a stage that are no routed expert's, and the most that are."""
        return self._largest(stage_share(self.structure).whole)

    @cached_property
    def trained(self) -> tuple[Any, Any]:
        """The same of those that are trained."""
        return self._largest(stage_share(self.structure).trained)

    def _largest(self, groups: tuple[Any, Any]) -> tuple[Any, Any]:
        dealing = dealing_of(self.structure)
        dense, experts = (Max(*dealing.on_deciding(form)) for form in groups)
        return dense, experts


def fullest_share(structure: Structure) -> DeviceShare:
    """The fullest device, of which each term is the largest of all stages."""
    ends, trained = fullest_ends(structure), fullest_ends(structure, structure.frozen)
    modules, held = modules_on_fullest(structure), in_flight(structure)
    kind = FullestShare if structure.told_apart else DeviceShare
    return kind(structure, lambda count: fullest_count(structure, count), ends, modules, held, trained)


def stage_share(structure: Structure) -> DeviceShare:
    """The device of stage i, for the symbol `stage_number`; under DualPipe also that of the mirrored stage."""
    modules, held = modules_on_stage(structure), stage_in_flight(structure)
    ends, trained = stage_ends(structure), stage_ends(structure, structure.frozen)
    return DeviceShare(structure, dealing_of(structure).layers_of, ends, modules, held, trained)


# Layers -----------------------------------------------------------------------------------------------------------


def dealing_of(structure: Structure) -> Dealing:
    """How the layers of a structure are dealt to stages."""
    if structure.chunks:
        chunks, modules = structure.chunks, structure.module_stage
        return LaidOut(structure.segments, structure.stages, structure.schedule, chunks=chunks, modules=modules)
    in_chunks = structure.schedule == "interleaved" or any(structure.counted)
    kind = UnevenChunks if structure.stages == "uneven" and in_chunks else Dealing
    return kind(structure.segments, structure.stages, structure.schedule, structure.counted)


def fullest_layers(structure: Structure) -> Any:
    """Layers of the fullest stage."""
    if structure.chunks or any(structure.counted) or structure.stages == "given":
        dealing = dealing_of(structure)
        return Max(*dealing.on_deciding(dealing.layers))
    return pipe.fullest_stage_layers(num_layers, pp) if structure.stages == "uneven" else num_layers / pp


def fullest_count(structure: Structure, count: Any) -> Any:
    """The most layers that a stage has of those of which the model has `count`."""
    dealing = dealing_of(structure)
    if dealing.unequal and count != num_layers:
        return Max(*dealing.on_deciding(dealing.layers_of(count)))
    if structure.stages == "even" and not any(structure.counted):
        return count / pp
    return fullest_layers(structure) * (count / num_layers)


# Micro-batches ----------------------------------------------------------------------------------------------------


def in_flight(structure: Structure) -> Any:
    """Micro-batches whose activations the first stage holds."""
    count = pipe.micro_batch_count(batch, micro_batch, dp)
    match structure.schedule:
        case "gpipe":
            return pipe.gpipe_in_flight(count)
        case "1f1b" | "zero-bubble":
            return pipe.one_f_one_b_in_flight(count, pp)
        case "zb-h2":
            return zb.zero_bubble_h2_in_flight(count, pp)
        case "zero-bubble-2p":
            return zb.zero_bubble_2p_in_flight(count, pp)
        case "dualpipe":
            return dual.dual_pipe_in_flight(pp)
        case "interleaved":
            return pipe.interleaved_in_flight(count, pp, vpp)


def last_chunk_in_flight(structure: Structure) -> Any:
    """Micro-batches of which stage i holds what its last chunk keeps: of interleaved stages 2 (p - i) + 1."""
    if structure.schedule != "interleaved":
        return stage_in_flight(structure)
    count = pipe.micro_batch_count(batch, micro_batch, dp)
    return Min(count, 2 * Max(0, pp - stage_number) + 1)


def stage_in_flight(structure: Structure) -> Any:
    """Micro-batches whose activations stage i holds: schedules that split gradients hold as many on every stage."""
    count = pipe.micro_batch_count(batch, micro_batch, dp)
    if structure.schedule == "1f1b":
        return each.one_f_one_b_stage_in_flight(count, pp, stage_number)
    if structure.schedule == "interleaved":
        return dealing_of(structure).in_flight(count)
    return in_flight(structure)

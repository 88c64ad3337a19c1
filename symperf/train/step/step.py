"""The schedule tree of a training step, for one structure."""

from __future__ import annotations

import functools
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...formulas.language.atoms import Max, above_one, bubble, complement, less_one
from ...formulas.language.symbols import (
    batch,
    dp,
    micro_batch,
    num_layers,
    num_recomputed_layers,
    overlap_dp,
    overlap_gather,
    overlap_offload,
    overlap_parameters,
    overlap_pp,
    pp,
    tp,
    vpp,
)
from ...formulas.parallel import pipeline as pipe
from ...formulas.parallel import unequal_chunks as pipe_chunks
from ...operations.groups import Group, pipeline_group
from ...operations.reads import changed, remembered
from ...operations.schedule import ZERO, Ends, Node, Op, Overlap, Repeat, Sequence, part
from ...operations.schedule import sequence as in_sequence
from ...plans.gradients import gradients_of
from ..memory.device_share import dealing_of, fullest_share
from ..memory.footprint import stage_activations
from ..memory.host_memory import moves_activations
from ..memory.multi_token_counts import apart
from ..memory.offloaded_inputs import moved_activations
from . import host_offload as transfers
from .adapted import AdaptedPasses, tensor_sum
from .decoders import decoders_of
from .embedding_and_head import ModelEnds
from .encoders import Encoders
from .exchanges import Exchanges
from .low_precision import Lowered
from .multi_token import MultiToken
from .optimizer_step import Update
from .overheads import beside_launches, launches_of, with_overheads
from .passes import beside_other_pass, of_logits
from .pipelines import BUBBLE as BUBBLE
from .pipelines import Pipeline, pipeline_of, split_schedule, whole_passes
from .trained import TrainedPasses

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...operations.dealing import Dealing
    from ...plans.structure import Structure
    from ..layers.transformer import Decoder
    from ..memory.device_share import DeviceShare

Passes = tuple[Node, Node]
SPLIT_PASSES = ("forward", "inputs", "weights", "pair", "behind")
PLAIN = ("1f1b", "gpipe", "interleaved")
"""Schedules of whole backward passes, whose transfers between stages `overlap_pp` hides."""


def _plain_decoders(structure: Structure) -> tuple[Decoder, list[tuple[Decoder, Any]]]:
    """Where only some layers are recomputed, their forward passes come on top of plain backward passes."""
    return decoders_of(changed(structure, recompute="none") if structure.some_layers else structure)


@remembered
def layer_passes(structure: Structure) -> tuple[list[tuple[Node, Node, Any]], list[tuple[Node, Any]]]:
    """Both passes of the layers of each kind with their count, and what is computed again on top, with its count."""
    adapt, left, gradients = AdaptedPasses(structure), TrainedPasses(structure), gradients_of(structure)
    layers = _plain_decoders(structure)[1]
    each = [(adapt(d.layer_forward(), d), adapt(left.layer(d.layer_backward(), d), d), count) for d, count in layers]
    again = [
        (adapt(d.layer_forward("recompute"), d), count)
        for d, count in layers
        if structure.some_layers and gradients.flows(d.kind)
    ]
    return each, again


@remembered
def end_parts(structure: Structure) -> tuple[Passes, Passes, tuple[()] | Passes]:
    """Forward and backward of what precedes the layers, of the head, and of modules for multi-token prediction."""
    ends, left = ModelEnds(structure), TrainedPasses(structure)
    first: Passes = ends.embedding_forward(), left.embedding(ends.embedding_backward())
    if structure.encoders:
        encoders = Encoders(structure)
        first = in_sequence(encoders.forward(), first[0]), in_sequence(first[1], encoders.backward())
    head: Passes = ends.head_forward(), left.head(ends.head_backward())
    first, head = _hosted_end(structure, "embedding", first), _hosted_end(structure, "head", head)
    if not structure.architecture.multi_token_head:
        return first, head, ()
    forward, backward = MultiToken(structure).passes()
    return first, head, _hosted_end(structure, "multi_token", (forward, left.modules(backward)))


def _hosted_end(structure: Structure, name: str, passes: Passes) -> Passes:
    """Both passes of an end of the model, at the host's pace where that is slower; taken apart they are later."""
    if structure.splits:
        return passes
    forward, backward = passes
    return (
        beside_launches(structure, f"{name}/forward", forward),
        beside_launches(structure, f"{name}/backward", backward),
    )


class TrainingStep:
    """One training step on the device that sets its time.

    m micro-batches pass through the pipeline's stages; the gradients of the last backward pass are reduced over the
    replicas, beside it as far as `overlap_dp` allows; then the optimizer runs. Time is

        (m - 1)(T_f + T_b) + T_f + [T_b with the reduction beside it] + bubble + ends + optimizer.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.decoder, self.layers = _plain_decoders(structure)
        self.kernels = self.decoder.kernels
        self.micro_batches = pipe.micro_batch_count(batch, micro_batch, dp)
        self.gradients, self.left = gradients_of(structure), TrainedPasses(structure)
        self.transfers: dict[str, Sequence] = {}
        self.beside: dict[str, tuple[Node | None, Node | None]] = {}

    @cached_property
    def share(self) -> DeviceShare:
        """The fullest device."""
        return fullest_share(self.structure)

    @cached_property
    def own_layers(self) -> tuple[list[tuple[Node, Node, Any]], list[tuple[Node, Any]]]:
        """What `layer_passes` gives."""
        return layer_passes(self.structure)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The passes of micro-batches, and what all of them take together."""
        return pipeline_of(self)

    @property
    def forward(self) -> Node:
        """The forward pass of a stage of the mean size, or of the fullest where backward passes are taken apart."""
        return self.pipeline.forward

    @property
    def backward(self) -> Node:
        """The backward pass of the same stage."""
        return self.pipeline.backward

    @cached_property
    def sends(self) -> Any:
        """Transfers of a pass that take time of the device: those of all its virtual stages that nothing hides."""
        return vpp * complement(overlap_pp) if self.structure.schedule in PLAIN else vpp

    @cached_property
    def later_sends(self) -> Any:
        """The same of later micro-batches, which under 1F1B wait for transfers that run beside passes."""
        shown = pipe_chunks.one_f_one_b_shown_share(overlap_pp, pp)
        return shown if self.structure.schedule == "1f1b" else self.sends

    def passes(self, *, fullest: bool, sends: Any = None) -> tuple[Node, Node]:
        """Both passes of one micro-batch through a stage: one of the mean number of layers, or the fullest.

        They differ only where stages are unequal. Of `sends`, see `passes_of`.
        """
        return self.passes_of(self.share.layers_of if fullest else (lambda count: count / pp), sends)

    def passes_of(
        self, layers_of: Callable[[Any], Any], sends: Any = None, *, shards: bool = True
    ) -> tuple[Node, Node]:
        """Both passes of one micro-batch through a stage.

        Args:
            layers_of: how many layers the stage has of which the model has a count.
            sends: how many transfers it waits for; by default what takes time of the device.
            shards: what sharded parameters and gradients send runs beside it.
        """
        sends = self.sends if sends is None else sends
        all_layers = Max(1, layers_of(num_layers)) if self.structure.told_apart else None
        forwards: list[tuple[Node, Any]] = [(node, layers_of(count)) for node, _, count in self.own_layers[0]]
        forward: Node = self.stage(forwards, "forward", sends)
        again: list[tuple[Node, Any]] = [
            (node, num_recomputed_layers * (layers_of(count) / all_layers if all_layers else count / num_layers))
            for node, count in self.own_layers[1]
        ]
        backward: Node = self.stage(again + self.backward_layers(layers_of), "backward", sends)
        if self.structure.paired:
            forward, backward = beside_other_pass(forward), beside_other_pass(backward)
        forward_node: Node = self.sharded("forward", forward) if shards else forward
        backward_node: Node = self.sharded("backward", backward) if shards else backward
        if self.structure.splits:
            return forward_node, backward_node
        return (
            beside_launches(self.structure, "forward", forward_node, self.launches["forward"]),
            beside_launches(self.structure, "backward", backward_node, self.launches["backward"]),
        )

    def backward_layers(self, layers_of: Callable[[Any], Any]) -> list[tuple[Node, Any]]:
        """The backward passes of a stage's layers, each with how many there are.

        Where gradients end in a layer, it is told apart on a single stage; of several, others than the first decide.
        """
        found: list[tuple[Node, Any]] = [(node, layers_of(count)) for _, node, count in self.own_layers[0]]
        at = next((at for at, (d, _) in enumerate(self.layers) if self.gradients.ends_in(d.kind)), None)
        if at is None:
            return found
        decoder, count = self.layers[at]
        alone = complement(above_one(pp))
        lowest = self.left.layer(found[at][0], decoder, lowest=True)
        return [
            *found[:at],
            (found[at][0], layers_of(count) * complement(alone / count)),
            (lowest, alone),
            *found[at + 1 :],
        ]

    @cached_property
    def launches(self) -> dict[str, tuple[Op, Op]]:
        """One launch and one call in each pass, which stages of other layers have in common."""
        return {phase: launches_of(phase) for phase in ("forward", "backward")}

    @cached_property
    def dealing(self) -> Dealing:
        """How layers are dealt to stages."""
        return dealing_of(self.structure)

    @cached_property
    def deciding(self) -> list[tuple[Node, Node]]:
        """Both passes through each of the stages of which one is the slowest, where stages have other layers."""
        on, sends = self.dealing.on_stage, self.later_sends
        return [self.passes_of(functools.partial(on, number=number), sends) for number in self.dealing.deciding]

    def tree(self) -> Node:
        """The whole step."""
        step = in_sequence(
            *split_schedule(self) if self.structure.splits else whole_passes(self),
            self.exchanges.tied_reduction(),
            tensor_sum(self.kernels, self.share),
            self.update(),
            self.exchanges.parameter_gather() if self.structure.zero in (1, 2) and self.structure.splits else None,
        )
        lowered: Node = step if self.structure.products == "half" else Lowered(self.structure)(step)
        return with_overheads(self.structure, lowered)

    def work(self) -> Node:
        """What all devices execute together, in no order: every micro-batch passes stages of the mean size."""
        stage = in_sequence(*self.passes(fullest=False))
        step = in_sequence(Repeat(stage, self.micro_batches), self.ends(stages=1), self.update())
        return step if self.structure.products == "half" else Lowered(self.structure)(step)

    def update(self) -> Sequence | None:
        """Upkeep of the gradients and the optimizer, unless nothing is trained."""
        return None if self.share.updated_parameters == 0 else Update(self).node()

    def first_forward(self) -> Node:
        """The first forward pass, beside which ZeRO-1 and 2 may gather the parameters that were updated in shards."""
        gather = self.exchanges.parameter_gather() if self.structure.zero in (1, 2) else None
        return self.forward if gather is None else Overlap(self.forward, gather, overlap_parameters)

    def ends(self, share: Any = 1, stages: Any = pp) -> Ends:
        """The embedding and the head; `share` of the micro-batches pass those of one device."""
        first, last = self.both_ends()
        return Ends(first, last, self.micro_batches * share, stages)

    def both_ends(self) -> tuple[Sequence, Sequence]:
        """The work of the first stage that others have not, and that of the last."""
        first, head, modules = end_parts(self.structure)
        return in_sequence(*first), in_sequence(*head, *modules)

    def end_passes(self) -> dict[str, tuple[Node, Node]]:
        """The same as passes: forward and backward of the first and of the last stage."""
        first, head, modules = end_parts(self.structure)
        ends: dict[str, Any] = {"first": first}
        if modules and apart(self.structure):
            ends["modules"] = tuple(part(node, lambda op: not of_logits(op)) for node in modules)
            modules = part(modules[0], of_logits), part(modules[1], of_logits)
        return ends | {"last": tuple(in_sequence(*both) for both in zip(head, modules or (None, None), strict=True))}

    def hosted_split(self, name: str, node: Node) -> Node:
        """A pass of a schedule that takes backward passes apart, at the host's pace where that is slower."""
        return beside_launches(self.structure, name, node, self.split_launches[name]) if self.structure.splits else node

    @cached_property
    def split_launches(self) -> dict[str, tuple[Op, Op]]:
        """One launch and one call in each pass of such a schedule."""
        return {name: launches_of(name) for name in SPLIT_PASSES}

    def waiting(self) -> Node:
        """What a device waits for: slots of micro-batches with their transfers, and rounds of those that are hidden."""
        slots = Repeat(in_sequence(*self.passes(fullest=False, sends=vpp)), self.idle_slots())
        if self.structure.schedule != "interleaved":
            return slots
        round_trip = in_sequence(self.transfer("forward"), self.transfer("backward"))
        return in_sequence(slots, Repeat(round_trip, overlap_pp * pp * less_one(vpp)))

    def idle_slots(self) -> Any:
        """Micro-batch slots that a device waits for."""
        return bubble(pp, vpp if self.structure.schedule == "interleaved" else 1)

    def sharded(self, phase: str, stage: Node) -> Node:
        """A stage with what sharded parameters and gradients send beside it, for every micro-batch.

        ZeRO-3 gathers the parameters before both passes; ZeRO-2 and 3 reduce the gradients after each backward pass
        into the shards (Rajbhandari et al. 2020 section 7).
        """
        gather, reduction = self.sent_beside(phase)
        stage = self.beside_host(phase, stage)
        node: Node = stage if gather is None else Overlap(stage, gather, overlap_gather)
        return node if reduction is None else Overlap(node, reduction, overlap_dp)

    def beside_host(self, phase: str, stage: Node) -> Node:
        """A pass with what goes to the host and comes from it."""
        for moved in self.host_moves[phase]:
            stage = Overlap(stage, moved, overlap_offload)
        return stage

    @cached_property
    def host_moves(self) -> dict[str, list[Op]]:
        """Transfers between the device and its host beside one pass of one micro-batch."""
        structure = self.structure
        if not structure.offload:
            return {"forward": [], "backward": []}
        kept = stage_activations(self.share, 1, of=moved_activations) if moves_activations(structure) else ZERO
        moves = {
            phase: transfers.beside_pass(structure, phase, self.layer_weights, kept, self.share.updated_parameters)
            for phase in ("forward", "backward")
        }
        return moves if self.gradients.through_layers else {**moves, "backward": []}

    @property
    def layer_weights(self) -> Any:
        """Parameters of the layers on the fullest device, of which it holds a shard under ZeRO-3."""
        return self.share.sharded(self.share.layer_parameters, 3)

    @property
    def trained_layer_weights(self) -> Any:
        """Of these, those that are trained."""
        return self.share.sharded(self.share.trained_layer_parameters, 3)

    def sent_beside(self, phase: str) -> tuple[Node | None, Node | None]:
        """The gathering of parameters and the reduction of gradients of each pass."""
        if phase not in self.beside:
            used = phase == "forward" or self.gradients.through_layers
            gather = (
                self.exchanges.parameter_gather(f"parameters/gather/{phase}")
                if self.structure.shards_weights and used
                else None
            )
            reduction = (
                self.exchanges.gradient_reduction() if phase == "backward" and self.structure.shards_gradients else None
            )
            self.beside[phase] = gather, reduction
        return self.beside[phase]

    def stage(self, layers: list[tuple[Node, Any]], phase: str, sends: Any) -> Sequence:
        """A device's layers for one micro-batch, and so many transfers to the next stage.

        Every device of a tensor-parallel group sends its 1/t of the activation; without sequence parallelism the
        receivers gather the parts (the scatter-gather optimisation, Narayanan et al. 2021 section 4.1).
        """
        return in_sequence(*(Repeat(layer, count) for layer, count in layers), Repeat(self.transfer(phase), sends))

    def transfer(self, phase: str) -> Sequence:
        """An activation, or its gradient if layers need it, to the next stage."""
        if phase == "backward" and not self.gradients.through_layers:
            return in_sequence()
        if phase not in self.transfers:
            message = self.decoder.stage_message
            self.transfers[phase] = in_sequence(
                self.kernels.send(f"pipeline/send/{phase}", message / tp, pipeline_group(self.structure)),
                None if self.structure.sequence_parallel else self.pipeline_gather(phase, message),
            )
        return self.transfers[phase]

    def pipeline_gather(self, phase: str, message: Any) -> Node | None:
        """The all-gather of a received activation; nothing on a single stage."""
        group = Group(1 + less_one(tp) * above_one(pp), 1)
        return self.kernels.all_gather(f"pipeline/gather/{phase}", message, group)

    @property
    def trained_parameters(self) -> Any:
        """Parameters on the fullest device that are trained."""
        dense, routed = self.share.trained
        return dense + routed

    @property
    def routed(self) -> bool:
        """Whether the model has routed experts."""
        return self.structure.architecture.routed

    @cached_property
    def exchanges(self) -> Exchanges:
        """What replicas send one another of gradients and parameters."""
        return Exchanges(self)

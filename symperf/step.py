"""The schedule tree of a training step, for one structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import counts
from . import device_counts as device
from .ends import ModelEnds
from .formulas import optimizer as opt
from .formulas import pipeline as pipe
from .formulas.atoms import Max, bubble, ceil_div, less_one, present
from .formulas.symbols import (
    batch,
    dp,
    gradient_bytes,
    hidden_size,
    micro_batch,
    num_layers,
    optimizer_bytes,
    overlap_dp,
    overlap_gather,
    pp,
    tp,
    vocab_size,
    vpp,
    weight_bytes,
)
from .kernels import Group, data_group, expert_data_group, pipeline_group
from .schedule import Ends, Idle, Node, Overlap, Repeat, Sequence
from .schedule import sequence as in_sequence
from .transformer import Decoder

if TYPE_CHECKING:
    from .structure import Structure

BUBBLE = "pipeline/bubble"
"""Path of the idle term."""


class TrainingStep:
    """One training step on the device that sets its time.

    m micro-batches pass through the pipeline's stages; the gradients of the last backward pass are reduced over the
    replicas, beside it as far as `overlap_dp` allows; then the optimizer runs. Time is

        (m - 1)(T_f + T_b) + T_f + [T_b with the reduction beside it] + bubble + ends + optimizer.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.decoder, self.layers = _decoders(structure)
        self.model_ends = ModelEnds(structure)
        self.kernels = self.decoder.kernels
        self.micro_batches = pipe.micro_batch_count(batch, micro_batch, dp)
        self.stage_parameters = device.stage_parameters(structure.architecture)
        self.forward = self.sharded("forward", self.stage([(d.layer_forward(), n) for d, n in self.layers], "forward"))
        self.backward = self.sharded(
            "backward", self.stage([(d.layer_backward(), n) for d, n in self.layers], "backward")
        )

    def tree(self) -> Node:
        """The whole step."""
        stage = in_sequence(self.forward, self.backward)
        reduction = None if self.structure.zero > 1 else self.gradient_reduction()
        last = self.backward if reduction is None else Overlap(self.backward, reduction, overlap_dp)
        ends = Ends(
            in_sequence(self.model_ends.embedding_forward(), self.model_ends.embedding_backward()),
            in_sequence(self.model_ends.head_forward(), self.model_ends.head_backward()),
            self.micro_batches,
            pp,
        )
        return in_sequence(
            self.forward,
            Repeat(stage, less_one(self.micro_batches)),
            ends,
            last,
            Idle(BUBBLE, stage, self.idle_slots()),
            self.tied_reduction(),
            self.optimizer(),
            self.parameter_gather() if self.structure.zero in (1, 2) else None,
        )

    def idle_slots(self) -> Any:
        """Micro-batch slots that a device waits for."""
        return bubble(pp, vpp if self.structure.schedule == "interleaved" else 1)

    def sharded(self, phase: str, stage: Sequence) -> Node:
        """A stage with what sharded parameters and gradients send beside it, for every micro-batch.

        ZeRO-3 gathers the parameters before both passes; ZeRO-2 and 3 reduce the gradients after each backward pass
        into the shards (Rajbhandari et al. 2020 section 7).
        """
        node: Node = stage
        gather = self.parameter_gather(f"parameters/gather/{phase}") if self.structure.zero > 2 else None
        if gather is not None:
            node = Overlap(node, gather, overlap_gather)
        reduction = self.gradient_reduction() if phase == "backward" and self.structure.zero > 1 else None
        return node if reduction is None else Overlap(node, reduction, overlap_dp)

    def stage(self, layers: list[tuple[Sequence, Any]], phase: str) -> Sequence:
        """A device's layers for one micro-batch, and for each virtual stage the transfer to the next.

        Every device of a tensor-parallel group sends its 1/t of the activation; without sequence parallelism the
        receivers gather the parts (the scatter-gather optimisation, Narayanan et al. 2021 section 4.1).
        """
        message = self.decoder.stream_message
        transfer = in_sequence(
            self.kernels.send(f"pipeline/send/{phase}", message / tp, pipeline_group()),
            None if self.structure.sequence_parallel else self.pipeline_gather(phase, message),
        )
        return in_sequence(*(Repeat(layer, count / pp) for layer, count in layers), Repeat(transfer, vpp))

    def pipeline_gather(self, phase: str, message: Any) -> Node | None:
        """The all-gather of a received activation; nothing on a single stage."""
        group = Group(1 + less_one(tp) * present(pp), 1)
        return self.kernels.all_gather(f"pipeline/gather/{phase}", message, group)

    @property
    def parameters(self) -> Any:
        """Parameters on the fullest device."""
        return self.dense_parameters + self.stage_parameters[1]

    @property
    def dense_parameters(self) -> Any:
        """Those that are no routed experts'."""
        return self.stage_parameters[0] + counts.stage_end_parameters(self.structure.architecture)

    @property
    def updated_parameters(self) -> Any:
        """Parameters whose optimizer state the device holds."""
        if not self.structure.zero:
            return self.parameters
        dense = self.dense_parameters / dp
        return dense + self.stage_parameters[1] / expert_data_group().ranks if self.routed else dense

    @property
    def routed(self) -> bool:
        """Whether the model has routed experts."""
        return self.structure.architecture.routed

    def gradient_reduction(self) -> Node | None:
        """The sum of the gradients over the replicas; with ZeRO each keeps its shard."""
        reduce = self.kernels.reduce_scatter if self.structure.zero else self.kernels.all_reduce
        dense = reduce("gradients/reduce", self.dense_parameters * gradient_bytes, data_group())
        if not self.routed or dense is None:
            return dense
        message = self.stage_parameters[1] * gradient_bytes
        return in_sequence(dense, reduce("gradients/reduce_experts", message, expert_data_group()))

    def tied_reduction(self) -> Node | None:
        """The sum of the two copies of a tied table's gradient, on the first and the last stage."""
        if not self.structure.architecture.tied_embeddings:
            return None
        message = ceil_div(vocab_size, tp) * hidden_size * gradient_bytes
        pair = Group(1 + present(pp), tp * dp * Max(1, less_one(pp)))
        return self.kernels.all_reduce("gradients/tied", message, pair)

    def optimizer(self) -> Sequence:
        """Reset of all gradients, upkeep of the device's share of them, and the update of its share of the state."""
        kernels, updated = self.kernels, self.updated_parameters
        reset = opt.gradient_reset_bytes(self.parameters, gradient_bytes)
        unscale = opt.gradient_unscale_bytes(updated, gradient_bytes)
        clip = opt.gradient_clip_bytes(updated, gradient_bytes)
        step = opt.adam_bytes(updated, weight_bytes, gradient_bytes, optimizer_bytes)
        return in_sequence(
            kernels.stream("optimizer/unscale", unscale, updated, 2) if self.structure.loss_scaling else None,
            kernels.stream("optimizer/clip", clip, updated, 3),
            kernels.stream("optimizer/adam", step, updated, 14),
            kernels.stream("optimizer/reset", reset, self.parameters, 0),
        )

    def parameter_gather(self, path: str = "parameters/gather") -> Node | None:
        """The parameters from every replica's shard."""
        gather = self.kernels.all_gather
        dense = gather(path, self.dense_parameters * weight_bytes, data_group())
        if not self.routed or dense is None:
            return dense
        message = self.stage_parameters[1] * weight_bytes
        return in_sequence(dense, gather(f"{path}_experts", message, expert_data_group()))


def _decoders(structure: Structure) -> tuple[Decoder, list[tuple[Decoder, Any]]]:
    """The layers of each kind with their count; and the first of them."""
    architecture = structure.architecture
    if architecture.uniform_dense:
        decoder = Decoder(structure)
        return decoder, [(decoder, num_layers)]
    alone = len(architecture.kinds) == 1
    found = [
        (Decoder(structure, kind, "layer" if alone else f"layer/{kind.mixer}_{kind.ffn}"), counts.count_of(kind))
        for kind in architecture.kinds
    ]
    return found[0][0], found

"""The schedule tree of a training step, for one structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import counts
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
    pp,
    tp,
    vocab_size,
    vpp,
    weight_bytes,
)
from .kernels import Group, data_group, pipeline_group
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
        self.decoder = Decoder(structure)
        self.model_ends = ModelEnds(structure)
        self.kernels = self.decoder.kernels
        self.micro_batches = pipe.micro_batch_count(batch, micro_batch, dp)
        self.forward = self.stage(self.decoder.layer_forward(), "forward")
        self.backward = self.stage(self.decoder.layer_backward(), "backward")

    def tree(self) -> Node:
        """The whole step."""
        stage = in_sequence(self.forward, self.backward)
        reduction = self.gradient_reduction()
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
            self.parameter_gather(),
        )

    def idle_slots(self) -> Any:
        """Micro-batch slots that a device waits for."""
        return bubble(pp, vpp if self.structure.schedule == "interleaved" else 1)

    def stage(self, layer: Sequence, phase: str) -> Sequence:
        """A device's layers for one micro-batch, and for each virtual stage the transfer to the next.

        Every device of a tensor-parallel group sends its 1/t of the activation; without sequence parallelism the
        receivers gather the parts (the scatter-gather optimisation, Narayanan et al. 2021 section 4.1).
        """
        message = self.decoder.stream_message
        transfer = in_sequence(
            self.kernels.send(f"pipeline/send/{phase}", message / tp, pipeline_group()),
            None if self.structure.sequence_parallel else self.pipeline_gather(phase, message),
        )
        return in_sequence(Repeat(layer, num_layers / pp), Repeat(transfer, vpp))

    def pipeline_gather(self, phase: str, message: Any) -> Node | None:
        """The all-gather of a received activation; nothing on a single stage."""
        group = Group(1 + less_one(tp) * present(pp), 1)
        return self.kernels.all_gather(f"pipeline/gather/{phase}", message, group)

    @property
    def parameters(self) -> Any:
        """Parameters on the fullest device."""
        architecture = self.structure.architecture
        return counts.stage_layer_parameters(architecture) + counts.stage_end_parameters(architecture)

    @property
    def updated_parameters(self) -> Any:
        """Parameters whose optimizer state the device holds."""
        return self.parameters / dp if self.structure.zero else self.parameters

    def gradient_reduction(self) -> Node | None:
        """The sum of the gradients over the replicas; with ZeRO each keeps its shard."""
        message = self.parameters * gradient_bytes
        reduce = self.kernels.reduce_scatter if self.structure.zero else self.kernels.all_reduce
        return reduce("gradients/reduce", message, data_group())

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

    def parameter_gather(self) -> Node | None:
        """With ZeRO, the updated parameters from every replica's shard."""
        if not self.structure.zero:
            return None
        return self.kernels.all_gather("parameters/gather", self.parameters * weight_bytes, data_group())

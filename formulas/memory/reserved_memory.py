"""What a device holds beside the tensors of a step: what nvidia-smi shows and no allocator counts as allocated."""

from __future__ import annotations

from typing import Any

from ..language.atoms import above_one
from ..language.dimension import BYTE, ONE
from ..language.formula import formula
from ..language.symbols import collective_buffer_bytes
from ..sources import NCCL_BUFFERS, PYTORCH_LOSS


@formula(
    glyph="n_{cm}",
    dimension=ONE,
    source=NCCL_BUFFERS,
    increasing="cp dp ep pp tp",
)
def communicator_count(tp: Any, pp: Any, dp: Any, cp: Any, ep: Any) -> Any:
    """Communicators of a device: one for each kind of group that has more than one rank.

    Assumes: groups over both replicas and parts of sequences are those of the replicas; groups of one pair of ranks
    (embeddings of both ends) share buffers with their pipeline's.

    Source: Megatron-LM, megatron/core/parallel_state.py, has one group of each; NCCL gives each its own buffers.

    >>> communicator_count(8, 4, 2, 1, 1)
    3
    """
    return above_one(tp) + above_one(pp) + above_one(dp) + above_one(cp) + above_one(ep)


@formula(
    glyph="W_{com}",
    dimension=BYTE,
    source=NCCL_BUFFERS,
    increasing="collective_buffer_bytes communicators",
    curvature="affine",
)
def communicator_memory(communicators: Any) -> Any:
    """Bytes that the library of collectives holds for its communicators: n W_n.

    Assumes: every communicator has been used, which is when NCCL allocates its buffers.

    Source: NVIDIA/nccl issues 964 and 986: each communicator has its own, the more the more channels it has, and no
    more beyond two nodes.

    >>> from sympy import symbols
    >>> communicator_memory(symbols("n"))
    collective_buffer_bytes*n
    """
    return communicators * collective_buffer_bytes


@formula(
    glyph="M_{ls}",
    dimension=BYTE,
    source=PYTORCH_LOSS,
    increasing="element_bytes rows vocab_size",
    curvature="affine",
)
def loss_working_memory(rows: Any, vocab_size: Any, element_bytes: Any) -> Any:
    """Bytes that the loss needs at its peak beside the logits that are kept: m V w_ls.

    Assumes: one micro-batch's loss at a time. What is kept are probabilities in FP32; the peak is in the backward pass,
    where the gradients of the loss stand beside them.

    Source: torch/distributed/tensor/parallel/loss.py: beside the log-probabilities stand a tensor of zeros that takes
    -1 at the targets, a sum with the probabilities and its product with the gradient, each in FP32.

    >>> from sympy import symbols
    >>> loss_working_memory(*symbols("m V w"))
    V*m*w
    """
    return rows * vocab_size * element_bytes

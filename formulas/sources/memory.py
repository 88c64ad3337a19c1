"""The references of what takes memory beside a step's tensors: allocators, drivers, collectives, losses."""

from __future__ import annotations

from .references import add as _add
from .references import arxiv as _arxiv

GMLAKE = _arxiv(
    "guo2024gmlake",
    "2401.08156",
    "GMLake: Efficient and Transparent GPU Memory Defragmentation for Large-scale DNN Training with Virtual Memory "
    "Stitching",
    "Guo, Cong and others",
    2024,
)
NCCL_BUFFERS = _add(
    "nccl2023buffers",
    "misc",
    "NCCL: GPU memory consumption of communicators",
    "{NCCL project}",
    2023,
    howpublished=r"\url{https://github.com/NVIDIA/nccl/issues/964}",
)
PYTORCH_LOSS = _add(
    "pytorch2025loss",
    "misc",
    "PyTorch: loss_parallel, the cross-entropy of split logits",
    "{PyTorch project}",
    2025,
    howpublished="torch/distributed/tensor/parallel/loss.py, https://github.com/pytorch/pytorch",
)

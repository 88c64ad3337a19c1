"""State and activations that the host keeps: transfers over its link, and the optimizer on its processor."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, complement
from ..language.dimension import BYTE, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    gradient_bytes,
    host_bandwidth,
    host_efficiency,
    host_matrix_rate,
    host_memory_bandwidth,
    host_memory_efficiency,
    nvme_bandwidth,
    nvme_efficiency,
)
from ..sources import KTRANSFORMERS, ZERO_INFINITY, ZERO_OFFLOAD


@formula(
    glyph="T_{host}",
    dimension=SECOND,
    source=ZERO_OFFLOAD,
    increasing="traffic_bytes",
    decreasing="host_bandwidth host_efficiency",
    curvature="affine",
)
def host_transfer_time(traffic_bytes: Any) -> Any:
    """Time to move bytes between a device and its host: Q / (beta_h eta_h).

    Assumes: pinned memory, and large transfers; both directions at once do not slow each other.

    Source: Ren et al. 2021 section 4: transfers over PCIe.

    >>> from sympy import symbols
    >>> host_transfer_time(symbols("Q"))
    Q/(host_bandwidth*host_efficiency)
    """
    return traffic_bytes / (host_bandwidth * host_efficiency)


@formula(
    glyph="T_{nvme}",
    dimension=SECOND,
    source=ZERO_INFINITY,
    increasing="traffic_bytes",
    decreasing="nvme_bandwidth nvme_efficiency",
    curvature="affine",
)
def drive_time(traffic_bytes: Any) -> Any:
    """Time to read or write bytes on the host's drives: Q / (beta_nv eta_nv).

    Assumes: large blocks, asynchronously, in parallel over drives; beta_nv is one device's share; reading and writing
    take the drives one after the other.

    Source: Rajbhandari et al. 2021 section 6.3: DeepNVMe reaches nearly the peak of the drives.

    >>> from sympy import symbols
    >>> drive_time(symbols("Q"))
    Q/(nvme_bandwidth*nvme_efficiency)
    """
    return traffic_bytes / (nvme_bandwidth * nvme_efficiency)


@formula(
    glyph="T_{tier}",
    dimension=SECOND,
    source=ZERO_INFINITY,
    increasing="traffic_bytes",
    decreasing="host_bandwidth host_efficiency nvme_bandwidth nvme_efficiency",
    curvature="convex",
)
def drive_transfer_time(traffic_bytes: Any) -> Any:
    """Time to move bytes between a device and its host's drives: the longer of both ways, max(T_host, T_nvme).

    Assumes: blocks pass the host's memory as in a pipeline, so that drives and link work at once.

    Source: Rajbhandari et al. 2021 section 6.2: transfers from drives and over the host's link overlap.

    >>> from sympy import symbols
    >>> sorted(map(str, drive_transfer_time(symbols("Q")).args))
    ['Q/(host_bandwidth*host_efficiency)', 'Q/(nvme_bandwidth*nvme_efficiency)']
    """
    return Max(host_transfer_time(traffic_bytes), drive_time(traffic_bytes))


@formula(
    glyph="T_{cpu}",
    dimension=SECOND,
    source=ZERO_OFFLOAD,
    increasing="traffic_bytes",
    decreasing="host_memory_bandwidth host_memory_efficiency",
    curvature="affine",
)
def host_update_time(traffic_bytes: Any) -> Any:
    """Time of an update by the host's processor, bound by its memory: Q / (beta_hm eta_hm).

    Assumes: a vectorised Adam on all cores, which moves each operand once; beta_hm is one device's share.

    Source: Ren et al. 2021 section 5.1: CPU-Adam is bound by memory bandwidth.

    >>> from sympy import symbols
    >>> host_update_time(symbols("Q"))
    Q/(host_memory_bandwidth*host_memory_efficiency)
    """
    return traffic_bytes / (host_memory_bandwidth * host_memory_efficiency)


@formula(
    glyph="T_{cpu,e}",
    dimension=SECOND,
    source=KTRANSFORMERS,
    increasing="traffic_bytes work_flops",
    decreasing="host_memory_bandwidth host_matrix_rate host_memory_efficiency",
    curvature="convex",
)
def host_products_time(work_flops: Any, traffic_bytes: Any) -> Any:
    """Time of products by the host's processors: max(Q / (beta_hm eta_hm), W / F_h).

    Assumes: weights are read once from the host's memory, whose bandwidth and processors are one device's share;
    products run at the rate that tuned kernels sustain.

    Source: Chen et al. 2025, arithmetic-intensity-aware kernels: AMX for experts of many tokens, AVX-512 for few.

    >>> from sympy import symbols
    >>> sorted(map(str, host_products_time(*symbols("W Q")).args))
    ['Q/(host_memory_bandwidth*host_memory_efficiency)', 'W/host_matrix_rate']
    """
    return Max(traffic_bytes / (host_memory_bandwidth * host_memory_efficiency), work_flops / host_matrix_rate)


@formula(
    glyph="M_h",
    dimension=BYTE,
    source=ZERO_OFFLOAD,
    increasing="element_bytes gradient_bytes parameters",
    curvature="convex",
)
def host_optimizer_memory(parameters: Any, element_bytes: Any) -> Any:
    """Bytes of the host for an offloaded optimizer: its state and the gradients that it reads, N (w + w_g).

    Assumes: w bytes of state a parameter; gradients arrive in the format in which they were accumulated.

    Source: Ren et al. 2021 section 4.1: gradients and optimizer state on the host.

    >>> from sympy import symbols
    >>> host_optimizer_memory(*symbols("N w"))
    N*(gradient_bytes + w)
    """
    return parameters * (element_bytes + gradient_bytes)


@formula(
    glyph="M_{buf}",
    dimension=BYTE,
    source=ZERO_INFINITY,
    increasing="layer_bytes overlap",
    curvature="affine",
)
def transfer_buffer_memory(layer_bytes: Any, overlap: Any) -> Any:
    """Bytes of a device for two layers on their way to or from the host: 2 A_l phi.

    Assumes: double buffering: one layer is used while the next is fetched; phi is the part that the host keeps.

    Source: Rajbhandari et al. 2021 section 6.2: prefetching overlaps with the layer before.

    >>> from sympy import symbols
    >>> transfer_buffer_memory(*symbols("A phi"))
    2*A*phi
    """
    return 2 * layer_bytes * overlap


@formula(
    glyph="n_h",
    dimension=ONE,
    source=ZERO_OFFLOAD,
    decreasing="overlap",
    curvature="concave",
)
def remaining_share(overlap: Any) -> Any:
    """What stays on the device of which the host keeps the part phi: 1 - phi.

    Assumes: a part of every tensor, or of the tensors in that proportion.

    Source: Ren et al. 2021 section 4: state is partitioned between the device and the host.

    >>> from sympy import symbols
    >>> remaining_share(symbols("phi"))
    complement(phi)
    """
    return complement(overlap)

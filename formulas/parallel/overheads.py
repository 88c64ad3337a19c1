"""What software and chance add to a step: launches by the host, and the wait for the slowest of many devices."""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import log2
from ..language.dimension import ONE, SECOND
from ..language.formula import formula
from ..language.symbols import host_collective_latency, host_latency, jitter
from ..sources import BOUCHERON, PYTORCH_GRAPHS


@formula(
    glyph="T_{launch}",
    dimension=SECOND,
    source=PYTORCH_GRAPHS,
    increasing="host_latency kernels",
    curvature="affine",
)
def host_launch_time(kernels: Any) -> Any:
    """Time that the host needs to launch N_ker kernels one after the other: N_ker lambda_h.

    The host runs ahead of the device; where the device is done sooner, it waits for the host, so that a pass takes the
    longer of the two.

    Assumes: one thread launches; every kernel costs the host the same.

    Source: Nguyen et al. 2021, Accelerating PyTorch with CUDA graphs: with small work the launches bind.

    >>> from sympy import symbols
    >>> host_launch_time(symbols("K"))
    K*host_latency
    """
    return kernels * host_latency


@formula(
    glyph="T_{calls}",
    dimension=SECOND,
    source=PYTORCH_GRAPHS,
    increasing="calls host_collective_latency",
    curvature="affine",
)
def host_call_time(calls: Any) -> Any:
    """Time that the host needs to call N_c collectives one after the other: N_call lambda_hc.

    A call takes longer than the launch of a kernel: tensors are checked and copied into one buffer, events join two
    streams, and the library queues its kernel.

    Assumes: one thread calls; every collective costs the host the same, whatever its message and ranks; it does not
    wait for the other ranks' hosts.

    Source: as `host_launch_time`; PyTorch's torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp records an event on the
    current stream, waits for it on NCCL's, launches, and records another.

    >>> from sympy import symbols
    >>> host_call_time(symbols("N"))
    N*host_collective_latency
    """
    return calls * host_collective_latency


@formula(
    glyph="s_{max}",
    dimension=ONE,
    source=BOUCHERON,
    increasing="devices jitter",
    curvature="concave",
)
def straggler_share(devices: Any) -> Any:
    """What the slowest of N devices needs beyond the mean one, as a part of it: at most 1.178 sigma_j sqrt(log2 N).

    Assumes: the devices' times are independent and normal with the standard deviation sigma_j, and a step ends when
    the slowest is done. The expected maximum of N such deviations is at most sigma_j sqrt(2 ln N), and tends to it;
    sqrt(2 ln 2) is 1.1774..., rounded up.

    Source: Boucheron, Lugosi and Massart 2013, section 2.5: the expected maximum of N sub-Gaussian variables.

    >>> from sympy import symbols
    >>> straggler_share(1), straggler_share(symbols("N"))
    (0, 589*jitter*sqrt(log2(N))/500)
    """
    return sympy.Rational(1178, 1000) * jitter * sympy.sqrt(log2(devices))

"""How the work is laid out."""

from __future__ import annotations

from .entry import FRACTION, add

tp = add("plan", "tp", "t", "Tensor-parallel degree.")
pp = add("plan", "pp", "p", "Pipeline-parallel degree: stages.")
dp = add("plan", "dp", "d", "Data-parallel degree: replicas.")
vpp = add("plan", "vpp", "v", "Virtual pipeline stages (model chunks) per device.")
overlap_tp = add(
    "plan",
    "overlap_tp",
    r"\phi_t",
    "Part of the overlappable tensor-parallel traffic of the backward pass that runs beside its products.",
    domain=FRACTION,
)
overlap_dp = add(
    "plan",
    "overlap_dp",
    r"\phi_d",
    "Part of the last backward pass beside which gradients may be reduced.",
    domain=FRACTION,
)

"""How the work is laid out."""

from __future__ import annotations

from .entry import FRACTION, add

tp = add("plan", "tp", "t", "Tensor-parallel degree.")
pp = add("plan", "pp", "p", "Pipeline-parallel degree: stages.")
dp = add("plan", "dp", "d", "Data-parallel degree: replicas.")
vpp = add("plan", "vpp", "v", "Virtual pipeline stages (model chunks) per device.")
cp = add("plan", "cp", "c", "Context-parallel degree: parts of a sequence.")
ep = add("plan", "ep", "e", "Expert-parallel degree: devices over which a layer's experts are dealt.")
expert_tp = add("plan", "expert_tp", "t_e", "Tensor-parallel degree inside an expert.")
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
overlap_gather = add(
    "plan",
    "overlap_gather",
    r"\phi_g",
    "Part of the gathering of sharded parameters that may run beside the layers before.",
    domain=FRACTION,
)
overlap_parameters = add(
    "plan",
    "overlap_parameters",
    r"\phi_p",
    "Part of the gathering of updated parameters (ZeRO-1 and 2) that may run beside the first forward pass.",
    domain=FRACTION,
)
overlap_pp = add(
    "plan",
    "overlap_pp",
    r"\phi_s",
    "Part of the transfers between stages that may run beside passes.",
    domain=FRACTION,
)
overlap_ep = add(
    "plan",
    "overlap_ep",
    r"\phi_e",
    "Part of the transfers between experts that may run beside the other work of a layer.",
    domain=FRACTION,
)
zero_shards = add("plan", "zero_shards", "d_z", "Replicas that share one copy of the state in hybrid sharding.")
first_stage_layers = add("plan", "first_stage_layers", "L_{first}", "Layers of the first stage.")
last_stage_layers = add("plan", "last_stage_layers", "L_{last}", "Layers of the last stage.")
vocab_multiple = add(
    "plan", "vocab_multiple", "k_V", "Rows of which each device's part of a padded vocabulary is a multiple."
)
node_limit = add("plan", "node_limit", "n_{dom}", "Scale-up domains that may hold the experts of one token.")
dcp = add("plan", "dcp", "t_c", "Devices of a tensor-parallel group that share one copy of a sequence's cache.")
redundant_experts = add(
    "plan", "redundant_experts", "R_e", "Copies of experts that a layer has beside each expert once."
)

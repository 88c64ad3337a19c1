"""Formal parameters of formulas, which a composition always replaces; and the unit of work."""

from __future__ import annotations

from ..dimension import BANDWIDTH, BYTE, FLOP, RATE, SECOND
from .entry import FRACTION, POSITIVE, ZERO_UP, add

rows = add("formal", "rows", "m", "Rows of a product's result.")
columns = add("formal", "columns", "n", "Columns of a product's result.")
inner = add("formal", "inner", "k", "Length of the contracted dimension.")
groups = add("formal", "groups", "g", "Independent products of one shape in one kernel.")
tile_rows = add("formal", "tile_rows", "T_m", "Rows of a tile.")
tile_columns = add("formal", "tile_columns", "T_k", "Columns of a tile.")
left_bytes = add("formal", "left_bytes", "w_l", "Bytes of an element of the left factor.", BYTE, POSITIVE)
right_bytes = add("formal", "right_bytes", "w_r", "Bytes of an element of the right factor.", BYTE, POSITIVE)
result_bytes = add("formal", "result_bytes", "w_y", "Bytes moved per element of the result.", BYTE, POSITIVE)
element_bytes = add("formal", "element_bytes", "w", "Bytes of an element.", BYTE, POSITIVE)
traffic_bytes = add("formal", "traffic_bytes", "Q", "Bytes that a kernel moves.", BYTE, ZERO_UP)
work_flops = add("formal", "work_flops", "W_f", "FLOPs that a kernel executes.", FLOP, ZERO_UP)
rate = add("formal", "rate", "R", "Attainable rate.", RATE, POSITIVE, "compute")
bandwidth = add("formal", "bandwidth", "R_b", "Attainable bandwidth.", BANDWIDTH, POSITIVE, "memory")
elements = add("formal", "elements", "N_x", "Elements of an activation on one device.", domain=POSITIVE)
tokens = add("formal", "tokens", "T", "Tokens of a micro-batch on one device.", domain=POSITIVE)
width = add("formal", "width", "h'", "Features of a token on one device.", domain=POSITIVE)
heads = add("formal", "heads", "a'", "Query heads on one device.", domain=POSITIVE)
key_value_heads = add("formal", "key_value_heads", "a'_{kv}", "Key-value heads on one device.", domain=POSITIVE)
context = add("formal", "context", "l", "Keys that a query may see.", domain=POSITIVE)
parameters = add("formal", "parameters", "N", "Parameters on one device.", domain=POSITIVE)
in_features = add("formal", "in_features", "n_i", "Inputs of a linear layer.")
out_features = add("formal", "out_features", "n_o", "Outputs of a linear layer.")
message_bytes = add(
    "formal", "message_bytes", "n_b", "Bytes of a message, as its collective defines it.", BYTE, ZERO_UP
)
ranks = add("formal", "ranks", "q", "Ranks of a collective.")
inner_ranks = add("formal", "inner_ranks", "q_u", "Ranks of a group inside one scale-up domain.")
outer_ranks = add("formal", "outer_ranks", "q_o", "Scale-up domains that a group spans.")
stride = add("formal", "stride", "r", "Distance in rank order between neighbours of a group.")
link_bandwidth = add(
    "formal",
    "link_bandwidth",
    r"\beta_l",
    "Attainable link bandwidth, one direction.",
    BANDWIDTH,
    POSITIVE,
    "network",
)
link_latency = add("formal", "link_latency", r"\alpha", "Latency of a hop.", SECOND, ZERO_UP, "network")
half_bytes = add("formal", "half_bytes", r"\nu_b", "Message size at half the attainable bandwidth.", BYTE, ZERO_UP)
micro_batches = add("formal", "micro_batches", "m_b", "Micro-batches of a step, per replica.")
stages = add("formal", "stages", "p'", "Stages of a pipeline.")
forward_time = add("formal", "forward_time", "T_f", "Forward time of one micro-batch on one device.", SECOND, POSITIVE)
backward_time = add(
    "formal", "backward_time", "T_b", "Backward time of one micro-batch on one device.", SECOND, ZERO_UP
)
input_gradient_time = add(
    "formal",
    "input_gradient_time",
    "T_i",
    "Time of the input gradients of one micro-batch on one device.",
    SECOND,
    POSITIVE,
)
weight_gradient_time = add(
    "formal",
    "weight_gradient_time",
    "T_g",
    "Time of the weight gradients of one micro-batch on one device.",
    SECOND,
    POSITIVE,
)
paired_time = add(
    "formal",
    "paired_time",
    "T_{fb}",
    "Time of a forward and a backward pass that run beside each other on one device.",
    SECOND,
    POSITIVE,
)
fill_time = add(
    "formal", "fill_time", "T_{fill}", "Time of one micro-batch through all stages, both ways.", SECOND, ZERO_UP
)
bottleneck_time = add(
    "formal", "bottleneck_time", "T_{max}", "Time of one micro-batch on the slowest stage, both ways.", SECOND, ZERO_UP
)
before_time = add(
    "formal", "before_time", "P_{bef}", "Time of one micro-batch before a stage, both ways or one.", SECOND, ZERO_UP
)
stage_time = add("formal", "stage_time", "T_{stg}", "Time of a micro-batch on one device, or one way.", SECOND, ZERO_UP)
chunk_time = add("formal", "chunk_time", "T_{chk}", "Time of one pass of a virtual stage.", SECOND, ZERO_UP)
round_time = add(
    "formal", "round_time", "R_c", "Time from a device's virtual stage to its next one, one way.", SECOND, ZERO_UP
)
wait_time = add("formal", "wait_time", "T_{wait}", "Time that a device waits in all rounds.", SECOND, ZERO_UP)
first_forward_time = add(
    "formal", "first_forward_time", "T_{f,c1}", "Forward time of a device's first virtual stage.", SECOND, ZERO_UP
)
first_backward_time = add(
    "formal", "first_backward_time", "T_{b,c1}", "Backward time of a device's first virtual stage.", SECOND, ZERO_UP
)
last_forward_time = add(
    "formal", "last_forward_time", "T_{f,cv}", "Forward time of a device's last virtual stage.", SECOND, ZERO_UP
)
last_backward_time = add(
    "formal", "last_backward_time", "T_{b,cv}", "Backward time of a device's last virtual stage.", SECOND, ZERO_UP
)
before_forward_time = add(
    "formal", "before_forward_time", "P_f", "Forward time of one micro-batch before a stage.", SECOND, ZERO_UP
)
before_gradient_time = add(
    "formal",
    "before_gradient_time",
    "P_i",
    "Time of the input gradients of one micro-batch before a stage.",
    SECOND,
    ZERO_UP,
)
before_paired_time = add(
    "formal", "before_paired_time", "P_{fb}", "Time of one pair of passes on each device outside.", SECOND, ZERO_UP
)
behind_time = add(
    "formal", "behind_time", "Y_{beh}", "Time of one micro-batch behind a stage, both ways.", SECOND, ZERO_UP
)
behind_gradient_time = add(
    "formal",
    "behind_gradient_time",
    "Y_i",
    "Time of the input gradients of one micro-batch behind a stage.",
    SECOND,
    ZERO_UP,
)
fill_forward_time = add(
    "formal", "fill_forward_time", "T_{fill,f}", "Forward time of one micro-batch in all stages.", SECOND, ZERO_UP
)
fill_gradient_time = add(
    "formal",
    "fill_gradient_time",
    "T_{fill,i}",
    "Time of the input gradients of one micro-batch in all stages.",
    SECOND,
    ZERO_UP,
)
first_weight_gradient_time = add(
    "formal",
    "first_weight_gradient_time",
    "T_{g,1}",
    "Time of the weight gradients of one micro-batch on the first stage.",
    SECOND,
    POSITIVE,
)
far_forward_time = add(
    "formal", "far_forward_time", "T_{f'}", "Forward time of a device's stage of the other way.", SECOND, POSITIVE
)
far_backward_time = add(
    "formal", "far_backward_time", "T_{b'}", "Backward time of a device's stage of the other way.", SECOND, POSITIVE
)
far_weight_gradient_time = add(
    "formal",
    "far_weight_gradient_time",
    "T_{g'}",
    "Time of the weight gradients of a device's stage of the other way.",
    SECOND,
    POSITIVE,
)
far_paired_time = add(
    "formal",
    "far_paired_time",
    "T_{fb'}",
    "Time of a pair of passes whose forward pass is of the other way's stage.",
    SECOND,
    POSITIVE,
)
far_input_gradient_time = add(
    "formal",
    "far_input_gradient_time",
    "T_{i'}",
    "Time of the input gradients of a device's stage of the other way.",
    SECOND,
    POSITIVE,
)
begin_time = add("formal", "begin_time", "T_{beg}", "Time until the first gradient of a device.", SECOND, ZERO_UP)
middle_begin_time = add(
    "formal", "middle_begin_time", "T_{beg,m}", "Time until the first pair of the middle device.", SECOND, ZERO_UP
)
middle_paired_time = add(
    "formal", "middle_paired_time", "T_{fb,m}", "Time of a pair of passes on the middle device.", SECOND, POSITIVE
)
middle_backward_time = add(
    "formal", "middle_backward_time", "T_{b,m}", "Backward time of the middle device's far stage.", SECOND, POSITIVE
)
middle_end_time = add(
    "formal", "middle_end_time", "T_{e,m}", "Time from the middle device's last pair to the end.", SECOND, ZERO_UP
)
end_time = add(
    "formal", "end_time", "T_{fin}", "Time from the last pair of passes to the end of a step.", SECOND, ZERO_UP
)
layer_time = add("formal", "layer_time", "T_{lay}", "Time of one micro-batch in one layer, both ways.", SECOND, ZERO_UP)
first_layers = add("formal", "first_layers", "L_1", "Layers of the first stage.", domain=ZERO_UP)
middle_layers = add("formal", "middle_layers", "L_{mid}", "Layers of each stage between the ends.", domain=ZERO_UP)
last_layers = add("formal", "last_layers", "L_p", "Layers of the last stage.", domain=ZERO_UP)
first_time = add("formal", "first_time", "T_1", "Extra time of the first stage per micro-batch.", SECOND, ZERO_UP)
last_time = add("formal", "last_time", "T_p", "Extra time of the last stage per micro-batch.", SECOND, ZERO_UP)
work_time = add("formal", "work_time", "T_{comp}", "Time of computation that can hide a transfer.", SECOND, ZERO_UP)
transfer_time = add("formal", "transfer_time", "T_c", "Time of a transfer.", SECOND, ZERO_UP)
product_time = add(
    "formal", "product_time", "T_{clk}", "Time of a product at the clock of a short load.", SECOND, ZERO_UP
)
start_time = add("formal", "start_time", "T_0", "Time that a kernel costs beside its work.", SECOND, ZERO_UP)
overlap = add("formal", "overlap", r"\phi", "Part of the transfer that may run beside the work.", domain=FRACTION)
step_time = add("formal", "step_time", "T_s", "Time of a training step.", SECOND, POSITIVE)
model_flops = add("formal", "model_flops", "M_f", "FLOPs of the model for one step, all devices.", FLOP, POSITIVE)
stream_bytes = add(
    "formal",
    "stream_bytes",
    "w_{res}",
    "Bytes of an element of a residual stream wider than activations.",
    BYTE,
    POSITIVE,
)
kernels = add("formal", "kernels", "N_{ker}", "Kernels launched one after the other.")
calls = add("formal", "calls", "N_{call}", "Collectives called one after the other.", domain=ZERO_UP)
devices = add("formal", "devices", r"D", "Devices in use.")
layer_bytes = add(
    "formal", "layer_bytes", "A_l", "Activation bytes kept by a layer for one micro-batch.", BYTE, ZERO_UP
)
in_flight = add("formal", "in_flight", "m_f", "Micro-batches whose activations a stage holds.", domain=POSITIVE)

# Parts of a sequence, experts on several devices, sharded state, switches that reduce

block_time = add(
    "formal", "block_time", "T_a", "Time of attention between two whole parts of a sequence.", SECOND, ZERO_UP
)
causal_share = add(
    "formal", "causal_share", r"\kappa", "Part of the pairs of two parts that the mask leaves.", domain=POSITIVE
)
query_bytes = add("formal", "query_bytes", "Q_q", "Bytes of a device's queries.", BYTE, ZERO_UP)
key_value_bytes = add("formal", "key_value_bytes", "Q_{kv}", "Bytes of a device's keys and values.", BYTE, ZERO_UP)
device_imbalance = add(
    "formal",
    "device_imbalance",
    r"\chi_e",
    "Tokens of the device with most, of an expert-parallel group, over the mean; 1 where balanced.",
    domain=POSITIVE,
)
unit_parameters = add(
    "formal", "unit_parameters", "N_U", "Parameters that are gathered at once, as one unit.", domain=POSITIVE
)
units = add("formal", "units", "U", "Units that are gathered one after another.")
gathered_units = add("formal", "gathered_units", "U_g", "Units whose parameters a device holds at once.")
shards = add("formal", "shards", "q_z", "Devices over which state is sharded.")
gather_time = add("formal", "gather_time", "T_{gat}", "Time to gather one unit's parameters.", SECOND, ZERO_UP)
scatter_time = add(
    "formal",
    "scatter_time",
    "T_{sca}",
    "Time to pass on one unit's gradients, or reduce and scatter them.",
    SECOND,
    ZERO_UP,
)
collective_time = add("formal", "collective_time", "T_{coll}", "Measured time of a collective.", SECOND, POSITIVE)
flop = add(
    "unit",
    "flop",
    r"\mathrm{FLOP}",
    "The unit of work: one floating-point operation; always 1.",
    FLOP,
    POSITIVE,
)
choices = add("formal", "choices", r"n_{ch}", "Choices of an expert by a token that a device sorts.", domain=ZERO_UP)
places = add("formal", "places", r"n_{pl}", "Devices or domains among which the experts of a token may lie.")
chosen_domains = add("formal", "chosen_domains", "q_c", "Scale-up domains among which the experts of a token may lie.")

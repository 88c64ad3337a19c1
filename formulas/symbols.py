"""The vocabulary: every symbol of every formula, once, with glyph, dimension, domain and sentence.

Glyphs follow the Megatron papers (arXiv 2104.04473, 2205.05198): b s h a L V and t p d c e. A symbol's `name` is
also its name in Python, TOML, the command line and JSON. A symbol with a `resource` is a rate or a latency of that
resource: time is homogeneous of degree one in latencies and reciprocal rates, which makes exact shares possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from .dimension import BANDWIDTH, BYTE, FLOP, ONE, RATE, SECOND, Dimension


@dataclass(frozen=True)
class Entry:
    """One symbol of the vocabulary."""

    symbol: Any
    glyph: str
    dimension: Dimension
    domain: str
    sentence: str
    group: str
    resource: str | None

    @property
    def name(self) -> str:
        """The symbol's name, the same everywhere."""
        return str(self.symbol)


SYMBOLS: dict[str, Entry] = {}

COUNT = "integer >= 1"
FRACTION = "0 to 1"
POSITIVE = "> 0"
ZERO_UP = ">= 0"


def _add(
    group: str,
    name: str,
    glyph: str,
    sentence: str,
    dimension: Dimension = ONE,
    domain: str = COUNT,
    resource: str | None = None,
) -> Any:
    if name in SYMBOLS:
        raise LookupError(f"symbol {name} is defined twice")
    positive = domain in (COUNT, POSITIVE)
    symbol = sympy.Symbol(name, **({"positive": True} if positive else {"nonnegative": True}))
    SYMBOLS[name] = Entry(symbol, glyph, dimension, domain, sentence, group, resource)
    return symbol


# --- the model
hidden_size = _add("model", "hidden_size", "h", "Width of the residual stream.")
num_layers = _add("model", "num_layers", "L", "Transformer layers of the model.")
num_attention_heads = _add("model", "num_attention_heads", "a", "Query heads of a layer.")
num_key_value_heads = _add(
    "model", "num_key_value_heads", "a_{kv}", "Key-value heads of a layer: a for MHA, 1 for MQA."
)
head_dim = _add("model", "head_dim", "d_h", "Width of one head.")
intermediate_size = _add("model", "intermediate_size", "f", "Inner width of the MLP.")
vocab_size = _add("model", "vocab_size", "V", "Rows of the token embedding.")
position_rows = _add(
    "model", "position_rows", "P", "Rows of the learned position table, 0 without one.", domain=ZERO_UP
)

# --- the work
batch = _add("work", "batch", "B", "Sequences in a global batch.")
micro_batch = _add("work", "micro_batch", "b", "Sequences in one micro-batch of one replica.")
sequence = _add("work", "sequence", "s", "Tokens in a sequence.")

# --- the plan
tp = _add("plan", "tp", "t", "Tensor-parallel degree.")
pp = _add("plan", "pp", "p", "Pipeline-parallel degree: stages.")
dp = _add("plan", "dp", "d", "Data-parallel degree: replicas.")
vpp = _add("plan", "vpp", "v", "Virtual pipeline stages (model chunks) per device.")
overlap_tp = _add(
    "plan",
    "overlap_tp",
    r"\phi_t",
    "Part of the overlappable tensor-parallel traffic of the backward pass that runs beside its products.",
    domain=FRACTION,
)
overlap_dp = _add(
    "plan",
    "overlap_dp",
    r"\phi_d",
    "Part of the last backward pass beside which gradients may be reduced.",
    domain=FRACTION,
)

# --- number formats: bytes of one element
activation_bytes = _add("format", "activation_bytes", "w_x", "Bytes of an activation element.", BYTE, POSITIVE)
weight_bytes = _add("format", "weight_bytes", "w_w", "Bytes of a weight.", BYTE, POSITIVE)
gradient_bytes = _add("format", "gradient_bytes", "w_g", "Bytes of an accumulated gradient.", BYTE, POSITIVE)
optimizer_bytes = _add(
    "format",
    "optimizer_bytes",
    "w_o",
    "Bytes of optimizer state per parameter: master weight and two moments for Adam.",
    BYTE,
    ZERO_UP,
)
mask_bytes = _add("format", "mask_bytes", "w_m", "Bytes of an element of a dropout mask.", BYTE, POSITIVE)
statistic_bytes = _add(
    "format", "statistic_bytes", "w_s", "Bytes of a softmax statistic, a logit of the loss.", BYTE, POSITIVE
)
index_bytes = _add("format", "index_bytes", "w_i", "Bytes of a token index.", BYTE, POSITIVE)

# --- the device
matrix_rate = _add("device", "matrix_rate", "F", "Dense peak of the matrix units.", RATE, POSITIVE, "compute")
vector_rate = _add("device", "vector_rate", "F_v", "Peak of the vector units in FP32.", RATE, POSITIVE, "compute")
memory_bandwidth = _add(
    "device", "memory_bandwidth", r"\beta", "Peak bandwidth of device memory.", BANDWIDTH, POSITIVE, "memory"
)
memory_capacity = _add("device", "memory_capacity", "C", "Bytes of device memory.", BYTE, POSITIVE)
l2_bandwidth = _add("device", "l2_bandwidth", r"\beta_2", "Peak bandwidth of the L2 cache.", BANDWIDTH, POSITIVE, "l2")
l2_capacity = _add("device", "l2_capacity", "C_2", "Bytes of the L2 cache.", BYTE, POSITIVE)
compute_units = _add("device", "compute_units", "u", "Units that each compute one tile at a time (SMs, CUs).")
launch_latency = _add("device", "launch_latency", r"\lambda", "Start-up time of one kernel.", SECOND, ZERO_UP, "launch")
scale_up_size = _add("device", "scale_up_size", "n_u", "Devices in one scale-up domain (a node).")
scale_up_bandwidth = _add(
    "device",
    "scale_up_bandwidth",
    r"\beta_u",
    "Scale-up link bandwidth of a device, one direction.",
    BANDWIDTH,
    POSITIVE,
    "scale_up",
)
scale_up_latency = _add(
    "device", "scale_up_latency", r"\alpha_u", "Latency of a scale-up hop.", SECOND, ZERO_UP, "scale_up"
)
scale_out_bandwidth = _add(
    "device",
    "scale_out_bandwidth",
    r"\beta_o",
    "Scale-out bandwidth of a device, one direction.",
    BANDWIDTH,
    POSITIVE,
    "scale_out",
)
scale_out_latency = _add(
    "device", "scale_out_latency", r"\alpha_o", "Latency of a scale-out hop.", SECOND, ZERO_UP, "scale_out"
)

# --- attainable parts of the peaks
matrix_efficiency = _add(
    "efficiency", "matrix_efficiency", r"\eta", "Sustained part of the matrix peak.", domain=POSITIVE
)
attention_efficiency = _add(
    "efficiency",
    "attention_efficiency",
    r"\eta_a",
    "Part of the matrix peak that a fused attention kernel sustains, forward.",
    domain=POSITIVE,
)
attention_backward_efficiency = _add(
    "efficiency", "attention_backward_efficiency", r"\eta_{a'}", "The same, backward.", domain=POSITIVE
)
vector_efficiency = _add(
    "efficiency", "vector_efficiency", r"\eta_v", "Sustained part of the vector peak.", domain=POSITIVE
)
memory_efficiency = _add(
    "efficiency",
    "memory_efficiency",
    r"\eta_\beta",
    "Sustained part of the memory bandwidth.",
    domain=POSITIVE,
)
l2_efficiency = _add("efficiency", "l2_efficiency", r"\eta_2", "Sustained part of the L2 bandwidth.", domain=POSITIVE)
scale_up_efficiency = _add(
    "efficiency",
    "scale_up_efficiency",
    r"\eta_u",
    "Sustained part of the scale-up bandwidth.",
    domain=POSITIVE,
)
scale_out_efficiency = _add(
    "efficiency",
    "scale_out_efficiency",
    r"\eta_o",
    "Sustained part of the scale-out bandwidth.",
    domain=POSITIVE,
)
scale_up_half_bytes = _add(
    "efficiency",
    "scale_up_half_bytes",
    r"\nu_u",
    "Message size at which a scale-up collective reaches half its bandwidth.",
    BYTE,
    ZERO_UP,
)
scale_out_half_bytes = _add("efficiency", "scale_out_half_bytes", r"\nu_o", "The same for scale-out.", BYTE, ZERO_UP)
tile_long = _add("efficiency", "tile_long", "T_l", "Long side of the largest matrix-product tile.")
tile_wide = _add("efficiency", "tile_wide", "T_w", "Its short side, and the side of the square tile.")
tile_narrow = _add("efficiency", "tile_narrow", "T_n", "Short side of the smallest tile.")
workspace_bytes = _add(
    "efficiency",
    "workspace_bytes",
    "W",
    "Memory that the framework and its libraries hold beside the model.",
    BYTE,
    ZERO_UP,
)

# --- formal parameters of formulas, which a composition always replaces
rows = _add("formal", "rows", "m", "Rows of a product's result.")
columns = _add("formal", "columns", "n", "Columns of a product's result.")
inner = _add("formal", "inner", "k", "Length of the contracted dimension.")
groups = _add("formal", "groups", "g", "Independent products of one shape in one kernel.")
tile_rows = _add("formal", "tile_rows", "T_m", "Rows of a tile.")
tile_columns = _add("formal", "tile_columns", "T_k", "Columns of a tile.")
left_bytes = _add("formal", "left_bytes", "w_l", "Bytes of an element of the left factor.", BYTE, POSITIVE)
right_bytes = _add("formal", "right_bytes", "w_r", "Bytes of an element of the right factor.", BYTE, POSITIVE)
result_bytes = _add("formal", "result_bytes", "w_y", "Bytes moved per element of the result.", BYTE, POSITIVE)
element_bytes = _add("formal", "element_bytes", "w", "Bytes of an element.", BYTE, POSITIVE)
traffic_bytes = _add("formal", "traffic_bytes", "Q", "Bytes that a kernel moves.", BYTE, ZERO_UP)
work_flops = _add("formal", "work_flops", "W_f", "FLOPs that a kernel executes.", FLOP, ZERO_UP)
rate = _add("formal", "rate", "R", "Attainable rate.", RATE, POSITIVE, "compute")
bandwidth = _add("formal", "bandwidth", "R_b", "Attainable bandwidth.", BANDWIDTH, POSITIVE, "memory")
elements = _add("formal", "elements", "N_x", "Elements of an activation on one device.", domain=POSITIVE)
tokens = _add("formal", "tokens", "T", "Tokens of a micro-batch on one device.", domain=POSITIVE)
width = _add("formal", "width", r"\omega", "Features of a token on one device.", domain=POSITIVE)
heads = _add("formal", "heads", "a'", "Query heads on one device.", domain=POSITIVE)
key_value_heads = _add("formal", "key_value_heads", "a'_{kv}", "Key-value heads on one device.", domain=POSITIVE)
context = _add("formal", "context", "l", "Keys that a query may see.", domain=POSITIVE)
parameters = _add("formal", "parameters", "N", "Parameters on one device.", domain=POSITIVE)
in_features = _add("formal", "in_features", "n_i", "Inputs of a linear layer.")
out_features = _add("formal", "out_features", "n_o", "Outputs of a linear layer.")
message_bytes = _add(
    "formal", "message_bytes", "n_b", "Bytes of a message, as its collective defines it.", BYTE, ZERO_UP
)
ranks = _add("formal", "ranks", "q", "Ranks of a collective.")
inner_ranks = _add("formal", "inner_ranks", "q_u", "Ranks of a group inside one scale-up domain.")
outer_ranks = _add("formal", "outer_ranks", "q_o", "Scale-up domains that a group spans.")
stride = _add("formal", "stride", "r", "Distance in rank order between neighbours of a group.")
link_bandwidth = _add(
    "formal",
    "link_bandwidth",
    r"\beta_l",
    "Attainable link bandwidth, one direction.",
    BANDWIDTH,
    POSITIVE,
    "network",
)
link_latency = _add("formal", "link_latency", r"\alpha", "Latency of a hop.", SECOND, ZERO_UP, "network")
half_bytes = _add("formal", "half_bytes", r"\nu", "Message size at half the attainable bandwidth.", BYTE, ZERO_UP)
micro_batches = _add("formal", "micro_batches", "m", "Micro-batches of a step, per replica.")
stages = _add("formal", "stages", "p'", "Stages of a pipeline.")
forward_time = _add("formal", "forward_time", "T_f", "Forward time of one micro-batch on one device.", SECOND, ZERO_UP)
backward_time = _add(
    "formal", "backward_time", "T_b", "Backward time of one micro-batch on one device.", SECOND, ZERO_UP
)
first_time = _add("formal", "first_time", "T_1", "Extra time of the first stage per micro-batch.", SECOND, ZERO_UP)
last_time = _add("formal", "last_time", "T_p", "Extra time of the last stage per micro-batch.", SECOND, ZERO_UP)
work_time = _add("formal", "work_time", "T_w", "Time of computation that can hide a transfer.", SECOND, ZERO_UP)
transfer_time = _add("formal", "transfer_time", "T_c", "Time of a transfer.", SECOND, ZERO_UP)
overlap = _add("formal", "overlap", r"\phi", "Part of the transfer that may run beside the work.", domain=FRACTION)
step_time = _add("formal", "step_time", "T_s", "Time of a training step.", SECOND, POSITIVE)
model_flops = _add("formal", "model_flops", "M_f", "FLOPs of the model for one step, all devices.", FLOP, POSITIVE)
devices = _add("formal", "devices", r"D", "Devices in use.")
layer_bytes = _add(
    "formal", "layer_bytes", "A_l", "Activation bytes kept by a layer for one micro-batch.", BYTE, ZERO_UP
)
in_flight = _add("formal", "in_flight", "m_f", "Micro-batches whose activations a stage holds.", domain=POSITIVE)

flop = _add(
    "unit",
    "flop",
    r"\mathrm{FLOP}",
    "The unit of work: one floating-point operation; always 1.",
    FLOP,
    POSITIVE,
)


def dimensions() -> dict[Any, Dimension]:
    """The dimension of every symbol."""
    return {entry.symbol: entry.dimension for entry in SYMBOLS.values()}


def strip_units(expr: Any) -> Any:
    """`expr` with the unit of work set to 1, as it is printed and compiled."""
    return sympy.sympify(expr, strict=True).xreplace({flop: sympy.S.One})


def latex(expr: Any) -> str:
    """`expr` in LaTeX, with the glyphs of the vocabulary."""
    names = {entry.symbol: entry.glyph for entry in SYMBOLS.values()}
    return str(sympy.latex(strip_units(expr), symbol_names=names))

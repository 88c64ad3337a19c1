"""The device and its network."""

from __future__ import annotations

from ..dimension import BANDWIDTH, BYTE, RATE, SECOND
from .entry import POSITIVE, ZERO_UP, add

matrix_rate = add("device", "matrix_rate", "F", "Dense peak of the matrix units.", RATE, POSITIVE, "compute")
vector_rate = add("device", "vector_rate", "F_v", "Peak of the vector units in FP32.", RATE, POSITIVE, "compute")
memory_bandwidth = add(
    "device", "memory_bandwidth", r"\beta", "Peak bandwidth of device memory.", BANDWIDTH, POSITIVE, "memory"
)
memory_capacity = add("device", "memory_capacity", "C", "Bytes of device memory.", BYTE, POSITIVE)
l2_bandwidth = add("device", "l2_bandwidth", r"\beta_2", "Peak bandwidth of the L2 cache.", BANDWIDTH, POSITIVE, "l2")
l2_capacity = add("device", "l2_capacity", "C_2", "Bytes of the L2 cache.", BYTE, POSITIVE)
compute_units = add("device", "compute_units", "u", "Units that each compute one tile at a time (SMs, CUs).")
launch_latency = add("device", "launch_latency", r"\lambda", "Start-up time of one kernel.", SECOND, ZERO_UP, "launch")
split_latency = add(
    "device",
    "split_latency",
    r"\lambda_k",
    "Time of the kernel that adds the parts of a thin product which the library split along the contracted side.",
    SECOND,
    ZERO_UP,
    "launch",
)
scale_up_size = add("device", "scale_up_size", "n_u", "Devices in one scale-up domain (a node).")
scale_up_bandwidth = add(
    "device",
    "scale_up_bandwidth",
    r"\beta_u",
    "Scale-up link bandwidth of a device, one direction.",
    BANDWIDTH,
    POSITIVE,
    "scale_up",
)
scale_up_latency = add(
    "device", "scale_up_latency", r"\alpha_u", "Latency of a scale-up hop.", SECOND, ZERO_UP, "scale_up"
)
scale_out_bandwidth = add(
    "device",
    "scale_out_bandwidth",
    r"\beta_o",
    "Scale-out bandwidth of a device, one direction.",
    BANDWIDTH,
    POSITIVE,
    "scale_out",
)
scale_out_latency = add(
    "device", "scale_out_latency", r"\alpha_o", "Latency of a scale-out hop.", SECOND, ZERO_UP, "scale_out"
)

"""The symbols that a system binds: what values they may take, and the rules for those that it does not give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .kernel_constants import FAMILIES, FORMAT_CONSTANTS
from .limits import Limits as Limits
from .limits import Quantity as Quantity
from .physical_units import BYTE_ENERGY, ENERGY_PRICE, FACTOR, FLOP_ENERGY, HOURLY, INTENSITY, LIFETIME
from .units import BANDWIDTH, BYTES, COUNT, FRACTION, POWER, PRICE, RATE, TIME

if TYPE_CHECKING:
    from collections.abc import Mapping

PRECISIONS: Final = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4")


_EFFICIENCY = Limits(FRACTION, 1e-4, 1.0)
_UP, _OUT = "scale_up_bandwidth", "scale_out_bandwidth"
MATRIX_RATE: Final = Limits(RATE, 1e9, 1e18)
SYMBOLS: Final[Mapping[str, Limits]] = {
    "memory_bandwidth": Limits(BANDWIDTH, 1e9, 1e16),
    "memory_capacity": Limits(BYTES, 1e8, 1e15),
    "vector_rate": Limits(RATE, 1e9, 1e17),
    "l2_bandwidth": Limits(BANDWIDTH, 1e9, 1e17),
    "l2_capacity": Limits(BYTES, 1e5, 1e13),
    "compute_units": Limits(COUNT, 1, 1e6),
    "scale_up_size": Limits(COUNT, 1, 1e6, _UP),
    "scale_up_bandwidth": Limits(BANDWIDTH, 1e7, 1e15, "scale_up_size"),
    "scale_up_latency": Limits(TIME, 1e-10, 1e-2, _UP, zero=True),
    "scale_out_bandwidth": Limits(BANDWIDTH, 1e7, 1e15, _UP),
    "scale_out_latency": Limits(TIME, 1e-10, 1e-1, _OUT, zero=True),
    "host_bandwidth": Limits(BANDWIDTH, 1e8, 1e13),
    "host_memory_bandwidth": Limits(BANDWIDTH, 1e8, 1e13),
    "nvme_bandwidth": Limits(BANDWIDTH, 1e7, 1e12),
    "launch_latency": Limits(TIME, 1e-10, 1e-2, zero=True),
    "split_latency": Limits(TIME, 1e-10, 1e-2, "l2_bandwidth or inner_latency", zero=True),
    "power": Limits(POWER, 1.0, 1e6),
    "static_power": Limits(POWER, 0.1, 1e6, zero=True),
    "matrix_energy": Limits(FLOP_ENERGY, 1e-16, 1e-8),
    "vector_energy": Limits(FLOP_ENERGY, 1e-16, 1e-8),
    "memory_energy": Limits(BYTE_ENERGY, 1e-15, 1e-6),
    "l2_energy": Limits(BYTE_ENERGY, 1e-16, 1e-6, "l2_bandwidth"),
    "scale_up_energy": Limits(BYTE_ENERGY, 1e-15, 1e-6, _UP),
    "scale_out_energy": Limits(BYTE_ENERGY, 1e-15, 1e-6, _OUT),
    "price": Limits(PRICE, 1.0, 1e8),
    "price_per_hour": Limits(HOURLY, 1e-7, 1.0),
    "lifetime": Limits(LIFETIME, 3600.0, 3e9),
    "electricity_price": Limits(ENERGY_PRICE, 1e-12, 1e-3, zero=True),
    "facility_overhead": Limits(FACTOR, 1.0, 10.0),
    "grid_intensity": Limits(INTENSITY, 1e-12, 1e-5, zero=True),
    "matrix_efficiency": _EFFICIENCY,
    "fp8_efficiency": _EFFICIENCY,
    "fp4_efficiency": _EFFICIENCY,
    "ridge_efficiency": Limits(FRACTION, 0.5, 1.0),
    "sustained_efficiency": _EFFICIENCY,
    "vector_efficiency": _EFFICIENCY,
    "memory_efficiency": _EFFICIENCY,
    "l2_efficiency": Limits(FRACTION, 1e-4, 1.0, "l2_bandwidth"),
    "reread_efficiency": Limits(FRACTION, 1e-4, 1.0, "l2_bandwidth"),
    "attention_efficiency": _EFFICIENCY,
    "attention_backward_efficiency": _EFFICIENCY,
    "scale_up_efficiency": Limits(FRACTION, 1e-4, 1.0, _UP),
    "scale_out_efficiency": Limits(FRACTION, 1e-4, 1.0, _OUT),
    "switch_efficiency": Limits(FRACTION, 1e-4, 1.0, _UP),
    "scale_up_half_bytes": Limits(BYTES, 1.0, 1e10, _UP, zero=True),
    "scale_out_half_bytes": Limits(BYTES, 1.0, 1e10, _OUT, zero=True),
    "collective_latency": Limits(TIME, 1e-10, 1e-1, _UP, zero=True),
    "peer_latency": Limits(TIME, 1e-10, 1e-1, _UP, zero=True),
    "peer_efficiency": Limits(FRACTION, 1e-4, 1.0, _UP),
    **{name: limits for family in FAMILIES.values() for name, limits in family.items()},
    **FORMAT_CONSTANTS,
}


_BY = "benchmarks/calibration"
# The default rules: value, low, high, and the statistic that they are (printed by the scripts named).
ASSUMED: Final[Mapping[str, tuple[float, float, float, str]]] = {
    "launch_latency": (3.73e-6, 0.0, 8.5e-6, f"mean of A100 4.35 us and H100 3.10 us, {_BY}/gemm.py"),
    "split_latency": (1.5e-6, 1.5e-6, 1.65e-6, f"median of A100, H100, H200, {_BY}/gemm.py"),
    "matrix_efficiency": (0.676, 0.53, 0.766, f"median of 12 parts, 10th to 90th percentile, {_BY}/gemm.py"),
    "ridge_efficiency": (0.69, 0.56, 0.88, f"median of A100, H100, A40, {_BY}/gemm.py"),
    "vector_efficiency": (0.965, 0.94, 0.99, "mean of A100 0.989 and GH200 0.941, OpenCL-Benchmark"),
    "memory_efficiency": (0.807, 0.671, 0.899, f"median of 18 parts, 10th to 90th percentile, {_BY}/bandwidth.py"),
    "l2_efficiency": (0.705, 0.429, 0.982, f"mean of A100 0.429 and H800 0.982, {_BY}/bandwidth.py"),
    "reread_efficiency": (0.375, 0.32, 0.5, f"mean of A100 0.429 and H200 0.32, {_BY}/bandwidth.py"),
    "attention_efficiency": (0.548, 0.333, 0.73, f"median of A100, H100, B200, {_BY}/attention.py"),
    "attention_backward_efficiency": (0.486, 0.225, 0.63, f"median of A100, H100, B200, {_BY}/attention.py"),
    "scale_up_efficiency": (0.78, 0.698, 0.822, f"median of A100, H100, H200, B200, MI300X, {_BY}/collectives.py"),
    "scale_up_half_bytes": (23.6e6, 6.92e6, 39.3e6, f"median of A100, H100, H200, B200, {_BY}/collectives.py"),
    "scale_up_latency": (2.5e-6, 1.95e-6, 7.32e-6, f"median of A100, H100, H200, B200, {_BY}/collectives.py"),
    "collective_latency": (41e-6, 30e-6, 60e-6, f"mean of A100 44 us and H100 38 us, {_BY}/collectives.py"),
    "scale_out_efficiency": (0.739, 0.649, 0.835, f"median of A100, H100, B200 on EFA, {_BY}/collectives.py"),
    "scale_out_half_bytes": (11.2e6, 3.86e6, 13.3e6, f"median of A100, H100, B200 on EFA, {_BY}/collectives.py"),
    "scale_out_latency": (
        8e-6,
        3.7e-6,
        48e-6,
        f"geometric middle of the link (3.7 us, DSISCA-003) and NCCL over EFA (17 us), {_BY}/README.md",
    ),
}
_VECTOR_SHARE: Final = {
    "bf16": 16,
    "fp16": 16,
    "tf32": 8,
    "fp8": 32,
    "int8": 32,
    "fp6": 32,
    "fp4": 64,
    "int4": 64,
}


def vector_rate(rates: Mapping[str, Quantity]) -> Quantity:
    """Derive FP32 FLOP/s outside the matrix units, where it is not given.

    The 16-bit matrix rates of known parts are 8 (V100, MI300X) to 28 (B200) times their vector rates.
    """
    if "fp32" in rates:
        return Quantity(rates["fp32"].value, "derived: equal to matrix_rate.fp32")
    precision, share = next((p, n) for p, n in _VECTOR_SHARE.items() if p in rates)
    rate = rates[precision].value
    return Quantity(rate / share, f"derived: matrix_rate.{precision} / {share}", rate / share / 2, rate / share * 2)

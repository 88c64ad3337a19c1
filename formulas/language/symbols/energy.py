"""Energy: what an operation, a byte and a second cost; most are figures of a device."""

from __future__ import annotations

from ..dimension import BYTE, FLOP, JOULE, KILOGRAM, ONE, POWER
from .entry import POSITIVE, ZERO_UP, add

matrix_energy = add(
    "device", "matrix_energy", "e_F", "Energy of a FLOP on the matrix units, operands included.", JOULE / FLOP, POSITIVE
)
attention_energy = add(
    "device",
    "attention_energy",
    "e_a",
    "Energy of a FLOP of those products that stay in 16 bits where the others have a narrower format.",
    JOULE / FLOP,
    POSITIVE,
)
vector_energy = add("device", "vector_energy", "e_v", "Energy of a FLOP on the vector units.", JOULE / FLOP, POSITIVE)
memory_energy = add(
    "device", "memory_energy", r"e_\beta", "Energy to move a byte to or from device memory.", JOULE / BYTE, POSITIVE
)
l2_energy = add("device", "l2_energy", "e_2", "Energy to read a byte of the L2 cache.", JOULE / BYTE, POSITIVE)
scale_up_energy = add(
    "device", "scale_up_energy", "e_u", "Energy of a byte that a device sends to its domain.", JOULE / BYTE, POSITIVE
)
scale_out_energy = add(
    "device",
    "scale_out_energy",
    "e_o",
    "Energy of a byte that a device sends beyond its domain.",
    JOULE / BYTE,
    POSITIVE,
)
static_power = add("device", "static_power", "P_s", "Power that a device draws whatever it does.", POWER, ZERO_UP)
power = add("device", "power", "P_b", "Power that a device may draw, its board power.", POWER, POSITIVE)
facility_overhead = add(
    "device",
    "facility_overhead",
    r"\pi",
    "Energy of the data centre over that of its computers (PUE).",
    domain=POSITIVE,
)
grid_intensity = add(
    "device", "grid_intensity", "g_c", "Carbon dioxide of a joule of electricity.", KILOGRAM / JOULE, ZERO_UP
)

flop_energy = add("formal", "flop_energy", "e_W", "Energy of a FLOP.", JOULE / FLOP, POSITIVE)
dynamic_energy = add("formal", "dynamic_energy", "E_d", "Energy of operations and bytes.", JOULE, ZERO_UP)
device_energy = add("formal", "device_energy", "E_{tot}", "Energy that devices take.", JOULE, ZERO_UP)
produced_tokens = add("formal", "produced_tokens", "N_t", "Tokens that are trained on or generated.", ONE, POSITIVE)
power_cap = add("formal", "power_cap", "P_c", "Power beyond the static power that may be drawn.", POWER, POSITIVE)

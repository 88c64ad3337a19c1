"""Formal parameters of chips: areas, voltages, clocks, cells, links, and what they draw."""

from __future__ import annotations

from ..dimension import AREA, BYTE, FLOP, JOULE, METRE, ONE, POWER, SECOND, VOLT
from .entry import FRACTION, POSITIVE, ZERO_UP, add

PER_SECOND = ONE / SECOND

area_budget = add("formal", "area_budget", "A_{bud}", "Area that one kind of unit may take.", AREA, POSITIVE)
unit_area = add("formal", "unit_area", "A_1", "Area of one unit.", AREA, POSITIVE)
power_budget = add("formal", "power_budget", "P_{bud}", "Power that one kind of unit may draw.", POWER, POSITIVE)
nominal_power = add(
    "formal", "nominal_power", "P_0", "Power of all units at the nominal voltage and clock.", POWER, POSITIVE
)
nominal_frequency = add("formal", "nominal_frequency", "f_0", "Clock at the nominal voltage.", PER_SECOND, POSITIVE)
nominal_overdrive = add("formal", "nominal_overdrive", "U_0", "Nominal voltage less the threshold.", VOLT, POSITIVE)
threshold_voltage = add("formal", "threshold_voltage", "V_t", "Threshold voltage.", VOLT, POSITIVE)
margin_voltage = add(
    "formal", "margin_voltage", "V_m", "What a voltage must keep above the threshold, at least.", VOLT, POSITIVE
)
frequency = add("formal", "frequency", "f_{clk}", "Clock.", PER_SECOND, POSITIVE)
limit_frequency = add("formal", "limit_frequency", "f_m", "Highest clock.", PER_SECOND, POSITIVE)
cores = add("formal", "cores", "N_c", "Units that each compute a fixed work in a cycle.")
cycle_flops = add("formal", "cycle_flops", "c_f", "FLOPs of one unit in one cycle.", FLOP, POSITIVE)

bank_bytes = add("formal", "bank_bytes", "b_k", "Bytes of a bank.", BYTE, POSITIVE)
cell_area = add("formal", "cell_area", "a_b", "Area of the cells of a byte.", AREA / BYTE, POSITIVE)
cell_share = add(
    "formal", "cell_share", r"\eta_{cell}", "Part of an array that is cells, not circuitry.", domain=POSITIVE
)
sharers = add("formal", "sharers", "n_{port}", "Groups of cores that each have a port at every bank.")
port_area = add("formal", "port_area", "a_p", "Area of a port.", AREA, ZERO_UP)
banks = add("formal", "banks", "N_b", "Banks.")
stored_bytes = add("formal", "stored_bytes", "C_s", "Bytes that a memory holds.", BYTE, POSITIVE)
static_density = add("formal", "static_density", "p_s", "Power that a stored byte leaks.", POWER / BYTE, ZERO_UP)
byte_energy = add("formal", "byte_energy", "e_b", "Energy to move a byte.", JOULE / BYTE, POSITIVE)
cycle_bytes = add("formal", "cycle_bytes", "c_b", "Bytes that a memory gives in a cycle.", BYTE, POSITIVE)

die_area = add("formal", "die_area", "A_d", "Area of a die.", AREA, POSITIVE)
stack_area = add("formal", "stack_area", "A_{stk}", "Area of a memory stack on the package.", AREA, POSITIVE)
package_space = add("formal", "package_space", "A_p", "Area of the package beside the die.", AREA, POSITIVE)
controller_area = add("formal", "controller_area", "a_m", "Area of a stack's controller.", AREA, POSITIVE)
edge_length = add("formal", "edge_length", r"\ell", "Length of a die's four edges.", METRE, POSITIVE)
edge_share = add("formal", "edge_share", r"\psi", "Part of the edges that some links may take.", domain=FRACTION)
link_density = add("formal", "link_density", r"\delta", "Links that leave a unit of edge.", ONE / METRE, POSITIVE)
link_area = add("formal", "link_area", "a_l", "Area of a link's circuits.", AREA, POSITIVE)
stacks = add("formal", "stacks", "N_s", "Memory stacks.")
stack_links = add("formal", "stack_links", "n_{stk}", "Data links of a stack.")
links = add("formal", "links", "n_{lnk}", "Links that a chip drives.")
beat_bytes = add("formal", "beat_bytes", "b_l", "Bytes that a link carries in a cycle: an eighth.", BYTE, POSITIVE)

"""Cost: wafers, yield, packages, and what an hour of a device costs."""

from __future__ import annotations

from ..dimension import AREA, BYTE, DOLLAR, JOULE, METRE, ONE, SECOND
from .entry import FRACTION, POSITIVE, ZERO_UP, add

price = add("device", "price", "C_d", "Price of a device with its share of the machine.", DOLLAR, POSITIVE)
price_per_hour = add(
    "device", "price_per_hour", "c_h", "Rent of a device: dollars per second of use.", DOLLAR / SECOND, POSITIVE
)
lifetime = add("device", "lifetime", "L_d", "Time over which a device's price is written off.", SECOND, POSITIVE)
electricity_price = add(
    "device", "electricity_price", "c_e", "Price of a joule of electricity.", DOLLAR / JOULE, ZERO_UP
)

wafer_price = add("formal", "wafer_price", "C_w", "Price of a processed wafer.", DOLLAR, POSITIVE)
wafer_diameter = add("formal", "wafer_diameter", "d_w", "Diameter of a wafer.", METRE, POSITIVE)
defect_density = add("formal", "defect_density", "D_0", "Defects in a unit of area.", ONE / AREA, ZERO_UP)
clustering = add("formal", "clustering", r"\alpha_c", "How little defects cluster.", domain=POSITIVE)
wafer_dies = add("formal", "wafer_dies", "N_w", "Whole dies of a wafer.", domain=POSITIVE)
die_yield = add("formal", "die_yield", "Y", "Part of the dies that work, above 0.", domain=POSITIVE)
dies = add("formal", "dies", "N_d", "Dies in a package.")
die_price = add("formal", "die_price", "C_y", "Price of a die that works.", DOLLAR, POSITIVE)
memory_price = add("formal", "memory_price", "c_m", "Price of a byte of memory.", DOLLAR / BYTE, ZERO_UP)
package_price = add("formal", "package_price", "C_p", "Price of a package and its assembly.", DOLLAR, ZERO_UP)
test_price = add("formal", "test_price", "C_t", "Price of the test of a package.", DOLLAR, ZERO_UP)
bond_yield = add("formal", "bond_yield", "y_b", "Part of the bonds that hold.", domain=FRACTION)
package_yield = add("formal", "package_yield", "Y_b", "Part of the packages that work, above 0.", domain=POSITIVE)
bonds = add("formal", "bonds", "N_y", "Dies and stacks that are bonded to a package.")
second_price = add("formal", "second_price", "c_{sec}", "Price of a device for a second.", DOLLAR / SECOND, ZERO_UP)
busy_time = add("formal", "busy_time", "T_d", "Time that devices are taken.", SECOND, POSITIVE)
run_steps = add("formal", "run_steps", "N_r", "Steps of a training run.")

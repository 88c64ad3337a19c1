"""The closed forms of serving beside simulations of forty random settings, as a table: errors over the simulation's.

Iterations take affine times, so that only the queueing is compared. Odd settings are closed loops, even ones Poisson;
these once more under software that prefills what waits before it decodes again.

    python benchmarks/serving_simulation.py [SETTINGS]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.random_settings import Setting, compare, draw, prefilled_first

REQUESTS = 12000


def main(count: int = 40) -> None:
    """Print a row a setting, and the largest errors where the page on serving states some."""
    settings = [draw(seed) for seed in range(count)]
    tell(settings)
    print("\nprompts first, in iterations of their own")
    tell([prefilled_first(setting) for setting in settings if not setting.closed])


def tell(settings: list[Setting]) -> None:
    """A row a setting, and the largest errors."""
    worst: dict[str, float] = {}
    print(f"{'setting':66} {'used':>5} {'TTFT':>7} {'TPOT':>7} {'req/s':>7}")
    for setting in settings:
        found = compare(setting, REQUESTS)
        errors = found.errors
        cells = " ".join(f"{100 * errors[name]:+6.1f}%" for name in ("ttft", "tpot", "throughput"))
        print(f"{setting.name:66} {found.used:5.2f} {cells}", flush=True)
        for name, error in errors.items():
            if found.used <= (0.8 if name == "ttft" else 0.9):
                worst[name] = max(worst.get(name, 0.0), abs(error))
    parts = ", ".join(f"{name} {100 * error:.1f} %" for name, error in worst.items())
    print(f"largest errors, TTFT up to 0.8 of the capacity, the others up to 0.9: {parts}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

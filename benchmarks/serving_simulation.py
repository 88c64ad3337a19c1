"""The closed forms of serving beside simulations of forty random settings, as a table: errors over the simulation's.

Iterations take affine times, so that only the queueing is compared. Odd settings are closed loops, even ones Poisson;
these once more under software that prefills what waits before it decodes again.

    python benchmarks/serving_simulation.py [SETTINGS] [--smoke]

`--smoke` simulates two settings briefly, and fails where the closed form is far off.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.random_settings import Setting, compare, draw, prefilled_first

REQUESTS = 12000
FAR = 0.25
"""An error that no short simulation of a quiet setting explains."""


def main() -> None:
    """Print a row a setting, and the largest errors where the page on serving states some."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=40, help="settings")
    parser.add_argument("--smoke", action="store_true", help="two settings, briefly")
    options = parser.parse_args()
    settings = [draw(seed) for seed in range(2 if options.smoke else options.count)]
    if options.smoke:
        worst = tell(settings, 1000)
        if not worst or max(worst.values()) > FAR:
            raise AssertionError(f"errors of {worst}")
        return
    tell(settings)
    print("\nprompts first, in iterations of their own")
    tell([prefilled_first(setting) for setting in settings if not setting.closed])


def tell(settings: list[Setting], requests: int = REQUESTS) -> dict[str, float]:
    """Print a row a setting, and the largest errors."""
    worst: dict[str, float] = {}
    print(f"{'setting':66} {'used':>5} {'TTFT':>7} {'TPOT':>7} {'req/s':>7}")
    for setting in settings:
        found = compare(setting, requests)
        errors = found.errors
        cells = " ".join(f"{100 * errors[name]:+6.1f}%" for name in ("ttft", "tpot", "throughput"))
        print(f"{setting.name:66} {found.used:5.2f} {cells}", flush=True)
        for name, error in errors.items():
            if found.used <= (0.8 if name == "ttft" else 0.9):
                worst[name] = max(worst.get(name, 0.0), abs(error))
    parts = ", ".join(f"{name} {100 * error:.1f} %" for name, error in worst.items())
    print(f"largest errors, TTFT up to 0.8 of the capacity, the others up to 0.9: {parts}")
    return worst


if __name__ == "__main__":
    main()

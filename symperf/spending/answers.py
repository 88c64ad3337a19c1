"""What a run spends, as named trees: joules by resource, dollars, carbon dioxide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KILOWATT_HOUR = 3.6e6


@dataclass(frozen=True)
class Energy:
    """Joules of a run, all devices together.

    Attributes:
        basis: "resources" (energies of FLOPs and bytes, and static power) or "board" (board power all the time: an
            upper bound, since the system tells no energies).
        joules: by resource; of a board "board" alone.
        work: FLOPs and bytes by resource; empty of a board, whose energy does not depend on it.
        missing: resources whose work has no energy on this system, so that the total leaves it out.
        tokens: trained on or generated.
        time: seconds.
        devices: in use.
        mean_power: watts of a device.
        power: watts that a device may draw, or None.
        capped_time: seconds if the clock falls until the mean power fits; None of a board, or without a power.
        facility_overhead: energy of the data centre over that of the devices; None if not known.
    """

    basis: str
    joules: dict[str, float]
    work: dict[str, float]
    missing: tuple[str, ...]
    tokens: float
    time: float
    devices: float
    mean_power: float
    power: float | None
    capped_time: float | None
    facility_overhead: float | None

    @property
    def total(self) -> float:
        """Joules of all devices."""
        return sum(self.joules.values())

    @property
    def per_token(self) -> float:
        """Joules of a token."""
        return self.total / self.tokens

    @property
    def facility(self) -> float | None:
        """Joules of the data centre, or None where its overhead is not known."""
        return None if self.facility_overhead is None else self.total * self.facility_overhead

    @property
    def exceeds_power(self) -> bool:
        """Whether the run would draw more than its devices may: its clock falls, and `capped_time` is its time."""
        return self.capped_time is not None and self.capped_time > self.time * (1 + 1e-12)

    def as_json(self) -> dict[str, Any]:
        """The object under `energy_j`."""
        return {
            "total": self.total,
            "per_token": self.per_token,
            "basis": self.basis,
            "by_resource": dict(self.joules),
            "missing": list(self.missing),
            "mean_power_w": self.mean_power,
            "facility_total": self.facility,
            "capped_time_s": self.capped_time,
        }

    def __str__(self) -> str:
        lines = [f"energy = {self.total:.4g} J, {self.per_token:.4g} J a token ({self.basis})"]
        lines += [
            f"  {name:10} {joules:.4g} J  {joules / self.total:.1%}" for name, joules in self.joules.items() if joules
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Cost:
    """Dollars of a run, all devices together.

    Attributes:
        basis: "rent" (a price per hour) or "owned" (a price written off over a lifetime, and electricity).
        source: where the price comes from.
        dollars: of the run.
        tokens: trained on or generated.
        devices: in use.
        time: seconds.
    """

    basis: str
    source: str
    dollars: float
    tokens: float
    devices: float
    time: float

    @property
    def per_million_tokens(self) -> float:
        """Dollars of a million tokens."""
        return self.dollars / self.tokens * 1e6

    @property
    def device_hour(self) -> float:
        """Dollars of an hour of a device."""
        return self.dollars / self.devices / self.time * 3600

    def of_tokens(self, tokens: float) -> float:
        """Dollars of a training run, or of a service, of so many tokens at this rate."""
        return self.dollars / self.tokens * tokens

    def as_json(self) -> dict[str, Any]:
        """The object under `cost`."""
        return {
            "dollars": self.dollars,
            "dollars_per_million_tokens": self.per_million_tokens,
            "dollars_per_device_hour": self.device_hour,
            "basis": self.basis,
            "source": self.source,
        }

    def __str__(self) -> str:
        return (
            f"cost = {self.dollars:.4g} USD, {self.per_million_tokens:.4g} USD a million tokens, "
            f"{self.device_hour:.4g} USD a device hour ({self.basis}: {self.source})"
        )


@dataclass(frozen=True)
class Carbon:
    """Carbon dioxide of a run's electricity.

    Attributes:
        kilograms: of the run.
        tokens: trained on or generated.
        intensity: kilograms of a kilowatt-hour.
        source: where the intensity comes from.
    """

    kilograms: float
    tokens: float
    intensity: float
    source: str

    @property
    def per_million_tokens(self) -> float:
        """Kilograms of a million tokens."""
        return self.kilograms / self.tokens * 1e6

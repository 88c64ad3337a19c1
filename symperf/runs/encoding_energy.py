"""Work and energy of the encoders of images beside those of a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .encoding import EncodedSize, Encoding


def with_encoder(spent: dict[str, float], encoding: Encoding) -> dict[str, float]:
    """The work and energy of an inference, with those of the encoder's pass; static energy is that of the whole time.

    Args:
        spent: of the language model, its static energy for the time of both.
        encoding: the pass.
    """
    found = dict(spent)
    for size in encoding.sizes:
        for name, value in _of_pass(size).items():
            found[name] = found.get(name, 0.0) + value
    dynamic = sum(value for name, value in found.items() if name.startswith("energy/")) - found["energy/static"]
    devices = float(encoding.run.plan.devices)
    power_cap = encoding.run._spending_values()["power_cap"]
    return found | {
        "energy": dynamic + found["energy/static"],
        "capped_time": max(encoding.run.value("time"), dynamic / (devices * power_cap)),
    }


def _of_pass(size: EncodedSize) -> dict[str, float]:
    """Work by resource of all devices and its energy; products are whole on each device."""
    encoder = size.encoder
    found = {
        name: value
        for name, value in encoder._spent.items()
        if name.startswith(("work/", "energy/")) and name != "energy/static"
    }
    rows = [each.row(each.product.name, 1.0) for each in size.products]
    devices = float(encoder.plan.devices)
    for resource, amount in (("matrix", sum(r.flops for r in rows)), ("memory", sum(r.bytes for r in rows))):
        energy = encoder.spending_figures(f"{resource}_energy")[f"{resource}_energy"]
        found[f"work/{resource}"] += devices * amount
        found[f"energy/{resource}"] += devices * amount * energy
    return found

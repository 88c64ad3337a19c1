"""How sentences name symbols and quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .measures import unit_of
from .solution import is_higher_better

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun

RUNS = (("decoding", "the iteration"), ("sequence", "the step"), ("prompt", "the inference"))
"""What the time of a run is the time of, by a symbol that only such a run binds."""
QUANTITIES = {
    "prefill": "the prefill",
    "decode": "the decoding",
    "time_per_token": "a token",
    "tokens_per_s": "the throughput",
    "tokens_per_s_per_device": "the throughput of a device",
    "memory": "the memory",
    "mfu": "the MFU",
    "hfu": "the HFU",
    "mfu_executed": "the executed utilisation",
    "cost": "the cost",
    "cost_per_million_tokens": "the cost of a million tokens",
    "energy": "the energy",
    "energy_per_token": "the energy of a token",
}
NAMES = {"generate": "generated tokens", "num_layers": "number of layers", "tp": "tensor-parallel degree"}
"""Symbols whose names are no words."""
_JOINED = (("scale up", "scale-up"), ("scale out", "scale-out"), ("l2 ", "L2 "), ("fp8 ", "FP8 "))


def words(name: str) -> str:
    """The name of a symbol as words.

    >>> words("scale_out_bandwidth"), words("l2_bandwidth")
    ('scale-out bandwidth', 'L2 bandwidth')
    """
    text = NAMES.get(name, name.removeprefix("num_").replace("_", " "))
    for plain, written in _JOINED:
        text = text.replace(plain, written)
    return text


def sentence_case(text: str) -> str:
    """A text with a capital at its beginning.

    >>> sentence_case("the MFU")
    'The MFU'
    """
    return text[:1].upper() + text[1:]


def noun(of_run: BaseRun, quantity: str) -> str:
    """How a sentence names a quantity of a run."""
    if quantity == "time":
        return next((thing for symbol, thing in RUNS if symbol in of_run.bound), "the run")
    return QUANTITIES.get(quantity, quantity)


def measure(of_run: BaseRun, quantity: str) -> str:
    """How a sentence names the size of a quantity of a run: of the step, the step time."""
    if quantity == "time":
        return f"{noun(of_run, quantity)} time"
    return {"prefill": "the prefill time", "decode": "the decoding time", "time_per_token": "the time per token"}.get(
        quantity, noun(of_run, quantity)
    )


def changed(quantity: str, thing: str, factor: float) -> str:
    """What a change does to a quantity that becomes better by a factor.

    >>> changed("time", "the step", 1.31), changed("mfu", "the MFU", 1.1), changed("cost", "the cost", 2)
    ('makes the step 1.31x faster', 'gives 1.10x the MFU', 'makes the cost 2.00x smaller')
    """
    if is_higher_better(quantity):
        return f"gives {factor:.2f}x {thing}"
    return f"makes {thing} {factor:.2f}x {'faster' if unit_of(quantity) == 's' else 'smaller'}"

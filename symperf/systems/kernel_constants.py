"""Constants of kernels that are known only where somebody measured them: families of them, each the terms of one kind.

A system has a family where its file, or the software on it, gives every constant of the family. The terms of a family
are in a formula only then: there is no default for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .limits import Limits
from .physical_units import FACTOR
from .units import COUNT, FRACTION, RATE, TIME

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from .limits import Quantity

_UP: Final = "scale_up_bandwidth"
LATENCY: Final = Limits(TIME, 1e-10, 1e-1, zero=True)
BLOCK_LATENCY: Final = Limits(TIME, 1e-10, 1e-1, "compute_units", zero=True)
"""Of blocks that the units of a device share: where their number is not known there are no such terms."""
LINK_LATENCY: Final = Limits(TIME, 1e-10, 1e-1, _UP, zero=True)
INNER_LATENCY: Final = Limits(TIME, 1e-13, 1e-6, zero=True)
ENDS: Final = Limits(FACTOR, 1e-2, 1e5, zero=True)
PASSES: Final = Limits(FACTOR, 1e-3, 1e3, zero=True)
CAST: Final = {"cast_latency": LATENCY, "cast_passes": PASSES}
_ATTAINED = Limits(FRACTION, 1e-4, 2.0)
"""A part of a peak that was measured beside other terms, which may hide each other: a little over 1 is possible."""
_PROMPTS: Final = {
    "exponent_rate": Limits(RATE, 1e9, 1e17),
    "query_block": Limits(COUNT, 8, 1024),
    "prompt_latency": LATENCY,
    "prompt_efficiency": _ATTAINED,
    "block_latency": BLOCK_LATENCY,
}
_PART: Final = Limits(FRACTION, 1e-4, 1.0)
_UP_PART: Final = Limits(FRACTION, 1e-4, 1.0, _UP)
_SELECTION: Final[Mapping[str, Limits]] = {
    "index_latency": LATENCY,
    "index_efficiency": _PART,
    "select_passes": PASSES,
}
_SELECTED: Final[Mapping[str, Limits]] = {
    "selected_latency": LATENCY,
    "selected_efficiency": _ATTAINED,
    "gather_efficiency": Limits(FACTOR, 1e-3, 1e2),
    "slot_share": _PART,
}
_EXPERTS: Final[Mapping[str, Limits]] = {
    "expert_latency": LATENCY,
    "grouped_efficiency": _PART,
    "expert_memory_efficiency": _PART,
    "expert_passes": Limits(FACTOR, 1e-6, 1e3, zero=True),
    "choice_latency": Limits(TIME, 1e-15, 1e-3, zero=True),
}
_EXPERT_MAPS: Final[Mapping[str, Limits]] = {"expert_map_latency": LATENCY}
_RECURRENT: Final[Mapping[str, Mapping[str, Limits]]] = {
    "scans": {"scan_latency": LATENCY, "chunk_latency": LATENCY, "scan_passes": PASSES},
    "updates": {"update_latency": LATENCY, "update_passes": PASSES},
    "convolutions": {
        "convolution_latency": LATENCY,
        "convolution_passes": PASSES,
        "convolution_efficiency": _PART,
        "sequence_latency": Limits(TIME, 1e-16, 1e-4, zero=True),
    },
    "windows": {"window_latency": LATENCY, "window_passes": PASSES, "window_efficiency": _PART},
}
"""Of recurrent layers; the kernels of Kimi Delta Attention have their own."""
FAMILIES: Final[Mapping[str, Mapping[str, Limits]]] = {
    "loops": {"inner_latency": INNER_LATENCY, "inner_ends": ENDS},
    "late_starts": {"format_latency": LATENCY},
    "casts": {**CAST, "cast_ends": ENDS, "narrow_ends": ENDS},
    "domain": {
        "domain_latency": LINK_LATENCY,
        "domain_hop_latency": LINK_LATENCY,
        "domain_piece_latency": LINK_LATENCY,
        "domain_efficiency": Limits(FRACTION, 1e-4, 1.0, _UP),
    },
    "crowding": {"pair_crowding": Limits(FRACTION, 1e-6, 1.0, "domain_efficiency", zero=True)},
    **_RECURRENT,
    "ssd": {"ssd_passes": PASSES},
    **{
        f"channel_{family}": {f"channel_{name}": limits for name, limits in members.items()}
        | ({"channel_scan_efficiency": _ATTAINED} if family == "scans" else {})
        for family, members in _RECURRENT.items()
    },
    "prompts": _PROMPTS,
    "decoding": {"decode_latency": LATENCY, "decode_block_latency": BLOCK_LATENCY, "cache_efficiency": _ATTAINED},
    "cache_casts": {"cache_cast_latency": LATENCY},
    "latent": {**_PROMPTS, "latent_latency": LATENCY, "latent_efficiency": _ATTAINED},
    "absorbed": {"absorb_latency": LATENCY},
    "selection": _SELECTION,
    "selected": _SELECTED,
    "block_selection": {f"block_{name}": limits for name, limits in _SELECTION.items()},
    "selected_blocks": {
        **{f"block_{name}": limits for name, limits in _SELECTED.items()},
        "group_rows": Limits(FACTOR, 1.0, 128.0),
    },
    "entry_selection": {
        **{f"entry_{name}": limits for name, limits in _SELECTION.items()},
        "entry_choice_latency": LATENCY,
    },
    "entries": {f"entry_{name}": limits for name, limits in _SELECTED.items()},
    "modules": {"module_latency": LATENCY, "index_module_latency": LATENCY},
    "block_modules": {"block_module_latency": LATENCY},
    "experts": _EXPERTS,
    "expert_maps": _EXPERT_MAPS,
    "direct_exchanges": {
        "exchange_latency": LINK_LATENCY,
        "exchange_hop_latency": LINK_LATENCY,
        "exchange_efficiency": _UP_PART,
        "exchange_out_efficiency": _UP_PART,
    },
    "bulk_exchanges": {
        "bulk_exchange_latency": LINK_LATENCY,
        "bulk_hop_latency": LINK_LATENCY,
        "exchange_units": Limits(FACTOR, 1.0, 1e4, _UP),
        "exchange_unit_efficiency": _UP_PART,
        "exchange_out_efficiency": _UP_PART,
    },
}
"""Names and limits of the constants of each family."""
TRAINED: Final = ("loops", "domain", "crowding", "bulk_exchanges", "ssd")
"""Families whose terms a training step has."""
FORMAT_CONSTANTS: Final[Mapping[str, Limits]] = {
    "narrow_efficiency": Limits(FRACTION, 1e-4, 1.0),
    "inner_latency": INNER_LATENCY,
    "format_latency": LATENCY,
    **CAST,
    "absorb_latency": LATENCY,
    "module_latency": LATENCY,
    **_EXPERTS,
    **_EXPERT_MAPS,
}
"""Constants of products in one format, which software states by format."""
BY_FORMAT: Final = frozenset(
    (
        *("matrix_rate", "matrix_efficiency", "operand_bytes", "weight_bytes"),
        *(name for name in FORMAT_CONSTANTS if name != "narrow_efficiency"),
    )
)
"""What differs between the formats of products in one run: numbered from the checkpoint's second format on."""

LINKED: Final = (
    "peer_latency",
    "peer_efficiency",
    *FAMILIES["direct_exchanges"],
    *FAMILIES["bulk_exchanges"],
)
"""Constants of devices that have links to each other beside those to the host."""


def is_hosted(known: Mapping[str, Quantity]) -> bool:
    """Whether the links between devices are those to the host: they are no faster."""
    host = known["host_bandwidth"].value if "host_bandwidth" in known else 0.0
    return "scale_up_bandwidth" in known and known["scale_up_bandwidth"].value <= host


INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "domain": ("scale_up_latency", "scale_up_efficiency", "scale_up_half_bytes", "switch_efficiency"),
}
"""Constants that a family's stand in place of: who states one of these, and none of the family's, means these."""


def families_of(known: Container[str], stated: Container[str] = ()) -> tuple[str, ...]:
    """The families whose constants are all known, in the order of `FAMILIES`.

    Args:
        known: names of constants.
        stated: those of them that a user gave.

    >>> known = {*FAMILIES["domain"], "scale_up_latency"}
    >>> families_of(known), families_of(known, {"scale_up_latency"})
    (('domain',), ())
    """
    return tuple(
        family
        for family, names in FAMILIES.items()
        if all(name in known for name in names)
        and (not any(name in stated for name in INSTEAD.get(family, ())) or any(name in stated for name in names))
    )

"""What offloading needs of a system, as rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .rule import Rule, refuse

if TYPE_CHECKING:
    from ..systems.system import System
    from .plan import Plan

HOST_NAMES = ("offloads", "host_works", "host_link", "host_memory", "on_drives", "host_drives")
HOST_RULES = (
    Rule(
        "no_link_to_the_host",
        "offloads == 0 or host_link == 1",
        "offload: system {system} describes no link to its host (host_bandwidth); add --set host_bandwidth=...",
        HOST_NAMES,
    ),
    Rule(
        "no_bandwidth_of_drives",
        "on_drives == 0 or host_drives == 1",
        "nvme: system {system} describes no bandwidth of its host's drives (nvme_bandwidth); add --set "
        "nvme_bandwidth=...",
        HOST_NAMES,
    ),
    Rule(
        "no_bandwidth_of_host_memory",
        "host_works == 0 or host_memory == 1",
        "offload: system {system} describes no bandwidth of its host's memory (host_memory_bandwidth); add --set "
        "host_memory_bandwidth=...",
        HOST_NAMES,
    ),
)
"""What offloading needs of a system."""


def check_host(plan: Plan, system: System) -> None:
    """Refuse an offload to a host whose link or memory the system does not describe.

    Raises:
        BrokenRuleError: what is missing.
    """
    if plan.offloads:
        values = {
            "offloads": 1,
            "host_works": int(bool({"optimizer", "experts"} & set(plan.offloads))),
            "on_drives": int(bool(plan.on_drives)),
            "host_drives": int("nvme_bandwidth" in system.quantities),
            "host_link": int("host_bandwidth" in system.quantities),
            "host_memory": int("host_memory_bandwidth" in system.quantities),
        }
        refuse(HOST_RULES, values | {"system": system.name})

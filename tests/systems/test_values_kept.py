"""What a system keeps when one of its figures is set."""

from __future__ import annotations

import dataclasses

import pytest

from symperf.systems.system import System, catalogue_names


@pytest.mark.parametrize("name", catalogue_names())
def test_a_system_whose_figure_is_set_to_what_it_was_is_the_same(name: str) -> None:
    """Every part but what tells where values come from: runtime, links, tiers, levels, rates and quantities."""
    system = System.load(name)
    found = system.with_values({"memory_bandwidth": system.value("memory_bandwidth")}, "bf16")
    for field in dataclasses.fields(System):
        before, after = getattr(system, field.name), getattr(found, field.name)
        if field.name == "quantities":
            before, after = ({key: each.value for key, each in found.items()} for found in (before, after))
        if field.name not in ("stated", "warnings"):
            assert after == before, field.name

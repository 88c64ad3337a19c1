"""Colours that all readers tell apart, and texts that stay texts."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import ROOT

from symperf.pictures.style import CURVES, MARKS, RESOURCES, colour_of, plain, shorten

# Machado, Oliveira, Fernandes: A physiologically-based model for simulation of color vision deficiency (2009), the
# matrices of severity 1.0 on linear RGB.
SEEN = {
    "all cones": np.eye(3).tolist(),
    "without long": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without middle": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "without short": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = XYZ @ np.ones(3)
APART = 15.0
"""Distance in CIELAB (CIE 1976); one of 2.3 is just noticed (Mahy 1994)."""


def lab(colour: str, seen: str) -> np.ndarray:
    srgb = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    x, y, z = XYZ @ np.clip(np.array(SEEN[seen]) @ linear, 0, 1) / WHITE
    fx, fy, fz = (np.cbrt(t) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("colours", [tuple(RESOURCES.values()), CURVES], ids=["resources", "curves"])
def test_all_readers_tell_colours_apart(seen: str, colours: tuple[str, ...]) -> None:
    near = min(
        (float(np.linalg.norm(lab(a, seen) - lab(b, seen))), a, b) for a, b in itertools.combinations(colours, 2)
    )
    assert near[0] > APART, near


def test_colour_is_never_the_only_difference() -> None:
    assert len(set(MARKS.values())) == len(MARKS)
    assert set(MARKS) == set(RESOURCES)


def test_resources_have_their_colours_in_the_explorer_too() -> None:
    """But the network of no tier, whose black would not be seen in the dark."""
    text = (ROOT / "symperf" / "explore" / "static" / "units.js").read_text(encoding="utf-8")
    found = dict(re.findall(r'\["(\w+)", "(#[0-9a-f]{6})"\]', text))
    assert {**RESOURCES, "network": found["network"]} == found


def test_what_is_no_resource_has_a_colour() -> None:
    assert colour_of("") == colour_of(None) not in RESOURCES.values()
    assert colour_of("something", 3) == CURVES[3]


@settings(max_examples=20)
@given(st.text(max_size=60), st.integers(8, 40))
def test_names_are_short_and_plain(text: str, most: int) -> None:
    found = shorten(text, most)
    assert len(found) <= most
    assert found.isprintable()
    assert "\n" not in found
    assert plain(text).replace("\n", "").isprintable()

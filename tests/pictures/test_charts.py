"""Charts by themselves: what they draw is what they were given, and no text covers another or is cut off."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.picture_checks import faults, tables

from symperf.common.errors import InputError
from symperf.pictures.charts import Bar, StageBars, TimeBars
from symperf.pictures.curves import Curves, Series
from symperf.pictures.figure import Sheet, picture
from symperf.pictures.roofline import Point, Roofline
from symperf.pictures.style import plain
from symperf.validation.plot import LISTED
from symperf.validation.plot import sheet as agreement

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("matplotlib")
HOSTILE = "a$x^2$ <script>alert(1)</script> \\frac{1}{2} \x1b[31m\u202e & \udc80"
LONG = "layer/latent_attention_with_compressed_queries_and_experts/attention/absorbed_output/backward_weight"
ROOFS = {"matrix": 989e12, "vector": 67e12}


def bars(count: int, name: str) -> TimeBars:
    found = [Bar(f"{name}{k}", 3.0 / (k + 1), 0.5 / (k + 1), ("compute", "scale_out", "")[k % 3]) for k in range(count)]
    return TimeBars("terms", found)


def points(count: int, name: str) -> list[Point]:
    numbers = ((k, 1e12 * 3.0 ** (k % 9), 1e9 * (1 + k % 4), 0.02 * (1 + k % 5)) for k in range(count))
    return [Point(f"{name}{k}", flops, moved, seconds, "memory") for k, flops, moved, seconds in numbers]


def sheet(count: int, name: str) -> Sheet:
    series = [Series(f"{name} {k}", [1, 2, 40], [5e9, 6e9 + k * 1e9, 7e9], names=["first", "", ""]) for k in range(3)]
    charts = [
        bars(count, name),
        Roofline("roofline", points(count, name), ROOFS, 3.35e12),
        StageBars("stages", {"weights": [1e9] * count, "activations": [2e9] * count, "beside": [0.0] * count}, 8e10),
        Curves("curves", "devices", "memory (bytes)", series, heights=[("target", 6.5e9)], places=[("now", 4.0)]),
    ]
    return Sheet(f"{name} on a system with a name that is so long that it has to be broken " * 2, charts)


@pytest.mark.parametrize(("count", "name"), [(1, "a"), (14, LONG), (24, "mlp/up/")])
def test_no_text_covers_another_or_is_cut_off(count: int, name: str) -> None:
    figure = picture(sheet(count, name), command=f"symperf train '{name}' --set x=1 " * 4)
    assert faults(figure) == []


def test_many_families_have_room() -> None:
    """The legend names those with the most rows, and how many others there are."""
    rows = [
        SimpleNamespace(source=f"{LONG} {k}", case="", quantity="time_s", measured=1.0 + n, predicted=1.1 + n)
        for k in range(70)
        for n in range(1 + k % 9)
    ]
    figure = picture(agreement(rows))
    assert faults(figure) == []
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(labels) == LISTED + 1
    counts = [int(re.findall(r"\((\d+)\)$", label)[0]) for label in labels]
    assert sum(counts) == len(rows)
    assert labels[-1].startswith(f"{70 - LISTED} others")


def test_a_fault_is_found() -> None:
    figure = picture(sheet(1, "a"))
    figure.text(0.9, 0.5, "cut off at the right side")
    figure.text(0.3, 0.3, "one above")
    figure.text(0.3, 0.3, "the other")
    found = "; ".join(faults(figure))
    assert "is cut off" in found
    assert "'one above' meets 'the other'" in found


def test_artists_have_the_numbers() -> None:
    """Lengths of bars in the unit of the axis, places of points, heights of stages."""
    made = sheet(14, "t")
    terms, roofline, stages, curves = picture(made).axes
    assert [patch.get_width() for patch in terms.patches] == pytest.approx([bar.seconds for bar in made.charts[0].bars])
    assert terms.get_xlabel() == "time (s)"
    drawn = np.asarray(roofline.collections[0].get_offsets())
    assert drawn[:, 0] == pytest.approx([point.intensity for point in made.charts[1].points])
    assert drawn[:, 1] == pytest.approx([point.rate for point in made.charts[1].points])
    assert sum(patch.get_height() for patch in stages.patches) * 2**30 == pytest.approx(14 * 3e9)
    assert [list(line.get_ydata()) for line in curves.lines[:3]] == [series.y for series in made.charts[3].series]


def short(seconds: float) -> Any:
    return picture(Sheet("", [TimeBars("t", [Bar("a", seconds, 1.0, "compute")])])).axes[0]


@pytest.mark.parametrize(
    ("seconds", "unit", "length"), [(2.0, "s", 2), (0.03, "ms", 30), (4e-6, "µs", 4), (0.0, "s", 0)]
)
def test_times_are_in_the_unit_of_their_axis(seconds: float, unit: str, length: float) -> None:
    axes = short(seconds)
    assert axes.get_xlabel() == f"time ({unit})"
    assert axes.patches[0].get_width() == pytest.approx(length)


@pytest.mark.parametrize("kind", ["svg", "html", "png", "pdf"])
def test_names_stay_text_and_files_the_same(kind: str, tmp_path: Path) -> None:
    """Nothing of a name is read as mathematics or as markup; the same picture is the same file."""
    charts = [
        bars(2, HOSTILE),
        Curves(HOSTILE, HOSTILE, HOSTILE, [Series(HOSTILE, [0, 1], [1, 2])], ticks=[HOSTILE] * 2),
    ]
    files = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for file in files:
        picture(Sheet(HOSTILE, charts), file, f"symperf train '{HOSTILE}'")
    content = files[0].read_bytes()
    assert content == files[1].read_bytes()
    if kind in ("svg", "html"):
        text = content.decode("utf-8")
        assert "<script>" not in text.lower()
        assert "$x^2$" in text
        assert "\x1b" not in text
        assert "font-family" not in text.partition("<svg")[2].partition("</svg>")[0], "letters are shapes"
    if kind == "html":
        assert not re.findall(r'(?:src|href)="(?!#)', text)
        assert "default-src 'none'" in text
        assert set(re.findall(r"https?://[^\"' )<]+", text)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
            "http://purl.org/dc/elements/1.1/",
            "http://creativecommons.org/ns#",
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
            "http://purl.org/dc/dcmitype/StillImage",
            "https://matplotlib.org/",
        }, "names of vocabularies, which nobody fetches"
        rows = [[plain(bar.name), repr(bar.seconds), repr(bar.share), bar.bound] for bar in charts[0].bars]
        assert tables(text)["terms"] == rows


def test_a_users_own_settings_are_not_read_and_not_changed() -> None:
    """TeX would read names as commands."""
    import matplotlib

    with matplotlib.rc_context({"text.usetex": True, "axes.grid": False, "font.size": 30}):
        figure = picture(sheet(1, "a"))
        assert faults(figure) == []
        assert matplotlib.rcParams["font.size"] == 30
        assert matplotlib.rcParams["text.usetex"]


def test_refusals_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"expected a file that ends in \.png, \.pdf, \.svg, \.html"):
        picture(sheet(1, "a"), tmp_path / "a.gif")
    with pytest.raises(InputError, match="cannot be written"):
        picture(sheet(1, "a"), tmp_path / "none" / "a.svg")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"plot: needs matplotlib, which is not installed"):
        picture(sheet(1, "a"), tmp_path / "a.svg")
    assert list(tmp_path.iterdir()) == []

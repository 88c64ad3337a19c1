"""`@formula` refuses what does not add up, and registers the rest as plain functions with their docstring parsed."""

from __future__ import annotations

import importlib.util
import inspect
from typing import TYPE_CHECKING, Any

import pytest
import sympy

from symperf.formulas.kernels.roofline import roofline_time
from symperf.formulas.language import formula as module
from symperf.formulas.language.atoms import Max
from symperf.formulas.language.dimension import BYTE, SECOND, DimensionError
from symperf.formulas.language.formula import Formula, formula, memoize_formulas
from symperf.formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Formula]:
    """An empty registry, so that trial formulas do not stay."""
    empty: dict[str, Formula] = {}
    monkeypatch.setattr(module, "REGISTRY", empty)
    return empty


def _define(registry: dict[str, Formula]) -> tuple[Any, Formula]:
    @formula(glyph="T_x", dimension=SECOND, source="none", increasing="message_bytes", decreasing="bandwidth")
    def example_time(message_bytes: Any, bandwidth: Any) -> Any:
        """Time of an example,
        in one sentence.

        n / R_b

        Assumes: one thing, and
            another.

        Source: invented, page 3.

        >>> 1 + 1
        2
        """
        return message_bytes / bandwidth

    return example_time, registry["example_time"]


def test_a_formula_stays_a_plain_function(registry: dict[str, Formula]) -> None:
    """It has its name, docstring and signature, and takes expressions and numbers by position or keyword."""
    function, _ = _define(registry)
    x = sympy.Symbol("x")
    assert inspect.isfunction(function)
    assert function.__name__ == "example_time"
    assert function.__doc__.startswith("Time of an example,")
    assert list(inspect.signature(function).parameters) == ["message_bytes", "bandwidth"]
    assert function(x, 4) == x / 4
    assert function(1, bandwidth=3) == sympy.Rational(1, 3), "numbers stay exact"


def test_a_formula_is_registered_with_its_closed_form(registry: dict[str, Formula]) -> None:
    """The record holds the expression in the vocabulary's symbols, the claims and the page."""
    _, record = _define(registry)
    assert record.expression == SYMBOLS["message_bytes"].symbol / SYMBOLS["bandwidth"].symbol
    assert record.parameters == ("message_bytes", "bandwidth")
    assert (record.increasing, record.decreasing) == ({"message_bytes"}, {"bandwidth"})
    assert record.page == "test_formula"
    assert record.judgement().curvature == "affine"
    assert record.proof("bandwidth").startswith("falls with bandwidth: ")
    assert record.latex() == r"T_x(n_b, R_b) = \frac{n_b}{R_b}"


def test_the_docstring_is_parsed(registry: dict[str, Formula]) -> None:
    """Sentence, assumptions and derivation come out on one line each, without what follows them."""
    _, record = _define(registry)
    assert record.sentence == "Time of an example, in one sentence."
    assert record.assumes == "one thing, and another."
    assert record.derivation == "invented, page 3."


def test_a_section_ends_where_the_next_begins(registry: dict[str, Formula]) -> None:
    """Sections need no blank line between them; a missing one is empty."""

    @formula(glyph="T", dimension=SECOND, source="none")
    def short_time(step_time: Any) -> Any:
        """Sentence.

        Assumes: this.
        Source: that.
        """
        return step_time

    @formula(glyph="T", dimension=SECOND, source="none")
    def bare_time(step_time: Any) -> Any:
        """Sentence."""
        return step_time

    short, bare = registry["short_time"], registry["bare_time"]
    assert (short.assumes, short.derivation) == ("this.", "that.")
    assert (bare.assumes, bare.derivation) == ("", "")


def test_a_textbook_form_says_why_no_prediction_has_it(registry: dict[str, Formula]) -> None:
    """Its mark is a section of the docstring; other formulas have none."""

    @formula(glyph="T", dimension=SECOND, source="none")
    def marked_time(step_time: Any) -> Any:
        """Sentence.

        Assumes: this.

        Source: that.

        Reference only: a form of
            textbooks.
        """
        return step_time

    _define(registry)
    assert registry["marked_time"].reference_only == "a form of textbooks."
    assert registry["marked_time"].derivation == "that."
    assert registry["example_time"].reference_only == ""


def test_a_sum_of_unlike_things_is_refused(registry: dict[str, Formula]) -> None:
    """Seconds plus bytes names the formula and both dimensions, and nothing is registered."""
    with pytest.raises(DimensionError, match=r"formula mixed_time: sum of .*: message_bytes \+ step_time"):

        @formula(glyph="T", dimension=SECOND, source="none")
        def mixed_time(step_time: Any, message_bytes: Any) -> Any:
            return step_time + message_bytes

    with pytest.raises(DimensionError, match="formula compared_time: maximum of "):

        @formula(glyph="T", dimension=SECOND, source="none")
        def compared_time(step_time: Any, message_bytes: Any) -> Any:
            return Max(step_time, message_bytes)

    assert not registry


def test_a_wrong_claim_of_dimension_is_refused(registry: dict[str, Formula]) -> None:
    """A consistent closed form of another dimension is an error that shows both."""
    with pytest.raises(DimensionError, match="formula wrong_bytes: claims B, is B/s"):

        @formula(glyph="Q", dimension=BYTE, source="none")
        def wrong_bytes(bandwidth: Any) -> Any:
            return bandwidth

    assert not registry


def test_an_unknown_parameter_is_refused(registry: dict[str, Formula]) -> None:
    """Parameters are names of the vocabulary."""
    with pytest.raises(LookupError, match="formula odd_time: parameter odd_one is not in the vocabulary"):

        @formula(glyph="T", dimension=SECOND, source="none")
        def odd_time(odd_one: Any) -> Any:
            return odd_one

    assert not registry


def test_a_second_definition_is_refused(registry: dict[str, Formula]) -> None:
    """One name, one formula; the first stays."""
    _, first = _define(registry)
    with pytest.raises(LookupError, match="example_time is defined twice"):
        _define(registry)
    assert registry == {"example_time": first}


def test_a_page_with_a_bad_formula_cannot_be_imported(registry: dict[str, Formula], tmp_path: Path) -> None:
    """The check happens on import, before any test runs."""
    page = tmp_path / "bad_page.py"
    page.write_text(
        "from symperf.formulas.language.dimension import SECOND\n"
        "from symperf.formulas.language.formula import formula\n"
        "@formula(glyph='T', dimension=SECOND, source='none')\n"
        "def bad_time(message_bytes, memory_bandwidth):\n"
        "    return message_bytes * memory_bandwidth\n"
    )
    spec = importlib.util.spec_from_file_location("bad_page", page)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(DimensionError, match="formula bad_time: claims s, is B\\^2/s"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert not registry


def test_a_formula_of_the_same_arguments_is_built_once_while_formulas_are_memoized() -> None:
    """Inside another block too; what is built is what is built without."""
    work, moved = sympy.symbols("W Q")
    plain = roofline_time(work, moved, 3, 4)
    with memoize_formulas():
        first = roofline_time(work, moved, 3, 4)
        with memoize_formulas():
            inner = roofline_time(work, moved, 3, 4)
        assert first is inner is roofline_time(work, moved, 3, 4)
        assert first == plain
        assert roofline_time(work, moved, 3, 5) != plain
